#include "tools/trace_generator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "base/random.h"

namespace assay {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : stream_(seed, cause_id("trace")) {}
  int64_t below(int64_t n) {
    return static_cast<int64_t>(stream_.bits() % static_cast<uint64_t>(n));
  }

 private:
  Stream stream_;
};

// One launch of a step: the ops around it, what runs, and for how long.
struct Site {
  std::string_view outer, inner, kernel, shapes;
  int64_t duration_ns;
  bool collective = false;
};

constexpr std::string_view kElementwise =
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, "
    "c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, "
    "std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
    "c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)";
constexpr std::string_view kGemm =
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment"
    "_k_off_kernel__5x_cublas";
constexpr std::string_view kAttention =
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
    "cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true>"
    "(pytorch_flash::Flash_fwd_params)";
constexpr std::string_view kAllReduce =
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

constexpr std::array<Site, 12> kLayer = {{
    {"aten::layer_norm", "aten::native_layer_norm",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>",
     "[[8, 2048, 4096], [], [4096], [4096], [], []]", 21'000},
    {"aten::linear", "aten::addmm", kGemm, "[[8, 2048, 4096], [12288, 4096], [12288]]", 480'000},
    {"aten::scaled_dot_product_attention", "aten::_flash_attention_forward", kAttention,
     "[[8, 32, 2048, 128], [8, 32, 2048, 128], [8, 32, 2048, 128]]", 260'000},
    {"aten::linear", "aten::addmm", kGemm, "[[8, 2048, 4096], [4096, 4096], [4096]]", 170'000},
    {"aten::add", "aten::add", kElementwise, "[[8, 2048, 4096], [8, 2048, 4096], []]", 34'000},
    {"aten::linear", "aten::addmm", kGemm, "[[8, 2048, 4096], [16384, 4096], [16384]]", 640'000},
    {"aten::gelu", "aten::gelu", kElementwise, "[[8, 2048, 16384], []]", 71'000},
    {"aten::linear", "aten::addmm", kGemm, "[[8, 2048, 16384], [4096, 16384], [4096]]", 650'000},
    {"AddmmBackward0", "aten::mm", kGemm, "[[16384, 4096], [4096, 16384]]", 660'000},
    {"GeluBackward0", "aten::gelu_backward", kElementwise, "[[8, 2048, 16384], []]", 95'000},
    {"AddmmBackward0", "aten::mm", kGemm, "[[12288, 16384], [16384, 4096]]", 490'000},
    {"c10d::allreduce_", "record_param_comms", kAllReduce, "[[[50331648]], [], [], [], []]",
     900'000, true},
}};
constexpr int kLayers = 24;
constexpr size_t kForwardSites = 8;

// What is drawn for one launch; both passes over the steps draw the same.
struct Drawn {
  int64_t host_ns = 0, host_length_ns = 0;
  int64_t launch_ns = 0, launch_length_ns = 0;
  int64_t kernel_ns = 0, kernel_length_ns = 0;
  int64_t id = 0;
  int thread = 0;
};

enum class Pass { kHost, kDevice };

class Writer {
 public:
  Writer(const TraceRecipe& recipe, const std::function<void(std::string_view)>& sink)
      : recipe_(recipe), sink_(sink) {}

  uint64_t events = 0;

  void pass(Pass which, int64_t steps) {
    Random random(recipe_.seed);
    host_ns_ = kFirst_ns;
    compute_ns_ = communication_ns_ = 0;
    id_ = 1000;
    for (int64_t step = 0; step < steps; ++step) write_step(which, step, random);
    flush(0);
  }

  void text(std::string_view s) { out_.append(s); }
  void flush(size_t above) {
    if (out_.size() <= above) return;
    sink_(out_);
    out_.clear();
  }

 private:
  static constexpr int64_t kFirst_ns = 3'869'011'261'000'000'000;

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    out_ += first_ ? "\n  {\n    " : ",\n  {\n    ";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += "\n  }";
    ++events;
    flush(size_t{1} << 16);
  }
  static std::string us(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  void write_step(Pass which, int64_t step, Random& random) {
    const int64_t begin = host_ns_;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (size_t i = 0; i < kLayer.size(); ++i) {
        const Drawn d = draw(kLayer[i], i < kForwardSites ? 398 : 425, random);
        which == Pass::kHost ? write_host(kLayer[i], d) : write_device(kLayer[i], d);
      }
    }
    host_ns_ = std::max(host_ns_, compute_ns_) + random.below(40'000);
    if (which == Pass::kDevice) return;
    event(R"("ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 398, "tid": 398,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Ev Idx": {}
    }})",
          step, us(begin), us(host_ns_ - begin - 1), id_, id_);
  }

  Drawn draw(const Site& site, int thread, Random& random) {
    Drawn d;
    d.id = ++id_;
    d.thread = thread;
    d.host_ns = host_ns_;
    d.launch_ns = host_ns_ + 6'000 + random.below(9'000);
    d.launch_length_ns = 3'000 + random.below(4'000);
    d.host_length_ns = d.launch_ns + d.launch_length_ns + 2'000 + random.below(3'000) - host_ns_;
    host_ns_ += d.host_length_ns + 1'000 + random.below(8'000);
    int64_t& stream_ns = site.collective ? communication_ns_ : compute_ns_;
    d.kernel_ns = std::max(stream_ns + 800 + random.below(900), d.launch_ns + 5'000);
    d.kernel_length_ns = site.duration_ns + random.below(site.duration_ns / 20);
    stream_ns = d.kernel_ns + d.kernel_length_ns;
    return d;
  }

  void write_op(std::string_view name, const Site& site, const Drawn& d, int64_t inset_ns,
                std::string_view more) {
    const std::string dims =
        recipe_.shapes && inset_ns > 0
            ? fmt::format(R"("Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Dims": {}, )",
                          site.shapes)
            : "";
    event(R"("ph": "X", "cat": "cpu_op", "name": "{}", "pid": 398, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, {}{}"Ev Idx": {}
    }})",
          name, d.thread, us(d.host_ns + inset_ns), us(d.host_length_ns - 2 * inset_ns), d.id, dims,
          more, d.id - 1000);
  }

  void write_host(const Site& site, const Drawn& d) {
    if (d.thread != 398 && !site.collective) {
      event(R"("ph": "f", "id": {}, "pid": 398, "tid": {}, "ts": {},
    "cat": "fwdbwd", "name": "fwdbwd", "bp": "e")",
            d.id, d.thread, us(d.host_ns));
    }
    write_op(site.outer, site, d, 0, fmt::format(R"("Sequence number": {}, )", 687'000 + d.id));
    write_op(site.inner, site, d, 1'000,
             site.collective ? R"("Collective name": "allreduce", "In msg nelems": 50331648, )"
                               R"("Out msg nelems": 50331648, "Group size": 8, "dtype": )"
                               R"("BFloat16", "Process Group Name": "0", )"
                             : "");
  }

  void write_device(const Site& site, const Drawn& d) {
    const int stream = site.collective ? 20 : 7;
    event(R"("ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},      "queued": 0, "device": 0, "context": 1,      "stream": {}, )"
          R"("correlation": {},      "registers per thread": 168,      "shared memory": 213008,)"
          R"(      "blocks per SM": 7.757576,      "warps per SM": 93.090912,      "grid": )"
          R"([1024, 1, 1],      "block": [384, 1, 1],      "est. achieved occupancy %": 19
    }})",
          site.kernel, stream, us(d.kernel_ns), us(d.kernel_length_ns), d.id, stream, d.id);
    event(R"("ph": "f", "id": {}, "pid": 0, "tid": {}, "ts": {},
    "cat": "ac2g", "name": "ac2g", "bp": "e")",
          d.id, stream, us(d.kernel_ns));
    event(R"("ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 398, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},      "cbid": 211, "correlation": {}
    }})",
          d.thread, us(d.launch_ns), us(d.launch_length_ns), d.id, d.id);
    event(R"("ph": "s", "id": {}, "pid": 398, "tid": {}, "ts": {},
    "cat": "ac2g", "name": "ac2g")",
          d.id, d.thread, us(d.launch_ns));
  }

  TraceRecipe recipe_;
  const std::function<void(std::string_view)>& sink_;
  std::string out_;
  bool first_ = true;
  int64_t host_ns_ = 0, compute_ns_ = 0, communication_ns_ = 0, id_ = 0;
};

}  // namespace

uint64_t generate_trace(const TraceRecipe& recipe,
                        const std::function<void(std::string_view)>& sink) {
  uint64_t step_bytes = 0;
  const std::function<void(std::string_view)> count = [&](std::string_view s) {
    step_bytes += s.size();
  };
  Writer measured(recipe, count);
  measured.pass(Pass::kHost, 1);
  measured.pass(Pass::kDevice, 1);
  const int64_t steps = std::max<int64_t>(
      1, static_cast<int64_t>(recipe.json_bytes / std::max<uint64_t>(step_bytes, 1)));

  Writer writer(recipe, sink);
  writer.text(fmt::format(R"({{
  "schemaVersion": 1,
  "deviceProperties": [
    {{
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132
    }}
  ],
  "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [)",
                          recipe.rank, recipe.world_size));
  writer.pass(Pass::kHost, steps);
  writer.pass(Pass::kDevice, steps);
  writer.text("\n  ],\n  \"traceName\": \"/tmp/made.json\"\n}\n");
  writer.flush(0);
  return writer.events;
}

}  // namespace assay

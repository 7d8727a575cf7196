// How a kernel is recognised as communication.
//
// A list of names alone is wrong in both directions: each library brings new names (DeepEP,
// multimem, custom all-reduces of serving engines), and compilers name kernels after the ops that
// were fused into them (`triton_poi_fused_all_gather_into_tensor_add`), which move nothing. So four
// kinds of evidence are heard, the most direct first, and the first that speaks decides:
//
//   1. Its own metadata. Since 2024 the profiler writes the collective's name, sizes and group on
//      the kernel. Nothing is more direct.
//   2. Its name, where the name is a communication library's (nccl, rccl, hccl, DeepEP, NVSHMEM,
//      MSCCL++) or spells a collective (all_reduce, allGather, reduce_scatter, all_to_all,
//      multimem, cross_device_reduce). A name that a compiler or PyTorch's own kernel library gives
//      (triton_poi_..., at::native::...) is evidence of the contrary, and ends the matter.
//   3. The op that launched it. The innermost op or annotation around the launch call is a
//      collective: record_param_comms, c10d::..., nccl:..., or an op that spells one. The innermost
//      only: an all-gather that first flattens its inputs does so through aten::cat, and that copy
//      is work of this device. An op of PyTorch's own (aten::..., a backward node) computes. Any
//      other op proves nothing: custom libraries bring ops for both. Kernels of a graph launch have
//      no op: what surrounds the launch of a graph says nothing of one kernel in it. On the
//      device's side the same is said by a range (gpu_user_annotation) `nccl:...` on the kernel's
//      stream around it.
//   4. Its stream. Libraries put collectives on streams of their own. Where a stream holds kernels
//      that 1 to 3 know to communicate, none that is known to compute (by 2 and 3, or by a name
//      such as ...gemm...), and no more than kUnknownMost unknown ones for each that is known, the
//      rest of it communicates too. One computing kernel and this evidence is void: a stream that
//      is shared proves nothing.
//
// What nothing speaks for is compute. Copies and sets are memory whatever launched them: they are
// the copy engines' work, and a peer-to-peer copy is seen as one.
#include "ingest/kineto_roles.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"

namespace assay {
namespace {

template <size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

template <size_t N>
bool starts_with_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.substr(0, word.size()) == word; });
}

// How collectives are spelt, in lower case.
constexpr std::array<std::string_view, 14> kSpelt = {"all_reduce",
                                                     "allreduce",
                                                     "all_gather",
                                                     "allgather",
                                                     "reduce_scatter",
                                                     "reducescatter",
                                                     "all_to_all",
                                                     "alltoall",
                                                     "all2all",
                                                     "sendrecv",
                                                     "send_recv",
                                                     "multimem",
                                                     "cross_device_reduce",
                                                     "crossdevicereduce"};

// Libraries whose every kernel communicates.
constexpr std::array<std::string_view, 9> kLibraries = {
    "nccl", "rccl", "hccl", "xccl", "oneccl", "deep_ep", "nvshmem", "mscclpp", "userbuffers"};

// Names that compilers and PyTorch's kernel library give: whatever collective they mention is one
// whose result they use.
constexpr std::array<std::string_view, 8> kOwnWork = {
    "triton_poi_", "triton_red_", "triton_per_", "triton_tem_",
    "triton_for_", "at::native",  "checkfornan", "elementwise_kernel"};

// Names that sound like compute. They settle what a stream is used for, and no more: a collective's
// kernel may be called anything.
constexpr std::array<std::string_view, 27> kSoundsLikeCompute = {
    "gemm", "cutlass", "cublas", "cudnn", "flash",     "fmha", "xmma",      "conv",   "softmax",
    "norm", "at::",    "triton", "cijk_", "ck::",      "attn", "attention", "rotary", "rope",
    "silu", "gelu",    "quant",  "topk",  "embedding", "adam", "dropout",   "_fwd",   "_bwd"};

enum class NameSays : uint8_t { kUnasked, kNothing, kCommunication, kNotIt, kPerhapsCompute };

NameSays ask_name(std::string_view kernel) {
  const std::string name = lower(kernel);
  if (holds_any(name, kOwnWork)) return NameSays::kNotIt;
  if (holds_any(name, kLibraries) || holds_any(name, kSpelt)) return NameSays::kCommunication;
  return holds_any(name, kSoundsLikeCompute) ? NameSays::kPerhapsCompute : NameSays::kNothing;
}

// What the name of an op or annotation says of the kernels right inside it.
enum class OpSays : uint8_t { kUnasked, kNothing, kCollective, kComputes };

OpSays ask_op(std::string_view op) {
  if (names_collective_op(op)) return OpSays::kCollective;
  constexpr std::array<std::string_view, 3> kOwn = {"aten::", "prims::", "autograd::engine::"};
  const bool own = starts_with_any(op, kOwn) || op.find("Backward") != std::string_view::npos;
  return own ? OpSays::kComputes : OpSays::kNothing;
}

// Answers about names, each worked out once.
class Names {
 public:
  explicit Names(const Trace& t) : t_(t), kernels_(t.strings.size()), ops_(t.strings.size()) {}

  NameSays kernel(uint32_t name) {
    NameSays& known = kernels_[name];
    if (known == NameSays::kUnasked) known = ask_name(t_.text(name));
    return known;
  }
  OpSays op(uint32_t name) {
    OpSays& known = ops_[name];
    if (known == OpSays::kUnasked) known = ask_op(t_.text(name));
    return known;
  }

 private:
  const Trace& t_;
  std::vector<NameSays> kernels_;
  std::vector<OpSays> ops_;
};

// The innermost op or annotation around a host event, itself included; frames are passed over.
int32_t innermost_stated(const Trace& t, int32_t host) {
  constexpr int kFramesMost = 10'000;
  for (int i = 0; host >= 0 && i < kFramesMost; ++i) {
    const HostEvent& e = t.host[static_cast<size_t>(host)];
    if (e.kind == HostKind::kOp || e.kind == HostKind::kAnnotation) return host;
    host = e.parent;
  }
  return -1;
}

// The op or annotation that speaks for a kernel; -1: none does.
int32_t speaker(const Trace& t, const DeviceEvent& e) {
  if (e.launch < 0) return e.op;
  const RuntimeEvent& call = t.runtime[static_cast<size_t>(e.launch)];
  if (t.text(call.name).find("GraphLaunch") != std::string_view::npos) return -1;
  const int32_t stated = innermost_stated(t, call.host);
  return stated >= 0 ? stated : e.op;
}

// What is stated counts before what was derived from an annotation.
int32_t collective_around(const Trace& t, int32_t host) {
  constexpr int kLevelsMost = 16;  // record_param_comms is two or three above the launch
  int32_t derived = -1;
  for (int i = 0; host >= 0 && i < kLevelsMost; ++i) {
    const HostEvent& e = t.host[static_cast<size_t>(host)];
    if (e.collective >= 0) {
      if (!t.collectives[static_cast<size_t>(e.collective)].derived) return e.collective;
      if (derived < 0) derived = e.collective;
    }
    host = e.parent;
  }
  return derived;
}

constexpr size_t kUnknownMost = 3;

using StreamKey = std::pair<int32_t, int32_t>;
StreamKey stream_of(const DeviceEvent& e) { return {e.device, e.stream}; }

struct StreamUse {
  size_t communicating = 0, computing = 0;
  std::vector<size_t> unknown;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // `nccl:` ranges, by start
  size_t next_range = 0;
};

// Device events come in the order of their starts, so one step through the ranges is enough.
bool in_range(StreamUse& use, int64_t start_ns) {
  while (use.next_range < use.ranges.size() && use.ranges[use.next_range].second <= start_ns) {
    ++use.next_range;
  }
  return use.next_range < use.ranges.size() && use.ranges[use.next_range].first <= start_ns;
}

enum class Verdict { kUnknown, kCommunication, kCompute };

Verdict judge(const Trace& t, const DeviceEvent& e, Names& names, StreamUse& use) {
  const bool ranged = in_range(use, e.start_ns);
  if (e.collective >= 0) return Verdict::kCommunication;
  const NameSays name = names.kernel(e.name);
  if (name == NameSays::kCommunication) return Verdict::kCommunication;
  if (name == NameSays::kNotIt) return Verdict::kCompute;
  const int32_t by = speaker(t, e);
  const OpSays op = by < 0 ? OpSays::kNothing : names.op(t.host[static_cast<size_t>(by)].name);
  if (op == OpSays::kCollective) return Verdict::kCommunication;
  if (op == OpSays::kComputes) return Verdict::kCompute;
  if (ranged) return Verdict::kCommunication;
  return name == NameSays::kPerhapsCompute ? Verdict::kCompute : Verdict::kUnknown;
}

}  // namespace

bool names_communication_kernel(std::string_view kernel) {
  return ask_name(kernel) == NameSays::kCommunication;
}

bool names_collective_op(std::string_view op) {
  constexpr std::array<std::string_view, 10> kPrefixes = {"record_param_comms",
                                                          "c10d::",
                                                          "_c10d_functional::",
                                                          "c10d_functional::",
                                                          "nccl:",
                                                          "rccl:",
                                                          "hccl:",
                                                          "xccl:",
                                                          "ucc:",
                                                          "deep_ep::"};
  if (starts_with_any(op, kPrefixes)) return true;
  const size_t space = op.rfind("::");
  if (space == std::string_view::npos) return false;
  const std::string last = lower(op.substr(space + 2));
  // A fused op computes and communicates, and a copy beside a collective only gets ready for it
  // (fsdp::all_gather_copy_in): what these launch is judged by other evidence.
  constexpr std::array<std::string_view, 2> kMixed = {"fused", "copy"};
  return holds_any(last, kSpelt) && !holds_any(last, kMixed);
}

void assign_roles(Trace& t) {
  Names names(t);
  std::map<StreamKey, StreamUse> streams;
  for (const DeviceRange& r : t.ranges) {
    if (names.op(r.name) != OpSays::kCollective || r.duration_ns <= 0) continue;
    streams[{r.device, r.stream}].ranges.emplace_back(r.start_ns, r.start_ns + r.duration_ns);
  }
  StreamUse* use = nullptr;
  StreamKey last;
  for (size_t i = 0; i < t.device.size(); ++i) {
    DeviceEvent& e = t.device[i];
    if (e.kind != DeviceKind::kKernel) continue;
    if (use == nullptr || stream_of(e) != last) {
      last = stream_of(e);
      use = &streams[last];
    }
    const Verdict verdict = judge(t, e, names, *use);
    if (verdict == Verdict::kUnknown) use->unknown.push_back(i);
    if (verdict == Verdict::kCompute) ++use->computing;
    if (verdict == Verdict::kCommunication) {
      ++use->communicating;
      e.role = Role::kCommunication;
    }
  }
  for (const auto& [key, one] : streams) {
    if (one.computing > 0 || one.unknown.size() > kUnknownMost * one.communicating) continue;
    for (const size_t i : one.unknown) t.device[i].role = Role::kCommunication;
  }
  for (DeviceEvent& e : t.device) {
    if (e.role != Role::kCommunication || e.collective >= 0 || e.launch < 0) continue;
    e.collective = collective_around(t, t.runtime[static_cast<size_t>(e.launch)].host);
  }
}

}  // namespace assay

// Streams that overlap: parts of the device's time never sum to more than the whole, and no repair
// gives back more than there is.
#include "diagnose/gain_share.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "diagnose/kernel_waste.h"
#include "diagnose/trace_builder.h"
#include "diagnose/trace_causes.h"
#include "ingest/breakdown.h"
#include "world/catalog.h"

namespace assay {
namespace {

const std::string kGemm = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
const std::string kOdd =
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x6_nn_align2>";
const std::string kCell = "void RNNcell_elementwise_kernel<float>";
const std::string kAdd =
    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>";

StepGraph graph_of(const Trace& t) {
  const StepView view = step_view(t);
  return step_graph(t, view, host_marks(t));
}

// The time at which any of the graph's operations ran, counted the slow way.
int64_t union_ns(const Trace& t, const StepGraph& g) {
  Intervals all;
  for (const DeviceOp& op : g.ops) {
    const DeviceEvent& e = t.device[static_cast<size_t>(op.event)];
    if (e.duration_ns > 0) all.push_back({e.start_ns, e.start_ns + e.duration_ns});
  }
  return length_ns(union_of(std::move(all)));
}

TEST(GainShare, EveryInstantIsDividedAmongKernels) {
  TraceBuilder b;
  b.host_us_per_launch = 1;
  b.step([&] {
    b.kernel(kGemm, "aten::mm", 1000, 1);
    b.kernel(kGemm, "aten::mm", 1000, 2);
    const size_t sum = b.kernel("ncclDevKernel_AllReduce", "c10d::allreduce_", 3000, 3);
    b.communicate(sum, "allreduce");
  });
  const Trace t = b.finish();
  const StepGraph g = graph_of(t);
  ASSERT_EQ(g.ops.size(), 3u);
  // The second starts 6 us after the first and runs on 6 us after it.
  EXPECT_NEAR(static_cast<double>(g.ops[0].busy_ns), 503e3, 2);
  EXPECT_NEAR(static_cast<double>(g.ops[1].busy_ns), 503e3, 2);
  // Communication has what they leave: it starts 6 us after the second.
  EXPECT_NEAR(static_cast<double>(g.ops[2].busy_ns), 2006e3, 2);
  EXPECT_FALSE(g.ops[2].computes);
  EXPECT_NEAR(static_cast<double>(computing_ns(g)), 1006e3, 2);
  EXPECT_TRUE(overlaps(g));
}

TEST(GainShare, OneStreamKeepsItsDurations) {
  TraceBuilder b;
  b.step([&] {
    for (int i = 0; i < 50; ++i) b.kernel(kGemm, "aten::mm", 20 + 13 * i % 70);
  });
  const StepGraph g = graph_of(b.finish());
  for (const DeviceOp& op : g.ops) EXPECT_EQ(op.busy_ns, op.duration_ns);
  EXPECT_FALSE(overlaps(g));
}

// Random programs of several streams.
Trace random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<int32_t>(random() % n); };
  TraceBuilder b;
  b.host_us_per_launch = below(30);
  const auto streams = 1 + below(12);
  const auto longest = static_cast<unsigned>(20 + below(400));
  for (int step = 0; step < 3; ++step) {
    b.step([&] {
      size_t last = 0;
      for (int i = 0; i < 60; ++i) {
        const int32_t stream = 7 + below(static_cast<unsigned>(streams));
        if (i > 0 && below(3) == 0) b.wait_for(stream, last);
        const std::string* name = &kGemm;
        if (const int kind = below(4); kind > 0)
          name = kind == 1 ? &kOdd : kind == 2 ? &kCell : &kAdd;
        last =
            b.kernel(*name, name == &kAdd ? "aten::add" : "aten::mm", 1 + below(longest), stream);
      }
      if (below(3) == 0) b.item();
    });
  }
  return b.finish();
}

TEST(GainShare, PartsNeverExceedTheWhole) {
  const Accelerator& h200 = *find_accelerator(catalog(), "H200");
  const DeviceModel device{&h200, find_kernels(catalog(), h200.architecture)};
  int launch_bound = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const Trace t = random_program(seed);
    const StepGraph g = graph_of(t);
    const KernelTable table = kernel_table(t);
    const int64_t whole = union_ns(t, g), rounding = static_cast<int64_t>(g.ops.size());
    EXPECT_NEAR(static_cast<double>(busy_ns(g)), static_cast<double>(whole),
                static_cast<double>(rounding))
        << seed;
    EXPECT_LE(memory_time_ns(g, table) + math_time_ns(g, table), whole + rounding) << seed;
    for (const Waste& w :
         {misaligned_shapes(g, t, table, device), fusable_kernels(g, t, table),
          no_tensor_cores(g, t, table, device, Precision::kBf16), optimizer_passes(g, t)}) {
      EXPECT_LE(w.before_ns, whole + rounding) << seed;
      EXPECT_LE(w.saved_ns, w.before_ns + rounding) << seed;
    }
    const TraceDiagnosis d = diagnose_trace(t);
    for (const Finding& f : d.analysis.findings) {
      if (f.cause != Cause::kLaunchBound) continue;
      ++launch_bound;
      // The step without the profiler, less its kernels, is what waiting can give back.
      EXPECT_LE(f.gain.v, d.replayed.v - static_cast<double>(computing_ns(g)) * 1e-9 + 1e-9)
          << seed;
    }
  }
  EXPECT_GT(launch_bound, 5);
}

// A recurrent layer: every cell waits for the one before it in time and the one below it, so that
// the layers' streams overlap. The host is done long before the device.
void wavefront(TraceBuilder& b, const std::string& gemm, int64_t us) {
  constexpr int kLayers = 6, kTimes = 40;
  std::vector<size_t> below(kTimes, 0);
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int time = 0; time < kTimes; ++time) {
      const int32_t stream = 20 + layer;
      if (layer > 0) b.wait_for(stream, below[static_cast<size_t>(time)]);
      b.kernel(gemm, "aten::_cudnn_rnn", us, stream);
      below[static_cast<size_t>(time)] = b.kernel(kCell, "aten::_cudnn_rnn", 4, stream);
    }
  }
  for (int layer = 0; layer < kLayers; ++layer) b.wait_for(20 + layer, below.back());
}

// Graphs would close the gaps of one stream, but another runs in them.
TEST(GainShare, GapsThatAnotherStreamCoversAreNotLaunching) {
  const auto diagnosis = [](bool covered) {
    TraceBuilder b;
    b.host_us_per_launch = 1;
    for (int s = 0; s < 3; ++s) {
      b.step([&] {
        for (int i = 0; i < 800; ++i) {
          if (covered && i % 50 == 0) b.kernel(kGemm, "aten::mm", 360, TraceBuilder::kSide);
          b.kernel(kGemm, "aten::_cudnn_rnn", 7);
        }
      });
    }
    return diagnose_trace(b.finish());
  };
  const TraceDiagnosis d = diagnosis(true), open = diagnosis(false);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "healthy");
  ASSERT_EQ(open.analysis.findings.size(), 1u);
  EXPECT_EQ(cause_name(open.analysis.findings.front().cause), "launch-bound");
}

// Kernels that run beside one another slow one another down: when all matmuls take a third, so does
// the time at which any of them runs.
TEST(GainShare, FasterKernelsBesideOthersFreeTheDevice) {
  TraceBuilder b;
  b.host_us_per_launch = 1;
  for (int s = 0; s < 3; ++s) b.step([&] { wavefront(b, kOdd, 300); });
  const Trace t = b.finish();
  const StepGraph g = graph_of(t);
  const TraceDiagnosis d = diagnose_trace(t);
  ASSERT_FALSE(d.analysis.findings.empty());
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), "misaligned-shapes");
  const Accelerator& h200 = *find_accelerator(catalog(), "H200");
  const double rate = find_kernels(catalog(), h200.architecture)->matmul.aligned_partly;
  EXPECT_LE(f.step_after->v, d.replayed.v * (rate + 0.06)) << d.replayed.v;
  EXPECT_GE(f.step_after->v, static_cast<double>(busy_ns(g)) * 1e-9 * rate * 0.95);
}

}  // namespace
}  // namespace assay

#include "diagnose/infer_steps.h"

#include <gtest/gtest.h>

#include "diagnose/trace_builder.h"
#include "diagnose/trace_causes.h"

namespace assay {
namespace {

constexpr const char* kMatmul = "nvjet_tst_128x128_64x6_1x2_h_bz_NNT";
constexpr const char* kUpdate = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>";

// Layers that are launched one after another, and an update of the parameters.
void train(TraceBuilder& b, int layers) {
  for (int i = 0; i < layers; ++i) b.kernel(kMatmul, "aten::mm", 100);
  for (int i = 0; i < 2; ++i) b.kernel(kUpdate, "aten::_fused_adamw_", 50);
}

TEST(InferSteps, ToldByTheOptimizersKernels) {
  TraceBuilder b;
  for (int i = 0; i < 3; ++i) train(b, 100);
  Trace t = b.finish();
  const TraceDiagnosis whole = diagnose_trace(t);
  EXPECT_EQ(whole.steps, 0);
  const size_t host = t.host.size();
  infer_steps(t);
  ASSERT_EQ(t.steps.size(), 3u);
  EXPECT_TRUE(t.steps_inferred);
  EXPECT_EQ(t.host.size(), host + 3);
  for (size_t i = 1; i < t.host.size(); ++i) {
    EXPECT_LE(t.host[i - 1].start_ns, t.host[i].start_ns);
  }
  for (const DeviceEvent& e : t.device) {
    const std::string_view op = t.text(t.host[static_cast<size_t>(e.op)].name);
    EXPECT_EQ(op, t.text(e.name) == kMatmul ? "aten::mm" : "aten::_fused_adamw_");
  }
  const TraceDiagnosis d = diagnose_trace(t);
  EXPECT_EQ(d.steps, 3);
  EXPECT_NEAR(d.step_time.v, whole.step_time.v / 3, 0.02 * d.step_time.v);
  ASSERT_FALSE(d.analysis.notes.empty());
  EXPECT_NE(d.analysis.notes.front().find("3 were told apart"), std::string::npos);
}

// Two networks in turn: a step is both of them.
TEST(InferSteps, TwoUpdatesAStep) {
  TraceBuilder b;
  for (int i = 0; i < 3; ++i) {
    train(b, 100);
    train(b, 40);
  }
  Trace t = b.finish();
  infer_steps(t);
  EXPECT_EQ(t.steps.size(), 3u);
}

TEST(InferSteps, LeavesWhatDoesNotRepeat) {
  TraceBuilder b;
  for (int layers : {100, 40, 70, 25, 130}) train(b, layers);
  Trace t = b.finish();
  infer_steps(t);
  EXPECT_TRUE(t.steps.empty());

  TraceBuilder once;
  train(once, 100);
  Trace one = once.finish();
  infer_steps(one);
  EXPECT_TRUE(one.steps.empty());
  EXPECT_FALSE(one.steps_inferred);

  // Layers of one pass repeat, but nothing is updated.
  TraceBuilder forward;
  for (int i = 0; i < 200; ++i) forward.kernel(kMatmul, "aten::mm", 100);
  Trace inference = forward.finish();
  infer_steps(inference);
  EXPECT_TRUE(inference.steps.empty());

  TraceBuilder marked;
  for (int i = 0; i < 3; ++i) marked.step([&] { train(marked, 100); });
  Trace has = marked.finish();
  infer_steps(has);
  EXPECT_EQ(has.steps.size(), 3u);
  EXPECT_FALSE(has.steps_inferred);
  Trace empty;
  infer_steps(empty);
  EXPECT_TRUE(empty.steps.empty());
}

}  // namespace
}  // namespace assay

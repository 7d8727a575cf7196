// Norms and activations that are written out, heads that are turned for unfused attention, casts
// that autocast launches, and what a file leaves open about its input.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "diagnose/trace_builder.h"
#include "diagnose/trace_causes.h"
#include "world/catalog.h"

namespace assay {
namespace {

constexpr int kBlocks = 20;
const std::string kMatmul = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
const std::string kVec = "void at::native::vectorized_elementwise_kernel<4, at::native::";
const std::string kSum = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>";
const std::string kCopyTo = "void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda";

template <class Body>
TraceDiagnosis diagnose_cool(Body body, int64_t host_us = 15, int steps = 3) {
  Accelerator cool = *find_accelerator(catalog(), "H200");
  cool.tdp = Watts(5000);
  TraceBuilder b;
  b.host_us_per_launch = host_us;
  for (int s = 0; s < steps; ++s) b.step([&] { body(b, s); });
  return diagnose_trace(b.finish(), TraceContext{&cool, nullptr});
}

void cast(TraceBuilder& b, int64_t us) {
  b.inside("aten::_to_copy", [&] { b.kernel(kCopyTo, "aten::copy_", us); });
}

// RMSNorm in fp32 of a 16-bit tensor, after the residual's addition.
void norm(TraceBuilder& b, const std::string& root) {
  b.kernel(kVec + "CUDAFunctor_add", "aten::add", 25);
  cast(b, 50);
  b.kernel(kVec + "pow_tensor_scalar", "aten::pow", 30);
  b.kernel(kSum, "aten::mean", 20);
  b.kernel(kVec + "CUDAFunctorOnSelf_add", "aten::add", 1);
  b.kernel(kVec + "rsqrt_kernel_cuda", root, 1);
  b.kernel(kVec + "BinaryFunctor", "aten::mul", 50);
  cast(b, 25);
  b.kernel(kVec + "BinaryFunctor", "aten::mul", 45);
}

TEST(KernelWritten, ANormByHandIsOneKernel) {
  const auto steps = [](const std::string& root) {
    return diagnose_cool([&](TraceBuilder& b, int) {
      for (int i = 0; i < kBlocks; ++i) {
        b.kernel(kMatmul, "aten::mm", 600);
        norm(b, root);
      }
    });
  };
  const TraceDiagnosis d = steps("aten::rsqrt");
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kMemoryBound);
  EXPECT_NE(f.detail.find("20 norms"), std::string::npos) << f.detail;
  // 220 us that move 13 tensors of fp32 become two of 16 bit: 17 us; the addition stays.
  EXPECT_NEAR(f.step_after->v * 1e3, kBlocks * (0.6 + 0.025 + 0.017 + 0.003), 0.2) << f.detail;
  // Passes of another formula are what any eager program makes: a note.
  const TraceDiagnosis other = steps("aten::exp");
  EXPECT_EQ(other.analysis.findings.front().cause, Cause::kHealthy);
  EXPECT_FALSE(other.analysis.notes.empty());
}

// A hyperbolic tangent is GELU's beside a power alone.
TEST(KernelWritten, GeluByHandHasAPower) {
  const auto first = [](const std::string& cube) {
    const TraceDiagnosis d = diagnose_cool([&](TraceBuilder& b, int) {
      for (int i = 0; i < kBlocks; ++i) {
        b.kernel(kMatmul, "aten::mm", 900);
        b.kernel(kVec + "AUnaryFunctor", "aten::mul", 60);
        b.kernel(kVec + "AUnaryFunctor", cube, 60);
        b.kernel(kVec + "AUnaryFunctor", "aten::mul", 60);
        b.kernel(kVec + "CUDAFunctor_add", "aten::add", 90);
        b.kernel(kVec + "tanh_kernel_cuda", "aten::tanh", 60);
        b.kernel(kVec + "BinaryFunctor", "aten::mul", 90);
      }
    });
    return d.analysis.findings.front().cause;
  };
  EXPECT_EQ(first("aten::pow"), Cause::kMemoryBound);
  EXPECT_EQ(first("aten::sigmoid"), Cause::kHealthy);
}

// Where both operands of the scores are copied to be whole, the output's copy goes with them.
TEST(KernelWritten, TurnedHeadsGoWithAttention) {
  const auto after = [](int operands) {
    const TraceDiagnosis d = diagnose_cool([&](TraceBuilder& b, int) {
      const auto turn = [&] {
        b.inside("aten::clone", [&] { b.kernel(kCopyTo, "aten::copy_", 100); });
      };
      for (int i = 0; i < kBlocks; ++i) {
        b.kernel(kMatmul, "aten::mm", 600);
        b.inside("aten::matmul", [&] {
          for (int k = 0; k < operands; ++k) turn();
          b.kernel(kMatmul, "aten::bmm", 100);
        });
        b.kernel("void at::native::cunn_SoftMaxForward<c10::BFloat16>", "aten::_softmax", 400);
        b.kernel(kMatmul, "aten::bmm", 100);
        turn();
      }
    });
    EXPECT_EQ(d.analysis.findings.front().cause, Cause::kUnfusedAttention);
    return d.analysis.findings.front().step_after->v * 1e3;
  };
  EXPECT_NEAR(after(1) - after(2), kBlocks * 0.1, 0.1);
}

// A host that launches a model in fp32 has casts to launch beside under autocast: four for three
// products. In TF32 it has none.
TEST(KernelWritten, AutocastLaunchesCasts) {
  const TraceDiagnosis d = diagnose_cool(
      [](TraceBuilder& b, int) {
        for (int i = 0; i < kBlocks; ++i) {
          b.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma", "aten::mm",
                   1'000);
          b.kernel(kVec + "CUDAFunctor_add<float>", "aten::add", 20);
        }
      },
      200);
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kNoTensorCores);
  // 40 launches of 200 us, and four casts for every six of them.
  constexpr double kHost = kBlocks * 2 * 0.2;  // ms
  EXPECT_NEAR(f.step_after->v * 1e3, kHost * (1 + 4.0 / 6), 0.8) << f.detail;
  ASSERT_TRUE(f.alternative.has_value());
  EXPECT_LT(f.alternative->step_after.v * 1e3, kHost * 1.1);
}

bool asks(const TraceDiagnosis& d, const std::string& about) {
  for (const OpenQuestion& q : d.analysis.open) {
    if (q.text.find(about) != std::string::npos) return true;
  }
  return false;
}

// A batch that takes thirteen times as long in one step as in another is made by something else.
TEST(KernelWritten, BatchesThatAreNotAlikeAreAsked) {
  const auto steps = [](int64_t often_us) {
    return diagnose_cool(
        [&](TraceBuilder& b, int s) {
          b.pause(s % 2 == 0 ? 240'000 : often_us);
          b.copy("Memcpy HtoD (Pinned -> Device)", 131072, 30, false);
          for (int i = 0; i < kBlocks; ++i) b.kernel(kMatmul, "aten::mm", 600);
        },
        15, 5);
  };
  EXPECT_TRUE(asks(steps(18'000), "garbage collector"));
  EXPECT_FALSE(asks(steps(200'000), "garbage collector"));
}

}  // namespace
}  // namespace assay

// Generated traces: one for every cause that a single trace can show, each with a healthy twin that
// must be silent.
#include "diagnose/trace_causes.h"

#include <cmath>

#include <gtest/gtest.h>

#include "diagnose/trace_builder.h"
#include "ingest/kineto.h"
#include "world/catalog.h"

namespace assay {
namespace {

constexpr int kSteps = 4, kLayers = 12;
const std::string kGemm = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
const std::string kFlash = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_kernel0_0";
const std::string kAdd =
    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>";

// A layer of a model that keeps the device busy.
void layer(TraceBuilder& b, int64_t scale = 1) {
  b.kernel(kGemm, "aten::mm", 400 / scale);
  b.kernel(kFlash, "aten::_scaled_dot_product_cudnn_attention", 200 / scale);
  b.kernel(kAdd, "aten::add", 60 / scale);
  b.kernel(kGemm, "aten::mm", 400 / scale);
  b.kernel(kAdd, "aten::add", 60 / scale);
}

template <class Body>
TraceDiagnosis diagnose_steps(TraceBuilder& b, const TraceContext& context, Body body) {
  for (int s = 0; s < kSteps; ++s) b.step(body);
  const TraceDiagnosis d = diagnose_trace(b.finish(), context);
  EXPECT_NEAR(d.step.paid().v, d.step_time.v, 1e-12);
  return d;
}

// On an H200 whose power limit nothing reaches, so that kernels keep their time.
template <class Body>
TraceDiagnosis diagnose_steps(Body body) {
  Accelerator cool = *find_accelerator(catalog(), "H200");
  cool.tdp = Watts(5000);
  TraceBuilder b;
  return diagnose_steps(b, TraceContext{&cool, nullptr}, [&] { body(b); });
}

void expect_healthy(const TraceDiagnosis& d) {
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "healthy");
}

// The first finding is this, and the step after it is `after` milliseconds within 5 %.
void expect_found(const TraceDiagnosis& d, Cause cause, double after_ms) {
  ASSERT_FALSE(d.analysis.findings.empty());
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), cause_name(cause));
  ASSERT_TRUE(f.step_after.has_value());
  EXPECT_NEAR(f.step_after->v * 1e3, after_ms, 0.05 * after_ms);
  EXPECT_FALSE(f.evidence.empty());
}

constexpr double kStep = kLayers * 1.125;  // ms of the healthy device

TEST(TraceCauses, HealthyIsSilent) {
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
  }));
}

TEST(TraceCauses, DataStarved) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    b.loader(30'000);
    b.copy("Memcpy HtoD (Pageable -> Device)", 131072, 30, true);
    for (int i = 0; i < kLayers; ++i) layer(b);
  });
  expect_found(d, Cause::kDataStarved, kStep);
  EXPECT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings.front().confidence, Confidence::kHigh);

  // Workers that keep up, and pinned memory.
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    b.loader(100, "_MultiProcessingDataLoaderIter");
    b.copy("Memcpy HtoD (Pinned -> Device)", 131072, 10, false);
    for (int i = 0; i < kLayers; ++i) layer(b);
  }));
}

TEST(TraceCauses, DataStarvedWithoutAnAnnotation) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    b.pause(30'000);  // somebody's own loader
    b.copy("Memcpy HtoD (Pageable -> Device)", 131072, 30, true);
    for (int i = 0; i < kLayers; ++i) layer(b);
  });
  expect_found(d, Cause::kDataStarved, kStep);
  EXPECT_EQ(d.analysis.findings.front().confidence, Confidence::kMedium);
}

// A device that is fed draws more power, and its clocks fall.
TEST(TraceCauses, FedDeviceClocksLower) {
  auto starved = [](TraceBuilder& b) {
    return [&b] {
      b.loader(30'000);
      for (int i = 0; i < kLayers; ++i) layer(b);
    };
  };
  TraceBuilder b;
  const TraceDiagnosis d = diagnose_steps(b, {}, starved(b));
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_GT(d.analysis.findings.front().step_after->v * 1e3, kStep * 1.05);
  EXPECT_LT(d.analysis.findings.front().step_after->v * 1e3, kStep * 1.25);
}

TEST(TraceCauses, LaunchBound) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b, 50);
  });
  expect_found(d, Cause::kLaunchBound, kLayers * (8 + 4 + 1 + 8 + 1 + 5 * 0.3) * 1e-3);
  EXPECT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.confidence, Confidence::kHigh);
  EXPECT_EQ(f.fix.find("optimizer"), std::string::npos) << f.fix;  // there is none

  const TraceDiagnosis few = diagnose_steps([](TraceBuilder& b) { layer(b, 50); });
  EXPECT_EQ(few.analysis.findings.front().confidence, Confidence::kLow);
}

TEST(TraceCauses, HostSync) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    b.host_us_per_launch = 60;
    for (int i = 0; i < kLayers; ++i) {
      layer(b);
      b.item();
    }
  });
  expect_found(d, Cause::kHostSync, kStep);

  // Once a step the loss is read: the queue is refilled at little cost.
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.item();
  }));
}

// What is computed only to be read goes with the read; a loss, and what was computed in bulk,
// stays.
TEST(TraceCauses, WhatIsOnlyReadGoesToo) {
  const auto step_after = [](const std::string& kernel, const std::string& op, bool in_bulk) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b) {
      b.host_us_per_launch = 60;
      for (int i = 0; i < kLayers; ++i) {
        layer(b);
        if (in_bulk) continue;
        b.kernel(kernel, op, 100);
        b.item();
      }
      for (int i = 0; in_bulk && i < kLayers; ++i) b.kernel(kernel, op, 100);
      for (int i = 0; in_bulk && i < kLayers; ++i) b.item();
    });
    const Finding& f = d.analysis.findings.front();
    return f.step_after ? f.step_after->v * 1e3 : -1;
  };
  const std::string reduces = "void at::native::reduce_kernel<512>";
  EXPECT_NEAR(step_after(reduces, "aten::linalg_vector_norm", false), kStep, 0.05 * kStep);
  EXPECT_GT(step_after(reduces, "aten::mean", false), kStep + kLayers * 0.095);
  EXPECT_GT(step_after("nll_loss_forward", "aten::nll_loss_forward", false),
            kStep + kLayers * 0.095);
  EXPECT_GT(step_after(reduces, "aten::linalg_vector_norm", true), kStep + kLayers * 0.09);
}

TEST(TraceCauses, AnomalyMode) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    b.host_us_per_launch = 60;
    for (int i = 0; i < kLayers; ++i) {
      layer(b);
      b.kernel("vectorized_elementwise_kernel", "aten::ne", 40);
      b.inside("aten::_is_any_true", [&] { b.kernel("reduce_kernel", "aten::any", 40); });
      b.item();
    }
  });
  expect_found(d, Cause::kHostSync, kStep);
  EXPECT_NE(d.analysis.findings.front().fix.find("set_detect_anomaly(False)"), std::string::npos);
}

TEST(TraceCauses, PageableCopies) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < 2; ++i) {
      b.copy("Memcpy HtoD (Pageable -> Device)", 100'000'000, 6'000, true);
    }
    for (int i = 0; i < kLayers; ++i) layer(b);
  });
  expect_found(d, Cause::kPageableCopies, kStep);

  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < 2; ++i) {
      b.copy("Memcpy HtoD (Pinned -> Device)", 100'000'000, 1'900, false, TraceBuilder::kSide);
    }
    for (int i = 0; i < kLayers; ++i) layer(b);
  }));
}

// Offloading in the middle of a step cannot be made ahead: it only gets as fast as the link.
TEST(TraceCauses, PageableCopiesInsideTheStep) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.copy("Memcpy DtoH (Device -> Pageable)", 200'000'000, 15'000, true);
    b.copy("Memcpy HtoD (Pageable -> Device)", 200'000'000, 12'000, true);
  });
  expect_found(d, Cause::kPageableCopies, kStep + 2 * 200e6 / (64e9 * 0.865) * 1e3);
}

TEST(TraceCauses, Allocator) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) {
      b.allocate("cudaMalloc", 900);
      layer(b);
      b.allocate("cudaFree", 700);
    }
  });
  expect_found(d, Cause::kAllocator, kStep);

  // A few at the start of a step disappear behind the device's work.
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.allocate("cudaMalloc", 200);
  }));
}

TEST(TraceCauses, GarbageCollection) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.pause(25'000);
  });
  expect_found(d, Cause::kGarbageCollection, kStep);
  EXPECT_EQ(d.analysis.findings.front().confidence, Confidence::kLow);

  // At the end of a step it is no input work, though the next thing is a copy of the next batch.
  const TraceDiagnosis with_input = diagnose_steps([](TraceBuilder& b) {
    b.copy("Memcpy HtoD (Pinned -> Device)", 131072, 10, false);
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.pause(25'000);
  });
  expect_found(with_input, Cause::kGarbageCollection, kStep);

  // A pause that the queue outlasts costs nothing.
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.pause(3'000);
  }));
}

TEST(TraceCauses, NoTensorCores) {
  auto body = [](const std::string& gemm) {
    return [gemm](TraceBuilder& b) {
      for (int i = 0; i < 4 * kLayers; ++i) b.kernel(gemm, "aten::mm", 900);
    };
  };
  const TraceDiagnosis d =
      diagnose_steps(body("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>"));
  ASSERT_FALSE(d.analysis.findings.empty());
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), "no-tensor-cores");
  EXPECT_GT(f.share, 0.8);
  EXPECT_NE(f.detail.find("TF32"), std::string::npos);
  expect_healthy(diagnose_steps(body(kGemm)));

  // On a device of which nothing is known there is nothing to compare with.
  TraceBuilder unknown("Mystery Accelerator");
  const TraceDiagnosis silent = diagnose_steps(
      unknown, {}, [&] { body("void cutlass::Kernel2<cutlass_80_simt_sgemm_align1>")(unknown); });
  expect_healthy(silent);
  EXPECT_TRUE(silent.accelerator.empty());
}

// One head of attention as it is written by hand: 32 sequences x heads of 2048 tokens, head 128.
void unfused(TraceBuilder& b, bool shapes) {
  const std::string mask =
      "void at::native::elementwise_kernel<128, 4, at::native::masked_fill_kernel>";
  b.kernel(kGemm, "aten::mm", 300);
  b.kernel(kGemm, "aten::bmm", 200);
  if (shapes) b.record_shapes("[[32, 2048, 128], [32, 128, 2048]]");
  b.kernel(mask, "aten::masked_fill_", 400, TraceBuilder::kCompute, 32 * 2048 * 2048 / 512);
  b.kernel("void at::native::cunn_SoftMaxForward<c10::BFloat16>", "aten::_softmax", 400,
           TraceBuilder::kCompute, 32 * 2048);
  b.kernel(kGemm, "aten::bmm", 200);
  b.kernel("void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>",
           "aten::copy_", 20, TraceBuilder::kCompute, 32 * 2048 * 128 / 512);
}

TEST(TraceCauses, UnfusedAttention) {
  for (bool shapes : {false, true}) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) unfused(b, shapes);
    });
    ASSERT_EQ(d.analysis.findings.size(), 1u);
    const Finding& f = d.analysis.findings.front();
    EXPECT_EQ(cause_name(f.cause), "unfused-attention");
    EXPECT_NE(f.detail.find("32 sequences x heads, 2048 x 2048 scores, head size 128"),
              std::string::npos)
        << f.detail;
    // 1.2 ms of each layer become a fused kernel: 17 TFLOP at half of 989 are 0.04 to 0.1 ms.
    EXPECT_GT(f.step_after->v * 1e3, kLayers * 0.36);
    EXPECT_LT(f.step_after->v * 1e3, kLayers * 0.45);
  }
  // A softmax of the loss has no batched matmul beside it.
  expect_healthy(diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) layer(b);
    b.kernel("void at::native::cunn_SoftMaxForward<float>", "aten::_log_softmax", 900);
  }));
}

// Transposed heads are copied before the batched matmul; a fused kernel reads them in place.
TEST(TraceCauses, UnfusedAttentionTakesItsCopies) {
  const std::string copy =
      "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>";
  const auto gain = [&](bool in_product) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 300);
        if (!in_product) b.kernel(copy, "aten::copy_", 100);  // somebody's own
        b.inside("aten::matmul", [&] {
          if (in_product) b.kernel(copy, "aten::copy_", 100);
          b.kernel(kGemm, "aten::bmm", 200);
          b.record_shapes("[[32, 2048, 128], [32, 128, 2048]]");
        });
        b.kernel("void at::native::cunn_SoftMaxForward<float>", "aten::_softmax", 400);
        b.kernel(kGemm, "aten::bmm", 200);
      }
    });
    EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "unfused-attention");
    EXPECT_NE(d.analysis.findings.front().detail.find("2048 x 2048"), std::string::npos);
    return d.analysis.findings.front().gain.v;
  };
  EXPECT_NEAR(gain(true) - gain(false), kLayers * 101e-6, kLayers * 5e-6);
}

// All that PyTorch's own fallback launches is its own, and the `where` of its softmax is no mask.
TEST(TraceCauses, UnfusedAttentionTakesTheWholeFallback) {
  const auto step_after = [&](const std::string& around) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 300);
        b.inside(around, [&] {
          for (int k = 0; k < 3; ++k) b.kernel(kAdd, "aten::copy_", 50);
          b.kernel(kGemm, "aten::bmm", 200);
          b.record_shapes("[[32, 2048, 128], [32, 128, 2048]]");
          b.inside("aten::_safe_softmax", [&] {
            b.kernel("void at::native::cunn_SoftMaxForward<float>", "aten::_softmax", 400);
            b.kernel(kAdd, "aten::where", 100);
          });
          b.kernel(kGemm, "aten::bmm", 200);
          b.kernel(kAdd, "aten::copy_", 50);
        });
      }
    });
    EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "unfused-attention");
    return d.analysis.findings.front().step_after->v;
  };
  const double own = step_after("somebody::attention");
  const double fallback = step_after("aten::_scaled_dot_product_attention_math");
  EXPECT_NEAR(own - fallback, kLayers * 4 * 51e-6, kLayers * 5e-6);
}

TEST(TraceCauses, MemoryBound) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) {
      b.kernel(kGemm, "aten::mm", 400);
      for (int k = 0; k < 8; ++k) b.kernel(kAdd, "aten::mul", 100);
    }
  });
  // Eight passes leave a sixth of their time, not an eighth.
  expect_found(d, Cause::kMemoryBound, kLayers * 0.536);

  // Less of the same is what an eager framework costs: a note, no finding.
  const TraceDiagnosis eager = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) {
      b.kernel(kGemm, "aten::mm", 400);
      for (int k = 0; k < 3; ++k) b.kernel(kAdd, "aten::mul", 100);
    }
  });
  expect_healthy(eager);
  ASSERT_FALSE(eager.analysis.notes.empty());
  EXPECT_NE(eager.analysis.notes.front().find("fuse"), std::string::npos);
}

TEST(TraceCauses, AFewMatmulsInFp32SaveNoMoreThanTheyTake) {
  const std::string simt =
      "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(params)";
  const std::string loss =
      "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>";
  // Most of the arithmetic's time, but a tenth of the arithmetic: the model itself is in 16 bit.
  const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) b.kernel(kGemm, "aten::mm", 500);
    for (int i = 0; i < 3; ++i) {
      b.kernel(simt, "aten::mm", 3'000);
      b.kernel(loss, "aten::add", 2'000);
    }
  });
  ASSERT_FALSE(d.analysis.findings.empty());
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), "no-tensor-cores");
  EXPECT_LE(f.gain.v, 3 * 3e-3);
  EXPECT_GT(f.gain.v, 0.9 * 3 * 3e-3);
}

// AdamW over `us` microseconds of parameters: the time of a pass that reads and writes one tensor.
void adamw(TraceBuilder& b, int64_t us, bool fused) {
  const std::string kernel = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<";
  b.inside("Optimizer.step#AdamW.step", [&] {
    if (fused) {
      b.kernel(kernel + "FusedAdamMathFunctor>", "aten::_fused_adamw_", us * 7 / 2);
      return;
    }
    b.kernel(kernel + "BinaryOpScalarFunctor>", "aten::_foreach_add_", 2);  // counts steps
    b.kernel(kernel + "BinaryOpScalarFunctor>", "aten::_foreach_mul_", us);
    b.kernel(kernel + "TernaryOpScalarFunctor>", "aten::_foreach_lerp_", us * 3 / 2);
    b.kernel(kernel + "BinaryOpScalarFunctor>", "aten::_foreach_mul_", us);
    b.kernel(kernel + "PointwiseOpScalarFunctor>", "aten::_foreach_addcmul_", us * 3 / 2);
    b.kernel(kernel + "UnaryOpFunctor>", "aten::_foreach_sqrt", us);
    b.kernel(kernel + "BinaryOpScalarListFunctor>", "aten::_foreach_div_", us);
    b.kernel(kernel + "BinaryOpScalarFunctor>", "aten::_foreach_add_", us);
    b.kernel(kernel + "PointwiseOpScalarListFunctor>", "aten::_foreach_addcdiv_", us * 2);
  });
}

TEST(TraceCauses, AnOptimizerInManyPasses) {
  const auto steps = [](int64_t us, bool fused) {
    return diagnose_steps([&](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) layer(b);
      adamw(b, us, fused);
    });
  };
  const TraceDiagnosis d = steps(400, false);
  expect_found(d, Cause::kMemoryBound, kStep + 7 * 0.2);
  const Finding& f = d.analysis.findings.front();
  EXPECT_NE(f.fix.find("fused=True"), std::string::npos);
  EXPECT_NE(f.detail.find("20 tensors of their size"), std::string::npos) << f.detail;
  expect_healthy(steps(400, true));
  expect_healthy(steps(20, false));  // less than 3 % to be had

  // Beside a model that is memory-bound itself it is one finding with both repairs.
  const TraceDiagnosis both = diagnose_steps([](TraceBuilder& b) {
    for (int i = 0; i < kLayers; ++i) {
      b.kernel(kGemm, "aten::mm", 400);
      for (int k = 0; k < 8; ++k) b.kernel(kAdd, "aten::mul", 100);
    }
    adamw(b, 200, false);
  });
  ASSERT_EQ(both.analysis.findings.size(), 1u);
  expect_found(both, Cause::kMemoryBound, kLayers * 0.536 + 7 * 0.1);
  EXPECT_NE(both.analysis.findings.front().fix.find("torch.compile"), std::string::npos);
  EXPECT_NE(both.analysis.findings.front().fix.find("fused=True"), std::string::npos);
}

// Messages between nodes of a graph: passes over the edges, added up at the nodes.
TEST(TraceCauses, AScatterIsFusedWithThePassesBeforeIt) {
  const auto steps = [](const std::string& op) {
    return diagnose_steps([&](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 100);
        for (int k = 0; k < 5; ++k) b.kernel(kAdd, "aten::mul", 100);
        b.inside(op, [&] {
          b.copy("Memcpy DtoD (Device -> Device)", 1 << 20, 2, false);
          b.kernel("void at::native::indexFuncLargeIndex<float, long>", op, 300);
        });
      }
    });
  };
  // The longest pass, and half of it for the writes of the scatter.
  expect_found(steps("aten::index_add"), Cause::kMemoryBound, kLayers * (0.1 + 0.1 + 0.05 + 0.007));
  // Of another kernel that slow nothing is known: it stays.
  expect_found(steps("aten::index_fill"), Cause::kMemoryBound, kLayers * (0.1 + 0.1 + 0.3 + 0.007));
}

TEST(TraceCauses, MisalignedShapes) {
  auto body = [](const std::string& gemm) {
    return [gemm](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) {
        layer(b);
        b.kernel(gemm, "aten::mm", 500);
        b.record_shapes("[[8192, 2040], [2040, 5001]]");
      }
    };
  };
  const TraceDiagnosis d = diagnose_steps(
      body("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>"));
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "misaligned-shapes");
  EXPECT_NE(d.analysis.findings.front().detail.find("8192 x 5001 x 2040"), std::string::npos);
  expect_healthy(diagnose_steps(
      body("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_nn_align8>")));
}

// Convolutions of odd channels: cuDNN pads input, weight and output.
TEST(TraceCauses, PaddedChannels) {
  const auto steps = [](bool odd) {
    return diagnose_steps([odd](TraceBuilder& b) {
      const auto pad = [&](int64_t us) {
        if (!odd) return;
        b.copy("Memset (Device)", 0, 2, false);
        b.kernel("void nhwcAddPaddingKernel<__nv_bfloat16>", "aten::cudnn_convolution", us);
      };
      for (int i = 0; i < 40; ++i) {
        pad(20);
        b.kernel("sm90_xmma_fprop_implicit_gemm_bf16bf16", "aten::cudnn_convolution", 300);
        pad(20);
        b.kernel(kAdd, "aten::add", 60);
      }
    });
  };
  const TraceDiagnosis d = steps(true);
  ASSERT_FALSE(d.analysis.findings.empty());
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), "misaligned-shapes");
  EXPECT_NEAR(f.gain.v, 40 * 2 * 21e-6, 40 * 2 * 3e-6);
  EXPECT_NE(f.detail.find("channels of convolutions"), std::string::npos);
  expect_healthy(steps(false));
}

TEST(TraceCauses, ExposedCommunicationAndBubble) {
  auto body = [](const std::string& collective, bool exposed) {
    return [collective, exposed](TraceBuilder& b) {
      for (int i = 0; i < kLayers; ++i) layer(b);
      const size_t e =
          b.kernel("ncclDevKernel_Generic", "c10d::" + collective, 6'000, TraceBuilder::kSide);
      b.communicate(e, collective);
      if (exposed) b.wait_for(TraceBuilder::kCompute, e);
      b.kernel(kAdd, "aten::add", 60);
    };
  };
  // It starts beside the layers, so only what outlasts them is exposed: make it wait for them.
  auto late = [&](const std::string& collective) {
    return diagnose_steps([&](TraceBuilder& b) {
      size_t last = 0;
      for (int i = 0; i < kLayers; ++i) {
        layer(b);
        last = b.kernel(kAdd, "aten::add", 60);
      }
      b.wait_for(TraceBuilder::kSide, last);
      const size_t e =
          b.kernel("ncclDevKernel_Generic", "c10d::" + collective, 6'000, TraceBuilder::kSide);
      b.communicate(e, collective);
      b.wait_for(TraceBuilder::kCompute, e);
      b.kernel(kAdd, "aten::add", 60);
    });
  };
  const TraceDiagnosis comm = late("allreduce");
  ASSERT_FALSE(comm.analysis.findings.empty());
  EXPECT_EQ(cause_name(comm.analysis.findings.front().cause), "exposed-communication");
  EXPECT_GT(comm.step[Account::kCommGrad].v, 0.0059);
  const TraceDiagnosis bubble = late("recv");
  ASSERT_FALSE(bubble.analysis.findings.empty());
  EXPECT_EQ(cause_name(bubble.analysis.findings.front().cause), "pipeline-bubble");
  expect_healthy(diagnose_steps(body("allreduce", false)));
}

TEST(TraceCauses, NothingOnTheDevice) {
  const TraceDiagnosis empty = diagnose_trace(Trace{});
  EXPECT_TRUE(empty.analysis.findings.empty());
  EXPECT_EQ(empty.analysis.notes.size(), 1u);
}

TEST(TraceCauses, HostileTimesDoNotBreakTheLedger) {
  const std::string events[] = {
      R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":900000000000,"pid":0,"tid":7,)"
      R"("args":{"stream":7,"correlation":5}})",
      R"({"ph":"X","cat":"kernel","name":"k","ts":5,"dur":-3,"pid":0,"tid":7,"args":{}})",
      R"({"ph":"X","cat":"kernel","name":"a","ts":900000000,"dur":2,"pid":0,"tid":9,)"
      R"("args":{"stream":9,"correlation":5,"grid":[2147483647,1,1]}})",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaFree","ts":2,"dur":8e11,"tid":1,)"
      R"("args":{"correlation":5}})",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","ts":3,"dur":-1,"tid":1})",
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":1e12,"tid":1})",
      R"({"ph":"X","cat":"cpu_op","name":"aten::bmm","ts":1,"dur":3,"tid":1,)"
      R"("args":{"Input Dims":[[999999999999,-4],[[1],2]],"External id":1}})"};
  for (unsigned mask = 1; mask < 128; ++mask) {
    std::string json = R"({"traceEvents":[)";
    bool first = true;
    for (unsigned i = 0; i < 7; ++i) {
      if ((mask >> i & 1) == 0) continue;
      json += (first ? "" : ",") + events[i];
      first = false;
    }
    Diagnostics warnings;
    const Result<Trace> trace = read_kineto_text(json + "]}", "hostile", warnings);
    if (!trace) continue;
    const TraceDiagnosis d = diagnose_trace(*trace);
    EXPECT_NEAR(d.step.paid().v, trace->device.empty() ? 0 : d.step_time.v,
                1e-9 * (1 + d.step_time.v));
  }
}

}  // namespace
}  // namespace assay

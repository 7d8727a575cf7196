// Faults that were missed once, each in a trace that has nothing else: batches that host operators
// make, double precision, padded heads, a softmax written out, passes over memory beside a slow
// host; and steps that are uneven.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "diagnose/trace_builder.h"
#include "diagnose/trace_causes.h"
#include "world/catalog.h"

namespace assay {
namespace {

constexpr int kLayers = 20, kSteps = 3;
const std::string kGemm = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
const std::string kAdd =
    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>";
const std::string kReduce = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>";

template <class Body>
TraceDiagnosis diagnose_steps(Body body, int64_t host_us = 15) {
  Accelerator cool = *find_accelerator(catalog(), "H200");
  cool.tdp = Watts(5000);
  TraceBuilder b;
  b.host_us_per_launch = host_us;
  for (int s = 0; s < kSteps; ++s) b.step([&] { body(b, s); });
  return diagnose_trace(b.finish(), TraceContext{&cool, nullptr});
}

void expect_only(const TraceDiagnosis& d, Cause cause, double low_ms, double high_ms) {
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(cause_name(f.cause), cause_name(cause));
  EXPECT_GE(f.step_after->v * 1e3, low_ms) << f.detail;
  EXPECT_LE(f.step_after->v * 1e3, high_ms) << f.detail;
}

void matmuls(TraceBuilder& b, int64_t us = 400) {
  for (int i = 0; i < kLayers; ++i) b.kernel(kGemm, "aten::mm", us);
}

TEST(TraceFaults, HostOperatorsThatMakeTheBatch) {
  const auto masked = [](TraceBuilder& b, bool input) {
    for (int i = 0; i < 10; ++i) b.host_op("aten::sort", 1'000);
    if (input) b.copy("Memcpy HtoD (Pageable -> Device)", 131072, 30, true);
    matmuls(b);
  };
  expect_only(diagnose_steps([&](TraceBuilder& b, int) { masked(b, true); }), Cause::kDataStarved,
              8.0, 8.4);
  // Without a copy from the host nothing says that they made a batch.
  const TraceDiagnosis other = diagnose_steps([&](TraceBuilder& b, int) { masked(b, false); });
  for (const Finding& f : other.analysis.findings) EXPECT_NE(f.cause, Cause::kDataStarved);
}

TEST(TraceFaults, DoublePrecision) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b, int) {
    matmuls(b);
    b.kernel("sm90_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x128x16_stage3", "aten::mm", 9'000);
  });
  // 62 TFLOP/s become some 650.
  expect_only(d, Cause::kNoTensorCores, 8.6, 9.2);
  EXPECT_NE(d.analysis.findings.front().detail.find("double precision"), std::string::npos);
}

TEST(TraceFaults, PaddedHeads) {
  const auto body = [](bool pads) {
    return [pads](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 400);
        b.inside("aten::scaled_dot_product_attention", [&] {
          if (pads) b.inside("aten::constant_pad_nd", [&] { b.kernel(kAdd, "aten::copy_", 90); });
          b.kernel("void pytorch_flash::flash_fwd_kernel<x>", "aten::_flash_attention_forward",
                   100);
        });
      }
    };
  };
  const TraceDiagnosis d = diagnose_steps(body(true));
  expect_only(d, Cause::kMisalignedShapes, kLayers * 0.45, kLayers * 0.51);
  EXPECT_NE(d.analysis.findings.front().detail.find("heads"), std::string::npos);
  // The portable kernel by itself is no fault of the shapes.
  const TraceDiagnosis plain = diagnose_steps(body(false));
  EXPECT_EQ(plain.analysis.findings.front().cause, Cause::kHealthy);
}

TEST(TraceFaults, SoftmaxWrittenOut) {
  const auto attention = [](TraceBuilder& b, const char* middle, bool reduces) {
    for (int i = 0; i < kLayers; ++i) {
      b.kernel(kGemm, "aten::mm", 300);
      b.kernel(kGemm, "aten::bmm", 100);
      if (reduces) b.kernel(kReduce, "aten::amax", 200);
      b.kernel(kAdd, middle, 200);
      if (reduces) b.kernel(kReduce, "aten::sum", 200);
      b.kernel(kGemm, "aten::bmm", 100);
    }
  };
  expect_only(diagnose_steps([&](TraceBuilder& b, int) { attention(b, "aten::exp", true); }),
              Cause::kUnfusedAttention, kLayers * 0.49, kLayers * 0.52);
  // Experts in a batch with an activation between them are no attention.
  const TraceDiagnosis experts =
      diagnose_steps([&](TraceBuilder& b, int) { attention(b, "aten::silu", false); });
  for (const Finding& f : experts.analysis.findings) EXPECT_NE(f.cause, Cause::kUnfusedAttention);
}

// The host needs 65 us a launch and the device about as much: graphs would help, a compiler more.
TEST(TraceFaults, PassesBesideASlowHost) {
  const auto body = [](int64_t us) {
    return [us](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", us);
        for (int k = 0; k < 9; ++k) b.kernel(kAdd, "aten::mul", us);
      }
    };
  };
  const TraceDiagnosis d = diagnose_steps(body(50), 60);
  EXPECT_EQ(d.analysis.findings.front().cause, Cause::kMemoryBound);
  // A device that waits for most of the step is launch-bound, whatever its kernels do.
  const TraceDiagnosis idle = diagnose_steps(body(5), 60);
  EXPECT_EQ(idle.analysis.findings.front().cause, Cause::kLaunchBound);
}

// Silence that begins when the loader's pinning thread does is the loader's, not a collection's.
TEST(TraceFaults, PinningHoldsTheInterpreter) {
  const auto body = [](bool pins) {
    return [pins](TraceBuilder& b, int) {
      b.loader(50, "_MultiProcessingDataLoaderIter");
      b.copy("Memcpy HtoD (Pinned -> Device)", 100 << 20, 2'000, false);
      b.kernel(kGemm, "aten::mm", 400);
      if (pins) b.begin_pinning();
      b.pause(20'000);
      matmuls(b);
    };
  };
  const TraceDiagnosis d = diagnose_steps(body(true));
  expect_only(d, Cause::kDataStarved, 10.0, 11.5);
  EXPECT_NE(d.analysis.findings.front().title.find("pinning"), std::string::npos);
  expect_only(diagnose_steps(body(false)), Cause::kGarbageCollection, 10.0, 11.5);
}

// Where the host would limit the mended step, the price is a range as well.
TEST(TraceFaults, APriceThatTheHostSets) {
  const auto detail = [](int64_t host_us) {
    const TraceDiagnosis d = diagnose_steps(
        [](TraceBuilder& b, int) {
          for (int i = 0; i < kLayers; ++i) {
            b.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma", "aten::mm",
                     1000);
          }
        },
        host_us);
    EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "no-tensor-cores");
    return d.analysis.findings.front().detail;
  };
  EXPECT_NE(detail(400).find("The host would then set the pace"), std::string::npos);
  EXPECT_EQ(detail(15).find("The host would then set the pace"), std::string::npos);
}

// A depthwise weight gradient that only fp32 and TF32 need is a pass over the tensors in 16 bit; of
// one beside an ordinary data gradient nothing is known.
TEST(TraceFaults, DepthwiseGradients) {
  const auto step_after = [](const std::string& data) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma", "aten::mm",
                 800);
        b.kernels_of("aten::convolution_backward",
                     {{data, 50},
                      {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc", 900}});
      }
    });
    EXPECT_EQ(cause_name(d.analysis.findings.front().cause), "no-tensor-cores");
    return d.analysis.findings.front().step_after->v * 1e3;
  };
  EXPECT_LT(step_after("dgrad2d_c1_k1_nhwc_specialized"), kLayers * 0.3);
  EXPECT_GT(step_after("sm80_xmma_dgrad_implicit_gemm_indexed_tf32f32"), kLayers * 0.9);
}

// Convolutions on planes are turned around each; matmuls of pixels are no shapes to pad. A model
// that has its channels last, or that is no convolutional one, is left alone.
TEST(TraceFaults, ConvolutionsOnPlanes) {
  const std::string conv = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc";
  const std::string pixels =
      "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nn_align2>";
  const auto body = [&](bool last, int64_t products) {
    return [&, last, products](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16>",
                 "aten::cudnn_convolution", 100);
        b.kernel(conv, "aten::cudnn_convolution", 300);
        b.kernel("void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16>",
                 "aten::cudnn_convolution", 100);
        b.kernel(pixels, "aten::cudnn_convolution", 100);
        if (last) b.kernel("batch_norm_channels_last_kernel", "aten::native_batch_norm", 50);
        if (products > 0) b.kernel(kGemm, "aten::mm", products);
      }
    };
  };
  const TraceDiagnosis d = diagnose_steps(body(false, 0));
  expect_only(d, Cause::kMemoryBound, kLayers * 0.3, kLayers * 0.4);
  EXPECT_NE(d.analysis.findings.front().fix.find("channels_last"), std::string::npos);
  for (const TraceDiagnosis& other :
       {diagnose_steps(body(true, 0)), diagnose_steps(body(false, 1000))}) {
    for (const Finding& f : other.analysis.findings) EXPECT_NE(f.cause, Cause::kMemoryBound);
  }
}

// The host counts what it has read. A single number explains no silence.
TEST(TraceFaults, WorkOnValuesThatWereRead) {
  const auto body = [](int64_t bytes) {
    return [bytes](TraceBuilder& b, int) {
      matmuls(b);
      b.copy("Memcpy DtoH (Device -> Pageable)", bytes, 20, true);
      b.pause(10'000);
    };
  };
  const TraceDiagnosis d = diagnose_steps(body(196'608));
  expect_only(d, Cause::kHostSync, 8.0, 8.2);
  EXPECT_NE(d.analysis.findings.front().detail.find("values that it has read"), std::string::npos);
  const TraceDiagnosis one = diagnose_steps(body(4));
  EXPECT_EQ(one.analysis.findings.front().cause, Cause::kGarbageCollection);
}

// Images moved one by one: the host copies each into the driver's buffer, and the device takes it
// from there while the host waits for it. Pinned, they are neither copied nor waited for.
TEST(TraceFaults, StagedCopies) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b, int) {
    for (int i = 0; i < 60; ++i) {
      b.staged_copy(602'112, 90, 14);
      b.sync("aten::copy_");
    }
    matmuls(b);
  });
  expect_only(d, Cause::kPageableCopies, 8.0, 8.8);
  EXPECT_NE(d.analysis.findings.front().detail.find("60 copies"), std::string::npos);
}

// Attention has no path in TF32: a model that multiplies in TF32 has chosen, one in 16 bit has not.
TEST(TraceFaults, AttentionInFp32) {
  const auto body = [](const std::string& gemm) {
    return [gemm](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(gemm, "aten::mm", 300);
        b.kernel("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention)",
                 "aten::_efficient_attention_forward", 200);
      }
    };
  };
  const TraceDiagnosis tf32 = diagnose_steps(body("sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n"));
  EXPECT_EQ(tf32.analysis.findings.front().cause, Cause::kHealthy);
  expect_only(diagnose_steps(body(kGemm)), Cause::kNoTensorCores, 6.0, 7.0);
}

// A compiler pads operands and heads by itself; its kernels say so in their names.
TEST(TraceFaults, WhatTheCompilerPads) {
  const auto body = [](const std::string& first, const std::string& second) {
    return [=](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(first, "aten::addmm", 60);
        b.kernel(kGemm, "aten::addmm", 300);
        b.kernel(second, "", 40);
        b.kernel("void pytorch_flash::flash_fwd_kernel<x>", "aten::_flash_attention_forward", 100);
      }
    };
  };
  const TraceDiagnosis d =
      diagnose_steps(body("triton_poi_fused_addmm_t_view_3",
                          "triton_poi_fused_addmm_constant_pad_nd_permute_unbind_6"));
  // The matmul, and attention by the vendor's kernel.
  expect_only(d, Cause::kMisalignedShapes, kLayers * 0.35, kLayers * 0.40);
  const TraceDiagnosis plain = diagnose_steps(
      body("triton_poi_fused_addmm_gelu_view_3", "triton_poi_fused_clone_permute_6"));
  EXPECT_EQ(plain.analysis.findings.front().cause, Cause::kHealthy);
}

// Memory is asked for and given back, for longer than fusing the passes would save: the smaller of
// the two is what is left to the other.
TEST(TraceFaults, TheLargerCauseIsTakenOutFirst) {
  const auto body = [](int64_t free_us) {
    return [free_us](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 300);
        for (int k = 0; k < 8; ++k) b.kernel(kAdd, "aten::mul", 50);
      }
      b.sync();
      b.allocate("cudaFree", free_us);
    };
  };
  const auto first = [&](int64_t free_us) {
    const TraceDiagnosis d = diagnose_steps(body(free_us));
    EXPECT_EQ(d.analysis.findings.size(), 2u);
    return d.analysis.findings.front().cause;
  };
  EXPECT_EQ(first(9'000), Cause::kAllocator);
  EXPECT_EQ(first(2'000), Cause::kMemoryBound);
}

// Most launches are the optimizer's, one for every operation on every parameter: fusing it is the
// smaller repair and does most of what graphs would.
TEST(TraceFaults, AnOptimizerOfManyLaunches) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b, int) {
    matmuls(b, 20);
    b.inside("Optimizer.step#AdamW.step", [&] {
      for (int i = 0; i < 20 * kLayers; ++i) b.kernel(kAdd, "aten::mul_", 2);
    });
  });
  const Finding& f = d.analysis.findings.front();
  EXPECT_EQ(f.cause, Cause::kLaunchBound);
  EXPECT_NE(f.detail.find("launched once the step would take 1.2 ms"), std::string::npos)
      << f.detail;
  EXPECT_EQ(f.fix.find("torch.optim.AdamW(..., fused=True)"), 0u) << f.fix;
}

// One step is held for 30 ms. All whole ones are booked, in nanoseconds that sum: the second and
// the third, for the first began before anything was recorded of the device.
TEST(TraceFaults, UnevenStepsAreBookedTogether) {
  const TraceDiagnosis d = diagnose_steps([](TraceBuilder& b, int step) {
    if (step == 1) b.loader(30'000);
    matmuls(b);
    b.sync();
  });
  EXPECT_TRUE(d.uneven);
  EXPECT_NEAR(d.step.paid().v, d.step_time.v, 1e-12);
  EXPECT_NEAR(d.step_time.v * 1e3, 23.05, 0.1);
  EXPECT_NEAR(d.step[Account::kDecode].v * 1e3, 15.0, 0.1);
  int64_t idle = std::llround(d.unexplained.v * 1e9);
  for (int64_t ns : d.idle_ns) idle += ns;
  EXPECT_NEAR(static_cast<double>(idle) * 1e-6, 23.05 - 8.0, 0.1);
  // The price is of the same step.
  EXPECT_EQ(d.analysis.findings.front().cause, Cause::kDataStarved);
  EXPECT_NEAR(d.replayed.v, d.step_time.v, 0.05 * d.step_time.v);

  const TraceDiagnosis even = diagnose_steps([](TraceBuilder& b, int) { matmuls(b); });
  EXPECT_FALSE(even.uneven);
}

// Batches of different lengths: of the two whole steps the shorter is the median, and the price is
// of their mean, 12 ms of kernels. A step that also does something else speaks for itself alone.
TEST(TraceFaults, PricesOfUnevenBatchesAreOfTheMean) {
  const auto steps = [](int64_t evaluation) {
    return diagnose_steps([=](TraceBuilder& b, int step) {
      b.host_us_per_launch = 20;  // of which the profiler takes 5
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", step == 2 && evaluation == 0 ? 800 : 400);
        b.allocate("cudaFree", 200);
        b.sync("none");
      }
      for (int i = 0; step == 2 && i < evaluation; ++i) b.kernel(kGemm, "aten::mm", 400);
      b.sync("none");
    });
  };
  const TraceDiagnosis d = steps(0);
  EXPECT_TRUE(d.uneven);
  EXPECT_NEAR(d.replayed.v, d.step_time.v, 0.03 * d.step_time.v);
  ASSERT_FALSE(d.analysis.findings.empty());
  double gain = 0;
  for (const Finding& f : d.analysis.findings) gain += f.gain.v;
  EXPECT_NEAR((d.replayed.v - gain) * 1e3, 12.0, 0.5);
  const TraceDiagnosis other = steps(20);
  EXPECT_TRUE(other.uneven);
  EXPECT_LT(other.replayed.v, 0.8 * other.step_time.v);
}

// Parameters updated in sixteen single operations, on the thread of the step: the optimizer's. A
// fused kernel moves 7 tensors where these move 38.
TEST(TraceFaults, AnUpdateByHandIsTheOptimizers) {
  const std::string vec = "void at::native::vectorized_elementwise_kernel<4, at::native::";
  const auto update = [&](TraceBuilder& b, const std::string& write) {
    for (int tensor = 0; tensor < 8; ++tensor) {
      const int32_t blocks = 1000 * (tensor + 1);
      for (int k = 0; k < 8; ++k) b.kernel(vec + "AUnaryFunctor", "aten::mul", 40, 7, blocks);
      b.kernel(vec + "sqrt_kernel_cuda", "aten::sqrt", 40, 7, blocks);
      b.kernel(vec + "BUnaryFunctor", "aten::div", 40, 7, blocks);
      for (int k = 0; k < 5; ++k) b.kernel(vec + "BinaryFunctor", "aten::mul", 60, 7, blocks);
      b.kernel(vec + "CUDAFunctor_add", write, 60, 7, blocks);
    }
  };
  const auto steps = [&](int32_t thread, const std::string& write) {
    return diagnose_steps([&](TraceBuilder& b, int) {
      b.thread = 1;
      matmuls(b);
      matmuls(b);
      b.thread = thread;
      update(b, write);
      b.thread = 0;
    });
  };
  const TraceDiagnosis d = steps(0, "aten::sub_");
  expect_only(d, Cause::kMemoryBound, 16 + 8 * 0.14 - 0.2, 16 + 8 * 0.14 + 0.4);
  EXPECT_NE(d.analysis.findings.front().detail.find("on 8 tensors, 38"), std::string::npos)
      << d.analysis.findings.front().detail;
  // What the backward pass launches, or what updates nothing, is the model's.
  EXPECT_EQ(steps(1, "aten::sub_").analysis.findings.front().cause, Cause::kHealthy);
  EXPECT_EQ(steps(0, "aten::sub").analysis.findings.front().cause, Cause::kHealthy);
}

// Runs of three passes that together take longer than arithmetic; batch norms among them do not
// count.
TEST(TraceFaults, ShortRunsOfPassesAreMemoryBoundToo) {
  const auto steps = [](const std::string& first) {
    return diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 200);
        b.kernel(first, "aten::op", 100);
        for (int k = 0; k < 2; ++k) b.kernel(kAdd, "aten::mul", 60);
      }
    });
  };
  expect_only(steps(kAdd), Cause::kMemoryBound, kLayers * 0.3, kLayers * 0.31);
  const TraceDiagnosis norms = steps("void at::native::batch_norm_transform_input_kernel<float>");
  EXPECT_EQ(norms.analysis.findings.front().cause, Cause::kHealthy);
}

// Autocast leaves rows in fp32 that an index looks up, and casts them before their matmul.
TEST(TraceFaults, RowsByIndexStayInFp32) {
  const std::string sgemm = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>";
  const auto after = [&](const std::string& kernel, const std::string& op) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kernel, op, 100);
        b.kernel(sgemm, "aten::mm", 2000);
      }
    });
    EXPECT_EQ(d.analysis.findings.front().cause, Cause::kNoTensorCores);
    return d.analysis.findings.front().step_after->v * 1e3 / kLayers;
  };
  const std::string plain = "void at::native::vectorized_elementwise_kernel<4, at::native::Silu";
  const std::string rows = "void at::native::vectorized_gather_kernel<16, long>";
  EXPECT_NEAR(after(rows, "aten::index") - after(plain, "aten::silu"), 0.035 + 0.150, 0.005);
}

// The factor of a bias is the middle of what was measured (test/data/h200_attention_bias.csv).
double measured_bias_cost() {
  std::ifstream csv(std::string(ASSAY_ROOT) + "/test/data/h200_attention_bias.csv");
  std::string line;
  std::getline(csv, line);
  std::map<std::string, double> plain;
  std::vector<double> ratios;
  while (std::getline(csv, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    if (cells.size() < 8 || std::stoi(cells[2]) < 512) continue;
    const std::string shape = cells[0] + cells[1] + cells[2] + cells[3];
    if (cells[4] == "none") plain[shape] = std::stod(cells[5]);
    if (cells[4] == "bias_1H") ratios.push_back(std::stod(cells[5]) / plain.at(shape));
  }
  EXPECT_EQ(ratios.size(), 7u);
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

TEST(TraceFaults, ABiasMakesFusedAttentionSlower) {
  const auto attention = [](const std::string& bias) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::bmm", 800);
        b.record_shapes("[[128, 2048, 64], [128, 64, 2048]]");
        b.kernel(kAdd, "aten::add", 1000);
        b.record_shapes("[[8, 16, 2048, 2048], " + bias + ", []]");
        b.kernel("void at::native::cunn_SoftMaxForward<float>", "aten::_softmax", 1000);
        b.kernel(kGemm, "aten::bmm", 800);
      }
    });
    const Finding& f = d.analysis.findings.front();
    EXPECT_EQ(f.cause, Cause::kUnfusedAttention);
    const bool given = f.fix.find("attn_mask=bias") != std::string::npos;
    EXPECT_EQ(given, bias != "[8, 1, 2048, 2048]") << f.fix;
    return f.step_after->v;
  };
  const double plain = attention("[8, 1, 2048, 2048]");
  const double biased = attention("[1, 16, 2048, 2048]");
  EXPECT_NEAR(biased / plain, measured_bias_cost(), 0.1);
}

// Experts picked by reading an index back: many passes that the host can hardly launch, and a wait
// for each. No compiler goes through the waits, so they come first, whatever fusing would save in
// launches; where the device is the limit, fusing saves its time and comes first.
TEST(TraceFaults, WaitsComeBeforeWhatFusingSavesInLaunches) {
  const auto first = [](int64_t host_us, int64_t pass_us) {
    const TraceDiagnosis d = diagnose_steps(
        [&](TraceBuilder& b, int) {
          for (int i = 0; i < kLayers; ++i) {
            b.kernel(kGemm, "aten::mm", 100);
            for (int k = 0; k < 8; ++k) b.kernel(kAdd, "aten::mul", pass_us);
            b.item();
          }
        },
        host_us);
    Diagnosis all;
    all.findings = d.analysis.findings;
    rank_findings(all, true);
    return all.findings.front().cause;
  };
  EXPECT_EQ(first(60, 20), Cause::kHostSync);
  EXPECT_EQ(first(15, 100), Cause::kMemoryBound);
}

// A linear that casts what goes into it, and its result back: in 16 bit neither is needed. A copy
// that is no cast stays.
TEST(TraceFaults, CastsGoWithTheirMatmul) {
  const std::string sgemm = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>";
  const std::string copy = "void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda>";
  const auto after = [&](const std::string& around) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::mm", 400);
        b.inside(around, [&] { b.kernel(copy, "aten::copy_", 100); });
        b.kernel(sgemm, "aten::mm", 2000);
        b.inside(around, [&] { b.kernel(copy, "aten::copy_", 100); });
      }
    });
    EXPECT_EQ(d.analysis.findings.front().cause, Cause::kNoTensorCores);
    return d.analysis.findings.front().step_after->v * 1e3 / kLayers;
  };
  EXPECT_NEAR(after("aten::clone") - after("aten::_to_copy"), 0.2, 0.01);
}

// MultiheadAttention with need_weights: the mean over the heads right after the output's matmul.
TEST(TraceFaults, AveragedWeightsGoWithAttention) {
  const auto after = [](bool weights) {
    const TraceDiagnosis d = diagnose_steps([&](TraceBuilder& b, int) {
      for (int i = 0; i < kLayers; ++i) {
        b.kernel(kGemm, "aten::bmm", 800);
        b.record_shapes("[[128, 2048, 64], [128, 64, 2048]]");
        b.kernel("void at::native::cunn_SoftMaxForward<float>", "aten::_softmax", 1000);
        b.kernel(kGemm, "aten::bmm", 800);
        b.kernel(kGemm, "aten::mm", 100);
        if (!weights) b.kernel(kAdd, "aten::add", 100);
        b.kernel(kReduce, "aten::mean", 300);
      }
    });
    EXPECT_EQ(d.analysis.findings.front().cause, Cause::kUnfusedAttention);
    return d.analysis.findings.front().step_after->v * 1e3 / kLayers;
  };
  EXPECT_NEAR(after(false) - after(true), 0.4, 0.01);
}

}  // namespace
}  // namespace assay

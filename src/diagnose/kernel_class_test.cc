#include "diagnose/kernel_class.h"

#include <gtest/gtest.h>

#include "diagnose/kernel_table.h"

namespace assay {
namespace {

struct Case {
  const char* name;
  const char* op;
  KernelKind kind;
  bool tensor_cores = false;
  Precision precision = Precision::kBf16;
  int align = 0;
};

// Names as they are really found, CUDA 10 to 13, ROCm 6, Triton.
TEST(KernelClass, NamesFromRealTraces) {
  const Case cases[] = {
      {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "aten::mm", KernelKind::kMatmul, true},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "", KernelKind::kMatmul,
       true},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma_aligna4_alignc4_execute",
       "aten::mm", KernelKind::kMatmul, false, Precision::kFp32, 4},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>", "aten::mm",
       KernelKind::kMatmul, false, Precision::kFp32, 1},
      {"void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>",
       "aten::mm", KernelKind::kMatmul, true, Precision::kBf16, 1},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", "aten::mm",
       KernelKind::kMatmul, true, Precision::kTf32, 4},
      {"volta_sgemm_128x32_nt", "aten::mm", KernelKind::kMatmul, false, Precision::kFp32},
      {"volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "aten::mm", KernelKind::kMatmul, true,
       Precision::kFp16},
      {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32", "aten::addmm", KernelKind::kMatmul,
       false, Precision::kFp32},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64", "", KernelKind::kMatmul, true},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", "",
       KernelKind::kConvolution, true, Precision::kTf32},
      {"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", "",
       KernelKind::kConvolution, false, Precision::kFp32},
      {"cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "", KernelKind::kConvolution, false,
       Precision::kFp32},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "",
       KernelKind::kAttention, true, Precision::kFp16},
      {"fmha_cutlassB_f32_aligned_128x64_k128_sm80(PyTorchMemEffAttention", "",
       KernelKind::kAttention, true, Precision::kFp32},
      {"fmha_cutlassF_f32_notaligned_64x64_rf_sm70(PyTorchMemEffAttention", "",
       KernelKind::kAttention, false, Precision::kFp32},
      {"_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernel", "aiter::mha",
       KernelKind::kAttention},
      {"void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16", "", KernelKind::kAttention,
       true},
  };
  for (const Case& c : cases) {
    const KernelClass k = classify_kernel(c.name, c.op, "");
    EXPECT_EQ(static_cast<int>(k.kind), static_cast<int>(c.kind)) << c.name;
    if (!k.precision_known) continue;
    EXPECT_EQ(k.tensor_cores, c.tensor_cores) << c.name;
    EXPECT_EQ(static_cast<int>(k.precision), static_cast<int>(c.precision)) << c.name;
    EXPECT_EQ(c.align == 0 ? 0 : k.align, c.align) << c.name;
  }
}

TEST(KernelClass, WhatMovesMemory) {
  const Case cases[] = {
      {"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add", "aten::add",
       KernelKind::kElementwise},
      {"void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda", "",
       KernelKind::kMove},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16", "",
       KernelKind::kNorm},
      {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>", "",
       KernelKind::kNorm},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float", "aten::_softmax",
       KernelKind::kSoftmax},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float", "aten::mean",
       KernelKind::kReduction},
      {"triton_poi_fused__unsafe_view_mul_silu_3", "", KernelKind::kElementwise},
      {"triton_red_fused__fused_rms_norm__unsafe_view_add_5", "", KernelKind::kNorm},
      {"void split_embedding_codegen_forward_unweighted_kernel<fbgemm_gpu::x", "",
       KernelKind::kEmbedding},
      {"void rotary_embedding_kernel<c10::BFloat16, true>", "", KernelKind::kElementwise},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float", "aten::convolution_backward",
       KernelKind::kMove},
      {"Memcpy HtoD (Pageable -> Device)", "aten::copy_", KernelKind::kHostCopy},
      {"Memcpy DtoD (Device -> Device)", "aten::copy_", KernelKind::kMove},
      {"Memset (Device)", "aten::mm", KernelKind::kSet},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "",
       KernelKind::kCommunication},
      {"some_kernel_of_mine", "aten::layer_norm", KernelKind::kNorm},
      {"some_kernel_of_mine", "", KernelKind::kOther},
      {"", "", KernelKind::kOther},
  };
  for (const Case& c : cases) {
    const KernelClass k = classify_kernel(c.name, c.op, "");
    EXPECT_EQ(static_cast<int>(k.kind), static_cast<int>(c.kind)) << c.name;
  }
  EXPECT_TRUE(classify_kernel("triton_poi_fused_add_1", "", "").compiled);
  // Element-wise work inside an optimizer's step is the optimizer's.
  EXPECT_EQ(static_cast<int>(classify_kernel("void at::native::vectorized_elementwise_kernel<4, x",
                                             "aten::addcdiv_", "Optimizer.step#AdamW.step")
                                 .kind),
            static_cast<int>(KernelKind::kOptimizer));
}

TEST(KernelTable, DimensionsAreReadWithoutTrust) {
  using Dims = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(parse_dims("[[8192, 2040], [2040, 5001], []]"), (Dims{{8192, 2040}, {2040, 5001}, {}}));
  EXPECT_EQ(parse_dims("[[2, 3], [[4, 5], [6]]]"), (Dims{{2, 3}, {}}));
  EXPECT_EQ(parse_dims(""), Dims{});
  EXPECT_EQ(parse_dims("]]]]"), Dims{});
  EXPECT_EQ(parse_dims("[[-4]]"), (Dims{{-1}}));
  EXPECT_LE(parse_dims(std::string(100000, '[')).size(), 64u);
  const auto huge = parse_dims("[[99999999999999999999999999999]]");
  ASSERT_EQ(huge.size(), 1u);
  EXPECT_GT(huge[0][0], 0);
}

TEST(KernelTable, ElementsFromGrids) {
  DeviceEvent e;
  e.grid[0] = 2097152;
  e.grid[1] = e.grid[2] = 1;
  EXPECT_EQ(elements_of("void at::native::elementwise_kernel<128, 4, at::native::x>", e),
            int64_t{2097152} * 512);
  e.grid[0] = 1048576;
  EXPECT_EQ(elements_of("void at::native::vectorized_elementwise_kernel<8, x>", e),
            int64_t{1048576} * 1024);
  EXPECT_EQ(elements_of("void at::native::vectorized_elementwise_kernel<4, Fill<bool>", e), 0);
  EXPECT_EQ(elements_of("nvjet_sm90_tst", e), 0);
  e.grid[1] = 2;
  EXPECT_EQ(elements_of("void at::native::elementwise_kernel<128, 4, x>", e), 0);
}

}  // namespace
}  // namespace assay

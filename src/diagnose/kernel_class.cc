#include "diagnose/kernel_class.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace assay {
namespace {

template <size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return contains(text, part); });
}

constexpr std::array<std::string_view, 7> kAttentionNames = {
    "flash", "fmha", "sdpa", "attention", "attn_fwd", "attn_bwd", "dot_do_o"};
constexpr std::array<std::string_view, 8> kConvolutionNames = {
    "convolve", "dgrad", "wgrad", "scudnn", "hcudnn", "implicit_gemm", "miopen", "winograd"};
constexpr std::array<std::string_view, 12> kMatmulNames = {
    "gemm",  "nvjet",           "cijk_", "tensile", "cublaslt", "splitkreduce",
    "xmma_", "cutlass::kernel", "wgmma", "matmul",  "_mm_",     "hipblaslt"};
constexpr std::array<std::string_view, 9> kNormNames = {"layer_norm", "layernorm", "rms_norm",
                                                        "rmsnorm",    "gammabeta", "batch_norm",
                                                        "group_norm", "bn_fw",     "bn_bw"};
constexpr std::array<std::string_view, 4> kOptimizerNames = {"fusedadam", "fusedoptimizer",
                                                             "multi_tensor_apply", "adamw"};
constexpr std::array<std::string_view, 5> kMoveNames = {"catarray", "direct_copy_kernel",
                                                        "copy_kernel", "transpose", "permute"};
constexpr std::array<std::string_view, 4> kEmbeddingNames = {"embedding", "gather_kernel",
                                                             "index_select", "indexselect"};
constexpr std::array<std::string_view, 8> kElementwiseNames = {
    "elementwise", "triton_poi", "pointwise", "dropout", "fill", "masked", "triu_tril", "where"};

constexpr std::array<std::string_view, 8> kMatmulOps = {
    "aten::mm",     "aten::addmm",  "aten::bmm",        "aten::baddbmm",
    "aten::linear", "aten::matmul", "aten::_scaled_mm", "aten::_grouped_mm"};

// Names of arithmetic paths. Order matters: `s1688gemm_bf16` holds both an instruction and a type.
void set_path(std::string_view n, KernelClass& c) {
  auto path = [&](Precision p, bool tensor) {
    c.precision = p;
    c.tensor_cores = tensor;
    c.precision_known = true;
  };
  const bool simt = contains(n, "simt") || contains(n, "ffma") || contains(n, "_sgemm") ||
                    contains(n, "cgemm") || contains(n, "scudnn") ||
                    contains(n, "convolve_sgemm") || contains(n, "engine<float") ||
                    contains(n, "gemmsn") || contains(n, "winograd");
  const bool half = contains(n, "f16") || contains(n, "half");
  if (contains(n, "f64f64") || contains(n, "dgemm") || contains(n, "d884gemm") ||
      contains(n, "<double") || (contains(n, "cijk_") && contains(n, "_db_"))) {
    c.fp64 = true;
    return path(Precision::kFp32, false);
  }
  // `tensorop_s1688gemm` without a type multiplies in TF32.
  if (contains(n, "tf32") || (contains(n, "s1688gemm") && !half))
    return path(Precision::kTf32, true);
  if (contains(n, "e4m3") || contains(n, "e5m2") || contains(n, "fp8") ||
      contains(n, "nvjet_qqtst")) {
    return path(Precision::kFp8, true);
  }
  if (simt && !contains(n, "tensorop") && !contains(n, "bf16") && !contains(n, "f16")) {
    return path(Precision::kFp32, false);
  }
  if (contains(n, "nvjet")) {
    // nvjet_sm90_<types>_<tile>: t is 16 bit, s is 32 bit (TF32 multiplies).
    if (contains(n, "_sss_") || contains(n, "_sst_")) return path(Precision::kTf32, true);
    return path(Precision::kBf16, true);
  }
  if (contains(n, "cijk_")) {  // Tensile: the type follows the contraction
    if (contains(n, "_sb_") && !contains(n, "_xb_") && !contains(n, "_xss_"))
      return path(Precision::kFp32, false);
    return path(contains(n, "_hb_") || contains(n, "_hhs") ? Precision::kFp16 : Precision::kBf16,
                true);
  }
  if (contains(n, "bf16") || contains(n, "bfloat16")) return path(Precision::kBf16, true);
  if (contains(n, "f16") || contains(n, "h884") || contains(n, "h1688") || contains(n, "hgemm") ||
      contains(n, "half") || contains(n, "s884") || contains(n, "hcudnn") ||
      contains(n, "s16816") || contains(n, "s1688")) {
    return path(Precision::kFp16, true);
  }
  // CUTLASS's attention keeps fp32 on tensor cores, as three products in TF32, from Ampere on.
  const bool thrice = contains(n, "fmha_cutlass") && !contains(n, "_sm5") && !contains(n, "_sm7");
  if (contains(n, "_f32_") || contains(n, "<float") || contains(n, "f32f32"))
    path(Precision::kFp32, thrice);
}

// `align2`, `aligna4_alignc4`: the smallest that is stated.
int stated_alignment(std::string_view n) {
  int least = 0;
  for (size_t at = n.find("align"); at != std::string_view::npos; at = n.find("align", at + 1)) {
    size_t digit = at + 5;
    if (digit < n.size() && (n[digit] == 'a' || n[digit] == 'b' || n[digit] == 'c')) ++digit;
    int value = 0;
    for (; digit < n.size() && n[digit] >= '0' && n[digit] <= '9' && value < 1000; ++digit) {
      value = value * 10 + (n[digit] - '0');
    }
    if (value > 0) least = least == 0 ? value : std::min(least, value);
  }
  return least;
}

KernelKind host_or_device_copy(std::string_view n) {
  const bool device_only = contains(n, "dtod") || contains(n, "device -> device") ||
                           contains(n, "peer") || contains(n, "ptop");
  return device_only ? KernelKind::kMove : KernelKind::kHostCopy;
}

KernelKind kind_of_triton(std::string_view n) {
  if (contains(n, "mm_") || contains(n, "triton_tem") || contains(n, "matmul")) {
    return contains(n, "attention") || contains(n, "flex") ? KernelKind::kAttention
                                                           : KernelKind::kMatmul;
  }
  if (contains(n, "norm")) return KernelKind::kNorm;
  if (contains(n, "softmax")) return KernelKind::kSoftmax;
  if (contains(n, "triton_red") || contains(n, "triton_per")) return KernelKind::kReduction;
  return KernelKind::kElementwise;
}

KernelKind kind_by_op(std::string_view op) {
  for (std::string_view matmul : kMatmulOps) {
    if (op == matmul) return KernelKind::kMatmul;
  }
  if (contains(op, "convolution") || contains(op, "conv2d")) return KernelKind::kConvolution;
  if (contains(op, "attention")) return KernelKind::kAttention;
  if (contains(op, "norm")) return KernelKind::kNorm;
  if (contains(op, "softmax")) return KernelKind::kSoftmax;
  if (contains(op, "embedding")) return KernelKind::kEmbedding;
  if (op == "aten::copy_" || op == "aten::cat") return KernelKind::kMove;
  if (op == "aten::sum" || op == "aten::mean" || op == "aten::max") return KernelKind::kReduction;
  return KernelKind::kOther;
}

KernelKind kind_by_name(std::string_view n) {
  if (contains(n, "memcpy")) return host_or_device_copy(n);
  if (contains(n, "memset")) return KernelKind::kSet;
  if (contains(n, "nccl") || contains(n, "rccl") || contains(n, "multimem") ||
      contains(n, "deep_ep")) {
    return KernelKind::kCommunication;
  }
  if (contains(n, "triton_")) return kind_of_triton(n);
  // PyTorch's own kernels carry functors in their names: what they are comes before `<`. Others say
  // what they are anywhere (`prefill` in an attention kernel is no fill).
  const std::string_view head = n.substr(0, n.find('<'));
  if (contains(head, "elementwise_kernel")) {
    return has_any(n, kMoveNames) ? KernelKind::kMove : KernelKind::kElementwise;
  }
  if (contains(n, "rotary")) return KernelKind::kElementwise;
  if (has_any(n, kAttentionNames)) return KernelKind::kAttention;
  if (has_any(n, kEmbeddingNames)) return KernelKind::kEmbedding;
  if (contains(n, "tonhwc") || contains(n, "tonchw")) return KernelKind::kMove;
  if (has_any(head, kElementwiseNames)) return KernelKind::kElementwise;
  if (has_any(n, kNormNames)) return KernelKind::kNorm;
  if (has_any(n, kConvolutionNames)) return KernelKind::kConvolution;
  if (has_any(n, kMatmulNames)) return KernelKind::kMatmul;
  if (has_any(n, kOptimizerNames)) return KernelKind::kOptimizer;
  if (contains(n, "softmax")) return KernelKind::kSoftmax;
  if (contains(head, "reduce")) return KernelKind::kReduction;
  if (has_any(n, kMoveNames)) return KernelKind::kMove;
  return KernelKind::kOther;
}

}  // namespace

KernelClass classify_kernel(std::string_view name, std::string_view op, std::string_view outer) {
  const std::string n = lower(name);
  KernelClass c;
  c.kind = kind_by_name(n);
  c.compiled = contains(n, "triton_");
  if (c.kind == KernelKind::kOther) c.kind = kind_by_op(op);
  c.scatters = !c.compiled && is_memory_kind(c.kind) && is_scatter(op);
  const bool moves = is_memory_kind(c.kind) || c.kind == KernelKind::kOther;
  if (moves && contains(outer, "Optimizer.step")) c.kind = KernelKind::kOptimizer;
  if (is_math_kind(c.kind)) {
    set_path(n, c);
    c.align = stated_alignment(n);
  }
  return c;
}

bool is_scatter(std::string_view op) {
  return contains(op, "aten::index_add") || contains(op, "aten::scatter_add") ||
         contains(op, "aten::scatter_reduce");
}

bool is_memory_kind(KernelKind k) {
  switch (k) {
    case KernelKind::kSoftmax:
    case KernelKind::kNorm:
    case KernelKind::kElementwise:
    case KernelKind::kReduction:
    case KernelKind::kMove:
    case KernelKind::kEmbedding:
    case KernelKind::kOther:
      return true;
    default:
      return false;
  }
}

bool is_math_kind(KernelKind k) {
  return k == KernelKind::kMatmul || k == KernelKind::kConvolution || k == KernelKind::kAttention;
}

}  // namespace assay

#include "diagnose/kernel_class.h"

#include <algorithm>
#include <array>
#include <string>

namespace assay {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return has(text, part); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
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
  const bool simt = has(n, "simt") || has(n, "ffma") || has(n, "_sgemm") || has(n, "cgemm") ||
                    has(n, "scudnn") || has(n, "convolve_sgemm") || has(n, "engine<float") ||
                    has(n, "gemmsn") || has(n, "winograd");
  const bool half = has(n, "f16") || has(n, "half");
  // `tensorop_s1688gemm` without a type multiplies in TF32.
  if (has(n, "tf32") || (has(n, "s1688gemm") && !half)) return path(Precision::kTf32, true);
  if (has(n, "e4m3") || has(n, "e5m2") || has(n, "fp8") || has(n, "nvjet_qqtst")) {
    return path(Precision::kFp8, true);
  }
  if (simt && !has(n, "tensorop") && !has(n, "bf16") && !has(n, "f16")) {
    return path(Precision::kFp32, false);
  }
  if (has(n, "nvjet")) {
    // nvjet_sm90_<types>_<tile>: t is 16 bit, s is 32 bit (TF32 multiplies).
    if (has(n, "_sss_") || has(n, "_sst_")) return path(Precision::kTf32, true);
    return path(Precision::kBf16, true);
  }
  if (has(n, "cijk_")) {  // Tensile: the type follows the contraction
    if (has(n, "_sb_") && !has(n, "_xb_") && !has(n, "_xss_")) return path(Precision::kFp32, false);
    return path(has(n, "_hb_") || has(n, "_hhs") ? Precision::kFp16 : Precision::kBf16, true);
  }
  if (has(n, "bf16") || has(n, "bfloat16")) return path(Precision::kBf16, true);
  if (has(n, "f16") || has(n, "h884") || has(n, "h1688") || has(n, "hgemm") || has(n, "half") ||
      has(n, "s884") || has(n, "hcudnn") || has(n, "s16816") || has(n, "s1688")) {
    return path(Precision::kFp16, true);
  }
  if (has(n, "_f32_") || has(n, "<float") || has(n, "f32f32")) path(Precision::kFp32, false);
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
  const bool device_only =
      has(n, "dtod") || has(n, "device -> device") || has(n, "peer") || has(n, "ptop");
  return device_only ? KernelKind::kMove : KernelKind::kHostCopy;
}

KernelKind kind_of_triton(std::string_view n) {
  if (has(n, "mm_") || has(n, "triton_tem") || has(n, "matmul")) {
    return has(n, "attention") || has(n, "flex") ? KernelKind::kAttention : KernelKind::kMatmul;
  }
  if (has(n, "norm")) return KernelKind::kNorm;
  if (has(n, "softmax")) return KernelKind::kSoftmax;
  if (has(n, "triton_red") || has(n, "triton_per")) return KernelKind::kReduction;
  return KernelKind::kElementwise;
}

KernelKind kind_by_op(std::string_view op) {
  for (std::string_view matmul : kMatmulOps) {
    if (op == matmul) return KernelKind::kMatmul;
  }
  if (has(op, "convolution") || has(op, "conv2d")) return KernelKind::kConvolution;
  if (has(op, "attention")) return KernelKind::kAttention;
  if (has(op, "norm")) return KernelKind::kNorm;
  if (has(op, "softmax")) return KernelKind::kSoftmax;
  if (has(op, "embedding")) return KernelKind::kEmbedding;
  if (op == "aten::copy_" || op == "aten::cat") return KernelKind::kMove;
  if (op == "aten::sum" || op == "aten::mean" || op == "aten::max") return KernelKind::kReduction;
  return KernelKind::kOther;
}

KernelKind kind_by_name(std::string_view n) {
  if (has(n, "memcpy")) return host_or_device_copy(n);
  if (has(n, "memset")) return KernelKind::kSet;
  if (has(n, "nccl") || has(n, "rccl") || has(n, "multimem") || has(n, "deep_ep")) {
    return KernelKind::kCommunication;
  }
  if (has(n, "triton_")) return kind_of_triton(n);
  // PyTorch's own kernels carry functors in their names: what they are comes before `<`. Others say
  // what they are anywhere (`prefill` in an attention kernel is no fill).
  const std::string_view head = n.substr(0, n.find('<'));
  if (has(head, "elementwise_kernel")) {
    return has_any(n, kMoveNames) ? KernelKind::kMove : KernelKind::kElementwise;
  }
  if (has(n, "rotary")) return KernelKind::kElementwise;
  if (has_any(n, kAttentionNames)) return KernelKind::kAttention;
  if (has_any(n, kEmbeddingNames)) return KernelKind::kEmbedding;
  if (has(n, "tonhwc") || has(n, "tonchw")) return KernelKind::kMove;
  if (has_any(head, kElementwiseNames)) return KernelKind::kElementwise;
  if (has_any(n, kNormNames)) return KernelKind::kNorm;
  if (has_any(n, kConvolutionNames)) return KernelKind::kConvolution;
  if (has_any(n, kMatmulNames)) return KernelKind::kMatmul;
  if (has_any(n, kOptimizerNames)) return KernelKind::kOptimizer;
  if (has(n, "softmax")) return KernelKind::kSoftmax;
  if (has(head, "reduce")) return KernelKind::kReduction;
  if (has_any(n, kMoveNames)) return KernelKind::kMove;
  return KernelKind::kOther;
}

}  // namespace

KernelClass classify_kernel(std::string_view name, std::string_view op, std::string_view outer) {
  const std::string n = lower(name);
  KernelClass c;
  c.kind = kind_by_name(n);
  c.compiled = has(n, "triton_");
  if (c.kind == KernelKind::kOther) c.kind = kind_by_op(op);
  const bool moves = is_memory_kind(c.kind) || c.kind == KernelKind::kOther;
  if (moves && has(outer, "Optimizer.step")) c.kind = KernelKind::kOptimizer;
  if (is_math_kind(c.kind)) {
    set_path(n, c);
    c.align = stated_alignment(n);
  }
  return c;
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

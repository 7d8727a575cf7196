// Which attention kernel a row ran: what it states, else what its framework had at its date.
#include "validate/scenario_attention.h"

#include "validate/text.h"

namespace assay {
namespace {

// Flash attention of the second generation came in July 2023 and reached PyTorch's own operator in
// January 2024; vendors' kernels are of their own age.
constexpr int kSecondFlash = 2024;

// PyTorch has had a fused attention operator since March 2023. What ran before it wrote its scores
// to memory, unless the run says otherwise.
constexpr int kFirstFused = 2023;

// The release from which PyTorch's operator tries cuDNN first on Hopper and Blackwell: its wheels
// carry a cuDNN above 9.15 (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp). It is of spring
// 2026.
constexpr int kOperatorRelease = 11;
constexpr const char* kOperatorReleased = "2026-06";
constexpr int kUndated = 2025;  // a run without a date was published, so it is not of the newest

bool operator_prefers_vendor(const Run& run, int year, const Setting& s) {
  if (s.kernels.operator_since == 0) return false;
  // torchtitan itself puts cuDNN first on Blackwell (pytorch/torchtitan pull 1196, May 2025).
  const bool blackwell = s.cluster.accelerator.architecture.starts_with("blackwell");
  const bool titan = blackwell && says(plain_words(run.framework), "torchtitan");
  if (titan && dated_from(run.date, "2025-05")) return true;
  if (const auto minor = pytorch_minor(run.free_text())) return *minor >= kOperatorRelease;
  if (dated_from(run.date, kOperatorReleased)) return true;
  return (year > 0 ? year : kUndated) >= s.kernels.operator_since;
}

// Transformer Engine tried flash attention before cuDNN on Hopper until its releases of mid 2024,
// and context parallel knew nothing else: NeMo 24.03 from 4,096 to a million tokens agrees (9
// runs).
bool engine_prefers_flash(const Run& run, const Setting& s) {
  if (s.kernels.operator_since == 0 || s.stack.sharding != Sharding::k3d) return false;
  return dated_from(run.date, "2024-01") && !dated_from(run.date, "2024-07");
}

// cuDNN has no deterministic backward pass on Blackwell before 9.18.1, and Transformer Engine then
// falls back on flash attention (NVIDIA/TransformerEngine pulls 2130 and 2584, of January 2026).
bool deterministic_by_flash(const Run& run, const Setting& s) {
  if (!s.cluster.accelerator.architecture.starts_with("blackwell")) return false;
  const std::string words = clause_words(run.overlap_notes + " ; " + run.notes);
  return affirms(words, {"deterministic", "deterministic mode"}) &&
         !says(words, "non deterministic") && !dated_from(run.date, "2026-04");
}

}  // namespace

void apply_attention(const Run& run, Scenario& s) {
  const int year = year_of(run.date);
  if (const std::optional<bool> stated = read_flash(run.flash_attention)) {
    s.plan.flash_attention = *stated;
  } else if ((year > 0 && year < kFirstFused) || before_fused(run.framework)) {
    s.plan.flash_attention = false;
  } else if (says_any(plain_words(run.free_text()), {"te", "transformer engine"}) ||
             s.plan.precision == Precision::kFp8) {
    s.plan.flash_attention = true;  // 8-bit matmuls come with Transformer Engine, and so does this
  }
  if (!s.plan.flash_attention) return;
  AttentionKernel& kernel = s.setting.stack.attention;
  if (kernel == AttentionKernel::kOperator && !operator_prefers_vendor(run, year, s.setting)) {
    kernel = AttentionKernel::kPortable;
  }
  if (kernel == AttentionKernel::kVendor && engine_prefers_flash(run, s.setting)) {
    kernel = AttentionKernel::kPortable;
  }
  if (kernel == AttentionKernel::kVendor && deterministic_by_flash(run, s.setting)) {
    kernel = AttentionKernel::kPortable;
  }
  // FlexAttention runs at the portable kernel's rate on an H200 (test/data/h200_flex.csv); what it
  // compiles to on Blackwell is another kernel, as fast as the vendor's by 19 runs.
  const std::string words = plain_words(run.flash_attention);
  const bool flex = words.find(" flexattention") != std::string::npos || says(words, "flex");
  if (flex && !s.setting.cluster.accelerator.architecture.starts_with("blackwell")) {
    kernel = AttentionKernel::kPortable;
  } else if (const auto named = read_attention_kernel(run.flash_attention)) {
    kernel = *named;
  } else if (year > 0 && year < kSecondFlash && kernel == AttentionKernel::kPortable &&
             !later_flash(run.flash_attention)) {
    kernel = AttentionKernel::kEarly;
    s.assumed.emplace_back("flash attention of the first generation");
  }
}

}  // namespace assay

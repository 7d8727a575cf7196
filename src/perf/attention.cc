// Fused kernels walk the keys in blocks, so their efficiency grows with the number of keys a query
// really sees, saturating at a constant of the architecture and of who wrote the kernel:
//
//     time = flops / (peak x e x k/(k + half) x head x fill)
//
// k is the mean number of visible keys (half of them under a causal mask), head is the loss of
// small heads (softmax work per FLOP doubles from 128 to 64), fill is the last wave of query blocks
// over the compute units. Round a ring of cp, a kernel sees one block of s / cp keys: under a
// causal mask half of its own, then in turn half of a block for all queries or a whole one for half
// of them, so that every rank has as much to do; the mean of 1 / k is (1.5 cp + 0.5) / s. Backward
// recomputes the scores: 2.5 times the FLOPs, with its own constants.
//
// Unfused attention writes the scores: two batched matmuls, and softmax and dropout that move every
// score several times through memory.
#include "perf/attention.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

// Query rows one thread block owns in the flash kernels (128 in the public implementations).
constexpr double kQueryBlock = 128;
// Bytes moved per score, forward: write and read around a fused scale-mask-softmax (2+2+2), dropout
// read, write and mask (2+2+1); the matmuls' own reads and writes are in matmul_time.
constexpr double kScoreBytesForward = 9;
constexpr double kScoreBytesBackward = 13;
// Both are of 16-bit scores; single precision moves twice as much.
double word(Precision p) { return single_precision(p) ? 2 : 1; }

// Small heads do more softmax per FLOP, heads above 128 fall out of registers; fitted together with
// the H200's efficiencies on 56 shapes (test/data/h200_attention.csv).
constexpr double kHeadReference = 128;
constexpr double kHeadExponent = 0.2;
// cuDNN's kernel loses more (28 shapes, test/data/h200_attention_cudnn.csv).
constexpr double kVendorHeadExponent = 0.4;
constexpr double kWideHead = 0.87;  // portable; vendors' kernels: Kernels::attention_wide_backward
// The first generation against the second, portable one: about 1.3 to 1.5 times slower forward and
// twice backward in Triton, 1.7 to 3 times both in CUDA (FlashAttention-2, arXiv 2307.08691,
// section 4.1, A100).
constexpr double kEarlyForward = 1 / 1.4;
constexpr double kEarlyBackward = 1 / 2.0;
// Of the last wave's loss this share remains, where all blocks are alike.
constexpr double kWaveLoss = 0.6;
// Causal blocks have unequal length, from none to twice the mean: waves blur, and the last of the
// long ones end about one mean block after the others (0.75 to 1.25 fit the 84 shapes alike).
constexpr double kCausalTail = 1;
// Keys that causal blocks meet on the diagonal and mask: by how much `half` differs with and
// without a mask (18 of those shapes have none). They are in the `half` of the catalog.
constexpr double kDiagonal = 90;

// Products of queries with keys, one for each head of each document.
double products(const AttentionShape& s) { return real(s.batch * s.heads) * s.documents; }

// Of the blocks of keys that arrive, those on the diagonal: one round a ring.
double on_diagonal(const AttentionShape& s) { return s.causal ? 1 / s.steps : 0; }

double wave_fill(const AttentionShape& s, const Accelerator& a) {
  const double blocks = std::ceil(s.queries / kQueryBlock) * products(s);
  const double units = real(a.compute_units);
  const double waves = blocks / units;
  const double uneven = waves / (std::max(waves, 1.0) + kCausalTail);
  const double loss = (std::ceil(waves) - waves) / std::ceil(waves);
  const double even = waves < 1 ? waves : 1 - kWaveLoss * loss;
  const double share = on_diagonal(s);
  return std::max(share * uneven + (1 - share) * even, 0.02);
}

AttentionTime fused(const AttentionShape& s, AttentionKernel kernel, const Accelerator& a,
                    const Kernels& k) {
  const bool vendor = kernel == AttentionKernel::kVendor;
  const bool early = kernel == AttentionKernel::kEarly;
  const double mask = s.causal ? 0.5 : 1.0;
  const double work = 2 * products(s) * mask * (s.qk_dim + s.v_dim);
  // Documents end anywhere: half a block of rows and of keys is computed for nothing. Ranks that
  // share a document share that.
  const double rounded = s.documents > 1 ? kQueryBlock / 2 : 0;
  const double flops = work * s.queries * (1 + rounded / s.keys) * (s.keys + rounded);
  const double width = std::min(s.qk_dim, kHeadReference) / kHeadReference;
  const double head = std::pow(width, vendor ? kVendorHeadExponent : kHeadExponent);
  const bool wide = s.qk_dim > kHeadReference;
  const double wide_forward = wide && !vendor ? kWideHead : 1;
  const double wide_backward = !wide ? 1 : vendor ? k.attention_wide_backward : kWideHead;
  const double rate = peak(a, s.precision).v * head * wave_fill(s, a);
  const double visible = (s.keys + rounded) / (s.causal ? 1.5 * s.steps + 0.5 : s.steps);
  const double forward = (vendor ? k.attention_vendor_forward : k.attention_forward) *
                         (early ? kEarlyForward : 1) * wide_forward;
  const double backward = (vendor ? k.attention_vendor_backward : k.attention_backward) *
                          (early ? kEarlyBackward : 1) * wide_backward;
  const double unmasked = s.window ? 0 : kDiagonal * (1 - on_diagonal(s));
  const auto half = [&](double causal) { return std::max(0.0, causal - unmasked); };
  const double half_forward = half(vendor ? k.attention_vendor_half : k.attention_half_forward);
  const double half_backward = half(vendor ? k.attention_vendor_half : k.attention_half_backward);
  AttentionTime t;
  t.flops = Flops(work * s.queries * s.keys);
  t.forward = Seconds(flops / (rate * forward) * (1 + half_forward / visible)) + k.kernel_floor;
  t.backward =
      Seconds(2.5 * flops / (rate * backward) * (1 + half_backward / visible)) + 3 * k.kernel_floor;
  return t;
}

// Kept for backward: softmax output, dropout output (2 bytes each) and the mask, where the stack
// does not say otherwise. In single precision such a stack keeps the softmax output alone, since
// the one that is known to train so has no dropout on its scores; the others keep the dropout's
// output in twice the width.
double saved_bytes(const AttentionShape& s) {
  if (word(s.precision) <= 1) return s.saved_scores;
  return s.saved_scores > 5 ? s.saved_scores + 2 : 4;
}

AttentionTime unfused(const AttentionShape& s, const Accelerator& a, const Kernels& k) {
  const int64_t batch = s.batch * s.heads;
  const int64_t q = std::max<int64_t>(1, std::llround(s.queries));
  const int64_t keys = std::max<int64_t>(1, std::llround(s.keys));
  const int64_t d = std::llround(s.qk_dim), v = std::llround(s.v_dim);
  const auto product = [&](int64_t m, int64_t n, int64_t inner, MatmulPass pass) {
    return matmul_time({m, n, inner, batch, s.precision, pass}, a, k.matmul);
  };
  // Scores, values; then the gradients of probabilities and values, of queries and keys. Which
  // operands lie transposed in memory decides the pass.
  const Seconds forward =
      product(q, keys, d, MatmulPass::kForward) + product(q, v, keys, MatmulPass::kInputGradient);
  const Seconds backward = product(q, keys, v, MatmulPass::kForward) +
                           product(keys, v, q, MatmulPass::kWeightGradient) +
                           product(q, d, keys, MatmulPass::kInputGradient) +
                           product(keys, d, q, MatmulPass::kWeightGradient);
  const double elements = real(batch) * s.queries * s.keys;
  const double moved = elements * s.score_traffic * word(s.precision);
  const Bandwidth memory = a.memory_bandwidth * k.memory_efficiency;
  const double mask = s.causal ? 0.5 : 1.0;
  AttentionTime t;
  t.flops = Flops(2 * elements * mask * (s.qk_dim + s.v_dim));
  t.scores_forward = Bytes(moved * kScoreBytesForward) / memory + 4 * k.kernel_floor;
  t.scores_backward = Bytes(moved * kScoreBytesBackward) / memory + 6 * k.kernel_floor;
  t.forward = forward + t.scores_forward;
  t.backward = backward + t.scores_backward;
  t.saved = Bytes(elements * saved_bytes(s));
  return t;
}

}  // namespace

AttentionTime attention_time(const AttentionShape& s, AttentionKernel kernel, const Accelerator& a,
                             const Kernels& k) {
  if (kernel == AttentionKernel::kUnfused) return unfused(s, a, k);
  return fused(s, kernel, a, k);
}

}  // namespace assay

// A recurrent mixer: state space, linear attention, or a short convolution.
//
// Each head carries a matrix from token to token (`head_dim` x `state`). Token by token that would
// be no work for matrix units, so every library cuts the sequence into chunks of Q tokens: inside a
// chunk it is attention without a softmax, between chunks one state a head is handed on. A pass is
// half a dozen kernels. Three things bound it:
//
//   arithmetic   2 x heads x (Q x (state + head_dim) x chunk products
//                             + state x head_dim x state products)            FLOPs a token
//   bytes        word x (v x values + k x keys) + S / Q x states + pairs x Q   a token, S = all
//                states; how often each is touched follows from the kernels' signatures
//   the chain    chunks follow each other in the kernel that hands states on: where few heads and
//                sequences leave the device empty, it takes chunks x a fixed time
//
// Such kernels reach a tenth of a Hopper's matrix rate, and Blackwell is hardly faster: what they
// do per unit and cycle is the constant, not the share of the peak. Constants of the delta rule are
// fitted to 142 times of flash-linear-attention 0.5.1 on H200 and GB200 (7 % off in the median
// forward, 11 backward), KDA's to four on H20; on an RTX 5090, with less shared memory, KDA takes
// 1.5 to 2 times as long as told (test/data/public_scans.csv, from QwenLM/FlashQLA and
// MoonshotAI/FlashKDA). For Mamba-2 nobody published such a table; a profile of one training step
// (Nemotron 3 Nano under NeMo AutoModel on eight H100, 8,192 tokens: 3.1 ms a layer for all of its
// kernels forward and backward, 0.6 of it the forward scan and 0.75 convolutions) gives its rates;
// bytes are counted from mamba_ssm's kernels. Nor for linear attention whose state decays by
// channel (RWKV-5 to 7, xLSTM): its rates are KDA's, which decays so, too. A recurrence of single
// channels (RG-LRU, RWKV-4, Mamba) passes over its tensors, if its kernel is fused.
//
// Small beside its projections: of Nemotron 3 Nano on an H100 the scan is a twentieth of a step.
#include "perf/mixer.h"

#include <algorithm>

#include <fmt/format.h>

#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

// One pass of a scan.
struct Pass {
  double rate;          // FLOPs a unit and cycle
  double values, keys;  // tensors of either width that are read or written
  double states;        // bytes per element of a chunk's states
  double pairs;         // bytes per pair of tokens in a chunk
  double chain;         // share of the work that hands on states
  double chain_cycles;  // of one chunk there
  double start;         // seconds that its kernels take with nothing to do
};

struct Scan {
  MixerKind kind;
  double chunk;           // tokens
  double chunk_products;  // matmuls of chunk x chunk by a head's width
  double state_products;  // matmuls of a head's width by its state
  bool own_keys;          // keys are repeated or gated for every value head before the scan
  Pass forward, backward;
};

// Backward does 2.5 times the arithmetic, the states again with it. Mamba-2: chunk states, their
// hand-over, C B^T, the scan. Delta rules: K K^T, its triangular inverse, W and U, states, output.
// Lightning attention hands states on inside one kernel. Gated linear attention has a decay for
// every element of a key, a tensor more to read and to differentiate; RWKV-7 two more beside it.
constexpr double kBackwardFlops = 2.5;
constexpr Scan kScans[] = {
    {MixerKind::kMamba2,
     128,
     1,
     2,
     false,
     {205, 3, 4, 16, 8, 0.1, 500, 20e-6},
     {180, 11, 8, 36, 20, 0.1, 500, 80e-6}},
    {MixerKind::kGatedDelta,
     64,
     2.5,
     3,
     true,
     {420, 6, 7, 4, 12, 0.3, 2250, 20e-6},
     {300, 14, 16, 12, 20, 0.3, 7250, 80e-6}},
    {MixerKind::kKda,
     64,
     2.5,
     3,
     true,
     {224, 6, 9, 4, 16, 0.3, 2250, 20e-6},
     {148, 14, 22, 12, 28, 0.3, 7250, 80e-6}},
    {MixerKind::kLightning,
     256,
     1,
     2,
     true,
     {420, 3, 4, 0, 0, 0.1, 2250, 20e-6},
     {300, 6, 8, 0, 0, 0.1, 7250, 80e-6}},
    {MixerKind::kGatedLinear,
     64,
     1,
     2,
     true,
     {224, 3, 6, 4, 8, 0.3, 2250, 20e-6},
     {148, 7, 14, 12, 12, 0.3, 7250, 80e-6}},
    {MixerKind::kWkv7,
     64,
     2.5,
     3,
     true,
     {224, 6, 11, 4, 16, 0.3, 2250, 20e-6},
     {148, 14, 26, 12, 28, 0.3, 7250, 80e-6}},
};

// Of a stream's bandwidth. The delta rule on an H200 would need more than this if it were bound by
// bytes, so it is a limit from below; on the RTX 5090 KDA's forward pass gets half.
constexpr double kScanBandwidth = 0.7;

// Of causal_conv1d's channel-last kernels, which a published profile of a Nemotron 3 Nano shows:
// 0.19 ms forward and 0.37 backward for 100 MB on an H100.
constexpr double kConvolutionBandwidth = 0.35;

// Parts that are few large cores, not many units: the share of the 16-bit peak that a Hopper's
// kernels reach. Assumed.
constexpr int64_t kFewUnits = 16;
constexpr double kShareOfPeak = 0.1;

// Mamba's scan, and that of single channels, works element by element in 32 bits on the vector
// units: an exponential and nine operations an element of the state, and 2.5 times as much
// backward. Counted, not measured.
constexpr double kElementFlops = 40;

const Scan* find_scan(MixerKind kind) {
  for (const Scan& s : kScans) {
    if (s.kind == kind) return &s;
  }
  return nullptr;
}

Seconds pass_time(const Scan& s, const Pass& p, double flops, const ScanShape& x,
                  const Setting& setting) {
  const Accelerator& a = setting.cluster.accelerator;
  const double tokens = x.batch * x.seq;
  const double v = x.heads * x.head_dim, states = v * x.state;
  const double k = (s.own_keys ? x.heads : x.groups) * x.state;
  const double pairs = (s.own_keys ? x.heads : x.groups) * s.chunk;
  constexpr double kWord = 2;
  const Bytes bytes(tokens * (kWord * (p.values * v + p.keys * k) + p.states * states / s.chunk +
                              p.pairs * pairs));
  const FlopRate units(p.rate * real(a.compute_units) * a.clock.v);
  const FlopRate rate =
      a.compute_units < kFewUnits ? FlopRate(peak(a, Precision::kBf16).v * kShareOfPeak) : units;
  const Seconds work =
      std::max(Flops(tokens * flops) / rate, bytes / (streaming(setting) * kScanBandwidth));
  const Seconds chain(p.chain_cycles / a.clock.v * x.seq / s.chunk);
  return work * (1 - p.chain) + std::max(work * p.chain, chain) + Seconds(p.start);
}

}  // namespace

ScanTime scan_time(const ScanShape& x, const Setting& setting) {
  const Scan* s = find_scan(x.kind);
  const double v = x.heads * x.head_dim, states = v * x.state;
  if (s != nullptr) {
    const double groups = s->own_keys ? x.heads : x.groups;
    const double flops =
        2 * (s->chunk_products * s->chunk * (groups * x.state + v) + s->state_products * states);
    return {pass_time(*s, s->forward, flops, x, setting),
            pass_time(*s, s->backward, flops * kBackwardFlops, x, setting)};
  }
  if (x.kind == MixerKind::kConvolution) return {};
  const double tokens = x.batch * x.seq;
  const FlopRate vectors = peak(setting.cluster.accelerator, Precision::kFp32);
  const Seconds once = std::max(Flops(tokens * states * kElementFlops) / vectors,
                                Bytes(tokens * 8 * v) / streaming(setting));
  return {once, once * kBackwardFlops};
}

namespace {

// Heads lie on ranks whole; sequences are exchanged for heads before the scan and back after it.
void exchange_sequence(const Rank& r, LayerCost& c, double inputs, double v) {
  if (r.l.cp == 1) return;
  const auto once = [&](double width) {
    const Bytes b(r.tokens * width * r.word);
    return collective_time(Collective::kAllToAll, b, r.l.context, r.links);
  };
  const Seconds t = once(inputs) + once(v);
  c.forward.context += t;
  c.backward.context += t;
  if (r.record) {
    note(r, "context", fmt::format("sequences for heads of a mixer and back over {} ranks", r.l.cp),
         t, t);
  }
}

void scan(const Rank& r, LayerCost& c) {
  const Mixer& x = r.s.workload.model.mixer;
  if (x.kind == MixerKind::kConvolution) return;
  const double ranks = real(r.l.tp * r.l.cp), heads = real(x.heads) / ranks;
  const double groups = std::min(heads, std::max(1.0, real(x.groups) / ranks));
  const double state = std::max(1.0, real(x.state));
  const ScanTime t = scan_time(
      {x.kind, real(r.p.micro_batch), r.seq, heads, real(x.head_dim), groups, state}, r.s);
  c.forward.attention += t.forward;
  c.backward.attention += t.backward;
  c.forward.scores += t.forward;  // bound by latency and memory: a lower clock hardly stretches it
  c.backward.scores += t.backward;
  const Seconds ideal = Flops(r.tokens * mixer_flops(x) / real(r.l.tp)) /
                        peak(r.s.cluster.accelerator, r.p.precision);
  // Kernels that count in 16 bits whatever the plan's precision may beat its peak.
  c.forward.attention_peak += std::min(ideal, t.forward);
  c.backward.attention_peak += std::min(ideal * 2.0, t.backward);
  if (r.record) {
    note(r, "attention",
         fmt::format("{}: {:.0f} heads of {} x {}, {:.0f} tokens",
                     enum_names(x.kind)[static_cast<size_t>(x.kind)], heads, x.head_dim, x.state,
                     real(r.p.micro_batch) * r.seq),
         t.forward, t.backward);
  }
}

// A short convolution along the sequence is one kernel in every stack: it reads and writes what it
// is given and backward reads the gradient beside it, at a third of a stream's pace. Mamba-2's
// fused block convolves again in backward.
void convolve(const Rank& r, LayerCost& c, double bytes, bool again) {
  const Seconds once = Bytes(bytes) / (r.memory * kConvolutionBandwidth);
  c.forward.memory += once * 2.0;
  c.backward.memory += once * (again ? 5.0 : 3.0);
  if (r.record && bytes > 0)
    note(r, "memory", fmt::format("convolution of {:.3g} MB", bytes / 1e6), once * 2.0,
         once * (again ? 5.0 : 3.0));
}

}  // namespace

void mixer_block(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const Mixer& x = m.mixer;
  const double h = real(m.hidden), tp = real(r.l.tp);
  const double v = value_width(x) / tp;
  // Key heads that value heads share are not split further.
  const bool keyed = has_keys(x.kind);
  const double keys = keyed ? key_width(x) / std::min(tp, real(std::max<int64_t>(1, x.groups))) : 0;
  const double rest = mixer_inputs(x) - (keyed ? 2 * key_width(x) : 0);
  const double inputs = rest / tp + 2 * keys;
  const PassTimes before = matmul_times(c);
  linear(r, c, r.tokens, inputs, h, 1, r.p.precision, Linear::kAdapted);
  if (x.kind == MixerKind::kMamba) {
    linear(r, c, r.tokens, real(x.rank + 2 * x.state), v, 1, r.p.precision);
    linear(r, c, r.tokens, v, real(x.rank), 1, r.p.precision);
  }
  if (x.kind == MixerKind::kKda) {
    linear(r, c, r.tokens, real(x.heads) * real(x.state) / tp, real(x.rank), 1, r.p.precision);
    linear(r, c, r.tokens, v, real(x.rank), 1, r.p.precision);
  }
  const bool summed = x.kind == MixerKind::kGatedLinear || x.kind == MixerKind::kWkv7;
  if (summed && x.rank > 0) linear(r, c, r.tokens, v, real(x.rank), 1, r.p.precision);
  if (x.kind == MixerKind::kRgLru) {  // two gates, block by block
    linear(r, c, r.tokens, real(x.head_dim), real(x.head_dim), 2 * real(x.heads) / tp,
           r.p.precision);
  }
  linear(r, c, r.tokens, h, v, 1, r.p.precision, Linear::kAdapted);
  const double repeated = keyed ? keys - key_width(x) / tp : 0;  // keys and queries each
  c.parameters += mixer_weights(m) / tp + 2 * h * repeated + h;
  tensor_region(r, c, before);
  exchange_sequence(r, c, inputs, v);
  scan(r, c);

  // Beside norm and residual: the gate reads two and writes one; backward reads the gradient, too.
  stream(r, c, (r.own * h * 5 + r.tokens * 3 * v) * r.word,
         (r.own * h * 6 + r.tokens * 5 * v) * r.word);
  const double convolved = x.taps > 0 ? v + 2 * keys : 0;
  convolve(r, c, r.tokens * convolved * r.word, x.kind == MixerKind::kMamba2);

  // Kept: what was projected, the scan's output, and what the last matmul reads. Delta rules keep
  // keys and queries after the convolution, one for every value head.
  const Scan* s = find_scan(x.kind);
  const double again =
      s != nullptr && s->own_keys ? convolved + 2 * real(x.heads) * real(x.state) / tp : 0;
  const double each = r.tokens * r.word;
  c.saved += Bytes(each * (inputs + 2 * v + again));
  c.kept += Bytes(each * (inputs * (1 - r.s.stack.selective_matmul) + v +
                          (v + again) * (1 - r.s.stack.selective_memory)));
  save_hidden(r, c, true);
}

}  // namespace assay

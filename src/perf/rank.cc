#include "perf/rank.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/clocks.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Fewer bytes than this per weight: packed. Eight bits and their scales are 1.05.
constexpr double kPackedBytes = 1.5;

// Tensors of h200_cache_hits.csv, per hidden vector: itself, and an MLP 2.75 times as wide.
constexpr double kMeasuredWidths = 3.75;

double word_bytes(Precision p) { return single_precision(p) ? 4 : 2; }

}  // namespace

// Fitted to Nsight Compute's count of bytes that reach memory, six layers of a Llama on one H200,
// eager and compiled, from 1,024 tokens on (test/data/h200_cache_hits.csv). What eager code moves
// beside what a compiler leaves was written by the kernel just before.
double found_in_cache(double moved, double filled) {
  constexpr double kDecay = 6.5;     // falls by e for every 1 / kDecay of the cache that is filled
  constexpr double kCompiled = 1.8;  // `traffic` that a compiler leaves
  constexpr double kCompiledFound = 0.58, kEagerFound = 1.36;  // of either, in a cache unfilled
  const double near = std::exp(-kDecay * filled);
  const double least = std::min(moved, kCompiled);
  const double found = least * kCompiledFound * near;
  return (found + (moved - least) * std::min(1.0, kEagerFound * near)) / moved;
}

bool quantised(Precision p) { return p >= Precision::kFp8; }

Precision unquantised(Precision p) { return quantised(p) ? Precision::kBf16 : p; }

int64_t whole(double x) { return std::max<int64_t>(1, std::llround(x)); }

void note(const Rank& r, const char* kind, std::string what, Seconds forward, Seconds backward) {
  r.record->push_back({r.layer, kind, std::move(what), forward, backward});
}

bool stored_packed(const Setting& s, const Plan& p) {
  return s.workload.task == Task::kLora && s.stack.weight_bytes < kPackedBytes &&
         !quantised(p.precision);
}

double gathered_bytes(const Setting& s, const Plan& p) {
  const Stack& st = s.stack;
  if (stored_packed(s, p)) return std::min(st.weight_bytes, st.weight_comm_bytes);
  const bool eight = p.precision == Precision::kFp8 || p.precision == Precision::kMxfp8;
  return eight && st.weight_comm_narrow > 0 ? st.weight_comm_narrow : st.weight_comm_bytes;
}

Moved moved_between(const Setting& s, bool compiled) {
  const Stack& st = s.stack;
  const bool plain = !s.workload.model.gated_mlp && st.traffic_plain > 0;
  const Moved written =
      plain ? Moved{st.traffic_plain, "stack.traffic_plain"} : Moved{st.traffic, "stack.traffic"};
  if (!compiled || written.times <= st.traffic_compiled) return written;
  return {st.traffic_compiled, "stack.traffic_compiled"};
}

namespace {

// Width of what stands between up- and down-projection: a token's experts, where it has some.
double active_width(const Model& m, double tp) {
  const int64_t width =
      m.experts == 0 ? m.ffn : m.experts_per_token * m.expert_ffn + m.shared_expert_ffn;
  return real(width) / tp;
}

// What the last-level cache streams; zero: not measured.
Bandwidth cache_rate(const Setting& s) {
  const Accelerator& a = s.cluster.accelerator;
  return Bandwidth(s.kernels.cache_word * real(a.compute_units) * a.clock.v);
}

// Of the traffic of a layer that passes on tensors of `bytes`, where the cache is the faster.
double cached_share(const Setting& s, double moved, double bytes) {
  const Bytes cache = s.cluster.accelerator.l2;
  if (cache.v <= 0 || bytes <= 0 || moved <= 0 || cache_rate(s) <= streaming(s)) return 0;
  return found_in_cache(moved, bytes / cache.v);
}

Bandwidth through_cache(const Setting& s, double found) {
  const Bandwidth memory = streaming(s);
  if (found <= 0) return memory;
  return Bandwidth(1 / ((1 - found) / memory.v + found / cache_rate(s).v));
}

}  // namespace

Rank make_rank(const Setting& s, const Plan& p, const Layout& l, const Links& links) {
  const double seq = real(s.workload.seq);
  const double tokens = real(p.micro_batch) * seq / real(l.cp);
  const bool split = l.tp > 1 && p.sequence_parallel;
  const double launches = (p.compiled ? s.stack.launches_compiled : 1.0) *
                          (p.cuda_graphs ? s.stack.launches_graphs : 1.0);
  const double moved = moved_between(s, p.compiled).times;
  const double own = split ? tokens / real(l.tp) : tokens;
  const double word = word_bytes(p.precision);
  const Model& m = s.workload.model;
  const double width = active_width(m, real(l.tp));
  const double passed = (own * real(m.hidden) + tokens * width) * word / kMeasuredWidths;
  const double cached = cached_share(s, moved, passed);
  return Rank{s,
              p,
              l,
              links,
              tokens,
              own,
              seq,
              word,
              moved,
              launches,
              cached,
              through_cache(s, cached),
              m.causal,
              s.workload.task == Task::kLora,
              stored_packed(s, p)};
}

void stream(const Rank& r, LayerCost& c, double forward, double backward) {
  const Seconds f = Bytes(forward * r.traffic) / r.memory;
  const Seconds b = Bytes(backward * r.traffic) / r.memory;
  c.forward.memory += f;
  c.backward.memory += b;
  c.streamed_forward += f;
  c.streamed_backward += b;
  if (r.record) {
    note(r, "memory",
         fmt::format("{:.3g} + {:.3g} MB x {:.2f}", forward / 1e6, backward / 1e6, r.traffic), f,
         b);
  }
}

Seconds linear_time(const Rank& r, const MatmulShape& shape, bool expert) {
  const Stack& st = r.s.stack;
  const MatmulParams& params = r.s.kernels.matmul;
  const bool portable =
      expert && st.experts_portable && shape.precision == unquantised(shape.precision);
  return grouped_time(shape, r.s.cluster.accelerator, params, st.experts_apart) /
         (st.matmul_quality * (portable ? params.grouped_portable : 1.0));
}

PassCost matmuls_since(const PassCost& now, const PassCost& before) {
  PassCost more;
  more.matmul = now.matmul - before.matmul;
  more.matmul_peak = now.matmul_peak - before.matmul_peak;
  more.matmul_draw = now.matmul_draw - before.matmul_draw;
  return more;
}

namespace {

// y + s (x A) B beside a frozen product y, as PyTorch runs it: A reads x; B writes its result,
// which is scaled (read, written) and added to y (two reads, one write). Backward scales the
// gradient and both of B's products read it; both of A's pass over x or its gradient, which is then
// added to that of the frozen product. Where adapters are kept in 32 bits under autocast, x is cast
// there and back (not beside packed weights: peft/tuners/lora/bnb.py leaves it to autocast).
// On one H200 bytes over these counts are 0.9 to 1.1 of each term (test/data/h200_adapters.csv).
// From ranks of some hundreds on their arithmetic takes longer; backward does it twice.
void add_adapter(const Rank& r, LayerCost& c, double tokens, double n, double k, double count) {
  const Stack& st = r.s.stack;
  const Seconds forward = c.forward.memory, backward = c.backward.memory;
  const double inputs = tokens * k * count, outputs = tokens * n;
  const double word = r.word * st.adapter_traffic;
  const double casts = r.packed ? 0 : inputs * st.adapter_casts;
  const Seconds f = Bytes((inputs + 6 * outputs) * word + casts) / r.memory;
  const Seconds b = Bytes((5 * inputs + 4 * outputs) * word + casts) / r.memory;
  c.forward.memory += f;
  c.backward.memory += b;
  if (r.record) note(r, "memory", fmt::format("{:.0f} adapters", count), f, b);
  const Precision precision = unquantised(r.p.precision);
  const double rank = real(r.s.workload.lora_rank);
  const Seconds arithmetic =
      linear_time(r, {whole(tokens), whole(n + count * k), whole(rank), 1, precision}, false);
  const Seconds ideal =
      Flops(2 * tokens * (n + count * k) * rank) / peak(r.s.cluster.accelerator, precision);
  const auto exceed = [&](PassCost& p, Seconds passes, double times) {
    const Seconds more = std::max(Seconds{}, arithmetic * times - passes);
    p.matmul += more;
    p.matmul_peak += std::min(more, ideal * times);
    p.matmul_draw += std::min(more, ideal * times) * precision_draw(precision, r.s.kernels);
  };
  exceed(c.forward, c.forward.memory - forward, 1);
  exceed(c.backward, c.backward.memory - backward, 2);
  c.forward.launches += count * st.launches_adapter * r.launches;
  c.backward.launches += count * 2 * st.launches_adapter * r.launches;
}

}  // namespace

void linear(const Rank& r, LayerCost& c, double tokens, double n, double k, double groups,
            Precision precision, Linear kind, int parts) {
  const Accelerator& a = r.s.cluster.accelerator;
  const int64_t batch = whole(groups), t = whole(tokens), ni = whole(n), ki = whole(k);
  const bool weight_gradient = !r.frozen;
  const Seconds forward_before = c.forward.matmul, backward_before = c.backward.matmul;
  const bool expert = kind == Linear::kExpert;
  const auto time = [&](int64_t rows, int64_t columns, int64_t depth, MatmulPass pass) {
    return linear_time(r, {rows, columns, depth, batch, precision, pass}, expert);
  };
  c.forward.matmul += time(t, ni, ki, MatmulPass::kForward);
  c.backward.matmul += time(t, ki, ni, MatmulPass::kInputGradient);
  if (weight_gradient) {
    const Seconds weights = time(ni, ki, t, MatmulPass::kWeightGradient);
    c.backward.matmul += weights;
    c.weights += weights;
  }
  if (r.record) {
    note(r, "matmul",
         fmt::format("{} of {} x {} x {} {}", batch, t, ni, ki,
                     enum_names(precision)[static_cast<size_t>(precision)]),
         c.forward.matmul - forward_before, c.backward.matmul - backward_before);
  }
  const Flops flops(2 * tokens * n * k * groups);
  const double passes = weight_gradient ? 2 : 1;
  const Seconds ideal = flops / peak(a, r.p.precision);
  c.forward.matmul_peak += ideal;
  c.backward.matmul_peak += ideal * passes;
  const Seconds draw = flops / peak(a, precision) * precision_draw(precision, r.s.kernels);
  c.forward.matmul_draw += draw;
  c.backward.matmul_draw += draw * passes;
  if (quantised(precision)) {
    const bool gathered = gathers_each_microbatch(r.s.stack, r.p, r.l) > 0;
    const double once = gathered ? 1.0 : 1.0 / real(r.l.microbatches);
    const bool blocks = precision >= Precision::kMxfp8 && precision <= Precision::kMxfp4;
    const double slow = r.s.stack.casts_tuned ? 1 : r.s.kernels.plain_casts;
    const double q = slow * (blocks ? r.s.stack.quantize_blocks : r.s.stack.quantize_traffic);
    const double weights = n * k * groups * once;
    c.forward.memory += Bytes(tokens * k * groups * q) / r.memory;
    c.forward.memory += Bytes(weights * q) / streaming(r.s);  // nothing wrote them just before
    c.backward.memory += Bytes(tokens * n * groups * q) / r.memory;
    c.forward.launches += r.s.stack.launches_quantize * r.launches;
    c.backward.launches += r.s.stack.launches_quantize * r.launches;
  }
  if (r.packed) {
    const Seconds unpack = Bytes(n * k * groups * r.s.stack.unpack_bytes) / streaming(r.s);
    c.forward.memory += unpack;
    c.backward.memory += unpack;
    if (r.record) {
      note(r, "memory", fmt::format("{:.3g} M weights unpacked", n * k * groups / 1e6), unpack,
           unpack);
    }
  }
  if (r.frozen && kind == Linear::kAdapted) {
    add_adapter(r, c, tokens, n, k, r.s.stack.adapters_apart ? parts : 1);
  }
}

namespace {

// Gathering or scattering along a dimension that is not the first copies the whole tensor; with one
// sequence it lies as it came, which leaves these shares, compiled or not
// (test/data/h200_tensor_device.csv).
void tensor_copies(const Rank& r, LayerCost& c, Bytes whole_tensor) {
  constexpr double kOneForward = 0.22, kOneBackward = 0.52;
  const Stack& st = r.s.stack;
  if (st.tensor_copies_forward + st.tensor_copies_backward <= 0) return;
  const bool one = r.p.micro_batch == 1;
  const double left = r.p.compiled ? st.tensor_copies_compiled : 1.0;
  const Seconds once = whole_tensor * 2 / r.memory;
  const Seconds forward = once * (st.tensor_copies_forward * (one ? kOneForward : left));
  const Seconds backward = once * (st.tensor_copies_backward * (one ? kOneBackward : left));
  c.forward.memory += forward;
  c.backward.memory += backward;
  if (r.record) {
    note(r, "memory", fmt::format("{:.3g} MB copied around an exchange", whole_tensor.v / 1e6),
         forward, backward);
  }
}

}  // namespace

// Nothing hides behind a longer time than its region's own matmuls take.
Seconds tensor_region(const Rank& r, LayerCost& c, const PassTimes& before, double gathered) {
  if (r.l.tp == 1) return Seconds{};
  const double width = real(r.s.workload.model.hidden);
  const Bytes b(r.tokens * width * r.word);
  const Bytes in(r.tokens * (gathered > 0 ? gathered : width) * r.word);
  // What is gathered is what a matmul reads next; what is scattered is a sum.
  const double narrow = r.s.stack.gathers_narrow && quantised(r.p.precision)
                            ? operand_bytes(r.s.cluster.accelerator, r.p.precision) / r.word
                            : 1;
  // Frozen weights have no gradients to hide it under, nor to gather their input for.
  const double hidden = r.frozen ? 0 : r.s.stack.overlap_tp_backward;
  const bool again = r.s.stack.gathers_again && !r.frozen;
  // Tiles are exchanged as they are computed by writing into each other's memory, which reaches as
  // far as the scale-up links do (Transformer Engine's user buffers, PyTorch's symmetric memory).
  const bool reachable =
      r.l.tensor.ranks == r.l.tensor.per_domain && r.links.wiring != Wiring::kNone;
  const double left = r.p.overlap_tp && reachable ? 1 - r.s.stack.overlap_tp : 1.0;
  const Seconds forward_window = c.forward.matmul - before.forward;
  const Seconds backward_window = c.backward.matmul - before.backward;
  const auto shown = [](Seconds wire, Seconds exposed, Seconds window) {
    return std::max(exposed, wire - window);
  };
  Seconds closing, forward, backward;
  if (r.p.sequence_parallel) {
    if (r.s.stack.saved_gathered && !r.frozen) {
      const Bytes whole = in * (1 - 1 / real(r.l.tp));
      c.saved += whole;
      c.kept += whole;
    }
    const auto gather = [&](Bytes all) {
      return collective_time(Collective::kAllGather, all * narrow, r.l.tensor, r.links);
    };
    const auto scatter = [&](Bytes all) {
      return collective_time(Collective::kReduceScatter, all, r.l.tensor, r.links);
    };
    const Seconds opening = gather(in), close = scatter(b);
    forward = shown(opening + close, (opening + close) * left, forward_window);
    closing = forward * (close / (opening + close));
    c.gathered += forward - closing;
    const Seconds under = scatter(in) + (again ? opening : Seconds{});
    const Seconds open = gather(b);
    backward = shown(open + under, (open + under * (1 - hidden)) * left, backward_window);
  } else {
    const Seconds reduce = collective_time(Collective::kAllReduce, b, r.l.tensor, r.links);
    closing = forward = shown(reduce, reduce * left, forward_window);
    const Seconds back = collective_time(Collective::kAllReduce, in, r.l.tensor, r.links);
    backward = shown(back, back * ((1 - hidden) * left), backward_window);
  }
  c.forward.tensor += forward;
  c.backward.tensor += backward;
  if (r.p.sequence_parallel) tensor_copies(r, c, b);
  if (r.record) {
    note(r, "tensor",
         fmt::format("{:.3g} MB over {} ranks, {:.0f} % exposed", b.v / 1e6, r.l.tp, left * 100),
         forward, backward);
  }
  return closing;
}

bool kept_quantised(const Rank& r) { return r.s.stack.saved_quantised && quantised(r.p.precision); }

namespace {

// Tensors of model width that a layer saves. Adapters read the result of the norm before them.
double hidden_tensors(const Rank& r, bool adapted) {
  const Stack& st = r.s.stack;
  if (r.frozen && st.saved_frozen > 0) return st.saved_frozen + (adapted ? 2 : 0);
  return !r.s.workload.model.gated_mlp && st.saved_plain > 0 ? st.saved_plain : st.saved_hidden;
}

}  // namespace

void save_hidden(const Rank& r, LayerCost& c, bool adapted) {
  const Stack& st = r.s.stack;
  const double one = r.own * real(r.s.workload.model.hidden) * r.word;
  const double half = hidden_tensors(r, adapted) / 2;
  const double rest = std::max(0.0, half - 0.5) - (kept_quantised(r) ? 0.5 : 0);
  // A policy by operation caches, in eager mode, matmul outputs that nobody reads again.
  const double unread = !r.p.compiled && st.selective_matmul > 0 ? 1 - st.selective_matmul : 0;
  c.saved += Bytes(one * (0.5 + rest));
  c.kept += Bytes(one * (0.5 + rest * (1 - st.selective_memory) + unread));
}

void mlp(const Rank& r, LayerCost& c, double tokens, double f, double groups, double split,
         bool expert) {
  const Model& m = r.s.workload.model;
  const double h = real(expert ? expert_width(m) : m.hidden);
  const double up = m.gated_mlp ? 2 : 1;
  const bool adapter = r.s.workload.lora_mlp && !expert;
  const Linear kind = expert ? Linear::kExpert : adapter ? Linear::kAdapted : Linear::kPlain;
  linear(r, c, tokens, up * f / split, h, groups, r.p.precision, kind, m.gated_mlp ? 2 : 1);
  const PassCost before = c.forward;
  linear(r, c, tokens, h, f / split, groups, r.p.precision, kind);
  c.closing = matmuls_since(c.forward, before);
  const double parameters = (up + 1) * h * f / split * groups;
  (expert ? c.expert_parameters : c.parameters) += parameters;
  const double words = tokens * groups * f / split * r.word;
  stream(r, c, words * (up + 1), words * (m.gated_mlp ? 5 : 3));
  const Stack& st = r.s.stack;
  // A frozen matmul needs its input for no gradient: what the activation function reads stays, and
  // what adapters read. Without a gate there is one result beside the up-projection's, however
  // little is fused.
  const double most = m.gated_mlp ? st.saved_ffn - 2 : std::min(1.0, st.saved_ffn - 2);
  const double unread = r.frozen && !adapter ? 1 : 0;
  const double rest = std::max(0.0, most - unread) - (kept_quantised(r) && !r.frozen ? 0.5 : 0);
  // Packed weights are multiplied in the precision of what they are given.
  const double wide = r.packed ? std::max(1.0, st.residual_bytes / r.word) : 1;
  const double held = words * wide;
  c.saved += Bytes(held * (up + rest));
  c.kept += Bytes(held * (up * (1 - st.selective_matmul) + rest * (1 - st.selective_memory)));
}

}  // namespace assay

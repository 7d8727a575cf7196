// A layer of experts: a router picks k of them for every token, copies of the token are sorted and
// sent to the ranks that hold them, the experts' matmuls run, and the results come back into a
// weighted sum. All of it is counted for a balanced router; `busy` is the part that the load of the
// busiest rank stretches, since everybody waits for it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/clocks.h"
#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Expected number of `places` that at least one of a token's `copies` experts lives in, when
// experts are spread evenly: a dispatcher that sends a token to each place once sends so many
// copies.
double distinct_places(double places, double copies) {
  return places * (1 - std::pow(1 - 1 / places, copies));
}

// The places that a token's experts may be in, where its router confines it to some of the groups
// that experts are in (DeepSeek-V3: four of eight) and groups lie together.
double reachable_places(const Model& m, double places) {
  const double all = real(m.expert_groups), chosen = real(m.groups_per_token);
  if (chosen <= 0 || chosen >= all) return places;
  return places >= all ? places * chosen / all : distinct_places(places, chosen);
}

// Biases and a clamped gate beside the experts' matmuls, operation by operation: a third of the
// bytes in the forward pass, two thirds in backward, as Megatron writes them on one H200
// (test/data/h200_plain.csv; torchtitan's take less forward, 0.23).
void expert_biases(const Rank& r, LayerCost& c, double tokens) {
  const Stack& st = r.s.stack;
  const double each = st.expert_bias_traffic * (r.p.compiled ? st.expert_bias_compiled : 1.0);
  if (each <= 0) return;
  const double bytes = tokens * real(r.s.workload.model.expert_ffn) * each;
  c.forward.memory += Bytes(bytes / 3) / r.memory;
  c.backward.memory += Bytes(bytes * 2 / 3) / r.memory;
  if (r.record) {
    note(r, "memory", fmt::format("{:.3g} MB of biases and clamped gates", bytes / 1e6),
         Bytes(bytes / 3) / r.memory, Bytes(bytes * 2 / 3) / r.memory);
  }
}

// Slots of a fixed capacity are filled, and their results weighed and summed, by matmuls with masks
// [tokens, slots] of one sequence (GShard's way): two in the forward pass, three in backward, since
// the weights in the second mask get a gradient. Masks are written and read around each pair.
void dispatch_by_masks(const Rank& r, LayerCost& c, double mine, double copies) {
  const double h = real(expert_width(r.s.workload.model));
  const double group = std::min(r.seq / real(r.l.cp), mine);
  const double slots = group * copies;
  const int64_t t = whole(group), s = whole(slots), hidden = whole(h), batch = whole(mine / group);
  const Precision precision = unquantised(r.p.precision);
  const auto time = [&](int64_t m, int64_t n, int64_t k) {
    return matmul_time({m, n, k, batch, precision}, r.s.cluster.accelerator, r.s.kernels.matmul) /
           r.s.stack.matmul_quality;
  };
  const Seconds fill = time(s, hidden, t), sum = time(t, hidden, s), weights = time(t, s, hidden);
  c.forward.matmul += fill + sum;
  c.backward.matmul += fill + sum + weights;
  const Seconds ideal = Flops(2 * mine * slots * h) / peak(r.s.cluster.accelerator, r.p.precision);
  c.forward.matmul_peak += ideal * 2.0;
  c.backward.matmul_peak += ideal * 3.0;
  const Seconds draw = Flops(2 * mine * slots * h) / peak(r.s.cluster.accelerator, precision) *
                       precision_draw(precision, r.s.kernels);
  c.forward.matmul_draw += draw * 2.0;
  c.backward.matmul_draw += draw * 3.0;
  stream(r, c, mine * slots * 4 * r.word, mine * slots * 4 * r.word);
  const Bytes masks(mine * slots * 2 * r.word);
  c.saved += masks;
  c.kept += masks * (1 - r.s.stack.selective_memory);
  if (r.record) {
    note(r, "matmul", fmt::format("{} of {} tokens into {} slots and back", batch, t, s),
         fill + sum, fill + sum + weights);
  }
}

// Rows are brought into the experts' order before and after the exchange, and back into a weighted
// sum. A copy reads and writes each of them once.
void permute(const Rank& r, LayerCost& c, double rows) {
  const Stack& st = r.s.stack;
  const double left = r.p.compiled ? st.permute_compiled : 1.0;
  const double copies = (r.l.ep > 1 ? st.permute_passes : st.permute_local) * left;
  const Bytes copy(rows * real(expert_width(r.s.workload.model)) * 2 * r.word);
  const Seconds forward = copy * copies / r.memory;
  const Seconds backward = forward * st.permute_backward;
  c.forward.memory += forward;
  c.backward.memory += backward;
  if (r.record) {
    note(r, "memory",
         fmt::format("routed tokens copied {:.1f} times, {:.3g} MB", copies, copy.v / 1e6), forward,
         backward);
  }
}

// Of the copies around an exchange, those behind it: rows that came from elsewhere.
constexpr double kReceivedCopies = 0.5;

// Time of work that is done per routed token.
Seconds routed_time(const PassCost& p) { return p.matmul + p.memory + p.expert; }

constexpr double kExpertPad = 32;  // tokens: the block of MX formats, a multiple of every alignment

// How a rank's experts are loaded when the router is balanced.
struct Load {
  double k;       // experts of a token
  double mine;    // tokens this rank dispatches; tensor parallel gives each rank a share of them
  double sent;    // copies of a token, or slots with padding
  double routed;  // copies that arrive here
  double local;   // experts here
  bool fixed;     // slots of a capacity
};

Load expert_load(const Rank& r) {
  const Model& m = r.s.workload.model;
  Load x;
  x.k = real(m.experts_per_token);
  x.mine = r.l.tp > 1 ? r.tokens / real(r.l.tp) : r.tokens;
  x.fixed = r.p.expert_capacity > 0;
  x.sent = x.fixed ? x.k * r.p.expert_capacity : x.k;
  x.routed = x.mine * x.sent * real(r.l.etp);
  x.local = real(m.experts) / real(r.l.ep);
  return x;
}

// The experts' own work, all of it stretched by the load of the busiest rank.
void routed_mlp(const Rank& r, LayerCost& c, const Load& x) {
  const Model& m = r.s.workload.model;
  const double etp = real(r.l.etp);
  // Grouped kernels pad every expert's tokens to whole rows of a quantisation block.
  const double each = std::ceil(x.routed / x.local / kExpertPad) * kExpertPad;
  const Bytes saved = c.saved, kept = c.kept;
  const PassCost before = c.forward;
  const Seconds forward = routed_time(c.forward), backward = routed_time(c.backward);
  mlp(r, c, each, real(m.expert_ffn), x.local, etp, true);
  c.routed = c.saved - saved;
  if (r.s.stack.selective_experts) {
    c.kept = kept;
    c.chosen += matmuls_since(c.forward, before);
    c.busy_chosen = c.forward.matmul - before.matmul;
  }
  if (m.expert_bias) expert_biases(r, c, x.routed / etp);
  c.busy_forward = routed_time(c.forward) - forward;
  c.busy_backward = routed_time(c.backward) - backward;
}

// Tokens are brought into order, sent to their experts and back.
void exchange_tokens(const Rank& r, LayerCost& c, const Load& x) {
  const double h = real(expert_width(r.s.workload.model));
  if (x.fixed && r.s.stack.dispatch_masks) {
    dispatch_by_masks(r, c, x.mine, x.sent);
  } else {
    const Seconds forward = c.forward.memory, backward = c.backward.memory;
    permute(r, c, x.mine * x.sent);
    c.busy_forward += (c.forward.memory - forward) * kReceivedCopies;
    c.busy_backward += (c.backward.memory - backward) * kReceivedCopies;
  }
  if (r.l.ep > 1) {
    const double domains = real(r.l.expert.ranks / r.l.expert.per_domain);
    const double places =
        reachable_places(r.s.workload.model, domains > 1 ? domains : real(r.l.ep));
    const bool once_each = r.s.stack.expert_dedup && !x.fixed;
    const double copies = once_each ? std::min(x.k, distinct_places(places, x.k)) : x.sent;
    const double bytes = x.mine * copies * h * r.word;
    const Seconds once = collective_time(Collective::kAllToAll, Bytes(bytes), r.l.expert, r.links);
    // It hides under the work of another micro-batch's pass, and no longer than that takes.
    const Seconds wire = 2 * once;
    const double hidden = r.p.overlap_expert ? r.s.stack.overlap_expert : 0;
    const auto shown = [&](const PassCost& p) {
      return wire - std::min(wire * hidden, p.device());
    };
    const Seconds forward = shown(c.forward), backward = shown(c.backward);
    c.forward.expert += forward;
    c.backward.expert += backward;
    c.busy_forward += forward;
    c.busy_backward += backward;
    if (r.record) {
      note(r, "expert", fmt::format("2 all-to-all of {:.3g} MB over {} ranks", bytes / 1e6, r.l.ep),
           forward, backward);
    }
  }
  if (r.l.etp > 1) {
    const Bytes b(x.routed * h * r.word);
    const Seconds g = collective_time(Collective::kAllGather, b, r.l.expert_tensor, r.links) +
                      collective_time(Collective::kReduceScatter, b, r.l.expert_tensor, r.links);
    c.forward.tensor += g;
    c.backward.tensor += g;
  }
}

}  // namespace

void expert_mlp(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const Stack& st = r.s.stack;
  const double h = real(m.hidden);
  const Load x = expert_load(r);
  linear(r, c, x.mine, real(m.experts), h, 1, unquantised(r.p.precision));
  c.parameters += h * real(m.experts) + 2 * h;
  const double width = real(expert_width(m));
  if (m.expert_hidden > 0) {  // to the experts' width and back, by every token once
    linear(r, c, x.mine, width, h, 1, r.p.precision);
    linear(r, c, x.mine, h, width, 1, r.p.precision);
    c.parameters += 2 * h * width;
  }
  routed_mlp(r, c, x);
  if (m.shared_expert_ffn > 0) {
    const PassTimes before = matmul_times(c);
    mlp(r, c, r.tokens, real(m.shared_expert_ffn), 1, real(r.l.tp), false);
    tensor_region(r, c, before);
  }
  exchange_tokens(r, c, x);
  stream(r, c, r.own * h * 5 * r.word, r.own * h * 6 * r.word);
  const double copies_word = kept_quantised(r) ? r.word / 2 : r.word;
  const Bytes dispatched(x.routed * width * st.saved_dispatch * copies_word);
  c.saved += dispatched;
  // Where the experts run again, what an exchange brought stays, and nothing else of theirs.
  if (!st.selective_experts || r.l.ep > 1) c.kept += dispatched;
  c.routed += dispatched;
  save_hidden(r, c, false);
  // Matmuls and quantisations run expert by expert, and their sizes come from the router: a
  // captured graph cannot hold them.
  const double each_expert = st.launches_expert * x.local;
  c.forward.launches += st.launches_moe * r.launches + each_expert;
  c.backward.launches += 2 * (st.launches_moe * r.launches + each_expert);
}

}  // namespace assay

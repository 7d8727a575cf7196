// Context parallelism: what ranks that share a sequence exchange around attention.
#include <algorithm>

#include <fmt/format.h>

#include "perf/rank.h"

namespace assay {
namespace {

// Two elements read and their sum written.
constexpr double kAddWords = 3;

// Every rank gets all keys and values before its attention, again before its backward pass, and
// returns their gradients. What is hidden is the first pass's gather, under the rank's own block.
void context_gather(const Rank& r, LayerCost& c, double width) {
  const Bytes all(r.tokens * real(r.l.cp) * width * r.word);
  const Seconds gather = collective_time(Collective::kAllGather, all, r.l.context, r.links);
  const Seconds scatter = collective_time(Collective::kReduceScatter, all, r.l.context, r.links);
  const Seconds own = c.forward.attention * (r.s.stack.overlap_context / real(r.l.cp));
  const Seconds forward = std::max(Seconds(0), gather - own);
  const Seconds backward = gather + scatter;
  c.forward.context += forward;
  c.backward.context += backward;
  c.working += all;
  if (r.record) {
    note(r, "context", fmt::format("all-gather of {:.3g} MB over {} ranks", all.v / 1e6, r.l.cp),
         forward, backward);
  }
}

}  // namespace

bool repeats_heads(const Stack& st, const HeadSizes& z) {
  return st.expand_kv && z.kv_heads < z.heads;
}

void context_exchange(const Rank& r, LayerCost& c, const HeadSizes& z, double tp) {
  if (r.l.cp == 1) return;
  const double steps = real(r.l.cp - 1);
  // A key-value head is not split further.
  const double kv_tp = std::min(tp, z.kv_heads), kv = (z.k + z.v) / kv_tp;
  const double q = z.q / tp, o = z.heads * z.v_dim / tp;
  const double width = repeats_heads(r.s.stack, z) ? q + o : kv;
  if (r.p.context == ContextKind::kRing) {
    const Bytes block(r.tokens * width * r.word);
    const Seconds hop = collective_time(Collective::kSendRecv, block, r.l.context, r.links);
    const double hide = r.s.stack.overlap_context;
    const auto exposed = [&](Seconds wire, Seconds compute) {
      return std::max(wire - compute * hide, wire * (1 - hide));
    };
    const Seconds forward = exposed(hop * steps, c.forward.attention);
    const Seconds backward = exposed(hop * (2 * steps), c.backward.attention);
    c.forward.context += forward;
    c.backward.context += backward;
    if (r.record) {
      note(r, "context", fmt::format("{} hops of {:.3g} MB round a ring", steps, block.v / 1e6),
           forward, backward);
    }
    // Every block's results are added to what has come before: output, then all three gradients.
    const double blocks = steps + 1;
    const double added = kAddWords * r.word * blocks * r.tokens;
    c.merged += Bytes(added * o) / r.memory;
    c.forward.memory += Bytes(added * o) / r.memory;
    c.backward.memory += Bytes(added * (q + width)) / r.memory;
    // Each block is a smaller kernel: causal load balancing splits every sequence in 2 cp pieces.
    c.forward.launches += 4 * steps * r.launches;
    c.backward.launches += 8 * steps * r.launches;
    return;
  }
  if (r.p.context == ContextKind::kAllGather) {
    context_gather(r, c, width);
    return;
  }
  // Each rank gets whole heads: fewer than one for each are repeated before they travel.
  const double repeat = std::max(1.0, real(r.l.cp) * kv_tp / z.kv_heads);
  const Bytes all(r.tokens * (q + o + kv * repeat) * r.word);
  const Seconds t = collective_time(Collective::kAllToAll, all, r.l.context, r.links);
  c.forward.context += t;
  c.backward.context += t;
  if (r.record) {
    note(r, "context", fmt::format("all-to-all of {:.3g} MB over {} ranks", all.v / 1e6, r.l.cp), t,
         t);
  }
}

}  // namespace assay

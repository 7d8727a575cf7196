// The ends of a model: embedding, and the final norm with logits and loss.
#include <algorithm>
#include <cmath>

#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

// Kernels of the final norm, the logits and the loss, one pass; counted in an eager trace's order
// of magnitude, once per micro-batch, so it never binds.
constexpr double kHeadLaunches = 11;

// One tensor rank's share of the vocabulary, padded as the stack pads it.
double own_vocab(const Rank& r) {
  const double share = real(r.s.workload.model.vocab) / real(r.l.tp);
  const double multiple = real(r.s.stack.vocab_multiple);
  return multiple > 1 ? std::ceil(share / multiple) * multiple : share;
}

// The positions whose logits are computed: all, those that were masked, or, where an encoder is
// fine-tuned, one of each sequence.
double asked_positions(const Rank& r) {
  const Model& m = r.s.workload.model;
  if (m.masked_share <= 0) return r.tokens;
  if (r.s.workload.task != Task::kPretrain) return real(r.p.micro_batch);
  return r.s.stack.gathers_masked ? r.tokens * m.masked_share : r.tokens;
}

}  // namespace

Logits held_logits(const Rank& r) {
  const Model& m = r.s.workload.model;
  const Stack& st = r.s.stack;
  const double asked = asked_positions(r);
  const double eager =
      !m.causal && st.logits_bytes_masked > 0 ? st.logits_bytes_masked : st.logits_bytes;
  const double each = r.p.compiled ? std::min(eager, st.logits_bytes_compiled) : eager;
  const double chunks = real(st.loss_chunks);
  return {(st.logits_whole ? asked * real(m.vocab) : asked * own_vocab(r)) / chunks, each};
}

LayerCost head_cost(const Rank& r) {
  const Model& m = r.s.workload.model;
  LayerCost c;
  const double h = real(m.hidden);
  const double v = own_vocab(r);
  const double e = real(embedding_width(m));
  const double asked = asked_positions(r);
  linear(r, c, asked, v, e, 1, unquantised(r.p.precision));
  if (e != h) linear(r, c, asked, e, h, 1, unquantised(r.p.precision));
  const double logits = asked * v;
  const double half = r.s.stack.loss_traffic * (r.p.compiled ? r.s.stack.loss_compiled : 1) / 2;
  c.forward.memory += Bytes(logits * half) / streaming(r.s);  // larger than any cache
  c.backward.memory += Bytes(logits * half) / streaming(r.s);
  stream(r, c, r.own * h * 2 * r.word, r.own * h * 4 * r.word);
  const Logits held = held_logits(r);
  c.working = Bytes(held.count * held.each + r.tokens * h * r.word);
  c.kept = Bytes(held.count * std::min(held.each, r.word));
  c.parameters = e * v + embedding_projection(m);
  c.forward.launches = kHeadLaunches * r.launches;
  c.backward.launches = kHeadLaunches * r.launches;
  if (r.l.tp > 1) {
    const Bytes b(r.tokens * h * r.word);
    c.forward.tensor += collective_time(Collective::kAllGather, b, r.l.tensor, r.links);
    c.backward.tensor += collective_time(Collective::kReduceScatter, b, r.l.tensor, r.links);
  }
  return c;
}

LayerCost embedding_cost(const Rank& r) {
  const Model& m = r.s.workload.model;
  LayerCost c;
  const double h = real(m.hidden);
  stream(r, c, r.tokens * h * 2 * r.word, r.frozen ? 0 : r.tokens * h * 4 * r.word);
  const double positions = m.learned_positions ? real(m.max_positions) : 0;
  const double e = real(embedding_width(m));
  if (e != h) linear(r, c, r.tokens, h, e, 1, unquantised(r.p.precision));
  const double tables = e + layer_embedding_columns(m);
  c.parameters =
      tables * own_vocab(r) + real(position_width(m)) * positions + embedding_projection(m);
  c.saved = Bytes(r.own * h * std::max(1.0, real(m.residual_streams)) *
                  std::max(r.word, r.s.stack.residual_bytes));
  c.forward.launches = 4 * r.launches;
  c.backward.launches = 4 * r.launches;
  return c;
}

}  // namespace assay

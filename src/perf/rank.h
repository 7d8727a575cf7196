// One rank's view of a micro-batch, and the operations that layers are built from. Internal to
// perf.
#pragma once

#include "perf/layer.h"

namespace assay {

// Everything the operations of one layer need to know, resolved once.
struct Rank {
  const Setting& s;
  const Plan& p;
  const Layout& l;
  const Links& links;
  double tokens;  // of one micro-batch on this rank's tensor group
  double own;     // tokens this rank alone holds between tensor-parallel regions
  double seq;
  double word;       // bytes of an activation
  double traffic;    // memory-bound multiplier
  double launches;   // launch multiplier
  double cached;     // share of a layer's memory-bound traffic that the cache holds
  Bandwidth memory;  // seen by a layer's memory-bound kernels
  bool causal;       // attention sees what came before only
  bool frozen;       // base weights get no gradient (LoRA)
  bool packed;       // and are stored below 16 bits: unpacked before every matmul
  std::vector<OpRecord>* record = nullptr;
  const char* layer = "dense";
};

Rank make_rank(const Setting&, const Plan&, const Layout&, const Links&);

// The share of a layer's memory-bound traffic that the last-level cache still holds, because the
// kernel before wrote it. `moved`: bytes over the fused minimum; `filled`: the hidden vectors of a
// micro-batch over the cache.
double found_in_cache(double moved, double filled);

// Below 16 bits: inputs are quantised beside the matmul.
bool quantised(Precision);
// What runs beside a quantised matmul: attention, router, logits.
Precision unquantised(Precision);
// Frozen weights kept in 4 or 8 bits and multiplied in 16 (QLoRA).
bool stored_packed(const Setting&, const Plan&);
// Bytes per weight of a layer as it is gathered: packed weights travel packed, and some stacks send
// in 8 bits what is multiplied in 8.
double gathered_bytes(const Setting&, const Plan&);
// A count of rows or columns: rounded, at least one.
int64_t whole(double);

// Keeps an operation for `explain`. REQUIRES: r.record.
void note(const Rank& r, const char* kind, std::string what, Seconds forward, Seconds backward);

// Memory-bound work of `forward` and `backward` bytes at 16 bits, fully fused.
void stream(const Rank& r, LayerCost& c, double forward, double backward);

// What a matmul is beside its shape: LoRA adapts it, or an expert's, which some stacks run by a
// kernel of their own.
enum class Linear { kPlain, kAdapted, kExpert };

// y[tokens, n] = x[tokens, k] w[k, n], `groups` of them (experts), with their two backward matmuls.
// `parts` projections are one matmul here that other code keeps apart (query, key and value; gate
// and up): each has an adapter of its own where the stack's `adapters_apart` says so.
void linear(const Rank& r, LayerCost& c, double tokens, double n, double k, double groups,
            Precision precision, Linear kind = Linear::kPlain, int parts = 1);

// The matmuls of a pass that came since.
PassCost matmuls_since(const PassCost& now, const PassCost& before);

// Matmul time of both passes so far.
struct PassTimes {
  Seconds forward, backward;
};
inline PassTimes matmul_times(const LayerCost& c) { return {c.forward.matmul, c.backward.matmul}; }

// The tensor-parallel exchange around one region (attention or MLP) of a layer, which may hide
// under the matmuls `before` which it began. `gathered`: width of what is gathered for them; zero:
// the model's. Returns what the forward pass shows of the reduction that closes the region.
Seconds tensor_region(const Rank& r, LayerCost& c, const PassTimes& before, double gathered = 0);

// The stack keeps the inputs of quantised matmuls in 8 bits.
bool kept_quantised(const Rank&);

// Saves half of a layer's tensors of model width: its input (always kept, the rest are results of
// norms and additions), around the attention or around the MLP.
void save_hidden(const Rank& r, LayerCost& c, bool adapted);

// Up- and down-projection of width `f` and what is between them, `groups` of them (experts), cut
// in `split`.
void mlp(const Rank& r, LayerCost& c, double tokens, double f, double groups, double split,
         bool expert);

// What layers move between their matmuls over the fused minimum, and the setting that says so.
struct Moved {
  double times;
  const char* path;
};
Moved moved_between(const Setting&, bool compiled);

struct HeadSizes {
  double q, k, v;  // widths of the projected tensors, all heads
  double heads, kv_heads, qk_dim, v_dim;
};

// Some software repeats keys and values to all heads, where several share them.
bool repeats_heads(const Stack&, const HeadSizes&);
// Keys and values travel round a ring beside the attention of the block that has arrived, or all
// ranks gather them, or all four tensors are exchanged before and after it.
void context_exchange(const Rank&, LayerCost&, const HeadSizes&, double tp);

// experts.cc: router, experts and the exchange of tokens.
void expert_mlp(const Rank& r, LayerCost& c);

// mixer.cc: a state space or linear attention in place of attention.
void mixer_block(const Rank& r, LayerCost& c);

// beside.cc: what some models have beside attention and MLP. `more` than the layer's input that
// attention reads; a gate of the MLP's output; projections of a layer's own where it shares the
// rest; embeddings of every layer; several residual streams.
void wider_input(const Rank& r, LayerCost& c, double more);
void output_gate(const Rank& r, LayerCost& c);
void own_projections(const Rank& r, LayerCost& c);
void layer_embedding(const Rank& r, LayerCost& c);
void residual_streams(const Rank& r, LayerCost& c);

// head.cc: the ends of a model. Logits that are held at a time, and the bytes of each.
struct Logits {
  double count, each;
};
Logits held_logits(const Rank& r);
LayerCost head_cost(const Rank& r);
LayerCost embedding_cost(const Rank& r);

// dlrm.cc: a recommendation model instead of layers.
MicrobatchCost dlrm_cost(const Rank&);

}  // namespace assay

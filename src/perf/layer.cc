// A layer is a handful of matmuls, one attention core and a few memory-bound operations; its cost
// is built here operation by operation, forward and backward, from the shapes on one rank.
//
// Bytes of the memory-bound operations count the fully fused minimum at 16 bits: a norm reads and
// writes the hidden vector once, a residual addition reads two and writes one, a gated activation
// reads two MLP vectors and writes one. Real stacks move more (eager kernels, casts, dropout masks,
// biases); `Stack::traffic` is that ratio, calibrated once per stack.
#include "perf/layer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/rank.h"
#include "world/model_size.h"

namespace assay {
namespace {

HeadSizes head_sizes(const Model& m) {
  const double heads = real(m.heads);
  const double kv = real(kv_head_count(m));
  if (m.kv_lora_rank > 0) {
    const double qk = real(m.qk_nope_head_dim + m.qk_rope_head_dim);
    const double v = real(m.v_head_dim);
    return {heads * qk, heads * qk, heads * v, heads, heads, qk, v};
  }
  const double d = head_dim(m);
  return {heads * d, kv * d, kv * d, heads, kv, d, d};
}

AttentionKernel attention_kernel(const Rank& r) {
  if (!r.p.flash_attention) return AttentionKernel::kUnfused;
  const AttentionKernel k = r.s.stack.attention;
  if (k == AttentionKernel::kUnfused) return AttentionKernel::kPortable;
  if (k != AttentionKernel::kOperator) return k;
  return r.s.kernels.operator_since > 0 ? AttentionKernel::kVendor : AttentionKernel::kPortable;
}

// Saved per score by a fused softmax with dropout: two 16-bit results and a mask.
constexpr double kFusedScoreBytes = 5;

void attention_core(const Rank& r, LayerCost& c, const HeadSizes& z, double tp) {
  const Model& m = r.s.workload.model;
  const AttentionKernel kernel = attention_kernel(r);
  AttentionShape shape;
  shape.batch = r.p.micro_batch;
  shape.heads = whole(z.heads / tp);
  shape.qk_dim = z.qk_dim;
  shape.v_dim = z.v_dim;
  // A fused kernel runs each packed document alone, and of a window what lies in it; an unfused one
  // runs the sequence and masks.
  const double document = real(attended(r.s.workload));
  const double reach = kernel == AttentionKernel::kUnfused ? r.seq : document;
  shape.documents = r.seq / reach;
  shape.queries = reach / real(r.l.cp);
  shape.keys = reach;
  if (r.p.context == ContextKind::kRing) shape.steps = real(r.l.cp);
  shape.causal = r.causal;
  shape.precision = unquantised(r.p.precision);
  shape.score_traffic = r.s.stack.score_traffic;
  shape.saved_scores = r.s.stack.saved_scores;
  AttentionTime t = attention_time(shape, kernel, r.s.cluster.accelerator, r.s.kernels);
  const double window = real(m.window);
  if (kernel == AttentionKernel::kUnfused) {  // pairs that are masked are work, but of no use
    t.flops = t.flops * (keys_seen(m, r.causal, document) / keys_in_window(0, r.causal, reach));
  } else if (window > 0 && m.window_layers > 0 && window < reach) {
    AttentionShape local = shape;
    local.keys = keys_in_window(window, r.causal, reach);
    local.steps = 1;
    local.causal = false;  // nearly every query of a long sequence sees the whole window
    local.window = true;
    const AttentionTime w = attention_time(local, kernel, r.s.cluster.accelerator, r.s.kernels);
    const double f = m.window_layers;
    t.forward = t.forward * (1 - f) + w.forward * f;
    t.backward = t.backward * (1 - f) + w.backward * f;
    t.flops = t.flops * (1 - f) + w.flops * f;
  }
  c.forward.attention += t.forward;
  c.backward.attention += t.backward;
  c.forward.scores += t.scores_forward;
  c.backward.scores += t.scores_backward;
  if (r.record) {
    note(r, "attention",
         fmt::format("batch {}{} x {} heads of {:.0f}, {:.0f} queries, {:.0f} keys", shape.batch,
                     shape.documents > 1 ? fmt::format(" x {:.3g} documents", shape.documents) : "",
                     shape.heads, shape.qk_dim, shape.queries, shape.keys),
         t.forward, t.backward);
  }
  const Seconds ideal = t.flops / peak(r.s.cluster.accelerator, r.p.precision);
  c.forward.attention_peak += ideal;
  c.backward.attention_peak += ideal * 2.0;
  c.saved += t.saved;
  // Where the softmax is no kernel of its own that leaves its gradient in place, the gradients of
  // scores and of probabilities take as much again.
  if (shape.saved_scores > kFusedScoreBytes) c.working += t.saved;
  c.kept += t.saved * (1 - r.s.stack.selective_attention);
}

// Activations that one layer leaves behind, in `saved` without recomputation and in `kept` under
// the stack's selective recomputation: what runs again (shares of matmuls and of memory-bound
// operations) need not be kept. See docs/models/memory.md.

constexpr double kOffloadFlight = 2;

// Queries and attention output, keys and values, and their copies for every query head.
void save_heads(const Rank& r, LayerCost& c, double q, double o, double kv, double repeated) {
  const Stack& st = r.s.stack;
  const double each = r.tokens * r.word;
  c.saved += Bytes(each * (q + o + kv + repeated));
  const bool made_again = st.selective_latent && r.s.workload.model.kv_lora_rank > 0;
  const double kept = q + kv * (1 - st.selective_matmul) + repeated * (1 - st.selective_memory);
  c.kept += Bytes(each * (o + (made_again ? 0 : kept)));
}

// A latent vector of `width` elements a token before and after its norm.
void save_latents(const Rank& r, LayerCost& c, double width) {
  const Stack& st = r.s.stack;
  const Bytes one(r.own * width * r.word);
  c.saved += one * 2;
  c.kept += one * (2 - st.selective_matmul - st.selective_memory);
}

// Norms of queries and keys, `width` elements a token. Rows of one head are short: outside a fused
// kernel they take many times a copy (test/data/h200_head_norm.csv).
void head_norms(const Rank& r, LayerCost& c, double width) {
  constexpr double kHeadNormKernels = 2;  // one for queries, one for keys
  const Stack& st = r.s.stack;
  const Seconds copy = Bytes(r.tokens * width * 2 * r.word) / r.memory;
  const Seconds forward = copy * (r.p.compiled ? Stack::kHeadNormForward : st.head_norm_forward);
  const Seconds backward = copy * (r.p.compiled ? Stack::kHeadNormBackward : st.head_norm_backward);
  c.forward.memory += forward;
  c.backward.memory += backward;
  c.forward.launches += kHeadNormKernels * r.launches;
  c.backward.launches += 2 * kHeadNormKernels * r.launches;
  const Bytes before(r.tokens * width * r.word * st.saved_head_norm);
  c.saved += before;
  c.kept += before * (1 - st.selective_memory);
  if (r.record) note(r, "memory", "norms of queries and keys", forward, backward);
}

// Positions that are learned are added once, and biases to scores inside attention; others turn
// queries and keys in every layer.
bool turns_heads(const Model& m) { return m.rotary && !m.learned_positions; }

// Side by side, attention and MLP share what stands before and after them. Experts stand alone.
bool side_by_side(const Model& m) { return m.parallel_block && m.experts == 0; }

// Queries, keys and values by way of their compressed forms. Returns the width of what tensor ranks
// gather for them.
double latent_projections(const Rank& r, LayerCost& c, const HeadSizes& z) {
  const Model& m = r.s.workload.model;
  const double h = real(m.hidden), tp = real(r.l.tp);
  const Precision prec = r.p.precision;
  double gathered = h;
  const double kv_rank = real(m.kv_lora_rank);
  const double rope = real(m.qk_rope_head_dim);
  const double nope = real(m.qk_nope_head_dim);
  double parameters = 0;
  // Heads are made of the latents by these, and by nothing else.
  const auto heads = [&](double width, double rank) {
    const PassCost earlier = c.forward;
    linear(r, c, r.tokens, width, rank, 1, prec, Linear::kAdapted);
    if (r.s.stack.selective_latent) c.chosen += matmuls_since(c.forward, earlier);
  };
  if (m.q_lora_rank > 0) {
    const double q_rank = real(m.q_lora_rank);
    linear(r, c, r.own, q_rank, h, 1, prec);
    heads(z.q / tp, q_rank);
    gathered = q_rank;
    save_latents(r, c, q_rank);
    parameters += h * q_rank + q_rank * z.q / tp;
  } else {
    heads(z.q / tp, h);
    parameters += h * z.q / tp;
  }
  linear(r, c, r.own, kv_rank + rope, h, 1, prec);
  heads(z.heads * (nope + z.v_dim) / tp, kv_rank);
  gathered += kv_rank + rope;  // latents travel, not what they were made of
  save_latents(r, c, kv_rank);
  parameters += h * (kv_rank + rope) + kv_rank * z.heads * (nope + z.v_dim) / tp;
  c.parameters += parameters;
  // Halves with and without position are joined and rotated: two reads and two writes. One kernel
  // turns the positions of queries where they are, another parts keys from values.
  const double split = 2 * nope + 2 * z.v_dim + rope;
  const double elements = r.s.stack.fused_latent ? z.heads * (2 * rope + split) : (z.q + z.k) * 4;
  const double joined = r.tokens * elements / tp * r.word;
  const Seconds earlier = c.forward.memory;
  stream(r, c, joined, joined);
  if (r.s.stack.selective_latent) c.chosen.memory += c.forward.memory - earlier;
  return gathered;
}

void attention_block(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const HeadSizes z = head_sizes(m);
  const double h = real(m.hidden);
  const double tp = real(r.l.tp);
  const double kv_tp = std::min(tp, z.kv_heads);  // a key-value head is not split further
  const Precision prec = r.p.precision;
  const PassTimes before = matmul_times(c);
  double gathered = h;
  if (m.kv_lora_rank > 0) {
    gathered = latent_projections(r, c, z);
  } else {
    const double width = (m.gated_attention ? 2 : 1) * z.q / tp + (z.k + z.v) / kv_tp;
    const double in = real(attention_input(m));
    linear(r, c, r.tokens, width, in, 1, prec, Linear::kAdapted, 3);
    c.parameters += in * width;
    wider_input(r, c, in - h);
  }
  if (m.gated_attention) {  // gate and output read, their product written
    const double one = r.tokens * z.q / tp * r.word;
    stream(r, c, 3 * one, 5 * one);
    c.saved += Bytes(2 * one);
    c.kept += Bytes(one * (2 - r.s.stack.selective_memory));
  }
  const double o = z.heads * z.v_dim / tp;
  linear(r, c, r.tokens, h, o, 1, prec, Linear::kAdapted);
  c.parameters += h * o + 2 * h;
  attention_core(r, c, z, tp);
  context_exchange(r, c, z, tp);
  if (!side_by_side(m)) tensor_region(r, c, before, gathered);
  if (m.head_norm) head_norms(r, c, z.q / tp + z.k / kv_tp);
  // Those of latent attention are counted above.
  const double turned = turns_heads(m) && m.kv_lora_rank == 0 ? z.q / tp + z.k / kv_tp : 0;
  const double rope = turned * 2 * r.word;
  stream(r, c, r.own * h * 5 * r.word + r.tokens * rope, r.own * h * 6 * r.word + r.tokens * rope);
  const double kv = (z.k + z.v) / kv_tp;
  double repeated = repeats_heads(r.s.stack, z) ? std::max(0.0, z.q / tp + o - kv) : 0;
  if (r.s.stack.fused_qkv) repeated += turned;  // queries and keys as they were before
  save_heads(r, c, z.q / tp, o, kv, repeated);
  save_hidden(r, c, true);
}

// A block that only a `share` of the layers have, where all layers share one cost; `kept` of these
// blocks have weights of their own.
void add_share(LayerCost& c, const LayerCost& block, double share, double kept = 1) {
  c.forward += block.forward * share;
  c.backward += block.backward * share;
  c.closing += block.closing * share;
  c.weights += block.weights * share;
  c.saved += block.saved * share;
  c.kept += block.kept * share;
  c.routed += block.routed * share;
  c.chosen += block.chosen * share;
  c.gathered += block.gathered * share;
  c.streamed_forward += block.streamed_forward * share;
  c.streamed_backward += block.streamed_backward * share;
  c.merged += block.merged * share;
  c.busy_forward += block.busy_forward * share;
  c.busy_backward += block.busy_backward * share;
  c.busy_chosen += block.busy_chosen * share;
  c.working = std::max(c.working, block.working);
  c.parameters += block.parameters * (share * kept);
  c.expert_parameters += block.expert_parameters * (share * kept);
}

// Where a decoder's attention sees the encoder's output beside what came before: keys and values of
// that output, and the scores with them.
void see_encoder(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const HeadSizes z = head_sizes(m);
  const double tp = real(r.l.tp), kv = (z.k + z.v) / std::min(tp, z.kv_heads);
  linear(r, c, r.tokens, kv, real(m.hidden), 1, r.p.precision);
  attention_core(r, c, z, tp);
  save_heads(r, c, 0, 0, kv, 0);
}

// Layers of an encoder see both sides; those of a decoder attend to what came before and then to
// all of the encoder's output. So every layer has one attention without a mask.
void two_sided_attention(Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  const double decoders = real(m.layers);
  const double share = decoders / (decoders + real(m.encoder_layers));
  LayerCost own;
  attention_block(r, own);
  r.causal = false;
  if (m.merged_cross) {
    LayerCost encoder;
    see_encoder(r, own);
    attention_block(r, encoder);
    add_share(c, encoder, 1 - share);
  }
  add_share(c, own, share);
  if (!m.merged_cross) attention_block(r, c);
  r.causal = m.causal;
}

// A third of a written-out GELU's bytes move in the forward pass.
void written_gelu(const Rank& r, LayerCost& c) {
  const double width = real(r.s.workload.model.ffn) / real(r.l.tp);
  const Seconds all = Bytes(r.tokens * width * r.s.stack.gelu_traffic) / r.memory;
  c.forward.memory += all / 3.0;
  c.backward.memory += all * (2.0 / 3);
  const Bytes steps(r.tokens * width * r.s.stack.saved_gelu * r.word);
  c.saved += steps;
  c.kept += steps * (1 - r.s.stack.selective_memory);
  if (r.record && all.v > 0) note(r, "memory", "GELU, written out", all / 3.0, all * (2.0 / 3));
}

void dense_mlp(const Rank& r, LayerCost& c) {
  const double h = real(r.s.workload.model.hidden);
  const PassTimes before = matmul_times(c);
  mlp(r, c, r.tokens, real(r.s.workload.model.ffn), 1, real(r.l.tp), false);
  c.closing.tensor = tensor_region(r, c, before);
  if (r.s.workload.model.mlp_output_gate) {
    output_gate(r, c);
    c.closing = PassCost{};  // whose backward pass reads the MLP's result
  }
  // No norm or residual of its own: one more term of the sum, and of the gradient at the norm.
  const bool shared = side_by_side(r.s.workload.model);
  const double one = r.own * h * r.word;
  stream(r, c, one * (shared ? 1 : 5), one * (shared ? 3 : 6));
  if (r.s.workload.model.tanh_gelu && !r.p.compiled) written_gelu(r, c);
  if (!shared) save_hidden(r, c, r.s.workload.lora_mlp);
}

// Host time counted in launches, whose time the host's speed scales.
double in_launches(const Stack& st, Seconds host) { return st.launch.v > 0 ? host / st.launch : 0; }

// `overhead`: host time of the way through the modules. `part`: of a layer
// with attention and an MLP, what is there.
void finish_launches(const Rank& r, LayerCost& c, Seconds overhead, double part) {
  const Stack& st = r.s.stack;
  // What was launched so far are kernels: experts', adapters', of quantisation.
  const double kernels = (r.p.compiled ? st.kernels_compiled : 1) * part;
  const Seconds floor = r.s.kernels.kernel_floor;
  c.forward.memory += floor * (c.forward.launches + st.kernels_forward * kernels);
  c.backward.memory += floor * (c.backward.launches + st.kernels_backward * kernels);
  c.forward.launches += st.launches_forward * r.launches * part;
  c.backward.launches += st.launches_backward * r.launches * part;
  // That way starts no kernel, nor do hooks around every module that gather and release weights,
  // nor the bookkeeping of tensors that are spread.
  double idle = gathers_each_microbatch(st, r.p, r.l) > 0 ? in_launches(st, st.gather_host) : 0;
  if (r.l.tp > 1) {
    idle += st.launches_tensor * (r.p.compiled ? st.tensor_compiled : 1.0) * r.launches * part;
  }
  idle += in_launches(st, overhead) * r.launches * part;
  c.forward.launches += idle;
  c.backward.launches += idle;
}

// A checkpointed block that stops early runs again only up to the last tensor that its backward
// pass reads: the input of the layer's last matmul. That matmul and the reduction of its result are
// skipped (a quarter of a gated layer's FLOPs, a third of a plain one's). Behind experts the
// weighted sum reads their results, so there nothing is skipped.
void skip_closing(LayerCost& c, double layers) {
  c.again.matmul -= c.closing.matmul * layers;
  c.again.matmul_peak -= c.closing.matmul_peak * layers;
  c.again.matmul_draw -= c.closing.matmul_draw * layers;
  c.again.tensor -= c.closing.tensor * layers;
}

// What the plan's recomputation runs again in the backward pass, and what it need not keep: of a
// layer that is recomputed whole, only its input.
void apply_recompute(const Stack& st, const Plan& p, LayerCost& c, Bytes input) {
  const Bytes kept = st.selective_kept > 0 ? input * st.selective_kept : c.kept, all = c.saved;
  if (p.compiled) c.saved = std::max(kept, c.saved * st.saved_compiled);
  const double f = p.recompute == Recompute::kNone ? 0 : p.recompute_layers;
  if (p.recompute == Recompute::kFull) {
    c.again = c.forward * f;
    if (p.early_stop || p.compiled) skip_closing(c, f);  // a compiler drops what nobody needs
    c.working += std::max(c.saved, c.largest_saved) * (f > 0 ? 1.0 : 0.0);
    c.routed_working = c.routed * (f > 0 ? 1.0 : 0.0);
    c.saved = c.saved * (st.saved_kept * (1 - f)) + input * f;
  } else if (p.recompute == Recompute::kSelective) {
    for (const auto part : {&PassCost::matmul, &PassCost::matmul_peak, &PassCost::matmul_draw}) {
      c.again.*part = c.forward.*part * (st.selective_matmul * f) +
                      c.chosen.*part * ((1 - st.selective_matmul) * f);
    }
    // A ring of context ranks goes round again with its attention.
    for (const auto part :
         {&PassCost::attention, &PassCost::attention_peak, &PassCost::scores, &PassCost::context}) {
      c.again.*part = c.forward.*part * (st.selective_attention * f);
    }
    const double merged = std::max(0.0, st.selective_attention - st.selective_memory);
    c.again.memory = (c.forward.memory * st.selective_memory + c.merged * merged +
                      c.chosen.memory * (1 - st.selective_memory)) *
                     f;
    // What was gathered for a matmul is no operator's result that a policy could keep.
    c.again.tensor = c.gathered * (st.selective_memory * f);
    c.again.launches = c.forward.launches * std::max(st.selective_memory, st.selective_matmul) * f;
    c.working += (c.saved - kept) * (f > 0 ? 1.0 : 0.0);
    c.saved = c.saved * (st.saved_kept * (1 - f)) + kept * f;
    if (st.selective_kept > 0) c.routed *= 1 - f;
  } else {
    c.saved *= st.saved_kept;
  }
  c.forward.memory += c.streamed_forward * ((st.kept_traffic - 1) * (1 - f));
  c.backward.memory += c.streamed_backward * ((st.kept_traffic - 1) * (1 - f));
  // Compiled layers are recomputed inside their graph, which the host starts once.
  if (p.compiled) c.again.launches = 0;
  if (p.recompute != Recompute::kNone && !p.compiled && !p.cuda_graphs) {
    const bool chosen = p.recompute == Recompute::kSelective;
    const Seconds wrapped = st.checkpoint_host + (chosen ? st.selective_host : Seconds{});
    c.again.launches += in_launches(st, wrapped) * f;
  }
  // Two layers' worth are on their way to the host or back.
  c.working += c.saved * (kOffloadFlight * p.offload_activations);
  c.parked = c.saved * p.offload_activations;
  c.saved *= 1 - p.offload_activations;
  if (p.recompute == Recompute::kFull) {  // what is kept of a layer that runs again is no expert's
    c.routed *= (1 - f) * (1 - p.offload_activations);
  } else if (all.v > 0) {
    c.routed *= c.saved / all;
  }
}

}  // namespace

double head_dim(const Model& m) {
  if (m.head_dim > 0) return real(m.head_dim);
  return real(m.hidden) / real(std::max<int64_t>(1, m.heads));
}

Seconds way_through(const Setting& s, bool experts) {
  if (!experts) return s.stack.layer_overhead;
  const bool latent = s.workload.model.kv_lora_rank > 0;
  return s.stack.expert_overhead + (latent ? s.stack.latent_overhead : Seconds(0));
}

namespace {

void beside_blocks(const Rank& r, LayerCost& c) {
  const Model& m = r.s.workload.model;
  if (m.layer_embedding > 0) layer_embedding(r, c);
  if (m.residual_streams > 1) residual_streams(r, c);
}

// A layer of a hybrid: the mean of its layers, each with attention, a recurrent mixer or an MLP, or
// two of them. Stages are taken to hold them in the same mixture.
LayerCost hybrid_layer(Rank& r, bool experts) {
  const Model& m = r.s.workload.model;
  const BlockShares shares = block_shares(m);
  LayerCost c;
  using Block = void (*)(const Rank&, LayerCost&);
  const auto add = [&](const char* name, double share, double kept, Block block) {
    LayerCost one;
    if (share <= 0) return one;
    r.layer = name;
    block(r, one);
    add_share(c, one, share, kept);
    return one;
  };
  const LayerCost attention =
      add("attention", shares.attention, shares.attention_kept, attention_block);
  const LayerCost mixer = add("mixer", shares.mixer, 1, mixer_block);
  if (m.own_width > 0) add("own", shares.attention, 1, own_projections);
  const LayerCost mlps =
      add(experts ? "moe" : "mlp", shares.mlp, shares.mlp_kept, experts ? expert_mlp : dense_mlp);
  // An MLP stands beside a mixer in its layer, or is a layer of its own.
  const auto largest = [&](auto of) {
    const auto first = std::max(of(attention), of(mixer));
    return m.mlp_layers > 0 ? std::max(first, of(mlps)) : first + of(mlps);
  };
  c.largest_parameters =
      largest([](const LayerCost& x) { return x.parameters + x.expert_parameters; });
  c.largest_saved = largest([](const LayerCost& x) { return x.saved; });
  beside_blocks(r, c);
  const double part = (shares.attention + shares.mixer + shares.mlp) / 2;
  finish_launches(r, c, way_through(r.s, experts), part);
  return c;
}

LayerCost plain_layer(Rank& r, bool experts) {
  LayerCost c;
  if (r.s.workload.model.encoder_layers > 0) {
    two_sided_attention(r, c);
  } else {
    attention_block(r, c);
  }
  if (experts) {
    expert_mlp(r, c);
  } else {
    dense_mlp(r, c);
  }
  if (const BlockShares shares = block_shares(r.s.workload.model); shares.mlp_kept < 1) {
    c.largest_parameters = c.parameters + c.expert_parameters;  // what a gather brings
    c.parameters *= shares.mlp_kept;
    c.expert_parameters *= shares.mlp_kept;
  }
  if (r.s.workload.model.own_width > 0) own_projections(r, c);
  beside_blocks(r, c);
  finish_launches(r, c, way_through(r.s, experts), 1);
  return c;
}

}  // namespace

MicrobatchCost plain_cost(const Setting& s, const Plan& p, const Layout& l, const Links& links,
                          std::vector<OpRecord>* record) {
  Rank r = make_rank(s, p, l, links);
  r.record = record;
  if (s.workload.model.kind == ModelKind::kDlrm) return dlrm_cost(r);
  MicrobatchCost c;
  const Model& m = s.workload.model;
  const bool hybrid = m.mixer.layers > 0;
  if (m.ffn > 0 || (hybrid && m.experts == 0)) {
    c.dense = hybrid ? hybrid_layer(r, false) : plain_layer(r, false);
  }
  r.layer = "moe";
  if (m.experts > 0) {
    c.moe = hybrid ? hybrid_layer(r, true) : plain_layer(r, true);
    c.moe.closing = PassCost{};
  }
  r.layer = "head";
  r.packed = false;  // embeddings and the head stay in 16 bits
  c.head = head_cost(r);
  // Every further token that is predicted passes the same head.
  const double heads = 1 + predicted_ahead(m);
  c.head.forward = c.head.forward * heads;
  c.head.backward = c.head.backward * heads;
  c.embedding = embedding_cost(r);
  // Every tensor rank sends its share and the receivers gather it inside the node, or all of it.
  const bool whole = s.stack.boundary_whole && !p.sequence_parallel;
  c.boundary = Bytes(r.tokens / (whole ? 1 : real(l.tp)) * real(m.hidden) *
                     std::max(1.0, real(m.residual_streams)) * r.word);
  return c;
}

MicrobatchCost with_recompute(const Stack& stack, const Plan& p, const MicrobatchCost& plain) {
  MicrobatchCost c = plain;
  const Bytes input = c.embedding.saved;
  for (LayerCost* layer : {&c.dense, &c.moe}) {
    const bool present = layer->parameters > 0;
    if (present) apply_recompute(stack, p, *layer, input);
  }
  return c;
}

MicrobatchCost microbatch_cost(const Setting& s, const Plan& p, const Layout& l, const Links& links,
                               std::vector<OpRecord>* record) {
  return with_recompute(s.stack, p, plain_cost(s, p, l, links, record));
}

}  // namespace assay

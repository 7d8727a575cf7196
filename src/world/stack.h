// The software: which kernels are fused, which overlaps really happen, what the host costs, and
// what the framework does where a plan says nothing. Entries of catalog/stacks.yaml; the model
// never asks for a framework's name.
#pragma once

#include "world/fields.h"
#include "world/plan.h"

namespace assay {

// unfused: scores are written to memory; portable: flash attention of the second generation, as
// PyTorch ships it; vendor: the accelerator maker's tuned kernel (cuDNN, aiter, the TPU kernel);
// early: flash attention of the first generation (2022 to mid 2023) and its Triton version;
// operator: as PyTorch's operator chooses, the vendor's kernel where the architecture's
// `operator_since` is stated, else the portable one.
enum class AttentionKernel { kUnfused, kPortable, kVendor, kEarly, kOperator };
constexpr std::array<std::string_view, 5> enum_names(AttentionKernel) {
  return {"unfused", "portable", "vendor", "early", "operator"};
}

// How its programs lay a model out: all degrees by hand, as PyTorch's or DeepSpeed's engine shards
// weights, or by XLA's compiler. What the search tries follows from it, and which stack stands for
// a framework that nobody has heard of.
enum class Sharding { k3d, kFsdp, kZero, kJax };
constexpr std::array<std::string_view, 4> enum_names(Sharding) {
  return {"3d", "fsdp", "zero", "jax"};
}

// What published runs of it did where their tables say nothing. Only `assay validate` reads it: a
// description states its workload and plan.
struct Recipe {
  bool balanced = false;        // routers were forced to balance
  bool predicts_ahead = false;  // multi-token prediction was trained where the model has it
  double chunk_layers = 0;      // layers per interleaved chunk; zero: stages are not cut
  // Micro-batches per stage of a pipeline; zero: as many as there are sequences.
  double stage_microbatches = 0;
  bool balances_stages = false;   // pipelines are cut by the work of layers and head
  bool adapts_mlp = false;        // LoRA adapted the MLP's projections too
  int64_t finetune_document = 0;  // tokens of the documents packed; zero: one fills a sequence
  int64_t stops_early_since = 0;  // year from which recomputed layers stop early; zero: always
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Recipe>
void fields(T& r, V&& visit) {
  visit("balanced", r.balanced, kAny, "pretraining forced routers to balance");
  visit("predicts_ahead", r.predicts_ahead, kAny, "multi-token prediction was trained");
  visit("balances_stages", r.balances_stages, kAny, "stages were cut by layers' and head's work");
  visit("chunk_layers", r.chunk_layers, kNotNegative, "layers per interleaved chunk");
  visit("stage_microbatches", r.stage_microbatches, kNotNegative,
        "micro-batches per pipeline stage; zero: as many as sequences");
  visit("adapts_mlp", r.adapts_mlp, kAny, "LoRA adapted the MLP's projections too");
  visit("finetune_document", r.finetune_document, Limits{0, 1e9},
        "fine-tuning packed documents of so many tokens; zero: one a sequence");
  visit("stops_early_since", r.stops_early_since, Limits{0, 2100},
        "year from which recomputed layers stop early");
}

struct Stack {
  std::string name;
  std::vector<std::string> aliases;  // words in a framework's name that select this stack
  std::vector<std::string> kin;      // words of frameworks without an entry that shard as this does
  Sharding sharding = Sharding::k3d;
  std::string library = "nccl";  // communication library
  Plan defaults;                 // what it does where nothing is stated
  Recipe recipe;

  // Kernels.
  AttentionKernel attention = AttentionKernel::kPortable;
  double matmul_quality = 1;  // over the best library for the device
  // Of what the experts' matmuls cost more one by one than as one perfect kernel.
  double experts_apart = 0.1;
  bool experts_portable = false;  // by PyTorch's grouped kernel, not by a vendor's library
  double traffic = 1;             // bytes moved by memory-bound ops over the fully fused minimum
  double traffic_plain = 0;       // the same for models without a gated MLP; zero: as `traffic`
  double traffic_compiled = 1.8;  // of what the graph compiler fuses, however it was written
  // Where nothing of a layer is run again, over where something is: XLA then writes what backward
  // reads to stacks over the layers, much of it in 32 bits, instead of fusing it away.
  double kept_traffic = 1;
  double score_traffic = 1;     // unfused attention: bytes moved per score over a fused softmax
  bool gathers_masked = false;  // the head sees masked positions only, not all
  double loss_traffic = 16;     // bytes moved per logit, forward and backward
  double loss_compiled = 1;     // share of that left where the compiler covers the loss
  double quantize_traffic = 8;  // bytes moved per element quantised with one scale per tensor
  double quantize_blocks = 10;  // the same with a scale per row or block
  bool casts_tuned = false;     // by kernels that the vendor made for the device
  double optimizer_traffic =
      1.2;                      // bytes moved by the optimizer over reading and writing its state
  double accumulate_bytes = 6;  // moved per parameter and micro-batch to add up gradients
  double cast_bytes = 0;        // the same to cast weights and their gradients, where kept whole
  double expert_copies = 0;     // the same of experts' weights, to lay them out for their kernel

  // LoRA (src/perf/rank.cc).
  bool adapters_apart = false;  // query, key, value, gate and up each have one, not their product
  double adapter_traffic = 1;   // bytes moved over PyTorch's own operators in 16 bits
  double adapter_casts = 0;     // more, per element of an adapter's input and pass
  double unpack_bytes = 18;  // per weight stored below 16 bits, before every matmul of every pass

  bool launch_blocking = false;  // the host waits for each kernel (CUDA_LAUNCH_BLOCKING=1)
  bool pads_matmuls = false;     // rows of odd length are padded to what loads fast (XLA)

  // Selective recompute: the shares of a layer's forward that run again.
  double selective_matmul = 0;
  double selective_attention = 1;
  double selective_memory = 0;
  double selective_kept = 0;       // tensors of model width kept per layer; zero: by those shares
  bool selective_experts = false;  // all the experts' matmuls run again, whatever the others do
  bool selective_latent = false;   // heads of latent attention are made of the latents again

  // Kernels between the matmuls of a layer, each of which takes the device a moment to begin, and
  // the share that the graph compiler leaves.
  double kernels_forward = 18;
  double kernels_backward = 27;
  double kernels_compiled = 0.45;

  // Host.
  double launches_forward = 20;  // per layer, forward
  double launches_backward = 35;
  double launches_moe = 40;        // more, per expert layer and pass
  double launches_expert = 0;      // more, per expert on the rank and pass: no graph captures them
  double launches_quantize = 3;    // more, per matmul and pass, below 16 bits
  double launches_tensor = 4;      // more, per layer and pass, with tensor parallel
  double tensor_compiled = 1;      // share of those left by the graph compiler
  double launches_adapter = 4;     // more, per adapted projection, forward; twice that backward
  double launches_compiled = 0.5;  // share left under the graph compiler
  double launches_graphs = 0.1;    // share left under captured graphs
  Seconds launch{6e-6};            // host time per launch
  Seconds layer_overhead{0};       // per dense layer and pass: the way through its modules
  Seconds expert_overhead{0};      // the same per layer of experts
  Seconds latent_overhead{0};      // more, where its attention is latent
  Seconds gather_host{0};          // zero 3: an engine's hooks, per layer and pass
  Seconds checkpoint_host{0};      // wrapping a layer to run it again, both passes
  Seconds selective_host{0};       // more, where a policy is asked operator by operator
  Seconds step_overhead{0};        // per optimizer step: logging, gradient norm, synchronisation
  Seconds step_layer{0};           // the same per layer: clipping and optimizer walk its tensors
  double hand_loss = 0;            // share of the step lost around it in runs set up by hand
  double offload_threads = 1;      // host threads per rank that step an offloaded optimizer

  // Overlap: the share of an overlappable transfer that the stack really hides.
  double overlap_grad = 0.9;
  double overlap_param = 0.9;
  double overlap_tp = 0.5;
  double overlap_tp_backward = 0.5;  // of backward's reductions, under weight-gradient matmuls
  double overlap_context = 0.9;
  double overlap_pipeline = 0;
  double overlap_expert = 0.7;
  double contention = 0.1;         // computation lost per second of hidden transfer
  double gradient_comm_bytes = 4;  // per parameter on the wire
  double weight_comm_bytes = 2;
  double weight_comm_narrow = 0;  // the same of layers multiplied in 8 bits; zero: likewise
  // zero 3: weights of a layer that one collective gathers at most, but never less than a matrix;
  // 0: all of them.
  double gather_bucket = 0;
  double gather_copy = 0;         // zero 3: bytes moved per parameter gathered, beside the wire
  double scatter_copy = 0;        // zero 3: bytes moved per gradient reduced, beside the wire
  double bucket_copy = 0;         // zero 0: bytes moved per byte of gradient on the wire
  bool scatter_gradients = true;  // zero 1 and 2: each rank gets its part, not the whole sum
  bool pair_tree = true;          // an all-reduce between two nodes may run as a tree
  // Sequence parallel: keeps its part of a layer's input and gathers it once more for the weights'
  // gradient, under the input's own.
  bool gathers_again = false;
  bool gathers_narrow = false;  // what narrow matmuls read travels as they read it
  // Sequence parallel: times that the whole tensor is read and written around the exchanges of one
  // region, by copies and sums of gradients; and the share left by the graph compiler.
  double tensor_copies_forward = 0;
  double tensor_copies_backward = 0;
  double tensor_copies_compiled = 1;
  bool fused_latent = false;  // one kernel each turns queries and keys of latent attention
  bool experts_fold = true;   // beside expert ranks, tensor ranks hold whole experts
  bool boundary_whole = false;  // stages send whole inputs from every tensor rank, unless split by
                                // sequence parallel
  bool expert_dedup = false;  // a token travels once to each rank or node, not to each expert
  // Copies (a read and a write) of the routed tokens on their way to the experts and back: around
  // an exchange, where every expert is at hand, and backward over forward. As plain PyTorch takes
  // on one H200 (test/data/h200_permute.csv).
  double permute_passes = 7;
  double permute_local = 5;
  double permute_backward = 1.65;
  double permute_compiled = 1;  // share of these copies that the graph compiler leaves
  bool dispatch_masks = false;  // slots of fixed capacity are filled by matmuls with one-hot masks
  int64_t vocab_multiple = 1;   // of which each tensor rank's share of the vocabulary is one
  // Bytes per routed token and element of an expert's width, all passes, where experts have biases
  // and a clamped gate that no kernel fuses.
  double expert_bias_traffic = 0;
  double expert_bias_compiled = 1;  // share of it that the graph compiler leaves
  // Bytes per token and element of the MLP's width, all passes, where the model's GELU by tanh is a
  // formula of separate operations; zero: one kernel.
  double gelu_traffic = 0;
  // Norms of queries and keys, where a model has them, in copies: one reads and writes them once.
  // One kernel each where they are compiled.
  static constexpr double kHeadNormForward = 1.1, kHeadNormBackward = 2.4;
  double head_norm_forward = kHeadNormForward;
  double head_norm_backward = kHeadNormBackward;

  // Memory: docs/models/memory.md.
  double weight_bytes = 2;  // per parameter, resident
  double gradient_bytes = 4;
  double optimizer_bytes = 12;       // master copy and two moments
  double gradient_bytes_fp16 = 2;    // in fp16 gradients add up in 16 bits,
  double optimizer_bytes_fp16 = 16;  // and are cast to 32 beside the optimizer's shard
  bool gradients_resident = true;    // buffers live through the whole step
  bool gradients_apart = false;      // their memory is of another stream's pool: reserved all step
  bool gathered_ends = false;        // zero 3: embedding and head stay gathered through the step
  double gathered_limit = 0;         // zero 3: parameters gathered at once; zero: two whole layers
  double saved_hidden = 5;  // 16-bit tensors of model width saved per layer, beside q, k, v, o
  double saved_plain = 0;   // the same of models without a gated MLP; zero: as `saved_hidden`
  double saved_frozen = 0;  // the same of frozen layers beside what adapters read; zero: likewise
  double saved_ffn = 3;     // tensors of MLP width saved per layer, two of a gated MLP's matmuls
  double saved_head_norm = 1;        // queries and keys before their norms
  double saved_gelu = 0;             // more, where the model's GELU by tanh is written out
  double saved_scores = 5;           // bytes per score of unfused attention
  double saved_dispatch = 2;         // copies of routed tokens saved per expert layer
  bool saved_gathered = false;       // inputs gathered from tensor ranks stay whole
  bool saved_quantised = false;      // inputs of 8-bit matmuls are kept in 8 bits
  bool expand_kv = false;            // keys and values are repeated to all heads before attention
  bool fused_qkv = false;            // attention reads a view of the fused projection: it stays
  double saved_compiled = 0.85;      // saved activations left under the graph compiler
  double saved_kept = 1;             // times those where nothing of a layer is run again
  double saved_outputs = 0;          // stage outputs kept per micro-batch in flight
  double logits_bytes = 6;           // per logit at the peak
  double logits_bytes_compiled = 6;  // the same with a compiled loss
  double logits_bytes_masked = 0;    // the same of encoders; zero: as `logits_bytes`
  int64_t loss_chunks = 1;           // parts of the sequence that head and loss run in, one by one
  double residual_bytes = 2;         // per element of a layer's input
  double weight_copies = 0;          // bytes per weight of copies: autocast's, or in 8 bits (see
                                     // saved_quantised)
  double optimizer_scratch = 0;      // share of its state that the optimizer's step takes once more
  bool logits_whole = false;         // tensor ranks gather the logits before the loss
  bool gradients_whole = false;      // micro-batches add up gradients that are not sharded
  int64_t experts_whole = 0;  // expert degree from which experts are not sharded besides; 0: never
  bool reentrant_checkpoints = false;  // a recomputed layer's backward pass is nested in another
  // Fused accumulation still owes autograd a 16-bit gradient of each shape, and keeps it for good.
  bool placeholder_gradients = false;
  Bytes framework_memory{1.5e9};         // workspaces and what else the allocator counts
  Bytes outside_memory{0};               // communicators, which it does not count
  double fragmentation = 1.06;           // reserved over allocated
  double fragmentation_gathered = 1.06;  // the same where weights are gathered (zero 3)
  double graph_memory = 1;               // held by captured graphs, over allocated

  // Uncertainty and scale.
  double jitter = 0.004;  // slow-down per doubling of nodes: the slowest of many
  double spread = 0.2;    // 90 % half-width of held-out errors, natural logarithm
  // Host time of an expert layer and pass where no graph is captured, as slow as it was seen; the
  // slow end of a range holds it. With latent attention more.
  Seconds expert_host, expert_host_latent;
};

// The part of fields() that memory.h reads.
template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Stack>
void memory_fields(T& s, V& visit) {
  visit("weight_bytes", s.weight_bytes, kNotNegative, "resident bytes per parameter");
  visit("gradient_bytes", s.gradient_bytes, kNotNegative, "bytes per parameter");
  visit("optimizer_bytes", s.optimizer_bytes, kNotNegative, "bytes per parameter");
  visit("gradient_bytes_fp16", s.gradient_bytes_fp16, kNotNegative, "the same in fp16");
  visit("optimizer_bytes_fp16", s.optimizer_bytes_fp16, kNotNegative, "the same in fp16");
  visit("gradients_resident", s.gradients_resident, kAny, "gradient buffers live all step");
  visit("gradients_apart", s.gradients_apart, kAny, "gradients stay reserved all step");
  visit("gathered_ends", s.gathered_ends, kAny, "zero 3: embedding and head stay gathered");
  visit("gathered_limit", s.gathered_limit, kNotNegative, "zero 3: parameters gathered at once");
  visit("saved_hidden", s.saved_hidden, kNotNegative, "saved tensors of model width per layer");
  visit("saved_plain", s.saved_plain, kNotNegative, "for ungated models; 0: as saved_hidden");
  visit("saved_frozen", s.saved_frozen, kNotNegative, "of frozen layers; 0: as saved_hidden");
  visit("saved_head_norm", s.saved_head_norm, kNotNegative, "queries and keys before their norms");
  visit("saved_gelu", s.saved_gelu, kNotNegative, "more of a GELU by tanh that is written out");
  visit("saved_scores", s.saved_scores, kNotNegative, "bytes per score of unfused attention");
  visit("saved_ffn", s.saved_ffn, kNotNegative, "saved tensors of MLP width per layer");
  visit("saved_dispatch", s.saved_dispatch, kNotNegative, "saved copies of routed tokens");
  visit("saved_gathered", s.saved_gathered, kAny, "inputs gathered from tensor ranks stay whole");
  visit("saved_quantised", s.saved_quantised, kAny, "8-bit matmul inputs are kept in 8 bits");
  visit("expand_kv", s.expand_kv, kAny, "keys and values repeated to all heads");
  visit("fused_qkv", s.fused_qkv, kAny, "the projection of q, k and v stays beside them");
  visit("saved_compiled", s.saved_compiled, Limits{0.1, 2}, "saved activations left when compiled");
  visit("saved_kept", s.saved_kept, Limits{1, 10}, "times those where nothing is run again");
  visit("saved_outputs", s.saved_outputs, kNotNegative, "stage outputs kept per micro-batch");
  visit("logits_bytes", s.logits_bytes, kNotNegative, "bytes per logit at the peak");
  visit("logits_bytes_compiled", s.logits_bytes_compiled, kNotNegative, "with a compiled loss");
  visit("logits_bytes_masked", s.logits_bytes_masked, kNotNegative, "of encoders; 0: the same");
  visit("loss_chunks", s.loss_chunks, Limits{1, 100000},
        "parts that head and loss run in: so many times fewer logits are held at once");
  visit("residual_bytes", s.residual_bytes, Limits{1, 8}, "per element of a layer's input");
  visit("weight_copies", s.weight_copies, kNotNegative,
        "bytes per weight of its copies: autocast's, with saved_quantised those of 8-bit matmuls");
  visit("optimizer_scratch", s.optimizer_scratch, Limits{0, 2}, "of its state, while it steps");
  visit("logits_whole", s.logits_whole, kAny, "tensor ranks gather logits before the loss");
  visit("gradients_whole", s.gradients_whole, kAny, "zero 2, 3: they add up before being sharded");
  visit("experts_whole", s.experts_whole, Limits{0, 1e6},
        "ep from which experts are not sharded besides; zero: never");
  visit("reentrant_checkpoints", s.reentrant_checkpoints, kAny,
        "fsdp holds a frozen layer's input and its gradient until backward ends");
  visit("placeholder_gradients", s.placeholder_gradients, kAny, "a 16-bit one of each shape");
  visit("framework_memory", s.framework_memory, kNotNegative, "workspaces, buffers");
  visit("outside_memory", s.outside_memory, kNotNegative, "communicators, not in the allocator");
  visit("fragmentation", s.fragmentation, Limits{1, 4}, "reserved over allocated memory");
  visit("fragmentation_gathered", s.fragmentation_gathered, Limits{1, 4}, "the same with zero 3");
  visit("graph_memory", s.graph_memory, Limits{1, 4},
        "memory that captured graphs hold over what is allocated");
}

template <class T, class V>
void exchange_fields(T& s, V&& visit) {
  visit("overlap_grad", s.overlap_grad, kFraction, "gradient traffic hidden when overlapped");
  visit("overlap_param", s.overlap_param, kFraction, "parameter traffic hidden when overlapped");
  visit("overlap_tp", s.overlap_tp, kFraction, "tensor traffic hidden when overlapped");
  visit("overlap_tp_backward", s.overlap_tp_backward, kFraction, "backward's reductions hidden");
  visit("overlap_context", s.overlap_context, kFraction, "context traffic hidden under attention");
  visit("overlap_pipeline", s.overlap_pipeline, kFraction, "point-to-point traffic hidden");
  visit("overlap_expert", s.overlap_expert, kFraction, "all-to-all hidden when overlapped");
  visit("contention", s.contention, kFraction, "compute lost per second of hidden transfer");
  visit("gradient_comm_bytes", s.gradient_comm_bytes, kNotNegative, "per parameter on the wire");
  visit("weight_comm_bytes", s.weight_comm_bytes, kNotNegative, "per parameter on the wire");
  visit("weight_comm_narrow", s.weight_comm_narrow, kNotNegative,
        "of layers multiplied in 8 bits; 0: likewise");
  visit("gather_bucket", s.gather_bucket, kNotNegative, "parameters that one collective gathers");
  visit("gather_copy", s.gather_copy, kNotNegative, "bytes copied per parameter gathered");
  visit("scatter_copy", s.scatter_copy, kNotNegative, "bytes copied per gradient reduced");
  visit("bucket_copy", s.bucket_copy, kNotNegative, "DDP: bytes copied per byte of gradient sent");
  visit("scatter_gradients", s.scatter_gradients, kAny, "zero 1, 2 reduce-scatter gradients");
  visit("pair_tree", s.pair_tree, kAny, "all-reduce between two nodes may be a tree");
  visit("gathers_narrow", s.gathers_narrow, kAny, "inputs of narrow matmuls travel quantised");
  visit("gathers_again", s.gathers_again, kAny, "inputs kept in parts, gathered again backward");
  visit("tensor_copies_forward", s.tensor_copies_forward, kNotNegative,
        "copies around a tensor-parallel region, forward");
  visit("tensor_copies_backward", s.tensor_copies_backward, kNotNegative, "the same backward");
  visit("tensor_copies_compiled", s.tensor_copies_compiled, kFraction, "share left when compiled");
  visit("fused_latent", s.fused_latent, kAny, "latent queries and keys turned by one kernel each");
  visit("experts_fold", s.experts_fold, kAny, "with ep, tensor ranks hold whole experts (etp 1)");
  visit("boundary_whole", s.boundary_whole, kAny,
        "without sequence parallel every tensor rank sends a stage's whole output");
  visit("expert_dedup", s.expert_dedup, kAny, "a token travels once to each rank or node");
  visit("permute_passes", s.permute_passes, kNotNegative, "copies of routed tokens per exchange");
  visit("permute_local", s.permute_local, kNotNegative, "the same where experts are not spread");
  visit("permute_backward", s.permute_backward, kNotNegative, "the same backward over forward");
  visit("permute_compiled", s.permute_compiled, kFraction, "share of these left when compiled");
  visit("dispatch_masks", s.dispatch_masks, kAny, "fixed capacity is filled by one-hot matmuls");
}

template <class T, class V>
void host_fields(T& s, V&& visit) {
  visit("kernels_forward", s.kernels_forward, kNotNegative, "kernels between a layer's matmuls");
  visit("kernels_backward", s.kernels_backward, kNotNegative, "the same backward");
  visit("kernels_compiled", s.kernels_compiled, kFraction, "share of these left when compiled");
  visit("launches_forward", s.launches_forward, kNotNegative, "launches per layer, forward");
  visit("launches_backward", s.launches_backward, kNotNegative, "launches per layer, backward");
  visit("launches_moe", s.launches_moe, kNotNegative, "more per expert layer and pass");
  visit("launches_expert", s.launches_expert, kNotNegative, "more per expert on the rank and pass");
  visit("launches_quantize", s.launches_quantize, kNotNegative, "more per 8-bit matmul and pass");
  visit("launches_tensor", s.launches_tensor, kNotNegative, "more per layer and pass with tp");
  visit("tensor_compiled", s.tensor_compiled, kFraction, "share of these left when compiled");
  visit("launches_compiled", s.launches_compiled, kFraction, "share left when compiled");
  visit("launches_graphs", s.launches_graphs, kFraction, "share left under captured graphs");
  visit("launches_adapter", s.launches_adapter, kNotNegative, "more per adapted projection");
  visit("launch", s.launch, kNotNegative, "host time per launch");
  visit("layer_overhead", s.layer_overhead, kNotNegative, "host time per dense layer and pass");
  visit("expert_overhead", s.expert_overhead, kNotNegative, "host time per expert layer and pass");
  visit("latent_overhead", s.latent_overhead, kNotNegative, "more with latent attention");
  visit("gather_host", s.gather_host, kNotNegative, "host time per layer and pass, zero 3");
  visit("checkpoint_host", s.checkpoint_host, kNotNegative, "host time per recomputed layer");
  visit("selective_host", s.selective_host, kNotNegative,
        "more where operators are chosen to run again");
  visit("step_overhead", s.step_overhead, kNotNegative, "host time per optimizer step");
  visit("step_layer", s.step_layer, kNotNegative, "the same per layer: its tensors one by one");
  visit("hand_loss", s.hand_loss, Limits{0, 0.5}, "lost around the step when run by hand");
}

template <class T, class V>
void range_fields(T& s, V& visit) {
  visit("jitter", s.jitter, kFraction, "slow-down per doubling of nodes");
  visit("expert_host", s.expert_host, kNotNegative,
        "slowest host time seen per expert layer and pass without captured graphs; zero: none");
  visit("expert_host_latent", s.expert_host_latent, kNotNegative, "with latent attention");
  visit("spread", s.spread, Limits{0, 2}, "90 % half-width of held-out errors, logarithm");
}

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Stack>
void fields(T& s, V&& visit) {
  visit("aliases", s.aliases, kAny, "words that select this stack");
  visit("kin", s.kin, kAny, "words of frameworks without an entry that shard as this does");
  visit("sharding", s.sharding, kAny,
        "how it lays out a model: all degrees, or as an engine shards");
  visit("library", s.library, kAny, "communication library");
  visit("defaults", s.defaults, kAny, "plan settings where nothing is stated");
  visit("recipe", s.recipe, kAny, "what published runs did where they say nothing");
  visit("attention", s.attention, kAny, "attention kernel");
  visit("matmul_quality", s.matmul_quality, Limits{0.01, 2}, "over the best library");
  visit("experts_apart", s.experts_apart, kFraction,
        "experts' matmuls: 0.1 in one kernel, 0.6 over four streams, 0.95 one by one");
  visit("experts_portable", s.experts_portable, kAny, "experts by PyTorch's grouped kernel");
  visit("traffic", s.traffic, kPositive, "memory-bound traffic over the fused minimum");
  visit("traffic_plain", s.traffic_plain, kNotNegative, "for ungated models; 0: as traffic");
  visit("traffic_compiled", s.traffic_compiled, Limits{0.9, 1000},
        "compiled layers: traffic over the fused minimum");
  visit("kept_traffic", s.kept_traffic, Limits{1, 10},
        "times memory-bound traffic where nothing of a layer is run again");
  visit("score_traffic", s.score_traffic, kPositive, "unfused attention, over a fused softmax");
  visit("gathers_masked", s.gathers_masked, kAny, "head on masked positions only");
  visit("loss_traffic", s.loss_traffic, kNotNegative, "bytes per logit, forward and backward");
  visit("loss_compiled", s.loss_compiled, kFraction, "share of it left when compiled");
  visit("quantize_traffic", s.quantize_traffic, kNotNegative, "bytes per quantised element");
  visit("quantize_blocks", s.quantize_blocks, kNotNegative, "the same with scales per block");
  visit("casts_tuned", s.casts_tuned, kAny, "quantised by the vendor's kernels for the device");
  visit("optimizer_traffic", s.optimizer_traffic, kPositive, "over reading and writing the state");
  visit("accumulate_bytes", s.accumulate_bytes, Limits{0, 1e4},
        "to add up gradients, per parameter");
  visit("expert_copies", s.expert_copies, Limits{0, 1e4},
        "to lay out experts' weights and gradients for their kernel, per parameter");
  visit("cast_bytes", s.cast_bytes, Limits{0, 1e4},
        "to cast weights and gradients where weights are not gathered, per parameter");
  visit("adapters_apart", s.adapters_apart, kAny, "an adapter each for q, k, v, gate and up");
  visit("adapter_traffic", s.adapter_traffic, kPositive, "over PyTorch's operators in 16 bits");
  visit("adapter_casts", s.adapter_casts, kNotNegative, "bytes per element of an adapter's input");
  visit("unpack_bytes", s.unpack_bytes, kNotNegative, "to unpack a weight below 16 bits");
  visit("pads_matmuls", s.pads_matmuls, kAny, "rows are padded to a length that loads fast");
  visit("launch_blocking", s.launch_blocking, kAny, "the host waits for every kernel it starts");
  visit("selective_matmul", s.selective_matmul, kFraction, "matmuls run again by selective");
  visit("selective_attention", s.selective_attention, kFraction, "attention run again by it");
  visit("selective_memory", s.selective_memory, kFraction,
        "memory-bound ops run again by selective");
  visit("selective_kept", s.selective_kept, kNotNegative,
        "tensors of model width that selective keeps per layer; 0: by those shares");
  visit("selective_experts", s.selective_experts, kAny, "it runs all experts' matmuls again");
  visit("selective_latent", s.selective_latent, kAny, "it makes latent attention's heads again");
  host_fields(s, visit);
  visit("offload_threads", s.offload_threads, Limits{1, 1024},
        "host threads per rank that step an offloaded optimizer");
  exchange_fields(s, visit);
  visit("vocab_multiple", s.vocab_multiple, Limits{1, 65536},
        "each tensor rank's share of the vocabulary is padded to a multiple of it");
  visit("expert_bias_traffic", s.expert_bias_traffic, kNotNegative,
        "bytes per element where experts have biases and a clamped gate");
  visit("expert_bias_compiled", s.expert_bias_compiled, kFraction, "share left when compiled");
  visit("gelu_traffic", s.gelu_traffic, kNotNegative,
        "bytes per MLP element of a GELU by tanh that is written out; zero: one kernel");
  visit("head_norm_forward", s.head_norm_forward, kNotNegative,
        "copies of queries and keys that their norms take");
  visit("head_norm_backward", s.head_norm_backward, kNotNegative, "the same backward");
  memory_fields(s, visit);
  range_fields(s, visit);
}

}  // namespace assay

// Time of the attention core (scores, softmax, weighted values) of one layer on one rank.
// docs/models/attention.md has the equation, the parameters, their sources and the measured error.
#pragma once

#include "perf/matmul.h"
#include "world/stack.h"

namespace assay {

struct AttentionShape {
  int64_t batch = 1;
  int64_t heads = 1;    // on this rank
  double qk_dim = 128;  // head size of queries and keys
  double v_dim = 128;
  double documents = 1;  // packed into each sequence, of one size; fused kernels only
  double queries = 0;    // tokens per document on this rank
  double keys = 0;       // tokens they attend to, before the causal mask and the window
  double steps = 1;      // a ring's: blocks of keys that arrive one after the other
  bool causal = true;
  bool window = false;  // all keys of a window, which masks at both of its ends
  Precision precision = Precision::kBf16;
  double score_traffic = 1;  // Stack::score_traffic
  double saved_scores = 5;   // Stack::saved_scores
};

struct AttentionTime {
  Seconds forward, backward;
  Flops flops;  // forward, causal part only; backward does 2.5 times as much
  Bytes saved;  // scores that an unfused kernel keeps for the backward pass
  // Of the times, what an unfused kernel spends on moving scores: bound by memory, not by clocks.
  Seconds scores_forward, scores_backward;
};

AttentionTime attention_time(const AttentionShape&, AttentionKernel, const Accelerator&,
                             const Kernels&);

}  // namespace assay

// A plan made concrete: every degree filled in, who sits where, who talks to whom.
//
// Ranks are numbered as the public 3D frameworks do: tensor fastest, then context, then data, and
// pipeline slowest. So a tensor group sits inside a node whenever it fits, and pipeline neighbours
// are as far apart as possible.
#pragma once

#include "perf/collective.h"
#include "world/setting.h"

namespace assay {

struct Layout {
  int64_t ranks = 1;
  int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1, dp = 1;
  int64_t micro_batch = 1;
  int64_t microbatches = 1;  // per pipeline and optimizer step
  int64_t ends = 1;          // from which a pipeline is fed; of two, each gets `microbatches`
  int64_t shard = 1;         // ranks that share one copy of what zero shards
  Group tensor, context, expert, expert_tensor, pipeline;
  Group data;           // dp x cp: gradients of dense parameters
  Group data_expert;    // gradients of expert parameters
  Group shard_group;    // gathers and reduce-scatters of FSDP
  Group replica_group;  // the all-reduce between copies of HSDP
  // The same for expert parameters: only ranks that hold the same experts share a copy of them.
  Group shard_expert, replica_expert;
};

// The cluster's links as the stack's collectives library uses them.
Links links_of(const Setting&);

// Whether a rank that shards gradients (zero 2 and 3) adds them up whole over the micro-batches and
// reduces them once a step: some software asks for it, and every pipeline schedule does.
bool adds_up_whole(const Stack&, const Plan&, const Layout&);

// Load of the busiest rank of an expert group over the mean: as stated, or as routers balance that
// are left alone (docs/models/step.md). 1 where experts are not spread, or have a fixed capacity.
double load_skew(const Setting&, const Plan&, const Layout&);

// Whether experts stand outside what is sharded: their ranks hold them whole.
bool experts_whole(const Stack&, const Layout&);

// Passes over one micro-batch under which the weights of a chunk have time to arrive, where they
// are gathered once a step: those of the chunks before it, a round of micro-batches each.
double passes_ahead(const Plan&, const Layout&);

// How often a micro-batch gathers the weights of a layer that are sharded: before both passes under
// zero 3; once under FSDP's zero 2, which frees them after the backward pass; else never, as they
// stay, or are gathered once a step.
int gathers_each_microbatch(const Stack&, const Plan&, const Layout&);

// Ranks that share an expert: as stated, else by the stack's rule, where the ranks allow it.
int64_t expert_tensor(const Setting&, const Plan&);

// REQUIRES: the plan is possible for the setting.
Layout make_layout(const Setting&, const Plan&);

}  // namespace assay

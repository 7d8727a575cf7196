// What a job makes of its time while some of its data-parallel groups are away: the step predicted
// again for every size that can occur, before the run starts.
//
// A group is what holds the whole model once: tp x pp x cp accelerators, and with experts as many
// as hold all of them. A replica of an elastic job is one or more whole groups on whole nodes, and
// keeps a copy of the optimizer, too: what zero shards is sharded inside the replica.
#pragma once

#include "perf/predict.h"
#include "sim/run.h"
#include "world/operations.h"

namespace assay {

// Accelerators of the smallest set that holds the whole model.
int64_t group_accelerators(const Plan&);

// Nodes of the smallest replica: whole groups on whole nodes.
int64_t replica_nodes(const Plan&, int64_t accelerators_per_node);

// The plan of a job whose optimizer is sharded inside each of `replicas`; the plan itself where it
// says how, or where nothing is sharded.
Plan elastic_plan(const Plan&, int64_t dp, int64_t replicas);

// Group sizes from `least` to `dp` data-parallel ranks, every `stride`, by share; at most some
// dozens. `shrink`: a rank keeps its share of the batch. `keep`: the rest takes over what is
// missing, rounded up to whole micro-batches. Sizes that cannot be predicted are left out; empty
// where `dp` cannot be.
std::vector<GroupPoint> group_steps(const Setting&, const Plan&, int64_t dp, int64_t least,
                                    double stride, ElasticBatch);

}  // namespace assay

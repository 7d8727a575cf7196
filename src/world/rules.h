// What Assay does where a description says nothing, and what it refuses although every single value
// is within its limits. Each rule notes what it assumed and why.
#pragma once

#include <functional>
#include <optional>

#include "config/value.h"
#include "world/describe.h"

namespace assay {

// Collects assumptions, with an origin marked `a` for each.
class Assumptions {
 public:
  Assumptions(std::vector<Assumption>& list, Origins& origins) : list_(list), origins_(origins) {}
  void add(const std::string& path, std::string value, std::string why);
  bool stated(const std::string& path) const { return origins_.contains(path); }
  // The file that states it; empty: none.
  std::string file(const std::string& path) const {
    const auto found = origins_.find(path);
    return found == origins_.end() ? "" : found->second.file;
  }

 private:
  std::vector<Assumption>& list_;
  Origins& origins_;
};

// Fills sequence, batch and tokens. REQUIRES: a model that check_model finds nothing wrong with.
void complete_workload(Workload&, Assumptions&);

// The batch next to `usual` that so many accelerators can be given equal parts of: see rules.cc.
int64_t divisible_batch(int64_t usual, const std::vector<int64_t>& accelerators);
// The same for an assumed batch; a stated one stays.
void fit_batch(Workload&, const std::vector<int64_t>& accelerators, std::vector<Assumption>&,
               Origins&);

// Warnings where a Hugging Face config.json describes more, or other, than the model that is read.
Diagnostics left_out_of_config(const std::string& text, const std::string& file);

// Fills in what a node lacks that was described by hand, and what joins nodes where nobody said;
// true if it put a fabric there. What is stated of the fabric is for the caller to lay over it.
bool connect_nodes(Cluster&, const Catalog&, const Value& stated, Assumptions&);
// Fills price and facility, and what follows from the fabric.
void complete_cluster(Cluster&, const Catalog&, Assumptions&);

// Imagines enough of the same nodes for so many accelerators. A single node has no fabric: it gets
// the one that such nodes usually have. False where nothing can join them: no NICs.
bool grow_cluster(Cluster&, int64_t accelerators, const Catalog&);

// Whether the accelerator computes in this format. fp32 all do: those without units for it take
// several passes of a narrower one.
bool supports(const Accelerator&, Precision);
// The format where nobody stated one: `wanted` (the stack's), or the nearest that there is.
Precision usable_precision(const Accelerator&, Precision wanted);
// `fp32, fp16`
std::string supported_precisions(const Accelerator&);

// The stack that clusters of this vendor usually run; null when the catalog has none at all.
const Stack* default_stack(const Accelerator&, ModelKind, const Catalog&);

// What to run in place of a stack that does not run on this accelerator: one whose communication
// library its usual stack has, sharding alike where there is one. Null where it runs, or where
// nobody knows: no maker, or a library that is nobody's in the catalog.
const Stack* stack_instead(const Stack&, const Accelerator&, const Catalog&);

// The node that an accelerator usually sits in; null when the catalog has none.
const Node* usual_node(const std::string& accelerator, const Catalog&);

// Contradictions. `stated` is the mapping that says it; each is placed at the key that is at fault,
// of several at the one stated last (a --set after a file), else at the whole.
void check_model(const Model&, const std::string& path, const Value& stated, Diagnostics&);
void check_workload(const Workload&, const Mark& at, Diagnostics&);
void check_cluster(const Cluster&, const Value& stated, Diagnostics&);
// Warnings of figures that are likely in another unit, or of something else.
Diagnostics doubts_of_cluster(const Cluster&, const Catalog&, const Value& stated);

// Where a model's fields are stated, for texts that call them otherwise: a config.json.
struct ModelPlaces {
  Mark whole;
  std::function<const Value*(std::string_view field)> find;  // null: not stated
  std::function<std::string(std::string_view field)> name;   // as messages call it
  std::function<std::string(std::string_view field)> add;    // as it is written: `heads: N`
};
void check_model(const Model&, const std::string& path, const ModelPlaces&, Diagnostics&);

// Several nodes of which `stated` itself says that nothing joins them. Before complete_cluster,
// which takes a fabric of one node for one that nobody stated.
void check_fabric(const Cluster&, const Value& stated, Diagnostics&);

}  // namespace assay

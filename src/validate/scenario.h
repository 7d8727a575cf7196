// From a run as written to something the model can predict: a Setting and a Plan, with everything
// that was not stated filled in from the catalog, the stack's defaults or a rule, and said in
// `assumed`.
//
// The rules, in the order they apply:
//   accelerator  by any of its names; memory stated beside it picks or corrects the variant.
//   stack        a word of the framework's name that a stack lists as alias; the longest wins. An
//                unknown name goes to the nearest stack by how it shards (3d, fsdp, zero, jax).
//   model        the row's shape; what it leaves blank from the catalog model of that name when the
//                width agrees, else by convention.
//   cluster      the reference node of that accelerator; ports and transport from the link's text.
//   plan         stated cells over remarks over the stack's defaults; degrees must multiply out.
// No rule asks which source or row it reads.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "validate/cells.h"
#include "validate/run.h"
#include "world/setting.h"

namespace assay {

enum class RunStatus { kOk, kOom, kIncomplete, kUnsupported };
constexpr std::array<std::string_view, 4> enum_names(RunStatus) {
  return {"ok", "oom", "incomplete", "unsupported"};
}

struct Refusal {
  RunStatus status = RunStatus::kUnsupported;
  std::string reason;
  std::string column;  // the cell that is to blame, by its column's name; empty: the whole row
  std::string fix;
};

// What kind of training a run is; each run is of exactly one, the first that holds in this order.
enum class RunClass { kLora, kMoe, kLongContext, kFsdp, kDense };
constexpr std::array<std::string_view, 5> enum_names(RunClass) {
  return {"LoRA", "MoE", "long context", "FSDP", "dense 3D"};
}

// Which counter a measured peak is, so that the prediction is printed in the same.
struct MemoryCounter {
  bool reserved = false;  // else allocated
  bool device = false;    // what the driver shows: reserved, and what no allocator holds
  Bytes unit = kGB;       // what one of the column's figures stands for
};

struct Scenario {
  Setting setting;
  Plan plan;
  RunClass kind = RunClass::kDense;
  MemoryCounter counter;
  bool recompute_stated = false;
  std::vector<std::string> assumed;
};

tl::expected<Scenario, Refusal> to_scenario(const Run&, const Catalog&);

// The parts, exposed for tests.
struct StackChoice {
  const Stack* stack = nullptr;
  const Stack* code = nullptr;  // whose model code it runs, where that is another's
  std::string assumed;          // why, where the framework's name did not decide
  bool unknown = false;         // nor anything else that says how it shards
};
// `hybrid`: some of the model's layers mix tokens by a recurrence.
StackChoice choose_stack(const Run&, const Accelerator&, const Catalog&, bool hybrid = false);
// How weights are sharded, by the cell, else by the framework's name.
ShardingCell stated_sharding(const Run&);
const Accelerator* choose_accelerator(const Run&, const Catalog&);
// Where the cell names an architecture and no part of it.
const Accelerator* usual_accelerator(const Run&, const Catalog&);
tl::expected<Model, Refusal> choose_model(const Run&, const Catalog&,
                                          std::vector<std::string>& assumed);
// Adds to `assumed` the word of a part's cell that makes it another part than the one it was found
// as.
void tell_unread_part(const Accelerator&, const std::string& gpu,
                      std::vector<std::string>& assumed);
Cluster choose_cluster(const Run&, const Accelerator&, const Catalog&,
                       std::vector<std::string>& assumed);
MemoryCounter choose_counter(const Run&);
int year_of(const std::string& date);  // zero: none is named
// Whether a date is of `first` (`2025-09`) or later; of other forms (`May 2024`) only by its year.
bool dated_from(const std::string& date, std::string_view first);

}  // namespace assay

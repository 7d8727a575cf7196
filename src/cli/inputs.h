// From operands to descriptions: names, YAML files, results of earlier commands.
#pragma once

#include <functional>

#include "cli/context.h"
#include "cli/gate.h"

namespace assay {

// Why a description was refused: the command line, the input, or the world.
struct InputRefusal {
  UsageErrors usage;              // where not empty
  Diagnostics problems;           // where not empty
  std::vector<Failure> failures;  // where not empty

  bool any() const { return !usage.empty() || !problems.empty() || !failures.empty(); }
};
// All of it, at once.
int refuse(const Context&, const InputRefusal&);
// What else a command finds wrong with a description that was read, perhaps in part.
using FurtherProblems = std::function<Diagnostics(const DescribeAttempt&)>;
// What is wrong with a description, although other words of the command line may be wrong, too:
// what reading it shows and, as far as it can be planned, what `further` finds.
InputRefusal description_refusal(const Arguments&, const std::vector<std::string>& inputs,
                                 const std::function<void(Request&)>& needs,
                                 const FurtherProblems& further = {});
// Adds problems, but for those at a place of which something is wrong already.
void add_further(Diagnostics& problems, const Diagnostics& further);
// Adds what another description was refused for; what both say is said once.
void merge(InputRefusal& into, const InputRefusal& more);

// A description from operands: one result file (or the part of it that `which` names), or names and
// YAML files. --set, --gpus and --tokens apply to the latter. `over_weeks`: operations and a
// site matter, too.
tl::expected<Description, InputRefusal> describe_inputs(const Arguments&,
                                                        const std::vector<std::string>& inputs,
                                                        const std::string& which = "",
                                                        bool over_weeks = false);

// The operands, and what --site and --run name.
std::vector<std::string> all_inputs(const Arguments&);

// Whether this operand is a result of an earlier command; its text then.
bool result_file(const std::string& input, std::string& text);

tl::expected<std::vector<Gate>, UsageErrors> parse_gates(const Arguments&);
// Says on standard error which gates failed.
bool any_tripped(const std::vector<Gate>&, const GateFigures&);

// Why nothing can be planned, all of it, at the settings to change. Empty where a plan is possible,
// although it may not fit.
Diagnostics impossible_problems(const PlanResult&);
// The same before anything else is done.
Diagnostics plan_problems(const DescribeAttempt&);

// The last part of a path: what a side of a comparison is called.
std::string file_name(const std::string& path);

}  // namespace assay

// What the explanations of figures are built from.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "perf/layer.h"
#include "perf/muon.h"
#include "perf/predict.h"
#include "perf/step.h"

namespace assay {

inline Derivation leaf(std::string name, double value, std::string unit, std::string how, char mark,
                       std::string source) {
  return {std::move(name), value, std::move(unit), std::move(how), mark, std::move(source), {}, ""};
}

// A setting that a figure rests on. Whoever knows where it was stated puts its mark and source in.
inline Derivation given(std::string name, double value, std::string unit, std::string path) {
  Derivation d = leaf(std::move(name), value, std::move(unit), "", 'a', path);
  d.path = std::move(path);
  return d;
}

inline Derivation count_of(std::string name, int64_t n, std::string path = "") {
  Derivation d = given(std::move(name), static_cast<double>(n), "", std::move(path));
  if (d.path.empty()) d.mark = 's', d.source = "the plan";
  return d;
}

inline Derivation share_of(std::string name, double share, std::string path) {
  return given(std::move(name), 100 * share, "%", std::move(path));
}

inline Derivation timed(std::string name, Seconds t, std::string equation) {
  return leaf(std::move(name), t.v, "s", std::move(equation), 'c', "docs/models/step.md");
}

using Inputs = std::vector<Derivation>;

struct Subject {
  const Setting& s;
  const Plan& p;
  Layout l;
  const Prediction& r;
  const Links& links;
  std::vector<OpRecord> ops;
  MicrobatchCost cost;
  Step step;
  std::vector<WireRecord> wires;
};

// The links that the groups' traffic passes.
void add_links(const Subject&, std::span<const Group>, Inputs&);
// Traffic of gradients or weights between data-parallel ranks, as the step sent it: what there is
// and what hides it.
Inputs exchange_inputs(const Subject&, bool gradients);

// Reserved memory of the worst rank, as screens show it, and what of it is left.
Derivation memory_figure(const Subject&);
Derivation headroom_figure(const Subject&);
// The terms that it consists of, `weights` and so on, and their sums.
const std::vector<std::string>& memory_figures();
// REQUIRES: `name` is one of memory_figures().
Derivation memory_part(const Subject&, const std::string& name);

// Muon's part of the optimizer's step, in the first stage.
inline Derivation newton_schulz(const Subject& u) {
  const Model& m = u.s.workload.model;
  const Seconds t = muon_time(u.s, u.p, u.l, stage_content(m, stages_of(m, u.p), 0));
  return leaf("Newton-Schulz steps of the first stage", t.v, "s", "", 'c', "docs/models/step.md");
}

}  // namespace assay

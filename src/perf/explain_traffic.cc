// Where the traffic between data-parallel ranks comes from: every collective that the step has
// sent, and what hides it.
#include <algorithm>

#include <fmt/format.h>

#include "perf/explain_parts.h"
#include "perf/rank.h"

namespace assay {
namespace {

// How often within an exchange, and in which exchanges.
std::string when(const Subject& u, const WireRecord& w) {
  std::string how = w.count > 1 ? fmt::format(", {:g} times in all passes", w.count) : "";
  const Exchange& e = w.gradients ? u.step.gradients : u.step.parameters;
  return e.times > 1 ? how + ", in every micro-batch" : how;
}

Derivation wire_figure(const Subject& u, const WireRecord& w) {
  std::string how = fmt::format("{} of {:.3g} GB", w.what, w.each.v / 1e9);
  if (w.group.ranks > 1)
    how += fmt::format(" over {} ranks, {} of them in a scale-up domain", w.group.ranks,
                       w.group.per_domain);
  how += when(u, w);
  if (w.group.ranks > w.group.per_domain && u.links.slowest_link < 1)
    how += fmt::format("; a ring goes at the {:.3g} % of its slowest link",
                       100 * u.links.slowest_link);
  return leaf(fmt::format("on the wire, {}", w.of), w.time.v, "s", std::move(how), 'c',
              "docs/models/collectives.md");
}

// Passes over a micro-batch that what is sent once a step may hide under.
void add_passes(const Subject& u, Inputs& inputs) {
  if (u.p.vpp <= 1 || gathers_each_microbatch(u.s.stack, u.p, u.l) > 0) return;
  inputs.push_back(leaf("passes that hide it", passes_ahead(u.p, u.l), "",
                        "1 + stages x (1 - 1 / chunks of a stage)", 's',
                        "docs/models/pipeline.md"));
  inputs.push_back(count_of("stages", u.l.pp));
  inputs.push_back(count_of("chunks of a stage", u.p.vpp, "plan.vpp"));
}

void add_bytes(const Subject& u, bool gradients, Inputs& inputs) {
  const Stack& st = u.s.stack;
  const double layer_bytes = gathered_bytes(u.s, u.p);
  const char* path = gradients                             ? "stack.gradient_comm_bytes"
                     : layer_bytes != st.weight_comm_bytes ? "stack.weight_comm_narrow"
                                                           : "stack.weight_comm_bytes";
  inputs.push_back(
      given("bytes per parameter", gradients ? st.gradient_comm_bytes : layer_bytes, "", path));
}

}  // namespace

void add_links(const Subject& u, std::span<const Group> groups, Inputs& inputs) {
  const auto any = [&](auto&& uses) { return std::any_of(groups.begin(), groups.end(), uses); };
  if (any([](const Group& g) { return g.per_domain > 1; })) {
    inputs.push_back(given("scale-up link", u.s.cluster.accelerator.scaleup_bandwidth.v, "B/s",
                           "cluster.accelerator.scaleup_bandwidth"));
    inputs.push_back(share_of("of it, large messages", u.links.scaleup_params.bus_efficiency,
                              "scaleup_params.bus_efficiency"));
  }
  if (any([](const Group& g) { return g.ranks > g.per_domain; })) {
    inputs.push_back(count_of("NICs of a node", u.s.cluster.node.nics, "cluster.node.nics"));
    inputs.push_back(given("each NIC", u.links.nic.v, "B/s", "cluster.node.nic_bandwidth"));
    inputs.push_back(share_of("of it, large messages", u.links.fabric_params.bus_efficiency,
                              "fabric_params.bus_efficiency"));
    if (u.links.oversubscription > 1)
      inputs.push_back(given("oversubscription", u.links.oversubscription, "",
                             "cluster.fabric.oversubscription"));
    if (u.links.slowest_link < 1) {
      inputs.push_back(share_of("slow links, of all", u.s.cluster.fabric.degraded_links,
                                "cluster.fabric.degraded_links"));
      inputs.push_back(share_of("their speed, of nominal", u.links.slowest_link,
                                "cluster.fabric.degraded_speed"));
    }
  }
}

Inputs exchange_inputs(const Subject& u, bool gradients) {
  const Stack& st = u.s.stack;
  const Exchange& e = gradients ? u.step.gradients : u.step.parameters;
  Inputs inputs;
  std::vector<Group> groups;
  for (const WireRecord& w : u.wires) {
    if (w.gradients != gradients) continue;
    inputs.push_back(wire_figure(u, w));
    groups.push_back(w.group);
  }
  inputs.push_back(timed("what shows", Seconds(e.shown),
                         gradients ? "of it, beside the passes that hide it; at least the "
                                     "embedding's, which come last"
                                   : "of it, beside the passes that hide it; at least what forward "
                                     "begins with"));
  inputs.push_back(leaf("times a step", e.times, "", e.times > 1 ? "every micro-batch" : "once",
                        's', "the plan"));
  if (gradients && u.step.tied.v > 0) {
    inputs.push_back(timed("tied embedding", u.step.tied,
                           "beside it: gradients added up between the ends of the pipeline"));
    groups.push_back(u.l.pipeline);
  }
  add_bytes(u, gradients, inputs);
  add_passes(u, inputs);
  inputs.push_back(gradients
                       ? share_of("hidden under computation",
                                  u.p.overlap_grad ? st.overlap_grad : 0, "stack.overlap_grad")
                       : share_of("hidden under computation",
                                  u.p.overlap_param ? st.overlap_param : 0, "stack.overlap_param"));
  inputs.push_back(share_of("cost of what is hidden", st.contention, "stack.contention"));
  add_links(u, groups, inputs);
  return inputs;
}

}  // namespace assay

// A step draws the same in the plan and at a site: one model of power (world/node_power.h).
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/simulation.h"

namespace assay {
namespace {

SimulateResult at_a_site(const std::vector<std::string>& words) {
  UsageErrors wrong;
  const Arguments args = parse(simulate_command(), words, wrong);
  const Context context = make_context(args, wrong);
  const SimulationAsk ask = read_simulation_ask(context, args, wrong);
  auto description = describe_run(args, args.operands);
  EXPECT_TRUE(wrong.empty() && description);
  const auto ready = ready_run(context, std::move(*description), ask);
  EXPECT_TRUE(ready);
  return run_it(context, **ready, ask);
}

TEST(Energy, OfAPlanIsThatOfItsSimulation) {
  for (std::vector<std::string> words :
       std::vector<std::vector<std::string>>{{"llama-3.1-70b", "h100-128"},
                                             {"llama-3.1-8b", "h100-64", "--gpus", "16"},
                                             {"llama-3.1-8b", "a100-64"},
                                             {"llama-3.1-8b", "gb200-72"}}) {
    SCOPED_TRACE(words[1]);
    words.insert(words.end(), {"frankfurt", "--days", "2", "--runs", "2", "--no-what-ifs"});
    const SimulateResult r = at_a_site(words);
    const Setting& s = r.plan.description.setting;
    const double plan = r.plan.run.power_w / s.cluster.pue;  // without the facility's share
    const double used = static_cast<double>(accelerators_used(s));
    const double share = used / static_cast<double>(s.cluster.accelerators());
    for (const SiteHour& h : r.site->hours) {
      ASSERT_EQ(h.running, 1);
      // What clocks held down by heat save is the site's own.
      EXPECT_NEAR(h.it_power.v * share / plan, 1, h.thermal_clock < 1 ? 0.01 : 1e-6);
    }
  }
}

}  // namespace
}  // namespace assay

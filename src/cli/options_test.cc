#include "cli/options.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/gate.h"

namespace assay {
namespace {

TEST(Options, AnyOrderAndBothForms) {
  UsageErrors wrong;
  const Arguments args =
      parse(plan_command(), {"w", "--gpus", "8", "--set=a=b", "c", "-q", "-ofile", "--set", "d=e"},
            wrong);
  ASSERT_TRUE(wrong.empty());
  EXPECT_EQ(args.operands, (std::vector<std::string>{"w", "c"}));
  EXPECT_EQ(args.get("gpus"), "8");
  EXPECT_EQ(args.get("output"), "file");
  EXPECT_EQ(args.all("set"), (std::vector<std::string>{"a=b", "d=e"}));
  EXPECT_TRUE(args.has("quiet"));
}

TEST(Options, DashAndDoubleDash) {
  UsageErrors wrong;
  const Arguments args = parse(plan_command(), {"-", "--", "--gpus"}, wrong);
  ASSERT_TRUE(wrong.empty());
  EXPECT_EQ(args.operands, (std::vector<std::string>{"-", "--gpus"}));
}

TEST(Options, MistakesAreNamed) {
  UsageErrors wrong;
  parse(plan_command(), {"--gpu", "8"}, wrong);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].help, "did you mean `--gpus`?");
  for (const char* word : {"--gpus", "--json=1", "-qx", "-Z", "--tokens=", "-o"}) {
    wrong.clear();
    parse(plan_command(), {word}, wrong);
    EXPECT_EQ(wrong.size(), 1u) << word;
  }
}

// `--tokens "$T"` of a variable that is not set is no default, and no luck is below zero.
TEST(Options, EmptyValuesAndNegativeSeedsAreRefused) {
  UsageErrors wrong;
  parse(plan_command(), {"--tokens", "", "-o", "", "--set="}, wrong);
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_EQ(wrong[0].message, "--tokens needs a value (T)");
  wrong.clear();
  const Arguments args = parse(plan_command(), {"--seed", "-1"}, wrong);
  EXPECT_TRUE(wrong.empty());
  EXPECT_EQ(make_context(args, wrong).stamp.seed, "1");
  EXPECT_EQ(wrong.size(), 1u);
  EXPECT_EQ(bare_context({"--seed", "-1"}).stamp.seed, "1");
}

// A file whose disk fails is the world's fault; one that is there and reads is none.
TEST(Options, FilesThatCannotBeReadAreFailures) {
  ASSERT_EQ(missing_inputs({"/proc/self/mem"}).size(), 1u);
  EXPECT_EQ(missing_inputs({"/proc/self/mem"})[0].exit_code, kWorldWrong);
  EXPECT_TRUE(missing_inputs({"/proc/self/stat", "/dev/null", "llama-3.1-8b"}).empty());
}

TEST(Options, AllMistakesAreToldTogether) {
  UsageErrors wrong;
  const Arguments args =
      parse(plan_command(),
            {"w", "--gpu", "--width", "7", "--json=1", "--color=blue", "--seed", "x", "--nonsense"},
            wrong);
  EXPECT_EQ(wrong.size(), 3u);
  const Context context = make_context(args, wrong);
  EXPECT_EQ(wrong.size(), 6u);
  EXPECT_EQ(context.stamp.seed, "1");
}

TEST(Options, EveryOptionHasOneNameAndHelpFits) {
  for (const Command& c : commands()) {
    for (const Option& o : c.options) {
      for (const Option& g : global_options()) EXPECT_NE(o.name, g.name);
      EXPECT_FALSE(o.brief.empty()) << o.name;
    }
    for (const int width : {80, 100}) {
      const std::string text =
          short_help(c, width) + long_help(c, width) + overview(commands(), width);
      for (size_t start = 0; start < text.size();) {
        const size_t end = text.find('\n', start);
        EXPECT_LE(end - start, static_cast<size_t>(width)) << text.substr(start, end - start);
        start = end + 1;
      }
    }
  }
}

// docs/reference/cli.md is written by `assay help --markdown > docs/reference/cli.md`.
TEST(Options, ReferencePageIsCurrent) {
  const Result<std::string> page = read_file(std::string(ASSAY_ROOT) + "/docs/reference/cli.md");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_TRUE(*page == reference_page(commands()))
      << "run: assay help --markdown > docs/reference/cli.md";
}

TEST(Gate, ReadsConditions) {
  Prediction p;
  p.mfu = 0.4;
  RunFigures r;
  r.cost_usd.value = 2e6;
  GateFigures f = gate_figures(p, r, {});
  EXPECT_TRUE(tripped(*parse_gate("mfu < 0.5"), f));
  EXPECT_FALSE(tripped(*parse_gate("mfu<0.4"), f));
  EXPECT_TRUE(tripped(*parse_gate("mfu <= 0.4"), f));
  // What is not known passes no gate, whichever way it asks.
  for (const char* unknown : {"cost > 1.5e6", "cost < 1", "goodput < 0.5", "goodput > 0.5",
                              "days_with_failures > 30", "cost_with_failures > 1"})
    EXPECT_TRUE(tripped(*parse_gate(unknown), f)) << unknown;
  r.price_known = true;
  PlanOutlook weeks;
  weeks.best.emplace();
  weeks.best->expected.goodput = 0.9;
  weeks.best->expected.time = Seconds(40 * kSecondsPerDay);
  weeks.best->usd = 3e6;
  f = gate_figures(p, r, weeks);
  EXPECT_TRUE(tripped(*parse_gate(" cost > 1.5e6 "), f));
  EXPECT_TRUE(tripped(*parse_gate("goodput < 0.95"), f));
  EXPECT_FALSE(tripped(*parse_gate("goodput < 0.9"), f));
  EXPECT_TRUE(tripped(*parse_gate("days_with_failures >= 40"), f));
  EXPECT_FALSE(tripped(*parse_gate("cost_with_failures > 3e6"), f));
  weeks.best->expected.time = Seconds(INFINITY);
  EXPECT_TRUE(tripped(*parse_gate("days_with_failures > 1e9"), gate_figures(p, r, weeks)));
  for (const char* bad : {"", "mfu", "mfu < x", "mfu < ", "mfx < 1", "< 1", "mfu < 1 2"}) {
    EXPECT_FALSE(parse_gate(bad)) << bad;
  }
}

}  // namespace
}  // namespace assay

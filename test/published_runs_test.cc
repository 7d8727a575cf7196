// Published runs (examples/runs) land where their publication says. Every example states its band
// in a line `# Expected: goodput 0.90 to 0.95, interruptions 400 to 440.` and its days in the
// command below; what neither the publication nor the catalog knows is listed there as assumed.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "../examples/stories/runs.h"

namespace assay {
namespace {

struct Range {
  double least = 0, most = 0;
};

struct Published {
  std::string file;
  double days = 0;
  std::map<std::string, Range> expected;
  bool says_assumed = false;
};

// `goodput 0.90 to 0.95, interruptions 400 to 440.`
std::map<std::string, Range> ranges(const std::string& text) {
  std::map<std::string, Range> found;
  std::istringstream in(text);
  std::string name, to;
  Range r;
  while (in >> name >> r.least >> to >> r.most) {
    found[name] = r;
    in.ignore(1, ',');
  }
  return found;
}

Published read(const std::string& path) {
  Published p;
  p.file = path;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::string expected = "# Expected: ", days = "--days ";
    if (line.starts_with(expected)) p.expected = ranges(line.substr(expected.size()));
    if (const size_t at = line.find(days); at != std::string::npos)
      p.days = std::atof(line.c_str() + at + days.size());
    p.says_assumed = p.says_assumed || line.find("ssumed") != std::string::npos ||
                     line.find("all of it theirs") != std::string::npos;
  }
  return p;
}

std::vector<std::string> examples() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_ROOT "/examples/runs"))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

// Steps kept at their nominal time, over all of the job's time: what an iteration count gives.
double nominal(const StoryRun& r) {
  const RunSpec& s = r.spec.spec;
  const double spares = static_cast<double>(s.spares.nodes * s.gpus_per_node);
  return r.many.useful_share.mean * (1 + spares / static_cast<double>(s.gpus));
}

double interruptions(const ManyResult& many, const std::string& cause) {
  for (const CauseBand& c : many.causes)
    if (c.name == cause) return c.interruptions.mean;
  ADD_FAILURE() << "no cause " << cause;
  return 0;
}

StoryRun simulate(const std::string& name, const Change& change = nullptr) {
  const Published p = read(ASSAY_ROOT "/examples/runs/" + name + ".yaml");
  return story_run(p.file, p.days, 0, 40, change);
}

class PublishedRuns : public testing::TestWithParam<std::string> {};

TEST_P(PublishedRuns, LandWhereTheyWere) {
  const Published p = read(ASSAY_ROOT "/examples/runs/" + GetParam() + ".yaml");
  ASSERT_GT(p.days, 0) << "no `--days` in its command";
  EXPECT_TRUE(p.says_assumed) << "what is assumed is not said";
  EXPECT_TRUE(p.expected.contains("goodput") || p.expected.contains("nominal"));
  const StoryRun r = story_run(p.file, p.days, 0, 40);
  ASSERT_TRUE(spec_problems(r.spec).empty()) << render(spec_problems(r.spec));
  const std::map<std::string, double> figures = {{"goodput", r.many.goodput.mean},
                                                 {"nominal", nominal(r)},
                                                 {"interruptions", r.many.interruptions.mean}};
  for (const auto& [name, range] : p.expected) {
    ASSERT_TRUE(figures.contains(name)) << name;
    const double value = figures.at(name);
    std::printf("%-18s%-15s%.4g, expected %g to %g\n", GetParam().c_str(), name.c_str(), value,
                range.least, range.most);
    EXPECT_LT(range.least, range.most);
    EXPECT_LE(range.most - range.least, 0.35 * range.most) << name << ": a band that says little";
    EXPECT_GE(value, range.least) << name;
    EXPECT_LE(value, range.most) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedRuns, testing::ValuesIn(examples()),
                         [](const testing::TestParamInfo<std::string>& i) {
                           std::string name = i.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Table 5 of the paper, the causes that are large enough to compare.
TEST(PublishedCauses, Llama3IsInterruptedByWhatItWas) {
  const ManyResult many = simulate("llama3-405b").many;
  EXPECT_NEAR(interruptions(many, "gpu") / 148, 1, 0.06);
  EXPECT_NEAR(interruptions(many, "hbm") / 72, 1, 0.08);
  EXPECT_NEAR(interruptions(many, "software") / 54, 1, 0.08);
  EXPECT_NEAR(interruptions(many, "switch-or-cable") / 35, 1, 0.1);
  EXPECT_NEAR(interruptions(many, "maintenance"), 47, 1);
}

// The bands are not wide enough to hold a run without its cause.
TEST(PublishedCauses, WithoutTheirCauseTheyLeaveTheBand) {
  const auto outside = [](const std::string& name, const Change& change) {
    const Published p = read(ASSAY_ROOT "/examples/runs/" + name + ".yaml");
    const Range band = p.expected.at("goodput");
    const double goodput = simulate(name, change).many.goodput.mean;
    return goodput < band.least || goodput > band.most;
  };
  // Llama 3 noticed by the collectives' watchdog, saving for a minute.
  EXPECT_TRUE(outside("llama3-405b", [](Description& d) {
    d.operations.detection = Detection::kWatchdog;
    d.operations.checkpoint.stall = Seconds(60);
  }));
  // OPT with people that act at once.
  EXPECT_TRUE(outside("opt-175b", [](Description& d) {
    d.operations.requeue_wait = d.operations.swap = Seconds(60);
  }));
  // ByteRobust without standbys, noticed by the watchdog.
  EXPECT_TRUE(outside("byterobust", [](Description& d) {
    d.operations.recovery = Restart::kRequeue;
    d.operations.reliability.failures[0].inspected = Seconds(600);
  }));
  // Elastic replicas that are not.
  EXPECT_TRUE(outside("ft-hsdp-elastic",
                      [](Description& d) { d.operations.recovery = Restart::kWarmStandby; }));
  EXPECT_TRUE(
      outside("rsc-1", [](Description& d) { d.operations.checkpoint.stall = Seconds(30); }));
}

}  // namespace
}  // namespace assay

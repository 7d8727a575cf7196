#include "report/explain_document.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "report/compare_report.h"
#include "report/explain_report.h"
#include "report/plan_report.h"
#include "report/scale_report.h"

namespace assay {
namespace {

const Stamp kNoStamp{"0", "today", "1", "", "", "", ""};

Description described(std::vector<std::string> inputs, std::vector<std::string> sets = {}) {
  Request r;
  r.inputs = std::move(inputs);
  r.sets = std::move(sets);
  tl::expected<Description, Diagnostics> d = describe(r, catalog());
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  return d ? *d : Description{};
}

PlanOutlook some_weeks(double usd = 1000, double spares_usd = 50) {
  PlanOutlook weeks;
  weeks.operations_name = "usual";
  Outlook& o = weeks.best.emplace();
  o.expected.goodput = 0.95, o.expected.places = 0.95, o.expected.slowdown = 1.02;
  o.expected.time = Seconds(3 * kSecondsPerDay);
  o.expected.mtbf = Seconds(2 * kSecondsPerDay), o.expected.interval = Seconds(300);
  o.gpu_hours = 500, o.usd = usd, o.usd_per_gpu_hour = 2;
  o.spares = 1, o.spares_usd = spares_usd;
  return weeks;
}

double value_of(const std::string& text, const std::string& name, const std::string& which = "") {
  const std::optional<DocumentFigure> found = explain_document(text, name, which, catalog());
  EXPECT_TRUE(found) << name;
  return found ? found->derivation.value : 0;
}

// Every derivation says how it follows, or where it comes from.
void expect_reasons(const std::string& text, const std::string& which) {
  for (const std::string& name : document_figures(text)) {
    const std::optional<DocumentFigure> found = explain_document(text, name, which, catalog());
    ASSERT_TRUE(found) << name;
    EXPECT_FALSE(found->derivation.equation.empty()) << name;
    EXPECT_NE(std::string("msca").find(found->derivation.mark), std::string::npos) << name;
  }
}

bool lists(const std::string& text, const std::string& name) {
  const std::vector<std::string> names = document_figures(text);
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(ExplainPlan, EveryFigureOfTheScreen) {
  const PlanResult r = study(described({"llama-2-7b", "h100-16"}), catalog());
  ASSERT_TRUE(r.fits);
  const std::string text = plan_json(r, kNoStamp, some_weeks());
  expect_reasons(text, "");
  EXPECT_DOUBLE_EQ(value_of(text, "mtbf"), 2 * kSecondsPerDay);
  EXPECT_DOUBLE_EQ(value_of(text, "checkpoint_interval"), 300);
  EXPECT_NEAR(value_of(text, "steps_slower"), 2, 1e-9);
  EXPECT_DOUBLE_EQ(value_of(text, "tried"), static_cast<double>(r.search.tried));
  EXPECT_DOUBLE_EQ(value_of(text, "fitting"), static_cast<double>(r.search.fitting));
  EXPECT_DOUBLE_EQ(value_of(text, "possible"), static_cast<double>(r.search.possible));
  double rest = 0;
  for (size_t i = 0; i < r.ledger.size(); ++i) {
    if (i >= kLedgerLinesMost || r.ledger[i].share < kLedgerShareLeast) rest += r.ledger[i].seconds;
  }
  EXPECT_NEAR(value_of(text, "everything_else"), rest, 1e-12);
  EXPECT_FALSE(lists(text, "misses_by"));  // it fits
  for (const char* name : {"tokens", "seq", "batch", "tokens_per_step"}) {
    ASSERT_TRUE(is_figure(name));
    EXPECT_GT(explain_figure(r, name, catalog()).value, 0) << name;
  }
}

TEST(ExplainPlan, EveryFigureOfAMiss) {
  const PlanResult r = study(described({"llama-3.1-70b", "h100-8"}), catalog());
  ASSERT_TRUE(!r.fits && r.miss && !r.fixes.empty());
  const std::string text = plan_json(r, kNoStamp);
  expect_reasons(text, "");
  EXPECT_DOUBLE_EQ(value_of(text, "misses_by"), r.miss->over().v);
  const MemoryUse& m = r.miss->memory;
  for (const WhatIf& fix : r.fixes)
    EXPECT_DOUBLE_EQ(value_of(text, fix.label), fix.prediction.memory.reserved.v);
  double sum = 0;
  for (const char* part :
       {"weights", "gradients", "optimizer", "activations", "buffers", "framework"}) {
    ASSERT_TRUE(is_figure(part));
    sum += explain_figure(r, part, catalog()).value;
  }
  EXPECT_NEAR(sum, m.allocated.v, 1);
  EXPECT_DOUBLE_EQ(explain_figure(r, "reserved", catalog()).value, m.reserved.v);
}

// One figure has one mark, wherever it stands.
TEST(ExplainPlan, TheTimeBetweenFailuresHasOneMark) {
  const PlanResult r = study(described({"llama-2-7b", "h100-16"}), catalog());
  PlanOutlook weeks = some_weeks();
  for (const bool stated : {false, true}) {
    weeks.stated = stated;
    const std::string text = plan_json(r, kNoStamp, weeks);
    const char mark = explain_document(text, "mtbf", "", catalog())->derivation.mark;
    EXPECT_EQ(mark, stated ? 'c' : 'a');
    const Derivation spares = explain_document(text, "spares", "", catalog())->derivation;
    EXPECT_EQ(spares.inputs.at(0).mark, mark);
    const Derivation goodput = explain_document(text, "goodput", "", catalog())->derivation;
    EXPECT_EQ(goodput.inputs.at(0).inputs.at(0).mark, mark);
  }
}

TEST(Explain, FiguresCarryTheirRange) {
  const PlanResult r = study(described({"llama-2-7b", "h100-16"}), catalog());
  for (const char* name : {"mfu", "tflops", "step_time", "tokens_per_s", "days", "gpu_hours",
                           "cost", "energy", "memory", "headroom"}) {
    const Derivation d = explain_figure(r, name, catalog());
    EXPECT_LT(d.low, d.value) << name;
    EXPECT_GT(d.high, d.value) << name;
    EXPECT_NE(explain_json(d, name, kNoStamp).find("\"range\""), std::string::npos) << name;
  }
  const Derivation days = explain_figure(r, "days", catalog());
  const std::string text = explain_text(days, "days", "", Style{}, kNoStamp);
  EXPECT_NE(text.find(duration_range(r.run.time_s)), std::string::npos) << text;
}

std::string scaled_document(bool fix_plan) {
  const Description d = described({"llama-2-7b", "h100-64"});
  ScaleOptions options;
  options.sizes = {8, 16, 64};
  options.fix_plan = fix_plan;
  const ScaleResult r = scale(d.setting, d.plan, d.plan_keys, options);
  ScaleOutlook weeks;
  weeks.best = {some_weeks(), some_weeks(), some_weeks(1300, 70)};
  return scale_json(r, d, kNoStamp, weeks);
}

// What the column prints is over weeks, and with what spares cost.
TEST(ExplainScale, DaysAndDollarsAreThoseThatArePrinted) {
  const std::string text = scaled_document(false);
  EXPECT_DOUBLE_EQ(value_of(text, "cost", "64"), 1300);
  EXPECT_DOUBLE_EQ(value_of(text, "cost_with_failures", "64"), 1300);
  EXPECT_DOUBLE_EQ(value_of(text, "days", "64"), 3);
  const Derivation cost = explain_document(text, "cost", "64", catalog())->derivation;
  ASSERT_EQ(cost.inputs.size(), 2u);
  EXPECT_DOUBLE_EQ(cost.inputs[0].value + cost.inputs[1].value, cost.value);
}

TEST(ExplainScale, EveryFigureOfTheScreen) {
  for (const bool fix_plan : {false, true}) {
    const std::string text = scaled_document(fix_plan);
    expect_reasons(text, "64");
    for (const char* name : {"binds", "grew", "break_even", "speedup_with_failures"})
      EXPECT_TRUE(lists(text, name)) << name;
    for (const char* name : {"times_as_fast", "interaction"})
      EXPECT_EQ(lists(text, name), fix_plan) << name;
    const std::vector<std::string> names = document_figures(text);
    EXPECT_EQ(std::any_of(names.begin(), names.end(),
                          [](const std::string& name) { return name.starts_with("plan."); }),
              fix_plan);
  }
}

TEST(ExplainCompare, EveryFigureOfTheScreen) {
  std::vector<Side> sides;
  for (const char* cluster : {"h100-16", "h100-8"}) {
    const PlanResult r = study(described({"llama-2-7b", cluster}), catalog());
    Side s;
    s.name = cluster;
    s.setting = r.description.setting, s.plan = r.plan;
    s.searched = true;
    s.prediction = r.prediction, s.run = r.run;
    sides.push_back(std::move(s));
  }
  const Comparison c = compare(std::move(sides));
  const std::string text = compare_json(c, kNoStamp, {some_weeks(), some_weeks()});
  expect_reasons(text, "1");
  const double before = c.sides[0].prediction.step.v, after = c.sides[1].prediction.step.v;
  EXPECT_NEAR(value_of(text, "change.step_time"), 100 * (after / before - 1), 1e-9);
  EXPECT_NEAR(value_of(text, "change.mfu"),
              100 * (c.sides[1].prediction.mfu - c.sides[0].prediction.mfu), 1e-9);
  const std::optional<DocumentFigure> speed = explain_document(text, "speedup", "", catalog());
  ASSERT_TRUE(speed);
  EXPECT_LT(speed->derivation.low, speed->derivation.high);
}

}  // namespace
}  // namespace assay

#include <gtest/gtest.h>

#include "plan/leaves.h"
#include "report/plan_report.h"
#include "report/result_file.h"

namespace assay {
namespace {

TEST(Screen, BarsFillTheirColumns) {
  const Style plain;
  EXPECT_EQ(bar(0.5, 10, plain), "#####     ");
  EXPECT_EQ(bar(0, 10, plain), "          ");
  EXPECT_EQ(bar(0.001, 10, plain), ".         ");
  EXPECT_EQ(bar(2, 10, plain), "##########");
}

TEST(Screen, WrapKeepsSpacesAndWidth) {
  EXPECT_EQ(wrap("  one two three", 10, 2), "  one two\n  three");
  EXPECT_EQ(wrap("a  b", 10), "a  b");
  EXPECT_EQ(wrap("", 10), "");
  EXPECT_EQ(wrap("averyverylongword x", 5, 1), "averyverylongword\n x");
}

TEST(Screen, TablesAlign) {
  EXPECT_EQ(table({{"", "a"}, {"row", "100"}}, 0), "       a\nrow  100\n");
}

PlanResult planned(std::vector<std::string> inputs, std::vector<std::string> sets) {
  Request r;
  r.inputs = std::move(inputs);
  r.sets = std::move(sets);
  tl::expected<Description, Diagnostics> d = describe(r, catalog());
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  StudyOptions options;
  options.what_ifs = false;
  return study(d ? *d : Description{}, catalog(), options);
}

// What is written must predict the same when it is read again.
TEST(ResultFile, ReadsBackWhatWasWritten) {
  for (const char* model : {"llama-3.1-70b", "mixtral-8x7b", "deepseek-v3"}) {
    PlanResult r = planned({model, "h100-1024"}, {"cluster.inlet_c=31", "cluster.pue=1.1"});
    ASSERT_TRUE(r.fits) << model;
    const std::string text = plan_json(r, Stamp{"0", "today", "1", ""});
    EXPECT_TRUE(is_result(text));
    tl::expected<Description, Diagnostics> again = read_result(text, "x.json", catalog());
    ASSERT_TRUE(again) << render(again.error());
    Plan plan = r.plan;
    const std::vector<Leaf> one = leaves(r.description.setting, plan);
    const std::vector<Leaf> two = leaves(again->setting, again->plan);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i].same(two[i]))
          << one[i].path << ": " << one[i].text() << ", " << two[i].text();
    }
    Predictor predictor(again->setting);
    EXPECT_EQ(predictor.predict(again->plan).step.v, r.prediction.step.v) << model;
  }
}

TEST(ResultFile, HostileFilesAreRefused) {
  EXPECT_FALSE(is_result(""));
  EXPECT_FALSE(is_result("{}"));
  EXPECT_FALSE(is_result(std::string(100000, '[')));
  for (const char* text :
       {"", "{", "[]", "null", "{\"schema\":\"assay.plan/1\"}", "{\"schema\":\"assay.scale/1\"}",
        "{\"schema\":3}", "{\"schema\":\"assay.plan/1\",\"description\":3,\"best\":{}}",
        "{\"schema\":\"assay.plan/"
        "1\",\"description\":{\"workload\":{\"seq\":-1}},\"best\":{\"plan\":{\"tp\":0}}}",
        "{\"schema\":\"assay.plan/"
        "1\",\"description\":{\"workload\":{\"seq\":\"x\"}},\"best\":{\"plan\":[]}}"}) {
    EXPECT_FALSE(read_result(text, "x.json", catalog())) << text;
  }
  EXPECT_FALSE(read_result(std::string(200000, '['), "x.json", catalog()));
}

TEST(PlanReport, NoLineIsWiderThanTheScreen) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-128"}, {});
  for (int width : {80, 100, 140}) {
    Style style;
    style.width = width;
    style.verbose = true;
    const std::string text = plan_text(r, style, Stamp{"0", "today", "1", ""});
    size_t start = 0;
    while (start < text.size()) {
      const size_t end = text.find('\n', start);
      EXPECT_LE(end - start, static_cast<size_t>(width)) << text.substr(start, end - start);
      start = end + 1;
    }
  }
}

TEST(PlanReport, LedgerOfTheScreenSumsToTheStep) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-128"}, {});
  double sum = 0;
  for (const LedgerLine& line : r.ledger) sum += line.share;
  EXPECT_NEAR(sum, 1, 0.02);  // accounts below 0.05 % are not listed
}

}  // namespace
}  // namespace assay

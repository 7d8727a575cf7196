#include <gtest/gtest.h>

#include "plan/leaves.h"
#include "report/catalog_report.h"
#include "report/compare_report.h"
#include "report/explain_report.h"
#include "report/plan_report.h"
#include "report/result_file.h"
#include "report/scale_report.h"

namespace assay {
namespace {

const Stamp kStamp{"0", "today", "1", "", "", "", ""};

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

PlanResult planned(std::vector<std::string> inputs, std::vector<std::string> sets,
                   int64_t gpus = 0) {
  Request r;
  if (gpus > 0) r.gpus = gpus;
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
    const std::string text = plan_json(r, kStamp);
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

// Explained with another stack than it was computed with, a figure would be another one.
TEST(ResultFile, ADescriptionWithoutASectionIsRefused) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  const std::string text = plan_json(r, kStamp);
  for (const std::string section : {"workload", "cluster", "stack"}) {
    std::string cut = text;
    const size_t description = cut.rfind("\"description\"");
    cut.replace(cut.find("\"" + section + "\": {", description), section.size() + 2, "\"gone\"");
    const auto again = read_result(cut, "x.json", catalog());
    ASSERT_FALSE(again) << section;
    EXPECT_NE(render(again.error()).find("`description." + section + "` is missing"),
              std::string::npos);
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

void expect_narrow(const std::string& text, int width) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    EXPECT_LE(end - start, static_cast<size_t>(width)) << text.substr(start, end - start);
    EXPECT_NE(text[end - 1], ' ') << text.substr(start, end - start) << "|";
    start = end + 1;
  }
}

TEST(Reports, NoLineIsWiderThanTheScreen) {
  const PlanResult a = planned({"llama-3.1-70b", "h100-128"}, {});
  const PlanResult b = planned({"llama-2-7b", "b200-16"}, {"plan.tp=2"});
  const PlanResult none = planned({"llama-3.1-405b", "h100-16"}, {});
  const auto side = [](const PlanResult& r, const std::string& name) {
    return Side{name, r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  };
  const Comparison two = compare({side(a, "a-rather-long-name.yaml"), side(b, "b")});
  const Comparison three =
      compare({side(a, "a-rather-long-name.yaml"), side(b, "b"), side(b, "c")});
  ScaleOptions options;
  options.sizes = {1, 16, 128};
  options.fix_plan = true;
  const Setting& setting = a.description.setting;
  const ScaleResult scaled = scale(setting, a.description.plan, {}, options);
  for (int width : {80, 100, 140}) {
    Style style;
    style.width = width;
    style.verbose = true;
    expect_narrow(plan_text(a, style, kStamp), width);
    expect_narrow(plan_text(none, style, kStamp), width);
    expect_narrow(compare_text(two, style, kStamp), width);
    expect_narrow(compare_text(three, style, kStamp), width);
    PlanOutlook weeks;
    weeks.best.emplace();
    weeks.best->expected.time = Seconds(107 * kSecondsPerDay);
    weeks.best->usd = 1.23e6;
    expect_narrow(plan_text(a, style, kStamp, weeks), width);
    expect_narrow(compare_text(two, style, kStamp, {weeks, weeks}), width);
    expect_narrow(compare_text(three, style, kStamp, {weeks, weeks, weeks}), width);
    expect_narrow(scale_text(scaled, a.description, style, kStamp), width);
    for (const char* figure : {"mfu", "cost", "kernels.matmul"}) {
      expect_narrow(explain_text(explain_figure(a, figure, catalog()), figure, "", style, kStamp),
                    width);
    }
    expect_narrow(catalog_show_text(catalog(), {"", "h100-sxm5-80gb"}, style), width);
  }
}

// Whatever a command takes as a name can be shown by it.
TEST(CatalogReport, ShowsWhatCommandsTake) {
  const auto shown = [](const char* kind, const char* name) {
    const std::string text = catalog_show_text(catalog(), {kind, name}, Style{});
    return text.substr(0, text.find(')') + 1);
  };
  EXPECT_EQ(shown("", "NeMo"), "megatron-core  (stacks)");
  EXPECT_EQ(shown("", "fsdp2"), "pytorch-fsdp2  (stacks)");
  EXPECT_EQ(shown("", "MaxText"), "maxtext  (stacks)");
  EXPECT_EQ(shown("", "DGX-H100"), "dgx-h100  (nodes)");
  EXPECT_EQ(shown("", "H100-1024"), "h100-1024  (clusters)");
  EXPECT_NE(shown("", "p5.48xlarge").find("(nodes)"), std::string::npos);
  EXPECT_EQ(shown("", "gpt-neox"), "gpt-neox  (stacks)");
  EXPECT_EQ(shown("models", "gpt-neox"), "gpt-neox-20b  (models)");
  EXPECT_EQ(shown("accelerators", "gaudi"), "gaudi1-32gb  (accelerators)");
  EXPECT_EQ(shown("stacks", "gaudi"), "gaudi  (stacks)");
  EXPECT_EQ(shown("nodes", "gpt-neox"), "");
}

// A link that slows every ring is not hidden behind its nominal speed.
TEST(PlanReport, SlowLinksStandBesideTheFabric) {
  const PlanResult r = planned({"llama-2-7b", "h100-128"}, {"cluster.fabric.degraded_links=0.01",
                                                            "cluster.fabric.degraded_speed=0.1"});
  EXPECT_TRUE(
      cluster_line(r.description.setting).ends_with("1:1, 1 % of links at 10 % of their speed"));
  const PlanResult healthy = planned({"llama-2-7b", "h100-128"}, {});
  EXPECT_TRUE(cluster_line(healthy.description.setting).ends_with("1:1"));
}

// The headline, levers and runner-up say where they come from, and the range of what has one.
TEST(PlanReport, FiguresCarryMarksAndRanges) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-128"}, {});
  const std::string text = plan_text(r, Style{}, kStamp);
  for (const std::string& part :
       {percent(r.prediction.mfu) + " c", seconds(r.prediction.step.v) + " c",
        scaled(r.prediction.tokens_per_s) + " c " + scaled_range(tokens_range(r.prediction)),
        duration(r.run.time_s.value) + " c", dollars(r.run.cost_usd.value) + " a",
        energy(r.run.energy_kwh.value) + " c", gibibytes(r.prediction.memory.reserved.v) + " c",
        gibibytes_range(memory_range(r.prediction.memory)), std::string("PUE 1.25 a")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const size_t second = text.find("Runner-up:");
  EXPECT_NE(text.find(" c.\n  It lost by", second), std::string::npos);
  const std::string json = plan_json(r, kStamp);
  for (const char* key : {"tokens_per_s_range", "reserved_range", "\"mark\": \"c\"", "\"marks\""})
    EXPECT_NE(json.find(key), std::string::npos) << key;
}

TEST(PlanReport, SaysWhatMakesAFarSlowEnd) {
  const PlanResult r = planned({"deepseek-v3", "gb200-nvl72-2304"},
                               {"plan.tp=2", "plan.pp=4", "plan.ep=64", "plan.etp=1",
                                "plan.micro_batch=1", "plan.expert_skew=1",
                                "stack.expert_host_latent=25 ms"},
                               2048);
  ASSERT_TRUE(r.prediction.experts_wait);
  const std::string said = "expert layers that wait for their host";
  EXPECT_NE(plan_text(r, Style{}, kStamp).find(said), std::string::npos);
  const PlanResult dense = planned({"llama-2-7b", "h100-16"}, {});
  EXPECT_EQ(plan_text(dense, Style{}, kStamp).find(said), std::string::npos);
}

TEST(ScaleReport, WhatCannotBeComparedIsNot) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-1024"}, {"workload.global_batch=1200"});
  ScaleOptions options;
  options.sizes = {8, 100};
  const Description& d = r.description;
  const ScaleResult scaled = scale(d.setting, d.plan, {}, options);
  ScaleOutlook weeks;
  weeks.best.resize(2);
  weeks.best[1].why_not = "a run needs whole nodes";
  const std::string text = scale_text(scaled, d, Style{}, kStamp, weeks);
  EXPECT_EQ(text.find("(run: ;"), std::string::npos) << text;
  EXPECT_NE(text.find("Over weeks: not estimated\n  100 GPUs: a run needs whole nodes\n"),
            std::string::npos);
  EXPECT_EQ(text.find("100 -> 100"), std::string::npos);
}

TEST(ScaleReport, OneSizeSaysItsResult) {
  const PlanResult r = planned({"llama-2-7b", "h100-64"}, {});
  ScaleOptions options;
  options.sizes = {64};
  const Description& d = r.description;
  const std::string text =
      scale_text(scale(d.setting, d.plan, {}, options), d, Style{}, kStamp, {});
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_TRUE(last.starts_with("64 GPUs: ")) << last;
  EXPECT_NE(last.find("tokens per second."), std::string::npos) << last;
  EXPECT_EQ(text.find("no other of these sizes"), std::string::npos);
}

TEST(PlanReport, LedgerOfTheScreenSumsToTheStep) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-128"}, {});
  double sum = 0;
  for (const LedgerLine& line : r.ledger) sum += line.share;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(PlanReport, NextCommandsAreOfTheSameJob) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {"plan.tp=8"});
  Stamp stamp = kStamp;
  stamp.inputs = "llama-2-7b h100-16";
  stamp.settings = " --set plan.tp=8";
  stamp.gpus = " --gpus 16";
  const std::string text = plan_text(r, {}, stamp);
  EXPECT_NE(text.find("assay explain llama-2-7b h100-16 --set plan.tp=8 --gpus 16 mfu\n"),
            std::string::npos);
  EXPECT_NE(text.find("assay scale llama-2-7b h100-16 --set plan.tp=8 --gpus 16..8192\n"),
            std::string::npos);
  stamp.saved = "plan.json";
  EXPECT_NE(plan_text(r, {}, stamp).find("assay explain plan.json mfu\n"), std::string::npos);
}

TEST(PlanReport, QuietKeepsWhatTheAsteriskMeans) {
  PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  Style quiet;
  quiet.quiet = true;
  EXPECT_EQ(plan_text(r, quiet, kStamp).find("* against the same peak."), std::string::npos);
  r.levers.emplace_back();
  EXPECT_NE(plan_text(r, quiet, kStamp).find("* against the same peak."), std::string::npos);
}

TEST(PlanReport, TheLimitIsTheLargestLossOfTheLedger) {
  Prediction p;
  p.step = Seconds(1);
  p.ledger[Account::kUseful] = Seconds(0.6);
  p.ledger[Account::kMemoryBound] = Seconds(0.169);
  p.ledger[Account::kCommGrad] = Seconds(0.006);
  EXPECT_EQ(limit_sentence(p), "Compute-bound; next limit: memory-bound kernels (16.9 %).");
  p.ledger[Account::kCommGrad] = Seconds(0.231);
  EXPECT_EQ(limit_sentence(p), "Compute-bound; next limit: gradient traffic (23.1 %).");
  p.ledger[Account::kUseful] = Seconds(0.4);
  EXPECT_EQ(limit_sentence(p), "Held back by gradient traffic (23.1 %).");
  p.ledger = {};
  p.ledger[Account::kUseful] = Seconds(0.99);
  p.ledger[Account::kMatmul] = Seconds(0.009);
  EXPECT_EQ(limit_sentence(p), "Compute-bound.");
}

// A file's name says nothing of what is trained.
TEST(PlanReport, TitleNamesTheModel) {
  Setting s = planned({"llama-2-7b", "h100-16"}, {"workload.model=gpt2"}).description.setting;
  EXPECT_TRUE(workload_line(s).starts_with("gpt-2 pretraining, ")) << workload_line(s);
  s.workload.name = "sixteen";
  EXPECT_TRUE(workload_line(s).starts_with("gpt-2 pretraining, ")) << workload_line(s);
}

TEST(PlanReport, CountsWhatWasTried) {
  const PlanResult r = planned({"llama-3.1-70b", "h100-128"}, {});
  const std::string tried =
      "Tried  " + count(r.search.tried) + " of " + count(r.search.possible) + " plans";
  EXPECT_NE(plan_text(r, {}, kStamp).find(tried), std::string::npos);
}

TEST(PlanReport, SaysWhereNoKernelWasMeasured) {
  const PlanResult tpu = planned({"llama-3.1-70b", "tpu-v5p-1024"}, {});
  EXPECT_NE(plan_text(tpu, {}, kStamp).find("No kernel of tpu-v5p was measured"),
            std::string::npos);
  EXPECT_EQ(explain_figure(tpu, "kernels.matmul", catalog()).mark, 'a');
  const PlanResult gpu = planned({"llama-2-7b", "h100-16"}, {});
  EXPECT_EQ(plan_text(gpu, {}, kStamp).find("No kernel of"), std::string::npos);
}

TEST(CompareReport, SizesOfOneAcceleratorAreNoOtherAccelerators) {
  const PlanResult a = planned({"llama-2-7b", "h100-16"}, {});
  const PlanResult b = planned({"llama-2-7b", "h100-64"}, {});
  const auto side = [](const PlanResult& r, const std::string& name) {
    return Side{name, r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  };
  EXPECT_NE(compare_text(compare({side(a, "a"), side(b, "b")}), {}, kStamp)
                .find("same model, 16 and 64 h100-sxm5-80gb;"),
            std::string::npos);
}

// What is said of a ratio can be read from the range that stands beside it.
TEST(CompareReport, SignificanceIsWhatTheRangeShows) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  const Side a{"a", r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  int apart = 0, alike = 0;
  for (double speed = 0.6; speed < 1.7; speed += 0.004) {
    Side b = a;
    b.name = "b";
    for (Seconds* s : {&b.prediction.step, &b.prediction.low, &b.prediction.high}) *s *= 1 / speed;
    const std::string text = compare_text(compare({a, b}), {}, kStamp);
    const std::string verdict = text.substr(text.rfind('\n', text.size() - 2) + 1);
    double low = 0, high = 0;
    const size_t range = verdict.find('(');
    ASSERT_NE(range, std::string::npos) << verdict;
    ASSERT_EQ(sscanf(verdict.c_str() + range, "(%lf-%lf)", &low, &high), 2) << verdict;
    const bool said = verdict.find("No significant difference in speed") != std::string::npos;
    EXPECT_EQ(said, low <= 1 && high >= 1) << verdict;
    ++(said ? alike : apart);
  }
  EXPECT_GT(apart, 20);
  EXPECT_GT(alike, 20);
}

TEST(CompareReport, TheSameTwiceIsIdentical) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  const Side a{"a", r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  Side b = a;
  b.name = "b";
  const std::string text = compare_text(compare({a, b}), {}, kStamp);
  EXPECT_NE(text.find("\na and b are identical: the same settings, the same plan."),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("times as fast"), std::string::npos);
  const auto range = [](const Comparison& c) {
    const std::string json = compare_json(c, kStamp);
    const size_t at = json.find("\"speedup_range\"");
    return json.substr(at, json.find(']', at) - at);
  };
  EXPECT_EQ(range(compare({a, b})), "\"speedup_range\": [\n    1.0,\n    1.0\n  ");
  b.prediction.step *= 1.0001;
  EXPECT_EQ(range(compare({a, b})).find(" 1.0,"), std::string::npos);
}

TEST(CompareReport, LargeRatiosAreTimes) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  const Side a{"a", r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  Side b = a;
  b.name = "b";
  for (Seconds* s : {&b.prediction.step, &b.prediction.low, &b.prediction.high}) *s *= 78;
  const std::string text = compare_text(compare({a, b}), {}, kStamp);
  EXPECT_NE(text.find(" 78 times"), std::string::npos) << text;
  EXPECT_EQ(text.find("+7700 %"), std::string::npos) << text;
}

TEST(CompareReport, SaysWhatSecondsAreOfWhereBatchesDiffer) {
  const auto side = [](const std::string& name, const std::string& batch) {
    const PlanResult r =
        planned({"llama-2-7b", "h100-16"}, {"plan.tp=2", "plan.pp=1", "plan.micro_batch=1", batch});
    return Side{name, r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
  };
  const Side a = side("a", "workload.global_batch=64"), b = side("b", "workload.global_batch=128");
  EXPECT_NE(
      compare_text(compare({a, b}), {}, kStamp).find("one step's tokens of a (262 k), as the"),
      std::string::npos);
  Side same = a;
  same.plan.micro_batch = 2;
  EXPECT_EQ(compare_text(compare({a, same}), {}, kStamp).find("Seconds are for"),
            std::string::npos);
}

TEST(CompareReport, WhatDoesNotFitIsNotCrowned) {
  const PlanResult r = planned({"llama-2-7b", "h100-16"}, {});
  const auto side = [&r](const std::string& name, double speed, bool fitting) {
    Side s{name, r.description.setting, r.plan, r.searched, r.prediction, r.run, {}, {}};
    s.prediction.step *= 1 / speed, s.prediction.low *= 1 / speed, s.prediction.high *= 1 / speed;
    if (!fitting) s.prediction.memory.capacity = s.prediction.memory.reserved - Bytes(2 * kGiB.v);
    return s;
  };
  const auto says = [](std::vector<Side> sides, const std::string& verdict) {
    const std::string text = compare_text(compare(std::move(sides)), {}, kStamp);
    EXPECT_NE(text.find("\n" + verdict), std::string::npos) << text;
    EXPECT_EQ(text.find("times faster"), std::string::npos) << text;
  };
  const std::string misfit = "does not fit (2.00 GiB too much).";
  says({side("a", 1, true), side("b", 9, false)},
       "a is the only one that fits (" + duration(r.run.time_s.value) + ", " +
           dollars(r.run.cost_usd.value) + "); b " + misfit);
  says({side("a", 1, true), side("b", 9, false), side("c", 3, true)}, "c is the fastest that fits");
  says({side("a", 1, false), side("b", 9, false)}, "None fits: a does not fit");
}

TEST(Screen, CommandsBreakWhereAShellTakesThem) {
  EXPECT_EQ(command_lines("assay plan a --set 'b=1 GB/s' --gpus 8", 20, 2),
            "assay plan a --set \\\n  'b=1 GB/s' \\\n  --gpus 8");
  EXPECT_EQ(command_lines("assay plan", 80, 2), "assay plan");
}

}  // namespace
}  // namespace assay

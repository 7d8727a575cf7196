// Recurrent mixers: scans against times that others published, and a hybrid's layer against the
// sum of its blocks.
#include "perf/mixer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/matmul.h"
#include "perf/predict.h"
#include "perf/step.h"
#include "world/catalog.h"
#include "world/describe_case.h"
#include "world/model_size.h"

namespace assay {
namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

Setting device(const std::string& name) {
  Setting s;
  s.cluster.accelerator = *find_accelerator(catalog(), name);
  s.kernels = *find_kernels(catalog(), s.cluster.accelerator.architecture);
  return s;
}

// flash-linear-attention's kernels by device, kind and pass. The bar is the median error that is
// true today, and the largest.
TEST(Scan, Published) {
  const auto read = read_csv(std::string(ASSAY_ROOT) + "/test/data/public_scans.csv");
  ASSERT_TRUE(read);
  const auto number = [&](const CsvRow& row, const char* name) {
    return std::stod(std::string(read->cell(row, name)));
  };
  std::map<std::string, std::vector<double>> errors;
  for (const CsvRow& row : read->rows) {
    const bool kda = read->cell(row, "kind") == "kda";
    const ScanShape x{kda ? MixerKind::kKda : MixerKind::kGatedDelta,
                      number(row, "batch"),
                      number(row, "seq"),
                      number(row, "heads"),
                      number(row, "head_dim"),
                      number(row, "groups"),
                      number(row, "state")};
    const std::string on(read->cell(row, "device")), pass(read->cell(row, "pass"));
    const ScanTime t = scan_time(x, device(on));
    const Seconds predicted = pass == "forward" ? t.forward : t.backward;
    errors[on + " " + std::string(read->cell(row, "kind")) + " " + pass].push_back(
        std::abs(predicted.v * 1e3 / number(row, "ms") - 1));
  }
  const std::map<std::string, std::pair<double, double>> bars = {
      {"h200-sxm5-141gb gated_delta forward", {0.07, 0.18}},
      {"h200-sxm5-141gb gated_delta backward", {0.15, 0.22}},
      {"gb200-186gb gated_delta forward", {0.11, 0.20}},
      {"gb200-186gb gated_delta backward", {0.07, 0.35}},
      {"h20-sxm5-96gb kda forward", {0.10, 0.12}},
      {"rtx-5090 kda forward", {0.29, 0.30}},  // its kernels have less shared memory
      {"rtx-5090 kda backward", {0.48, 0.50}},
  };
  EXPECT_EQ(errors.size(), bars.size());
  for (const auto& [name, e] : errors) {
    ASSERT_TRUE(bars.count(name)) << name;
    EXPECT_LE(median(e), bars.at(name).first) << name;
    EXPECT_LE(*std::max_element(e.begin(), e.end()), bars.at(name).second) << name;
  }
}

Setting hybrid(const std::string& model, std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), {"workload.seq=8192", "workload.global_batch=128"});
  const Described d = of({model, "h100-1024"}, sets, 16);
  EXPECT_TRUE(d) << (d ? "" : render(d.error()));
  return d ? d->setting : Setting{};
}

Plan plain(int64_t tp = 1, int64_t ep = 1) {
  Plan p;
  p.tp = tp;
  p.ep = ep;
  p.zero = 1;
  p.micro_batch = 1;
  return p;
}

Prediction predict(const Setting& s, const Plan& p) { return Predictor(s).predict(p); }

// Every FLOP of the convention is booked as useful, and no other.
TEST(Hybrid, UsefulIsTheModelsFlops) {
  for (const char* name :
       {"nemotron-h-8b", "nemotron-3-nano-30b-a3b", "qwen3-next-80b-a3b", "kimi-linear-48b-a3b",
        "jamba-1.5-large", "mamba2-2.7b", "granite-4.0-h-small", "minimax-text-01"}) {
    const Setting s = hybrid(name);
    const Model& m = s.workload.model;
    const Plan p = plain(1, m.experts > 0 ? 8 : 1);
    const Layout l = make_layout(s, p);
    const Links links = links_of(s);
    const Step step = assemble_step(s, p, l, links, microbatch_cost(s, p, l, links));
    const double flops = flops_per_token(s.workload) * 8192 * 128;
    const double peak_flops =
        step.ledger[Account::kUseful].v * 16 * peak(s.cluster.accelerator, Precision::kBf16).v;
    // Mamba's channels and a router's width are rounded to whole columns.
    EXPECT_NEAR(peak_flops / flops, 1, 1e-3) << name;
  }
}

// More tensor parallel ranks hold less, a longer sequence takes more, and a layer whose attention
// is replaced costs less than attention over a long sequence.
TEST(Hybrid, Orders) {
  const Setting s = hybrid("nemotron-h-8b");
  EXPECT_GT(predict(s, plain(1)).memory.weights, predict(s, plain(4)).memory.weights);
  const Setting longer = hybrid("nemotron-h-8b", {"workload.seq=32768"});
  EXPECT_GT(predict(longer, plain(8)).step, predict(s, plain(8)).step);
  const auto per_token = [](const Setting& x) {
    return predict(x, plain(8)).ledger[Account::kAttention].v / static_cast<double>(x.workload.seq);
  };
  const Setting dense = hybrid("llama-3.1-8b", {"workload.seq=131072"});
  const Setting mixed = hybrid("nemotron-h-8b", {"workload.seq=131072"});
  EXPECT_GT(per_token(dense), 3 * per_token(mixed));
}

// Heads lie on ranks whole, also where sequences are exchanged for them.
TEST(Hybrid, HeadsAreNotSplit) {
  const Setting s = hybrid("nemotron-3-nano-30b-a3b");  // 64 heads
  Plan p = plain(16);
  EXPECT_FALSE(Predictor(s).impossible(plain(8)));
  Setting wide = s;
  wide.accelerators = 128;
  p.tp = 8, p.cp = 16;
  const auto problem = Predictor(wide).impossible(p);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->setting, "plan.cp");
}

// A hybrid without recurrent layers' share is the transformer it came from.
TEST(Hybrid, SharesAddUp) {
  const Setting plain_model = hybrid("llama-3.1-8b");
  Setting mixed = plain_model;
  Mixer& x = mixed.workload.model.mixer;
  x = {MixerKind::kMamba2, 16, 64, 64, 128, 8, 4, 0};
  const double half = predict(mixed, plain()).step.v;
  x.layers = 8;
  const double quarter = predict(mixed, plain()).step.v;
  x.layers = 24;
  const double most = predict(mixed, plain()).step.v;
  EXPECT_NEAR(most - half, half - quarter, 0.02 * std::abs(most - half) + 1e-3 * half);
}

}  // namespace
}  // namespace assay

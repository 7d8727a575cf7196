// How cells are read, by 652 texts that an independent reader made up together with what a person
// who knows the frameworks takes them for (test/data/readings.csv). It lives here because results
// name every setting (value_json).
#include <gtest/gtest.h>

#include <cstdlib>

#include "report/json.h"
#include "validate/scenario.h"
#include "validate/text.h"

namespace assay {
namespace {

// A model that fits whatever is read.
void give_shape(Run& r) {
  r.model_name = r.experts ? "Acme-MoE" : "Acme-8B";
  r.layers = 32, r.hidden = 1024, r.ffn = 2816, r.heads = 16, r.kv_heads = 8;
  r.vocab = 32000, r.seq = 2048, r.gated_mlp = true, r.tied_embeddings = false;
  if (r.experts) r.experts_per_token = 6, r.expert_ffn = 512;
}

Json settings_of(const Scenario& s) {
  Json all;
  all["plan"] = value_json(s.plan);
  all["stack"] = value_json(s.setting.stack);
  all["work"] = value_json(s.setting.workload);
  all["acc"] = value_json(s.setting.cluster.accelerator);
  all["fabric"] = value_json(s.setting.cluster.fabric);
  const Node& node = s.setting.cluster.node;
  all["node"]["total"] = static_cast<double>(node.nics) * node.nic_bandwidth.v * 8e-9;
  return all;
}

std::string in_words(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// `3`, `bf16`, `megatron-core|megatron-lm`, `0.4..0.7`.
bool agrees(const Json& value, const std::string& expected) {
  const size_t range = expected.find("..");
  if (range != std::string::npos) {
    return value.is_number() && value.get<double>() >= std::stod(expected) &&
           value.get<double>() <= std::stod(expected.substr(range + 2));
  }
  for (const std::string& one : split_any(expected, "|")) {
    if (in_words(value) == one) return true;
    char* end = nullptr;
    const double number = std::strtod(one.c_str(), &end);
    if (value.is_number() && *end == '\0' && std::abs(value.get<double>() - number) < 1e-4)
      return true;
  }
  return false;
}

TEST(Readings, TextsThatNobodyWroteYet) {
  const Result<CsvTable> table = read_csv(ASSAY_ROOT "/test/data/readings.csv");
  ASSERT_TRUE(table);
  const int column = table->column("expect");
  ASSERT_GE(column, 0);
  auto runs = read_runs(*table);
  ASSERT_GT(runs.size(), 600U);
  for (size_t i = 0; i < runs.size(); ++i) {
    give_shape(runs[i]);
    const auto scenario = to_scenario(runs[i], catalog());
    ASSERT_TRUE(scenario) << "line " << runs[i].line << ": " << scenario.error().reason;
    const Json settings = settings_of(*scenario);
    for (const std::string& said :
         split_any(table->rows[i].fields[static_cast<size_t>(column)], ";")) {
      const size_t is = said.find('='), dot = said.find('.');
      const Json& value = settings.at(said.substr(0, dot)).at(said.substr(dot + 1, is - dot - 1));
      EXPECT_TRUE(agrees(value, said.substr(is + 1)))
          << "line " << runs[i].line << ": " << said << ", read " << in_words(value);
    }
  }
}

}  // namespace
}  // namespace assay

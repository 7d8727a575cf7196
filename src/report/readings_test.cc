// How cells are read, by 1,200 texts that independent readers made up together with what a person
// who knows this field takes them for (test/data/readings*.csv). It lives here because results name
// every setting (value_json).
#include <gtest/gtest.h>

#include <cstdlib>

#include "report/json.h"
#include "validate/text.h"
#include "validate/validate.h"

namespace assay {
namespace {

using TrainingRun = Run;  // a test's own Run hides it

// A model that fits whatever is read.
void give_shape(TrainingRun& r) {
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
  all["model"] = value_json(s.setting.workload.model);
  all["node"] = value_json(node);
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

// What a row is taken for, against its cell `expect`: settings by their names, or the refusal.
void compare(const Case& c, const std::string& expected) {
  const RowResult result = predict_case(c);
  const Json settings = c.scenario ? settings_of(*c.scenario) : Json::object();
  for (const std::string& said : split_any(expected, ";")) {
    const size_t is = said.find('='), dot = said.find('.');
    const std::string name = said.substr(0, is), value = said.substr(is + 1);
    Json read;
    if (name == "status") {
      // That it does not fit is no matter of reading.
      const RunStatus status = result.status == RunStatus::kOom ? RunStatus::kOk : result.status;
      read = enum_names(RunStatus{})[static_cast<size_t>(status)];
    } else if (name == "column") {
      read = result.column;
    } else if (settings.contains(name.substr(0, dot))) {
      read = settings.at(name.substr(0, dot)).at(name.substr(dot + 1));
    }
    EXPECT_TRUE(agrees(read, value))
        << "line " << c.run.line << ": " << said << ", read " << in_words(read);
  }
}

void compare_all(const std::string& file, void (*complete)(TrainingRun&)) {
  const Result<CsvTable> table = read_csv(ASSAY_ROOT "/test/data/" + file);
  ASSERT_TRUE(table);
  const int column = table->column("expect");
  ASSERT_GE(column, 0);
  const std::vector<TrainingRun> runs = read_runs(*table);
  ASSERT_GT(runs.size(), 500U);
  for (size_t i = 0; i < runs.size(); ++i) {
    Case c;
    c.run = runs[i];
    complete(c.run);
    c.scenario = to_scenario(c.run, catalog());
    compare(c, table->rows[i].fields[static_cast<size_t>(column)]);
  }
}

TEST(Readings, Frameworks) { compare_all("readings.csv", give_shape); }

TEST(Readings, ModelsAndMachines) {
  compare_all("readings_hardware.csv", [](TrainingRun& r) {
    r.precision = "bf16";
    r.task = "pretrain";
  });
}

}  // namespace
}  // namespace assay

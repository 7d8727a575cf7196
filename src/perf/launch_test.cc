// Steps in which the host cannot launch as fast as the device runs, on one H200, three rounds of
// the same shapes (tools/measure/launch.py). The host is a shared virtual machine: the same shape
// took 14.7 ms in one round and 25.4 ms in another, so the median over rounds is the most that can
// be asked for.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/predict.h"
#include "world/catalog.h"

namespace assay {
namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

TEST(Launch, MedianOfRoundsOnTheH200) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_launch.csv");
  ASSERT_TRUE(table);
  const Catalog& known = catalog();
  struct Shape {
    std::vector<double> seconds;
    double predicted = 0;
  };
  std::map<std::string, Shape> shapes;
  for (const CsvRow& row : table->rows) {
    const auto text = [&](const char* name) { return std::string(table->cell(row, name)); };
    const auto number = [&](const char* name) { return std::stoll(text(name)); };
    Shape& shape = shapes[text("model") + " " + text("seq") + " x " + text("micro_batch")];
    shape.seconds.push_back(std::stod(text("step_s")));
    if (shape.predicted > 0) continue;
    Setting s;
    Model& m = s.workload.model;
    m.hidden = number("hidden"), m.layers = number("layers"), m.heads = number("heads");
    m.kv_heads = m.heads, m.ffn = number("ffn"), m.vocab = number("vocab");
    s.workload.seq = number("seq"), s.workload.global_batch = number("micro_batch");
    s.cluster.node = *find_node(known, "h200-1");
    s.cluster.accelerator = *find_accelerator(known, s.cluster.node.accelerator);
    s.stack = *find_stack(known, "pytorch-eager");
    s.accelerators = 1;
    resolve(s, known);
    Plan p = s.stack.defaults;
    p.micro_batch = s.workload.global_batch;
    shape.predicted = Predictor(s).predict(p).step.v;
  }
  std::vector<double> errors;
  for (const auto& [name, shape] : shapes) {
    const double error = shape.predicted / median(shape.seconds) - 1;
    errors.push_back(std::abs(error));
    RecordProperty(name, std::to_string(error));
  }
  EXPECT_EQ(shapes.size(), 13u);
  EXPECT_LE(median(errors), 0.12);
}

}  // namespace
}  // namespace assay

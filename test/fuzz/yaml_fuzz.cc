// Any bytes as a YAML description: read, described and rendered without a crash, a hang or an
// unbounded message.
#include <cstdint>
#include <cstdlib>

#include "config/yaml.h"
#include "world/read.h"
#include "world/rules.h"

namespace {

// Every struct that a description can hold, so that each kind of field meets hostile values.
void read_as_everything(const assay::Value& value) {
  assay::Diagnostics problems;
  assay::Origins origins;
  assay::Reader reader(assay::catalog(), problems, origins);
  assay::Workload workload;
  assay::Cluster cluster;
  assay::Stack stack;
  assay::Plan plan;
  reader.read_struct(value, workload, "workload");
  reader.read_struct(value, cluster, "cluster");
  reader.read_struct(value, stack, "stack");
  reader.read_struct(value, plan, "plan");
  if (assay::render(problems).size() > (size_t{4} << 20)) std::abort();
  for (const assay::Entry& entry : value.entries) {
    if (entry.key == "workload") reader.read_struct(entry.value, workload, "workload");
    if (entry.key == "cluster") reader.read_struct(entry.value, cluster, "cluster");
    if (entry.key == "stack") reader.read_struct(entry.value, stack, "stack");
    if (entry.key == "plan") reader.read_struct(entry.value, plan, "plan");
  }
  assay::check_model(workload.model, "workload.model", value, problems);
  assay::check_cluster(cluster, value, problems);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::Sources sources;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const assay::Source* source = sources.add("fuzz.yaml", text);
  assay::Diagnostics problems;
  const std::optional<assay::Value> value = assay::parse_yaml(*source, problems);
  if (value) {
    read_as_everything(*value);
  } else if (assay::render(problems).empty()) {
    std::abort();
  }
  return 0;
}

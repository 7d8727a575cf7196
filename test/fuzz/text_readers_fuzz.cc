// Any bytes as any of the text formats; the first byte chooses the reader. Nothing crashes, and
// what comes out keeps the promises of the headers, and can be diagnosed.
#include <cmath>
#include <cstdint>

#include "base/assert.h"
#include "diagnose/fleet.h"
#include "diagnose/hardware.h"
#include "diagnose/training.h"
#include "ingest/time_text.h"

namespace {

void check(const assay::Analysis& analysis) {
  for (const assay::Finding& finding : analysis.findings) {
    ASSERT(finding.share >= 0 && finding.share <= 1);
    ASSERT(std::isfinite(finding.gain.v) && finding.gain.v >= 0);
    ASSERT(!finding.title.empty() && !finding.fix.empty() && !finding.evidence.empty());
  }
}

void check(const assay::Telemetry& telemetry) {
  for (const assay::GpuSeries& gpu : telemetry.gpus) {
    for (const std::vector<double>& column : gpu.columns) {
      ASSERT(column.empty() || column.size() == gpu.size());
      for (const double value : column) ASSERT(std::isnan(value) || std::isfinite(value));
    }
    for (size_t i = 1; i < gpu.size(); ++i) ASSERT(gpu.at_s[i - 1] <= gpu.at_s[i]);
    (void)gpu.name();
  }
  (void)assay::render(telemetry.problems);
  check(assay::diagnose_telemetry({telemetry}).analysis);
}

void check(const assay::NcclTests& tests) {
  for (const assay::NcclTest& test : tests.tests) {
    (void)test.hosts();
    for (const assay::NcclRow& row : test.rows) {
      ASSERT(row.out_of_place || row.in_place);
      ASSERT(row.bus().v >= 0 && std::isfinite(row.bus().v));
    }
  }
  (void)assay::render(tests.problems);
  check(assay::diagnose_nccl_tests({tests}));
}

void check(const assay::Topology& topology) {
  const int devices = static_cast<int>(topology.devices.size());
  for (const assay::TopoLink& link : topology.links) {
    ASSERT(link.from >= 0 && link.from < link.to && link.to < devices);
  }
  (void)assay::render(topology.problems);
  check(assay::diagnose_topologies({topology}));
}

void check(const assay::KernelLog& log) {
  int line = 0;
  for (const assay::KernelEvent& event : log.events) {
    ASSERT(event.line > line && event.code >= 0);
    line = event.line;
  }
  check(assay::diagnose_kernel_logs({log}));
}

void check(const assay::TrainingLog& log) {
  for (const assay::TrainingIteration& it : log.iterations) {
    ASSERT(it.iteration >= 0 && it.planned >= 0 && it.nan >= 0 && it.skipped >= 0);
    ASSERT(!it.elapsed || (it.elapsed->v >= 0 && std::isfinite(it.elapsed->v)));
  }
  check(assay::diagnose_training_log(log).analysis);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file = "fuzz";
  switch (data[0] % 15) {
    case 0:
      check(assay::read_smi_csv(text, file));
      break;
    case 1:
      check(assay::read_smi_text(text, file));
      break;
    case 2:
      check(assay::read_prometheus_text(text, file));
      break;
    case 3:
      check(assay::read_prometheus_json(text, file));
      break;
    case 4:
      check(assay::read_monitor_jsonl(text, file));
      break;
    case 5:
      check(assay::read_nccl_tests(text, file));
      break;
    case 6:
      check(assay::read_nccl_tests_json(text, file));
      break;
    case 7:
      check(assay::read_topo_matrix(text, file));
      break;
    case 8:
      check(assay::read_nccl_xml(text, file));
      break;
    case 9:
      check(assay::read_hwloc_xml(text, file));
      break;
    case 10:
      check(assay::read_kernel_log(text, file));
      break;
    case 12:
      check(assay::read_smi_xml(text, file));
      break;
    case 13:
      check(assay::read_smi_monitor(text, file));
      break;
    case 14:
      check(assay::read_nvlink_status(text, file));
      break;
    default:
      check(assay::read_training_log(text, file));
      (void)assay::time_at(text);
      break;
  }
  return 0;
}

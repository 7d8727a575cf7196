#include "ingest/recognise.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace assay {
namespace {

struct Expected {
  const char* prefix;
  const char* suffix;
  FileKind kind;
};

// Every file under the folder is one of these; the first row that fits holds.
constexpr Expected kPublic[] = {
    {"", "README.md", FileKind::kUnknown},
    {"jobs/acme/", "", FileKind::kUnknown},
    {"jobs/azure_llm/", "", FileKind::kUnknown},
    {"jobs/philly/", "", FileKind::kUnknown},
    {"jobs/llm_run_logs/", "_events.csv", FileKind::kUnknown},
    {"jobs/llm_run_logs/", "", FileKind::kTrainingLog},
    {"kineto/hta/execution_trace/", "_et.json.gz", FileKind::kExecutionTrace},
    {"kineto/hta/memory_analysis/", "", FileKind::kUnknown},
    {"kineto/param_dlrm_8rank/et_", "", FileKind::kExecutionTrace},
    {"kineto/", ".csv", FileKind::kUnknown},
    {"kineto/", "", FileKind::kKinetoTrace},
    {"straggler/trace-", "", FileKind::kStragglerCsv},
    {"straggler/timeline-", "", FileKind::kKinetoTrace},
    {"straggler/", "", FileKind::kUnknown},
    {"telemetry/dcgm/", ".prom", FileKind::kPrometheusText},
    {"telemetry/dcgm/", "", FileKind::kUnknown},
    {"telemetry/flight_recorder/", "fault_injection.log", FileKind::kUnknown},
    {"telemetry/flight_recorder/", "nvrx_reference.txt", FileKind::kUnknown},
    {"telemetry/flight_recorder/", ".json", FileKind::kFlightRecorderJson},
    {"telemetry/flight_recorder/", "", FileKind::kFlightRecorderPickle},
    {"telemetry/infiniband/", "", FileKind::kUnknown},
    {"telemetry/kernel/", "", FileKind::kKernelLog},
    {"telemetry/kineto/", "", FileKind::kKinetoTrace},
    {"telemetry/lstopo/", "", FileKind::kHwlocXml},
    {"telemetry/nccl/", "", FileKind::kUnknown},
    {"telemetry/nccl_tests/", "", FileKind::kNcclTests},
    {"telemetry/nvidia-smi/", "capture.txt", FileKind::kSmiText},
    {"telemetry/nvidia-smi/", "", FileKind::kNvlinkStatus},
    {"telemetry/prometheus/", "", FileKind::kPrometheusText},
    {"telemetry/sacct/", "", FileKind::kSacct},
    {"telemetry/slurm/gcm-sample-scontrol", "", FileKind::kScontrol},
    {"telemetry/slurm/gcm-sample-sinfo", "", FileKind::kSinfo},
    {"telemetry/slurm/gcm-sample-squeue", "", FileKind::kSqueue},
    {"telemetry/slurm/gcm/sample-sacctmgr", "", FileKind::kUnknown},
    {"telemetry/slurm/gcm/sample-sacct", "", FileKind::kSacct},
    {"telemetry/slurm/gcm/sample-scontrol", "", FileKind::kScontrol},
    {"telemetry/slurm/gcm/sample-squeue", "", FileKind::kSqueue},
    {"telemetry/slurm/gcm/", "", FileKind::kSinfo},
    {"telemetry/superbench/nccl_", "", FileKind::kNcclTests},
    {"telemetry/superbench/megatron", "", FileKind::kTrainingLog},
    {"telemetry/superbench/monitor", "", FileKind::kMonitorJsonl},
    {"telemetry/superbench/", "", FileKind::kUnknown},
    {"telemetry/topo/nccl_xml/", "", FileKind::kNcclXml},
    {"telemetry/topo/", "", FileKind::kTopoMatrix},
    {"telemetry/xid_dmesg/", ".csv", FileKind::kUnknown},
    {"telemetry/xid_dmesg/gpud_lspci", "", FileKind::kUnknown},
    {"telemetry/xid_dmesg/", "", FileKind::kKernelLog},
};

constexpr Expected kH200[] = {
    {"traces/", "", FileKind::kKinetoTrace},
    {"telemetry", "", FileKind::kSmiCsv},
    {"thermal/log.csv", "", FileKind::kSmiCsv},
    {"thermal/q", "", FileKind::kSmiText},
    {"nvidia-smi-q.txt", "", FileKind::kSmiText},
    {"topo.txt", "", FileKind::kTopoMatrix},
    {"", "", FileKind::kUnknown},
};

const Expected* find(std::string_view name, const Expected* begin, const Expected* end) {
  return std::find_if(begin, end, [&](const Expected& row) {
    const std::string_view prefix = row.prefix, suffix = row.suffix;
    return name.substr(0, prefix.size()) == prefix && name.size() >= suffix.size() &&
           name.substr(name.size() - suffix.size()) == suffix;
  });
}

// Returns how many files there were.
size_t check_folder(const std::string& folder, const Expected* begin, const Expected* end) {
  size_t n = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++n;
    const std::string name = std::filesystem::relative(entry.path(), folder).string();
    const Expected* row = find(name, begin, end);
    const Result<FileKind> kind = recognise_file(entry.path().string());
    if (row == end) {
      ADD_FAILURE() << name << ": no row in the table";
    } else if (!kind) {
      ADD_FAILURE() << name << ": " << kind.error().message;
    } else {
      EXPECT_EQ(kind_name(*kind), kind_name(row->kind)) << name;
    }
  }
  return n;
}

TEST(Recognise, EveryPublicFile) {
  const std::string folder = std::string(ASSAY_ROOT) + "/../shared/data/public";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder << " is absent";
  EXPECT_GT(check_folder(folder, std::begin(kPublic), std::end(kPublic)), 400u);
}

TEST(Recognise, EveryMeasurementOnTheH200) {
  const std::string folder = std::string(ASSAY_ROOT) + "/../shared/data/h200";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder << " is absent";
  EXPECT_GT(check_folder(folder, std::begin(kH200), std::end(kH200)), 15u);
}

struct Sample {
  FileKind kind;
  std::string text;
};

// One small text of each kind, so that the table is complete where the real files are absent.
std::vector<Sample> samples() {
  return {
      {FileKind::kKinetoTrace, "\n{\n \"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}]"},
      {FileKind::kKinetoTrace, "{\"a\": {\"b\": [1,2]}, \"traceEvents\": [{\"ph\": \"X\"}]}"},
      {FileKind::kKinetoTrace, "[{\"name\":\"a\",\"pid\":0,\"ts\":1,\"ph\":\"X\"}]"},
      {FileKind::kFlightRecorderPickle, "\x80\x02}(X\x09pg_config"},
      {FileKind::kFlightRecorderJson, "{\"version\": \"2.9\", \"pg_config\": {}}"},
      {FileKind::kExecutionTrace, "{\"schema\": \"1.0.1\", \"pid\": 5, \"nodes\": []}"},
      {FileKind::kSmiCsv, "timestamp, power.draw [W], clocks.sm [MHz]\n1, 2, 3\n"},
      {FileKind::kSmiCsv, "2026/11/15 07:02:20.435, 123.10, 36, 0x0000000000000001\n"},
      {FileKind::kSmiText, "\n==============NVSMI LOG==============\n"},
      {FileKind::kSmiXml, "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<gpu/>\n"},
      {FileKind::kSmiXml, "Unable to determine the device handle\n<nvidia_smi_log>\n"},
      {FileKind::kSmiMonitor,
       "# gpu    pwr  gtemp     sm   pclk\n# Idx  W  C  %  MHz\n 0 1 2 3 4\n"},
      {FileKind::kSmiMonitor, "#Time, gpu, pwr, pclk\n"},
      {FileKind::kSmiMonitor, "#Entity   GPUTL  TENSO\nID\nGPU 0     98     0.1\n"},
      {FileKind::kSmiMonitor, "# gpu         pid   type     sm    mem  command\n"},
      {FileKind::kSmiCsv, "timestamp,gpu,power_w,sm_clock_mhz\n1,0,70,345\n"},
      {FileKind::kUnknown, "step,loss,power_w,temperature\n1,2,3,4\n"},
      {FileKind::kMonitorJsonl, "{\"ts\": 5, \"index\": 0, \"power_w\": 3, \"temp_c\": 4}\n"},
      {FileKind::kMonitorJsonl, "[{\"ts\": 5, \"index\": 0, \"power_w\": 3, \"temp_c\": 4}]"},
      {FileKind::kMonitorJsonl, "{\"time\": 5, \"gpus\": [{\"power_w\": 3}]}\n"},
      {FileKind::kNvlinkStatus,
       "GPU 0: NVIDIA H200 (UUID: GPU-1)\n\t Link 0: 26.5 GB/s\n\t Link 1: <inactive>\n"},
      {FileKind::kKernelLog,
       "[Feb 25 2025 13:59:45] [INFO] [tid 1] text\n[Feb 25 2025 13:59:45] b\n"},
      {FileKind::kPrometheusText, "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nD{gpu=\"0\"} 5\n"},
      {FileKind::kPrometheusJson,
       "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}"},
      {FileKind::kMonitorJsonl, "{\"time\": \"2021-12-06 04:19:35\", \"gpu_usage:0\": 56}\n{}"},
      {FileKind::kNcclTests, "0: # nThread 1 nGpus 1 minBytes 8\n"},
      {FileKind::kNcclTests, "+ srun all_reduce_perf_mpi -b 8\nsrun: error: no\n"},
      {FileKind::kNcclTestsJson, "{\"version\":1, \"args\":[], \"nccl_version\": 22703}"},
      {FileKind::kTopoMatrix, "\t\x1b[4mGPU0\tGPU1\x1b[0m\nGPU0\t X \tNV18\n"},
      {FileKind::kNcclXml, "<!-- text <topology> --><system version=\"1\"><cpu/></system>"},
      {FileKind::kHwlocXml, "<?xml version=\"1.0\"?><!DOCTYPE topology><topology/>"},
      {FileKind::kKernelLog, "[   12.5] NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen\n"},
      {FileKind::kKernelLog, "Nov 15 06:48:40 n1 kernel: Out of memory: Killed process 1\n"},
      {FileKind::kKernelLog, "[12.5] Killed process 123 (all_reduce_perf)\n[12.6] more\n"},
      {FileKind::kSacct, "JobID|State|End\n1|FAILED|2021-04-07T23:59:38\n"},
      {FileKind::kSinfo, "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ngpu* up 1 2 idle n1\n"},
      {FileKind::kSqueue, "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"},
      {FileKind::kScontrol, "NodeName=n1 Arch=x86_64 CoresPerSocket=20\n"},
      {FileKind::kTrainingLog, " iteration 1/ 5 | elapsed time per iteration (ms): 76.3 |\n"},
      {FileKind::kStragglerCsv, "dp_rank,stage,rank,step,optype,start_ts,duration\n"},
      {FileKind::kAssayResult, "{\n  \"schema\": \"assay.plan/1\"}"},
      {FileKind::kUnknown, ""},
      {FileKind::kUnknown, " \n\n"},
      {FileKind::kUnknown, "hello\n"},
      {FileKind::kUnknown, std::string("\0\1\2\3", 4)},
      {FileKind::kUnknown, "a,b,c\n1,2,3\n"},
      {FileKind::kUnknown, "{\"schema\": \"other/1\"}"},
      {FileKind::kUnknown, "\x80\x04numpy.core"},
  };
}

TEST(Recognise, ASampleOfEachKind) {
  std::vector<bool> seen(kFileKinds, false);
  for (const Sample& sample : samples()) {
    EXPECT_EQ(kind_name(recognise(sample.text)), kind_name(sample.kind)) << sample.text;
    seen[static_cast<size_t>(sample.kind)] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
}

// Wherever a text is cut, it is recognised as itself or not at all.
TEST(Recognise, CutAnywhere) {
  for (const Sample& sample : samples()) {
    for (size_t n = 0; n <= sample.text.size(); ++n) {
      const FileKind kind = recognise(std::string_view(sample.text).substr(0, n));
      EXPECT_TRUE(kind == sample.kind || kind == FileKind::kUnknown || kind == FileKind::kKernelLog)
          << kind_name(kind) << " from " << sample.text.substr(0, n);
    }
  }
}

TEST(Recognise, HostileTexts) {
  EXPECT_EQ(recognise(std::string(1 << 20, '[')), FileKind::kUnknown);
  EXPECT_EQ(recognise(std::string(1 << 20, '{')), FileKind::kUnknown);
  EXPECT_EQ(recognise(std::string(1 << 20, '<')), FileKind::kUnknown);
  EXPECT_EQ(recognise(std::string(1 << 20, ',')), FileKind::kUnknown);
  EXPECT_EQ(recognise(std::string(1 << 20, '|')), FileKind::kUnknown);
  EXPECT_EQ(recognise(std::string(1 << 20, '\x1b')), FileKind::kUnknown);
  EXPECT_EQ(recognise("{\"unterminated"), FileKind::kUnknown);
  EXPECT_EQ(recognise("<!-- never closed"), FileKind::kUnknown);
}

TEST(Recognise, FilesThatCannotBeRead) {
  EXPECT_FALSE(recognise_file("/nowhere/at/all"));
  EXPECT_FALSE(recognise_file("/"));
}

}  // namespace
}  // namespace assay

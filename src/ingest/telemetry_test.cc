#include "ingest/telemetry.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ingest/text_file.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

const std::string kShared = std::string(ASSAY_ROOT) + "/../shared/data/";

Telemetry read_file_of(const std::string& path) {
  const Result<std::string> text = read_text(path);
  EXPECT_TRUE(text) << path;
  return read_telemetry(recognise(*text), *text, path);
}

TEST(TimeText, ReadsWhatToolsPrint) {
  EXPECT_DOUBLE_EQ(*time_at("1970/01/02 00:00:01.500"), 86401.5);
  EXPECT_DOUBLE_EQ(*time_at("2026/11/15 06:48:40.5, 36"), 1794725320.5);
  EXPECT_DOUBLE_EQ(*time_at("2026-11-15T06:48:40,5+00:00 NVRM"), 1794725320.5);
  EXPECT_DOUBLE_EQ(*time_at("2026-11-15T08:48:40+02:00"), 1794725320);
  EXPECT_DOUBLE_EQ(*time_at("Sun Nov 15 06:48:40 2026"), 1794725320);
  EXPECT_DOUBLE_EQ(*time_at("Nov 15 2026 06:48:40] [INFO]"), 1794725320);
  EXPECT_DOUBLE_EQ(*syslog_time_at("Nov  5 06:48:40 host kernel:", 2026), 1793861320);
  EXPECT_DOUBLE_EQ(*time_at("2024-02-29 00:00:00"), 1709164800);  // date -d ... +%s
  EXPECT_FALSE(time_at(""));
  EXPECT_FALSE(time_at("2026/13/15 06:48:40"));
  EXPECT_FALSE(time_at("2026/11/15 99:48:40"));
  EXPECT_FALSE(time_at("0000/01/01 00:00:00"));
  EXPECT_FALSE(time_at("Sun Nov 15 06:48"));
}

// Every day of four centuries comes back as it was.
TEST(TimeText, DatesRoundTrip) {
  EXPECT_EQ(date_words(0), "1970-01-01 00:00:00");
  EXPECT_EQ(date_words(1794725320.9), "2026-11-15 06:48:40");
  EXPECT_EQ(date_words(-1), "-");
  EXPECT_EQ(date_words(1e15), "-");
  EXPECT_EQ(date_words(std::nan("")), "-");
  for (double day = 0; day < 146097; ++day) {
    const double at_s = day * 86400 + 3661;
    ASSERT_DOUBLE_EQ(time_at(date_words(at_s)).value_or(-1), at_s) << date_words(at_s);
  }
}

TEST(Metrics, ManyNamesOneMeaning) {
  const char* kTensor[] = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"};
  for (const char* name : kTensor) {
    ASSERT_TRUE(exported_metric(name)) << name;
    EXPECT_EQ(exported_metric(name)->metric, Metric::kTensorActive);
  }
  EXPECT_EQ(dcgm_field(1004)->metric, Metric::kTensorActive);
  EXPECT_FALSE(dcgm_field(0));
  EXPECT_FALSE(exported_metric("up"));
  EXPECT_EQ(exported_metric("nvidia_smi_clocks_current_sm_clock_hz")->metric, Metric::kSmClockMhz);
  EXPECT_DOUBLE_EQ(exported_metric("nvidia_smi_clocks_current_sm_clock_hz")->scale, 1e-6);
  EXPECT_EQ(smi_column("power.draw.instant [W]")->metric, Metric::kPowerW);
  EXPECT_EQ(reason_column("clocks_throttle_reasons.hw_thermal_slowdown"), kReasonHwThermal);
  for (int m = 0; m < kMetrics; ++m) EXPECT_FALSE(metric_name(static_cast<Metric>(m)).empty());
}

TEST(SmiCsv, RowsUnitsAndAbsentValues) {
  const std::string text =
      "timestamp, index, name, power.draw [W], clocks.sm [MHz], utilization.gpu [%], "
      "clocks_event_reasons.active, temperature.memory\r\n"
      "2026/11/15 06:48:40.000, 0, NVIDIA H200, 126.92 W, 1980 MHz, 98 %, 0x0000000000000004, "
      "[N/A]\r\n"
      "2026/11/15 06:48:40.000, 1, NVIDIA H200, [Unknown Error], 345 MHz, 0 %, 0x1, 44\r\n"
      "2026/11/15 06:48:41.000, 0, NVIDIA H2\r\n";
  const Telemetry t = read_smi_csv(text, "log.csv");
  ASSERT_EQ(t.gpus.size(), 2u);
  EXPECT_EQ(t.gpus[0].index, 0);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kPowerW), 126.92);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kGpuUtilisation), 0.98);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kThrottleReasons), 4);
  EXPECT_TRUE(std::isnan(t.gpus[0].last(Metric::kMemoryTemperatureC)));
  EXPECT_TRUE(std::isnan(t.gpus[1].last(Metric::kPowerW)));
  EXPECT_DOUBLE_EQ(t.gpus[1].last(Metric::kMemoryTemperatureC), 44);
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].at.line, 4);
}

TEST(SmiCsv, WithoutHeaderSaysSo) {
  const Telemetry t = read_smi_csv("2026/11/15 07:02:20.435, 123.10, 36, 0x01\n", "log.csv");
  EXPECT_TRUE(t.gpus.empty());
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].severity, Severity::kError);
}

TEST(SmiCsv, ReasonsInColumnsOfTheirOwn) {
  const Telemetry t = read_smi_csv(
      "index, clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_thermal_slowdown\n"
      "0, Active, Active\n",
      "x");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kThrottleReasons), kReasonPowerCap | kReasonHwThermal);
}

TEST(SmiText, SectionsByIndentation) {
  const std::string text =
      "==============NVSMI LOG==============\n\n"
      "Timestamp                  : Sun Nov 15 06:48:40 2026\n"
      "Attached GPUs              : 2\n"
      "GPU 00000000:00:06.0\n"
      "    Product Name           : NVIDIA H200\n"
      "    GPU Recovery Action    : Reset\n"
      "    PCI\n"
      "        GPU Link Info\n"
      "            PCIe Generation\n"
      "                Max        : 5\n"
      "                Current    : 3\n"
      "            Link Width\n"
      "                Max        : 16x\n"
      "                Current    : 8x\n"
      "    Clocks Event Reasons\n"
      "        SW Power Cap       : Not Active\n"
      "        HW Slowdown        : Active\n"
      "            HW Thermal Slowdown : Active\n"
      "        Sync Boost         : Not Active\n"
      "    ECC Errors\n"
      "        Volatile\n"
      "            SRAM Uncorrectable Parity : 1\n"
      "            DRAM Correctable   : 7\n"
      "            DRAM Uncorrectable : 2\n"
      "        Aggregate\n"
      "            DRAM Uncorrectable : 5\n"
      "    Remapped Rows\n"
      "        Pending            : Yes\n"
      "GPU 00000000:00:07.0\n"
      "    Product Name           : NVIDIA H200\n";
  const Telemetry t = read_smi_text(text, "q.txt");
  ASSERT_EQ(t.gpus.size(), 2u);
  const GpuSeries& gpu = t.gpus[0];
  EXPECT_EQ(gpu.pci, "00000000:00:06.0");
  EXPECT_EQ(gpu.model, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(gpu.at_s[0], 1794725320);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kRecoveryAction), 1);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kPcieGeneration), 3);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kPcieWidth), 8);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kPcieWidthMax), 16);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kThrottleReasons), kReasonHwSlowdown | kReasonHwThermal);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kEccUncorrected), 3);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kEccCorrected), 7);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kEccUncorrectedEver), 5);
  EXPECT_DOUBLE_EQ(gpu.last(Metric::kRowRemapPending), 1);
}

TEST(PrometheusText, LabelsDriftAndPagesRepeat) {
  const std::string page =
      "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 98\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",hostname=\"n1\"} 7\n"
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 0.1\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 9223372036854775794\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\",x=\"a\\\"},b\"} NaN\n"
      "go_goroutines 12\n"
      "garbage here\n";
  const Telemetry t = read_prometheus_text(page, "page");
  ASSERT_EQ(t.gpus.size(), 2u);
  EXPECT_EQ(t.gpus[0].host, "n1");
  EXPECT_EQ(t.gpus[1].index, 1);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kTensorActive), 0.1);
  EXPECT_TRUE(std::isnan(t.gpus[0].last(Metric::kPowerW)));
  EXPECT_TRUE(std::isnan(t.gpus[0].last(Metric::kSmClockMhz)));
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].at.line, 8);
  const Telemetry ratio = read_prometheus_text("DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\"} 0.98\n", "p");
  EXPECT_DOUBLE_EQ(ratio.gpus[0].last(Metric::kGpuUtilisation), 0.98);
  const Telemetry percent = read_prometheus_text("DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\"} 98\n", "p");
  EXPECT_DOUBLE_EQ(percent.gpus[0].last(Metric::kGpuUtilisation), 0.98);
  const Telemetry twice = read_prometheus_text(
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 98\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 97\n", "page");
  ASSERT_EQ(twice.gpus.size(), 1u);
  EXPECT_EQ(twice.gpus[0].size(), 2u);
}

TEST(PrometheusJson, VectorAndMatrix) {
  const std::string matrix =
      R"({"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"__name__":"DCGM_FI_DEV_SM_CLOCK","gpu":"3","Hostname":"n1"},
       "values":[[200,"1500"],[100,"1980"],[300,"NaN"]]},
      {"metric":{"__name__":"DCGM_FI_DEV_CLOCKS_EVENT_REASONS","gpu":"3","Hostname":"n1"},
       "values":[[100,"0"],[200,"64"]]},
      {"metric":{"gpu":"3"},"values":[[100,"0"]]}]}})";
  const Telemetry t = read_prometheus_json(matrix, "m.json");
  ASSERT_EQ(t.gpus.size(), 1u);
  ASSERT_EQ(t.gpus[0].size(), 2u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(0, Metric::kSmClockMhz), 1980);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kSmClockMhz), 1500);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kThrottleReasons), 64);
  EXPECT_EQ(t.problems.size(), 1u);
  const Telemetry vector = read_prometheus_json(
      R"({"data":{"resultType":"vector","result":[{"metric":{"__name__":"DCGM_FI_DEV_GPU_TEMP",
      "minor_number":"0"},"value":[1.5,"44"]}]}})",
      "v.json");
  ASSERT_EQ(vector.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(vector.gpus[0].last(Metric::kTemperatureC), 44);
  EXPECT_TRUE(has_errors(read_prometheus_json("{\"data\"", "x").problems));
  EXPECT_TRUE(has_errors(read_prometheus_json("[[[[", "x").problems));
  EXPECT_TRUE(has_errors(
      read_prometheus_json(R"({"status":"error","error":"bad \u001b[2J"})", "x").problems));
}

TEST(MonitorJsonl, ColumnsByGpu) {
  const Telemetry t = read_monitor_jsonl(
      "{\"time\": \"2021-12-06 04:19:35\", \"gpu_usage:0\": 56, \"gpu_usage:1\": 1, "
      "\"gpu_temperature:0\": 26, \"gpu_usage:9999999\": 5}\n"
      "garbage\n"
      "{\"time\": \"2021-12-06 04:19:45\", \"gpu_usage:0\": 57}\n",
      "m.jsonl");
  ASSERT_EQ(t.gpus.size(), 2u);
  EXPECT_EQ(t.gpus[0].size(), 2u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at_s[1] - t.gpus[0].at_s[0], 10);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kGpuUtilisation), 0.57);
  EXPECT_TRUE(std::isnan(t.gpus[0].at(1, Metric::kTemperatureC)));
  EXPECT_EQ(t.problems.size(), 1u);
}

TEST(TelemetryFiles, OurH200) {
  const std::string path = kShared + "h200/telemetry.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path << " is absent";
  const Telemetry t = read_file_of(path);
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_TRUE(t.problems.empty());
  EXPECT_GT(t.gpus[0].size(), 500u);
  EXPECT_GT(t.gpus[0].largest(Metric::kPowerW), 600);
  EXPECT_DOUBLE_EQ(t.gpus[0].largest(Metric::kSmClockMhz), 1980);
  const Telemetry q = read_file_of(kShared + "h200/nvidia-smi-q.txt");
  ASSERT_EQ(q.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(q.gpus[0].last(Metric::kPowerLimitW), 700);
  EXPECT_DOUBLE_EQ(q.gpus[0].last(Metric::kThrottleReasons), kReasonIdle);
  EXPECT_DOUBLE_EQ(q.gpus[0].last(Metric::kSmClockMaxMhz), 1980);
  EXPECT_DOUBLE_EQ(q.gpus[0].last(Metric::kPcieWidth), 16);
  EXPECT_DOUBLE_EQ(q.gpus[0].last(Metric::kEccUncorrected), 0);
}

TEST(TelemetryFiles, CapturesAndPages) {
  const std::string folder = kShared + "public/telemetry/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder << " is absent";
  const Telemetry capture = read_file_of(folder + "nvidia-smi/nvidia-h200__590.48.01.capture.txt");
  ASSERT_EQ(capture.gpus.size(), 1u) << "text and CSV are of one GPU";
  EXPECT_GE(capture.gpus[0].size(), 4u) << "idle and loaded, each as text and as CSV";
  EXPECT_EQ(capture.gpus[0].model, "NVIDIA H200");
  EXPECT_GT(capture.gpus[0].largest(Metric::kPowerW), 600);
  EXPECT_LT(capture.gpus[0].smallest(Metric::kPowerW), 200);
  const Telemetry page =
      read_file_of(folder + "prometheus/nvidia_gpu_exporter__nvidia-h200__590.48.01__load.prom");
  ASSERT_EQ(page.gpus.size(), 1u);
  EXPECT_TRUE(page.problems.empty());
  EXPECT_DOUBLE_EQ(page.gpus[0].last(Metric::kSmClockMhz), 1980);
  EXPECT_DOUBLE_EQ(page.gpus[0].last(Metric::kGpuUtilisation), 1);
  EXPECT_DOUBLE_EQ(page.gpus[0].last(Metric::kPowerLimitW), 700);
  EXPECT_EQ(page.gpus[0].index, 0);
  const Telemetry dcgm = read_file_of(folder + "dcgm/dcgm_exporter_metrics_samples.prom");
  EXPECT_GE(dcgm.gpus.size(), 6u);
  const Telemetry monitor = read_file_of(folder + "superbench/monitor.jsonl");
  EXPECT_EQ(monitor.gpus.size(), 8u);
  EXPECT_TRUE(monitor.problems.empty());
}

TEST(Telemetry, HostileTexts) {
  const std::string deep(1 << 16, '[');
  EXPECT_TRUE(has_errors(read_prometheus_json(deep, "x").problems));
  EXPECT_NO_FATAL_FAILURE(read_monitor_jsonl(deep + "\n" + deep, "x"));
  EXPECT_NO_FATAL_FAILURE(read_smi_text(std::string(1 << 16, ' ') + "a", "x"));
  std::string nested = "NVSMI LOG\nGPU 00000000:00:06.0\n";
  for (int i = 1; i < 400; ++i) nested += std::string(static_cast<size_t>(i), ' ') + "x\n";
  EXPECT_EQ(read_smi_text(nested, "x").gpus.size(), 1u);
  std::string many = "DCGM_FI_DEV_GPU_TEMP{";
  for (int i = 0; i < 1000; ++i) many += "a" + std::to_string(i) + "=\"b\",";
  EXPECT_EQ(read_prometheus_text(many + "} 1\n", "x").gpus.size(), 0u);
  // Thousands of bad lines make a short list of problems.
  std::string bad = "index, power.draw [W]\n";
  for (int i = 0; i < 5000; ++i) bad += "1\n";
  EXPECT_LT(read_smi_csv(bad, "x").problems.size(), 30u);
}

}  // namespace
}  // namespace assay

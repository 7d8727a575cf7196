// The other ways in which nvidia-smi, and programs like it, print what they see.
#include <gtest/gtest.h>

#include "ingest/kernel_log.h"
#include "ingest/recognise.h"
#include "ingest/telemetry.h"
#include "ingest/topo.h"

namespace assay {
namespace {

bool says(const Diagnostics& problems, const std::string& what) {
  for (const Diagnostic& d : problems) {
    if (d.message.find(what) != std::string::npos) return true;
  }
  return false;
}

// Names of elements as driver 580 prints them.
std::string gpu_xml(const std::string& id, const std::string& inside) {
  return "<gpu id=\"" + id + "\"><product_name>NVIDIA H200</product_name><uuid>GPU-" + id +
         "</uuid>" + inside + "</gpu>";
}

std::string document(const std::string& time, const std::string& gpus) {
  return "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n"
         "<nvidia_smi_log>\n<timestamp>" +
         time + "</timestamp>\n" + gpus + "</nvidia_smi_log>\n";
}

TEST(SmiXml, ElementsByNameAndParent) {
  const std::string inside =
      "<clocks><graphics_clock>1 MHz</graphics_clock><sm_clock>1200 MHz</sm_clock></clocks>"
      "<max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks>"
      "<gpu_power_readings><average_power_draw>400.00 W</average_power_draw>"
      "<instant_power_draw>512.50 W</instant_power_draw>"
      "<current_power_limit>700.00 W</current_power_limit></gpu_power_readings>"
      "<module_power_readings><instant_power_draw>9.0 "
      "W</instant_power_draw></module_power_readings>"
      "<temperature><gpu_temp>88 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>"
      "<utilization><gpu_util>100 %</gpu_util></utilization>"
      "<fb_memory_usage><total>143771 MiB</total><used>1024 MiB</used></fb_memory_usage>"
      "<mig_devices><mig_device><fb_memory_usage><used>7 MiB</used></fb_memory_usage></mig_device>"
      "</mig_devices>"
      "<clocks_event_reasons><clocks_event_reason_sw_power_cap>Not Active"
      "</clocks_event_reason_sw_power_cap><clocks_event_reason_hw_thermal_slowdown>Active"
      "</clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>"
      "<clocks_event_reasons_counters><clocks_event_reasons_counters_sw_power_cap>2500000 us"
      "</clocks_event_reasons_counters_sw_power_cap></clocks_event_reasons_counters>"
      "<ecc_errors><volatile><sram_correctable>1</sram_correctable>"
      "<sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
      "<dram_uncorrectable>3</dram_uncorrectable></volatile>"
      "<aggregate><dram_correctable>9</dram_correctable><dram_uncorrectable>4</dram_uncorrectable>"
      "</aggregate></ecc_errors>"
      "<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>"
      "<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen>"
      "<current_link_gen>4</current_link_gen></pcie_gen><link_widths>"
      "<max_link_width>16x</max_link_width></link_widths></pci_gpu_link_info></pci>"
      "<gpu_recovery_action>None</gpu_recovery_action>";
  const Telemetry t = read_smi_xml(
      document("Sun Nov 15 06:48:40 2026", gpu_xml("00000000:1A:00.0", inside)), "q.xml");
  EXPECT_TRUE(t.problems.empty()) << render(t.problems);
  ASSERT_EQ(t.gpus.size(), 1u);
  const GpuSeries& gpu = t.gpus[0];
  EXPECT_EQ(gpu.model, "NVIDIA H200");
  EXPECT_EQ(gpu.pci, "00000000:1A:00.0");
  EXPECT_DOUBLE_EQ(gpu.at_s[0], 1794725320);
  const std::pair<Metric, double> expected[] = {{Metric::kSmClockMhz, 1200},
                                                {Metric::kSmClockMaxMhz, 1980},
                                                {Metric::kPowerW, 512.5},
                                                {Metric::kPowerLimitW, 700},
                                                {Metric::kTemperatureC, 88},
                                                {Metric::kGpuUtilisation, 1},
                                                {Metric::kMemoryUsedBytes, 1024 * 1048576.0},
                                                {Metric::kThrottleReasons, kReasonHwThermal},
                                                {Metric::kPowerViolationS, 2.5},
                                                {Metric::kEccCorrected, 1},
                                                {Metric::kEccUncorrected, 5},
                                                {Metric::kEccUncorrectedEver, 4},
                                                {Metric::kRowRemapPending, 1},
                                                {Metric::kPcieGeneration, 4},
                                                {Metric::kPcieWidthMax, 16},
                                                {Metric::kRecoveryAction, 0}};
  for (const auto& [metric, value] : expected) {
    EXPECT_DOUBLE_EQ(gpu.at(0, metric), value) << metric_name(metric);
  }
  EXPECT_FALSE(gpu.has(Metric::kMemoryTemperatureC));
}

TEST(SmiXml, NamesOfOlderDrivers) {
  const Telemetry t = read_smi_xml(
      document("", gpu_xml("0",
                           "<power_readings><power_draw>70 W</power_draw>"
                           "<power_limit>300 W</power_limit></power_readings>"
                           "<clocks_throttle_reasons><clocks_throttle_reason_sw_power_cap>"
                           "Active</clocks_throttle_reason_sw_power_cap>"
                           "</clocks_throttle_reasons><ecc_errors><volatile><double_bit>"
                           "<device_memory>2</device_memory><total>2</total></double_bit>"
                           "</volatile></ecc_errors>")),
      "q.xml");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kPowerW), 70);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kPowerLimitW), 300);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kThrottleReasons), kReasonPowerCap);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kEccUncorrected), 2);
}

TEST(SmiXml, SeveralDocumentsAndWhatIsCut) {
  const std::string one = document("Sun Nov 15 06:48:40 2026", gpu_xml("a", "") + gpu_xml("b", ""));
  const std::string two = document(
      "Sun Nov 15 06:48:45 2026",
      gpu_xml("a", "<temperature><gpu_temp>50 C</gpu_temp></temperature>") + gpu_xml("b", ""));
  Telemetry t = read_smi_xml("Unable to determine the device handle\n" + one + two, "q.xml");
  ASSERT_EQ(t.gpus.size(), 2u);
  EXPECT_EQ(t.gpus[0].size(), 2u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at_s[1] - t.gpus[0].at_s[0], 5);
  EXPECT_TRUE(t.problems.empty());
  // Cut anywhere: what came before is read, or an error says that there is nothing.
  const std::string all = one + two;
  for (size_t n = 0; n < all.size(); n += 7) {
    t = read_smi_xml(all.substr(0, n), "q.xml");
    EXPECT_TRUE(!t.gpus.empty() || has_errors(t.problems)) << n;
    if (n > one.size() + 200) {
      EXPECT_EQ(t.gpus.size(), 2u) << n;
    }
  }
  t = read_smi_xml(all.substr(0, all.size() - 40), "q.xml");
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_TRUE(says(t.problems, "cut short or damaged"));
  EXPECT_EQ(t.problems[0].at.line, 10);
}

TEST(SmiXml, Hostile) {
  std::string bomb =
      "<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a \"aaaaaaaaaa\">"
      "<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
  Telemetry t = read_smi_xml(bomb + "<nvidia_smi_log><gpu id=\"&b;\"><uuid>&b;</uuid></gpu>", "x");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_EQ(t.gpus[0].pci, "&b;");
  std::string deep = "<nvidia_smi_log>";
  for (int i = 0; i < 100000; ++i) deep += "<gpu>";
  EXPECT_EQ(read_smi_xml(deep, "x").gpus.size(), 1u);
  t = read_smi_xml(
      "<nvidia_smi_log><gpu id=\"\x1b[2J\xff\"><clocks><sm_clock>1e999 MHz</sm_clock>"
      "<mem_clock>nan</mem_clock></clocks></gpu></nvidia_smi_log>",
      "x");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_EQ(t.gpus[0].name().find('\x1b'), std::string::npos);
  EXPECT_FALSE(t.gpus[0].has(Metric::kSmClockMhz));
  EXPECT_FALSE(t.gpus[0].has(Metric::kMemoryClockMhz));
}

TEST(SmiMonitor, DeviceRows) {
  const Telemetry t = read_smi_monitor(
      "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol  "
      "  fb  rxpci\n"
      "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool  "
      "  MB   MB/s\n"
      " 20261115   06:48:40      0    612     71      -     98     40   2619   1755    100      0  "
      "1000     12\n"
      " 20261115   06:48:40      1    300     71     80     98     40   2619   1980      0      1  "
      "1000     12\n"
      "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol  "
      "  fb  rxpci\n"
      " 20261115   06:48:41      0    612     71\n",
      "dmon");
  ASSERT_EQ(t.gpus.size(), 2u);
  EXPECT_EQ(t.gpus[0].size(), 1u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at_s[0], 1794725320);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kPowerW), 612);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kSmClockMhz), 1755);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kGpuUtilisation), 0.98);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kThrottleReasons), kReasonPowerCap);
  EXPECT_DOUBLE_EQ(t.gpus[1].last(Metric::kThrottleReasons), kReasonSwThermal);
  EXPECT_DOUBLE_EQ(t.gpus[1].last(Metric::kPcieReceivedBytesPerS), 12e6);
  EXPECT_FALSE(t.gpus[0].has(Metric::kMemoryTemperatureC));
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].at.line, 6);
}

TEST(SmiMonitor, CommasAndMidnights) {
  const Telemetry t = read_smi_monitor(
      "#Time, gpu, pwr, pclk\n#HH:MM:SS, Idx, W, MHz\n 23:59:59, 0, 70, 345\n 00:00:01, 0, 70, "
      "345\n",
      "dmon.csv");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at_s[1] - t.gpus[0].at_s[0], 2);
  EXPECT_DOUBLE_EQ(t.gpus[0].last(Metric::kSmClockMhz), 345);
}

TEST(SmiMonitor, ProcessesAreAddedUp) {
  const Telemetry t = read_smi_monitor(
      "# gpu         pid   type     sm    mem    enc    dec    command\n"
      "# Idx           #    C/G      %      %      %      %    name\n"
      "    0       1001     C     40      1      -      -    python train.py\n"
      "    0       1002     C     30      1      -      -    python\n"
      "    1          -     -      -      -      -      -    -\n"
      "    0       1001     C     50      1      -      -    python\n"
      "    1          -     -      -      -      -      -    -\n",
      "pmon");
  ASSERT_EQ(t.gpus.size(), 2u);
  ASSERT_EQ(t.gpus[0].size(), 2u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(0, Metric::kGpuUtilisation), 0.7);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kGpuUtilisation), 0.5);
  EXPECT_DOUBLE_EQ(t.gpus[1].at(1, Metric::kGpuUtilisation), 0);
  EXPECT_TRUE(t.problems.empty());
}

TEST(SmiMonitor, DcgmiDmon) {
  const Telemetry t = read_smi_monitor(
      "#Entity   GPUTL  SMACT  TENSO  POWER    WHAT\n"
      "ID\n"
      "GPU 0     98     0.921  0.113  412.3    7\n"
      "GPU 1     97     N/A    0.114  408.9    7\n"
      "Switch 0  97     N/A    0.114  408.9    7\n"
      "#Entity   GPUTL  SMACT  TENSO  POWER    WHAT\n"
      "ID\n"
      "GPU 0     99     0.900  0.100  400.0    7\n"
      "GPU 1     99     0.9\n",
      "dcgmi");
  ASSERT_EQ(t.gpus.size(), 2u);
  ASSERT_EQ(t.gpus[0].size(), 2u);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(0, Metric::kGpuUtilisation), 0.98);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kTensorActive), 0.1);
  EXPECT_DOUBLE_EQ(t.gpus[1].last(Metric::kPowerW), 408.9);
  EXPECT_FALSE(t.gpus[1].has(Metric::kSmActive));
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].at.line, 9);
}

TEST(SmiMonitor, Hostile) {
  EXPECT_TRUE(has_errors(read_smi_monitor("", "x").problems));
  EXPECT_TRUE(has_errors(read_smi_monitor("# gpu pwr\n", "x").problems));
  std::string wide = "# gpu";
  for (int i = 0; i < 1000000; ++i) wide += " pwr";
  EXPECT_NO_FATAL_FAILURE(read_smi_monitor(wide + "\n0 1 2\n", "x"));
  const Telemetry t =
      read_smi_monitor("# gpu pwr pclk\n-1 5 5\n9999999999 5 5\n0 nan 1e999\n", "x");
  ASSERT_EQ(t.gpus.size(), 1u);
  EXPECT_FALSE(t.gpus[0].has(Metric::kPowerW));
}

TEST(Samples, ObjectsByGpuWithNamesOfTheirOwn) {
  const Telemetry t = read_monitor_jsonl(
      "{\"timestamp\": 1794725320.5, \"host\": \"n1\", \"index\": 3, \"power_w\": 612.5, "
      "\"sm_clock_mhz\": 1755, \"gpu_util\": 98, \"tensor_active\": 0.4, \"fan\": 3}\n"
      "{\"timestamp\": 1794725321500, \"host\": \"n1\", \"index\": 3, \"power.draw\": \"600.1 W\", "
      "\"clocks_event_reasons.active\": \"0x4\"}\n"
      "{\"ts\": \"2026-11-15 06:48:43\", \"gpus\": [{\"gpu\": 0, \"temp_c\": 50}, {\"gpu\": 1, "
      "\"temp_c\": 60, \"memory_used_mib\": 2}]}\n",
      "nvml.jsonl");
  EXPECT_TRUE(t.problems.empty());
  ASSERT_EQ(t.gpus.size(), 3u);
  EXPECT_EQ(t.gpus[0].name(), "n1 GPU 3");
  EXPECT_DOUBLE_EQ(t.gpus[0].at_s[1] - t.gpus[0].at_s[0], 1);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(0, Metric::kPowerW), 612.5);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kPowerW), 600.1);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(1, Metric::kThrottleReasons), 4);
  EXPECT_DOUBLE_EQ(t.gpus[0].at(0, Metric::kGpuUtilisation), 0.98);
  EXPECT_DOUBLE_EQ(t.gpus[2].at(0, Metric::kMemoryUsedBytes), 2 * 1048576.0);
  EXPECT_DOUBLE_EQ(t.gpus[2].at_s[0], 1794725323);
}

TEST(Samples, OneArrayAndCsv) {
  const Telemetry array = read_monitor_jsonl(
      "[{\"time\": 1794725320, \"gpu\": 0, \"power_mw\": 70000, \"temp\": 30}, 5]", "a.json");
  ASSERT_EQ(array.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(array.gpus[0].last(Metric::kPowerW), 70);
  const Telemetry csv =
      read_smi_csv("timestamp,gpu,power_w,sm_clock_mhz\n1794725320,0,70,345\n", "a.csv");
  ASSERT_EQ(csv.gpus.size(), 1u);
  EXPECT_DOUBLE_EQ(csv.gpus[0].last(Metric::kSmClockMhz), 345);
  EXPECT_DOUBLE_EQ(csv.gpus[0].at_s[0], 1794725320);
  EXPECT_FALSE(sample_metric("power_usage"));  // watts or milliwatts
  EXPECT_TRUE(sample_metric("power_usage_mw"));
}

TEST(Nvlink, LinksByState) {
  const Topology t = read_nvlink_status(
      "GPU 0: NVIDIA H200 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
      "GPU 1: NVIDIA H200 (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
      "GPU 2: NVIDIA H200 (UUID: GPU-3)\n\t Link 0: 26.562 GB/s\n\t Link 1: 13.281 GB/s\n",
      "nvlink");
  EXPECT_TRUE(t.problems.empty());
  ASSERT_EQ(t.devices.size(), 3u);
  EXPECT_EQ(t.devices[0].nvlinks, 1);
  EXPECT_EQ(t.devices[1].nvlinks, 2);
  EXPECT_EQ(t.devices[2].nvlinks, 1);
  EXPECT_EQ(t.devices[0].model, "NVIDIA H200");
  EXPECT_TRUE(has_errors(read_nvlink_status("", "x").problems));
  EXPECT_EQ(read_nvlink_status("Link 0: 5 GB/s\n", "x").problems.size(), 2u);
}

TEST(Nvlink, ErrorsByLink) {
  const std::string text =
      "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: "
      "0\n"
      "\t Link 0: CRC Errors: 0\n\t Link 1: Replay Errors: 7\n\t Link 1: Recovery Errors: 2\n"
      "\t Link 1: CRC Errors: 18446744073709551615\n\t Link 1: Effective BER: 15e-255\n"
      "\t Link 9999999: Replay Errors: 3\n";
  EXPECT_EQ(recognise(text), FileKind::kNvlinkStatus);
  const Topology t = read_nvlink_status(text, "nvlink");
  ASSERT_EQ(t.devices.size(), 1u);
  ASSERT_EQ(t.devices[0].errors.size(), 2u);
  EXPECT_EQ(t.devices[0].errors[0].replays, 0);
  EXPECT_EQ(t.devices[0].errors[1].replays, 7);
  EXPECT_EQ(t.devices[0].errors[1].recoveries, 2);
  EXPECT_EQ(t.devices[0].errors[1].crc, int64_t{1} << 40);
  EXPECT_EQ(t.devices[0].nvlinks, 0);  // -e does not say how many run
  EXPECT_EQ(t.problems.size(), 1u);    // no such link
}

TEST(KernelLog, ImpossibleTimesAreNone) {
  const KernelLog log = read_kernel_log(
      "[1e308] NVRM: Xid (PCI:0000:38:00): 79, x\n[-5] NVRM: Xid (PCI:0000:38:00): 79, x\n"
      "[12.5] NVRM: Xid (PCI:0000:38:00): 79, x\n",
      "k");
  ASSERT_EQ(log.events.size(), 3u);
  EXPECT_FALSE(log.events[0].uptime_s || log.events[1].uptime_s);
  EXPECT_DOUBLE_EQ(*log.last_uptime_s, 12.5);
}

TEST(KernelLog, FabricManager) {
  const KernelLog log = read_kernel_log(
      "[Feb 27 2025 15:10:01] [INFO] [tid 1803] multicast group 0 is freed.\n"
      "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid 0 "
      "on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61\n"
      "[Feb 27 2025 15:10:03] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on "
      "NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33\n"
      "[Feb 27 2025 15:10:04] [ERROR] [tid 841] detected NVSwitch fatal error x\n",
      "fm.log");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].kind, KernelEventKind::kSxid);
  EXPECT_EQ(log.events[0].code, 12028);
  EXPECT_FALSE(log.events[0].fatal);
  EXPECT_EQ(log.events[0].pci, "00000000:86:00.0");
  EXPECT_TRUE(log.events[1].fatal);
  EXPECT_EQ(log.events[1].code, 20034);
  EXPECT_DOUBLE_EQ(*log.events[1].at_s - *log.events[0].at_s, 1);
}

}  // namespace
}  // namespace assay

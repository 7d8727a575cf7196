#include "diagnose/hardware.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "diagnose/xid.h"
#include "ingest/text_file.h"
#include "world/catalog.h"

namespace assay {
namespace {

const std::string kShared = std::string(ASSAY_ROOT) + "/../shared/data/";

struct Sample {
  double clock = 1980, utilisation = 1;
  unsigned reasons = 0;
  double power = 600, limit = 700;
};

// One GPU sampled every second.
Telemetry telemetry_of(const std::vector<Sample>& samples) {
  TelemetryBuilder builder("t.csv");
  GpuSeries identity;
  identity.host = "n1";
  identity.index = 3;
  const int gpu = builder.series(identity);
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t at = builder.new_sample(gpu, 1000.0 + static_cast<double>(i));
    builder.set(gpu, at, Metric::kSmClockMhz, samples[i].clock);
    builder.set(gpu, at, Metric::kSmClockMaxMhz, 1980);
    builder.set(gpu, at, Metric::kGpuUtilisation, samples[i].utilisation);
    builder.set(gpu, at, Metric::kThrottleReasons, samples[i].reasons);
    builder.set(gpu, at, Metric::kPowerW, samples[i].power);
    builder.set(gpu, at, Metric::kPowerLimitW, samples[i].limit);
    builder.set(gpu, at, Metric::kPowerLimitDefaultW, 700);
  }
  return builder.finish();
}

TEST(Hardware, PowerCapIsALedgerLine) {
  const HardwareDiagnosis d =
      diagnose_telemetry({telemetry_of(std::vector<Sample>(100, {1485, 1, kReasonPowerCap}))});
  EXPECT_TRUE(d.analysis.findings.empty());
  ASSERT_EQ(d.gpus.size(), 1u);
  EXPECT_NEAR(d.gpus[0].lost_power_cap.v, 25, 0.01);
  EXPECT_NEAR(d.clocks.power_cap.v, 25, 0.01);
  EXPECT_NEAR(d.clocks.observed.v, 100, 0.01);
  EXPECT_NEAR((d.clocks.running + d.clocks.power_cap + d.clocks.thermal + d.clocks.facility_cap +
               d.clocks.idle)
                  .v,
              d.clocks.observed.v, 1e-9);
  EXPECT_EQ(d.analysis.notes.size(), 1u) << "what the cap costs";
}

TEST(Hardware, LoweredLimitIsAFinding) {
  const HardwareDiagnosis d = diagnose_telemetry(
      {telemetry_of(std::vector<Sample>(100, {1200, 1, kReasonPowerCap, 399, 400}))});
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  const Finding& f = d.analysis.findings[0];
  EXPECT_EQ(f.cause, Cause::kPowerThrottle);
  EXPECT_NE(f.fix.find("nvidia-smi -pl 700"), std::string::npos);
  // Below 1228 MHz the voltage is at its floor: 1200 MHz x 700/400 is 2100 at constant voltage,
  // 1228 x (2100/1228)^(1/2.4) = 1535 MHz.
  EXPECT_NEAR(f.share, 1 - 1200.0 / 1535, 0.01);
  EXPECT_EQ(f.where, std::vector<std::string>{"n1 GPU 3"});
}

// One card under three limits, with the step measured under each: the step without the cap must
// come out within 10 % of the one measured without it.
TEST(Hardware, LoweredLimitAsMeasured) {
  const std::string folder = std::string(ASSAY_ROOT) + "/test/data/telemetry/";
  const Telemetry whole = read_smi_csv(*read_text(folder + "capped.csv"), "capped.csv");
  const CsvTable phases = *read_csv(folder + "phases.csv");
  ASSERT_EQ(phases.rows.size(), 4u);
  const auto cell = [&](size_t row, const char* name) {
    return std::stod(std::string(phases.cell(phases.rows[row], name)));
  };
  const double uncapped = cell(0, "step_s");
  for (size_t row = 0; row < phases.rows.size(); ++row) {
    Telemetry phase;
    phase.file = "capped.csv";
    phase.gpus.emplace_back();
    GpuSeries& cut = phase.gpus[0];
    const GpuSeries& gpu = whole.gpus[0];
    cut.model = gpu.model;
    for (size_t i = 0; i < gpu.size(); ++i) {
      if (gpu.at_s[i] < cell(row, "begin_s") || gpu.at_s[i] > cell(row, "end_s")) continue;
      cut.at_s.push_back(gpu.at_s[i]);
      for (size_t m = 0; m < cut.columns.size(); ++m) {
        if (!gpu.columns[m].empty()) cut.columns[m].push_back(gpu.columns[m][i]);
      }
    }
    ASSERT_GT(cut.size(), 20u);
    const Analysis a = diagnose_telemetry({phase}).analysis;
    if (cell(row, "limit_w") == 700) {
      EXPECT_TRUE(a.findings.empty()) << a.findings[0].title;
      continue;
    }
    ASSERT_EQ(a.findings.size(), 1u) << cell(row, "limit_w");
    EXPECT_EQ(a.findings[0].cause, Cause::kPowerThrottle);
    EXPECT_NEAR(cell(row, "step_s") * (1 - a.findings[0].share), uncapped, 0.1 * uncapped);
  }
  const Analysis a = diagnose_telemetry({whole}).analysis;
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_NE(a.findings[0].title.find("300 W"), std::string::npos) << a.findings[0].title;
}

// A query log often has neither limit nor part: the draw at the cap is the limit, and the part
// comes from --cluster, or from an nvidia-smi -q beside the log.
TEST(Hardware, LoweredLimitWithoutAColumnForIt) {
  Telemetry log = telemetry_of(std::vector<Sample>(100, {1200, 1, kReasonPowerCap, 399, 400}));
  for (const Metric m :
       {Metric::kPowerLimitW, Metric::kPowerLimitDefaultW, Metric::kSmClockMaxMhz}) {
    log.gpus[0].columns[static_cast<size_t>(m)].clear();
  }
  log.gpus[0].columns[static_cast<size_t>(Metric::kSmClockMhz)][0] = 1980;  // a first, cool moment
  EXPECT_TRUE(diagnose_telemetry({log}).analysis.findings.empty()) << "400 W may be all it has";
  HardwareContext context;
  context.accelerator = find_accelerator(catalog(), "H200");
  ASSERT_NE(context.accelerator, nullptr);
  const HardwareDiagnosis d = diagnose_telemetry({log}, context);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kPowerThrottle);
  TelemetryBuilder q("q.txt");
  GpuSeries identity;
  identity.pci = "00000000:00:06.0";
  const int gpu = q.series(identity);
  q.set(gpu, q.new_sample(gpu, 5), Metric::kPowerLimitDefaultW, 700);
  q.set(gpu, 0, Metric::kThrottleReasons, kReasonIdle);
  EXPECT_EQ(diagnose_telemetry({log, q.finish()}).analysis.findings.size(), 1u);
}

TEST(Hardware, LockedClocks) {
  const HardwareDiagnosis d =
      diagnose_telemetry({telemetry_of(std::vector<Sample>(100, {1200, 1, 0, 350, 700}))});
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kPowerThrottle);
  EXPECT_NEAR(d.analysis.findings[0].share, 1 - 1200.0 / 1980, 1e-9);
  EXPECT_TRUE(d.analysis.open.empty());
}

TEST(Hardware, OneSlowGpuAmongItsPeers) {
  std::vector<Telemetry> files;
  for (int i = 0; i < 8; ++i) {
    const double clock = i == 5 ? 1500 : 1700 + 5 * i;
    std::vector<Sample> samples(100, {clock, 1, kReasonPowerCap, 698, 700});
    samples[0].clock = 1980;
    files.push_back(telemetry_of(samples));
    files.back().gpus[0].index = i;
  }
  const HardwareDiagnosis d = diagnose_telemetry(files);
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kStraggler);
  EXPECT_EQ(d.analysis.findings[0].where, std::vector<std::string>{"n1 GPU 5"});
}

TEST(Hardware, HeatIsPricedAndIdleTimeIsNot) {
  std::vector<Sample> samples(50, {1485, 1, kReasonSwThermal | kReasonPowerCap});
  samples.insert(samples.end(), 50, {345, 0, kReasonIdle, 120});
  const HardwareDiagnosis d = diagnose_telemetry({telemetry_of(samples)});
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kThermalThrottle);
  EXPECT_NEAR(d.gpus[0].lost_thermal.v, 12.5, 0.01) << "a quarter of its clock";
  // Cooler it would draw 700 W instead of 600: 1485 x (580/480)^(1/2.4) = 1607 MHz, not 1980.
  EXPECT_NEAR(d.analysis.findings[0].share, 1 - 1485.0 / 1607, 0.001);
  EXPECT_NEAR(d.analysis.findings[0].gain.v, 50 * (1 - 1485.0 / 1607), 0.05);
  EXPECT_NEAR(d.clocks.idle.v, 50, 0.01);
  EXPECT_EQ(d.analysis.findings[0].evidence.size(), 1u);
}

TEST(Hardware, AHotGpuWouldRunAsItsPeers) {
  const std::string path = std::string(ASSAY_ROOT) + "/test/data/logs/hot.csv";
  const HardwareDiagnosis d = diagnose_telemetry({read_smi_csv(*read_text(path), path)});
  ASSERT_EQ(d.analysis.findings.size(), 1u);
  EXPECT_EQ(d.analysis.findings[0].cause, Cause::kThermalThrottle);
  EXPECT_EQ(d.analysis.findings[0].where, std::vector<std::string>{"a3-u07 GPU 5"});
  EXPECT_NEAR(d.analysis.findings[0].share, 1 - 1380.0 / 1695, 0.01);
  EXPECT_EQ(d.analysis.findings[0].confidence, Confidence::kHigh);
}

TEST(Hardware, PowerBrakeAndSmallLosses) {
  const HardwareDiagnosis brake = diagnose_telemetry(
      {telemetry_of(std::vector<Sample>(20, {990, 1, kReasonHwSlowdown | kReasonPowerBrake}))});
  ASSERT_EQ(brake.analysis.findings.size(), 1u);
  EXPECT_EQ(brake.analysis.findings[0].cause, Cause::kPowerThrottle);
  const HardwareDiagnosis small =
      diagnose_telemetry({telemetry_of(std::vector<Sample>(20, {1940, 1, kReasonHwThermal}))});
  EXPECT_TRUE(small.analysis.findings.empty()) << "2 % is not worth a line";
}

// Metrics of one GPU at one time, as a page has them.
Telemetry page_of(const std::vector<std::pair<Metric, double>>& values) {
  TelemetryBuilder builder("page");
  GpuSeries identity;
  identity.index = 0;
  const int gpu = builder.series(identity);
  const size_t at = builder.new_sample(gpu, 0);
  for (const auto& [metric, value] : values) builder.set(gpu, at, metric, value);
  return builder.finish();
}

Analysis page_analysis(const std::vector<std::pair<Metric, double>>& values) {
  return diagnose_telemetry({page_of(values)}).analysis;
}

TEST(Hardware, UtilisationIsNotWork) {
  const std::vector<std::pair<Metric, double>> base = {{Metric::kGpuUtilisation, 0.98},
                                                       {Metric::kTensorActive, 0.10}};
  const auto with = [&](Metric m, double v, Metric n, double w) {
    auto values = base;
    values.push_back({m, v});
    values.push_back({n, w});
    return page_analysis(values);
  };
  const Analysis memory = with(Metric::kDramActive, 0.8, Metric::kSmActive, 0.9);
  ASSERT_EQ(memory.findings.size(), 1u);
  EXPECT_EQ(memory.findings[0].cause, Cause::kMemoryBound);
  EXPECT_NE(memory.findings[0].title.find("98 %"), std::string::npos);
  EXPECT_NE(memory.findings[0].detail.find("not that it worked"), std::string::npos);
  EXPECT_NEAR(memory.findings[0].share, 1 - 0.10 / 0.347, 1e-6);
  const Analysis launch = with(Metric::kDramActive, 0.1, Metric::kSmActive, 0.2);
  ASSERT_EQ(launch.findings.size(), 1u);
  EXPECT_EQ(launch.findings[0].cause, Cause::kLaunchBound);
  const Analysis vector = with(Metric::kDramActive, 0.2, Metric::kSmActive, 0.95);
  ASSERT_EQ(vector.findings.size(), 1u);
  EXPECT_EQ(vector.findings[0].cause, Cause::kNoTensorCores);
  const Analysis unknown = page_analysis(base);
  ASSERT_EQ(unknown.findings.size(), 1u);
  EXPECT_EQ(unknown.findings[0].confidence, Confidence::kLow);
  // A working run, and an idle one.
  EXPECT_TRUE(page_analysis({{Metric::kGpuUtilisation, 0.98}, {Metric::kTensorActive, 0.45}})
                  .findings.empty());
  EXPECT_TRUE(page_analysis({{Metric::kGpuUtilisation, 0.02}, {Metric::kTensorActive, 0.0}})
                  .findings.empty());
}

TEST(Hardware, OfuAgainstMfu) {
  const Telemetry page = page_of({{Metric::kGpuUtilisation, 1},
                                  {Metric::kTensorActive, 0.5},
                                  {Metric::kSmClockMhz, 1584},
                                  {Metric::kSmClockMaxMhz, 1980}});
  HardwareContext context;
  context.mfu = 0.55;
  const HardwareDiagnosis d = diagnose_telemetry({page}, context);
  ASSERT_TRUE(d.gpus[0].ofu);
  EXPECT_NEAR(*d.gpus[0].ofu, 0.4, 1e-9);
  const auto& open = d.analysis.open;
  EXPECT_TRUE(std::any_of(open.begin(), open.end(), [](const OpenQuestion& q) {
    return q.text.find("FLOP count") != std::string::npos;
  }));
  context.mfu = 0.39;
  const HardwareDiagnosis fine = diagnose_telemetry({page}, context);
  EXPECT_TRUE(std::none_of(
      fine.analysis.open.begin(), fine.analysis.open.end(),
      [](const OpenQuestion& q) { return q.text.find("FLOP count") != std::string::npos; }));
}

TEST(Hardware, FaultsOfAPage) {
  struct Case {
    std::vector<std::pair<Metric, double>> values;
    const char* words;  // of the title; null: no finding
  };
  const Case cases[] = {
      {{{Metric::kEccUncorrected, 2}}, "uncorrectable memory errors"},
      {{{Metric::kEccUncorrectedEver, 2}}, nullptr},
      {{{Metric::kEccCorrected, 5000}}, nullptr},
      {{{Metric::kRowRemapPending, 1}}, "waits for a reset"},
      {{{Metric::kRowRemapFailed, 1}}, "could not remap"},
      {{{Metric::kRowsRemappedCorrectable, 3}}, nullptr},
      {{{Metric::kPcieWidth, 8}, {Metric::kPcieWidthMax, 16}}, "8 of 16 lanes"},
      {{{Metric::kPcieWidth, 16}, {Metric::kPcieWidthMax, 16}}, nullptr},
      {{{Metric::kPcieGeneration, 1},
        {Metric::kPcieGenerationMax, 5},
        {Metric::kGpuUtilisation, 0}},
       nullptr},
      {{{Metric::kPcieGeneration, 3},
        {Metric::kPcieGenerationMax, 5},
        {Metric::kGpuUtilisation, 1}},
       "generation 3 of 5"},
      {{{Metric::kRecoveryAction, 1}}, "asks for a reset"},
      {{{Metric::kXid, 79}}, nullptr},  // at an unknown time: a question, not a finding
      {{{Metric::kXid, 31}}, nullptr},
  };
  for (const Case& c : cases) {
    const Analysis a = page_analysis(c.values);
    if (c.words == nullptr) {
      EXPECT_TRUE(a.findings.empty()) << a.findings[0].title;
      continue;
    }
    ASSERT_EQ(a.findings.size(), 1u) << c.words;
    EXPECT_NE(a.findings[0].title.find(c.words), std::string::npos) << a.findings[0].title;
    EXPECT_EQ(a.findings[0].cause, Cause::kHardwareFault);
    EXPECT_TRUE(a.findings[0].urgent);
  }
  EXPECT_EQ(page_analysis({{Metric::kXid, 79}}).open.size(), 1u);
}

TEST(Hardware, AnXidThatAppearsIsNews) {
  Telemetry t = telemetry_of(std::vector<Sample>(10));
  std::vector<double> xids(10, 0.0);
  xids[7] = xids[8] = xids[9] = 79;
  t.gpus[0].columns[static_cast<size_t>(Metric::kXid)] = xids;
  const Analysis a = diagnose_telemetry({t}).analysis;
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_TRUE(a.findings[0].urgent);
  for (double& x : xids) x = x > 0 ? 43 : 0;
  t.gpus[0].columns[static_cast<size_t>(Metric::kXid)] = xids;
  EXPECT_TRUE(diagnose_telemetry({t}).analysis.findings.empty()) << "an application's fault";
}

TEST(Hardware, GpusThatSpin) {
  Telemetry t = telemetry_of(std::vector<Sample>(900));
  std::vector<double> tensor(900, 0.4), dram(900, 0.3);
  for (size_t i = 500; i < 900; ++i) tensor[i] = dram[i] = 0;
  t.gpus[0].columns[static_cast<size_t>(Metric::kTensorActive)] = tensor;
  t.gpus[0].columns[static_cast<size_t>(Metric::kDramActive)] = dram;
  const Analysis a = diagnose_telemetry({t}).analysis;
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].cause, Cause::kHang);
  EXPECT_NEAR(a.findings[0].gain.v, 399, 1);
}

void expect_healthy(const std::string& path) {
  const std::string text = *read_text(path);
  const FileKind kind = recognise(text);
  if (kind == FileKind::kUnknown || kind == FileKind::kNvlinkStatus) return;
  const HardwareDiagnosis d = diagnose_telemetry({read_telemetry(kind, text, path)});
  EXPECT_FALSE(d.gpus.empty()) << path;
  EXPECT_TRUE(d.analysis.findings.empty()) << path << ": " << d.analysis.findings[0].title;
}

TEST(Hardware, OurH200IsHealthy) {
  const std::string folder = std::string(ASSAY_ROOT) + "/test/data/telemetry/";
  for (const char* name :
       {"h200_telemetry.csv.gz", "h200_telemetry_train.csv.gz", "h200_nvidia_smi_q.txt.gz"}) {
    expect_healthy(folder + name);
  }
  // 110 s of full load at the cap: the cap costs a quarter of the busy time, and nothing is wrong.
  const Telemetry load = read_smi_csv(*read_text(folder + "h200_telemetry.csv.gz"), "load");
  const HardwareDiagnosis d = diagnose_telemetry({load});
  EXPECT_NEAR(d.clocks.power_cap / (d.clocks.observed - d.clocks.idle), 0.26, 0.02);
}

TEST(Hardware, HealthyCapturesHaveNoFinding) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "SKIPPED: " << kShared << " is absent";
  expect_healthy(kShared + "h200/thermal/q.txt");
  expect_healthy(kShared + "public/telemetry/superbench/monitor.jsonl");
  for (const char* folder : {"nvidia-smi", "prometheus"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(kShared + "public/telemetry/" + folder)) {
      expect_healthy(entry.path().string());
    }
  }
}

TEST(Xid, TableIsWholeAndApplicationsNeverDrain) {
  EXPECT_GE(xid_table().size(), 60u);
  for (const XidInfo& info : xid_table()) {
    EXPECT_FALSE(info.what.empty() || info.action.empty()) << info.code;
    const bool application = info.kind == XidClass::kApplication;
    EXPECT_FALSE(application && must_drain(info, true, "")) << info.code;
  }
  for (const int code : {13, 31, 43, 45, 63, 94}) {
    EXPECT_FALSE(must_drain(*find_xid(code), true, "")) << code;
  }
  for (const int code : {48, 64, 74, 79, 95, 119, 140}) {
    EXPECT_TRUE(must_drain(*find_xid(code), false, "")) << code;
  }
  EXPECT_TRUE(must_drain(*find_xid(149), true, ""));
  EXPECT_FALSE(must_drain(*find_xid(149), false, ""));
  EXPECT_TRUE(
      must_drain(*find_xid(154), false, "changed from 0x0 (None) to 0x1 (GPU Reset Required)"));
  EXPECT_FALSE(
      must_drain(*find_xid(154), false, "changed from 0x1 (GPU Reset Required) to 0x0 (None)"));
  EXPECT_EQ(find_xid(9999), nullptr);
}

Analysis logs(const std::string& text) {
  return diagnose_kernel_logs({read_kernel_log(text, "n7.log")});
}

TEST(KernelFaults, HardwareDrainsApplicationsDoNot) {
  const Analysis lost = logs(
      "[10.0] NVRM: Xid (PCI:0000:38:00): 79, pid=1, GPU has fallen off\n"
      "[10.1] NVRM: Xid (PCI:0000:38:00): 45, pid=1\n");
  ASSERT_EQ(lost.findings.size(), 1u);
  EXPECT_EQ(lost.findings[0].cause, Cause::kHardwareFault);
  EXPECT_TRUE(lost.findings[0].urgent);
  EXPECT_EQ(lost.findings[0].where, (std::vector<std::string>{"node n7.log", "GPU at 0000:38:00"}));
  const Analysis switches = logs(
      "[10.0] NVRM: Xid (PCI:0000:91:00): 79, pid=1, GPU has fallen off\n"
      "[10.1] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n");
  ASSERT_EQ(switches.findings.size(), 1u);
  EXPECT_EQ(
      switches.findings[0].where,
      (std::vector<std::string>{"node n7.log", "NVSwitch at 0000:06:00.0", "GPU at 0000:91:00"}));
  EXPECT_NE(switches.findings[0].detail.find("followed by SXID 20034"), std::string::npos);
  const Analysis fault = logs(
      "[10.0] NVRM: Xid (PCI:0000:38:00): 31, pid=1, MMU Fault\n"
      "[10.0] NVRM: Xid (PCI:0000:38:00): 13, pid=1\n"
      "[10.0] NVRM: Xid (PCI:0000:38:00): 43, pid=1\n");
  EXPECT_TRUE(fault.findings.empty());
  EXPECT_EQ(fault.notes.size(), 3u);
}

TEST(KernelFaults, OldAndClearedLinesDoNotCount) {
  const std::string xid = "NVRM: Xid (PCI:0000:38:00): 79, pid=1, GPU has fallen off the bus\n";
  EXPECT_TRUE(logs("[10.0] " + xid + "[0.0] Linux version 6.1\n").findings.empty());
  EXPECT_TRUE(
      logs("[10.0] " + xid + "[20.0] NVRM: loading NVIDIA UNIX Open Kernel\n").findings.empty());
  EXPECT_TRUE(logs("[1000.0] " + xid + "[200000.0] usb 1-1: new device\n").findings.empty())
      << "two days ago";
  EXPECT_FALSE(logs("[1000.0] " + xid + "[2000.0] usb 1-1: new device\n").findings.empty());
  HardwareContext context;
  context.now_s = 1794725320 + 2 * 86400;
  const KernelLog log = read_kernel_log("[Sun Nov 15 06:48:40 2026] " + xid, "n7.log");
  EXPECT_TRUE(diagnose_kernel_logs({log}, context).findings.empty());
  EXPECT_FALSE(diagnose_kernel_logs({log}).findings.empty());
}

TEST(KernelFaults, EachNodeOfASharedLog) {
  const Analysis a = logs(
      "Nov 15 06:48:40 n1 kernel: NVRM: Xid (PCI:0000:38:00): 48, pid=1, DBE\n"
      "Nov 15 06:48:41 n2 kernel: NVRM: Xid (PCI:0000:39:00): 119, pid=1, Timeout\n"
      "Nov 15 06:48:42 n1 kernel: Linux version 6.1\n"
      "Nov 15 06:48:43 n3 kernel: Out of memory: Killed process 5 (python)\n"
      "Nov 15 06:48:44 n4 kernel: mlx5_core 0000:41:00.1: Link down\n");
  ASSERT_EQ(a.findings.size(), 1u);
  EXPECT_EQ(a.findings[0].where[0], "node n2");
  EXPECT_EQ(a.notes.size(), 3u);  // n3, n4 and the fault of n1 that a boot cleared
}

TEST(KernelFaults, PublishedLogs) {
  const std::string folder = kShared + "public/telemetry/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder << " is absent";
  const auto read = [&](const std::string& name) {
    return diagnose_kernel_logs({read_kernel_log(*read_text(folder + name), name)});
  };
  ASSERT_EQ(read("kernel/gpud-dmesg-with-xid-119.log").findings.size(), 1u);
  EXPECT_NE(read("kernel/gpud-dmesg-with-xid-119.log").findings[0].title.find("XID 119"),
            std::string::npos);
  for (const char* healthy : {"kernel/gpud-dmesg-decode-iso.log", "kernel/gpud-pstore-dmesg.txt",
                              "xid_dmesg/gpud_kmsg.1.log", "xid_dmesg/gpud_kmsg.2.peermem.log"}) {
    const Analysis a = read(healthy);
    EXPECT_TRUE(a.findings.empty()) << healthy << ": " << a.findings[0].title;
  }
}

}  // namespace
}  // namespace assay

// Readers of tests, topologies, kernel logs and training logs.
#include <filesystem>

#include <gtest/gtest.h>

#include "ingest/kernel_log.h"
#include "ingest/nccl_tests.h"
#include "ingest/text_file.h"
#include "ingest/topo.h"
#include "ingest/training_log.h"

namespace assay {
namespace {

const std::string kPublic = std::string(ASSAY_ROOT) + "/../shared/data/public/";

bool absent() { return !std::filesystem::exists(kPublic); }
std::string skipped() { return "SKIPPED: " + kPublic + " is absent"; }

std::string text_of(const std::string& name) {
  const Result<std::string> text = read_text(kPublic + name);
  EXPECT_TRUE(text) << name;
  return text.value_or("");
}

TEST(NcclTests, RowsByTheHeader) {
  const NcclTests t = read_nccl_tests(
      "+ srun all_gather_perf -b 8 -e 16\n"
      "0: # nThread 1 nGpus 1 minBytes 8 maxBytes 16\n"
      "0: #  Rank  0 Group  0 Pid 1 on  n1 device  0 [0x0f] NVIDIA H100 80GB HBM3\n"
      "0: #  Rank  1 Group  0 Pid 2 on  n2 device  3 [0x2d] NVIDIA H100 80GB HBM3\n"
      "0: #    size   count  type   redop    root  time   algbw   busbw #wrong  time algbw busbw "
      "#wrong\n"
      "0:    1048576  262144  float   100.0  10.00  5.00  0  200.0  20.00  10.00  N/A\n"
      "0:    2097152  262144  float   cut\n"
      "0: # Out of bounds values : 3 FAILED\n"
      "0: # Avg bus bandwidth    : 7.5\n",
      "x");
  ASSERT_EQ(t.tests.size(), 1u);
  const NcclTest& test = t.tests[0];
  EXPECT_EQ(test.collective, "all_gather");
  ASSERT_EQ(test.ranks.size(), 2u);
  EXPECT_EQ(test.ranks[1].device, 3);
  EXPECT_EQ(test.ranks[0].model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(test.hosts(), (std::vector<std::string>{"n1", "n2"}));
  ASSERT_EQ(test.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(test.rows[0].size.v, 1048576);
  EXPECT_DOUBLE_EQ(test.rows[0].out_of_place->bus.v, 5e9);
  EXPECT_DOUBLE_EQ(test.rows[0].bus().v, 7.5e9);
  EXPECT_DOUBLE_EQ(*test.rows[0].out_of_place->wrong, 0);
  EXPECT_FALSE(test.rows[0].in_place->wrong);
  EXPECT_DOUBLE_EQ(*test.out_of_bounds, 3);
  ASSERT_EQ(t.problems.size(), 1u);
  EXPECT_EQ(t.problems[0].at.line, 7);
}

TEST(NcclTests, Json) {
  const NcclTests t = read_nccl_tests_json(
      R"({"args":["./build/all_reduce_perf","-b","8"],"nccl_version":22703,
      "config":{"devices":[{"rank":0,"hostname":"n1","device":0,"device_hex":"0000:19:00",
      "device_info":"NVIDIA H100"}]},
      "results":[{"size":1024,"count":256,"type":"float","redop":"sum","root":"-1",
      "out_of_place":{"time":10.5,"alg_bw":1.5,"bus_bw":2.5,"nwrong":0},"in_place":null}],
      "out_of_bounds":{"count":0,"okay":true},"average_bus_bandwidth":{"bandwidth":2.5}})",
      "x.json");
  ASSERT_EQ(t.tests.size(), 1u);
  EXPECT_EQ(t.tests[0].collective, "all_reduce");
  ASSERT_EQ(t.tests[0].rows.size(), 1u);
  EXPECT_DOUBLE_EQ(t.tests[0].rows[0].bus().v, 2.5e9);
  EXPECT_DOUBLE_EQ(t.tests[0].average_bus->v, 2.5e9);
  EXPECT_TRUE(has_errors(read_nccl_tests_json("{", "x").problems));
  EXPECT_TRUE(has_errors(read_nccl_tests_json("{\"results\": 5}", "x").problems));
}

TEST(NcclTests, PublishedRuns) {
  if (absent()) GTEST_SKIP() << skipped();
  const std::string folder = "telemetry/nccl_tests/";
  size_t files = 0, rows = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kPublic + folder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const NcclTests t = read_nccl_tests(*read_text(entry.path().string()), entry.path().string());
    EXPECT_TRUE(t.problems.empty()) << entry.path();
    ASSERT_EQ(t.tests.size(), 1u) << entry.path();
    EXPECT_TRUE(!t.tests[0].rows.empty() || !t.tests[0].failures.empty()) << entry.path();
    rows += t.tests[0].rows.size();
  }
  EXPECT_EQ(files, 42u);
  EXPECT_GT(rows, 100u);
  const NcclTests google =
      read_nccl_tests(text_of(folder + "mlperf_v5.0_google_h200_8x8/nccl_result_5.txt"), "x");
  EXPECT_EQ(google.tests[0].ranks.size(), 64u);
  EXPECT_EQ(google.tests[0].hosts().size(), 8u);
  EXPECT_EQ(google.tests[0].collective, "all_reduce") << "by its arithmetic";
  EXPECT_DOUBLE_EQ(google.tests[0].average_bus->v, 237.002e9);
  const NcclTests gather = read_nccl_tests(text_of("telemetry/superbench/nccl_allgather.log"), "x");
  ASSERT_FALSE(gather.tests[0].rows.empty());
  EXPECT_DOUBLE_EQ(gather.tests[0].rows.back().bus().v, 226.73e9);
}

TEST(Topo, MatrixWithNics) {
  const Topology t = read_topo_matrix(
      "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
      "GPU0\t X \tNV18\tPIX\t0-55\t0\n"
      "GPU1\tNV18\t X \tSYS\t56-111\t1\n"
      "NIC0\tPIX\tSYS\t X \t\t\n\nLegend:\n",
      "x");
  EXPECT_TRUE(t.problems.empty());
  EXPECT_EQ(t.count(TopoKind::kGpu), 2);
  EXPECT_EQ(t.count(TopoKind::kNic), 1);
  ASSERT_EQ(t.links.size(), 3u);
  EXPECT_EQ(t.links[0].nvlinks, 18);
  EXPECT_EQ(t.links[1].path, "PIX");
  EXPECT_EQ(t.devices[1].numa, 1);
  EXPECT_EQ(t.devices[1].nvlinks, 18);
  EXPECT_FALSE(read_topo_matrix("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\n", "x").problems.empty());
  EXPECT_TRUE(has_errors(read_topo_matrix("nothing", "x").problems));
}

TEST(Topo, NcclXml) {
  const Topology t = read_nccl_xml(
      R"(<!DOCTYPE x [<!ENTITY a "b">]><system version="1"><cpu numaid="1">
      <pci busid="0:1" class="0x060400">
      <pci busid="0:2" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="3" sm="90"><nvlink target="a" count="4"/><nvlink target="b" count="14"/></gpu></pci>
      <pci busid="0:3" class="0x020700" link_speed="16 GT/s" link_width="16">
      <nic><net name="mlx5_0"/></nic></pci></pci></cpu></system>)",
      "x");
  EXPECT_TRUE(t.problems.empty());
  ASSERT_EQ(t.devices.size(), 2u);
  EXPECT_EQ(t.devices[0].name, "GPU3");
  EXPECT_EQ(t.devices[0].nvlinks, 18);
  EXPECT_EQ(t.devices[0].numa, 1);
  EXPECT_NEAR(t.devices[0].pcie.v, 63.0e9, 0.1e9);
  EXPECT_EQ(t.devices[1].name, "mlx5_0");
  EXPECT_TRUE(has_errors(read_nccl_xml("<system>", "x").problems));
  EXPECT_TRUE(has_errors(read_nccl_xml("<other/>", "x").problems));
}

TEST(Topo, PublishedFiles) {
  if (absent()) GTEST_SKIP() << skipped();
  const Topology google =
      read_topo_matrix(text_of("telemetry/topo/google_a3ultra_h200x8_nvidia-smi_topo-m.txt"), "x");
  EXPECT_TRUE(google.problems.empty());
  EXPECT_EQ(google.count(TopoKind::kGpu), 8);
  EXPECT_EQ(google.count(TopoKind::kNic), 8);
  EXPECT_EQ(google.devices[0].nvlinks, 7 * 18);
  EXPECT_EQ(google.devices[7].numa, 1);
  for (const char* name : {"mleng_2xGPU_NV2.txt", "mleng_a100x8_NV12.txt"}) {
    EXPECT_TRUE(
        read_topo_matrix(text_of(std::string("telemetry/topo/") + name), "x").problems.empty());
  }
  const Topology azure = read_nccl_xml(text_of("telemetry/topo/nccl_xml/azure_ndv5-topo.xml"), "x");
  EXPECT_EQ(azure.count(TopoKind::kGpu), 8);
  EXPECT_EQ(azure.count(TopoKind::kNic), 8);
  EXPECT_EQ(azure.sockets, 2);
  const Topology dgx2 = read_hwloc_xml(text_of("telemetry/lstopo/nvidiaDGX2.xml"), "x");
  EXPECT_EQ(dgx2.count(TopoKind::kGpu), 16);
  EXPECT_EQ(dgx2.sockets, 2);
  const Topology power = read_hwloc_xml(text_of("telemetry/lstopo/power8gpudistances.xml"), "x");
  ASSERT_EQ(power.links.size(), 2u) << "two pairs of GPUs";
  EXPECT_DOUBLE_EQ(power.links[0].bandwidth.v, 40e9);
}

TEST(Topo, HostileXml) {
  std::string deep = "<system>";
  for (int i = 0; i < 20000; ++i) deep += "<pci class=\"0x0302\">";
  EXPECT_TRUE(has_errors(read_nccl_xml(deep, "x").problems));
  for (int i = 0; i < 20000; ++i) deep += "</pci>";
  const Topology t = read_nccl_xml(deep + "</system>", "x");
  EXPECT_LE(t.devices.size(), 256u);
  EXPECT_TRUE(has_errors(read_hwloc_xml(std::string("\0\0<", 3), "x").problems));
}

TEST(KernelLog, EveryWayOfPrintingALine) {
  const KernelLog log = read_kernel_log(
      "[111.5] NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen\n"
      "<4>[112.5] NVRM: Xid (0000:06:00): 31, pid=123, name=python, Ch 08, MMU Fault\n"
      "[Sun Nov 15 06:48:40 2026] NVRM: Xid (PCI:0000:07:00): 119, pid=5, name=nvidia-smi, "
      "Timeout\n"
      "kern  :warn  : 2026-11-15T06:48:41,5+00:00 NVRM: Xid (PCI:0000:08:00): 48, pid=1, DBE\n"
      "4,100,5000000,-;NVRM: Xid (PCI:0000:09:00): 63, Row remapping pending\n"
      "Nov 15 06:48:40 n7 kernel: NVRM: Xid (PCI:0000:0a:00): 94, contained\n"
      "2026-11-15T06:48:40+00:00 n8 kernel: [9.5] NVRM: Xid (PCI:0000:0b:00): 95, x\n"
      "NVRM: Xid (PCI:0000:0c:00): 74, NVLink\n"
      "[6.4] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n"
      "[6.4] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 48\n"
      "[7.1] Out of memory: Killed process 4711 (python) total-vm:1kB\n"
      "[7.2] mlx5_core 0000:41:00.1 eth2: Link down\n"
      "[7.3] ata3: SATA link down (SStatus 0 SControl 300)\n"
      "[0.0] Linux version 5.15.0\n"
      "NVRM: Xid (PCI:0000:0c:00): abc\n",
      "x");
  ASSERT_EQ(log.events.size(), 12u);
  EXPECT_EQ(log.events[0].code, 79);
  EXPECT_EQ(log.events[0].pci, "0000:05:00");
  EXPECT_DOUBLE_EQ(*log.events[0].uptime_s, 111.5);
  EXPECT_EQ(log.events[1].process, "python");
  EXPECT_DOUBLE_EQ(*log.events[2].at_s, 1794725320);
  EXPECT_DOUBLE_EQ(*log.events[3].at_s, 1794725321.5);
  EXPECT_DOUBLE_EQ(*log.events[4].uptime_s, 5);
  EXPECT_EQ(log.events[5].host, "n7");
  EXPECT_TRUE(log.events[5].at_s);
  EXPECT_EQ(log.events[6].host, "n8");
  EXPECT_DOUBLE_EQ(*log.events[6].uptime_s, 9.5);
  EXPECT_FALSE(log.events[7].at_s || log.events[7].uptime_s);
  EXPECT_EQ(log.events[8].kind, KernelEventKind::kSxid);
  EXPECT_TRUE(log.events[8].fatal);
  EXPECT_EQ(log.events[9].kind, KernelEventKind::kOutOfMemory);
  EXPECT_EQ(log.events[9].process, "python");
  EXPECT_EQ(log.events[10].kind, KernelEventKind::kLinkDown);
  EXPECT_EQ(log.events[11].kind, KernelEventKind::kBoot);
}

TEST(KernelLog, PublishedLogs) {
  if (absent()) GTEST_SKIP() << skipped();
  const KernelLog gsp =
      read_kernel_log(text_of("telemetry/kernel/gpud-dmesg-with-xid-119.log"), "x");
  ASSERT_GE(gsp.events.size(), 1u);
  EXPECT_EQ(gsp.events[0].code, 119);
  EXPECT_TRUE(gsp.events[0].at_s);
  const KernelLog lines = read_kernel_log(text_of("telemetry/kernel/gpud-xid-sxid-lines.log"), "x");
  EXPECT_GE(lines.events.size(), 15u);
  const KernelLog bare =
      read_kernel_log(text_of("telemetry/kernel/gpud-xid-messages-no-timestamp.log"), "x");
  EXPECT_GT(bare.events.size(), 60u);
  EXPECT_TRUE(read_kernel_log(text_of("telemetry/xid_dmesg/gpud_kmsg.1.log"), "x").events.empty());
}

TEST(TrainingLog, Dialects) {
  const TrainingLog log = read_training_log(
      "[after megatron is initialized] datetime: 2023-11-29 08:50:57\n"
      "[default7]: iteration   12695/  115311 | consumed samples:      9841584 | consumed tokens:  "
      "20155564032 | elapsed time per iteration (s): 105.22 | learning rate: 5.969E-05 | global "
      "batch size:  2048 | lm loss: 2.463556E+00 | grad norm: 0.174 | number of skipped "
      "iterations: "
      "  0 | number of nan iterations:   1 | TFLOPs: 149.02 |\n"
      " [2024-05-01 12:00:00] iteration   12696/  115311 | elapsed time per iteration (ms): 500.5 "
      "| "
      "throughput per GPU (TFLOP/s/GPU): 400.1 | lm loss: nan |\n"
      "  successfully saved checkpoint at iteration   12696 to /x\n"
      "time (ms) | save-checkpoint: 12345.0\n"
      " validation loss at iteration 12696 | lm loss value: 2.0\n"
      "Training epoch 0, iteration 10/999 | lr: 1e-4 | global_batch_size: 128 | global_step: 10 | "
      "reduced_train_loss: 11.03 | train_step_timing in s: 6.81 | consumed_samples: 1408\n"
      "Epoch 0:  10%| | 3/30 [00:50<07:30, v_num=x, reduced_train_loss=11.0, global_step=11.0, "
      "train_step_timing in s=5.6]\n",
      "x");
  ASSERT_EQ(log.iterations.size(), 4u);
  const TrainingIteration& bloom = log.iterations[0];
  EXPECT_EQ(bloom.iteration, 12695);
  EXPECT_EQ(bloom.planned, 115311);
  EXPECT_DOUBLE_EQ(bloom.elapsed->v, 105.22);
  EXPECT_DOUBLE_EQ(*bloom.tflops, 149.02);
  EXPECT_DOUBLE_EQ(*bloom.loss, 2.463556);
  EXPECT_EQ(bloom.nan, 1);
  EXPECT_DOUBLE_EQ(log.iterations[1].elapsed->v, 0.5005);
  EXPECT_DOUBLE_EQ(*log.iterations[1].at_s, 1714564800);
  EXPECT_DOUBLE_EQ(*log.iterations[1].tflops, 400.1);
  EXPECT_TRUE(log.iterations[1].loss_is_nan);
  EXPECT_EQ(log.iterations[2].iteration, 10);
  EXPECT_DOUBLE_EQ(log.iterations[2].elapsed->v, 6.81);
  EXPECT_EQ(log.iterations[3].iteration, 11);
  EXPECT_DOUBLE_EQ(log.iterations[3].elapsed->v, 5.6);
  ASSERT_EQ(log.events.size(), 3u);
  EXPECT_EQ(log.events[1].kind, TrainingEventKind::kCheckpointSaved);
  EXPECT_EQ(*log.events[1].iteration, 12696);
  EXPECT_DOUBLE_EQ(log.events[1].duration->v, 12.345);
}

TEST(TrainingLog, PublishedLogs) {
  if (absent()) GTEST_SKIP() << skipped();
  const TrainingLog jean =
      read_training_log(text_of("jobs/llm_run_logs/jeanzay_megatron_deepspeed_n16.out"), "x");
  ASSERT_EQ(jean.iterations.size(), 49u);
  EXPECT_DOUBLE_EQ(jean.iterations[1].elapsed->v, 141.0968);
  const TrainingLog bloom = read_training_log(
      text_of("jobs/llm_run_logs/bloom176b_megatron_iterations_excerpt.log"), "x");
  EXPECT_EQ(bloom.iterations.size(), 18u);
  const TrainingLog superbench =
      read_training_log(text_of("telemetry/superbench/megatron_deepspeed.log"), "x");
  EXPECT_EQ(superbench.iterations.size(), 5u);
  ASSERT_GE(superbench.events.size(), 3u);
  EXPECT_TRUE(superbench.events.back().at_s);
}

}  // namespace
}  // namespace assay

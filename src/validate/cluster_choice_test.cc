// What cells about accelerators, machines and links are taken to mean, as people write them.
#include <gtest/gtest.h>

#include "validate/links.h"
#include "validate/machines.h"
#include "validate/scenario_case.h"

namespace assay {
namespace {

struct Cells {
  const char* gpu;
  const char* intra = "";
  const char* inter = "";
  const char* notes = "";
  double memory = 0;
  int64_t per_node = 8;
};

TrainingRun row_of(const Cells& cells) {
  TrainingRun r = base();
  r.gpu = cells.gpu;
  r.intra_link = cells.intra;
  r.inter_link = cells.inter;
  r.notes = cells.notes;
  if (cells.memory > 0) r.gpu_mem_gb = cells.memory;
  r.per_node.reset();
  if (cells.per_node > 0) r.per_node = cells.per_node;
  return r;
}

Cluster cluster_of(const Cells& cells) {
  const TrainingRun r = row_of(cells);
  const Accelerator* a = choose_accelerator(r, catalog());
  std::vector<std::string> assumed;
  return a ? choose_cluster(r, *a, catalog(), assumed) : Cluster{};
}

TEST(ClusterChoice, PartsByWhatTheRowCounts) {
  const std::pair<Cells, const char*> rows[] = {
      {{.gpu = "trn2.48xlarge", .per_node = 16}, "trainium2"},
      {{.gpu = "trn2.48xlarge", .per_node = 64}, "trn2-logical-core"},
      {{.gpu = "trn2.48xlarge", .per_node = 128}, "trn2-neuroncore"},
      {{.gpu = "Trainium2", .memory = 24, .per_node = 0}, "trn2-logical-core"},
      {{.gpu = "Trainium2", .memory = 96, .per_node = 0}, "trainium2"},
      {{.gpu = "Trainium2 (LNC=2)", .per_node = 0}, "trn2-logical-core"},
      {{.gpu = "Trainium2 (LNC2 logical core)", .memory = 24, .per_node = 4}, "trn2-logical-core"},
      {{.gpu = "trn1 NeuronCores", .per_node = 0}, "trn1-neuroncore"},
      {{.gpu = "Trainium1", .memory = 16, .per_node = 0}, "trn1-neuroncore"},
      {{.gpu = "trn1.32xlarge", .per_node = 0}, "trn1-neuroncore"},
      {{.gpu = "trn1.32xlarge", .per_node = 16}, "trainium1"},
      {{.gpu = "trn1n.32xlarge", .per_node = 0}, "trn1-neuroncore"},
      {{.gpu = "NeuronCore", .per_node = 32}, "trn1-neuroncore"},
      {{.gpu = "NeuronCore", .memory = 12, .per_node = 128}, "trn2-neuroncore"},
      {{.gpu = "Trainium", .memory = 96, .per_node = 16}, "trainium2"},
      {{.gpu = "Max 1550", .per_node = 12}, "max-1550-tile"},
      {{.gpu = "Max 1550", .per_node = 6}, "max-1550-128gb"},
      {{.gpu = "Max Series 1550 tile", .per_node = 12}, "max-1550-tile"},
      {{.gpu = "Max 1550 (2 stacks)", .per_node = 6}, "max-1550-128gb"},
      {{.gpu = "Data Center GPU Max 1550 (one stack)", .per_node = 8}, "max-1550-tile"},
      {{.gpu = "MI250X", .notes = "n_gpus counts GCDs", .per_node = 0}, "mi250x-gcd"},
      {{.gpu = "MI250X", .memory = 128, .per_node = 4}, "mi250x-128gb"},
      {{.gpu = "TPU7x", .memory = 96, .per_node = 8}, "tpu-v7-core"},
      {{.gpu = "TPU7x", .memory = 192, .per_node = 4}, "tpu-v7"},
      {{.gpu = "Ascend 910C", .memory = 64, .per_node = 16}, "ascend-910c-die"},
  };
  for (const auto& [cells, name] : rows) {
    const Accelerator* a = choose_accelerator(row_of(cells), catalog());
    ASSERT_TRUE(a) << cells.gpu;
    EXPECT_EQ(a->name, name) << cells.gpu << " " << cells.memory << " " << cells.per_node;
  }
}

TEST(ClusterChoice, PartsByTheirNames) {
  const std::pair<Cells, const char*> rows[] = {
      {{.gpu = "Ascend910", .memory = 64}, "ascend-910b"},
      {{.gpu = "Ascend 910 (64GB HBM)", .memory = 64}, "ascend-910b"},
      {{.gpu = "Ascend910", .memory = 64, .per_node = 16}, "ascend-910c-die"},
      {{.gpu = "Ascend910", .memory = 32}, "ascend-910"},
      {{.gpu = "Ascend910_9382", .memory = 64, .per_node = 16}, "ascend-910c-die"},
      {{.gpu = "Ascend910_93xx", .per_node = 16}, "ascend-910c-die"},
      {{.gpu = "Ascend910B2C", .memory = 64}, "ascend-910b"},
      {{.gpu = "Atlas 900 A3 SuperPoD", .memory = 64}, "ascend-910c-die"},
      {{.gpu = "Atlas 900 A2 PoD", .memory = 64}, "ascend-910b"},
      {{.gpu = "CloudMatrix 384", .per_node = 8}, "ascend-910c"},
      {{.gpu = "H100s"}, "h100-sxm5-80gb"},
      {{.gpu = "A100s 80GB"}, "a100-sxm4-80gb"},
      {{.gpu = "L40S"}, "l40s"},
      {{.gpu = "MI350"}, "mi350x-288gb"},
      {{.gpu = "MI325"}, "mi325x-256gb"},
      {{.gpu = "RTX 6000 Pro"}, "rtx-pro-6000-server"},
      {{.gpu = "RTX 6000", .memory = 24}, "quadro-rtx-6000"},
      {{.gpu = "RTX 6000", .memory = 48}, "rtx-6000-ada"},
      {{.gpu = "RTX 4090D"}, "rtx-4090d"},
      {{.gpu = "RTX 5060 Ti"}, "rtx-5060-ti"},
      {{.gpu = "RTX 2060"}, "rtx-2060"},
      {{.gpu = "DGX-2H", .per_node = 16}, "v100-sxm3-32gb"},
      {{.gpu = "V100 32GB (DGX-2)", .per_node = 16}, "v100-sxm3-32gb"},
      {{.gpu = "A100X"}, "a100-pcie-80gb"},
      {{.gpu = "g5.48xlarge"}, "a10g"},
      {{.gpu = "g6.48xlarge"}, "l4"},
      {{.gpu = "p3.16xlarge"}, "v100-sxm2-16gb"},
      {{.gpu = "dl1.24xlarge"}, "gaudi1-32gb"},
      {{.gpu = "Standard_ND96asr_v4"}, "a100-sxm4-40gb"},
      {{.gpu = "ct5p-hightpu-4t", .per_node = 4}, "tpu-v5p"},
      {{.gpu = "v4", .per_node = 4}, "tpu-v4"},
      {{.gpu = "v5lite", .per_node = 4}, "tpu-v5e"},
      {{.gpu = "TPU v4s", .per_node = 4}, "tpu-v4"},
      {{.gpu = "K80"}, "k80-die"},
      {{.gpu = "MI50"}, "mi50-16gb"},
      {{.gpu = "Arc B580"}, "arc-b580"},
      {{.gpu = "H100", .intra = "PCIe Gen5"}, "h100-pcie-80gb"},
      {{.gpu = "H100 SXM5", .intra = "PCIe Gen5"}, "h100-sxm5-80gb"},
      {{.gpu = "H100", .intra = "NVLink disabled"}, "h100-sxm5-80gb"},
      {{.gpu = "H200 PCIe"}, "h200-nvl-141gb"},
      {{.gpu = "H800 PCIe"}, "h800-pcie-80gb"},
  };
  for (const auto& [cells, name] : rows) {
    const Accelerator* a = choose_accelerator(row_of(cells), catalog());
    ASSERT_TRUE(a) << cells.gpu;
    EXPECT_EQ(a->name, name) << cells.gpu << " " << cells.memory << " " << cells.per_node;
  }
  // Of three parts of that name.
  EXPECT_FALSE(choose_accelerator(row_of({.gpu = "RTX 6000"}), catalog()));
}

TEST(ClusterChoice, AnArchitectureIsThePartThatStandsInSuchNodes) {
  EXPECT_EQ(usual_accelerator(row_of({.gpu = "Blackwell Ultra"}), catalog())->name,
            "b300-sxm-288gb");
  EXPECT_EQ(usual_accelerator(row_of({.gpu = "Blackwell Ultra", .per_node = 4}), catalog())->name,
            "gb300-288gb");
}

TEST(ClusterChoice, Networks) {
  struct Row {
    Cells cells;
    int64_t ports;
    double gbit;  // of each
    FabricKind kind;
  };
  const FabricKind ib = FabricKind::kInfiniband, tcp = FabricKind::kTcp;
  const Row rows[] = {
      {{.gpu = "H100"}, 8, 400, ib},
      {{.gpu = "H100", .inter = "25GbE"}, 1, 25, tcp},
      {{.gpu = "A100", .inter = "1GbE"}, 1, 1, tcp},
      {{.gpu = "H100", .inter = "50GbE"}, 1, 50, tcp},
      {{.gpu = "H100", .inter = "2 x Ethernet Controller X710 for 10GBASE-T"}, 8, 400, ib},
      {{.gpu = "H100", .inter = "Ethernet 100G, no RDMA"}, 1, 100, tcp},
      {{.gpu = "H100", .inter = "TCP over 100G"}, 1, 100, tcp},
      {{.gpu = "H100", .inter = "InfiniBand disabled"}, 1, 100, tcp},
      {{.gpu = "H100", .inter = "IPoIB"}, 1, 100, tcp},
      {{.gpu = "H100", .notes = "NCCL_IB_DISABLE=1"}, 1, 100, tcp},
      {{.gpu = "H100", .notes = "NCCL_IB_DISABLE=0"}, 8, 400, ib},
      {{.gpu = "H100", .inter = "ConnectX-7"}, 8, 400, ib},
      {{.gpu = "H100", .inter = "BlueField-3"}, 8, 400, ib},
      {{.gpu = "H100", .inter = "NDR, 1 NIC per 2 GPUs"}, 4, 400, ib},
      {{.gpu = "H100", .notes = "1x200G IB per 8 GPUs"}, 1, 200, ib},
      {{.gpu = "H100", .notes = "bf16; 25GbE interconnect"}, 1, 25, tcp},
      {{.gpu = "H100", .notes = "25GbE storage network"}, 8, 400, ib},
      {{.gpu = "H100", .notes = "8x HDR InfiniBand"}, 8, 200, ib},
      {{.gpu = "H100", .notes = "no InfiniBand"}, 1, 100, tcp},
      {{.gpu = "H100", .notes = "no GPUDirect RDMA"}, 8, 400, ib},
      {{.gpu = "A100", .inter = "FDR"}, 1, 54.5, ib},
      {{.gpu = "H100", .inter = "GPUDirect-TCPX"}, 4, 200, tcp},
      {{.gpu = "H100", .inter = "GPUDirect-TCPXO"}, 8, 200, tcp},
      {{.gpu = "H100", .inter = "a3-megagpu-8g"}, 8, 200, tcp},
      {{.gpu = "H100", .notes = "GCP A3 Mega"}, 8, 200, tcp},
      {{.gpu = "V100", .intra = "NVLink (p3.16xlarge)", .memory = 16}, 1, 25, tcp},
      {{.gpu = "DGX-1 (V100 16GB)"}, 4, 100, ib},
      {{.gpu = "V100 16GB", .per_node = 4}, 4, 100, FabricKind::kOmnipath},
      {{.gpu = "trn1n.32xlarge", .per_node = 0}, 16, 100, FabricKind::kEfa},
      {{.gpu = "Max 1550", .per_node = 12}, 8, 200, FabricKind::kSlingshot},
      {{.gpu = "MI308X"}, 8, 400, FabricKind::kRoce},
      {{.gpu = "L40"}, 4, 200, ib},
      {{.gpu = "VR200", .per_node = 4}, 8, 800, ib},
  };
  for (const Row& row : rows) {
    const Cluster c = cluster_of(row.cells);
    const std::string told = std::string(row.cells.gpu) + "|" + row.cells.inter + "|" +
                             row.cells.notes + " has " + c.fabric.name;
    EXPECT_EQ(c.node.nics, row.ports) << told;
    EXPECT_NEAR(c.node.nic_bandwidth.v / kGbit, row.gbit, 0.01) << told;
    EXPECT_EQ(c.fabric.kind, row.kind) << told;
  }
  EXPECT_EQ(cluster_of({.gpu = "H100", .inter = "TCPXO"}).fabric.name, "tcpxo");
  EXPECT_EQ(cluster_of({.gpu = "VR200", .per_node = 4}).fabric.scaleup_domain, 72);
}

TEST(ClusterChoice, LinksWithinANode) {
  struct Row {
    Cells cells;
    double gigabytes;  // of scale-up, one way
  };
  const Row rows[] = {
      {{.gpu = "H100"}, 450},
      {{.gpu = "H100", .notes = "NVLink disabled"}, 64},
      {{.gpu = "H100", .notes = "no NVLink SHARP"}, 450},
      {{.gpu = "H100", .notes = "NCCL_P2P_DISABLE=1"}, 32},
      {{.gpu = "H100", .intra = "NVLink", .notes = "NCCL_P2P_DISABLE=0"}, 450},
      {{.gpu = "A40", .intra = "PCIe 4.0, P2P disabled", .per_node = 2}, 16},
      {{.gpu = "RTX 3090 (NVLink)", .per_node = 2}, 56.25},
      {{.gpu = "RTX 3090", .intra = "NV4", .per_node = 2}, 56.25},
      {{.gpu = "RTX 3090", .per_node = 2}, 16},
  };
  for (const Row& row : rows) {
    const Cluster c = cluster_of(row.cells);
    EXPECT_NEAR(c.accelerator.scaleup_bandwidth.v / 1e9, row.gigabytes, 0.01)
        << row.cells.gpu << "|" << row.cells.intra << "|" << row.cells.notes;
  }
}

TEST(ClusterChoice, MachinesThatATextNames) {
  const auto named = [](const char* text, bool notes) {
    const std::vector<const Node*> found = nodes_named_in(catalog(), text, notes);
    return found.empty() ? std::string() : found.front()->name;
  };
  EXPECT_EQ(named("trained on GCP A3 Mega, 64 GPUs", true), "gcp-a3-mega");
  EXPECT_EQ(named("no GCP A3 Mega", true), "");
  EXPECT_EQ(named("AWS p5.48xlarge", true), "aws-p5");
  EXPECT_EQ(named("tcpx", false), "gcp-a3-high");
  EXPECT_EQ(named("tcpx", true), "");
}

// A cloud sells nodes of four A10G and of eight.
TEST(Cluster, PartsThatOneNodeHoldsAreOneNode) {
  TrainingRun run;
  run.gpu = "A10G";
  std::vector<std::string> assumed;
  const auto nodes = [&](int64_t parts) {
    run.accelerators = parts;
    return choose_cluster(run, *find_accelerator(catalog(), "a10g"), catalog(), assumed).nodes;
  };
  EXPECT_EQ(nodes(4), 1);
  EXPECT_EQ(nodes(8), 1);
  EXPECT_EQ(nodes(16), 4);
}

}  // namespace
}  // namespace assay

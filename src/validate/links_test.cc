#include "validate/links.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

struct LinkRow {
  const char* text;
  std::optional<FabricKind> kind;
  double node_gbit;  // of a node with 8 accelerators; 0: not stated
};

void expect_read(const LinkRow& row) {
  const LinkCell link = read_link(row.text);
  EXPECT_EQ(link.kind, row.kind) << row.text;
  const std::optional<Bandwidth> total = node_bandwidth(link, 8);
  EXPECT_NEAR(total ? total->v * 8e-9 : 0, row.node_gbit, 1e-6) << row.text;
}

TEST(Links, AsPeopleWriteThem) {
  const LinkRow rows[] = {
      {"8x ConnectX-7 InfiniBand NDR 400Gb/s", FabricKind::kInfiniband, 3200},
      {"4x Omni-Path 100Gb/s (Jean Zay)", FabricKind::kOmnipath, 400},
      {"400 Gbps/node", std::nullopt, 400},
      {"800 Gbps/node (config)", std::nullopt, 800},
      {"400 Gb/s RDMA per GPU", FabricKind::kRoce, 3200},
      {"400 Gb/s CX-7 RDMA per GPU", FabricKind::kRoce, 3200},
      {"EFA 800 Gbps (trn1.32xl) / 1600 Gbps (trn1n)", FabricKind::kEfa, 800},
      {"InfiniBand 8x50 GB/s per node", FabricKind::kInfiniband, 3200},
      {"8x200Gb/s HDR IB per node (Selene)", FabricKind::kInfiniband, 1600},
      {"Selene HDR IB", FabricKind::kInfiniband, 1600},
      {"Slingshot (Clariden/Alps)", FabricKind::kSlingshot, 1600},
      {"8x200Gb/s RoCE (CLOS)", FabricKind::kRoce, 1600},
      {"Ethernet(RoCEv2)", FabricKind::kRoce, 0},
      {"Ethernet, Infiniband", FabricKind::kInfiniband, 0},
      {"10G Ethernet", FabricKind::kRoce, 10},
      {"ConnectX-6 25Gb/s Ethernet", FabricKind::kRoce, 25},
      {"GCP A4/A3-Ultra RoCE 3.2 Tbps/node", FabricKind::kRoce, 3200},
      {"Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s, Management: "
       "100Gb/s Ethernet NIC",
       FabricKind::kInfiniband, 3200},
      {"1x Ethernet 100Gb/Sec, 8x NVIDIA Quantum-2 CX7 InfiniBand (400Gb/s)",
       FabricKind::kInfiniband, 3200},
      {"8x ConnectX-7 IB NDR 400Gb/s + 200Gb/s Ethernet NIC", FabricKind::kInfiniband, 3200},
      {"BF3 200Gbps for NS and 2xBF3 400Gbps for EW", std::nullopt, 800},
      {"InfiniBand; Data bandwidth for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s",
       FabricKind::kInfiniband, 0},
      {"2 x Broadcom Inc., 4 x I350 Gigabit Network Connection", std::nullopt, 0},
      {"4 * 100Gb RoCE", FabricKind::kRoce, 400},
      {"8 \xc3\x97 400 Gb/s InfiniBand", FabricKind::kInfiniband, 3200},
      {"InfiniBand 100 Gb/sec (4X EDR)", FabricKind::kInfiniband, 100},
      {"4x HDR InfiniBand 200Gb/s", FabricKind::kInfiniband, 800},
      {"N/A", std::nullopt, 0},
      {"", std::nullopt, 0},
  };
  for (const LinkRow& row : rows) expect_read(row);
}

TEST(Links, DenialsCountsInWordsAndOldPorts) {
  const LinkRow rows[] = {
      {"25GbE", FabricKind::kRoce, 25},
      {"100GbE (no RDMA)", FabricKind::kTcp, 100},
      {"Ethernet 100G, no RDMA", FabricKind::kTcp, 100},
      {"InfiniBand disabled", FabricKind::kTcp, 0},
      {"InfiniBand NDR (no GPUDirect RDMA)", FabricKind::kInfiniband, 3200},
      {"InfiniBand HDR, 25GbE", FabricKind::kInfiniband, 1600},
      {"EFA (no GPUDirect RDMA)", FabricKind::kEfa, 0},
      {"8 ConnectX-7", std::nullopt, 3200},
      {"ConnectX-7", std::nullopt, 3200},
      {"NDR (4 per node)", FabricKind::kInfiniband, 1600},
      {"NDR200, 4 per node", FabricKind::kInfiniband, 800},
      {"NDR, 1 NIC per 2 GPUs", FabricKind::kInfiniband, 1600},
      {"NDR, 2 GPUs per NIC", FabricKind::kInfiniband, 1600},
      {"1x200G IB per 8 GPUs", FabricKind::kInfiniband, 200},
      {"single HDR200 NIC", FabricKind::kInfiniband, 200},
      {"Dual HDR100", FabricKind::kInfiniband, 200},
      {"FDR 56Gb/s", FabricKind::kInfiniband, 56},
      {"FDR", FabricKind::kInfiniband, 54.5},
      {"QDR", FabricKind::kInfiniband, 32},
      {"Ethernet, one 25 Gb/s NIC", FabricKind::kRoce, 25},
      {"InfiniBand unavailable", FabricKind::kTcp, 0},
      {"RoCE disabled", FabricKind::kTcp, 0},
      {"TCP over InfiniBand", FabricKind::kTcp, 0},
      {"4X FDR", FabricKind::kInfiniband, 54.5},
      {"2 GPUs share one 200G NIC", std::nullopt, 800},
      {"IB 400G*8", FabricKind::kInfiniband, 3200},
  };
  for (const LinkRow& row : rows) expect_read(row);
}

TEST(Links, ManagementIsNotTheTrainingNetwork) {
  const LinkCell link = read_link("Management: 1x Ethernet 10GB/Sec");
  EXPECT_TRUE(link.management);
  EXPECT_FALSE(node_bandwidth(link, 8));
}

TEST(Links, PcieOnly) {
  EXPECT_TRUE(pcie_only("PCIe Gen4"));
  EXPECT_FALSE(pcie_only("NVLink bridge over PCIe"));
  EXPECT_FALSE(pcie_only(""));
}

TEST(Links, HostileText) {
  for (const char* text : {"99999999999999999999x 1Gb/s", "x", "1e999 Gb/s", "-5x 100Gb/s", "/ / /",
                           " and  and ", "\xff\xfe 400Gb/s", "8x8x8x8x"}) {
    const std::optional<Bandwidth> total = node_bandwidth(read_link(text), 8);
    EXPECT_GT(total.value_or(Bandwidth(1)).v, 0) << text;
  }
}

// A rate after a comma, ports by another name, and what is not there.
TEST(Links, RatesAndPortsBesideTheName) {
  const LinkCell ib = read_link("InfiniBand, 200Gb/s");
  EXPECT_EQ(ib.kind, FabricKind::kInfiniband);
  EXPECT_EQ(ib.rate->v, 200 * kGbit);
  EXPECT_EQ(read_link("InfiniBand, 4 HCA per node").ports, 4);
  EXPECT_EQ(read_link("plain VPC Ethernet (no InfiniBand)").kind, FabricKind::kTcp);
  EXPECT_EQ(read_link("RoCE (no InfiniBand)").kind, FabricKind::kRoce);
  EXPECT_EQ(read_link("ConnectX-7 NICs").ports, std::nullopt);
  EXPECT_EQ(read_link("InfiniBand NDR, NVLink 900 GB/s").rate->v, 400 * kGbit);
  EXPECT_EQ(read_link("InfiniBand, 8 NICs, 200Gb/s").ports, 8);
  EXPECT_EQ(read_link("InfiniBand, 8 NICs, 200Gb/s").rate->v, 200 * kGbit);
}

TEST(Links, SumsAndTheirParts) {
  const auto node = [](const char* text) {
    const auto total = node_bandwidth(read_link(text), 8);
    return total ? total->v / kGbit : 0;
  };
  EXPECT_NEAR(node("8x 400Gb/s NDR (3.2 Tb/s aggregate)"), 3200, 1);
  EXPECT_NEAR(node("3.2 Tbps (8 x 400 Gbps) RoCE"), 3200, 1);
  EXPECT_NEAR(node("8x400 Gb/s (3.2 Tbps total)"), 3200, 1);
  EXPECT_NEAR(node("total 3200 Gbps over 8 NICs RoCE"), 3200, 1);
  EXPECT_NEAR(node("inter-node: InfiniBand 800 Gbps/node"), 800, 1);
  EXPECT_NEAR(node("800 Gbps (4 EFA adapters)"), 800, 1);
  EXPECT_NEAR(node("3,200 Gbps EFA"), 3200, 1);
  EXPECT_NEAR(node("InfiniBand (8 x 200 Gb/s HDR, PCIe Gen4)"), 1600, 1);
  EXPECT_NEAR(node("InfiniBand 400 Gb/s inter-node"), 3200, 1);
  EXPECT_EQ(read_link("none - single node with 900 GB/s NVLink").rate, std::nullopt);
  EXPECT_EQ(read_link("HPE Slingshot 11 NICs").ports, std::nullopt);
  EXPECT_EQ(read_link("IB (no RoCE)").kind, FabricKind::kInfiniband);
  EXPECT_EQ(read_link("100 Gb/s Ethernet (no RDMA)").kind, FabricKind::kTcp);
  EXPECT_FALSE(pcie_only("xGMI (no NVLink)"));
  EXPECT_TRUE(pcie_only("PCIe Gen4 x16 (no NVLink)"));
}

TEST(Links, OversubscriptionAndPortsOfTheFabric) {
  EXPECT_EQ(read_link("InfiniBand NDR, 2:1 oversubscribed").oversubscription, 2);
  EXPECT_EQ(read_link("ConnectX-7 NDR 400 Gb/s, 1:1 non-oversubscribed").oversubscription, 1);
  EXPECT_EQ(read_link("200 Gb/s HDR x 4").ports, 4);
  EXPECT_EQ(read_link("EFA (32x100 Gbps)").ports, 32);
  EXPECT_EQ(read_link("InfiniBand NDR 400 Gb/s (16 nodes x 8)").ports, std::nullopt);
  EXPECT_EQ(read_link("Ethernet 400 Gb/s, 64 ports per switch").ports, std::nullopt);
  EXPECT_EQ(read_link("800 Gb/s per node (2x CX-7)").per, LinkCell::Per::kNode);
}

TEST(Links, Pcie) {
  const auto gigabytes = [](const char* cell) {
    const auto read = read_pcie(cell);
    return read ? read->rate.v / 1e9 : 0;
  };
  EXPECT_DOUBLE_EQ(gigabytes("PCIe 4.0 x8"), 16);
  EXPECT_DOUBLE_EQ(gigabytes("PCIe 3.0"), 16);
  EXPECT_DOUBLE_EQ(gigabytes("PCIe Gen4"), 32);
  EXPECT_DOUBLE_EQ(gigabytes("PCIe 5 x16"), 64);
  EXPECT_DOUBLE_EQ(gigabytes("PCIe, 6 GB/s"), 6);
  EXPECT_DOUBLE_EQ(gigabytes("PCIe (no NVLink)"), 0);
  EXPECT_DOUBLE_EQ(gigabytes("NVLink 4, 900 GB/s"), 0);
  const auto measured = read_pcie("PCIe 4.0 x8 through the host, 6.23 GB/s one way measured");
  ASSERT_TRUE(measured);
  EXPECT_DOUBLE_EQ(measured->rate.v, 6.23e9);
  EXPECT_TRUE(measured->measured);
}

}  // namespace
}  // namespace assay

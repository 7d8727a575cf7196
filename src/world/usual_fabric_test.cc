#include <gtest/gtest.h>

#include "world/describe_case.h"
#include "world/rules.h"

namespace assay {
namespace {

// What is stated of a fabric whose kind is not holds for the usual one.
TEST(UsualFabric, AStatedKeyOfAnUnnamedFabricHolds) {
  const TemporaryYaml file(
      "workload: {model: llama-3.1-8b}\n"
      "cluster: {node: dgx-h100, nodes: 8, fabric: {oversubscription: 4, nodes_per_leaf: 2, "
      "degraded_links: 20 %, degraded_speed: 0.1}}\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << error(d);
  const Fabric& f = d->setting.cluster.fabric;
  EXPECT_EQ(f.name, "ndr-400-rail");
  EXPECT_EQ(f.oversubscription, 4);
  EXPECT_EQ(f.nodes_per_leaf, 2);
  EXPECT_EQ(f.degraded_speed, 0.1);
  EXPECT_TRUE(assumes(*d, "cluster.fabric"));
  EXPECT_TRUE(d->warnings.empty());
}

TEST(UsualFabric, NodesAreJoinedAsSuchNodesAre) {
  const auto fabric = [](const std::string& cluster) {
    const TemporaryYaml file("workload: {model: llama-3.1-8b}\ncluster: {" + cluster + "}\n");
    const Described d = of({file.path()});
    return d ? d->setting.cluster.fabric.name : error(d);
  };
  EXPECT_EQ(fabric("accelerator: tpu-v5e, nodes: 32"), "tpu-torus-2d");
  EXPECT_EQ(fabric("node: tpu-v5p-host, nodes: 32"), "tpu-v5p-pod");
  EXPECT_EQ(fabric("node: aws-p4d, nodes: 4"), "efa-v1");
  EXPECT_EQ(fabric("node: aws-p5en, nodes: 4"), "efa-v3");
  EXPECT_EQ(fabric("node: rtx3090-8, nodes: 2"), "ethernet-10g");
  EXPECT_EQ(fabric("node: gaudi3-8, nodes: 2"), "roce-200");
  EXPECT_EQ(fabric("node: hgx-h100, nodes: 2"), "ndr-400-rail");
  EXPECT_EQ(fabric("node: gcp-a4x, nodes: 36"), "nvl72");
}

// A lone node is joined as its kind is when more of them are imagined; what was stated still holds.
TEST(UsualFabric, ANodeThatGrowsIsJoinedAsItsKind) {
  const auto grown = [](const std::string& cluster) {
    const TemporaryYaml file("workload: {model: llama-3.1-8b}\ncluster: {" + cluster + "}\n");
    Description d = *of({file.path()});
    EXPECT_FALSE(assumes(d, "cluster.fabric"));
    EXPECT_TRUE(grow_cluster(d.setting.cluster, 64, catalog()));
    return d.setting.cluster.fabric;
  };
  EXPECT_EQ(grown("node: tpu-v5e-host").kind, FabricKind::kTorus);
  EXPECT_EQ(grown("node: aws-p5").name, "efa-v2");
  EXPECT_EQ(grown("node: {accelerator: rtx-4090, accelerators: 8}").kind, FabricKind::kTcp);
  const Fabric stated = grown("node: hgx-h100, fabric: {oversubscription: 2}");
  EXPECT_EQ(stated.kind, FabricKind::kInfiniband);
  EXPECT_EQ(stated.oversubscription, 2);
  EXPECT_EQ(grown("node: hgx-h100, fabric: {kind: roce}").kind, FabricKind::kRoce);
}

// By whatever name: the rack of 72.
TEST(UsualFabric, TheUsualClusterIsFoundByAlias) {
  for (const char* name : {"gb200", "gb200-186gb", "GB200"}) {
    const TemporaryYaml file(
        std::string("workload: {model: llama-3.1-8b}\ncluster: {node: {accelerator: ") + name +
        ", accelerators: 4}, nodes: 16}\n");
    const Described d = of({file.path()});
    ASSERT_TRUE(d) << error(d);
    EXPECT_EQ(d->setting.cluster.fabric.name, "nvl72") << name;
  }
}

// A node described by hand has what the accelerator's usual node has, where nothing is said of it.
TEST(UsualFabric, AHandMadeNodeIsCompleted) {
  const TemporaryYaml file(
      "workload: {model: llama-3.1-8b}\n"
      "cluster: {node: {accelerator: h100, accelerators: 4, nics: 2}, nodes: 4}\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << error(d);
  const Node& n = d->setting.cluster.node;
  EXPECT_EQ(n.host_power.v, 1300);
  EXPECT_EQ(n.nics, 2);
  EXPECT_EQ(n.nic_bandwidth.v, 50e9);
  EXPECT_TRUE(assumes(*d, "cluster.node.host_power"));
  EXPECT_FALSE(assumes(*d, "cluster.node.nics"));
}

TEST(UsualFabric, ANodesPriceIsDoubted) {
  const TemporaryYaml file(
      "workload: {model: llama-3.1-8b}\ncluster: {node: aws-p4d, nodes: 8, price: $22/h}\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << error(d);
  ASSERT_EQ(d->warnings.size(), 1U);
  EXPECT_NE(d->warnings[0].help.find("$2.75/h"), std::string::npos) << d->warnings[0].help;
}

// A DGX H100's 10.2 kW are not those of 16 GPUs in its place, nor of others.
TEST(UsualFabric, AChangedNodeHasNoNameplate) {
  const auto nameplate = [](const std::string& set) {
    Request r;
    r.inputs = {"llama-3.1-8b", "h100-64"};
    if (!set.empty()) r.sets = {set};
    const Described d = describe(r, catalog());
    EXPECT_TRUE(d) << error(d);
    return d ? d->setting.cluster.node.nameplate.v : -1;
  };
  EXPECT_GT(nameplate(""), 0);
  EXPECT_EQ(nameplate("cluster.node.accelerators=16"), 0);
  EXPECT_EQ(nameplate("cluster.node.accelerator=gb300-288gb"), 0);
  EXPECT_EQ(nameplate("cluster.node.nameplate=2 kW"), 2000) << "stated by hand";
}

TEST(UsualFabric, ANodeThatNobodySellsHasAHost) {
  const TemporaryYaml file(
      "workload: {model: llama-3.2-1b}\n"
      "cluster: {node: {accelerator: h100-nvl-94gb, accelerators: 8}, nodes: 1}\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << error(d);
  EXPECT_NEAR(d->setting.cluster.node.host_power.v, 0.43 * 8 * 400, 1);
  EXPECT_TRUE(assumes(*d, "cluster.node.host_power"));
}

TEST(UsualFabric, UnitsAreDoubted) {
  const auto doubt = [](const std::string& set) {
    Request r;
    r.inputs = {"llama-3.1-8b", "h100-64"};
    r.sets = {set};
    const Described d = describe(r, catalog());
    EXPECT_TRUE(d) << error(d);
    return d && d->warnings.size() == 1 ? d->warnings[0].message + "; " + d->warnings[0].help : "";
  };
  EXPECT_NE(doubt("cluster.node.nic_bandwidth=400 GB/s").find("400 Gb/s"), std::string::npos);
  EXPECT_NE(doubt("cluster.accelerator.bf16=1979 TFLOPS").find("sparsity"), std::string::npos);
  EXPECT_NE(doubt("cluster.accelerator.memory_bandwidth=3.35 GB/s").find("unit"),
            std::string::npos);
  EXPECT_EQ(doubt("cluster.node.nic_bandwidth=800 Gb/s"), "");
  EXPECT_EQ(doubt("cluster.accelerator.bf16=1200 TFLOPS"), "");
}

// A vendor's 80 GB are 80 GiB; 79.15 GiB are what torch prints of such a card.
TEST(UsualFabric, MemoryInBinaryUnitsIsTakenAtItsWord) {
  for (const auto& [text, gb] : std::map<std::string, double>{
           {"80 GB", 80}, {"80 GiB", 80}, {"79.15 GiB", 79.15}, {"81559 MiB", 81559.0 / 1024}}) {
    Request r;
    r.inputs = {"llama-3.1-8b", "h100-64"};
    r.sets = {"cluster.accelerator.memory=" + text};
    const Described d = describe(r, catalog());
    ASSERT_TRUE(d) << error(d);
    EXPECT_NEAR(d->setting.cluster.accelerator.memory.v / 1e9, gb, 1e-6) << text;
  }
}

}  // namespace
}  // namespace assay

#include "world/describe_case.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Describe, TwoNames) {
  const Described d = of({"llama-3.1-70b", "h100-1024"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->workload_name, "llama-3.1-70b");
  EXPECT_EQ(d->cluster_name, "h100-1024");
  EXPECT_EQ(d->stack_name, "megatron-core");
  EXPECT_EQ(d->setting.workload.model.layers, 80);
  EXPECT_EQ(d->setting.cluster.accelerators(), 1024);
  EXPECT_EQ(d->setting.workload.seq, 4096);
  EXPECT_EQ(d->setting.workload.global_batch, 1024);
  EXPECT_NEAR(d->setting.workload.tokens, 20 * 70.55e9, 1e10);
  EXPECT_TRUE(d->plan_keys.empty());
  for (const char* path : {"workload.seq", "workload.global_batch", "workload.tokens", "stack"}) {
    EXPECT_TRUE(assumes(*d, path)) << path;
    EXPECT_EQ(d->origins.at(path).mark, 'a');
  }
  EXPECT_EQ(d->origins.at("cluster.accelerator.memory_bandwidth").mark, 's');
  EXPECT_EQ(d->origins.at("cluster.accelerator.memory").file, "catalog/accelerators.yaml");
  EXPECT_EQ(d->setting.kernels.name, "hopper");
  EXPECT_EQ(d->setting.scaleup_params.name, "nvlink4");
  EXPECT_EQ(d->setting.fabric_params.name, "infiniband");
}

TEST(Describe, AnotherModelNamesTheWorkload) {
  const Described d = of({"llama-3.1-8b", "h100-64"}, {"workload.model=gpt2"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.workload.model.name, "gpt-2");
  EXPECT_EQ(d->workload_name, "gpt-2");
}

TEST(Describe, OrderDoesNotMatter) {
  const Described a = of({"llama-3.1-70b", "h100-1024"});
  const Described b = of({"h100-1024", "llama-3.1-70b"});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->workload_name, b->workload_name);
  EXPECT_EQ(a->setting.cluster.nodes, b->setting.cluster.nodes);
}

TEST(Describe, ANodeOrAnAcceleratorIsAClusterOfThem) {
  const Described node = of({"llama-3.1-8b", "dgx-h100"});
  ASSERT_TRUE(node) << render(node.error());
  EXPECT_EQ(node->setting.cluster.accelerators(), 8);
  EXPECT_TRUE(assumes(*node, "cluster.nodes"));
  const Described sized = of({"llama-3.1-8b", "H100"}, {}, 100);
  ASSERT_TRUE(sized) << render(sized.error());
  EXPECT_EQ(sized->setting.cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_EQ(sized->setting.cluster.nodes, 13);
  EXPECT_EQ(sized->setting.accelerators, 100);
}

TEST(Describe, FilesWithSections) {
  const TemporaryYaml file(
      "workload:\n  model: llama-3.1-8b\n  seq: 8192\n  global_batch: 256\n  tokens: 2.0 T\n"
      "cluster:\n  name: dc1\n  node: {base: dgx-h100, nics: 4}\n  nodes: 16\n"
      "  fabric: ndr-400-rail\n  accelerator:\n    memory: 141 GB\n  price: $2.49/h\n"
      "plan:\n  tp: 2\n  precision: FP8\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.workload.tokens, 2e12);
  EXPECT_EQ(d->setting.cluster.node.nics, 4);
  EXPECT_EQ(d->setting.cluster.node.accelerators, 8);
  EXPECT_EQ(d->setting.cluster.accelerator.memory.v, 141e9);
  EXPECT_EQ(d->setting.cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_EQ(d->cluster_name, "dc1");
  EXPECT_EQ(d->plan.tp, 2);
  EXPECT_EQ(d->plan.precision, Precision::kFp8);
  EXPECT_EQ(d->plan_keys, (std::set<std::string>{"tp", "precision"}));
  EXPECT_EQ(d->origins.at("workload.seq").line, 3);
  EXPECT_EQ(d->origins.at("workload.seq").file, file.path());
  EXPECT_FALSE(assumes(*d, "workload.seq"));
}

TEST(Describe, AFileMayStartWithTheKeysOfOneSection) {
  const TemporaryYaml workload("model: llama-3.1-8b\nseq: 2048\n");
  const TemporaryYaml cluster("node: dgx-h100\nnodes: 2\n");
  const TemporaryYaml model("layers: 4\nhidden: 512\nffn: 2048\nheads: 8\nvocab: 1000\n");
  const Described d = of({workload.path(), cluster.path()});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.workload.seq, 2048);
  const Described m = of({model.path(), "h100-8"});
  ASSERT_TRUE(m) << render(m.error());
  EXPECT_EQ(m->setting.workload.model.layers, 4);
  const TemporaryYaml nothing("color: red\n");
  EXPECT_EQ(error(of({nothing.path()})),
            "this file has none of the sections workload, cluster, site, stack, plan, run");
}

TEST(Describe, SetChangesAnything) {
  const Described d =
      of({"llama-3.1-70b", "h100-1024"},
         {"cluster.nodes=64", "plan.tp=8", "workload.model.layers=40",
          "cluster.accelerator.memory=141 GB", "cluster.node.nics=4", "stack.launch=3 us",
          "cluster.fabric.oversubscription=2:1", "cluster.price=$1.5/h"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.cluster.nodes, 64);
  EXPECT_EQ(d->plan.tp, 8);
  EXPECT_EQ(d->setting.workload.model.layers, 40);
  EXPECT_EQ(d->setting.workload.model.hidden, 8192);
  EXPECT_EQ(d->setting.cluster.accelerator.memory.v, 141e9);
  EXPECT_EQ(d->setting.cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_EQ(d->setting.cluster.node.nics, 4);
  EXPECT_DOUBLE_EQ(d->setting.stack.launch.v, 3e-6);
  EXPECT_EQ(d->stack_name, "megatron-core");
  EXPECT_EQ(d->setting.cluster.fabric.oversubscription, 2);
  EXPECT_EQ(d->origins.at("cluster.nodes").file, "--set cluster.nodes=64");
}

TEST(Describe, SetNamesAnotherEntry) {
  const Described d = of({"llama-3.1-70b", "h100-1024", "megatron-core"},
                         {"stack=pytorch-fsdp2", "cluster=b200-16", "stack.launch=3 us"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->stack_name, "pytorch-fsdp2");
  EXPECT_EQ(d->cluster_name, "b200-16");
  EXPECT_DOUBLE_EQ(d->setting.stack.launch.v, 3e-6);
  EXPECT_NE(error(of({"llama-3.1-70b", "h100-8"}, {"stack=pytorch-fsdb2"})), "");
  EXPECT_NE(error(of({"llama-3.1-70b", "h100-8"}, {"stack="})), "");
  EXPECT_NE(error(of({"llama-3.1-70b", "h100-8"}, {"plan=x"})), "");
}

TEST(Describe, APowerLimitBelowIdleIsRefused) {
  EXPECT_NE(error(of({"llama-3.1-8b", "h100-8"}, {"cluster.accelerator.tdp=60 W"})), "");
  EXPECT_TRUE(of({"llama-3.1-8b", "h100-8"}, {"cluster.accelerator.tdp=300 W"}));
}

TEST(Describe, AnAcceleratorAloneBringsItsUsualNode) {
  const TemporaryYaml file("workload: llama-3.1-8b\ncluster: {accelerator: h200, nodes: 4}\n");
  const Described d = of({file.path()});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.cluster.node.name, "dgx-h200");
  EXPECT_EQ(d->setting.cluster.accelerators(), 32);
  EXPECT_EQ(of({"Llama 3.1 8B", "H100"})->workload_name, "llama-3.1-8b");
}

TEST(Describe, AModelMayBeAConfigFile) {
  const std::string config = ASSAY_ROOT "/test/data/hf/mixtral.json";
  const TemporaryYaml file("workload: {model: {base: " + config + ", layers: 16}}\n");
  const Described d = of({file.path(), "h100-64"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.workload.model.layers, 16);
  EXPECT_EQ(d->setting.workload.model.experts, 8);
  EXPECT_EQ(d->origins.at("workload.model.experts").source, config);
  const TemporaryYaml missing("workload: {model: no-such.json}\n");
  EXPECT_NE(error(of({missing.path(), "h100-64"})).find("no such file"), std::string::npos);
}

TEST(Describe, StackByVendor) {
  const auto stack = [](const char* cluster) {
    const Described d = of({"llama-3.1-8b", cluster});
    return d ? d->stack_name : render(d.error());
  };
  EXPECT_EQ(stack("H100"), "megatron-core");
  EXPECT_EQ(stack("MI300X"), "megatron-core");
  EXPECT_EQ(stack("TPU v5e"), "maxtext");
  EXPECT_EQ(stack("Trn1-NeuronCore"), "nxd");
  EXPECT_EQ(stack("aurora"), "pytorch-fsdp2");
}

TEST(Describe, EveryClusterOfTheCatalogCanBeDescribed) {
  for (const Cluster& cluster : catalog().clusters) {
    const Described d = of({"gpt-2", cluster.name});
    EXPECT_TRUE(d) << cluster.name << "\n" << (d ? "" : render(d.error()));
  }
  for (const Model& model : catalog().models) {
    const Described d = of({model.name, "h100-64"});
    EXPECT_TRUE(d) << model.name << "\n" << (d ? "" : render(d.error()));
  }
  for (const Node& node : catalog().nodes) {
    const Described d = of({"gpt-2", node.name});
    EXPECT_TRUE(d) << node.name << "\n" << (d ? "" : render(d.error()));
  }
}

TEST(Describe, SetReplacesParts) {
  const Described d = of({"llama-3.1-8b", "h100-64"}, {"cluster.node=mi300x-8"});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.cluster.accelerator.name, d->setting.cluster.node.accelerator);
  EXPECT_EQ(d->setting.cluster.accelerator.vendor, "AMD");
  EXPECT_EQ(d->setting.kernels.name, "cdna3");
}

TEST(Describe, BadSets) {
  const auto set = [](const std::string& text) { return of({"llama-3.1-8b", "h100-64"}, {text}); };
  EXPECT_EQ(error(set("cluster.nodes=0")), "cluster.nodes must be at least 1");
  EXPECT_EQ(set("cluster.nodes=0").error()[0].at.file, "--set cluster.nodes=0");
  EXPECT_EQ(error(set("clustre.nodes=4")), "--set cannot find `clustre`");
  EXPECT_EQ(help(set("clustre.nodes=4")), "did you mean `cluster.`?");
  EXPECT_EQ(help(set("tp=4")), "write `plan.tp=...`");
  EXPECT_EQ(help(set("cluster.ndoes=4")), "did you mean `nodes`?");
  EXPECT_EQ(error(set("nonsense")), "--set needs path=value");
  EXPECT_EQ(error(set("=3")), "--set needs path=value");
  EXPECT_EQ(error(set("plan.tp=")), "plan.tp has no value");
  EXPECT_EQ(error(set("plan.tp.x=1")), "plan.tp must be a single value, not a mapping");
  EXPECT_EQ(error(set("cluster.accelerator.tdp=700")), "cluster.accelerator.tdp needs the unit W");
  EXPECT_EQ(error(set("cluster.accelerator.memory_bandwidth=-3 TB/s")),
            "cluster.accelerator.memory_bandwidth must be more than zero");
  EXPECT_EQ(error(set("workload.model.layers=1e30")),
            "workload.model.layers must be at most 100000");
  EXPECT_EQ(error(set("cluster.price=$1e30/h")), "cluster.price is too large");
  EXPECT_EQ(help(set("cluster.nodes=0")), "write 1 or more");
  EXPECT_EQ(error(set("workload.seq=0")), "workload.seq must be at least 1");
  EXPECT_EQ(error(set("workload.global_batch=0")), "workload.global_batch must be at least 1");
  EXPECT_EQ(error(set("workload.tokens=nan")), "workload.tokens must be a number, not `nan`");
  EXPECT_EQ(error(set("workload.seq=8k")),
            "workload.seq must be a whole number, `8k` is ambiguous");
  EXPECT_FALSE(set(std::string(100000, 'a') + "=1"));
  EXPECT_FALSE(set("cluster" + std::string(100000, '.') + "=1"));
}

TEST(Describe, MissingAndDoubleSections) {
  EXPECT_EQ(error(of({})), "no workload was given");
  EXPECT_EQ(error(of({"llama-3.1-8b"})), "no cluster was given");
  EXPECT_EQ(error(of({"llama-3.1-8b", "llama-3.1-70b", "h100-8"})),
            "a second workload: `llama-3.1-70b`");
  EXPECT_EQ(error(of({"llama-3.1-8b", "h100-8"}, {"cluster.node={}"})), "");
}

// `h100-4096` stands in no catalog: a cluster of that family, or nodes of that kind, of that size.
TEST(Describe, ClustersOfAnySize) {
  const Described grown = of({"llama-3.1-8b", "h100-4096"});
  ASSERT_TRUE(grown) << error(grown);
  EXPECT_EQ(grown->cluster_name, "h100-4096");
  EXPECT_EQ(grown->setting.cluster.accelerators(), 4096);
  EXPECT_EQ(grown->setting.cluster.fabric.name, "ndr-400-rail");
  const Described larger = of({"llama-3.1-8b", "a100-32768"}, {"plan.tp=8"});
  ASSERT_TRUE(larger) << error(larger);
  EXPECT_EQ(larger->setting.cluster.accelerators(), 32768);
  const Described part = of({"llama-3.1-8b", "h20-64"});
  ASSERT_TRUE(part) << error(part);
  EXPECT_EQ(part->setting.cluster.accelerator.name, "h20-sxm5-96gb");
  EXPECT_EQ(part->setting.cluster.accelerators(), 64);
  const Described odd = of({"llama-3.1-8b", "h100-12"});
  EXPECT_EQ(error(odd), "`h100-12`: 12 is no whole number of nodes (8 each)");
  EXPECT_EQ(help(odd), "`h100-16`, and `--gpus 12` where not all are used");
  for (const char* none : {"h100-0", "h100-99999999999999999999", "-8", "gpt2-8"})
    EXPECT_FALSE(of({"llama-3.1-8b", none})) << none;
}

TEST(Describe, UnknownNames) {
  const Described d = of({"lama-3.1-70b", "h100-1024"});
  EXPECT_EQ(error(d), "`lama-3.1-70b` is no file and no name of the catalog");
  EXPECT_EQ(help(d), "did you mean `llama-3.1-70b`?");
  EXPECT_EQ(error(of({"no/such.yaml"})), "no such file");
  EXPECT_EQ(error(of({"/"})), "is a directory, not a file");
  const TemporaryYaml file("workload:\n  model: lama-3.1-70b\ncluster: h100-8\n");
  EXPECT_EQ(help(of({file.path()})), "did you mean `llama-3.1-70b`?");
}

TEST(Describe, HowManyGpus) {
  EXPECT_EQ(error(of({"llama-3.1-8b", "h100-64"}, {}, 128)),
            "128 GPUs were asked for, but the cluster has 64");
  EXPECT_FALSE(of({"llama-3.1-8b", "h100-64"}, {}, -1));
  EXPECT_FALSE(of({"llama-3.1-8b", "H100"}, {}, std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(of({"llama-3.1-8b", "h100-64"}, {}, 16)->setting.accelerators, 16);
  const TemporaryYaml zero("workload: llama-3.1-8b\ncluster: {node: dgx-h100, gpus: 0}\n");
  EXPECT_EQ(error(of({zero.path()})), "cluster.gpus must be at least 1");
  const TemporaryYaml some("workload: llama-3.1-8b\ncluster: {node: dgx-h100, gpus: 20}\n");
  const Described d = of({some.path()});
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->setting.cluster.nodes, 3);
  EXPECT_EQ(d->setting.accelerators, 20);
}

TEST(Describe, Tokens) {
  EXPECT_EQ(of({"llama-3.1-8b", "h100-64"}, {}, 0, 5e11)->setting.workload.tokens, 5e11);
  EXPECT_FALSE(of({"llama-3.1-8b", "h100-64"}, {}, 0, -1));
  EXPECT_FALSE(of({"llama-3.1-8b", "h100-64"}, {}, 0, std::nan("")));
}

TEST(Describe, ContradictionsAreRefused) {
  const auto set = [](std::vector<std::string> sets) {
    return error(of({"llama-3.1-8b", "h100-64"}, std::move(sets)));
  };
  EXPECT_NE(set({"workload.model.heads=33"}), "");
  EXPECT_NE(set({"workload.model.kv_heads=7"}), "");
  EXPECT_NE(set({"workload.model.experts=8"}), "");
  EXPECT_NE(set({"workload.model.layers=0"}), "");
  EXPECT_NE(set({"cluster.node.nics=0"}), "");
  EXPECT_NE(set({"cluster.fabric.scaleup_domain=12"}), "");
  EXPECT_EQ(set({"cluster.node.nics=0", "cluster.nodes=1"}), "");
}

TEST(Describe, LongSequencesWarn) {
  const Described d = of({"llama-2-7b", "h100-64"}, {"workload.seq=16384"});
  ASSERT_TRUE(d);
  ASSERT_EQ(d->warnings.size(), 1u);
  EXPECT_EQ(d->warnings[0].severity, Severity::kWarning);
}

TEST(Describe, PricesForAnotherPartWarn) {
  const TemporaryYaml file("site: {base: phoenix, offer: lambda-h100}\n");
  const Described other = of({"llama-2-7b", "a100-64", file.path()});
  ASSERT_TRUE(other) << render(other.error());
  ASSERT_EQ(other->warnings.size(), 1u);
  EXPECT_NE(other->warnings[0].message.find("prices are for h100-sxm5-80gb"), std::string::npos);
  const Described same = of({"llama-2-7b", "h100-64", file.path()});
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->warnings.empty());
}

TEST(Describe, AllProblemsAtOnce) {
  const TemporaryYaml file(
      "workload:\n  model: llama-3.1-8b\n  sqe: 4096\n  seq: 8k\n"
      "cluster:\n  node: dgx-h100\n  nodes: -1\n  accelerator: {tdp: 700}\n"
      "plan:\n  recompute: ful\n  tp: 0\n");
  const Described d = of({file.path()});
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().size(), 6u) << render(d.error());
  for (const Diagnostic& problem : d.error()) {
    EXPECT_GT(problem.at.line, 0);
    EXPECT_GT(problem.at.column, 0);
    EXPECT_FALSE(problem.source_line.empty());
  }
}

TEST(Check, TheScreenEverybodyMeetsFirst) {
  const TemporaryYaml file(
      "cluster:\n  node: dgx-h100\n  ndoes: 8\n  accelerator:\n    tdp: 700\n");
  const CheckReport report = check_file(file.path(), catalog());
  std::string text = render(report.problems);
  for (size_t at; (at = text.find(file.path())) != std::string::npos;) {
    text.replace(at, file.path().size(), "cluster.yaml");
  }
  EXPECT_EQ(text,
            "error: unknown key `ndoes` in cluster\n"
            "  --> cluster.yaml:3:3\n"
            "   |\n"
            " 3 |   ndoes: 8\n"
            "   |   ^^^^^\n"
            "   = help: did you mean `nodes`?\n"
            "\n"
            "error: cluster.accelerator.tdp needs the unit W\n"
            "  --> cluster.yaml:5:10\n"
            "   |\n"
            " 5 |     tdp: 700\n"
            "   |          ^^^\n"
            "   = help: a bare number is ambiguous; write `700 W`\n");
}

TEST(Check, NeedsNothingAndTellsWhatIsAssumed) {
  const TemporaryYaml file("workload: {model: llama-3.1-8b}\n");
  const CheckReport report = check_file(file.path(), catalog());
  EXPECT_TRUE(report.problems.empty()) << render(report.problems);
  EXPECT_EQ(report.assumed.size(), 3u);
  const TemporaryYaml plan("plan: {tp: 8}\n");
  EXPECT_TRUE(check_file(plan.path(), catalog()).problems.empty());
}

TEST(Check, HostileFiles) {
  const std::string texts[] = {"",
                               "# nothing\n",
                               "\t\n",
                               "[]",
                               "- a\n- b\n",
                               "42",
                               std::string("\x7f"
                                           "ELF\0\0\1",
                                           7),
                               "cluster:\n\tnodes: 1\n",
                               "cluster: [1, 2]",
                               "workload: {model: {layers: [}}",
                               "cluster: *x",
                               "workload:\n  workload:\n    workload: 1\n",
                               std::string(100000, '['),
                               "plan: auto",
                               "workload: 7",
                               "cluster: {node: {base: dgx-h100, base: x}}",
                               "{}"};
  for (const std::string& text : texts) {
    const TemporaryYaml file(text);
    const CheckReport report = check_file(file.path(), catalog());
    EXPECT_TRUE(has_errors(report.problems)) << text.substr(0, 40);
    EXPECT_LT(render(report.problems).size(), 100000u);
  }
}

TEST(Check, ManyProblemsEndQuickly) {
  std::string text = "plan:\n";
  for (int i = 0; i < 60000; ++i) text += "  recompute" + std::to_string(i) + ": 1\n";
  const TemporaryYaml file(text);
  const Diagnostics problems = check_file(file.path(), catalog()).problems;
  ASSERT_EQ(problems.size(), 101u);
  EXPECT_EQ(problems.back().message, "more than 100 problems: the others are not listed");
}

TEST(Check, FilesThatAreNoMappingHaveAPlace) {
  for (const char* text : {"- a\n- b\n", "\nword\n", "", "# nothing\n"}) {
    const TemporaryYaml file(text);
    const CheckReport report = check_file(file.path(), catalog());
    ASSERT_EQ(report.problems.size(), 1u) << text;
    EXPECT_EQ(report.problems[0].at.line, text[0] == '\n' ? 2 : 1) << text;
    EXPECT_EQ(report.problems[0].at.column, 1) << text;
  }
}

TEST(Check, AGigabyteIsRefusedAtOnce) {
  const TemporaryYaml file("x");
  std::filesystem::resize_file(file.path(), uintmax_t{1} << 30);
  const CheckReport report = check_file(file.path(), catalog());
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].message.find("larger than the limit"), std::string::npos);
}

TEST(Describe, WhatIsStatedOfTheCoolingHoldsInTheUsualPlant) {
  const TemporaryYaml site("site:\n  climate: phoenix\n  power: {contracted: 2 MW}\n");
  const Described usual = of({"llama-3.1-70b", "h100-1024", site.path()});
  Request request;
  request.inputs = {"llama-3.1-70b", "h100-1024", site.path()};
  request.sets = {"site.cooling.supply_c=17"};
  request.needs_operations = true;
  const Described colder = describe(request, catalog());
  ASSERT_TRUE(usual) << error(usual);
  ASSERT_TRUE(colder) << error(colder);
  EXPECT_EQ(colder->site.cooling.name, usual->site.cooling.name);
  EXPECT_NE(usual->site.cooling.supply_c, 17);
  EXPECT_EQ(colder->site.cooling.supply_c, 17);
  EXPECT_TRUE(assumes(*colder, "site.cooling"));
}

// A mistake in one place does not hide a contradiction in another.
TEST(Describe, ContradictionsOfARunAreToldTogetherWithItsMistakes) {
  const TemporaryYaml all(
      "workload: {model: llama-3.1-70b}\n"
      "cluster: {base: h100-128}\n"
      "site: {base: phoenix, storage: {capacity: 500 GB, write: 1 B/s}}\n"
      "run:\n"
      "  recovery: elastic\n"
      "  replicas: 100\n"
      "  prefetch: 0\n"
      "  spares: -1\n"
      "  swap: 73000 d\n"
      "  maintenance_every: 1 s\n"
      "  maintenance: 1 s\n"
      "  reliability:\n"
      "    exposure_gpu_hours: 1\n"
      "    lemon_shape: 0.001\n"
      "    failures: [{kind: gpu, count: 50}, {kind: gpu, count: 1}]\n");
  Request request;
  request.inputs = {all.path()};
  request.needs_operations = true;
  const Described d = describe(request, catalog());
  ASSERT_FALSE(d);
  const std::string told = render(d.error());
  for (const char* what :
       {"does not fit into storage", "would take", "cannot be 100 replicas", "run.prefetch is zero",
        "run.spares must not be negative", "run.swap is more than 100 years",
        "more than once a minute", "more than 10 times a GPU-hour", "lemon_shape is below",
        "has `gpu` twice"}) {
    EXPECT_NE(told.find(what), std::string::npos) << what << " in\n" << told;
  }
  for (const Diagnostic& p : d.error()) {
    EXPECT_GT(p.at.line, 0) << p.message;
    EXPECT_GT(p.at.column, 0) << p.message;
    EXPECT_FALSE(p.help.empty()) << p.message;
  }
}

// What else is wrong hides nothing: all of it is one list.
TEST(Describe, APrecisionThatIsNotThereIsToldBesideOtherErrors) {
  const std::vector<std::string> wrong{"cluster.nodes=-3", "cluster.pue=0.2", "plan.tp=0",
                                       "workload.seq=0"};
  const auto messages = [&](const char* precision) {
    std::vector<std::string> sets = wrong;
    sets.push_back(std::string("plan.precision=") + precision);
    const Described d = of({"llama-3.1-8b", "a100-64"}, sets);
    return d ? "" : render(d.error());
  };
  const std::string all = messages("fp8");
  EXPECT_NE(all.find("a100-sxm4-80gb has no fp8"), std::string::npos) << all;
  EXPECT_NE(all.find("plan.tp must be at least 1"), std::string::npos) << all;
  EXPECT_NE(all.find("cluster.nodes must be at least 1"), std::string::npos) << all;
  const std::string none = messages("fp9");
  EXPECT_NE(none.find("plan.precision cannot be `fp9`"), std::string::npos) << none;
  EXPECT_EQ(none.find("has no"), std::string::npos) << none;
}

TEST(Describe, AnAssumedBatchDividesAmongTheAccelerators) {
  const std::pair<int64_t, int64_t> cases[] = {{1024, 1024}, {768, 1536}, {7, 896},     {13, 832},
                                               {100, 800},   {900, 900},  {1000, 1000}, {997, 997}};
  for (const auto& [gpus, batch] : cases) {
    const Described d = of({"llama-3.1-8b", "h100-1024"}, {}, gpus);
    ASSERT_TRUE(d) << render(d.error());
    EXPECT_EQ(d->setting.workload.global_batch, batch) << gpus;
    EXPECT_TRUE(assumes(*d, "workload.global_batch"));
  }
  const Described stated = of({"llama-3.1-8b", "h100-1024"}, {"workload.global_batch=1024"}, 768);
  ASSERT_TRUE(stated);
  EXPECT_EQ(stated->setting.workload.global_batch, 1024);
}

// Taking the rails away takes nodes from under a leaf, unless it is said how many there are.
TEST(Describe, WithoutRailsALeafHoldsFewNodes) {
  const auto leaf = [](std::vector<std::string> sets) {
    Request request;
    request.inputs = {"llama-3.1-8b", "h100-128"};
    request.sets = std::move(sets);
    const auto d = describe(request, catalog());
    return d ? d->setting.cluster.fabric.nodes_per_leaf : -1;
  };
  EXPECT_EQ(leaf({}), 32);
  EXPECT_EQ(leaf({"cluster.fabric.rail_optimised=true"}), 32);
  EXPECT_EQ(leaf({"cluster.fabric.rail_optimised=false"}), 4);
  EXPECT_EQ(leaf({"cluster.fabric.rail_optimised=false", "cluster.node.nics=2"}), 16);
  EXPECT_EQ(leaf({"cluster.fabric.rail_optimised=false", "cluster.fabric.nodes_per_leaf=9"}), 9);
  EXPECT_EQ(leaf({"cluster.fabric=hdr-200", "cluster.fabric.rail_optimised=false"}), 2);
  Request meta;
  meta.inputs = {"llama-3.1-8b", "h100-24k-meta"};
  meta.sets = {"cluster.fabric.rail_optimised=false"};  // as it is there
  EXPECT_EQ(describe(meta, catalog())->setting.cluster.fabric.nodes_per_leaf, 384);
}

}  // namespace
}  // namespace assay

// Settings that exclude each other, and hardware that lacks what is asked of it.
#include <gtest/gtest.h>

#include "world/describe_case.h"

namespace assay {
namespace {

TEST(Describe, PrecisionIsOneThatTheAcceleratorHas) {
  const Described volta = of({"llama-3.1-8b", "v100-128"});
  ASSERT_TRUE(volta) << render(volta.error());
  EXPECT_EQ(volta->plan.precision, Precision::kFp16);
  EXPECT_TRUE(assumes(*volta, "plan.precision"));
  const Described hopper = of({"llama-3.1-8b", "h100-64"});
  ASSERT_TRUE(hopper);
  EXPECT_EQ(hopper->plan.precision, Precision::kBf16);
  EXPECT_FALSE(assumes(*hopper, "plan.precision"));
  const Described four = of({"llama-3.1-8b", "h100-64"}, {"plan.precision=nvfp4"});
  EXPECT_EQ(error(four), "plan.precision: h100-sxm5-80gb has no nvfp4");
  EXPECT_EQ(help(four), "use one of fp32, tf32, fp16, bf16, fp8, int8");
  EXPECT_FALSE(of({"llama-3.1-8b", "a100-4096"}, {"plan.precision=fp8"}));
  EXPECT_FALSE(of({"llama-3.1-8b", "mi355x-1024"}, {"plan.precision=nvfp4"}));
  EXPECT_TRUE(of({"llama-3.1-8b", "mi355x-1024"}, {"plan.precision=mxfp4"}));
}

// What a stack does where it can is left out where it cannot; what is stated stays, to be refused.
TEST(Describe, SequencesThatRanksCannotShareAreNotShared) {
  const std::vector<std::string> odd = {"plan.tp=4", "workload.seq=4097"};
  const Described left_out = of({"llama-3.1-8b", "h100-64"}, odd);
  ASSERT_TRUE(left_out) << render(left_out.error());
  EXPECT_FALSE(left_out->plan.sequence_parallel);
  EXPECT_TRUE(assumes(*left_out, "plan.sequence_parallel"));
  const Described wished =
      of({"llama-3.1-8b", "h100-64"}, {odd[0], odd[1], "plan.sequence_parallel=true"});
  ASSERT_TRUE(wished);
  EXPECT_TRUE(wished->plan.sequence_parallel);
  EXPECT_TRUE(of({"llama-3.1-8b", "h100-64"}, {"plan.tp=4"})->plan.sequence_parallel);
}

// A part of several names is short for these, however near another is.
TEST(Describe, AShortNameIsNotANearOne) {
  const Described four = of({"llama-3.1-8b", "b200-1024"}, {"plan.precision=fp4"});
  EXPECT_EQ(help(four), "did you mean `nvfp4` or `mxfp4`?");
  const Described typo = of({"llama-3.1-8b", "b200-1024"}, {"plan.precision=bf6"});
  EXPECT_EQ(help(typo), "did you mean `bf16`?");
}

// Neither of two settings that exclude each other is dropped in silence.
TEST(Describe, AScheduleAndItsChunksAgree) {
  const auto with = [](std::vector<std::string> sets) {
    return of({"llama-3.1-70b", "h100-128"}, std::move(sets));
  };
  for (const char* schedule : {"1f1b", "zero-bubble", "gpipe"}) {
    const std::string stated = std::string("plan.schedule=") + schedule;
    const Described both = with({stated, "plan.vpp=2"});
    EXPECT_EQ(error(both), "plan.schedule: " + std::string(schedule) +
                               " has no virtual stages, and plan.vpp is 2");
    EXPECT_TRUE(with({stated, "plan.vpp=1"}));
    EXPECT_TRUE(with({stated}));
  }
  EXPECT_EQ(help(with({"plan.schedule=interleaved", "plan.vpp=1"})),
            "set plan.vpp to at least 2, or leave out plan.schedule");
  EXPECT_TRUE(with({"plan.schedule=interleaved"}));  // the search chooses how many
  const Described chunks = with({"plan.vpp=2"});
  ASSERT_TRUE(chunks);
  EXPECT_EQ(chunks->plan.schedule, Schedule::kInterleaved);
}

// `gpt-neox` is a stack's name and an alias of a model, `gaudi` one of an accelerator.
TEST(Describe, AnOwnNameWinsOverAnAlias) {
  const Described neox = of({"llama-3.1-8b", "h100-64", "gpt-neox"});
  ASSERT_TRUE(neox) << render(neox.error());
  EXPECT_EQ(neox->stack_name, "gpt-neox");
  const Described gaudi = of({"llama-3.1-8b", "gaudi2-256", "Gaudi"});
  ASSERT_TRUE(gaudi) << render(gaudi.error());
  EXPECT_EQ(gaudi->stack_name, "gaudi");
  const Described model = of({"workload=gpt-neox", "cluster=h100", "stack=gpt-neox"});
  ASSERT_TRUE(model) << render(model.error());
  EXPECT_EQ(model->workload_name, "gpt-neox-20b");
  EXPECT_EQ(model->setting.cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_EQ(model->stack_name, "gpt-neox");
  const Described alone = of({"gpt-neox", "h100-64"});
  EXPECT_EQ(error(alone), "no workload was given");
  EXPECT_NE(help(alone).find("write `workload=gpt-neox`"), std::string::npos);
  EXPECT_FALSE(of({"llama-3.1-8b", "h100-64", "stack=no-such"}));
}

TEST(Describe, AStackOfAnotherMakerIsAWarning) {
  const auto warned = [](const char* cluster, const char* stack) {
    const Described d = of({"llama-3.1-8b", cluster}, {std::string("stack=") + stack});
    EXPECT_TRUE(d) << error(d);
    return d && !d->warnings.empty() ? d->warnings[0].message + "; " + d->warnings[0].help : "";
  };
  EXPECT_EQ(warned("h100-64", "nxd"),
            "stack nxd does not run on h100-sxm5-80gb of NVIDIA: it communicates by neuron; use "
            "megatron-core, or another that communicates by nccl");
  EXPECT_NE(warned("h100-64", "gaudi").find("use megatron-core"), std::string::npos);
  EXPECT_NE(warned("h100-64", "maxtext").find("use maxtext-gpu"), std::string::npos);
  EXPECT_NE(warned("tpu-v5p", "megatron-core").find("use maxtext"), std::string::npos);
  EXPECT_NE(warned("trainium2", "pytorch-fsdp2").find("use nxd"), std::string::npos);
  for (const char* own : {"megatron-core", "pytorch-fsdp2", "jax-gpu", "deepspeed-zero"}) {
    EXPECT_EQ(warned("h100-64", own), "");
    EXPECT_EQ(warned("mi300x", own), "");
  }
  EXPECT_EQ(warned("gaudi3-128gb", "gaudi"), "");
  EXPECT_EQ(warned("max-1550-128gb", "transformers"), "");
  // What nobody here knows is not judged.
  EXPECT_TRUE(
      of({"llama-3.1-8b", "h100-64"}, {"stack=nxd", "stack.library=own"})->warnings.empty());
}

// What is stated and changes nothing is told, and only where it is stated and changes nothing.
TEST(Describe, SettingsWithoutEffectAreTold) {
  const auto warnings = [](const char* model, const char* set) {
    const Described d = of({model, "h100-64"}, {set});
    EXPECT_TRUE(d) << error(d);
    return d ? d->warnings.size() : 99;
  };
  for (const char* set : {"plan.expert_skew=3", "plan.expert_capacity=2", "plan.etp=4",
                          "plan.overlap_expert=true", "workload.lora_rank=8",
                          "cluster.node.numa_nodes=4"}) {
    EXPECT_EQ(warnings("llama-3.1-8b", set), 1u) << set;
  }
  EXPECT_EQ(warnings("mixtral-8x7b", "plan.expert_skew=3"), 0u);
  EXPECT_EQ(warnings("llama-3.1-8b", "plan.tp=4"), 0u);
  EXPECT_EQ(warnings("dlrm", "workload.seq=4096"), 1u);
  EXPECT_EQ(warnings("dlrm", "workload.global_batch=32768"), 0u);
}

TEST(Describe, SeveralNodesNeedAFabric) {
  for (const char* none : {"cluster.fabric.kind=none", "cluster.fabric=single-node"}) {
    const Described d = of({"llama-3.1-8b", "h100-128"}, {none});
    EXPECT_EQ(error(d), "cluster.fabric joins nothing, and 16 nodes need one that does") << none;
    EXPECT_TRUE(of({"llama-3.1-8b", "h100-8"}, {none}));
  }
  // What nobody stated is filled in: a catalog's single node, and more of it.
  EXPECT_TRUE(of({"llama-3.1-8b", "h100-8"}, {"cluster.nodes=4"}));
}

TEST(Describe, ZeroOfWhatAModelNeedsIsNotMissing) {
  const Described d = of({"llama-3.1-8b", "h100-64"}, {"workload.model.layers=0"});
  EXPECT_EQ(error(d), "workload.model.layers must be at least 1");
  const TemporaryYaml file(
      "workload:\n  model:\n    hidden: 64\n    layers: 0\n    heads: 4\n    ffn: 8\n");
  const Described missing = of({file.path(), "h100-64"});
  ASSERT_FALSE(missing);
  ASSERT_EQ(missing.error().size(), 2u);
  EXPECT_EQ(missing.error()[0].message, "workload.model.vocab is not stated");
  EXPECT_EQ(missing.error()[1].at.line, 4);
}

TEST(Describe, BlockScaledEightBitsNeedHardware) {
  for (const char* without : {"h100", "mi300x", "l40s", "tpu-v7"}) {
    const Described d = of({"llama-3.1-8b", without}, {"plan.precision=mxfp8"});
    EXPECT_NE(error(d).find("has no mxfp8"), std::string::npos) << without;
    EXPECT_EQ(help(d).find("mxfp8"), std::string::npos) << help(d);
  }
  for (const char* with : {"b200", "gb300", "rtx-5090", "mi355x"}) {
    const Described d = of({"llama-3.1-8b", with}, {"plan.precision=mxfp8"});
    EXPECT_TRUE(d) << error(d);
  }
}

// Where two keys contradict each other, the one stated last is at fault: a --set after a file, and
// never the name in the catalog that both start from.
TEST(Describe, AContradictionStandsAtTheKeyStatedLast) {
  const auto place = [](const Described& d) {
    EXPECT_FALSE(d);
    return d ? Position{} : d.error().front().at;
  };
  const std::string shape = "workload:\n  model:\n    layers: 4\n    ffn: 64\n    vocab: 9\n";
  const TemporaryYaml heads(shape + "    hidden: 1000\n    heads: 7\n");
  EXPECT_EQ(place(of({heads.path(), "h100-8"})).line, 7);
  EXPECT_EQ(place(of({heads.path(), "h100-8"})).column, 12);
  const TemporaryYaml groups(shape + "    heads: 24\n    hidden: 1536\n    kv_heads: 16\n");
  EXPECT_EQ(place(of({groups.path(), "h100-8"})).line, 8);
  EXPECT_FALSE(help(of({groups.path(), "h100-8"})).empty());
  EXPECT_EQ(place(of({groups.path(), "h100-8"}, {"workload.model.heads=25"})).file,
            "--set workload.model.heads=25");
  const TemporaryYaml mixer(shape + "    hidden: 64\n    heads: 4\n    mixer:\n      layers: 4\n" +
                            "      heads: 4\n      state: 8\n      head_dim: 0\n");
  EXPECT_EQ(place(of({mixer.path(), "h100-8"})).line, 12);
  for (const char* set : {"workload.model.hidden=4097", "workload.model.kv_heads=7",
                          "cluster.accelerator.tdp=1 W", "cluster.node.nics=0"}) {
    const Described d = of({"llama-3.1-8b", "h100-64"}, {set});
    EXPECT_EQ(place(d).file, std::string("--set ") + set);
    EXPECT_FALSE(help(d).empty()) << set;
  }
  const TemporaryYaml gpus("cluster:\n  base: h100-64\n  nodes: 4\n  gpus: 100\n");
  EXPECT_EQ(place(of({"llama-3.1-8b", gpus.path()})).line, 4);
}

// Zero stands for what nobody stated: whoever states it is told, not passed over.
TEST(Describe, AStatedZeroIsNotIgnored) {
  for (const char* zero : {"0", "$0/h", "$0.00/GPU-h"}) {
    const Described d = of({"llama-3.1-8b", "h100-64"}, {std::string("cluster.price=") + zero});
    EXPECT_EQ(error(d), "cluster.price must be more than zero") << zero;
    EXPECT_EQ(help(d), "leave it out for the accelerator's usual price");
  }
  const TemporaryYaml file("cluster:\n  base: h100-64\n  price: 0\n");
  EXPECT_EQ(error(of({"llama-3.1-8b", file.path()})), "cluster.price must be more than zero");
  EXPECT_EQ(error(of({"llama-3.1-8b", "h100-64"}, {"workload.tokens=0"})),
            "workload.tokens must be at least 1");
  EXPECT_EQ(error(of({"dlrm-dcnv2", "h100-64"}, {"workload.tokens=0"})),
            "workload.tokens must be at least 1");
}

TEST(Describe, AUnitThatIsMissingIsTheUsualOneOfTheKey) {
  const auto advice = [](const char* set) { return help(of({"llama-3.1-8b", "h100-64"}, {set})); };
  const auto site = [](const std::string& set) {
    Request request;
    request.inputs = {"llama-3.1-8b", "h100-64", "phoenix"};
    request.sets = {set};
    request.needs_site = request.needs_operations = true;
    return help(describe(request, catalog()));
  };
  EXPECT_NE(site("site.power.contracted=24").find("write `24 MW`"), std::string::npos);
  EXPECT_NE(advice("cluster.accelerator.tdp=700").find("write `700 W`"), std::string::npos);
  EXPECT_EQ(help(of({"llama-3.1-8b", "h100-64"}, {"cluster.nodez=4"})), "did you mean `nodes`?");
}

}  // namespace
}  // namespace assay

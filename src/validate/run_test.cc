#include "validate/run.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using TrainingRun = assay::Run;  // inside a test body, Run is a function of gtest

std::vector<TrainingRun> runs_of(const std::string& text) {
  return read_runs(parse_csv(text, "runs.csv"));
}

TEST(Runs, ColumnsInAnyOrderUnknownOnesIgnored) {
  const std::vector<TrainingRun> runs = runs_of("hidden,colour,id,layers\n4096,red,a,32\n");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].id, "a");
  EXPECT_EQ(runs[0].layers, 32);
  EXPECT_EQ(runs[0].hidden, 4096);
  EXPECT_FALSE(runs[0].heads);
  EXPECT_FALSE(runs[0].usable());
}

TEST(Runs, BlankIsNotStated) {
  const std::vector<TrainingRun> runs = runs_of("id,layers,hidden,gated_mlp\na,,N/A,\n");
  EXPECT_FALSE(runs[0].layers);
  EXPECT_FALSE(runs[0].hidden);
  EXPECT_FALSE(runs[0].gated_mlp);
  EXPECT_TRUE(runs[0].unreadable.empty());
}

TEST(Runs, NumbersThatCannotBe) {
  for (const char* bad : {"abc", "-3", "0", "1e30", "1e999", "2.5", "0x10", "8/2", "inf"}) {
    const std::vector<TrainingRun> runs = runs_of(std::string("id,layers\na,") + bad + "\n");
    EXPECT_FALSE(runs[0].layers) << bad;
    EXPECT_EQ(runs[0].unreadable.size(), 1u) << bad;
  }
  const std::vector<TrainingRun> runs = runs_of("id,step_time_norm_s,peak_mem_gb\na,-3,0\n");
  EXPECT_TRUE(runs[0].unreadable.empty());
  EXPECT_EQ(runs[0].ignored.size(), 2u);
  EXPECT_FALSE(runs[0].measured_s());
}

TEST(Runs, ARowWithoutIdIsNamedByItsLine) {
  const std::vector<TrainingRun> runs = runs_of("id,layers\n,1\n\"\",2\n");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].id, "line 2");
  EXPECT_EQ(runs[1].id, "line 3");
}

TEST(Runs, MeasuredTimeFromWhatIsStated) {
  const std::vector<TrainingRun> runs = runs_of(
      "id,step_time_norm_s,step_time_s,tokens_per_s_per_gpu,n_gpus,global_batch,seq_len\n"
      "a,2,3,,,,\nb,,3,,,,\nc,,,1000,8,16,2048\nd,,,1000,8,,2048\n");
  EXPECT_EQ(runs[0].measured_s(), 2);
  EXPECT_EQ(runs[1].measured_s(), 3);
  EXPECT_NEAR(runs[2].measured_s().value_or(0), 16 * 2048 / 8000.0, 1e-12);
  EXPECT_FALSE(runs[3].measured_s());
}

TEST(Runs, UsableIsTheScorersRule) {
  const std::string head =
      "id,quality,check,n_gpus,seq_len,layers,hidden,micro_batch,global_batch,step_time_norm_s\n";
  EXPECT_TRUE(runs_of(head + "a,A,ok,8,1,1,1,1,8,1\n")[0].usable());
  EXPECT_TRUE(runs_of(head + "a,B,single_metric,8,1,1,1,1,8,1\n")[0].usable());
  EXPECT_FALSE(runs_of(head + "a,C,ok,8,1,1,1,1,8,1\n")[0].usable());
  EXPECT_FALSE(runs_of(head + "a,A,loose,8,1,1,1,1,8,1\n")[0].usable());
  EXPECT_FALSE(runs_of(head + "a,A,ok,8,1,1,1,,8,1\n")[0].usable());
}

TEST(Runs, ChunksInWords) {
  const std::vector<TrainingRun> runs = runs_of("id,vpp\na,interleaved (degree not stated)\nb,4\n");
  EXPECT_FALSE(runs[0].vpp);
  EXPECT_TRUE(runs[0].unreadable.empty());
  EXPECT_EQ(runs[1].vpp, 4);
}

TEST(Run, NumbersAndWhatStandsBehindThem) {
  const auto one = [](const char* column, const char* cell) {
    const auto table = parse_csv(std::string(column) + ",gpu\n\"" + cell + "\",H100\n", "t.csv");
    return read_runs(table).front();
  };
  EXPECT_EQ(one("moe_experts", "8 experts").experts, 8);
  EXPECT_EQ(one("micro_batch", "2 per GPU").micro_batch, 2);
  EXPECT_EQ(one("global_batch", "1 024").global_batch, 1024);
  EXPECT_EQ(one("seq_len", "2048 tokens").seq, 2048);
  EXPECT_EQ(one("n_gpus", "64 x H100").accelerators, 64);
  EXPECT_EQ(one("params_b", "671B total, 37B active").params_b, 671);
  for (const char* cell : {"8k", "8x8", "8 \xc3\x97 8", "64%", "4M tokens"}) {
    EXPECT_FALSE(one("global_batch", cell).unreadable.empty()) << cell;
  }
  EXPECT_TRUE(one("moe_experts", "none").unreadable.empty());
  EXPECT_EQ(one("step_time_s", "850 ms").step_time_s, std::nullopt);
  EXPECT_EQ(one("tokens_per_s_per_gpu", "88000 tokens/s total").tokens_per_s_per_gpu, std::nullopt);
}

// Times that cannot be are told with a fix, under the column that the table has.
TEST(Runs, TimesThatCannotBe) {
  for (const char* bad : {"3200 ms", "\"3,2\"", "-3.2", "nan", "0", "fast"}) {
    const TrainingRun run = runs_of(std::string("id,Step_Time_S\na,") + bad + "\n")[0];
    EXPECT_FALSE(run.measured_s()) << bad;
    ASSERT_EQ(run.ignored.size(), 1u) << bad;
    EXPECT_EQ(run.ignored[0].column, "step_time_s");
    EXPECT_NE(run.ignored[0].fix.find("0.85 for 850 ms"), std::string::npos);
    EXPECT_EQ(run.time_column, "step_time_s");
  }
  EXPECT_TRUE(runs_of("id,step_time_s\na,\nb,n/a\n")[0].ignored.empty());
  EXPECT_TRUE(runs_of("id,step_time_norm_s,step_time_s\na,2,nan\n")[0].ignored.empty());
  EXPECT_EQ(runs_of("id,step_time_norm_s,step_time_s\na,,2\n")[0].time_column, "step_time_norm_s");
  EXPECT_EQ(runs_of("id,tokens_per_s_per_gpu\na,\n")[0].time_column, "tokens_per_s_per_gpu");
  EXPECT_EQ(runs_of("id\na\n")[0].time_column, "step_time_s");
}

// A sequence of `8k` is a power of two, and told; no other count is.
TEST(Runs, SequencesInThousands) {
  const auto read = [](const std::string& seq, const std::string& batch) {
    return read_runs(parse_csv("seq_len,global_batch\n" + seq + "," + batch + "\n", "x.csv"))[0];
  };
  EXPECT_EQ(read("8k", "64").seq, 8192);
  EXPECT_EQ(read("128K tokens", "64").seq, 131072);
  EXPECT_EQ(read("8k", "64").taken.size(), 1U);
  EXPECT_EQ(read("8192", "64").taken.size(), 0U);
  EXPECT_EQ(read("8k-16k", "64").seq, std::nullopt);
  EXPECT_EQ(read("8192", "1k").global_batch, std::nullopt);
}

// What a batch in tokens comes to in sequences of 4,096; 64 accelerators.
TEST(Runs, BatchesInTokens) {
  const auto read = [](const std::string& batch) {
    return read_runs(
        parse_csv("seq_len,n_gpus,global_batch\n4096,64,\"" + batch + "\"\n", "x.csv"))[0];
  };
  EXPECT_EQ(read("4M tokens").global_batch, 1024);
  EXPECT_EQ(read("1.05e6 tok").global_batch, 256);
  EXPECT_EQ(read("1 Mtok").global_batch, 256);
  EXPECT_EQ(read("1 MiTok").global_batch, 256);
  EXPECT_EQ(read("512k tok").global_batch, 128);
  EXPECT_EQ(read("64k tokens per GPU").global_batch, 1024);
  EXPECT_EQ(read("16k tokens/gpu").global_batch, 256);
  EXPECT_EQ(read("512 ktok/gpu").global_batch, 8192);
  for (const char* share : {"64k tokens per node", "64k tokens/replica", "2M tokens per worker"})
    EXPECT_EQ(read(share).unreadable.size(), 1U) << share;
  EXPECT_EQ(read("32 per node").global_batch, std::nullopt);
  EXPECT_EQ(read("32 per node").unreadable.size(), 1U);
}

TEST(Runs, PeaksInTheUnitOfTheirCell) {
  const auto read = [](const std::string& peak) {
    return runs_of("id,peak_mem_gb\na," + peak + "\n")[0];
  };
  EXPECT_FALSE(read("22").peak_in_gib);
  EXPECT_FALSE(read("22 GB").peak_in_gib);
  EXPECT_TRUE(read("22GiB").peak_in_gib);
  EXPECT_EQ(read("22GiB").peak_mem_gb, 22);
  EXPECT_EQ(read("61440 MiB").peak_mem_gb, 60);
}

TEST(Runs, ATimeThatIsAFailureForMemory) {
  const TrainingRun run = runs_of("id,step_time_s\na,OOM\n")[0];
  EXPECT_TRUE(run.ran_out_of_memory());
  EXPECT_TRUE(run.ignored.empty());
  for (const char* time : {"3.2", "5.0 (OOM with micro-batch 2)", "8.1 (no OOM)"}) {
    const TrainingRun timed = runs_of(std::string("id,step_time_s\na,") + time + "\n")[0];
    EXPECT_FALSE(timed.ran_out_of_memory()) << time;
    EXPECT_TRUE(timed.measured_s()) << time;
  }
}

// Columns of shapes that no row fills are as good as none: models are known by their names.
TEST(Runs, EmptyColumnsOfShapes) {
  const std::string head = "id,model_name,n_gpus,seq_len,micro_batch,global_batch,step_time_s";
  EXPECT_TRUE(runs_of(head + ",layers,hidden\na,Llama-2-7B,8,4096,1,8,2,,\n")[0].usable());
  EXPECT_FALSE(runs_of(head + ",layers,hidden\na,Llama-2-7B,8,4096,1,8,2,,\n"
                              "b,Llama-2-7B,8,4096,1,8,2,32,4096\n")[0]
                   .usable());
}

}  // namespace
}  // namespace assay

#include "validate/numbers.h"

#include <gtest/gtest.h>

#include "validate/run.h"

namespace assay {
namespace {

using TrainingRun = assay::Run;  // inside a test body, Run is a function of gtest

TrainingRun run_of(const std::string& header, const std::string& cells) {
  return read_runs(parse_csv(header + "\n" + cells + "\n", "x.csv")).front();
}

TEST(Numbers, CountsAndWhatStandsBesideThem) {
  struct Row {
    const char *column, *cell;
    std::optional<int64_t> TrainingRun::*to;
    std::optional<int64_t> value;
  };
  const std::optional<int64_t> none;
  const Row rows[] = {
      {"parallel_tp", "none", &TrainingRun::tp, 1},
      {"parallel_tp", "TP2", &TrainingRun::tp, 2},
      {"pp", "PP=2", &TrainingRun::pp, 2},
      {"pp", "off", &TrainingRun::pp, 1},
      {"pp", "0", &TrainingRun::pp, 1},
      {"cp", "no", &TrainingRun::cp, 1},
      {"ep", "none", &TrainingRun::ep, 1},
      {"dp", "none", &TrainingRun::dp, none},
      {"layers", "32L", &TrainingRun::layers, 32},
      {"hidden", "8'192", &TrainingRun::hidden, 8192},
      {"hidden",
       "8\xc2\xa0"
       "192",
       &TrainingRun::hidden, 8192},
      {"seq_len", "8k (packed)", &TrainingRun::seq, 8192},
      {"seq_len", "~8k", &TrainingRun::seq, 8192},
      {"seq_len", "8.0k", &TrainingRun::seq, 8192},
      {"seq_len", "1M", &TrainingRun::seq, 1 << 20},
      {"seq_len", "8.2k", &TrainingRun::seq, none},
      {"n_gpus", "4 nodes", &TrainingRun::accelerators, 32},
      {"n_gpus", "1 node", &TrainingRun::accelerators, 8},
      {"n_gpus", "4x8", &TrainingRun::accelerators, 32},
      {"n_gpus", "4 \xc3\x97 8", &TrainingRun::accelerators, 32},
      {"n_gpus", "2 nodes x 16 GPUs", &TrainingRun::accelerators, 32},
      {"n_gpus", "4 x 8xH100", &TrainingRun::accelerators, 32},
      {"n_gpus", "4 nodes (32 GPUs)", &TrainingRun::accelerators, 32},
      {"n_gpus", "4 nodes of 4 GPUs", &TrainingRun::accelerators, 16},
      {"n_gpus", "64 x H100", &TrainingRun::accelerators, 64},
      {"n_gpus", "64 GPUs", &TrainingRun::accelerators, 64},
  };
  for (const Row& row : rows) {
    const TrainingRun run =
        run_of(std::string("gpus_per_node,") + row.column, std::string("8,") + row.cell);
    EXPECT_EQ(run.*row.to, row.value) << row.column << " " << row.cell;
  }
  EXPECT_FALSE(run_of("n_gpus", "4 nodes").accelerators) << "of how many nobody says";
  for (const char* cell : {"none", "not reported", "n/a", "varies", "unspecified", "tbd", "-"}) {
    const TrainingRun run = run_of("global_batch,x", std::string(cell) + ",");
    EXPECT_FALSE(run.global_batch) << cell;
    EXPECT_TRUE(run.unreadable.empty()) << cell;
  }
}

TEST(Numbers, BatchesInTokens) {
  const std::string head = "n_gpus,seq_len,micro_batch,grad_accum,global_batch";
  EXPECT_EQ(run_of(head, "32,8192,2,4,2097152").global_batch, 256);
  EXPECT_EQ(run_of(head, "32,8192,2,4,256").global_batch, 256);
  EXPECT_EQ(run_of(head, "32,8192,2,4,2M tokens").global_batch, 256);
  EXPECT_EQ(run_of(head, "32,1000,1,1,2M tokens").global_batch, 2000);
  EXPECT_EQ(run_of(head, "32,8192,2,,4194304").global_batch, 512) << "more than anybody's";
  EXPECT_EQ(run_of(head, "32,512,8192,,65536").global_batch, 65536) << "BERT's";
  EXPECT_FALSE(run_of(head, "32,,2,4,2M tokens").unreadable.empty());
}

TEST(Numbers, BatchesFromElsewhere) {
  const std::string head = "n_gpus,seq_len,step_time_s,tokens_per_s_per_gpu,notes";
  EXPECT_EQ(run_of(head, "16,4096,4,4096,").global_batch, 64);
  EXPECT_FALSE(run_of(head, "16,4096,4,4096,").usable());
  EXPECT_EQ(run_of(head, "16,4096,4,,global batch size 128").global_batch, 128);
  EXPECT_EQ(run_of(head, "16,4096,4,,gradient accumulation 4").grad_accum, 4);
  EXPECT_FALSE(run_of(head, "16,4096,4,,global batch not stated").global_batch);
}

TEST(Numbers, MeasuredFiguresOfAnotherUnit) {
  EXPECT_FALSE(run_of("step_time_s", "0.25 it/s").step_time_s);
  EXPECT_FALSE(run_of("step_time_s", "4000 (ms)").step_time_s);
  EXPECT_FALSE(run_of("tokens_per_s_per_gpu", "65536 total").tokens_per_s_per_gpu);
  EXPECT_EQ(run_of("step_time_s", "2.5 s/it").step_time_s, 2.5);
  EXPECT_EQ(run_of("step_time_s", "2.5 (median)").step_time_s, 2.5);
}

TEST(Numbers, SwitchesWithAnAside) {
  const auto gated = [](const char* cell) { return run_of("gated_mlp,x", cell).gated_mlp; };
  for (const char* cell : {"yes (SwiGLU)", "SiLU gated", "SwiGLU", "1", "1.0", "GeGLU, tanh"}) {
    EXPECT_EQ(gated(cell), true) << cell;
  }
  for (const char* cell : {"no (GeLU)", "gelu (tanh)", "squared relu", "not gated", "0"}) {
    EXPECT_EQ(gated(cell), false) << cell;
  }
  EXPECT_EQ(gated("unknown"), std::nullopt);
  EXPECT_EQ(run_of("tied_embed,x", "no (untied)").tied_embeddings, false);
  EXPECT_EQ(run_of("tied_embed,x", "tied input and output").tied_embeddings, true);
}

}  // namespace
}  // namespace assay

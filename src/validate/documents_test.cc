#include "validate/documents.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "validate/scenario_case.h"

namespace assay {
namespace {

TEST(Documents, AsPeopleWriteThem) {
  EXPECT_EQ(read_packed("inputs packed to 4096").packed, true);
  EXPECT_EQ(read_packed("samples are not packed").packed, false);
  EXPECT_EQ(read_packed("no sequence packing").packed, false);
  EXPECT_EQ(read_packed("mock data").packed, std::nullopt);
  EXPECT_TRUE(read_packed("documents packed (THD)").apart);
  EXPECT_TRUE(read_packed("packed, so attention does not cross documents").apart);
  EXPECT_TRUE(read_packed("samples packed (attention inside each sample only)").apart);
  EXPECT_FALSE(read_packed("Alpaca packed to the full length").apart);
  EXPECT_EQ(read_packed("Alpaca packed to the full length").tokens, 150);
  EXPECT_EQ(read_packed("packed SQuAD").tokens, 200);
  EXPECT_EQ(read_packed("short source sequences (21.6 per pack)").documents, 21.6);
  EXPECT_EQ(read_packed("Packed rows (2.4 sequences per 128K row)").documents, 2.4);
}

TEST(Documents, HowLong) {
  PackedCell cell;
  EXPECT_EQ(packed_document(cell, 4096, 0), 0);
  EXPECT_EQ(packed_document(cell, 4096, 200), 200);  // as the framework's guide has it
  cell.packed = true;
  EXPECT_EQ(packed_document(cell, 4096, 0), 0);  // attention may well cross them
  cell.apart = true;
  EXPECT_EQ(packed_document(cell, 4096, 0), 500);
  EXPECT_EQ(packed_document(cell, 256, 0), 0);  // none is shorter than the sequence
  cell.documents = 8;
  EXPECT_EQ(packed_document(cell, 4096, 0), 768);
  cell.packed = false;
  EXPECT_EQ(packed_document(cell, 4096, 200), 0);
}

// NVIDIA's tables of fine-tuning are on packed SQuAD; MLPerf's on whole documents; pretraining and
// Megatron-LM by hand say nothing of the kind.
TEST(Documents, ByFrameworkAndTask) {
  TrainingRun r = base();
  EXPECT_EQ(mapped(r).setting.workload.document, 0);
  r.task = "sft";
  EXPECT_EQ(mapped(r).setting.workload.document, 200);
  const std::vector<std::string> assumed = mapped(r).assumed;
  EXPECT_EQ(std::ranges::count(assumed, "packed documents of 200 tokens"), 1);
  r.date = "MLPerf v5.0";
  EXPECT_EQ(mapped(r).setting.workload.document, 0);
  r.date = "2024-08";
  r.framework = "Megatron-LM";
  EXPECT_EQ(mapped(r).setting.workload.document, 0);
  r.notes = "packed samples, attention inside each sample only";
  EXPECT_EQ(mapped(r).setting.workload.document, 500);
}

}  // namespace
}  // namespace assay

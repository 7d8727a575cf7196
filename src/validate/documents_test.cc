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

// None of these says that attention keeps to documents, or how many there are.
TEST(Documents, Denials) {
  for (const char* text : {"no sample packing", "unpacked", "packed_sequence=False",
                           "packed sequences disabled", "padded to max length",
                           "one document per sequence", "attention crosses document boundaries"}) {
    EXPECT_EQ(read_packed(text).packed, false) << text;
  }
  for (const char* text : {"no document mask", "without intra-document masking",
                           "no per-document mask", "packed without a document mask"}) {
    EXPECT_FALSE(read_packed(text).apart) << text;
  }
  for (const char* text :
       {"128 sequences per step", "4 sequences per GPU", "5 sequences per second", "1e300 per pack",
        "-5 per pack", "x5 per pack"}) {
    EXPECT_EQ(read_packed(text).documents, 0) << text;
  }
  EXPECT_EQ(read_packed("1,200 per pack").documents, 1200);
  EXPECT_EQ(read_packed("about six documents to a 32,768-token pack").documents, 6);
  EXPECT_EQ(read_packed("documents to a person").documents, 0);
  EXPECT_TRUE(read_packed("block-diagonal attention").apart);
  EXPECT_TRUE(read_packed("no cross-document attention").apart);
  EXPECT_EQ(read_packed("documents of 1200 tokens").tokens, 1200);
}

TEST(Documents, HowLong) {
  PackedCell cell;
  EXPECT_EQ(packed_document(cell, 4096, true, 0), 0);
  EXPECT_EQ(packed_document(cell, 4096, true, 200), 200);  // as the framework's guide has it
  cell.packed = true;
  EXPECT_EQ(packed_document(cell, 4096, true, 0), 0);  // attention may well cross them
  cell.apart = true;
  EXPECT_EQ(packed_document(cell, 4096, true, 0), 500);
  EXPECT_EQ(packed_document(cell, 4096, false, 0), 2000);
  EXPECT_EQ(packed_document(cell, 256, true, 0), 0);  // none is shorter than the sequence
  cell.documents = 8;
  EXPECT_EQ(packed_document(cell, 4096, true, 0), 768);
  cell.packed = false;
  EXPECT_EQ(packed_document(cell, 4096, true, 200), 0);
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

TEST(Documents, SequencesThatRanksDoNotDivideArePadded) {
  EXPECT_EQ(shared_sequence(65537, 2), 65538);
  EXPECT_EQ(shared_sequence(65536, 8), 65536);
  EXPECT_EQ(shared_sequence(65537, 1), 65537);
  EXPECT_EQ(shared_sequence(4, 8), 4);
}

}  // namespace
}  // namespace assay

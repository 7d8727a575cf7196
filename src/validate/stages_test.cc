#include "validate/stages.h"

#include <gtest/gtest.h>

#include "validate/scenario_case.h"

namespace assay {
namespace {

TEST(Stages, AsPeopleWriteThem) {
  const auto ends = [](const char* text, int64_t layers, int64_t pp) {
    const std::optional<StageEnds> e = read_stage_ends(text, layers, pp);
    return e ? std::pair{e->first, e->last} : std::pair<int64_t, int64_t>{-1, -1};
  };
  using Ends = std::pair<int64_t, int64_t>;
  EXPECT_EQ(ends("layers/stage [11, 13]", 24, 2), Ends(11, 13));
  EXPECT_EQ(ends("layers/stage [5, 7, 7, 7]", 24, 4), Ends(4, 6));  // embedding and head counted
  EXPECT_EQ(ends("layers per stage: [5, 7, 7, 5]", 24, 4), Ends(5, 5));
  EXPECT_EQ(ends("11 layers on the last stage", 24, 2), Ends(0, 11));
  EXPECT_EQ(ends("layers/stage [5, 7, 7, 7]", 24, 2), Ends(-1, -1));  // another pipeline
  EXPECT_EQ(ends("layers/stage [5, 7, 7, 9]", 24, 4), Ends(-1, -1));  // other layers
  EXPECT_EQ(ends("layers/stage [1, 8, 8, 9]", 24, 4), Ends(-1, -1));  // the first holds none
  EXPECT_EQ(ends("layers/stage [x, 7]", 24, 2), Ends(-1, -1));
  EXPECT_EQ(ends("layers/stage [1e30, 7]", 24, 2), Ends(-1, -1));
  EXPECT_EQ(ends("layers/stage [26]", 24, 1), Ends(-1, -1));
  EXPECT_EQ(ends("99 layers on the last stage", 24, 2), Ends(-1, -1));
  EXPECT_EQ(ends("nothing of the kind", 24, 2), Ends(-1, -1));
  EXPECT_EQ(ends("Layers/stage [11, 13]", 24, 2), Ends(11, 13));
  EXPECT_EQ(ends("the last stage has 7 layers", 24, 4), Ends(0, 7));
  EXPECT_EQ(ends("--decoder-last-pipeline-num-layers 5", 24, 4), Ends(0, 5));
  EXPECT_EQ(ends("recompute 2 layers on the last stage", 24, 4), Ends(-1, -1));
  EXPECT_EQ(ends("offload 3 layers in the first stage", 24, 4), Ends(-1, -1));
  EXPECT_EQ(ends("22 layers on the last stage", 24, 4), Ends(-1, -1));  // none for one of three
  EXPECT_EQ(ends("9e18 layers on the first stage; 9e18 layers on the last stage", 24, 4),
            Ends(-1, -1));
  EXPECT_EQ(ends("10 layers on the first stage; 10 layers on the last stage", 24, 2), Ends(-1, -1));
}

TEST(Stages, ReachThePlan) {
  TrainingRun r = base();
  r.pp = 4;
  r.vpp = 1;
  r.notes = "layers/stage [6, 9, 9, 8]";
  EXPECT_EQ(mapped(r).plan.first_layers, 6);
  EXPECT_EQ(mapped(r).plan.last_layers, 8);
}

// A head of 131,072 words is worth four layers of 2,048 columns.
TEST(Stages, CutByTheWorkOfLayersAndHead) {
  Model m;
  m.layers = 16, m.hidden = 2048, m.ffn = 8192, m.vocab = 131072;
  const StageEnds two = balanced_ends(m, 2);
  EXPECT_EQ(two.first, 11);
  EXPECT_EQ(two.last, 5);
  const StageEnds four = balanced_ends(m, 4);
  EXPECT_EQ(four.first, 6);
  EXPECT_EQ(four.last, 1);
  m.vocab = 1;
  EXPECT_EQ(balanced_ends(m, 2).first, 9);
  EXPECT_EQ(balanced_ends(m, 16).last, 1);
}

}  // namespace
}  // namespace assay

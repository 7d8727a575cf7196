// Every story has its symptom with its cause, and loses it when the cause alone is removed.
#include <gtest/gtest.h>

#include "../examples/stories/story.h"

namespace assay {
namespace {

class Stories : public testing::TestWithParam<NamedStory> {};

TEST_P(Stories, TheSymptomComesAndGoesWithItsCause) {
  const Story s = GetParam().tell(std::string(ASSAY_ROOT) + "/examples/stories");
  EXPECT_TRUE(s.symptom) << story_text(s);
  EXPECT_FALSE(s.without_cause) << story_text(s);
  EXPECT_FALSE(s.verdict.empty());
  EXPECT_FALSE(s.cause.empty());
  EXPECT_FALSE(s.fix.empty());
  for (const StoryInput& i : s.inputs) {
    EXPECT_NE(i.survives.substr(0, 4), "none") << i.name;
    // What is assumed or fitted says how far it may be wrong.
    EXPECT_TRUE(i.mark == 'm' || i.mark == 's' || !i.survives.empty()) << i.name;
  }
  std::printf("%s", story_text(s).c_str());
}

INSTANTIATE_TEST_SUITE_P(All, Stories, testing::ValuesIn(stories()),
                         [](const testing::TestParamInfo<NamedStory>& i) { return i.param.name; });

}  // namespace
}  // namespace assay

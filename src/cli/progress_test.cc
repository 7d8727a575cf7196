#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

TEST(Progress, ATerminalSeesWhatIsLeft) {
  ProgressText p("simulate", true);
  EXPECT_EQ(p.at(0.2, Seconds(0.4)), "");  // too early
  EXPECT_EQ(p.at(0.9, Seconds(0.6)), "");  // done within a second
  EXPECT_EQ(p.end(), "");
  EXPECT_EQ(p.at(0.25, Seconds(10)),
            "\rsimulate [########                      ] 25 %, about 30 s left\x1b[K");
  EXPECT_EQ(p.at(0.25, Seconds(10.05)), "");  // ten times a second
  EXPECT_EQ(p.at(0.005, Seconds(11)).find("left"), std::string::npos);
  EXPECT_NE(p.at(0.1, Seconds(60)).find("about 9 min left"), std::string::npos);
  EXPECT_NE(p.at(0.5, Seconds(3 * 3600.0)).find("about 3 h left"), std::string::npos);
  EXPECT_EQ(p.at(1, Seconds(7 * 3600.0)), "");
  EXPECT_EQ(p.end(), "\r\x1b[K");
}

TEST(Progress, ALogGetsALineForEachTenth) {
  ProgressText p("plan", false);
  std::string log;
  for (int i = 0; i <= 1000; ++i) log += p.at(i / 1000.0, Seconds(i * 0.1));
  EXPECT_EQ(log.substr(0, log.find('\n')), "assay plan: 10 %, about 90 s left");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 9);
  EXPECT_EQ(p.end(), "");
  // Nothing of what is done within ten seconds.
  ProgressText quick("plan", false);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(quick.at(i / 100.0, Seconds(i * 0.09)), "");
}

}  // namespace
}  // namespace assay

#include "diagnose/diagnose.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

class DiagnoseFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / "diagnose_files";
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const char* name, const std::string& text) {
    const std::string path = (root_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  // A query log of one GPU, a sample a second. Without `load` it has no column of utilisation.
  std::string log(const char* name, int samples, int busy_percent, bool load = true) {
    std::string text = fmt::format("timestamp, index, name, {}power.draw [W], clocks.sm [MHz]\n",
                                   load ? "utilization.gpu [%], " : "");
    for (int i = 0; i < samples; ++i) {
      text +=
          fmt::format("2026/03/01 00:{:02}:{:02}.000, 0, NVIDIA H100 80GB HBM3, {}75 W, 345 MHz\n",
                      i / 60, i % 60, load ? fmt::format("{} %, ", busy_percent) : "");
    }
    return write(name, text);
  }

  fs::path root_;
};

Diagnosis diagnosis_of(const std::vector<std::string>& files) { return diagnose(files, {}); }

// A device that did nothing is no proof of health, nor of a fault.
TEST_F(DiagnoseFiles, IdleDevicesAreAsked) {
  const Diagnosis d = diagnosis_of({log("idle.csv", 600, 3)});
  EXPECT_TRUE(d.findings.empty()) << d.findings[0].title;
  ASSERT_EQ(d.open.size(), 1u);
  EXPECT_NE(d.open[0].text.find("GPU idles 97 %"), std::string::npos) << d.open[0].text;
  EXPECT_TRUE(lacking(d).empty());
  const Diagnosis some = diagnosis_of({log("some.csv", 600, 80)});
  ASSERT_EQ(some.findings.size(), 1u);
  EXPECT_EQ(some.findings[0].cause, Cause::kHealthy);
  EXPECT_EQ(some.findings[0].confidence, Confidence::kMedium);
  EXPECT_NE(some.findings[0].title.find("busy"), std::string::npos) << some.findings[0].title;
  const Diagnosis busy = diagnosis_of({log("busy.csv", 600, 98)});
  ASSERT_EQ(busy.findings.size(), 1u);
  EXPECT_EQ(busy.findings[0].confidence, Confidence::kHigh);
}

TEST_F(DiagnoseFiles, AMomentIsNoProofOfHealth) {
  const Diagnosis d = diagnosis_of({log("one.csv", 1, 98)});
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_EQ(d.findings[0].cause, Cause::kHealthy);
  EXPECT_EQ(d.findings[0].confidence, Confidence::kMedium);
  EXPECT_NE(d.findings[0].title.find("none of these files says"), std::string::npos);
}

// What no column tells is neither idle nor busy.
TEST_F(DiagnoseFiles, UnknownLoadIsNotIdleTime) {
  const Diagnosis d = diagnosis_of({log("unknown.csv", 600, 0, false)});
  EXPECT_TRUE(d.periods.empty());
  ASSERT_EQ(d.open.size(), 1u);
  EXPECT_NE(d.open[0].needed.find("utilization.gpu"), std::string::npos);
}

TEST_F(DiagnoseFiles, WhatIsMissingIsSaid) {
  const std::string trace = write("t.json", R"({"schemaVersion":1,"traceEvents":[]})");
  const std::string sacct = write("sacct.txt", "JobID|State|Elapsed|Start|End|AllocTRES\n");
  const Diagnostics lacks = lacking(diagnosis_of({trace, trace, sacct}));
  ASSERT_EQ(lacks.size(), 2u);
  EXPECT_NE(lacks[0].message.find("no device events"), std::string::npos);
  EXPECT_NE(lacks[1].message.find("no job"), std::string::npos);
  for (const Diagnostic& d : lacks) EXPECT_FALSE(d.help.empty() || d.at.file.empty());
  EXPECT_TRUE(lacking(diagnosis_of({trace, log("busy.csv", 600, 98)})).empty());
}

}  // namespace
}  // namespace assay

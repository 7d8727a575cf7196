#include "diagnose/collect_slurm.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kHeader = "JobID|User|JobName|State|Start|End|AllocTRES|NNodes|NodeList\n";

TEST(CollectSlurm, OnePeriodOfSeveralFiles) {
  SlurmReading slurm;
  Diagnosis d;
  FileRead jobs, nodes;
  collect_slurm(FileKind::kSacct,
                std::string(kHeader) +
                    "1|ann|a|COMPLETED|2024-01-01T00:00:00|2024-01-02T00:00:00|gres/gpu=8|1|n1\n"
                    "2|bob|b|FAILED|2024-01-01T00:00:00|2024-01-01T12:00:00|gres/gpu=8|1|n2\n"
                    "broken\n",
                "sacct.txt", slurm, jobs, d.problems);
  collect_slurm(FileKind::kScontrol,
                "NodeName=n1 Gres=gpu:8 State=IDLE\nNodeName=n2 Gres=gpu:8 State=IDLE\n",
                "nodes.txt", slurm, nodes, d.problems);
  EXPECT_EQ(jobs.summary, "2 jobs");
  EXPECT_EQ(nodes.summary, "2 nodes");
  EXPECT_TRUE(jobs.used && nodes.used);
  EXPECT_EQ(d.problems.size(), 1u);
  analyse_slurm(slurm, d);
  ASSERT_EQ(d.periods.size(), 1u);
  const MeasuredPeriod& period = d.periods[0];
  EXPECT_DOUBLE_EQ(period.paid.v, 16 * kSecondsPerDay);
  double sum = 0;
  for (const MeasuredPeriod::Line& line : period.lines) sum += line.time.v;
  EXPECT_DOUBLE_EQ(sum, period.paid.v);
  ASSERT_EQ(period.losses.size(), 3u);  // a header, the failed job, the idle node
  EXPECT_EQ(period.losses[1][3], "bob: b (1 job)");
  // A quarter was lost and accounting does not know why.
  EXPECT_EQ(d.open.size(), 1u);
  EXPECT_TRUE(d.findings.empty());
}

TEST(CollectSlurm, NodesAloneMakeNoLedger) {
  SlurmReading slurm;
  Diagnosis d;
  FileRead file;
  collect_slurm(FileKind::kScontrol, "NodeName=n1 Gres=gpu:8 State=IDLE\n", "n.txt", slurm, file,
                d.problems);
  analyse_slurm(slurm, d);
  EXPECT_TRUE(d.periods.empty());
  EXPECT_EQ(d.notes.size(), 1u);
}

}  // namespace
}  // namespace assay

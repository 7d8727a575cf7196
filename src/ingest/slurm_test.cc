#include "ingest/slurm.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "ingest/text_file.h"

namespace assay {
namespace {

SlurmReading sacct(const std::string& text) {
  SlurmReading out;
  read_sacct(text, "sacct.txt", out);
  return out;
}

TEST(Slurm, Values) {
  EXPECT_EQ(parse_job_state("CANCELLED by 1185300516"), JobState::kCancelled);
  EXPECT_EQ(parse_job_state("CANCELLED+"), JobState::kCancelled);
  EXPECT_EQ(parse_job_state("OUT_OF_ME+"), JobState::kOutOfMemory);
  EXPECT_EQ(parse_job_state("PD"), JobState::kPending);
  EXPECT_EQ(parse_job_state("x"), JobState::kUnknown);
  EXPECT_EQ(parse_slurm_duration("1-02:03:04"), 86400 + 7384);
  EXPECT_EQ(parse_slurm_duration("14-00"), 14 * 86400);
  EXPECT_EQ(parse_slurm_duration("00:23.779"), 23);
  EXPECT_EQ(parse_slurm_duration("30"), 1800);
  for (const char* text : {"UNLIMITED", "", "Unknown", "x", "1:2:3:4", "99999999999-00:00:00"}) {
    EXPECT_FALSE(parse_slurm_duration(text)) << text;
  }
  EXPECT_EQ(parse_slurm_time("1970-01-02T00:00:01"), 86401);
  EXPECT_EQ(parse_slurm_time("1673830571"), 1673830571);
  for (const char* text :
       {"Unknown", "None", "N/A", "", "2023-13-45T00:00:00", "999999999999999"}) {
    EXPECT_FALSE(parse_slurm_time(text)) << text;
  }
  EXPECT_EQ(tres_gpus("billing=97,cpu=1,gres/gpu=8,mem=64G,node=1"), 8);
  EXPECT_EQ(tres_gpus("gres/gpu:h100=8,gres/gpu=8"), 8);
  EXPECT_EQ(tres_gpus("gres/gpu:a100=4,gres/gpu:h100=2"), 6);
  EXPECT_EQ(tres_gpus("cpu=4,gres/gpu=-3,gres/gpumem=80G"), 0);
  EXPECT_EQ(tres_nodes("cpu=4,node=32"), 32);
  EXPECT_EQ(gres_gpus("gpu:ampere:8(S:0-1)"), 8);
  EXPECT_EQ(gres_gpus("gpu:h100:3(IDX:0,2-3),gpu:2,mps:100"), 5);
  EXPECT_EQ(gres_gpus("PER_NODE:gpu:8"), 8);
  EXPECT_EQ(gres_gpus("gres/gpu:1"), 1);
  EXPECT_EQ(gres_gpus("(null)"), 0);
}

// What sacct prints when nobody asked for -P.
TEST(Slurm, TablesOfFixedWidth) {
  const SlurmReading r = sacct(
      "JobID          JobName      State               Start                 End        AllocTRES "
      "  NodeList\n"
      "------------ --------- ---------- ------------------- ------------------- ---------------- "
      "----------\n"
      "7                train  COMPLETED 2024-01-01T00:00:00 2024-01-01T01:00:00 cpu=8,gres/gpu=8 "
      "        n1\n"
      "7.batch          batch  COMPLETED 2024-01-01T00:00:00 2024-01-01T01:00:00            cpu=8 "
      "        n1\n"
      "8             my | job OUT_OF_ME+ 2024-01-01T00:00:00 2024-01-01T02:00:00 cpu=8,gres/gpu=4 "
      "n[101-109+\n"
      "9                short CANCELLED+             Unknown\n");
  ASSERT_EQ(r.jobs.size(), 3u);
  EXPECT_EQ(r.steps, 1u);
  EXPECT_EQ(r.jobs[0].gpus, 8);
  EXPECT_EQ(r.jobs[0].node_list, "n1");
  EXPECT_EQ(*r.jobs[0].end_s - *r.jobs[0].start_s, 3600);
  EXPECT_EQ(r.jobs[1].name, "my | job");
  EXPECT_EQ(r.jobs[1].state, JobState::kOutOfMemory);
  EXPECT_EQ(r.jobs[1].node_list, "");  // half a list would name the wrong nodes
  EXPECT_FALSE(r.jobs[2].start_s);
  ASSERT_EQ(r.problems.size(), 1u);
  EXPECT_EQ(r.problems[0].at.line, 5);
  EXPECT_NE(r.problems[0].message.find("cut to the width"), std::string::npos);
}

// sacct -n -P: no names at all.
TEST(Slurm, ColumnsWithoutNames) {
  const SlurmReading r = sacct(
      "7|a|COMPLETED|0:0|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|cpu=8,gres/gpu=8,node=1|\n"
      "7.batch|b|COMPLETED|0:0|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|cpu=8,node=1|5K\n"
      "8|a|FAILED|1:0|2024-01-01T01:00:00|2024-01-01T03:00:00|7200|cpu=8,gres/gpu=4,node=1|\n");
  ASSERT_EQ(r.jobs.size(), 2u);
  EXPECT_EQ(r.jobs[1].state, JobState::kFailed);
  EXPECT_EQ(r.jobs[1].exit_code, 1);
  EXPECT_EQ(r.jobs[1].elapsed_s, 7200);
  EXPECT_EQ(r.jobs[1].gpus, 4);
  ASSERT_EQ(r.problems.size(), 1u);
  EXPECT_NE(r.problems[0].message.find("ElapsedRaw, AllocTRES"), std::string::npos);
  EXPECT_TRUE(sacct("a|b|c\n1|2|3\n").jobs.empty());
}

TEST(Slurm, SaysWhichColumnsAreMissing) {
  const SlurmReading r = sacct("JobID|State|End\n1|FAILED|2024-01-01T00:00:00\n");
  ASSERT_EQ(r.problems.size(), 1u);
  EXPECT_NE(r.problems[0].message.find(",AllocTRES%80,Start"), std::string::npos);
}

TEST(Slurm, StepsAreNoJobs) {
  const SlurmReading r = sacct(
      "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES|NNodes|NodeList|ExitCode\n"
      "7|train|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/"
      "gpu=16,node=2|2|n[1-2]|0:0\n"
      "7.batch|batch|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8|1|n1|0:0\n"
      "7.extern|extern|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/"
      "gpu=16|2|n[1-2]|0:0\n"
      "8_3|array|FAILED|2024-01-01T00:00:00|2024-01-01T00:10:00|600|gres/gpu:h100=8|1|n3|1:9\n"
      "8_[4-9%2]|array|PENDING|Unknown|Unknown|0||1|None assigned|0:0\n");
  ASSERT_EQ(r.jobs.size(), 3u);
  EXPECT_EQ(r.steps, 2u);
  EXPECT_EQ(r.jobs[0].gpus, 16);
  EXPECT_EQ(r.jobs[1].base, "8");
  EXPECT_EQ(r.jobs[1].exit_code, 1);
  EXPECT_EQ(r.jobs[1].signal, 9);
  EXPECT_FALSE(r.jobs[2].start_s.has_value());
  EXPECT_TRUE(r.problems.empty());
}

TEST(Slurm, RequeuesAreLives) {
  const char* text =
      "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes|\n"
      "7|REQUEUED|2024-01-01T00:00:00|2024-01-01T00:00:01|2024-01-01T01:00:00|3599|gres/gpu=8|1|\n"
      "7|NODE_FAIL|2024-01-01T01:00:00|2024-01-01T02:00:00|2024-01-01T03:00:00|3600|gres/gpu=8|1|\n"
      "7|RUNNING|2024-01-01T03:00:00|2024-01-01T04:00:00|Unknown|60|gres/gpu=8|1|\n";
  SlurmReading r = sacct(text);
  EXPECT_EQ(r.jobs.size(), 3u);
  // The same again, later: the running life has ended.
  read_sacct(
      "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes\n"
      "7|NODE_FAIL|2024-01-01T01:00:00|2024-01-01T02:00:00|2024-01-01T03:00:00|3600|gres/gpu=8|1\n"
      "7|COMPLETED|2024-01-01T03:00:00|2024-01-01T04:00:00|2024-01-01T05:00:00|3600|gres/gpu=8|1\n",
      "later.txt", r);
  ASSERT_EQ(r.jobs.size(), 3u);
  EXPECT_EQ(r.duplicates, 2u);
  EXPECT_EQ(r.jobs[2].state, JobState::kCompleted);
}

TEST(Slurm, BrokenLines) {
  const std::string header = "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES\n";
  // A name with a line break, one with the separator, a line that lost its beginning, garbage.
  const SlurmReading r =
      sacct(header +
            "1|two\nlines\nhere|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8\n"
            "2|a|b|FAILED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8\n"
            "ain|COMPLETED|2024-01-01T00:00:00\n"
            "3|ok|TIMEOUT|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8\n"
            "\xff\xfe\x01|||\n"
            "4|\xc3(|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8\n"
            "5|\x1b[31mred|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|gres/gpu=8\n");
  ASSERT_EQ(r.jobs.size(), 5u);
  EXPECT_EQ(r.jobs[0].name, "two lines here");
  EXPECT_EQ(r.jobs[1].name, "a|b");
  EXPECT_EQ(r.jobs[1].state, JobState::kFailed);
  EXPECT_EQ(r.jobs[4].name.find('\x1b'), std::string::npos);
  EXPECT_EQ(r.problems.size(), 2u);
  EXPECT_EQ(r.problems[0].at.line, 6);
  for (const char* text : {"", "\n\n", "garbage", "a|b|c\n1|2|3\n", "JobID\n", "JobID|State"}) {
    EXPECT_TRUE(sacct(text).jobs.empty()) << text;
  }
}

TEST(Slurm, ScontrolAndSinfo) {
  SlurmReading r;
  read_scontrol(
      "NodeName=n1 Arch=x86_64 CoresPerSocket=56\n   CPUAlloc=0 CPUTot=224 Gres=gpu:h100:8(S:0-1)\n"
      "   OS=Linux 5.15.0 #1 SMP\n   State=IDLE+DRAIN ThreadsPerCore=2\n"
      "   CfgTRES=cpu=224,mem=2000G,gres/gpu=8\n   AllocTRES=\n"
      "   Reason=Xid 79 seen twice [root@2024-01-05T10:00:00]\n\n"
      "NodeName=n2 Gres=gpu:h100:8 State=MIXED AllocTRES=cpu=8,gres/gpu=4\n"
      "JobId=99 JobName=big UserId=ann(100) JobState=PENDING Reason=Resources\n"
      "   SubmitTime=2024-01-05T00:00:00 ReqTRES=cpu=512,node=64,gres/gpu=512\n"
      "PartitionName=p State=UP TRES=cpu=251200,node=3140,gres/gpu=22384\n"
      "ClusterName             = test\n",
      "s.txt", r);
  ASSERT_EQ(r.nodes.size(), 2u);
  EXPECT_TRUE(r.nodes[0].drain);
  EXPECT_EQ(r.nodes[0].gpus, 8);
  EXPECT_EQ(r.nodes[0].reason, "Xid 79 seen twice");
  EXPECT_EQ(r.nodes[0].since_s, parse_slurm_time("2024-01-05T10:00:00"));
  EXPECT_EQ(r.nodes[1].gpus_used, 4);
  ASSERT_EQ(r.queue.size(), 1u);
  EXPECT_EQ(r.queue[0].nodes, 64);
  EXPECT_EQ(r.partition_gpus, 22384);
  EXPECT_EQ(r.config["ClusterName"], "test");

  SlurmReading s;
  read_sinfo(
      "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
      "gpu*         up   infinite      3  alloc n[1-3]\n"
      "gpu*         up   infinite      1 drain* n4\nbig up infinite 1 alloc n1\n"
      "bad          up   infinite      9  idle n[1-999999999]\n",
      "i.txt", s);
  ASSERT_EQ(s.nodes.size(), 4u);
  EXPECT_TRUE(s.nodes[3].drain);
  EXPECT_EQ(s.problems.size(), 1u);
}

TEST(Slurm, Squeue) {
  SlurmReading r;
  read_squeue(
      "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
      "12345 gpu train ann PD 0:00 64 (Resources)\n12346 gpu test bob R 1:00 1 n1\nrubbish\n",
      "q.txt", r);
  ASSERT_EQ(r.queue.size(), 2u);
  EXPECT_EQ(r.queue[0].state, JobState::kPending);
  EXPECT_EQ(r.queue[0].nodes, 64);
  EXPECT_EQ(r.queue[0].reason, "(Resources)");
}

// Real outputs: every record that is whole is read, what is broken is told.
TEST(Slurm, RealOutputs) {
  const std::filesystem::path root =
      std::filesystem::path(ASSAY_ROOT) / "../shared/data/public/telemetry";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no " << root << ": real outputs not read";
  const auto read = [&](const char* name, auto reader) {
    SlurmReading out;
    const auto text = read_text((root / name).string());
    EXPECT_TRUE(text.has_value()) << name;
    if (text) reader(*text, name, out);
    return out;
  };
  struct Case {
    const char* name;
    size_t jobs, steps, problems;
  };
  for (const Case& c : {Case{"slurm/gcm/sample-sacct-fake-line-break.txt", 2, 2, 0},
                        Case{"slurm/gcm/sample-sacct-one-multiline.txt", 2, 2, 0},
                        Case{"slurm/gcm/sample-sacct-multiple-multiline.txt", 4, 2, 0},
                        Case{"sacct/gcm-sample-sacct-output-with-invalid-lines.txt", 0, 0, 1}}) {
    const SlurmReading r = read(c.name, read_sacct);
    EXPECT_EQ(r.jobs.size() + r.duplicates, c.jobs) << c.name;
    EXPECT_EQ(r.steps, c.steps) << c.name;
    EXPECT_EQ(r.problems.size(), c.problems) << c.name;
  }
  const SlurmReading large = read("slurm/gcm/sample-sacct-output.txt", read_sacct);
  EXPECT_EQ(large.steps, 68u);
  EXPECT_EQ(large.problems.size(), 1u);  // steps alone are no accounting
  const SlurmReading midnight =
      read("slurm/gcm/sample-sacct-output-midnight-edge-case.txt", read_sacct);
  EXPECT_GT(midnight.jobs.size(), 100u);
  EXPECT_EQ(midnight.problems.size(), 1u);  // JobID, State and End alone
  const SlurmReading bytes = read("slurm/gcm/sample-sacct-output-invalid-utf8.txt", read_sacct);
  EXPECT_GT(bytes.jobs.size(), 0u);
  EXPECT_TRUE(bytes.problems.empty());
  const SlurmReading nodes = read("slurm/gcm/sample-sinfo-output.txt", read_sinfo);
  ASSERT_EQ(nodes.nodes.size(), 3u);
  EXPECT_EQ(nodes.nodes[0].gpus, 8);
  EXPECT_TRUE(nodes.nodes[0].drain);
  EXPECT_EQ(nodes.nodes[0].reason, "replace");
  EXPECT_EQ(nodes.nodes[2].gpus, 2);
  const SlurmReading bare = read("slurm/gcm/sinfo-output-for-structured.txt", read_sinfo);
  EXPECT_GT(bare.nodes.size(), 5u);
  EXPECT_EQ(bare.nodes[0].name, "node1074");
  EXPECT_EQ(bare.nodes[0].gpus, 8);
  const SlurmReading queue = read("slurm/gcm/sample-squeue-output.txt", read_squeue);
  ASSERT_EQ(queue.queue.size(), 5u);
  EXPECT_EQ(queue.queue[2].gpus, 256);
  EXPECT_EQ(queue.queue[4].id, "42271120_[7-8%1]");
  EXPECT_EQ(queue.queue[4].state, JobState::kPending);
  EXPECT_EQ(read("slurm/gcm/sample-scontrol-output.txt", read_scontrol).partition_gpus, 22384);
  EXPECT_GT(read("slurm/gcm/sample-scontrol-show-config-output.txt", read_scontrol).config.size(),
            50u);
}

}  // namespace
}  // namespace assay

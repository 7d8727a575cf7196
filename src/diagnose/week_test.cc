#include "diagnose/week.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/text_file.h"

namespace assay {
namespace {

constexpr int64_t kMonday = 1700000000;

SlurmJob job(int id, JobState state, int64_t submit, int64_t start, int64_t end, double gpus,
             const std::string& nodes, int64_t count = 1) {
  SlurmJob out;
  out.id = out.base = std::to_string(id);
  out.user = "ann";
  out.name = "train";
  out.state = state;
  out.submit_s = out.eligible_s = kMonday + submit;
  out.start_s = kMonday + start;
  out.end_s = kMonday + end;
  out.elapsed_s = end - start;
  out.gpus = gpus;
  out.nodes = count;
  out.node_list = nodes;
  return out;
}

SlurmNode node(const std::string& name, double gpus = 8) {
  SlurmNode out;
  out.name = name;
  out.gpus = gpus;
  out.state = "idle";
  return out;
}

double hours(const WeekReport& report, WeekAccount account) { return report[account] / 3600; }

// Two nodes, ten hours, every account by hand.
TEST(Week, ByHand) {
  SlurmReading in;
  in.nodes = {node("n1"), node("n2"), node("n3")};
  in.nodes[2].drain = true;
  in.nodes[2].reason = "bad cable";
  in.nodes[2].since_s = kMonday + 5 * 3600;
  const int64_t h = 3600;
  in.jobs = {
      job(1, JobState::kCompleted, 0, 0, 4 * h, 8, "n1"),
      job(2, JobState::kFailed, 0, 0, 2 * h, 4, "n2"),
      job(3, JobState::kNodeFail, 0, 2 * h, 3 * h, 4, "n2"),
      job(4, JobState::kCancelled, 4 * h, 4 * h, 10 * h, 6, "n1"),
      // Waits from hour 4 for eight GPUs of one node; two are free on n1 and n2 is free from
      // hour 3.
      job(5, JobState::kTimeout, 4 * h, 9 * h, 10 * h, 8, "n2"),
  };
  const WeekReport report = diagnose_week(in, WeekPeriod{kMonday, kMonday + 10 * h});
  EXPECT_FALSE(report.capacity_assumed);
  EXPECT_EQ(report.capacity_gpus, 24);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kCompleted), 32);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kFailed), 8);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kNodeFail), 4);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kCancelled), 36);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kTimeout), 8);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kDrained), 40);
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kFragmented), 10);  // n1's two while 5 waits
  // While 5 waits: n2 whole for five hours, n3 whole for one. Job 3 waits two hours for four GPUs
  // of n2's free half and of n3.
  EXPECT_DOUBLE_EQ(hours(report, WeekAccount::kWaiting), 40 + 8 + 2 * (4 + 8));
  EXPECT_DOUBLE_EQ(report.queued_gpu_seconds / 3600, 5 * 8 + 2 * 4);
  double sum = 0;
  for (const double account : report.gpu_seconds) sum += account;
  EXPECT_DOUBLE_EQ(sum, report.paid());
  ASSERT_FALSE(report.losses.empty());
  EXPECT_EQ(report.losses[0].account, WeekAccount::kWaiting);
  EXPECT_EQ(report.losses[1].what, "node n3: bad cable");
}

// A cluster that runs random jobs first come, first served; its nodes are never over-committed.
SlurmReading generated(unsigned seed, size_t nodes, size_t count, bool listed) {
  std::mt19937 random(seed);
  SlurmReading out;
  std::vector<double> free(nodes, 8);
  for (size_t n = 0; n < nodes && listed; ++n) out.nodes.push_back(node(fmt::format("n{:03}", n)));
  struct Running {
    int64_t end;
    std::vector<size_t> nodes;
    double each;
  };
  std::vector<Running> running;
  int64_t now = 0;
  constexpr JobState kStates[] = {
      JobState::kCompleted, JobState::kCompleted, JobState::kFailed,
      JobState::kCancelled, JobState::kTimeout,   JobState::kNodeFail,
      JobState::kPreempted, JobState::kRunning,   JobState::kOutOfMemory};
  for (size_t i = 0; i < count; ++i) {
    const int64_t submit = now - static_cast<int64_t>(random() % 20);
    const double each = std::pow(2, static_cast<double>(random() % 4));
    const size_t wanted = each == 8 ? 1 + random() % std::max<size_t>(nodes / 2, 1) : 1;
    std::vector<size_t> at;
    while (true) {
      at.clear();
      for (size_t n = 0; n < nodes && at.size() < wanted; ++n) {
        if (free[n] >= each) at.push_back(n);
      }
      if (at.size() == wanted) break;
      const auto next =
          std::min_element(running.begin(), running.end(),
                           [](const Running& a, const Running& b) { return a.end < b.end; });
      now = std::max(now, next->end);
      for (const size_t n : next->nodes) free[n] += next->each;
      running.erase(next);
    }
    std::string list;
    for (const size_t n : at) {
      free[n] -= each;
      list += fmt::format("{}n{:03}", list.empty() ? "" : ",", n);
    }
    const int64_t end = now + 1 + static_cast<int64_t>(random() % 40);
    running.push_back({end, at, each});
    SlurmJob one = job(static_cast<int>(i), kStates[random() % std::size(kStates)], submit, now,
                       end, each * static_cast<double>(wanted), list, static_cast<int64_t>(wanted));
    if (one.state == JobState::kRunning) one.state = JobState::kCompleted;
    out.jobs.push_back(one);
    now += static_cast<int64_t>(random() % 3);
  }
  return out;
}

// The slow obvious twin: every second by itself.
std::array<double, kWeekAccounts> naive(const SlurmReading& in, const WeekPeriod& period,
                                        double capacity) {
  std::array<double, kWeekAccounts> out{};
  const auto add = [&](WeekAccount account, double gpus) {
    out[static_cast<size_t>(account)] += gpus;
  };
  for (int64_t t = period.from_s; t < period.to_s; ++t) {
    std::map<std::string, double> used;
    double held = 0;
    std::vector<const SlurmJob*> queue;
    for (const SlurmJob& one : in.jobs) {
      if (*one.eligible_s <= t && t < *one.start_s) queue.push_back(&one);
      if (t < *one.start_s || t >= *one.end_s) continue;
      WeekAccount account = WeekAccount::kCompleted;
      if (one.state == JobState::kFailed || one.state == JobState::kOutOfMemory) {
        account = WeekAccount::kFailed;
      } else if (one.state == JobState::kCancelled) {
        account = WeekAccount::kCancelled;
      } else if (one.state == JobState::kTimeout) {
        account = WeekAccount::kTimeout;
      } else if (one.state == JobState::kNodeFail) {
        account = WeekAccount::kNodeFail;
      } else if (one.state == JobState::kPreempted) {
        account = WeekAccount::kRequeued;
      }
      add(account, one.gpus);
      held += one.gpus;
      for (size_t at = 0; at < one.node_list.size(); at += 5) {
        used[one.node_list.substr(at, 4)] += one.gpus / static_cast<double>(one.nodes);
      }
    }
    double fragmented = 0;
    for (const SlurmNode& one : in.nodes) {
      const double free = one.gpus - used[one.name];
      if (used[one.name] == 0 || queue.empty()) continue;
      bool usable = false;
      for (const SlurmJob* waiting : queue) {
        const double each = waiting->gpus / static_cast<double>(waiting->nodes);
        int64_t places = 0;
        for (const SlurmNode& other : in.nodes) places += other.gpus - used[other.name] >= each;
        usable |= each <= free && places >= waiting->nodes;
      }
      if (!usable) fragmented += free;
    }
    add(WeekAccount::kFragmented, fragmented);
    add(queue.empty() ? WeekAccount::kIdle : WeekAccount::kWaiting, capacity - held - fragmented);
  }
  return out;
}

TEST(Week, AgreesWithItsTwin) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const SlurmReading in = generated(seed, 2 + seed % 5, 60, true);
    const WeekReport report = diagnose_week(in);
    const auto expected = naive(in, report.period, report.capacity_gpus);
    for (size_t a = 0; a < kWeekAccounts; ++a) {
      EXPECT_NEAR(report.gpu_seconds[a], expected[a], 1e-6)
          << week_account_name(static_cast<WeekAccount>(a)) << " seed " << seed;
    }
  }
}

TEST(Week, LeavesSumToWhatWasPaid) {
  std::mt19937 random(5);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SlurmReading in = generated(seed, 1 + seed % 17, 150, seed % 2 == 0);
    for (SlurmJob& one : in.jobs) {  // damage
      if (random() % 10 == 0) one.node_list.clear();
      if (random() % 20 == 0) one.end_s.reset();
      if (random() % 20 == 0) one.end_s = *one.start_s - 100;
      if (random() % 20 == 0) one.state = JobState::kRunning;
      if (random() % 30 == 0) one.gpus = 0.5;
    }
    for (SlurmNode& one : in.nodes) one.drain = random() % 4 == 0;
    std::optional<WeekPeriod> period;
    if (seed % 3 == 0) period = WeekPeriod{kMonday + 20, kMonday + 100};
    const WeekReport report = diagnose_week(in, period);
    double sum = 0;
    for (const double account : report.gpu_seconds) {
      EXPECT_GE(account, 0);
      sum += account;
    }
    EXPECT_NEAR(sum, report.paid(), 1e-6 * report.paid() + 1e-6) << seed;
    EXPECT_LE(report.losses.size(), 10u);
    EXPECT_EQ(report.capacity_assumed, seed % 2 == 1);
  }
}

// A fleet with users of all kinds; `bad` nodes kill a job with the given chance.
SlurmReading fleet(unsigned seed, const std::vector<int>& bad, double kills) {
  std::mt19937 random(seed);
  const auto chance = [&](double p) { return static_cast<double>(random() % 1000000) < p * 1e6; };
  SlurmReading out;
  constexpr int kNodes = 120;
  for (int i = 0; i < 3000; ++i) {
    const int user = static_cast<int>(random() % 20);
    const int size = random() % 5 == 0 ? 8 : 1;
    const int first = static_cast<int>(random() % (kNodes - size));
    const int64_t start = static_cast<int64_t>(random() % 600000);
    // Users 0 and 1 break nearly all their jobs; each user has favourite nodes.
    const double own = user < 2 ? 0.9 : 0.05 * (user % 4);
    const int place = user == 0 ? 7 : first;
    bool dies = false;
    for (int n = place; n < place + size; ++n) {
      dies |= std::find(bad.begin(), bad.end(), n) != bad.end() && chance(kills);
    }
    const bool system = chance(0.002) || (dies && chance(0.3));
    const JobState state = system                ? JobState::kNodeFail
                           : dies || chance(own) ? JobState::kFailed
                                                 : JobState::kCompleted;
    SlurmJob one = job(i, state, start, start, start + 3600, 8.0 * size,
                       fmt::format("n[{:03}-{:03}]", place, place + size - 1), size);
    one.user = fmt::format("u{}", user);
    out.jobs.push_back(one);
  }
  return out;
}

TEST(Week, SickNodes) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const WeekReport healthy = diagnose_week(fleet(seed, {}, 0));
    EXPECT_TRUE(healthy.sick.empty())
        << seed << " " << (healthy.sick.empty() ? "" : healthy.sick[0].name);
    EXPECT_TRUE(healthy.analysis.findings.empty());

    const WeekReport report = diagnose_week(fleet(seed, {40, 90}, 0.6));
    ASSERT_EQ(report.sick.size(), 2u) << seed;
    std::vector<std::string> names = {report.sick[0].name, report.sick[1].name};
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{"n040", "n090"}));
    ASSERT_EQ(report.analysis.findings.size(), 2u);
    const Finding& finding = report.analysis.findings[0];
    EXPECT_EQ(finding.cause, Cause::kHardwareFault);
    EXPECT_TRUE(finding.urgent);
    EXPECT_GT(finding.gain.v, 0);
    EXPECT_FALSE(finding.evidence[0].rows.empty());
  }
}

TEST(Week, CompanionsCannotBeToldApart) {
  SlurmReading in = fleet(3, {}, 0);
  for (int i = 0; i < 12; ++i) {
    SlurmJob one =
        job(90000 + i, JobState::kNodeFail, i * 7200, i * 7200, i * 7200 + 3600, 16, "z[1-2]", 2);
    in.jobs.push_back(one);
  }
  const WeekReport report = diagnose_week(in);
  EXPECT_TRUE(report.analysis.findings.empty());
  ASSERT_EQ(report.sick.size(), 1u);
  EXPECT_EQ(report.sick[0].companions.size(), 1u);
  EXPECT_EQ(report.analysis.open.size(), 1u);
}

TEST(Week, PoissonTail) {
  EXPECT_EQ(poisson_tail(0, 3), 1);
  EXPECT_NEAR(poisson_tail(1, 1), 1 - std::exp(-1.0), 1e-12);
  EXPECT_NEAR(poisson_tail(3, 0.5), 1 - std::exp(-0.5) * (1 + 0.5 + 0.125), 1e-12);
  EXPECT_NEAR(poisson_tail(100, 100), 0.5133, 1e-3);
  EXPECT_NEAR(poisson_tail(1, 1000), 1, 1e-9);
  EXPECT_EQ(poisson_tail(5, 0), 0);
}

TEST(Week, NothingToSay) {
  const WeekReport none = diagnose_week({});
  EXPECT_EQ(none.paid(), 0);
  EXPECT_EQ(none.analysis.notes.size(), 1u);
}

// Real lines of accounting, with a line break in a name and a requeue: 2 jobs of 2,048 and 256
// GPUs.
TEST(Week, RealAccounting) {
  const std::string path =
      std::string(ASSAY_ROOT) +
      "/../shared/data/public/telemetry/slurm/gcm/sample-sacct-one-multiline.txt";
  const auto text = read_text(path);
  if (!text) GTEST_SKIP() << "no " << path << ": real accounting not read";
  SlurmReading in;
  read_sacct(*text, path, in);
  const WeekReport report = diagnose_week(in);
  double sum = 0;
  for (const double account : report.gpu_seconds) sum += account;
  EXPECT_GT(report.paid(), 0);
  EXPECT_NEAR(sum, report.paid(), 1e-6 * report.paid());
  EXPECT_DOUBLE_EQ(report[WeekAccount::kRequeued], 256.0 * 87356);
  EXPECT_TRUE(report.sick.empty());
}

}  // namespace
}  // namespace assay

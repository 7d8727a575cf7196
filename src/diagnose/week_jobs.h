// Jobs of a period as intervals on nodes: what the ledger and the search for sick nodes share.
#pragma once

#include <string>
#include <vector>

#include "diagnose/week.h"

namespace assay {

struct WeekNode {
  std::string name;
  double gpus = 0;
  std::string reason;
  std::optional<int64_t> drained_from;  // until the end of the period
};

struct WeekJob {
  const SlurmJob* job = nullptr;
  WeekAccount account = WeekAccount::kRunning;
  int64_t from_s = 0, to_s = 0;              // held, within the period; equal: never held in it
  int64_t queue_from_s = 0, queue_to_s = 0;  // waited, within the period
  std::vector<int> nodes;                    // empty: not placed, or its list cannot be read
};

struct WeekJobs {
  WeekPeriod period;
  bool period_assumed = false;
  double capacity = 0;
  bool capacity_assumed = false;
  bool capacity_raised = false;  // more was in use than the nodes of sinfo have
  std::vector<WeekNode> nodes;
  std::vector<WeekJob> jobs;  // with GPUs
};

WeekJobs place_jobs(const SlurmReading&, std::optional<WeekPeriod>);

// Fills accounts, queue and shapes of the report.
void fill_week(const WeekJobs&, WeekReport&);

std::vector<SickNode> find_sick_nodes(const WeekJobs&);

}  // namespace assay

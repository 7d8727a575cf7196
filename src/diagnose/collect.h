// Passes 2 and 3 of a diagnosis: reading each file into what the analyses need, and running them.
#pragma once

#include <map>

#include "diagnose/diagnose.h"
#include "diagnose/ranks.h"
#include "ingest/flight_recorder.h"
#include "ingest/kernel_log.h"
#include "ingest/nccl_tests.h"
#include "ingest/slurm.h"
#include "ingest/straggler_csv.h"
#include "ingest/telemetry.h"
#include "ingest/topo.h"
#include "ingest/training_log.h"

namespace assay {

std::string folder_of(const std::string& path);  // empty where it names none

// One cause as the traces of several ranks show it. The weightiest rank's finding stands for all.
struct CauseOverRanks {
  Finding worst;
  double share_sum = 0;  // over ranks that show it
  double gain_sum = 0;
  double after_sum = 0;              // step after the fix
  double low_sum = 0, high_sum = 0;  // its range; the step itself where it has none
  std::vector<int> ranks;
};

// Traces folded one by one, so that a thousand ranks need the memory of one.
struct TraceTotals {
  int traces = 0;
  Ledger ledger;        // sum
  bool uneven = false;  // the steps of some trace
  double step_s = 0, usual_s = 0, spread_s = 0, unexplained_s = 0;
  int steps = 0;
  int world_size = 0;
  Breakdown first;
  std::string accelerator;
  std::map<Cause, CauseOverRanks> causes;
  std::vector<std::string> notes;
  std::vector<OpenQuestion> open;
};

// Traces that belong together: the ranks of one job, or a trace that has nothing to do with others.
struct TraceJob {
  TraceTotals totals;
  std::vector<RankSummary> ranks;
  std::string folder;  // of its first trace
  bool alone = false;  // not one of several ranks
};

struct Collected {
  const Accelerator* accelerator = nullptr;  // of --cluster; null: not given
  std::vector<TraceJob> jobs;
  std::vector<OperationTrace> operations;
  std::vector<FlightDump> dumps;
  std::vector<Telemetry> telemetry;
  std::vector<KernelLog> kernel_logs;
  std::vector<NcclTests> nccl_tests;
  std::vector<Topology> topologies;
  std::vector<TrainingLog> training_logs;
  SlurmReading slurm;
};

// Reads one file into `collected`; says in `diagnosis.files` what it was, in `problems` what is
// wrong.
void collect(const std::string& path, const DiagnoseOptions&, Collected&, Diagnosis&);

// The part of it that is about hangs: one analysis an incident.
void analyse_hangs(Collected&, Diagnosis&);

// Runs every analysis for which something was collected.
void analyse(Collected&, Diagnosis&);

}  // namespace assay

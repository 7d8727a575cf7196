// Whatever files there are -> what was measured, what is wrong with it, what to change.
//
// The passes, in order:
//   1. list_files   folders become their files; nothing is opened.
//   2. read         each file is recognised by content and read by its own reader. Traces are
//                   large, so each is diagnosed and reduced to a summary before the next is opened.
//   3. analyse      one analysis per kind of evidence: traces of single ranks, ranks together,
//                   operation traces, hangs, telemetry, fleets, training logs, accounting. Evidence
//                   of one kind helps another (the kernel log decides a hang).
//   4. rank         findings by what they give back; the same cause seen twice is one finding.
// A file that cannot be read is reported and the others are diagnosed all the same.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/trace_causes.h"
#include "ingest/recognise.h"

namespace assay {

// The critical path of one step of one rank, by what it runs through.
struct PathAccount {
  int64_t total_ns = 0, host_ns = 0, device_ns = 0, launch_ns = 0, between_ns = 0;
};

struct FileRead {
  std::string path;
  FileKind kind = FileKind::kUnknown;
  std::string summary;  // `3 steps, 81,494 events, rank 0 of 8`, or why it was not read
  bool used = false;
  bool judged = false;   // it was of use and holds what can be sick or well, not only a header
  bool moment = false;   // telemetry of too few samples to say what happens over time
  bool missing = false;  // it could not be opened (no such file, no permission), or its disk failed
  bool cut = false;      // it ends in the middle: what came before was read
  // Of a profiler trace: the exact account of the whole file, and the critical path of its second
  // step (the first is often cut by the profiler), or of all where it has none.
  std::optional<Breakdown> device;
  std::optional<PathAccount> path_of_step;
};

// What a job's operation trace comes to (diagnose/what_if.h).
struct WhatIfAccount {
  std::string file;
  double slowdown = 1;
  Seconds measured, original, ideal;
};

// Ranks of a hang, by how they were found (diagnose/hang.h).
struct HangAccount {
  std::string folder;  // of the dumps
  bool hung = false;
  std::vector<int> convicted, by_evidence, mismatched, undecided, no_dump;
};

// The job's way through its ranks: what each worked on it, and the wire.
struct JobPath {
  Seconds total, wire;
  std::vector<std::pair<int, Seconds>> ranks;  // the longest first
};

// The step of a job as its traces show it: the mean over ranks.
struct MeasuredStep {
  Seconds step;  // median over steps (the mean where they are uneven), mean over ranks
  bool uneven = false;
  // The step that findings are priced against: without the profiler's own cost, and with what
  // comes now and then (a slow batch, a collection) at its mean. Zero: not known.
  Seconds usual;
  Seconds spread;  // slowest less fastest step
  int steps = 0;   // 0: no steps were marked, the whole file stands for one
  int ranks = 0;   // traces read
  int world_size = 0;
  Ledger ledger;     // sums to `step`
  Breakdown device;  // of the first trace, exact
  Seconds unexplained;
  std::string accelerator;  // catalog name; empty: unknown
  std::string source;       // `trace`, `training log`
};

// A period of a cluster or of a job, from accounting or logs, in accelerator-seconds.
struct MeasuredPeriod {
  std::string what;  // `64 GPUs, 7.0 days, Slurm accounting`
  struct Line {
    std::string name;
    Seconds time;
    double share = 0;
  };
  std::vector<Line> lines;  // they sum to `paid`
  bool wall_clock = false;  // of one job, in hours of the clock instead of GPU-hours
  Seconds step;             // of a training log: the usual one; zero: not known
  double batch = 0;         // sequences of that step, as logged; zero: not known
  Seconds paid;
  std::vector<std::vector<std::string>> losses;  // the ten largest, ready to print
};

struct Diagnosis {
  std::vector<FileRead> files;
  Diagnostics problems;  // warnings and errors of the readers, file by file
  std::optional<MeasuredStep> step;
  std::vector<MeasuredPeriod> periods;
  std::vector<WhatIfAccount> what_ifs;
  // One, unless the dumps are of several incidents, a folder each.
  std::vector<HangAccount> hangs;
  std::optional<JobPath> job_path;
  // By urgency, then by gain; evidence is numbered e1, e2, ... in that order. Never empty when
  // anything was measured: `healthy` where nothing is worth fixing.
  std::vector<Finding> findings;
  std::vector<OpenQuestion> open;
  std::vector<std::string> notes;
  // By telemetry, of the time seen: the mean GPU's, and that of the GPU that idles most.
  double idle_mean = 0, idle_most = 0;
};

struct DiagnoseOptions {
  const Accelerator* accelerator = nullptr;  // of --cluster; null: by the trace's device name
  const Kernels* kernels = nullptr;
  std::function<void(double)> progress;
};

// Files of operands: a folder stands for its files and those of its folders, in the order of their
// names, without hidden ones. A file that is reached twice (named twice, a link in a circle) is
// listed once. Operands that are nothing are listed too: opening them will tell. Problems are
// errors for what cannot be listed, warnings for what was left out.
struct FileList {
  std::vector<std::string> files;
  Diagnostics problems;
};
FileList list_files(const std::vector<std::string>& operands);

Diagnosis diagnose(const std::vector<std::string>& files, const DiagnoseOptions&);

// What the files lack where nothing in them could be diagnosed, a problem for each kind of file.
// Empty where something was, be it that nothing is wrong or that a question is open.
Diagnostics lacking(const Diagnosis&);

// From here on idle time is asked about: shorter waits are between steps and while checkpoints are
// written, as in any job.
constexpr double kIdleAsked = 0.1;

// Pass 4, for the tests: merges, orders, numbers the evidence, adds `healthy` where nothing is
// left.
void rank_findings(Diagnosis&, bool measured);

}  // namespace assay

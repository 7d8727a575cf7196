// What Slurm prints about jobs and nodes: sacct (parsable, as a table, without a header), sinfo,
// squeue, scontrol show node / job / partition / config. Real outputs are broken in a few known
// ways (job names with line breaks and separators, lines that lost their beginning, bytes that are
// no UTF-8); what can be mended is, the rest is skipped and told with its line.
//
// Times are seconds since 1970 of the cluster's own clock (sacct prints local time without a zone;
// differences are right). GPUs are counted for the whole allocation. Text is sanitised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace assay {

// A file full of errors is not listed line by line.
inline constexpr size_t kSlurmProblems = 50;

enum class JobState : uint8_t {
  kUnknown,
  kPending,
  kRunning,  // also completing, configuring, suspended, resizing
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,  // also deadline
  kOutOfMemory,
  kNodeFail,  // also boot and launch failures
  kPreempted,
  kRequeued,
};
std::string_view job_state_name(JobState);  // `node-fail`

// One allocation: a job, a task of an array, or one life of a job that was requeued. Steps are not
// jobs and are left out, so that nothing counts twice.
struct SlurmJob {
  std::string id;    // as printed: `123`, `123_4`, `123_[5-8]`
  std::string base;  // `123` of `123_4`
  std::string name, user, account, reason;
  JobState state = JobState::kUnknown;
  std::optional<int64_t> submit_s, eligible_s, start_s, end_s;
  std::optional<int64_t> elapsed_s;
  double gpus = 0;        // allocated, or asked for while pending
  int64_t nodes = 0;      // likewise
  std::string node_list;  // as printed; empty or `None assigned` while pending
  int exit_code = 0, signal = 0;
};

struct SlurmNode {
  std::string name;
  double gpus = 0;
  double gpus_used = 0;
  bool down = false;   // down, failing, not responding, powered off
  bool drain = false;  // drained or draining
  bool reserved = false;
  std::string state;  // as printed, lower case
  std::string reason;
  std::optional<int64_t> since_s;  // of the reason
};

struct SlurmReading {
  std::vector<SlurmJob> jobs;                 // sacct
  std::vector<SlurmJob> queue;                // squeue, scontrol show job: a moment's picture
  std::vector<SlurmNode> nodes;               // each once, whatever the number of its partitions
  std::map<std::string, std::string> config;  // scontrol show config
  double partition_gpus = 0;                  // the most that one partition states
  size_t steps = 0;                           // rows of sacct that are steps
  size_t duplicates = 0;                      // rows that said the same again
  Diagnostics problems;
};

// Each adds what it finds to `out`. `file` is for messages.
void read_sacct(std::string_view text, const std::string& file, SlurmReading& out);
void read_sinfo(std::string_view text, const std::string& file, SlurmReading& out);
void read_squeue(std::string_view text, const std::string& file, SlurmReading& out);
void read_scontrol(std::string_view text, const std::string& file, SlurmReading& out);

// ---- values ----
JobState parse_job_state(std::string_view);  // `CANCELLED by 1001`, `NODE_FAIL`, `CANCELLED+`
// `2-03:04:05`, `03:04:05`, `04:05.250`, `30` (minutes, as time limits are); none: unlimited,
// unknown.
std::optional<int64_t> parse_slurm_duration(std::string_view);
// `2023-01-16T00:56:11` or seconds since 1970; none for Unknown, None, N/A and the empty text.
std::optional<int64_t> parse_slurm_time(std::string_view);
// GPUs of `cpu=8,gres/gpu=8,gres/gpu:h100=8`: the untyped count, else the sum of the typed ones.
double tres_gpus(std::string_view);
std::optional<int64_t> tres_nodes(std::string_view);  // `node=4`
// GPUs of `gpu:h100:8(S:0-1),gpu:4`, `gres/gpu:8`, `PER_NODE:gpu:8`.
double gres_gpus(std::string_view);

}  // namespace assay

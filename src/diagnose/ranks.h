// Many ranks of one job: who arrives late at collectives, why, what that costs, and which chain of
// ranks the job's time really follows.
//
//   std::vector<RankSummary> ranks;
//   for (each file) ranks.push_back(summarise(trace));   // the trace can be dropped afterwards
//   const RanksDiagnosis d = diagnose_ranks(std::move(ranks));
//
// A summary is small (at most kRankCollectives x 72 bytes, usually a tenth), so that a thousand
// ranks fit in memory whatever the size of their traces. A folder with missing ranks works: waiting
// is then relative to the ranks that are there.
//
// Definitions, per collective that several ranks took part in:
//   arrival   when a rank's kernel starts;
//   wire      from the last arrival to the end: the time the network and the algorithm need;
//   waiting   of a rank: last arrival - its own arrival;
//   skew      last arrival - first arrival, blamed on the rank that came last.
// Clocks: the members of a collective end together, so a rank's clock is late by the median of its
// ends against the others'. Offsets above kClockNoise, and above four times the scatter of the
// ends, are corrected; all are reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/critical_path.h"
#include "diagnose/finding.h"
#include "ingest/breakdown.h"
#include "ingest/trace.h"

namespace assay {

constexpr size_t kRankCollectives = 4096;
constexpr int64_t kClockNoise = 50'000;  // ns; ends of one collective differ by less on one host

// One collective as one rank saw it, with what the rank did since its previous one had ended.
struct CollectiveUse {
  uint64_t key = 0;     // equal on all ranks that took part; 0: no metadata, see collectives.h
  uint32_t name = 0;    // into RankSummary::names
  uint32_t stream = 0;  // the how-manieth of the rank's streams of communication
  bool point_to_point = false;
  bool sends = false;                // point to point: this rank's end of it, where it is stated
  int64_t start_ns = 0, end_ns = 0;  // wall clock where the file knows it
  int64_t exposed_ns = 0;            // of its duration, not covered by the rank's own compute
  // Between the end of the collective before (or the window's start) and its own start:
  int64_t compute_ns = 0;  // the device computed
  int64_t data_ns = 0;     // the host was in the data loader and the device idle
  int32_t kernels = 0;     // that ran
};

struct RankSummary {
  std::string file;
  int rank = -1;  // -1: not stated
  int world_size = 0;
  std::string host;     // from the file's name where it follows tensorboard's pattern; else empty
  std::string device;   // `NVIDIA H200`
  Breakdown breakdown;  // of the whole file
  std::vector<int64_t> steps_ns;           // durations of its profiler steps
  int64_t data_ns = 0;                     // the host in the data loader, union
  std::vector<CollectiveUse> collectives;  // in order of start
  std::vector<std::string> names;          // [0] is empty; untrusted
  bool has_metadata = false;               // process group and sequence number are known
};

RankSummary summarise(const Trace&);

struct MatchedMember {
  int32_t rank = 0;                  // index into RanksDiagnosis::ranks
  uint32_t use = 0;                  // index into its collectives
  int64_t start_ns = 0, end_ns = 0;  // clocks corrected
  int64_t waiting_ns = 0;
};

struct MatchedCollective {
  std::string name;                    // sanitised
  std::vector<MatchedMember> members;  // in order of rank
  int32_t first = 0, last = 0;         // ranks (indices) that arrived first and last
  int64_t skew_ns = 0, end_skew_ns = 0, wire_ns = 0;
  int64_t shortest_ns = 0, longest_ns = 0;  // durations of kernels
  bool point_to_point = false;
};

struct RankView {
  int rank = 0;  // the job's number, or the position in the folder where it is not stated
  std::string file, host;
  int64_t clock_offset_ns = 0;  // its clock minus the others'; corrected when above kClockNoise
  bool corrected = false;
  Breakdown breakdown;
  int64_t waiting_ns = 0;  // for others, in all matched collectives
  int64_t blamed_ns = 0;   // skew of the collectives at which it came last
  int32_t last_at = 0;     // how many those are
  int64_t wire_ns = 0;     // of the collectives it took part in
  int64_t late_ns = 0;     // its work between collectives beyond the median rank's, summed
};

// One stretch of the job's critical path: local work of a rank up to the collective at which it
// came last, or the wire time of a collective.
struct JobSegment {
  int32_t rank = 0;  // index into RanksDiagnosis::ranks
  bool wire = false;
  std::string name;  // of the collective it leads to or is
  int64_t start_ns = 0, duration_ns = 0;
  int64_t compute_ns = 0, data_ns = 0;  // of local work; the rest is host, launches, copies
};

struct RanksDiagnosis {
  std::vector<RankView> ranks;
  std::vector<MatchedCollective> collectives;  // in order of time
  size_t unmatched = 0;                        // collectives that only one of the present ranks has
  std::vector<int> missing;  // ranks of the world that no file is of; at most 64 listed
  size_t missing_count = 0;
  std::vector<JobSegment> path;  // in order of time
  // Profiler steps in the window and how long they take, of the median rank. Gains are those of one
  // step; of the whole window where the files have no steps (0).
  int steps = 0;
  Seconds step;
  Seconds replayed;  // from the first collective's end to the last one's, simulated
  Analysis analysis;
};

RanksDiagnosis diagnose_ranks(std::vector<RankSummary>);

// The operators and kernels of a stretch of the job's path, from the trace of its rank: traces are
// not kept, so it is read again for the few stretches that matter.
CriticalPath detail(const RanksDiagnosis&, const JobSegment&, const Trace&);

}  // namespace assay

// The job as a graph of collectives: each rank works from the end of one to the start of the next,
// all members wait for the last of them, and the wire time follows. Replaying it with other times
// of work or of wire says what a change gives back; waiting is never just deleted.
//
// Internal to ranks*.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "diagnose/ranks.h"

namespace assay {

struct JobMember {
  int32_t rank = 0;
  uint32_t use = 0;      // index into the rank's collectives
  int32_t before = -1;   // the collective that this rank had finished last; -1: none
  int64_t local_ns = 0;  // its work since then
};

struct JobCollective {
  uint32_t first = 0, end = 0;  // members [first, end)
  int64_t wire_ns = 0;
  int64_t anchor_ns = 0;  // when its last member arrived, for members without a `before`
  bool point_to_point = false;
  // Whether the work of its members since `before` can be compared. Not at transfers, whose ends do
  // different things; and not where some members come from a send, others from a receive, others
  // from neither: they are stages of a pipeline, and the first one ends last by its schedule.
  bool comparable = true;
};

struct JobGraph {
  std::vector<JobMember> members;
  std::vector<JobCollective> collectives;  // in the order of RanksDiagnosis::collectives
};

JobGraph job_graph(const RanksDiagnosis&, const std::vector<RankSummary>&);

// From the first collective's start to the last one's end, with local work and wire time as given.
int64_t replay_job_ns(const JobGraph&, const std::function<int64_t(const JobMember&)>& local,
                      const std::function<int64_t(const JobCollective&)>& wire);

// Median over the members that `counts`; -1: there is none.
int64_t median_over(const JobGraph&, const JobCollective&,
                    const std::function<int64_t(const JobMember&)>& value,
                    const std::function<bool(const JobMember&)>& counts);

// Fills late_ns, replayed, path, and the analysis.
void judge_ranks(RanksDiagnosis&, const std::vector<RankSummary>&);

}  // namespace assay

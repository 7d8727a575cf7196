#include "diagnose/ranks_replay.h"

#include <algorithm>

namespace assay {

JobGraph job_graph(const RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  JobGraph graph;
  std::vector<std::vector<std::pair<int64_t, int32_t>>> ends(ranks.size());  // end, collective
  for (size_t c = 0; c < d.collectives.size(); ++c)
    for (const MatchedMember& m : d.collectives[c].members)
      ends[static_cast<size_t>(m.rank)].emplace_back(m.end_ns, static_cast<int32_t>(c));
  for (auto& of_rank : ends) std::sort(of_rank.begin(), of_rank.end());
  for (size_t c = 0; c < d.collectives.size(); ++c) {
    const MatchedCollective& collective = d.collectives[c];
    JobCollective job;
    job.first = static_cast<uint32_t>(graph.members.size());
    job.wire_ns = collective.wire_ns;
    job.point_to_point = collective.point_to_point;
    for (const MatchedMember& m : collective.members) {
      job.anchor_ns = m.start_ns + m.waiting_ns;
      const std::vector<std::pair<int64_t, int32_t>>& own = ends[static_cast<size_t>(m.rank)];
      // What had ended when it started; order of time makes it come earlier in the list, too.
      auto before = std::upper_bound(own.begin(), own.end(), std::pair{m.start_ns, INT32_MAX});
      while (before != own.begin() && (before - 1)->second >= static_cast<int32_t>(c)) --before;
      JobMember member{m.rank, m.use, -1, 0};
      if (before != own.begin()) {
        member.before = (before - 1)->second;
        member.local_ns = m.start_ns - (before - 1)->first;
      }
      graph.members.push_back(member);
    }
    job.end = static_cast<uint32_t>(graph.members.size());
    graph.collectives.push_back(job);
  }
  return graph;
}

int64_t replay_job_ns(const JobGraph& graph, const std::function<int64_t(const JobMember&)>& local,
                      const std::function<int64_t(const JobCollective&)>& wire) {
  if (graph.collectives.empty()) return 0;
  const int64_t zero = graph.collectives[0].anchor_ns;
  std::vector<int64_t> end(graph.collectives.size(), 0);
  int64_t last = 0;
  for (size_t c = 0; c < graph.collectives.size(); ++c) {
    const JobCollective& collective = graph.collectives[c];
    int64_t start = 0;
    bool follows = false;
    for (uint32_t m = collective.first; m < collective.end; ++m) {
      const JobMember& member = graph.members[m];
      if (member.before < 0) continue;
      follows = true;
      start = std::max(start, end[static_cast<size_t>(member.before)] + local(member));
    }
    if (!follows) start = std::max<int64_t>(0, collective.anchor_ns - zero);
    end[c] = start + wire(collective);
    last = std::max(last, end[c]);
  }
  return last;
}

int64_t median_over(const JobGraph& graph, const JobCollective& collective,
                    const std::function<int64_t(const JobMember&)>& value,
                    const std::function<bool(const JobMember&)>& counts) {
  std::vector<int64_t> values;
  for (uint32_t m = collective.first; m < collective.end; ++m)
    if (graph.members[m].before >= 0 && counts(graph.members[m]))
      values.push_back(value(graph.members[m]));
  if (values.empty()) return -1;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  const int64_t below =
      *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half));
  return below + (values[half] - below) / 2;
}

}  // namespace assay

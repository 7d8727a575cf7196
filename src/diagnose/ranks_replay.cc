#include "diagnose/ranks_replay.h"

#include <algorithm>

namespace assay {

namespace {

struct End {
  int64_t at_ns = 0;
  int32_t collective = 0;
  uint32_t use = 0;
  bool operator<(const End& other) const {
    return std::pair{at_ns, collective} < std::pair{other.at_ns, other.collective};
  }
};

enum class After { kNothing, kCollective, kSend, kReceive };

}  // namespace

JobGraph job_graph(const RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  JobGraph graph;
  std::vector<std::vector<End>> ends(ranks.size());
  for (size_t c = 0; c < d.collectives.size(); ++c)
    for (const MatchedMember& m : d.collectives[c].members)
      ends[static_cast<size_t>(m.rank)].push_back({m.end_ns, static_cast<int32_t>(c), m.use});
  for (auto& of_rank : ends) std::sort(of_rank.begin(), of_rank.end());
  for (size_t c = 0; c < d.collectives.size(); ++c) {
    const MatchedCollective& collective = d.collectives[c];
    JobCollective job;
    job.first = static_cast<uint32_t>(graph.members.size());
    job.wire_ns = collective.wire_ns;
    job.point_to_point = collective.point_to_point;
    job.comparable = !collective.point_to_point;
    After all = After::kNothing;
    for (const MatchedMember& m : collective.members) {
      job.anchor_ns = m.start_ns + m.waiting_ns;
      const std::vector<End>& own = ends[static_cast<size_t>(m.rank)];
      // What had ended when it started; order of time makes it come earlier in the list, too.
      auto before = std::upper_bound(own.begin(), own.end(), End{m.start_ns, INT32_MAX, 0});
      while (before != own.begin() && (before - 1)->collective >= static_cast<int32_t>(c)) --before;
      JobMember member{m.rank, m.use, -1, 0};
      if (before != own.begin()) {
        const End& last = *(before - 1);
        member.before = last.collective;
        member.local_ns = m.start_ns - last.at_ns;
        const CollectiveUse& use = ranks[static_cast<size_t>(m.rank)].collectives[last.use];
        const After after = !use.point_to_point ? After::kCollective
                            : use.sends         ? After::kSend
                                                : After::kReceive;
        job.comparable = job.comparable && (all == After::kNothing || all == after);
        all = after;
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

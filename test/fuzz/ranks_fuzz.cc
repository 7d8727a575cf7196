// Any bytes as the traces of several ranks (files apart by a line `---`): whatever the reader makes
// of them has a critical path no longer than itself, a summary, and a diagnosis.
#include <cstdint>

#include "base/assert.h"
#include "diagnose/critical_path.h"
#include "diagnose/ranks.h"
#include "ingest/kineto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 * 1024) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<assay::RankSummary> ranks;
  while (!rest.empty() && ranks.size() < 8) {
    const size_t end = rest.find("\n---\n");
    assay::Diagnostics warnings;
    const assay::Result<assay::Trace> trace =
        assay::read_kineto_text(rest.substr(0, end), "fuzz.json", warnings);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 5);
    if (!trace) continue;
    const assay::CriticalPath path = assay::critical_path(*trace);
    int64_t sum = 0;
    for (const assay::PathSegment& segment : path.segments) {
      ASSERT(segment.duration_ns > 0);
      if (segment.kind != assay::PathKind::kGap) sum += segment.duration_ns;
    }
    ASSERT(sum == path.total_ns);
    for (size_t step = 0; step < trace->steps.size(); ++step)
      (void)assay::critical_path_of_step(*trace, step);
    ranks.push_back(assay::summarise(*trace));
  }
  const assay::RanksDiagnosis d = assay::diagnose_ranks(ranks);
  for (const assay::MatchedCollective& c : d.collectives) ASSERT(c.members.size() >= 2);
  for (const assay::Finding& f : d.analysis.findings)
    ASSERT(f.share >= assay::kWorthFixing && !f.evidence.empty() && !f.where.empty());
  return 0;
}

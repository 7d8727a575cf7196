// Which dumps belong together, and what each incident comes to.
//
// The ranks of one incident may lie in one folder or be spread over several (one a host). Folders
// are incidents of their own only where a rank comes from more than one of them with dumps that
// differ: mixed, the dumps of one incident would accuse ranks of another.
#include <map>

#include "diagnose/collect.h"
#include "diagnose/hang.h"
#include "diagnose/hang_evidence.h"

namespace assay {
namespace {

bool folders_conflict(const std::vector<FlightDump>& dumps) {
  std::map<int32_t, const FlightDump*> first;
  for (const FlightDump& dump : dumps) {
    const auto [seen, is_new] = first.emplace(dump.rank, &dump);
    if (is_new || dump.rank < 0 || folder_of(seen->second->file) == folder_of(dump.file)) continue;
    if (!same_dump(*seen->second, dump)) return true;
  }
  return false;
}

void analyse_incident(std::vector<FlightDump> dumps, const std::string& title, const Collected& c,
                      Diagnosis& d) {
  HangAccount account;
  account.folder = folder_of(dumps.front().file);
  keep_one_dump_per_rank(dumps, d.problems);
  HangReport hang =
      diagnose_hang(dumps, hang_evidence(dumps, c.kernel_logs, c.telemetry, c.nccl_tests));
  account.hung = hang.hung;
  account.convicted = hang.convicted;
  account.by_evidence = hang.by_evidence;
  account.mismatched = hang.mismatched;
  account.undecided = hang.undecided;
  account.no_dump = hang.no_dump;
  d.hangs.push_back(std::move(account));
  for (Finding& f : hang.analysis.findings) {
    f.title = title + f.title;
    d.findings.push_back(std::move(f));
  }
  for (OpenQuestion& open : hang.analysis.open) {
    open.text = title + open.text;
    d.open.push_back(std::move(open));
  }
  for (const std::string& note : hang.analysis.notes) d.notes.push_back(title + note);
}

}  // namespace

void analyse_hangs(Collected& c, Diagnosis& d) {
  if (!folders_conflict(c.dumps)) return analyse_incident(std::move(c.dumps), "", c, d);
  std::map<std::string, std::vector<FlightDump>> incidents;
  for (FlightDump& dump : c.dumps) incidents[folder_of(dump.file)].push_back(std::move(dump));
  for (auto& [folder, dumps] : incidents) {
    const size_t slash = folder.rfind('/');
    const std::string name = slash == std::string::npos ? folder : folder.substr(slash + 1);
    analyse_incident(std::move(dumps), sanitize(name, 40) + ": ", c, d);
  }
}

}  // namespace assay

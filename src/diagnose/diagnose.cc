#include "diagnose/diagnose.h"

#include <algorithm>

#include <fmt/format.h>

#include "diagnose/collect.h"

namespace assay {
namespace {

bool earlier(const Finding& a, const Finding& b) {
  if (a.urgent != b.urgent) return a.urgent;
  if (a.share != b.share) return a.share > b.share;
  return a.cause < b.cause;
}

// Moves what another finding stands in the way of behind that one.
void respect_order(std::vector<Finding>& findings) {
  for (size_t i = 0; i < findings.size(); ++i) {
    if (!findings[i].after) continue;
    const auto first = findings.begin() + static_cast<std::ptrdiff_t>(i);
    const auto blocker = std::find_if(first + 1, findings.end(), [&](const Finding& f) {
      return f.cause == *findings[i].after && !f.after;
    });
    if (blocker != findings.end()) std::rotate(first, blocker, blocker + 1);
  }
}

// Dumps, kernel logs, topologies and tests of the wires show faults, not what a job spends time on.
bool tells_time(const FileRead& f) {
  switch (f.kind) {
    case FileKind::kFlightRecorderPickle:
    case FileKind::kFlightRecorderJson:
    case FileKind::kNcclTests:
    case FileKind::kNcclTestsJson:
    case FileKind::kTopoMatrix:
    case FileKind::kNvlinkStatus:
    case FileKind::kNcclXml:
    case FileKind::kHwlocXml:
    case FileKind::kKernelLog:
      return false;
    default:
      return f.judged;
  }
}

}  // namespace

void rank_findings(Diagnosis& d, bool measured) {
  std::erase_if(d.findings, [](const Finding& f) {
    return f.cause == Cause::kHealthy || (!f.urgent && f.share < kWorthFixing);
  });
  std::stable_sort(d.findings.begin(), d.findings.end(), earlier);
  respect_order(d.findings);
  int number = 0;
  for (Finding& f : d.findings) {
    for (Evidence& e : f.evidence) e.id = fmt::format("e{}", ++number);
  }
  if (!d.findings.empty() || !measured) return;
  Finding healthy;
  healthy.cause = Cause::kHealthy;
  healthy.title = std::any_of(d.files.begin(), d.files.end(), tells_time)
                      ? "Nothing wrong here: no fault takes 3 % of the time"
                      : "Nothing wrong shows; none of these files says where time goes";
  healthy.confidence = d.open.empty() ? Confidence::kHigh : Confidence::kMedium;
  d.findings.push_back(std::move(healthy));
}

namespace {

// Dumps of a job that stands still, accounting that lost much and a kernel that panicked leave
// questions open rather than prove health; traces without device events say nothing of the device.
bool can_be_healthy(FileKind kind, const Diagnosis& d) {
  switch (kind) {
    case FileKind::kKinetoTrace:
      return d.step.has_value();
    case FileKind::kFlightRecorderPickle:
    case FileKind::kFlightRecorderJson:
    case FileKind::kKernelLog:
    case FileKind::kSacct:
    case FileKind::kSinfo:
    case FileKind::kSqueue:
    case FileKind::kScontrol:
      return d.open.empty();
    default:
      return true;
  }
}

}  // namespace

Diagnosis diagnose(const std::vector<std::string>& files, const DiagnoseOptions& options) {
  Diagnosis d;
  Collected collected;
  for (size_t i = 0; i < files.size(); ++i) {
    collect(files[i], options, collected, d);
    if (options.progress)
      options.progress(static_cast<double>(i + 1) / static_cast<double>(files.size()));
  }
  analyse(collected, d);
  rank_findings(d, std::any_of(d.files.begin(), d.files.end(), [&](const FileRead& f) {
                  return f.judged && can_be_healthy(f.kind, d);
                }));
  return d;
}

}  // namespace assay

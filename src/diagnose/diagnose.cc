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
      return f.judged && !f.moment;
  }
}

// How much is said where no fault was found, and how sure that is.
Finding healthy_finding(const Diagnosis& d) {
  Finding healthy;
  healthy.cause = Cause::kHealthy;
  const bool over_time = std::any_of(d.files.begin(), d.files.end(), tells_time);
  const bool traced = std::any_of(d.files.begin(), d.files.end(), [](const FileRead& f) {
    return tells_time(f) && !is_telemetry(f.kind);
  });
  healthy.title = "Nothing wrong shows; none of these files says where time goes";
  if (over_time) healthy.title = "Nothing wrong here: no fault takes 3 % of the time";
  if (over_time && !traced && d.idle_most >= kIdleAsked)
    healthy.title = "Nothing wrong shows in the time that the devices were busy";
  const bool moment = std::any_of(d.files.begin(), d.files.end(),
                                  [](const FileRead& f) { return f.judged && f.moment; });
  const bool sure = d.open.empty() && (over_time || !moment);
  healthy.confidence = sure ? Confidence::kHigh : Confidence::kMedium;
  return healthy;
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
  if (d.findings.empty() && measured) d.findings.push_back(healthy_finding(d));
}

namespace {

// Dumps of a job that stands still, accounting that lost much and a kernel that panicked leave
// questions open rather than prove health; traces without device events say nothing of the device,
// and devices that mostly idle show nothing of a job.
bool can_be_healthy(FileKind kind, const Diagnosis& d) {
  constexpr double kMostlyIdle = 0.5;
  if (is_telemetry(kind)) return d.idle_mean < kMostlyIdle;
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

namespace {

// What is missing from a file of this kind that was read, and how to get it.
Diagnostic lack_of(FileKind kind) {
  Diagnostic lack;
  const auto say = [&](const char* what, const char* help) {
    lack.message = fmt::format("nothing to diagnose: {}", what);
    lack.help = help;
    return lack;
  };
  switch (kind) {
    case FileKind::kKinetoTrace:
      return say("the trace has no device events",
                 "profile steps that run on the device, with ProfilerActivity.CUDA");
    case FileKind::kSacct:
      return say("there is no job here with GPUs and a start",
                 "sacct -aD -P -S START -E END --format=ALL, of a time in which jobs ran");
    case FileKind::kSinfo:
    case FileKind::kSqueue:
    case FileKind::kScontrol:
      return say("nodes and queues alone make no ledger",
                 "give the accounting, too: sacct -aD -P -S START -E END --format=ALL");
    default:
      if (!is_telemetry(kind))
        return say("nothing was recorded in it", "record it again, or copy the whole file");
      return say("no sample holds a value", "record for some minutes while the job runs");
  }
}

}  // namespace

Diagnostics lacking(const Diagnosis& d) {
  Diagnostics lacks;
  if (!d.findings.empty() || !d.open.empty() || !d.periods.empty() || d.step ||
      !d.what_ifs.empty() || !d.hangs.empty())
    return lacks;
  std::vector<FileKind> told;
  for (const FileRead& f : d.files) {
    if (!f.used || std::find(told.begin(), told.end(), f.kind) != told.end()) continue;
    told.push_back(f.kind);
    lacks.push_back(lack_of(f.kind));
    lacks.back().at.file = f.path == "-" ? "standard input" : sanitize(f.path);
  }
  return lacks;
}

}  // namespace assay

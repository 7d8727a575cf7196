#include "diagnose/diagnose.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "diagnose/collect.h"

namespace assay {
namespace {

constexpr size_t kFilesMost = 100'000;
constexpr int kFolderDepth = 2;

// The files of a folder in the order of their names; hidden ones are left out.
void list_folder(const std::filesystem::path& folder, int depth, std::vector<std::string>& files) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(".")) continue;
    entries.push_back(it->path());
    if (entries.size() > kFilesMost) break;
  }
  std::sort(entries.begin(), entries.end());
  for (const std::filesystem::path& entry : entries) {
    if (files.size() >= kFilesMost) return;
    if (std::filesystem::is_directory(entry, error)) {
      if (depth > 1) list_folder(entry, depth - 1, files);
    } else if (std::filesystem::is_regular_file(entry, error)) {
      files.push_back(entry.string());
    }
  }
}

bool earlier(const Finding& a, const Finding& b) {
  if (a.urgent != b.urgent) return a.urgent;
  if (a.share != b.share) return a.share > b.share;
  return a.cause < b.cause;
}

}  // namespace

Result<std::vector<std::string>> list_files(const std::vector<std::string>& operands) {
  std::vector<std::string> files;
  for (const std::string& operand : operands) {
    std::error_code error;
    if (std::filesystem::is_directory(operand, error)) {
      const size_t before = files.size();
      list_folder(operand, kFolderDepth, files);
      if (files.size() == before)
        return tl::unexpected(Failure{sanitize(operand) + ": the folder holds no file"});
    } else if (operand == "-" || std::filesystem::exists(operand, error)) {
      files.push_back(operand);
    } else {
      return tl::unexpected(Failure{sanitize(operand) + ": no such file or folder"});
    }
  }
  return files;
}

void rank_findings(Diagnosis& d, bool measured) {
  std::erase_if(d.findings, [](const Finding& f) {
    return f.cause == Cause::kHealthy || (!f.urgent && f.share < kWorthFixing);
  });
  std::stable_sort(d.findings.begin(), d.findings.end(), earlier);
  int number = 0;
  for (Finding& f : d.findings) {
    for (Evidence& e : f.evidence) e.id = fmt::format("e{}", ++number);
  }
  if (!d.findings.empty() || !measured) return;
  Finding healthy;
  healthy.cause = Cause::kHealthy;
  healthy.title = "Nothing here is worth fixing: no cause gives back 3 % of the time";
  healthy.confidence = d.open.empty() ? Confidence::kHigh : Confidence::kMedium;
  d.findings.push_back(std::move(healthy));
}

namespace {

// Dumps of a job that stands still, and accounting that lost much, leave questions open rather than
// prove health; traces without device events say nothing of the device.
bool can_be_healthy(FileKind kind, const Diagnosis& d) {
  switch (kind) {
    case FileKind::kKinetoTrace:
      return d.step.has_value();
    case FileKind::kFlightRecorderPickle:
    case FileKind::kFlightRecorderJson:
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
                  return f.used && can_be_healthy(f.kind, d);
                }));
  return d;
}

}  // namespace assay

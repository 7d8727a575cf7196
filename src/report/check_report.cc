#include "report/check_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/result_json.h"

namespace assay {
namespace {

size_t errors(const Diagnostics& all) {
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [](const Diagnostic& d) { return d.severity == Severity::kError; }));
}

// The screen is as wide as it is; source lines stay whole.
std::string narrowed(const std::string& rendered, int width) {
  std::string out;
  for (size_t at = 0; at < rendered.size();) {
    const size_t end = std::min(rendered.find('\n', at), rendered.size());
    const std::string line = rendered.substr(at, end - at);
    const size_t help = line.find("= help: ");
    out += help == std::string::npos ? line : wrap(line, width, help + 2);
    out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string check_text(const std::vector<CheckedFile>& files, const Style& style) {
  std::string out;
  size_t bad = 0;
  for (const CheckedFile& f : files) {
    const size_t count = errors(f.report.problems);
    bad += count;
    if (!f.what.empty()) out += wrap(fmt::format("{}: {}", f.path, f.what), style.width, 2) + "\n";
    if (!f.report.problems.empty()) out += narrowed(render(f.report.problems), style.width) + "\n";
    if (!f.report.assumed.empty() && !style.quiet) {
      out += fmt::format("{}: assumed, because nothing was stated\n", f.path);
      for (const Assumption& a : f.report.assumed) {
        out += wrap(fmt::format("  {} = {}  ({})", a.path, a.value, a.why), style.width, 4) + "\n";
      }
      out += "\n";
    }
    if (count > 0)
      out += fmt::format("{} {} in {}\n", count, count == 1 ? "problem" : "problems", f.path);
  }
  if (bad == 0) {
    out += fmt::format("{} {}: no problems\n", files.size(), files.size() == 1 ? "file" : "files");
  }
  return out;
}

std::string check_json(const std::vector<CheckedFile>& files, const Stamp& stamp) {
  Json doc = start_document("assay.check/1", stamp);
  Json list = Json::array();
  for (const CheckedFile& f : files) {
    Json j;
    j["file"] = f.path;
    if (!f.what.empty()) j["what"] = f.what;
    j["errors"] = errors(f.report.problems);
    j["problems"] = diagnostics_json(f.report.problems);
    j["assumed"] = assumed_json(f.report.assumed);
    list.push_back(std::move(j));
  }
  doc["files"] = std::move(list);
  return print(doc);
}

std::string errors_json(const Diagnostics& problems, const Stamp& stamp) {
  Json doc = start_document("assay.error/1", stamp);
  doc["errors"] = Json::array();
  for (const Diagnostic& d : problems) {
    if (d.severity != Severity::kError) continue;
    const auto known = [](int place) { return place > 0 ? Json(place) : Json(nullptr); };
    doc["errors"].push_back({{"file", d.at.file.empty() ? Json(nullptr) : Json(d.at.file)},
                             {"line", known(d.at.line)},
                             {"column", known(d.at.column)},
                             {"message", d.message},
                             {"fix", d.help}});
  }
  return print(doc);
}

}  // namespace assay

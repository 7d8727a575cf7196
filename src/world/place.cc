#include "world/place.h"

#include "base/file.h"
#include "config/value.h"

namespace assay {
namespace {

constexpr std::string_view kStandardInput = "standard input";  // as inputs.cc calls it

const Origin* stated_within(const Origins& origins, const std::string& path) {
  for (auto o = origins.lower_bound(path); o != origins.end(); ++o) {
    if (!o->first.starts_with(path)) break;
    const bool within = o->first.size() == path.size() || o->first[path.size()] == '.' ||
                        o->first[path.size()] == '[';
    const std::string& file = o->second.file;
    if (within && !file.empty() && !file.starts_with("catalog/")) return &o->second;
  }
  return nullptr;
}

const Origin* nearest_stated(const Origins& origins, std::string path) {
  for (;;) {
    if (const Origin* found = stated_within(origins, path)) return found;
    const size_t end = path.find_last_of(".[");
    if (end == std::string::npos) return nullptr;
    path.resize(end);
  }
}

}  // namespace

Diagnostic problem_of(const Origins& origins, std::string field, std::string message,
                      std::string help) {
  const Origin* origin = nearest_stated(origins, std::move(field));
  if (origin == nullptr) return problem_at({}, std::move(message), std::move(help));
  Sources sources;
  Mark at;
  const std::string path = origin->file == kStandardInput ? "-" : origin->file;
  if (origin->line > 0 && file_exists(path)) {
    if (Result<std::string> text = read_file(path))
      at = {sources.add(origin->file, std::move(*text)), origin->offset, origin->length};
  }
  Diagnostic d = problem_at(at, std::move(message), std::move(help));
  // A file that has changed since, or cannot be read twice.
  if (at.source == nullptr || d.at.line != origin->line) {
    d.at = {origin->file, origin->line, 0, 1};
    d.source_line.clear();
  }
  return d;
}

}  // namespace assay

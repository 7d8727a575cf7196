#include "report/json.h"

#include <algorithm>

namespace assay {

std::optional<Json> read_document(const std::string& text, const std::string& file,
                                  std::string_view schema, std::string problem, std::string help,
                                  Diagnostics& problems) {
  Diagnostic d;
  d.message = std::move(problem);
  d.help = std::move(help);
  d.at.file = sanitize(file);
  try {
    Json doc = Json::parse(text);
    const auto found = doc.is_object() ? doc.find("schema") : doc.end();
    if (found != doc.end() && (schema.empty() || *found == schema)) return doc;
  } catch (const Json::parse_error& error) {  // the only way to learn where
    const size_t end = std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0);
    const std::string_view before(text.data(), end);
    const size_t line = before.rfind('\n');
    d.message += ": the file is cut or broken here";
    d.at.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    d.at.column = static_cast<int>(end - (line == std::string_view::npos ? 0 : line + 1)) + 1;
  } catch (const Json::exception&) {  // a number that no double holds
  }
  problems.push_back(std::move(d));
  return std::nullopt;
}

}  // namespace assay

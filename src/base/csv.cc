#include "base/csv.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace assay {
namespace {

// People write `GPU` and ` gpu `.
bool same_name(std::string_view a, std::string_view b) {
  a = trimmed(a), b = trimmed(b);
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const CsvLimits& limits)
      : text_(text), limits_(limits) {
    table_.file = file;
  }

  CsvTable parse() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") pos_ = counted_ = 3;
    if (is_no_text()) return std::move(table_);
    while (pos_ < text_.size() && !full_) {
      CsvRow row = record();
      // An empty line is no record, wherever it stands.
      if (row.fields.size() == 1 && row.fields[0].empty() && !quoted_) continue;
      keep(std::move(row));
    }
    if (table_.header.empty())
      problem(1, "the table is empty",
              "write the names of its columns first, then a row for each run");
    if (unlisted_ > 0) {
      Diagnostic d;
      d.message = fmt::format("{} more problems in this table", unlisted_);
      d.at.file = table_.file;
      table_.problems.push_back(d);
    }
    return std::move(table_);
  }

 private:
  // Another encoding, or bytes that are no table from the start. One among rows costs its field.
  bool is_no_text() {
    const size_t nul = text_.find('\0');
    const bool wide = text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF");
    if (nul == std::string_view::npos || (!wide && text_.find_first_of("\r\n") < nul)) return false;
    problem(1, wide ? "this is UTF-16 text" : "a NUL byte: this is not a text table",
            wide ? "save it as UTF-8 (Excel: CSV UTF-8)" : "save it as comma-separated text",
            static_cast<int>(nul) + 1);
    return true;
  }

  void problem(int line, std::string message, std::string help, int column = 0) {
    if (table_.problems.size() >= limits_.problems) {
      ++unlisted_;
      return;
    }
    Diagnostic d;
    d.message = std::move(message);
    d.help = std::move(help);
    d.at.file = table_.file;
    d.at.line = line;
    d.at.column = column;
    table_.problems.push_back(std::move(d));
  }

  void keep(CsvRow row) {
    if (table_.header.empty()) {
      take_header(std::move(row));
      return;
    }
    if (row.fields.size() != table_.header.size()) {
      const bool more = row.fields.size() > table_.header.size();
      problem(more ? extra_line_ : line_behind_,
              fmt::format("this row has {} fields, the header has {}", row.fields.size(),
                          table_.header.size()),
              more ? "quote a field that holds commas, or remove what is too much"
                   : "leave empty what is not stated, but write its comma",
              static_cast<int>(more ? extra_column_ : column_behind_));
    }
    cells_ += row.fields.size();
    if (cells_ > limits_.cells) {
      const int64_t lost = 1 + lines_from(pos_);
      problem(row.line,
              fmt::format("the table has more than {} cells: from here on {} {} not read",
                          limits_.cells, lost, lost == 1 ? "line is" : "lines are"),
              "split it");
      table_.lost_lines += lost;
      full_ = true;
      return;
    }
    table_.rows.push_back(std::move(row));
  }

  // Lines with something on them.
  int64_t lines_from(size_t at) const {
    int64_t lines = 0;
    bool blank = true;
    for (; at < text_.size(); ++at) {
      const bool end = text_[at] == '\n' || text_[at] == '\r';
      if (end && !blank) ++lines;
      blank = end;
    }
    return lines + (blank ? 0 : 1);
  }

  // A header of one field that holds another separator: rows would be of one cell, too.
  bool is_parted_otherwise(const CsvRow& row) {
    if (row.fields.size() != 1 || quoted_) return false;
    const size_t at = row.fields[0].find_first_of(";\t|");
    if (at == std::string::npos) return false;
    table_.separator = row.fields[0][at];
    table_.lost_lines = lines_from(pos_);
    const std::string name =
        table_.separator == '\t' ? "tabs" : fmt::format("`{}`", table_.separator);
    problem(row.line, fmt::format("the fields are separated by {}, not by commas", name),
            "save it with commas (and decimal points), as in `id,model_name,gpu`",
            static_cast<int>(row.starts[0] + at));
    full_ = true;
    return true;
  }

  void take_header(CsvRow row) {
    if (is_parted_otherwise(row)) {
      table_.header = std::move(row.fields);
      return;
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < row.fields.size(); ++i) {
      const std::string name = lower(trimmed(row.fields[i]));
      if (name.empty() || seen.insert(name).second) continue;
      problem(row.line, fmt::format("column `{}` appears twice", sanitize(row.fields[i], 60)),
              "remove or rename one; the first counts", static_cast<int>(row.starts[i]));
    }
    table_.header = std::move(row.fields);
  }

  // One record; leaves pos_ behind its line end.
  CsvRow record() {
    CsvRow row;
    row.line = line_;
    quoted_ = false;
    bool too_wide = false;
    for (;;) {
      const uint32_t start = line_ == row.line ? column_here() : 0;
      if (row.fields.size() == table_.header.size())
        extra_line_ = line_, extra_column_ = column_here();
      std::string field = pos_ < text_.size() && text_[pos_] == '"' ? quoted_field() : bare_field();
      if (std::erase(field, '\0') > 0)
        problem(row.line, "a NUL byte in this field", "remove it; the field is read without it",
                static_cast<int>(start));
      if (row.fields.size() < limits_.columns) {
        row.fields.push_back(std::move(field));
        row.starts.push_back(start);
      } else if (!too_wide) {
        too_wide = true;
        problem(row.line, fmt::format("more than {} fields in one row", limits_.columns),
                "the rest is not read", static_cast<int>(start));
      }
      if (pos_ < text_.size() && text_[pos_] == ',') {
        ++pos_;
        continue;
      }
      line_behind_ = line_, column_behind_ = column_here();
      row.end = line_ == row.line ? column_behind_ : 0;
      if (pos_ < text_.size()) line_end();
      return row;
    }
  }

  std::string bare_field() {
    const size_t start = pos_;
    const uint32_t column = column_here();
    bool stray_quote = false;
    while (pos_ < text_.size() && !ends_field(text_[pos_])) {
      stray_quote = stray_quote || text_[pos_] == '"';
      ++pos_;
    }
    if (stray_quote) {
      problem(line_, "a quote inside a field that does not start with one",
              "quote the whole field and write each inner quote twice", static_cast<int>(column));
    }
    return std::string(text_.substr(start, pos_ - start));
  }

  std::string quoted_field() {
    const int opened = line_;
    const uint32_t column = column_here();
    quoted_ = true;
    std::string field;
    ++pos_;
    const size_t inside = pos_;
    for (;;) {
      if (pos_ >= text_.size()) {
        const int64_t lost = lines_from(std::min(text_.find_first_of("\r\n", inside), pos_));
        table_.lost_lines += lost;
        problem(opened,
                lost == 0
                    ? std::string("this quoted field never ends")
                    : fmt::format("this quoted field never ends and takes in the {} behind it",
                                  lost == 1 ? "line" : fmt::format("{} lines", lost)),
                "add the closing quote", static_cast<int>(column));
        return field;
      }
      const char c = text_[pos_++];
      if (c == '"') {
        if (pos_ >= text_.size() || text_[pos_] != '"') break;
        ++pos_;
      }
      const bool before_lf = pos_ < text_.size() && text_[pos_] == '\n';
      const bool new_line = c == '\n' || (c == '\r' && !before_lf);
      if (new_line) begin_line();
      field += c;
    }
    if (pos_ < text_.size() && !ends_field(text_[pos_])) {
      problem(line_, "text after the closing quote of a field",
              "quote the whole field and write each inner quote twice",
              static_cast<int>(column_here()));
      field += bare_field();
    }
    return field;
  }

  static bool ends_field(char c) { return c == ',' || c == '\n' || c == '\r'; }

  void line_end() {
    if (text_[pos_] == '\r' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '\n') ++pos_;
    ++pos_;
    begin_line();
  }

  void begin_line() {
    ++line_;
    column_ = 1;
    counted_ = pos_;
  }
  // Of pos_, in characters; what was counted before is not counted again.
  uint32_t column_here() {
    for (; counted_ < pos_; ++counted_) {
      if ((static_cast<unsigned char>(text_[counted_]) & 0xC0) != 0x80) ++column_;
    }
    return column_;
  }

  std::string_view text_;
  const CsvLimits& limits_;
  CsvTable table_;
  size_t pos_ = 0;
  int line_ = 1;
  uint32_t column_ = 1;  // of counted_
  size_t counted_ = 0;
  // Of the last record: the first field that the header has no name for, and what is behind all.
  int extra_line_ = 0, line_behind_ = 0;
  uint32_t extra_column_ = 0, column_behind_ = 0;
  bool quoted_ = false;  // the record has a quoted field, so an empty one was meant
  bool full_ = false;
  size_t cells_ = 0;
  size_t unlisted_ = 0;
};

}  // namespace

int CsvTable::column(std::string_view name) const {
  for (size_t i = 0; i < header.size(); ++i) {
    if (same_name(header[i], name)) return static_cast<int>(i);
  }
  return -1;
}

std::string_view CsvTable::cell(const CsvRow& row, int column) const {
  if (column < 0 || static_cast<size_t>(column) >= row.fields.size()) return {};
  return row.fields[static_cast<size_t>(column)];
}

std::string_view CsvTable::cell(const CsvRow& row, std::string_view name) const {
  return cell(row, column(name));
}

Position CsvTable::place(const CsvRow& row, std::string_view name) const {
  const int at = column(name);
  Position p;
  p.file = file;
  p.line = row.line;
  if (at < 0) return p;
  if (static_cast<size_t>(at) >= row.starts.size()) {
    p.column = static_cast<int>(row.end);
    return p;
  }
  p.column = static_cast<int>(row.starts[static_cast<size_t>(at)]);
  const std::string& text = row.fields[static_cast<size_t>(at)];
  p.length = std::max(1, static_cast<int>(std::min<size_t>(text.size(), 200)));
  return p;
}

CsvTable parse_csv(std::string_view text, const std::string& file, const CsvLimits& limits) {
  return Parser(text, file, limits).parse();
}

Result<CsvTable> read_csv(const std::string& path, size_t max_bytes) {
  Result<std::string> text = read_file(path, max_bytes);
  if (!text) return tl::unexpected(text.error());
  return parse_csv(*text, path);
}

}  // namespace assay

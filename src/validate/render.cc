// The report as a screen and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "validate/validate.h"

namespace assay {
namespace {

std::string thousands(int64_t n) {
  std::string digits = std::to_string(n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// --- text --------------------------------------------------------------------------------------

constexpr double kLongShare = 99999.5;  // percent; beyond it digits would fill the column

std::string share(const std::optional<double>& x) {
  if (!x || !std::isfinite(*x)) return "-";
  const double percent = std::abs(*x * 100);
  return percent >= kLongShare ? fmt::format("{:.0e}", *x * 100)
         : percent >= 99.95    ? fmt::format("{:.0f}", *x * 100)
                               : fmt::format("{:.1f}", *x * 100);
}

std::string signed_share(const std::optional<double>& x) {
  if (!x || !std::isfinite(*x)) return "-";
  const double percent = std::abs(*x * 100);
  return percent >= kLongShare ? fmt::format("{:+.0e}", *x * 100)
         : percent >= 9999.95  ? fmt::format("{:+.0f}", *x * 100)
                               : fmt::format("{:+.1f}", *x * 100);
}

constexpr int kWide = 95;  // all columns; a narrower screen has no memory and regret

// Counts keep a blank before them, however long they are; names give up the room.
struct Columns {
  size_t name = 24, rows = 6, scored = 7;

  explicit Columns(const GroupStats& all) {
    const size_t both = name + rows + scored;
    rows = std::max(rows, thousands(all.rows).size() + 1);
    scored = std::max(scored, thousands(all.predicted).size() + 1);
    name = both - rows - scored;
  }
};

// A longer one ends in three dots.
std::string short_name(const std::string& name, size_t most) {
  std::string whole = sanitize(name);
  return whole.size() <= most ? whole : sanitize(name, most - 3);
}

std::string table_row(const GroupStats& g, const Columns& c, int width) {
  std::string row = fmt::format("  {:<{}}{:>{}}{:>{}}{:>8}{:>8}{:>8}{:>8}{:>8}",
                                short_name(g.name, c.name - 1), c.name, thousands(g.rows), c.rows,
                                thousands(g.predicted), c.scored, share(g.median), share(g.mean),
                                share(g.p90), signed_share(g.bias), share(g.coverage));
  if (width >= kWide) row += fmt::format("{:>8}{:>8}", share(g.memory_median), share(g.regret_max));
  return row + "\n";
}

std::string table_head(const std::string& title, const Columns& c, int width) {
  std::string row =
      fmt::format("\n{:<{}}{:>{}}{:>{}}{:>8}{:>8}{:>8}{:>8}{:>8}", title, c.name + 2, "rows",
                  c.rows, "scored", c.scored, "median", "mean", "p90", "bias", "cover");
  if (width >= kWide) row += fmt::format("{:>8}{:>8}", "memory", "regret");
  return row + "\n";
}

std::string status_counts(const ValidateReport& report) {
  std::array<int64_t, 4> all{}, usable{};
  for (const RowResult& r : report.rows) {
    ++all[static_cast<size_t>(r.status)];
    if (r.usable) ++usable[static_cast<size_t>(r.status)];
  }
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", thousands(all[i]),
                       enum_names(RunStatus{})[i]);
  }
  return out;
}

// `Unusable  1 by `quality`, 2 without `hidden``, in lines of `width`; empty: no parts.
std::string listed(const std::string& title, const std::vector<std::string>& parts, int width) {
  std::string out, line = title;
  for (const std::string& text : parts) {
    const std::string part = (line == title ? "  " : ", ") + text;
    if (line != title && line.size() + part.size() + 1 > static_cast<size_t>(width)) {
      out += line + ",\n";
      line = std::string(title.size() + 2, ' ') + text;
      continue;
    }
    line += part;
  }
  return parts.empty() ? "" : out + line + "\n";
}

// Rows that are left out of the score, by the column to blame; empty: none.
std::string unusable_text(const ValidateReport& report, int width) {
  std::map<std::string, int64_t> columns;
  for (const RowResult& r : report.rows) {
    if (!r.usable) ++columns[r.unusable_for];
  }
  std::vector<std::string> parts;
  for (const auto& [column, rows] : columns) {
    const bool judged = column == "quality" || column == "check";
    parts.push_back(fmt::format("{} {} `{}`", thousands(rows), judged ? "by" : "without", column));
  }
  return listed("Unusable", parts, width);
}

// Cells that are taken as blank because nothing possible stands in them, by column.
std::string unread_text(const ValidateReport& report, int width) {
  std::map<std::string, int64_t> columns;
  for (const RowResult& r : report.rows) {
    for (const IgnoredCell& cell : r.ignored) ++columns[cell.column];
  }
  std::vector<std::string> parts;
  for (const auto& [column, cells] : columns)
    parts.push_back(fmt::format("{} `{}`", thousands(cells), column));
  if (!parts.empty()) parts.back() += " (unreadable: taken as blank)";
  return listed("Cells   ", parts, width);
}

std::string verdict(const GroupStats& all, int width) {
  if (!all.median) return "No usable row could be scored.\n";
  const std::string errors = fmt::format("Median error {} %, p90 {} %, bias {} %;",
                                         share(all.median), share(all.p90), signed_share(all.bias));
  std::string out = fmt::format("ranges cover {} % of rows, {} % wide", share(all.coverage),
                                share(all.range_width));
  out += all.memory_median ? fmt::format("; memory {} %.\n", share(all.memory_median)) : ".\n";
  const bool fits = errors.size() + out.size() <= static_cast<size_t>(width);
  return errors + (fits ? " " : "\n") + out;
}

// --- JSON --------------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : sanitize(text, 400)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string number(const std::optional<double>& x) {
  if (!x || !std::isfinite(*x)) return "null";
  return fmt::format("{:.6g}", *x);
}

std::string strings(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& s : list) out += (out.size() > 1 ? "," : "") + quoted(s);
  return out + "]";
}

std::string row_json(const RowResult& r) {
  return fmt::format(
      R"({{"id":{},"status":"{}","reason":{},"line":{},"column":{},"fix":{},)"
      R"("accelerator":{},"stack":{},"measured_s":{},"predicted_s":{},"low_s":{},"high_s":{},)"
      R"("measured_mem_gb":{},"predicted_mem_gb":{},"assumed":{}}})",
      quoted(r.id), enum_names(RunStatus{})[static_cast<size_t>(r.status)],
      r.reason.empty() ? "null" : quoted(r.reason), r.line,
      r.column.empty() ? "null" : quoted(r.column), r.fix.empty() ? "null" : quoted(r.fix),
      r.accelerator.empty() ? "null" : quoted(r.accelerator),
      r.stack.empty() ? "null" : quoted(r.stack), number(r.measured_s), number(r.predicted_s),
      number(r.low_s), number(r.high_s), number(r.measured_mem_gb), number(r.predicted_mem_gb),
      strings(r.assumed));
}

std::string group_json(const GroupStats& g) {
  return fmt::format(
      R"({{"kind":"{}","name":{},"rows":{},"usable":{},"predicted":{},"sources":{},)"
      R"("median_error":{},"mean_error":{},"p90_error":{},"bias":{},"coverage":{},)"
      R"("range_width":{},"memory_rows":{},"memory_median_error":{},"memory_p90_error":{},)"
      R"("sweeps":{},"regret_max":{},"regret_mean":{},"oom_rows":{},"oom_called_fitting":{}}})",
      g.kind, quoted(g.name), g.rows, g.usable, g.predicted, g.sources, number(g.median),
      number(g.mean), number(g.p90), number(g.bias), number(g.coverage), number(g.range_width),
      g.memory_rows, number(g.memory_median), number(g.memory_p90), g.sweeps, number(g.regret_max),
      number(g.regret_mean), g.oom_rows, g.oom_called_fitting);
}

}  // namespace

std::string to_text(const ValidateReport& report, int width) {
  static const GroupStats kNone;
  const GroupStats& all = report.groups.empty() ? kNone : report.groups.front();
  const Columns columns(all);
  std::string out = fmt::format(
      "Validate  {}: {} {}, {} usable, {} scored", sanitize(report.file, 60), thousands(all.rows),
      all.rows == 1 ? "row" : "rows", thousands(all.usable), thousands(all.predicted));
  if (report.lost_lines > 0) {
    out += fmt::format("; {} {} not read", thousands(report.lost_lines),
                       report.lost_lines == 1 ? "line" : "lines");
  }
  out += fmt::format("\nStatus    {}\n", status_counts(report));
  out += unusable_text(report, width) + unread_text(report, width);
  out += "Figures   errors of step time in %; scored: rows that are usable and predicted\n";
  static constexpr std::array<std::array<std::string_view, 2>, 4> kTables = {
      {{"source", "By source"},
       {"class", "By class"},
       {"accelerator", "By accelerator"},
       {"size", "By accelerators"}}};
  for (const auto& [kind, title] : kTables) {
    std::string body;
    for (const GroupStats& g : report.groups) {
      if (g.kind == kind && (g.predicted > 0 || kind == "source"))
        body += table_row(g, columns, width);
    }
    if (!body.empty()) out += table_head(std::string(title), columns, width) + body;
  }
  out +=
      all.sources > 0
          ? fmt::format("\nGroups of several sources weigh the {} {} of {} rows or more alike.\n",
                        all.sources, all.sources == 1 ? "source" : "sources", kLeastRowsPerSource)
          : fmt::format("\nNo source has {} rows: every row weighs the same.\n",
                        kLeastRowsPerSource);
  if (all.oom_rows > 0) {
    out += fmt::format("Of {} runs that ran out of memory, {} {} called fitting.\n", all.oom_rows,
                       all.oom_called_fitting, all.oom_called_fitting == 1 ? "is" : "are");
  }
  return out + "\n" + verdict(all, width);
}

std::string to_json(const ValidateReport& report) {
  std::string out = R"({"schema":"assay.validate/1",)";
  if (report.lost_lines > 0) out += fmt::format(R"("lost_lines":{},)", report.lost_lines);
  out += R"("rows":[)";
  for (size_t i = 0; i < report.rows.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + row_json(report.rows[i]);
  }
  out += "\n],\"groups\":[";
  for (size_t i = 0; i < report.groups.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + group_json(report.groups[i]);
  }
  return out + "\n]}\n";
}

}  // namespace assay

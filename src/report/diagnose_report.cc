#include "report/diagnose_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/assert.h"
#include "plan/words.h"
#include "report/result_json.h"

namespace assay {
namespace {

constexpr size_t kFilesShown = 12;
constexpr size_t kNotesShown = 8;
constexpr size_t kInputsShown = 300;        // characters of the operands in a suggested command
constexpr double kLedgerLineLeast = 0.002;  // of the step: smaller lines are `everything else`

constexpr size_t kNameShown = 36;

std::string file_name(const std::string& path) {
  if (path == "-") return "standard input";
  const size_t slash = path.rfind('/');
  return sanitize(slash == std::string::npos ? path : path.substr(slash + 1), kNameShown);
}

// Those that were of use first: a folder may hold many others.
std::string files_text(const Diagnosis& d, const Style& style) {
  std::vector<const FileRead*> files;
  for (const FileRead& f : d.files) files.push_back(&f);
  std::stable_partition(files.begin(), files.end(), [](const FileRead* f) { return f->used; });
  const size_t shown = std::min(files.size(), kFilesShown);
  size_t name_width = 12;
  for (size_t i = 0; i < shown; ++i)
    name_width = std::max(name_width, file_name(files[i]->path).size());
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    const FileRead& f = *files[i];
    const std::string summary = f.summary + (f.cut ? "; cut short" : "");
    std::string what = f.kind == FileKind::kUnknown ? "" : std::string(kind_name(f.kind));
    if (!what.empty() && !f.summary.empty()) what += ", ";
    out += wrap(std::string(i == 0 ? "Read      " : "          ") +
                    left(file_name(f.path), name_width) + "  " + what + summary,
                style.width, name_width + 12) +
           "\n";
  }
  if (files.size() > shown)
    out += fmt::format("          and {} more files\n", files.size() - shown);
  return out;
}

std::string step_line(const DiagnoseResult& r, const Style& style) {
  const MeasuredStep& m = *r.diagnosis.step;
  std::string line = "Step      " + seconds(m.step.v) + " measured";
  if (m.steps > 1) {
    line += fmt::format(" ({} of {} {}steps", m.uneven ? "mean" : "median", m.steps,
                        m.uneven ? "uneven " : "");
  }
  if (m.steps > 1 && m.spread.v > 0) line += fmt::format(", spread {}", seconds(m.spread.v));
  if (m.steps > 1) line += ")";
  if (m.steps == 0) line += " (no steps are marked: the whole file)";
  if (m.ranks > 1) line += fmt::format(", mean of {} ranks", m.ranks);
  constexpr double kDiffers = 0.05;
  if (m.usual.v > 0 && std::abs(m.usual / m.step - 1) > kDiffers) {
    line += fmt::format("; {} {}", seconds(m.usual.v),
                        m.usual < m.step ? "without the profiler" : "on average");
  }
  if (!m.accelerator.empty()) line += ", " + m.accelerator;
  if (r.predicted) {
    const double gap = m.step.v - r.predicted->step.v;
    line += fmt::format("; {} predicted for {}: ", seconds(r.predicted->step.v), r.predicted_of);
    line += gap > 0 ? fmt::format("{} are missing", seconds(gap))
                    : fmt::format("{} faster than predicted", seconds(-gap));
  }
  return wrap(line, style.width, 10) + "\n";
}

struct Row {
  std::string name;
  double measured = 0, predicted = 0;
};

// A training log's step beside the predicted one.
std::string logged_step_line(const MeasuredPeriod& p, const DiagnoseResult& r, const Style& style) {
  if (p.step.v <= 0 || !r.predicted) return "";
  const double gap = p.step.v - r.predicted->step.v;
  return wrap(fmt::format("Step      {} by the log; {} predicted for {}: {}", seconds(p.step.v),
                          seconds(r.predicted->step.v), r.predicted_of,
                          gap > 0 ? fmt::format("{} are missing", seconds(gap))
                                  : fmt::format("{} faster than predicted", seconds(-gap))),
              style.width, 10) +
         "\n";
}

// The accounts that matter, largest first; the rest as one line.
std::vector<Row> ledger_rows(const DiagnoseResult& r) {
  const MeasuredStep& m = *r.diagnosis.step;
  // Without shapes nobody knows how much of the matmuls was useful: then neither side says so.
  const bool useful_known = m.ledger[Account::kUseful].v > 0;
  const auto predicted = [&](Account a) {
    if (!r.predicted || (a == Account::kUseful && !useful_known)) return 0.0;
    const bool with_useful = a == Account::kMatmul && !useful_known;
    return r.predicted->ledger[a].v + (with_useful ? r.predicted->ledger[Account::kUseful].v : 0);
  };
  std::vector<Row> rows;
  Row rest{"everything else", 0, 0};
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const Row row{account_name(a), m.ledger[a].v, predicted(a)};
    if (std::max(row.measured, row.predicted) < kLedgerLineLeast * m.step.v) {
      rest.measured += row.measured, rest.predicted += row.predicted;
    } else {
      rows.push_back(row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.measured > b.measured; });
  if (rest.measured > 0 || rest.predicted > 0) rows.push_back(rest);
  return rows;
}

std::string ledger_table(const DiagnoseResult& r, const Style& style) {
  const double step = r.diagnosis.step->step.v;
  const bool ms = step < 1;
  const double unit = ms ? 1e-3 : 1;
  const int decimals = ms ? (step < 0.1 ? 2 : 1) : 3;
  const size_t numbers = r.predicted ? 30 : 20;
  const int columns = std::max(8, style.width - 24 - static_cast<int>(numbers));
  const std::string title =
      r.diagnosis.step->steps == 0 ? "Where the time goes" : "Where one step goes";
  std::string heads = right(ms ? "ms" : "seconds", 10);
  heads += r.predicted ? right("predicted", 10) + right("gap", 10) : right("share", 10);
  std::string out = left(title, static_cast<size_t>(style.width) - numbers) + heads + "\n";
  const auto figure = [&](double s) {
    return right(fmt::format("{:.{}f}", s / unit, decimals), 10);
  };
  for (const Row& row : ledger_rows(r)) {
    out +=
        "  " + left(row.name, 22) + bar(row.measured / step, columns, style) + figure(row.measured);
    if (r.predicted) {
      out += figure(row.predicted) +
             right(fmt::format("{:+.{}f}", (row.measured - row.predicted) / unit, decimals), 10);
    } else {
      out += right(fmt::format("{:.1f} %", 100 * row.measured / step), 10);
    }
    out += "\n";
  }
  return out;
}

std::string period_text(const MeasuredPeriod& p, const Style& style) {
  const double hour = kSecondsPerHour;
  const size_t title_width = static_cast<size_t>(style.width) - 20;
  std::string title =
      (p.wall_clock ? "Where the hours of the log went: " : "Where the GPU-hours went: ") + p.what;
  std::string out;
  if (title.size() > title_width) {
    out = wrap(title, style.width, 2) + "\n";
    title.clear();
  }
  out += left(title, title_width) + right(p.wall_clock ? "hours" : "GPU-h", 10) +
         right("share", 10) + "\n";
  const int columns = std::max(8, style.width - 44);
  for (const MeasuredPeriod::Line& line : p.lines) {
    out += "  " + left(line.name, 22) + bar(line.share, columns, style) +
           right(significant(line.time.v / hour), 10) +
           right(fmt::format("{:.1f} %", 100 * line.share), 10) + "\n";
  }
  if (p.losses.size() > 1) out += "\nLargest losses\n" + table(p.losses);
  return out;
}

std::string gain_words(const Finding& f) {
  if (f.cause == Cause::kHealthy) return "";
  if (f.gain.v <= 0 && f.urgent) return "act now";
  if (f.gain.v <= 0) return percent(f.share);
  return f.gain.v < 3 * kSecondsPerHour ? seconds(f.gain.v)
                                        : significant(f.gain.v / kSecondsPerHour) + " GPU-h";
}

std::string finding_text(const Finding& f, size_t number, const Style& style) {
  std::string ids;
  for (const Evidence& e : f.evidence) ids += (ids.empty() ? "" : " ") + e.id;
  const std::string tail = right(gain_words(f), 11) +
                           right(f.share > 0 ? percent(f.share) : "", 9) + "  " +
                           left(std::string(confidence_name(f.confidence)), 8) + ids;
  const size_t room = static_cast<size_t>(style.width) - 40;
  std::string title = fmt::format("{:2} {}: {}", number, cause_name(f.cause), f.title);
  std::string out;
  // A long title stands alone, its figures at the end of its last line.
  const std::string wrapped = wrap(title, static_cast<int>(room), 3);
  const size_t last = wrapped.rfind('\n');
  const size_t used = wrapped.size() - (last == std::string::npos ? 0 : last + 1);
  out += wrapped + std::string(room > used ? room - used : 1, ' ') + tail + "\n";
  if (!f.detail.empty()) out += wrap("     " + f.detail, style.width, 5) + "\n";
  if (!f.where.empty()) {
    std::string where;
    for (size_t i = 0; i < f.where.size() && i < 16; ++i) where += (i ? ", " : "") + f.where[i];
    if (f.where.size() > 16) where += fmt::format(" and {} more", f.where.size() - 16);
    out += wrap("     where: " + where, style.width, 12) + "\n";
  }
  if (!f.fix.empty()) out += wrap("     fix: " + f.fix, style.width, 10) + "\n";
  return trimmed_lines(out);
}

std::string findings_text(const Diagnosis& d, const Style& style) {
  std::string out =
      left("Findings, by what they give back", static_cast<size_t>(style.width) - 40) +
      right("gain", 11) + right("share", 9) + "  sure    evidence\n";
  size_t number = 0;
  for (const Finding& f : d.findings) out += finding_text(f, ++number, style);
  return out;
}

// Where the time cannot be saved elsewhere: one line for a rank alone, one for a job.
std::string paths_text(const Diagnosis& d, const Style& style) {
  std::string line;
  if (d.job_path && d.job_path->total.v > 0) {
    line = fmt::format("Critical path of the job: {}, on the wire {}", seconds(d.job_path->total.v),
                       seconds(d.job_path->wire.v));
    for (size_t i = 0; i < d.job_path->ranks.size() && i < 4; ++i)
      line += fmt::format(", rank {} {}", d.job_path->ranks[i].first,
                          seconds(d.job_path->ranks[i].second.v));
  } else if (d.files.size() == 1 && d.files[0].path_of_step &&
             d.files[0].path_of_step->total_ns > 0) {
    const PathAccount& p = *d.files[0].path_of_step;
    const auto time = [](int64_t ns) { return seconds(static_cast<double>(ns) * 1e-9); };
    line = fmt::format("Critical path: {}: host {}, device {}, launches {}, between kernels {}",
                       time(p.total_ns), time(p.host_ns), time(p.device_ns), time(p.launch_ns),
                       time(p.between_ns));
  }
  return line.empty() ? "" : wrap(line, style.width, 15) + "\n";
}

std::string open_text(const Diagnosis& d, const Style& style) {
  std::string out = paths_text(d, style);
  for (const OpenQuestion& q : d.open) {
    out +=
        wrap("Undecided: " + q.text + ". It would take " + q.needed + ".", style.width, 11) + "\n";
  }
  for (size_t i = 0; i < d.notes.size() && (style.verbose || i < kNotesShown); ++i) {
    out += wrap("Note: " + d.notes[i], style.width, 6) + "\n";
  }
  if (!style.verbose && d.notes.size() > kNotesShown) {
    out += d.notes.size() == kNotesShown + 1
               ? "1 more note with -v\n"
               : fmt::format("{} more notes with -v\n", d.notes.size() - kNotesShown);
  }
  if (d.step && d.step->unexplained.v > 0) {
    out += fmt::format("Not explained: {} ({}) of the step\n", seconds(d.step->unexplained.v),
                       percent(d.step->unexplained / d.step->step));
  }
  return out;
}

std::string verdict(const Diagnosis& d) {
  if (d.findings.empty() && !d.open.empty()) {
    return fmt::format("Nothing is proven; {} question{} open.", d.open.size(),
                       d.open.size() == 1 ? " is" : "s are");
  }
  if (d.findings.empty()) return "Nothing here could be diagnosed.";
  const Finding& first = d.findings.front();
  if (first.cause == Cause::kHealthy) return first.title + ".";
  const auto urgent = std::count_if(d.findings.begin(), d.findings.end(),
                                    [](const Finding& f) { return f.urgent; });
  double after = 0, before = d.step ? d.step->step.v : 0;
  int steps = 0;
  for (const Finding& f : d.findings) {
    if (!f.step_after || f.elsewhere) continue;
    // The step that the findings were priced against, which need not be the measured one.
    if (steps == 0 && f.share > 0) before = f.gain.v / f.share;
    after = steps == 0 ? f.step_after->v : std::min(after, f.step_after->v);
    ++steps;
  }
  std::string text = fmt::format("{}: {}", cause_name(first.cause), first.title);
  if (!text.empty() && text.back() != '.') text += '.';
  if (d.step && steps > 0 && after > 0 && first.confidence == Confidence::kLow) {
    text += fmt::format(" Fixing {} may give {} a step instead of {}, at low confidence.",
                        steps == 1 ? "it" : fmt::format("these {}", steps), seconds(after),
                        seconds(before));
  } else if (d.step && steps > 0 && after > 0) {
    text += fmt::format(" Fixing {} predicts {} a step instead of {} ({:.2f} times faster).",
                        steps == 1 ? "it" : fmt::format("these {}", steps), seconds(after),
                        seconds(before), before / after);
  } else if (urgent > 0) {
    text += fmt::format(" {} finding{} cannot wait.", urgent, urgent == 1 ? "" : "s");
  }
  return text;
}

Json breakdown_json(const Breakdown& b) {
  return {{"span_ns", b.span_ns},
          {"busy_ns", b.busy_ns},
          {"idle_ns", b.idle_ns},
          {"compute_ns", b.compute_ns},
          {"communication_ns", b.communication_ns},
          {"memory_ns", b.memory_ns},
          {"overlapped_communication_ns", b.overlapped_communication_ns},
          {"exposed_communication_ns", b.exposed_communication_ns},
          {"exposed_memory_ns", b.exposed_memory_ns},
          {"kernels", b.kernels},
          {"copies", b.copies},
          {"streams", b.streams},
          {"negative_durations", b.negative_durations}};
}

Json file_json(const FileRead& f) {
  Json j{{"path", sanitize(f.path)},
         {"kind", kind_name(f.kind)},
         {"summary", f.summary},
         {"used", f.used},
         {"cut", f.cut}};
  if (f.device) j["device"] = breakdown_json(*f.device);
  if (f.path_of_step) {
    j["critical_path"] = {{"total_ns", f.path_of_step->total_ns},
                          {"host_ns", f.path_of_step->host_ns},
                          {"device_ns", f.path_of_step->device_ns},
                          {"launch_ns", f.path_of_step->launch_ns},
                          {"between_ns", f.path_of_step->between_ns}};
  }
  return j;
}

// What has a document of its own beside findings: what-ifs, hangs, the way through the ranks.
void add_accounts(const Diagnosis& d, Json& doc) {
  for (const WhatIfAccount& w : d.what_ifs) {
    doc["what_if"].push_back({{"file", sanitize(w.file)},
                              {"slowdown", w.slowdown},
                              {"measured_s", w.measured.v},
                              {"original_s", w.original.v},
                              {"ideal_s", w.ideal.v}});
  }
  for (const HangAccount& h : d.hangs) {
    const Json account{{"folder", sanitize(h.folder)}, {"hung", h.hung},
                       {"convicted", h.convicted},     {"by_evidence", h.by_evidence},
                       {"mismatched", h.mismatched},   {"undecided", h.undecided},
                       {"no_dump", h.no_dump}};
    if (!doc.contains("hang")) doc["hang"] = account;  // the first, for scripts that know of one
    if (d.hangs.size() > 1) doc["hangs"].push_back(account);
  }
  if (d.job_path) {
    Json ranks = Json::array();
    for (const auto& [rank, time] : d.job_path->ranks)
      ranks.push_back({{"rank", rank}, {"local_s", time.v}});
    doc["job_path"] = {
        {"total_s", d.job_path->total.v}, {"wire_s", d.job_path->wire.v}, {"ranks", ranks}};
  }
}

Json one_evidence_json(const Evidence& e) {
  return {{"id", e.id},
          {"title", e.title},
          {"file", sanitize(e.file)},
          {"columns", e.columns},
          {"rows", e.rows}};
}

Json finding_json(const Finding& f) {
  Json j{{"cause", cause_name(f.cause)},
         {"title", f.title},
         {"detail", f.detail},
         {"fix", f.fix},
         {"where", f.where},
         {"confidence", confidence_name(f.confidence)},
         {"urgent", f.urgent},
         {"gain_s", f.gain.v},
         {"share", f.share}};
  if (f.step_after) j["step_after_s"] = f.step_after->v;
  if (f.step_range) {
    j["step_after_low_s"] = f.step_range->low.v;
    j["step_after_high_s"] = f.step_range->high.v;
  }
  if (f.alternative) {
    j["alternative"] = {{"repair", f.alternative->repair},
                        {"step_after_s", f.alternative->step_after.v}};
  }
  j["evidence"] = Json::array();
  for (const Evidence& e : f.evidence) j["evidence"].push_back(one_evidence_json(e));
  return j;
}

Json predicted_json(const DiagnoseResult& r) {
  return {{"of", r.predicted_of},
          {"step_s", r.predicted->step.v},
          {"step_range_s", Json::array({r.predicted->low.v, r.predicted->high.v})},
          {"mfu", r.predicted->mfu},
          {"ledger", ledger_json(r.predicted->ledger, r.predicted->step)}};
}

Json step_json(const DiagnoseResult& r) {
  const MeasuredStep& m = *r.diagnosis.step;
  Json j{{"step_s", m.step.v},         {"usual_s", m.usual.v},
         {"spread_s", m.spread.v},     {"uneven", m.uneven},
         {"steps", m.steps},           {"ranks", m.ranks},
         {"world_size", m.world_size}, {"accelerator", m.accelerator},
         {"source", m.source},         {"unexplained_s", m.unexplained.v}};
  j["ledger"] = ledger_json(m.ledger, m.step);
  j["device"] = breakdown_json(m.device);
  if (r.predicted) j["predicted"] = predicted_json(r);
  return j;
}

Json period_json(const MeasuredPeriod& p, const DiagnoseResult& r) {
  Json j{{"what", p.what},
         {"wall_clock", p.wall_clock},
         {"paid_gpu_s", p.paid.v},
         {"lines", Json::array()}};
  for (const MeasuredPeriod::Line& l : p.lines) {
    j["lines"].push_back({{"name", l.name}, {"gpu_s", l.time.v}, {"share", l.share}});
  }
  j["losses"] = p.losses;
  if (p.step.v > 0) j["step_s"] = p.step.v;
  if (p.step.v > 0 && r.predicted) j["predicted"] = predicted_json(r);
  return j;
}

// A piece of evidence and the finding that rests on it; null where there is none of that name.
std::pair<const Finding*, const Evidence*> find_evidence(const Diagnosis& d,
                                                         const std::string& id) {
  for (const Finding& f : d.findings) {
    for (const Evidence& e : f.evidence) {
      if (e.id == id) return {&f, &e};
    }
  }
  return {nullptr, nullptr};
}

}  // namespace

std::string diagnose_text(const DiagnoseResult& r, const Style& style, const Stamp& stamp) {
  const Diagnosis& d = r.diagnosis;
  std::string out = files_text(d, style);
  if (d.step) out += step_line(r, style) + "\n" + ledger_table(r, style);
  for (const MeasuredPeriod& p : d.periods)
    out += logged_step_line(p, r, style) + "\n" + period_text(p, style);
  if (!d.findings.empty()) out += "\n" + findings_text(d, style);
  const std::string open = open_text(d, style);
  if (!open.empty()) out += "\n" + open;
  const auto shown = std::find_if(d.findings.begin(), d.findings.end(),
                                  [](const Finding& f) { return !f.evidence.empty(); });
  if (!style.quiet && shown != d.findings.end()) {
    const std::string& id = shown->evidence.front().id;
    out += stamp.inputs.size() > kInputsShown
               ? fmt::format("\nNext:  the same command with --show {}\n", id)
               : fmt::format("\nNext:  assay diagnose {} --show {}\n", stamp.inputs, id);
  }
  if (!style.quiet) out += footer(stamp) + "\n";
  return trimmed_lines(out + "\n" + bold(wrap(verdict(d), style.width), style) + "\n");
}

std::string diagnose_json(const DiagnoseResult& r, const Stamp& stamp) {
  const Diagnosis& d = r.diagnosis;
  Json doc = start_document("assay.diagnose/1", stamp);
  doc["files"] = Json::array();
  for (const FileRead& f : d.files) doc["files"].push_back(file_json(f));
  if (d.step) doc["measured"] = step_json(r);
  doc["periods"] = Json::array();
  for (const MeasuredPeriod& p : d.periods) doc["periods"].push_back(period_json(p, r));
  add_accounts(d, doc);
  doc["findings"] = Json::array();
  for (const Finding& f : d.findings) doc["findings"].push_back(finding_json(f));
  doc["open"] = Json::array();
  for (const OpenQuestion& q : d.open)
    doc["open"].push_back({{"text", q.text}, {"needed", q.needed}});
  doc["notes"] = d.notes;
  doc["problems"] = diagnostics_json(d.problems);
  doc["verdict"] = verdict(d);
  return print(doc);
}

std::optional<std::string> evidence_text(const Diagnosis& d, const std::string& id,
                                         const Style& style) {
  const auto [f, e] = find_evidence(d, id);
  if (e == nullptr) return std::nullopt;
  std::string out = fmt::format("{}  {}\n", e->id, e->title);
  if (!e->file.empty()) out += "    " + sanitize(e->file) + "\n";
  out += fmt::format("    for {}: {}\n\n", cause_name(f->cause), f->title);
  std::vector<std::vector<std::string>> rows{e->columns};
  rows.insert(rows.end(), e->rows.begin(), e->rows.end());
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = cell.substr(0, static_cast<size_t>(style.width));
  }
  return out + table(rows);
}

std::string evidence_json(const Diagnosis& d, const std::string& id, const Stamp& stamp) {
  const auto [f, e] = find_evidence(d, id);
  ASSERT(e != nullptr);
  Json doc = start_document("assay.evidence/1", stamp);
  doc["cause"] = cause_name(f->cause);
  doc["finding"] = f->title;
  doc["evidence"] = one_evidence_json(*e);
  return print(doc);
}

}  // namespace assay

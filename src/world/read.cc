#include "world/read.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/text.h"
#include "world/describe.h"
#include "world/inputs.h"
#include "world/model_size.h"
#include "world/rules.h"

namespace assay {
namespace {

constexpr size_t kLongestString = 4000;  // a citation may be long
constexpr size_t kLongestList = 10000;

std::string kind_name(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "nothing";
    case Value::Kind::kScalar:
      return fmt::format("`{}`", sanitize(value.text, 40));
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a mapping";
  }
  return "";
}

std::string folded(std::string_view text) {
  std::string out;
  for (char c : lower(text)) {
    out += c == '_' || c == ' ' ? '-' : c;
  }
  return out;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

bool is_reserved_key(const std::string& key) {
  return key == "source" || key == "mark" || key == "sources" || key == "marks" || key == "base" ||
         key == "name";
}

void Reader::problem(const Mark& at, std::string message, std::string help) {
  if (list_is_full(problems_)) return;
  problems_.push_back(problem_at(at, std::move(message), std::move(help)));
}

bool Reader::want_scalar(const Value& value, const std::string& path) {
  if (value.is_scalar()) return true;
  if (value.is_null()) {
    problem(value.at, fmt::format("{} has no value", path), "write one, or remove the key");
  } else {
    problem(value.at, fmt::format("{} must be a single value, not {}", path, kind_name(value)),
            fmt::format("write `{}: VALUE`", last_part(path)));
  }
  return false;
}

bool Reader::want_map(const Value& value, const std::string& path) {
  if (value.is_map()) return true;
  const bool null = value.is_null();
  problem(
      value.at,
      null ? fmt::format("{} is empty", path)
           : fmt::format("{} must be a mapping, not {}", path, kind_name(value)),
      fmt::format("write `{}: {{KEY: VALUE}}`, or its keys below it, indented", last_part(path)));
  return false;
}

namespace {

// Far beyond anything that is built or paid. More is a slip of a unit or of a key, and would show
// as figures that no screen can hold.
double largest_sane(Dimension d) {
  switch (d) {
    case Dimension::kNumber:
      return kPositive.max;  // counts have limits of their own
    case Dimension::kSeconds:
      return 1e12;  // 30,000 years
    case Dimension::kDollars:
      return 1e15;
    case Dimension::kDollarRate:
      return 1e6;  // a second
    case Dimension::kEnergyPrice:
      return 1;  // a joule
    case Dimension::kWatts:
    case Dimension::kHertz:
      return 1e15;
    case Dimension::kBytes:
    case Dimension::kBandwidth:
    case Dimension::kJoules:
      return 1e24;
    case Dimension::kFlopRate:
    case Dimension::kFlops:
      return 1e36;
  }
  return kPositive.max;
}

// Less than anything that runs: a slip likewise.
double smallest_sane(Dimension d) {
  switch (d) {
    case Dimension::kFlopRate:
      return 1e6;
    case Dimension::kBandwidth:
    case Dimension::kHertz:
      return 1;
    default:
      return 0;
  }
}

// What a site's power is stated in, where a node's is in W.
std::string_view usual_unit(const std::string& path, Dimension d) {
  if (d != Dimension::kWatts || !path.starts_with("site.")) return "";
  return contains(path, "rack") ? "kW" : "MW";
}

}  // namespace

bool Reader::in_limits(const Value& value, double number, Dimension d, const std::string& path,
                       const Limits& limits) {
  std::string message, help;
  const double most = std::min(limits.max, largest_sane(d));
  if (number < limits.min) {
    const bool positive = limits.min == kPositive.min;
    const std::string least = format_quantity(limits.min, d);
    message = limits.min == 0 ? fmt::format("{} must not be negative", path)
              : positive      ? fmt::format("{} must be more than zero", path)
                              : fmt::format("{} must be at least {}", path, least);
    help = limits.min == 0 ? "write zero or more"
           : positive      ? "write more than zero, or remove the key"
                           : fmt::format("write {} or more", least);
  } else if (number > 0 && number < smallest_sane(d)) {
    message = fmt::format("{} is too small", path);
    help =
        fmt::format("write {} or more; is the unit right?", format_quantity(smallest_sane(d), d));
  } else if (number > most) {
    const std::string limit = format_quantity(most, d);
    message = most < limits.max ? fmt::format("{} is too large", path)
                                : fmt::format("{} must be at most {}", path, limit);
    help = fmt::format("write {} or less{}", limit,
                       d == Dimension::kNumber ? "" : "; is the unit right?");
  }
  if (message.empty()) return true;
  problem(value.at, message, help);
  return false;
}

void Reader::quantity(const Value& value, double& into, Dimension d, const std::string& path,
                      const Limits& limits) {
  if (!want_scalar(value, path)) return;
  const tl::expected<double, ScalarError> number =
      parse_quantity(value.text, d, usual_unit(path, d));
  if (!number) {
    problem(value.at, fmt::format("{} {}", path, number.error().message), number.error().help);
    return;
  }
  if (!in_limits(value, *number, d, path, limits)) return;
  into = *number;
  note_origin(value, path);
}

void Reader::read(const Value& value, double& into, const std::string& path, const Limits& limits) {
  quantity(value, into, Dimension::kNumber, path, limits);
}

void Reader::read(const Value& value, int64_t& into, const std::string& path,
                  const Limits& limits) {
  if (!want_scalar(value, path)) return;
  const tl::expected<double, ScalarError> number = parse_whole(value.text);
  if (!number) {
    problem(value.at, fmt::format("{} {}", path, number.error().message), number.error().help);
    return;
  }
  if (!in_limits(value, *number, Dimension::kNumber, path, limits)) return;
  into = static_cast<int64_t>(*number);
  note_origin(value, path);
}

void Reader::read(const Value& value, bool& into, const std::string& path, const Limits&) {
  if (!want_scalar(value, path)) return;
  const tl::expected<bool, ScalarError> answer = parse_bool(value.text);
  if (!answer) {
    problem(value.at, fmt::format("{} {}", path, answer.error().message), answer.error().help);
    return;
  }
  into = *answer;
  note_origin(value, path);
}

void Reader::read(const Value& value, std::string& into, const std::string& path, const Limits&) {
  if (!want_scalar(value, path)) return;
  // Text ends up on terminals and in reports; an escape sequence has no business in a name.
  if (sanitize(value.text, kLongestString) != value.text) {
    problem(value.at, fmt::format("{} has characters that cannot be shown, or is too long", path),
            fmt::format("write plain text of at most {} characters", kLongestString));
    return;
  }
  into = value.text;
  note_origin(value, path);
}

bool Reader::want_list(const Value& value, const std::string& path, const char* example) {
  if (!value.is_list()) {
    problem(value.at, fmt::format("{} must be a list, not {}", path, kind_name(value)),
            fmt::format("write `{}: {}`", last_part(path), example));
    return false;
  }
  if (value.items.size() > kLongestList) {
    problem(value.at, fmt::format("{} has more than {} items", path, kLongestList));
    return false;
  }
  return true;
}

void Reader::read(const Value& value, std::vector<std::string>& into, const std::string& path,
                  const Limits& limits) {
  if (!want_list(value, path, "[a, b]")) return;
  into.clear();
  for (const Value& item : value.items) read(item, into.emplace_back(), path, limits);
}

void Reader::read(const Value& value, std::vector<int64_t>& into, const std::string& path,
                  const Limits& limits) {
  if (!want_list(value, path, "[512, 256]")) return;
  into.clear();
  for (const Value& item : value.items) read(item, into.emplace_back(), path, limits);
}

void Reader::read(const Value& value, std::vector<double>& into, const std::string& path,
                  const Limits& limits) {
  if (!want_list(value, path, "[1.5, 2.5]")) return;
  into.clear();
  for (const Value& item : value.items) read(item, into.emplace_back(), path, limits);
}

int Reader::choice(const Value& value, const std::vector<std::string_view>& names,
                   const std::string& path) {
  if (!want_scalar(value, path)) return -1;
  const std::string wanted = folded(value.text);
  for (size_t i = 0; i < names.size(); ++i) {
    if (folded(names[i]) == wanted) {
      note_origin(value, path);
      return static_cast<int>(i);
    }
  }
  // A word that names have in them is short for these, however near another is: fp4, not fp8.
  std::vector<std::string> meant;
  for (const std::string_view name : names) {
    if (wanted.size() > 2 && contains(folded(name), wanted))
      meant.push_back(fmt::format("`{}`", name));
  }
  if (const std::string near = nearest(value.text, {names.begin(), names.end()});
      meant.empty() && !near.empty())
    meant.push_back(fmt::format("`{}`", near));
  problem(value.at, fmt::format("{} cannot be {}", path, kind_name(value)),
          meant.empty() ? fmt::format("use one of {}", fmt::join(names, ", "))
                        : fmt::format("did you mean {}?", fmt::join(meant, " or ")));
  return -1;
}

void Reader::unknown_key(const Entry& entry, const std::vector<std::string>& known,
                         const std::string& path) {
  if (list_is_full(problems_)) return;  // a suggestion costs time, and nobody would see it
  const std::string near = nearest(entry.key, known);
  const std::string help = near.empty() ? fmt::format("known keys are {}", fmt::join(known, ", "))
                                        : fmt::format("did you mean `{}`?", near);
  problem(entry.key_at, fmt::format("unknown key `{}` in {}", sanitize(entry.key, 60), path), help);
}

void Reader::check_field_names(const Value& map, const std::vector<std::string>& known,
                               const std::string& path) {
  for (const Entry& entry : map.entries) {
    const std::string first = entry.key.substr(0, entry.key.find('.'));
    if (std::find(known.begin(), known.end(), first) == known.end()) {
      unknown_key(entry, known, path);
    }
  }
}

void Reader::unknown_name(const Value& value, std::string_view section,
                          const std::vector<std::string>& known, const std::string& path) {
  if (list_is_full(problems_)) return;
  const std::string near = nearest(value.text, known);
  problem(value.at,
          fmt::format("{}: no entry {} in the catalog of {}", path, kind_name(value), section),
          near.empty() ? fmt::format("`assay catalog list` shows the {}", section)
                       : fmt::format("did you mean `{}`?", near));
}

void Reader::note_origin(const Value& value, const std::string& path) {
  Origin origin;
  origin.mark = provenance.mark;
  origin.source = provenance.source;
  origin.file = file_of(value.at);
  origin.line = line_of(value.at);
  origin.offset = value.at.offset;
  origin.length = value.at.length;
  if (path.size() > provenance.at.size() + 1) {
    const std::string key = path.substr(provenance.at.size() + 1);
    const Entry* mark = provenance.marks == nullptr ? nullptr : provenance.marks->find(key);
    const Entry* source = provenance.sources == nullptr ? nullptr : provenance.sources->find(key);
    if (mark != nullptr && mark->value.text.size() == 1) origin.mark = mark->value.text[0];
    if (source != nullptr) origin.source = sanitize(source->value.text, kLongestString);
  }
  origins_[path] = std::move(origin);
}

void Reader::copy_origins(const std::string& from, const std::string& to,
                          const std::set<std::string>& fields) {
  const std::string prefix = from + ".";
  std::vector<std::pair<std::string, Origin>> found;
  for (auto it = catalog_.origins.lower_bound(prefix);
       it != catalog_.origins.end() && it->first.starts_with(prefix); ++it) {
    // Names may hold dots: `llama-3` must not take the origins of `llama-3.1-70b`.
    const std::string rest = it->first.substr(prefix.size());
    if (fields.contains(rest.substr(0, rest.find('.')))) found.emplace_back(rest, it->second);
  }
  for (auto& [rest, origin] : found) origins_[to + "." + rest] = std::move(origin);
}

void Reader::enter_provenance(const Value& map, const std::string& path) {
  constexpr std::string_view kMarks = "msca";
  const auto is_mark = [&](const Value& v) {
    return v.is_scalar() && v.text.size() == 1 && kMarks.find(v.text[0]) != std::string_view::npos;
  };
  constexpr const char* kMarkHelp = "m measured, s vendor spec, c calibrated, a assumed";
  if (const Entry* source = map.find("source")) {
    read(source->value, provenance.source, path + ".source", kAny);
    origins_.erase(path + ".source");
  }
  if (const Entry* mark = map.find("mark")) {
    if (is_mark(mark->value)) {
      provenance.mark = mark->value.text[0];
    } else {
      problem(mark->value.at, fmt::format("{}.mark must be one of m, s, c, a", path), kMarkHelp);
    }
  }
  const Entry* marks = map.find("marks");
  const Entry* sources = map.find("sources");
  if (marks == nullptr && sources == nullptr) return;
  provenance.at = path;
  provenance.marks =
      marks != nullptr && want_map(marks->value, path + ".marks") ? &marks->value : nullptr;
  provenance.sources =
      sources != nullptr && want_map(sources->value, path + ".sources") ? &sources->value : nullptr;
  if (provenance.marks == nullptr) return;
  for (const Entry& entry : provenance.marks->entries) {
    if (is_mark(entry.value)) continue;
    problem(entry.value.at,
            fmt::format("{}.marks.{} must be one of m, s, c, a", path, sanitize(entry.key, 60)),
            kMarkHelp);
  }
}

bool Reader::read_model_file(const Value& value, Model& into, const std::string& path) {
  if (!value.text.ends_with(".json")) return false;
  const std::filesystem::path beside = std::filesystem::path(file_of(value.at)).parent_path();
  const std::string file = (beside / value.text).string();
  const Result<std::string> text = read_file(file);
  if (!text) {
    problem(value.at, fmt::format("{}: {}: {}", path, text.error().file, text.error().message),
            text.error().help);
    return true;
  }
  const tl::expected<Model, Diagnostics> model = read_hf_config(*text, file);
  if (!model) {
    problems_.insert(problems_.end(), model.error().begin(), model.error().end());
    return true;
  }
  for (Diagnostic& d : left_out_of_config(*text, file)) {
    if (d.help.starts_with("compare the parameters"))
      d.help += fmt::format("; it comes to {:.4g} B, {:.4g} B of them active",
                            parameters(*model) / 1e9, active_parameters(*model) / 1e9);
    problems_.push_back(std::move(d));
  }
  const Provenance outer = provenance;
  provenance.source = sanitize(file, kLongestString);
  read_struct(to_value(*model, value.at), into, path);
  provenance = outer;
  return true;
}

void Reader::read_cluster(const Value& map, Cluster& into, const std::string& path) {
  const Entry* node = map.find("node");
  if (node != nullptr) {
    const std::string before = into.node.accelerator;
    read_struct(node->value, into.node, path + ".node");
    // A different part replaces the whole accelerator; the same part keeps the base's overrides.
    if (into.node.accelerator != before) {
      const Value name = scalar_value(into.node.accelerator, node->value.at);
      if (!name.text.empty()) read_name(name, into.accelerator, path + ".accelerator");
    }
  }
  read_cluster_accelerator(map, into, path);
  read_fields(map, into, path, {"node", "accelerator"});
}

void Reader::read_cluster_accelerator(const Value& map, Cluster& into, const std::string& path) {
  const Entry* accelerator = map.find("accelerator");
  if (accelerator == nullptr) return;
  read_struct(accelerator->value, into.accelerator, path + ".accelerator");
  const bool named = accelerator->value.is_scalar() || accelerator->value.find("base") != nullptr;
  if (!named) return;
  const Node* usual = usual_node(into.accelerator.name, catalog_);
  const bool no_node = into.node.name.empty() && map.find("node") == nullptr;
  if (no_node && usual != nullptr) {
    read_name(scalar_value(usual->name, accelerator->value.at), into.node, path + ".node");
  }
  into.node.accelerator = into.accelerator.name;
}

}  // namespace assay

#include "world/inputs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/text.h"
#include "config/yaml.h"
#include "world/read.h"
#include "world/rules.h"

namespace assay {
namespace {

const std::vector<std::string> kSections = {"workload", "cluster", "site", "stack", "plan", "run"};

bool is_section(const std::string& name) {
  return std::find(kSections.begin(), kSections.end(), name) != kSections.end();
}

Value map_of(const std::string& key, Value value) {
  Value map;
  map.kind = Value::Kind::kMap;
  map.at = value.at;
  const Mark at = value.at;
  map.entries.push_back(Entry{key, at, std::move(value)});
  return map;
}

bool looks_like_path(const std::string& input) {
  return input == "-" || input.find('/') != std::string::npos || input.ends_with(".yaml") ||
         input.ends_with(".yml") || input.ends_with(".json");
}

// A Hugging Face config is JSON; a description may be written as a flow mapping, too, so the
// content decides where the name does not.
bool looks_like_hf_config(const std::string& path, const std::string& text) {
  if (path.ends_with(".json")) return true;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return false;
  for (const char* key : {"\"model_type\"", "\"architectures\"", "\"hidden_size\"", "\"n_embd\""}) {
    if (text.find(key) != std::string::npos) return true;
  }
  return false;
}

class Gatherer {
 public:
  Gatherer(const Catalog& catalog, Inputs& inputs, Diagnostics& problems)
      : catalog_(catalog), inputs_(inputs), problems_(problems) {}

  void input(const std::string& text) {
    if (section_name(text)) return;
    // A hub's name of a model looks like a path: `meta-llama/Llama-3.1-70B`.
    const bool named = !looks_like_path(text) || (text != "-" && !file_exists(text));
    if (named && catalog_name(text)) return;
    if (!looks_like_path(text) && !file_exists(text)) {
      unknown(text);
      return;
    }
    Result<std::string> content = read_file(text);
    if (!content) {
      problems_.push_back(to_diagnostic(content.error()));
      return;
    }
    const std::string shown = text == "-" ? "standard input" : text;
    const std::string stem = text == "-" ? "stdin" : std::filesystem::path(text).stem().string();
    if (looks_like_hf_config(text, *content)) {
      hf_config(*content, shown, stem);
    } else {
      yaml(std::move(*content), shown, stem);
    }
  }

  void set(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string shown = "--set " + sanitize(text, 100);
    if (equals == std::string::npos || equals == 0) {
      problem({inputs_.sources.add(shown, "")}, "--set needs path=value", "as in `plan.tp=8`");
      return;
    }
    const Source* source = inputs_.sources.add(shown, text.substr(equals + 1));
    std::vector<std::string> parts = split(text.substr(0, equals));
    Section* section = find_section(parts[0]);
    if (section != nullptr && parts.size() == 1 && parts[0] != "plan") {
      name_section(parts[0], *section, *source);
      return;
    }
    constexpr size_t kDeepest = 8;  // no setting lies deeper, and hostile paths do
    if (section == nullptr || parts.size() < 2 || parts.size() > kDeepest) {
      bad_path(parts, *source);
      return;
    }
    Value value;
    if (!set_value(*source, value)) return;
    // A setting alone makes no workload or cluster, but it is all that a stack, plan or run needs.
    section->given =
        section->given || parts[0] == "stack" || parts[0] == "plan" || parts[0] == "run";
    expand(parts[0], *section);
    Value* at = &section->value;
    for (size_t i = 1; i + 1 < parts.size(); ++i) at = &child(*at, parts[i], {source});
    Value& leaf = child(*at, parts.back(), {source});
    leaf = std::move(value);
  }

  // Turns a name that stands for a whole section into a mapping, so that settings can be added.
  void expand(const std::string& name, Section& section) {
    Value& value = section.value;
    if (value.is_null()) {
      value.kind = Value::Kind::kMap;
    } else if (value.is_scalar() && name == "workload") {
      section.label = section.label.empty() ? value.text : section.label;
      value = map_of("model", std::move(value));
    } else if (value.is_scalar() && name == "cluster") {
      value = cluster_by_name(value, section);
    } else if (value.is_scalar() && (name == "stack" || name == "site" || name == "run")) {
      value = map_of("base", std::move(value));
    }
  }

 private:
  void problem(const Mark& at, std::string message, std::string help = "") {
    problems_.push_back(problem_at(at, std::move(message), std::move(help)));
  }

  Section* find_section(const std::string& name) {
    if (name == "workload") return &inputs_.workload;
    if (name == "cluster") return &inputs_.cluster;
    if (name == "site") return &inputs_.site;
    if (name == "stack") return &inputs_.stack;
    if (name == "plan") return &inputs_.plan;
    if (name == "run") return &inputs_.run;
    return nullptr;
  }

  void give(const std::string& name, Value value, const std::string& label) {
    Section& section = *find_section(name);
    if (section.given) {
      problem(value.at, fmt::format("a second {}: `{}`", name, sanitize(label, 80)),
              fmt::format("`{}` gives one already", sanitize(section.label, 80)));
      return;
    }
    section.given = true;
    section.value = std::move(value);
    section.label = label;
  }

  // `stack=gpt-neox`: a name that says itself which section it stands for.
  bool section_name(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals + 1 == text.size()) return false;
    const std::string section = text.substr(0, equals), name = text.substr(equals + 1);
    if (!is_section(section) || section == "plan") return false;
    give(section, scalar_value(name, {inputs_.sources.add(text, text), equals + 1, name.size()}),
         name);
    return true;
  }

  // A name of the catalog stands for the section that its entry belongs to: an entry's own name
  // before another's alias, hardware first.
  bool catalog_name(const std::string& text) {
    const Mark at{inputs_.sources.add(text, text)};
    const Value name = scalar_value(text, at);
    std::vector<Reading> readings;
    for (const bool own : {true, false}) {
      find_readings<Cluster>(text, own, "cluster", readings);
      find_readings<Node>(text, own, "cluster", readings);
      find_readings<Accelerator>(text, own, "cluster", readings);
      find_readings<Model>(text, own, "workload", readings);
      find_readings<Stack>(text, own, "stack", readings);
      find_readings<Site>(text, own, "site", readings);
      find_readings<Operations>(text, own, "run", readings);
    }
    if (readings.empty() && !sized_cluster(text)) return false;
    if (readings.empty()) readings.push_back({"cluster", text});
    give(readings[0].section, name, readings[0].entry);
    for (const Reading& other : readings) {
      if (std::string_view(other.section) != readings[0].section)
        find_section(other.section)->passed_over = text;
    }
    return true;
  }

  struct Reading {
    const char* section;
    std::string entry;
  };

  template <InCatalog T>
  void find_readings(const std::string& text, bool own, const char* section,
                     std::vector<Reading>& into) const {
    const T* entry = own ? find_own_name<T>(catalog_, text) : find_entry<T>(catalog_, text);
    if (entry != nullptr) into.push_back({section, entry->name});
  }

  // `phoenix` is a cluster, `dgx-h100` some of those nodes, `h100` some of the usual nodes with it.
  Value cluster_by_name(const Value& name, Section& section) {
    section.label = section.label.empty() ? name.text : section.label;
    if (find_entry<Cluster>(catalog_, name.text) != nullptr) return map_of("base", name);
    const Node* node = find_entry<Node>(catalog_, name.text);
    const Accelerator* accelerator = find_entry<Accelerator>(catalog_, name.text);
    if (node == nullptr && accelerator != nullptr) node = usual_node(accelerator->name, catalog_);
    if (node != nullptr) return map_of("node", scalar_value(node->name, name.at));
    const std::optional<SizedCluster> sized = sized_cluster(name.text);
    if (!sized) return map_of("base", name);  // the reader says that there is none
    return of_size(*sized, name);
  }

  // `h100-4096`: a cluster, a node or an accelerator of the catalog, and how many accelerators.
  struct SizedCluster {
    const Cluster* base = nullptr;  // the smallest of that name that is as large, or the largest
    const Node* node = nullptr;
    int64_t accelerators = 0;
  };

  std::optional<SizedCluster> sized_cluster(const std::string& text) const {
    const auto split = [](const std::string& name) -> std::pair<std::string, int64_t> {
      const size_t dash = name.rfind('-');
      const size_t digits = dash == std::string::npos ? 0 : name.size() - dash - 1;
      constexpr size_t kDigitsMost = 7;
      if (digits == 0 || digits > kDigitsMost) return {};
      if (name.find_first_not_of("0123456789", dash + 1) != std::string::npos) return {};
      return {normalised(name.substr(0, dash)), std::stoll(name.substr(dash + 1))};
    };
    const auto [family, count] = split(text);
    if (family.empty() || count < 1) return std::nullopt;
    SizedCluster found{nullptr, nullptr, count};
    for (const Cluster& c : catalog_.clusters) {
      if (split(c.name).first != family) continue;
      const int64_t now = found.base == nullptr ? 0 : found.base->accelerators();
      const bool better = now < count ? c.accelerators() > now
                                      : c.accelerators() >= count && c.accelerators() < now;
      if (better) found.base = &c;
    }
    if (found.base != nullptr) {
      found.node = &found.base->node;
      return found;
    }
    const std::string head = text.substr(0, text.rfind('-'));
    found.node = find_entry<Node>(catalog_, head);
    const Accelerator* accelerator = find_entry<Accelerator>(catalog_, head);
    if (found.node == nullptr && accelerator != nullptr)
      found.node = usual_node(accelerator->name, catalog_);
    return found.node == nullptr ? std::nullopt : std::optional(found);
  }

  Value of_size(const SizedCluster& sized, const Value& name) {
    const int64_t each = std::max<int64_t>(1, sized.node->accelerators);
    const int64_t nodes = (sized.accelerators + each - 1) / each;
    if (sized.accelerators % each != 0) {
      const std::string head = name.text.substr(0, name.text.rfind('-'));
      problem(name.at,
              fmt::format("`{}`: {} is no whole number of nodes ({} each)", name.text,
                          sized.accelerators, each),
              fmt::format("`{}-{}`, and `--gpus {}` where not all are used", head, nodes * each,
                          sized.accelerators));
    }
    Value map = sized.base != nullptr ? map_of("base", scalar_value(sized.base->name, name.at))
                                      : map_of("node", scalar_value(sized.node->name, name.at));
    map.entries.push_back(Entry{"nodes", name.at, scalar_value(fmt::format("{}", nodes), name.at)});
    map.entries.push_back(Entry{"name", name.at, scalar_value(name.text, name.at)});
    return map;
  }

  void unknown(const std::string& text) {
    std::vector<std::string> names = entry_names<Cluster>(catalog_);
    for (const std::vector<std::string>& more :
         {entry_names<Node>(catalog_), entry_names<Accelerator>(catalog_),
          entry_names<Model>(catalog_), entry_names<Stack>(catalog_), entry_names<Site>(catalog_),
          entry_names<Operations>(catalog_)}) {
      names.insert(names.end(), more.begin(), more.end());
    }
    const std::string near = nearest(text, names);
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(text, ignored);
    problem({},
            fmt::format("`{}` is {} and no name of the catalog", sanitize(text, 80),
                        folder ? "a directory" : "no file"),
            near.empty() ? "`assay catalog list` shows the names"
                         : fmt::format("did you mean `{}`?", near));
  }

  void hf_config(const std::string& text, const std::string& file, const std::string& stem) {
    const tl::expected<Model, Diagnostics> model = read_hf_config(text, file);
    if (!model) {
      problems_.insert(problems_.end(), model.error().begin(), model.error().end());
      inputs_.workload.given = true;
      inputs_.workload.failed = true;
      return;
    }
    for (Diagnostic& d : left_out_of_config(text, file)) problems_.push_back(std::move(d));
    const Mark at{inputs_.sources.add(file, "")};
    give("workload", map_of("model", to_value(*model, at)),
         model->name.empty() ? stem : model->name);
  }

  void yaml(std::string text, const std::string& file, const std::string& stem) {
    const Source* source = inputs_.sources.add(file, std::move(text));
    std::optional<Value> root = parse_yaml(*source, problems_);
    if (!root) return;
    if (!root->is_map()) {
      problem(root->is_null() ? Mark{source, 0} : root->at,
              root->is_null() ? "the file is empty" : "a mapping is expected",
              fmt::format("write one of the sections {}", fmt::join(kSections, ", ")));
      return;
    }
    const bool has_section = std::any_of(root->entries.begin(), root->entries.end(),
                                         [](const Entry& e) { return is_section(e.key); });
    if (!has_section) {
      unnamed_section(std::move(*root), stem);
      return;
    }
    for (Entry& entry : root->entries) {
      if (is_section(entry.key)) {
        give(entry.key, std::move(entry.value), stem);
      } else if (!is_reserved_key(entry.key)) {
        const std::string near = nearest(entry.key, kSections);
        problem(entry.key_at, fmt::format("unknown section `{}`", sanitize(entry.key, 60)),
                near.empty() ? fmt::format("known sections are {}", fmt::join(kSections, ", "))
                             : fmt::format("did you mean `{}`?", near));
      }
    }
  }

  // A file that starts right with the keys of one section: the section that knows most of them.
  void unnamed_section(Value root, const std::string& stem) {
    const auto known_keys = [&](const std::vector<std::string>& keys) {
      return std::count_if(root.entries.begin(), root.entries.end(), [&](const Entry& e) {
        return std::find(keys.begin(), keys.end(), e.key) != keys.end();
      });
    };
    std::vector<std::pair<std::ptrdiff_t, std::string>> scores = {
        {known_keys(field_keys<Workload>()), "workload"},
        {known_keys(field_keys<Cluster>()), "cluster"},
        {known_keys(field_keys<Site>()), "site"},
        {known_keys(field_keys<Stack>()), "stack"},
        {known_keys(field_keys<Plan>()), "plan"},
        {known_keys(field_keys<Operations>()), "run"},
        {known_keys(field_keys<Model>()), "model"}};
    std::stable_sort(scores.begin(), scores.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (scores[0].first == 0 || scores[0].first == scores[1].first) {
      problem(root.entries.empty() ? root.at : root.entries[0].key_at,
              fmt::format("this file has none of the sections {}", fmt::join(kSections, ", ")),
              "write one of them above these keys, and indent the keys");
    } else if (scores[0].second == "model") {
      give("workload", map_of("model", std::move(root)), stem);
    } else {
      give(scores[0].second, std::move(root), stem);
    }
  }

  // `stack=pytorch-fsdp2`: another entry of the catalog in place of the one that was named.
  void name_section(const std::string& name, Section& section, const Source& source) {
    const std::string wanted(trimmed(source.text));
    if (wanted.empty()) {
      problem({&source}, fmt::format("--set {} needs a name of the catalog", name),
              fmt::format("as in `{}.KEY=VALUE` for one of its settings", name));
      return;
    }
    section.given = true;
    section.failed = false;
    section.value = scalar_value(wanted, {&source});
    section.label = wanted;
    expand(name, section);
  }

  static std::vector<std::string> split(const std::string& path) {
    std::vector<std::string> parts(1);
    for (char c : path) {
      if (c == '.') {
        parts.emplace_back();
      } else if (c != ' ') {
        parts.back() += c;
      }
    }
    return parts;
  }

  void bad_path(const std::vector<std::string>& parts, const Source& source) {
    const std::string near = nearest(parts[0], kSections);
    std::string help = fmt::format("a path starts with {}", fmt::join(kSections, ", "));
    if (std::find(kSections.begin(), kSections.end(), parts[0]) != kSections.end()) {
      help = fmt::format("write one of its keys: `{}.KEY=...`", parts[0]);
    } else if (!near.empty() && parts.size() > 1) {
      help = fmt::format("did you mean `{}.`?", near);
    }
    const std::pair<const char*, std::vector<std::string>> sections[] = {
        {"workload", field_keys<Workload>()}, {"cluster", field_keys<Cluster>()},
        {"plan", field_keys<Plan>()},         {"site", field_keys<Site>()},
        {"run", field_keys<Operations>()},    {"stack", field_keys<Stack>()}};
    for (const auto& [section, keys] : sections) {
      const bool known = std::find(keys.begin(), keys.end(), parts[0]) != keys.end();
      if (known) {
        help = fmt::format("write `{}.{}=...`", section, parts[0]);
        break;
      }
    }
    problem({&source}, fmt::format("--set cannot find `{}`", sanitize(parts[0], 60)), help);
  }

  // A list or mapping may be set, too; everything else is taken as it stands.
  bool set_value(const Source& source, Value& value) {
    const size_t first = source.text.find_first_not_of(' ');
    const bool flow =
        first != std::string::npos && (source.text[first] == '[' || source.text[first] == '{');
    if (!flow) {
      value = scalar_value(source.text, {&source});
      if (first == std::string::npos) value.kind = Value::Kind::kNull;
      return true;
    }
    std::optional<Value> parsed = parse_yaml(source, problems_);
    if (parsed) value = std::move(*parsed);
    return parsed.has_value();
  }

  // The value under a key, made when absent. A name becomes a mapping that starts from it.
  static Value& child(Value& parent, const std::string& key, const Mark& at) {
    if (parent.is_scalar()) parent = map_of("base", std::move(parent));
    if (!parent.is_map()) {
      parent = Value{};
      parent.kind = Value::Kind::kMap;
      parent.at = at;
    }
    Entry* entry = parent.find(key);
    if (entry == nullptr) {
      parent.entries.push_back(Entry{key, at, {}});
      entry = &parent.entries.back();
    }
    entry->key_at = at;
    return entry->value;
  }

  const Catalog& catalog_;
  Inputs& inputs_;
  Diagnostics& problems_;
};

Value written(int64_t v, const Mark& at) { return scalar_value(fmt::format("{}", v), at); }
Value written(double v, const Mark& at) { return scalar_value(fmt::format("{}", v), at); }
Value written(bool v, const Mark& at) { return scalar_value(v ? "true" : "false", at); }
template <class E>
requires std::is_enum_v<E> Value written(E v, const Mark& at) {
  return scalar_value(std::string(enum_names(v)[static_cast<size_t>(v)]), at);
}
Value written(const std::vector<int64_t>& v, const Mark& at) {
  Value list;
  list.kind = Value::Kind::kList;
  list.at = at;
  for (int64_t item : v) list.items.push_back(written(item, at));
  return list;
}

// A struct by the fields that differ from its defaults.
template <class T>
requires requires(T t) {
  fields(t, [](auto&&...) {});
}
Value written(const T& t, const Mark& at) {
  Value map;
  map.kind = Value::Kind::kMap;
  map.at = at;
  std::vector<Value> unstated;
  const T defaults;
  fields(defaults, [&](const char*, const auto& member, const Limits&, const char*) {
    unstated.push_back(written(member, at));
  });
  size_t index = 0;
  fields(t, [&](const char* key, const auto& member, const Limits&, const char*) {
    Value value = written(member, at);
    const Value& usual = unstated[index++];
    const bool differs = value.text != usual.text || value.items.size() != usual.items.size() ||
                         value.entries.size() != usual.entries.size();
    if (differs) map.entries.push_back(Entry{key, at, std::move(value)});
  });
  return map;
}

}  // namespace

Value to_value(const Model& model, const Mark& at) {
  Value map = written(model, at);
  if (!model.name.empty()) {
    map.entries.insert(map.entries.begin(), Entry{"name", at, scalar_value(model.name, at)});
  }
  return map;
}

void gather_inputs(const Request& request, const Catalog& catalog, Inputs& inputs,
                   Diagnostics& problems) {
  Gatherer gatherer(catalog, inputs, problems);
  for (const std::string& input : request.inputs) gatherer.input(input);
  gatherer.expand("workload", inputs.workload);
  gatherer.expand("cluster", inputs.cluster);
  gatherer.expand("site", inputs.site);
  gatherer.expand("run", inputs.run);
  gatherer.expand("stack", inputs.stack);
  for (const std::string& text : request.sets) gatherer.set(text);
}

}  // namespace assay

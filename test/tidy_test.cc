// House style as a test: reads every source, catalog file and page, and prints `path:line: error`.
// docs/internals/style.md gives the reason for each rule. Rules look at lines of text, with
// comments and strings blanked where they would mislead; none of them parses C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace {

namespace fs = std::filesystem;

constexpr size_t kColumnsMost = 100;
constexpr size_t kFunctionLinesMost = 70;
constexpr size_t kFileLinesMost = 600;

struct File {
  std::string path;  // from the root: `src/perf/step.cc`
  std::vector<std::string> lines;
  std::vector<std::string> code;  // the same lines; comments and text in quotes are blanks
};

using Errors = std::vector<std::string>;

void report(Errors& errors, const File& file, size_t line, const std::string& what) {
  errors.push_back(fmt::format("{}:{}: error: {}", file.path, line + 1, what));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool in_folder(const std::string& path, const std::string& folder) {
  return path.rfind(folder + "/", 0) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !word_char(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !word_char(text[end]))) return true;
  }
  return false;
}

size_t columns(const std::string& line) {  // UTF-8 continuation bytes take none
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Blanks comments, strings and characters, line by line; raw strings up to their `)"`.
class Blanker {
 public:
  std::string blank(const std::string& line) {
    std::string out(line.size(), ' ');
    for (size_t i = 0; i < line.size();) i = step(line, i, out);
    if (state_ != State::kComment && state_ != State::kRaw) state_ = State::kCode;
    return out;
  }

 private:
  enum class State { kCode, kComment, kRaw };

  size_t step(const std::string& line, size_t i, std::string& out) {
    if (state_ == State::kComment) return leave(line, i, "*/");
    if (state_ == State::kRaw) return leave(line, i, raw_end_);
    if (line.compare(i, 2, "//") == 0) return line.size();
    if (line.compare(i, 2, "/*") == 0) return enter(State::kComment, i);
    if (line.compare(i, 2, "R\"") == 0 && (i == 0 || !word_char(line[i - 1]))) {
      raw_end_ = ")" + line.substr(i + 2, line.find('(', i) - i - 2) + "\"";
      return enter(State::kRaw, i);
    }
    const bool digit_separator = line[i] == '\'' && i > 0 && word_char(line[i - 1]);
    if (line[i] == '"' || (line[i] == '\'' && !digit_separator)) return after_quoted(line, i);
    out[i] = line[i];
    return i + 1;
  }

  size_t enter(State state, size_t i) {
    state_ = state;
    return i + 2;
  }

  size_t leave(const std::string& line, size_t i, const std::string& end) {
    const size_t at = line.find(end, i);
    if (at == std::string::npos) return line.size();
    state_ = State::kCode;
    return at + end.size();
  }

  static size_t after_quoted(const std::string& line, size_t i) {
    const char quote = line[i];
    for (++i; i < line.size() && line[i] != quote; ++i) {
      if (line[i] == '\\') ++i;
    }
    return std::min(i + 1, line.size());
  }

  State state_ = State::kCode;
  std::string raw_end_;
};

File make_file(std::string path, const std::vector<std::string>& lines) {
  File file{std::move(path), lines, {}};
  Blanker blanker;
  for (const std::string& line : lines) file.code.push_back(blanker.blank(line));
  return file;
}

// --- rules
// -----------------------------------------------------------------------------------------

void check_size(const File& file, Errors& errors) {
  if (file.lines.size() > kFileLinesMost) {
    report(errors, file, kFileLinesMost,
           fmt::format("file has {} lines, at most {}", file.lines.size(), kFileLinesMost));
  }
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (columns(line) > kColumnsMost) report(errors, file, i, "line exceeds 100 columns");
    if (!line.empty() && (line.back() == ' ' || line.back() == '\t')) {
      report(errors, file, i, "blanks at the end of the line");
    }
    if (has(line, "\t")) report(errors, file, i, "tab");
  }
}

// What a `{` opens, judged by the text since the statement began.
enum class Brace { kScope, kData, kFunction };

Brace brace_kind(const std::string& before) {
  const size_t last = before.find_last_not_of(' ');
  const char end = last == std::string::npos ? ' ' : before[last];
  if (has_word(before, "namespace") || has_word(before, "extern")) return Brace::kScope;
  const bool type = has_word(before, "struct") || has_word(before, "class") ||
                    has_word(before, "union") || has_word(before, "enum");
  if (type && !has(before, "(")) return Brace::kScope;
  return end == '=' || end == ',' || end == '(' || !has(before, "(") ? Brace::kData
                                                                     : Brace::kFunction;
}

// Functions are the outermost braces that are neither scopes nor data.
void check_functions(const File& file, Errors& errors) {
  std::vector<Brace> open;
  std::string before;
  size_t begin = 0;  // line on which the statement began
  size_t function_begin = 0;
  for (size_t i = 0; i < file.code.size(); ++i) {
    if (file.code[i].rfind("#", 0) == 0) continue;
    for (const char c : file.code[i]) {
      const bool inside = std::find(open.begin(), open.end(), Brace::kFunction) != open.end();
      if (c == '{') {
        const Brace kind = inside ? Brace::kData : brace_kind(before);
        if (kind == Brace::kFunction) function_begin = begin;
        open.push_back(kind);
      } else if (c == '}' && !open.empty()) {
        if (open.back() == Brace::kFunction && i - function_begin + 1 > kFunctionLinesMost) {
          report(errors, file, function_begin,
                 fmt::format("function has {} lines, at most {}", i - function_begin + 1,
                             kFunctionLinesMost));
        }
        open.pop_back();
      }
      if (c == ';' || c == '{' || c == '}') {
        before.clear();
      } else if (!(before.empty() && c == ' ')) {
        if (before.empty()) begin = i;
        before += c;
      }
    }
    if (!before.empty()) before += ' ';
  }
}

void check_words(const File& file, Errors& errors) {
  const std::string marker = std::string("TO") + "DO";
  const bool source = in_folder(file.path, "src");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& code = file.code[i];
    if (has_word(file.lines[i], marker) && !has(file.lines[i], marker + "(#")) {
      report(errors, file, i, marker + " without an issue; write " + marker + "(#12)");
    }
    if (has_word(code, "regex"))
      report(errors, file, i, "std::regex; 2.8 s to compile, read by hand");
    if (source && has(code, "using namespace")) report(errors, file, i, "using namespace");
    if (source && code.rfind("#define", 0) == 0 && !has_word(code, "ASSERT")) {
      report(errors, file, i, "macro; only ASSERT is one");
    }
  }
  if (ends_with(file.path, ".h") &&
      std::find(file.lines.begin(), file.lines.end(), "#pragma once") == file.lines.end()) {
    report(errors, file, 0, "header without #pragma once");
  }
}

// Libraries with heavy or leaky headers, and the places that may see them.
struct Confined {
  std::string include;
  std::vector<std::string> places;  // prefixes of paths
  std::string why;
};

const std::vector<Confined>& confined() {
  static const std::vector<Confined> list = {
      {"<iostream>", {"test/", "tools/"}, "iostream in src; use fmt"},
      {"<iomanip>", {"test/", "tools/"}, "iostream formatting in src; use fmt"},
      {"<yaml.h>", {"src/config/yaml.cc"}, "libyaml belongs to src/config/yaml.cc"},
      {"<simdjson",
       {"src/ingest/", "test/bench/"},
       "simdjson belongs to src/ingest and its benchmark"},
      {"<nlohmann/",
       {"src/report/", "src/validate/render.cc"},
       "nlohmann belongs to the renderers"},
      {"<benchmark/", {"test/bench/"}, "benchmarks belong to test/bench"},
      {"<gtest/", {"test/"}, "gtest belongs to tests"},
  };
  return list;
}

void check_includes(const File& file, const std::vector<std::string>& layers, Errors& errors) {
  const bool test = ends_with(file.path, "_test.cc");
  const std::string module =
      in_folder(file.path, "src") ? file.path.substr(4, file.path.find('/', 4) - 4) : "";
  const auto own = std::find(layers.begin(), layers.end(), module);
  if (!module.empty() && own == layers.end()) report(errors, file, 0, "module not in src/LAYERS");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.rfind("#include", 0) != 0) continue;
    for (const Confined& c : confined()) {
      const bool allowed = (test && c.include != "<yaml.h>") ||
                           std::any_of(c.places.begin(), c.places.end(), [&](const std::string& p) {
                             return file.path.rfind(p, 0) == 0;
                           });
      if (has(line, c.include) && !allowed) report(errors, file, i, c.why);
    }
    const size_t quote = line.find('"');
    const size_t slash = line.find('/');
    if (module.empty() || quote == std::string::npos || slash == std::string::npos) continue;
    const std::string used = line.substr(quote + 1, slash - quote - 1);
    if (test && used == "tools") continue;  // what tests and tools share
    if (std::find(layers.begin(), own, used) == own && used != module) {
      report(errors, file, i, fmt::format("{} may not include {}: see src/LAYERS", module, used));
    }
  }
}

// Every entry of a catalog file says where its figures come from.
void check_catalog(const File& file, Errors& errors) {
  size_t entry = 0;
  bool inside = false, sourced = false;
  const auto close = [&] {
    if (inside && !sourced) report(errors, file, entry, "catalog entry without a source");
  };
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ' && line.back() == ':') {
      close();
      inside = true;
      sourced = false;
      entry = i;
    }
    if (line.rfind("  source:", 0) == 0 || line.rfind("  sources:", 0) == 0) sourced = true;
  }
  close();
}

// A page that a page links to exists.
void check_links(const File& file, const fs::path& root, Errors& errors) {
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    for (size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
      const std::string target =
          line.substr(at + 2, line.find_first_of(" `),;:#\"", at + 2) - at - 2);
      const bool local = !target.empty() && !has(target, "://");
      if (local && !fs::exists((root / file.path).parent_path() / target)) {
        report(errors, file, i, "no such page: " + target);
      }
    }
  }
}

// Folders of this repository whose files are named in comments, texts and pages, and what other
// repositories have in folders of the same names: their project stands before each.
const std::vector<std::string> kNamedFolders = {"data/",    "test/data/", "docs/",
                                                "catalog/", "tools/",     "examples/"};
const std::vector<std::string> kElsewhere = {
    "data/Weather/",                                   // HewlettPackard/dc-rl
    "data/weather/",                                   // HewlettPackard/sustain-cluster
    "docs/discussions/megatron-fsdp-user-guide",       // NVIDIA/Megatron-LM
    "docs/source/performance/performance_summary.md",  // NVIDIA/NeMo
    "examples/config_tiny_llama.yaml",                 // huggingface/nanotron
    "examples/language/llama/benchmark.py",            // hpcaitech/ColossalAI
    "examples/llama-3/fft-8b.yaml",                    // axolotl-ai-cloud/axolotl
};

// A file, a folder, a program by its name (`tools/calibrate`), or any file of `h200_*.csv`.
bool is_here(const fs::path& root, const std::string& name) {
  for (const char* end : {"", ".cc", ".yaml"}) {
    if (fs::exists(root / (name + end))) return true;
  }
  const size_t star = name.find('*');
  const fs::path folder = (root / name).parent_path();
  if (star == std::string::npos || !fs::is_directory(folder)) return false;
  const std::string begin = (root / name.substr(0, star)).string(), end = name.substr(star + 1);
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), [&](const auto& e) {
    return e.path().string().rfind(begin, 0) == 0 && ends_with(e.path().string(), end);
  });
}

// Whoever reads a citation can open it: files named by their path from the root exist.
void check_paths(const File& file, const fs::path& root, Errors& errors) {
  const auto of_path = [](char c) { return word_char(c) || has("./-*", std::string(1, c)); };
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    for (size_t at = 0, end = 0; at < line.size(); at = end + 1) {
      end = at;
      while (end < line.size() && of_path(line[end])) ++end;
      std::string name = line.substr(at, end - at);
      while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
      const auto begins = [&](const std::string& with) { return name.rfind(with, 0) == 0; };
      if (std::any_of(kNamedFolders.begin(), kNamedFolders.end(), begins) &&
          std::none_of(kElsewhere.begin(), kElsewhere.end(), begins) && !is_here(root, name)) {
        report(errors, file, i, "not in this repository: " + name);
      }
    }
  }
}

// What a line at the left edge defines: types, constants, and functions by their whole head.
std::vector<std::string> defined_in(const std::string& code) {
  for (const std::string kind : {"struct ", "class ", "enum class "}) {
    if (code.rfind(kind, 0) != 0 || !has(code, "{")) continue;
    const size_t begin = kind.size();
    return {code.substr(begin, code.find_first_of(" :{", begin) - begin)};
  }
  if (code.rfind("constexpr ", 0) != 0 && code.rfind("const ", 0) != 0) {
    const bool function = !code.empty() && word_char(code[0]) && has(code, "(");
    return function && ends_with(code, "{") ? std::vector{code} : std::vector<std::string>();
  }
  std::vector<std::string> names;
  for (size_t at = code.find(" k"); at != std::string::npos; at = code.find(" k", at + 1)) {
    size_t end = at + 1;
    while (end < code.size() && word_char(code[end])) ++end;
    const size_t next = code.find_first_not_of(' ', end);
    if (next != std::string::npos && std::string("={[(").find(code[next]) != std::string::npos)
      names.push_back(code.substr(at + 1, end - at - 1));
  }
  return names;
}

// A command of the program is compiled alone: `plan_command` in src/cli/plan.cc.
bool is_command(const File& file) {
  const std::string head = "Command " + fs::path(file.path).stem().string() + "_command() {";
  return std::find(file.lines.begin(), file.lines.end(), head) != file.lines.end();
}

// Names in anonymous namespaces are unique within a module: the sanitized build compiles its files
// as one.
void check_names(const std::vector<File>& files, Errors& errors) {
  std::map<std::pair<std::string, std::string>, std::string> known;  // module, name: file
  for (const File& file : files) {
    if (ends_with(file.path, "_test.cc") || is_command(file)) continue;
    bool inside = false;
    for (size_t i = 0; i < file.code.size(); ++i) {
      if (file.lines[i] == "namespace {") inside = true;
      if (file.lines[i] == "}  // namespace") inside = false;
      if (!inside) continue;
      for (const std::string& name : defined_in(file.code[i])) {
        const auto [at, made] =
            known.try_emplace({fs::path(file.path).parent_path(), name}, file.path);
        if (!made && at->second != file.path)
          report(errors, file, i, name + " is a name of " + at->second + ", too");
      }
    }
  }
}

// --- the tree
// --------------------------------------------------------------------------------------

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<File> files_under(const fs::path& root, const std::string& folder,
                              const std::set<std::string>& extensions) {
  std::vector<File> files;
  if (!fs::exists(root / folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (!entry.is_regular_file() || extensions.count(entry.path().extension()) == 0) continue;
    files.push_back(make_file(fs::relative(entry.path(), root), read_lines(entry.path())));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> read_layers(const fs::path& root) {
  std::vector<std::string> layers = read_lines(root / "src/LAYERS");
  std::erase_if(layers, [](const std::string& l) { return l.empty() || l[0] == '#'; });
  return layers;
}

std::string joined(const Errors& errors) {
  std::string all = "\n";
  for (const std::string& e : errors) all += e + "\n";
  return all;
}

TEST(Tidy, Sources) {
  const fs::path root = ASSAY_ROOT;
  const std::vector<std::string> layers = read_layers(root);
  ASSERT_FALSE(layers.empty());
  Errors errors;
  size_t count = 0;
  for (const std::string folder : {"src", "tools", "test"}) {
    const std::vector<File> files = files_under(root, folder, {".h", ".cc"});
    if (folder == "src") check_names(files, errors);
    for (const File& file : files) {
      ++count;
      check_size(file, errors);
      check_functions(file, errors);
      check_words(file, errors);
      check_includes(file, layers, errors);
      check_paths(file, root, errors);
    }
  }
  EXPECT_GT(count, 50u);
  EXPECT_TRUE(errors.empty()) << joined(errors);
}

TEST(Tidy, CatalogAndPages) {
  const fs::path root = ASSAY_ROOT;
  Errors errors;
  const std::vector<File> catalog = files_under(root, "catalog", {".yaml"});
  for (const File& file : catalog) check_catalog(file, errors);
  std::vector<File> pages = files_under(root, "docs", {".md"});
  for (const char* name :
       {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "data/README.md"}) {
    pages.push_back(make_file(name, read_lines(root / name)));
  }
  for (const File& file : pages) check_links(file, root, errors);
  std::vector<File> naming = catalog;
  for (const File& file : files_under(root, "tools", {".py"})) naming.push_back(file);
  for (const File& file : files_under(root, "examples", {".cc", ".yaml"})) naming.push_back(file);
  for (const File& file : pages) {
    if (!in_folder(file.path, "docs/history")) naming.push_back(file);  // as it was
  }
  for (const File& file : naming) check_paths(file, root, errors);
  EXPECT_TRUE(errors.empty()) << joined(errors);
}

// --- the rules themselves
// --------------------------------------------------------------------------

Errors errors_in(const std::string& path, const std::vector<std::string>& lines) {
  const File file = make_file(path, lines);
  Errors errors;
  check_size(file, errors);
  check_functions(file, errors);
  check_words(file, errors);
  check_includes(file, {"base", "config", "world"}, errors);
  return errors;
}

TEST(TidyRules, FindWhatTheyForbid) {
  const std::string wide(101, 'x');
  const std::string marker = std::string("// TO") + "DO later";
  const std::vector<std::vector<std::string>> wrong = {
      {wide},
      {"int x; "},
      {"\tint x;"},
      {marker},
      {"using namespace std;"},
      {"#define MAX 3"},
      {"std::regex r;"},
      {"#include <iostream>"},
      {"#include <yaml.h>"},
      {"#include <nlohmann/json.hpp>"},
      {"#include \"world/plan.h\""},
      std::vector<std::string>(601, "int x;"),
  };
  for (const auto& lines : wrong) {
    EXPECT_EQ(errors_in("src/config/a.cc", lines).size(), 1u) << lines[0];
  }
  EXPECT_EQ(errors_in("src/config/a.h", {"int x;"}).size(), 1u);
  EXPECT_EQ(errors_in("src/nowhere/a.cc", {"int x;"}).size(), 1u);
}

TEST(TidyRules, LeaveTheRestAlone) {
  const std::vector<std::string> fine = {
      "#include \"base/units.h\"",
      "#include \"config/value.h\"",
      "// std::regex is slow",
      "const char* s = \"using namespace\";",
      std::string("// TO") + "DO(#7): when issue 7 is done",
  };
  EXPECT_TRUE(errors_in("src/config/a.cc", fine).empty());
}

TEST(TidyRules, NamedFilesAreHere) {
  const auto errors = [](const std::string& line) {
    Errors found;
    check_paths(make_file("src/base/a.cc", {line}), ASSAY_ROOT, found);
    return found.size();
  };
  for (const char* fine : {"// test/data/h200_*.csv, README.md", "(data/training_runs.csv).",
                           "docs/models/{heat}.md", "tools/calibrate --loo", "catalog/kernels",
                           "at/data/none.csv", "data/weather/ZA", "https://a.b/docs/none"}) {
    EXPECT_EQ(errors(fine), 0u) << fine;
  }
  for (const std::string folder : {"// (data", "\"test/data", "catalog"}) {
    for (const char* none : {"/none.csv", "/none_*.csv\"", "/none.md."}) {
      EXPECT_EQ(errors(folder + none), 1u) << folder << none;
    }
  }
}

TEST(TidyRules, NamesOfAModuleAreUnique) {
  const auto found = [](const std::string& path, const std::string& a, const std::string& b) {
    Errors errors;
    check_names({make_file("src/base/a.cc", {"namespace {", a, "}  // namespace", "struct Out {"}),
                 make_file(path, {"struct Out {", "namespace {", b, "}  // namespace"})},
                errors);
    return errors.size();
  };
  for (const char* twice : {"struct Part {", "enum class Part : int { kA };", "int f(int a) {",
                            "constexpr double kMost = 3, kLeast = 2;"}) {
    EXPECT_EQ(found("src/base/b.cc", "constexpr int kLeast = 1;", "constexpr int kMost = 1;"), 0u);
    EXPECT_GE(found("src/base/b.cc", twice, twice), 1u) << twice;
    EXPECT_EQ(found("src/config/b.cc", twice, twice), 0u) << twice;
    EXPECT_EQ(found("src/base/b_test.cc", twice, twice), 0u) << twice;
  }
  EXPECT_EQ(found("src/base/b.cc", "int f(int a) {", "int f(double a) {"), 0u);
  EXPECT_EQ(found("src/base/b.cc", "struct Part;", "struct Part;"), 0u);
}

TEST(TidyRules, CountLinesOfFunctions) {
  const auto body = [](std::string head, size_t lines, std::string tail) {
    std::vector<std::string> all{std::move(head)};
    all.insert(all.end(), lines, "  if (a) { b(); }");
    all.push_back(std::move(tail));
    return all;
  };
  EXPECT_TRUE(errors_in("src/base/a.cc", body("int f(int a) {", 68, "}")).empty());
  EXPECT_EQ(errors_in("src/base/a.cc", body("int f(int a) {", 69, "}")).size(), 1u);
  EXPECT_TRUE(errors_in("src/base/a.cc", body("namespace a {", 100, "}")).empty());
  EXPECT_TRUE(errors_in("src/base/a.cc", body("const int kTable[] = {", 100, "};")).empty());
  EXPECT_EQ(errors_in("src/base/a.cc", body("template <class T> int f(T) {", 69, "}")).size(), 1u);
}

}  // namespace

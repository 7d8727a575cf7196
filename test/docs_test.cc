// Pages tell the truth: every command that a page shows is one that Assay takes, on files that are
// there; and where a page shows what a command prints, the lines of that screen are still called
// so. Figures may move without a page being wrong; names may not.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"

namespace {

namespace fs = std::filesystem;

struct Shown {
  fs::path page;
  std::string command;              // `assay plan ...`, without what a shell does with it
  std::vector<std::string> output;  // lines below it, as far as they are shown
};

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

// The command of a line of code; empty where it is none, or one with a blank to fill in.
std::string command_in(std::string line) {
  line = trimmed(line);
  for (const char* lead : {"$ ", "build/", "./run "}) {
    if (line.rfind(lead, 0) == 0)
      line =
          (std::string(lead) == "./run " ? "assay " : "") + line.substr(std::string(lead).size());
  }
  if (line.rfind("assay ", 0) != 0) return "";
  for (const char* end : {" # ", "   #", " | ", " > ", " && ", "; "})
    line = line.substr(0, line.find(end));
  for (const char* blank : {"...", "<", "[", "WORKLOAD", "RESULT", "FILE", "NAME", "RUNS",
                            "COMMAND", "SITE", " A B", "assay test"}) {
    if (line.find(blank) != std::string::npos) return "";
  }
  return trimmed(line);
}

void read_page(const fs::path& page, std::vector<Shown>& all) {
  std::ifstream in(page);
  bool fenced = false, shell = false;
  Shown* open = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
      shell = fenced && line == "```";
      open = nullptr;
      continue;
    }
    const bool indented = line.rfind("    ", 0) == 0;
    if (!(fenced && shell) && !(indented && !fenced)) {
      if (!line.empty()) open = nullptr;
      continue;
    }
    const std::string command = command_in(line);
    if (!command.empty()) {
      all.push_back({page, command, {}});
      open = &all.back();
    } else if (trimmed(line).rfind("./run", 0) == 0) {
      open = nullptr;
    } else if (open != nullptr && !trimmed(line).empty()) {
      open->output.push_back(fenced ? line : line.substr(4));
    }
  }
}

// Comments of examples say how they are run.
void read_example(const fs::path& file, std::vector<Shown>& all) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("#   ", 0) != 0) continue;
    const std::string command = command_in(line.substr(1));
    if (!command.empty()) all.push_back({file, command, {}});
  }
}

const std::vector<Shown>& shown() {
  static const std::vector<Shown> all = [] {
    std::vector<Shown> found;
    found.reserve(1000);  // read_page points into it
    read_page(fs::path(ASSAY_ROOT) / "README.md", found);
    std::vector<fs::path> files;
    for (const char* folder : {"docs", "examples"}) {
      for (const auto& e : fs::recursive_directory_iterator(fs::path(ASSAY_ROOT) / folder))
        files.push_back(e.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& f : files) {
      if (f.extension() == ".md") read_page(f, found);
      if (f.extension() == ".yaml") read_example(f, found);
    }
    return found;
  }();
  return all;
}

struct Printed {
  int exit = 0;
  std::string text;  // errors included
};

// What a command prints, run once in a folder that has the repository's examples and data.
const Printed& run(const std::string& command) {
  static std::map<std::string, Printed> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  static const Scratch scratch("docs");
  Printed& printed = known[command];
  const std::string shell =
      "cd '" + scratch.path().string() + "' && " + command + " 2>&1 </dev/null";
  std::FILE* pipe = popen(shell.c_str(), "r");
  if (pipe == nullptr) return printed;
  std::array<char, 4096> buffer{};
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    printed.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  printed.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return printed;
}

// Whether a command names a file that only its reader has: `my-cluster.yaml`, `traces/`.
bool of_the_reader(const std::string& command) {
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    const bool named = word.find(".yaml") != std::string::npos ||
                       word.find(".json") != std::string::npos ||
                       word.find(".csv") != std::string::npos ||
                       word.find(".txt") != std::string::npos || word.back() == '/';
    if (named && !fs::exists(fs::path(ASSAY_ROOT) / word)) return true;
  }
  return false;
}

// What a line of a screen is called: the words before its columns, figures masked.
std::string label(const std::string& line) {
  const std::string text = trimmed(line);
  const size_t columns = text.find("  ");
  if (columns == std::string::npos || text.find('|') != std::string::npos) return "";
  std::string name = text.substr(0, columns);
  for (char& c : name) {
    if (c >= '0' && c <= '9') c = '0';
  }
  return name.find_first_not_of("0. +-:*") == std::string::npos ? "" : name;
}

TEST(Docs, ShowCommands) { EXPECT_GE(shown().size(), 60u); }

// 0: yes, 1: no; 3 only where a file is the reader's.
TEST(Docs, CommandsAreOnesThatAssayTakes) {
  for (const Shown& s : shown()) {
    const Printed& p = run(s.command);
    EXPECT_TRUE(p.exit == 0 || p.exit == 1 || (p.exit == 3 && of_the_reader(s.command)))
        << s.page << ": " << s.command << "\nexit " << p.exit << "\n"
        << p.text.substr(0, 400);
  }
}

TEST(Docs, FilesOfCommandsAreThere) {
  for (const Shown& s : shown()) {
    std::istringstream words(s.command);
    for (std::string word; words >> word;) {
      const bool ours = word.rfind("examples/", 0) == 0 || word.rfind("test/", 0) == 0 ||
                        word.rfind("data/", 0) == 0;
      EXPECT_TRUE(!ours || fs::exists(fs::path(ASSAY_ROOT) / word)) << s.page << ": " << word;
    }
  }
}

TEST(Docs, ScreensAreCalledAsTheyAreShown) {
  size_t checked = 0;
  for (const Shown& s : shown()) {
    if (s.output.empty()) continue;
    std::set<std::string> labels;
    std::istringstream lines(run(s.command).text);
    for (std::string line; std::getline(lines, line);) labels.insert(label(line));
    for (const std::string& line : s.output) {
      if (label(line).empty()) continue;
      ++checked;
      EXPECT_EQ(labels.count(label(line)), 1u)
          << s.page << ": `" << line << "` is not a line of\n  $ " << s.command;
    }
  }
  EXPECT_GE(checked, 60u);
}

// `80 accelerators (V100 ...), 122 nodes`: what a page counts is what the catalog lists.
// Elsewhere a screen's figures may be of their day; on the first page they are of this version.
TEST(Docs, ScreensOfTheReadmeAreThisVersions) {
  size_t checked = 0;
  for (const Shown& s : shown()) {
    if (s.page != fs::path(ASSAY_ROOT) / "README.md" && s.page != "README.md") continue;
    const std::string printed = "\n" + run(s.command).text;
    for (const std::string& line : s.output) {
      if (trimmed(line) == "...") continue;  // left out
      ++checked;
      EXPECT_NE(printed.find("\n" + line + "\n"), std::string::npos)
          << '`' << line << "` is not printed by\n  $ " << s.command;
    }
  }
  EXPECT_GE(checked, 20u);
}

TEST(Docs, CountsOfTheCatalogAreTrue) {
  std::ifstream in(fs::path(ASSAY_ROOT) / "README.md");
  std::string row;
  while (std::getline(in, row) && row.rfind("| `assay catalog`", 0) != 0) {
  }
  const std::string listed = run("assay catalog list").text;
  for (const char* kind : {"accelerators", "nodes", "fabrics", "models", "stacks"}) {
    const size_t at = row.find(std::string(" ") + kind);
    ASSERT_NE(at, std::string::npos) << kind;
    const size_t from = row.find_last_not_of("0123456789", at - 1) + 1;
    const std::string count = row.substr(from, at - from);
    EXPECT_NE(listed.find(std::string(kind) + " (" + count + ")"), std::string::npos)
        << "README.md counts " << count << " " << kind;
  }
}

}  // namespace

int main(int argc, char** argv) { return run_tests_of_program(argc, argv); }

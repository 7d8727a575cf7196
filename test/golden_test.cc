// Golden screens: test/golden/*.test are commands with what they print, as a user sees it.
//
//   $ assay check examples/llama-70b.yaml
//   <standard output>
//   [stderr]            only where there is any
//   <standard error>
//   [exit 2]            only where it is not 0
//
// Commands run by `sh` in a scratch folder that has examples/, test/ and data/, so that they may
// write files and the next command may read them. Lines before the first command are a remark. When
// screens change on purpose: ASSAY_UPDATE_GOLDEN=1 ctest -R golden, then read the diff.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"

namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Block {
  std::string command;   // without `$ `
  std::string expected;  // all lines up to the next command
};

struct Script {
  std::string remark;
  std::vector<Block> blocks;
};

Script parse(const std::string& text) {
  Script script;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 2, "$ ") == 0) {
      script.blocks.push_back({line.substr(2), ""});
    } else if (script.blocks.empty()) {
      script.remark += line + "\n";
    } else {
      script.blocks.back().expected += line + "\n";
    }
  }
  return script;
}

std::string with_newline(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

// What a block prints now, in the form of `Block::expected` without the empty line before the next.
std::string run(const std::string& command, const fs::path& scratch) {
  const std::string shell = "cd '" + scratch.string() + "' && { " + command + "\n} >'" +
                            (scratch / "out").string() + "' 2>'" + (scratch / "err").string() + "'";
  const int status = std::system(shell.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::string result = with_newline(slurp(scratch / "out"));
  const std::string error = with_newline(slurp(scratch / "err"));
  if (!error.empty()) result += "[stderr]\n" + error;
  if (code != 0) result += "[exit " + std::to_string(code) + "]\n";
  return result;
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const fs::directory_entry& e :
       fs::directory_iterator(fs::path(ASSAY_ROOT) / "test/golden")) {
    if (e.path().extension() == ".test") names.push_back(e.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PrintsWhatItPrinted) {
  const fs::path file = fs::path(ASSAY_ROOT) / "test/golden" / (GetParam() + ".test");
  const Scratch scratch("golden_" + GetParam());
  const bool update = std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr;

  const Script script = parse(slurp(file));
  ASSERT_FALSE(script.blocks.empty());
  std::string rewritten = script.remark;
  for (size_t i = 0; i < script.blocks.size(); ++i) {
    const Block& block = script.blocks[i];
    std::string now = run(block.command, scratch.path());
    for (const char* crash : {"[exit 70]", "[exit 134]", "[exit 139]"}) {
      EXPECT_EQ(now.find(crash), std::string::npos) << "$ " << block.command << "\n" << now;
    }
    if (i + 1 < script.blocks.size()) now += "\n";
    rewritten += "$ " + block.command + "\n" + now;
    if (!update) {
      EXPECT_EQ(block.expected, now) << "$ " << block.command;
    }
  }
  if (update) std::ofstream(file, std::ios::binary) << rewritten;
}

// The causes that the reference lists, in headings such as "### `host-sync`": each is on a screen.
TEST(Golden, EveryCauseHasAScreen) {
  std::string screens;
  for (const std::string& name : golden_files()) {
    screens += slurp(fs::path(ASSAY_ROOT) / "test/golden" / (name + ".test"));
  }
  std::istringstream page(slurp(fs::path(ASSAY_ROOT) / "docs/reference/causes.md"));
  size_t causes = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.compare(0, 2, "##") != 0) continue;
    for (size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const size_t end = line.find('`', at + 1);
      if (end == std::string::npos) break;
      const std::string cause = line.substr(at + 1, end - at - 1);
      EXPECT_NE(screens.find(" " + cause + ": "), std::string::npos) << "no screen of " << cause;
      ++causes;
      at = end;
    }
  }
  EXPECT_GE(causes, 18u);
}

INSTANTIATE_TEST_SUITE_P(Screens, Golden, testing::ValuesIn(golden_files()),
                         [](const testing::TestParamInfo<std::string>& i) {
                           std::string name = i.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace

int main(int argc, char** argv) { return run_tests_of_program(argc, argv); }

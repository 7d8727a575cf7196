// Pass 1 of a diagnosis: operands become files.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/file.h"
#include "diagnose/diagnose.h"

namespace assay {
namespace {

constexpr size_t kFilesMost = 100'000;
constexpr int kFolderDepth = 16;
constexpr size_t kLeftOutShown = 10;

class Lister {
 public:
  void operand(const std::string& path);
  FileList finish();

 private:
  using Identity = std::pair<dev_t, ino_t>;

  void problem(Severity severity, const std::string& file, const std::string& what,
               const std::string& help = "") {
    Diagnostic d;
    d.severity = severity;
    d.message = what;
    d.help = help;
    d.at.file = sanitize(file, 4096);
    list_.problems.push_back(std::move(d));
  }
  void left_out(const std::string& file, const std::string& why, const std::string& help = "") {
    if (++left_out_ <= kLeftOutShown) problem(Severity::kWarning, file, why + ": left out", help);
  }
  void left_out(const std::string& file, const Failure& why) {
    left_out(file, why.message, why.help);
  }
  bool add(const std::string& path, const struct stat& info);
  void folder(const std::filesystem::path& path, int depth);
  void entry(const std::filesystem::path& path, int depth);

  FileList list_;
  std::set<Identity> seen_;
  size_t left_out_ = 0;
  bool full_ = false;
};

// False when the file is on the list already.
bool Lister::add(const std::string& path, const struct stat& info) {
  if (!seen_.emplace(info.st_dev, info.st_ino).second) return false;
  full_ = list_.files.size() >= kFilesMost;
  if (!full_) list_.files.push_back(path);
  return true;
}

void Lister::entry(const std::filesystem::path& path, int depth) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    left_out(path, open_failure(path, errno));  // a link that leads nowhere
  } else if (S_ISDIR(info.st_mode)) {
    if (depth >= kFolderDepth) return left_out(path, "a folder too deep to be looked into");
    folder(path, depth + 1);
  } else if (S_ISREG(info.st_mode)) {
    add(path, info);
  } else {
    left_out(path, not_a_file(path, info.st_mode));
  }
}

void Lister::folder(const std::filesystem::path& path, int depth) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !seen_.emplace(info.st_dev, info.st_ino).second) return;
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(".")) continue;
    entries.push_back(it->path());
    if (entries.size() > kFilesMost) break;
  }
  if (error) {
    const Failure why = open_failure(path, error.value());
    problem(Severity::kError, path, why.message, why.help);
  }
  std::sort(entries.begin(), entries.end());
  for (const std::filesystem::path& one : entries) {
    if (full_) return;
    entry(one, depth);
  }
}

void Lister::operand(const std::string& path) {
  struct stat info {};
  if (path == "-") {
    // Standard input has an identity of its own, whatever it is redirected from.
    if (!seen_.emplace(0, 0).second)
      left_out("standard input", "named twice");
    else
      list_.files.push_back(path);
  } else if (::stat(path.c_str(), &info) != 0) {
    list_.files.push_back(path);
  } else if (!S_ISDIR(info.st_mode)) {
    if (!add(path, info)) left_out(path, "the same file was given before");
  } else {
    const size_t files = list_.files.size(), problems = list_.problems.size();
    const bool known = seen_.contains(Identity{info.st_dev, info.st_ino});
    folder(path, 0);
    if (known)
      left_out(path, "the same folder was given before");
    else if (list_.files.size() == files && list_.problems.size() == problems)
      problem(Severity::kError, path, "the folder holds no file",
              "name another, or files; those whose names begin with a dot are passed over");
  }
}

FileList Lister::finish() {
  if (left_out_ > kLeftOutShown) {
    problem(Severity::kWarning, "",
            fmt::format("{} more files and folders were left out", left_out_ - kLeftOutShown));
  }
  if (full_) {
    problem(Severity::kWarning, "", fmt::format("only the first {} files are read", kFilesMost));
  }
  return std::move(list_);
}

}  // namespace

FileList list_files(const std::vector<std::string>& operands) {
  Lister lister;
  for (const std::string& operand : operands) lister.operand(operand);
  return lister.finish();
}

}  // namespace assay

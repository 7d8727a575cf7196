#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kEntriesLooked = 10'000;  // of a folder; more would be felt
constexpr size_t kEntriesNamed = 5;
constexpr size_t kNameMost = 4096;  // PATH_MAX

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : sanitize(path, kNameMost);
}

Failure failure(const std::string& path, std::string what, std::string help = "") {
  return Failure{std::move(what), shown_name(path), std::move(help)};
}

// The world is in order; what was given is not.
Failure too_large(const std::string& path, size_t max_bytes) {
  constexpr int kInputWrong = 2;
  Failure f = failure(path, fmt::format("is larger than the limit of {} MB", max_bytes >> 20),
                      "is it the right file? No description or table is that large");
  f.exit_code = kInputWrong;
  return f;
}

// Names in a folder, sorted, without the hidden ones. Empty where it cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error), end;
       !error && it != end && names.size() < kEntriesLooked; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(".")) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What a folder holds with this ending (empty: any): `holds a.yaml, b.yaml and 3 more`.
std::string holds(const fs::path& folder, std::vector<std::string> names, const fs::path& ending) {
  if (!ending.empty())
    std::erase_if(names, [&](const std::string& n) { return fs::path(n).extension() != ending; });
  const std::string where = folder.empty() ? "this folder" : fmt::format("`{}`", folder.string());
  if (names.empty() && ending.empty()) return where + " is empty";
  if (names.empty()) return fmt::format("{} holds no {} file", where, ending.string());
  const size_t more = names.size() - std::min(names.size(), kEntriesNamed);
  names.resize(names.size() - more);
  return fmt::format("{} holds {}{}", where, fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

// For a path that leads nowhere: the first part of it that does not exist, and what is there.
std::string missing_help(const fs::path& path) {
  fs::path folder;
  for (auto part = path.begin(); part != path.end(); ++part) {
    const fs::path here = folder / *part;
    std::error_code error;
    if (fs::exists(here, error)) {
      folder = here;
      continue;
    }
    const bool last = std::next(part) == path.end();
    if (fs::is_symlink(fs::symlink_status(here, error)))
      return fmt::format("`{}` is a link to something that does not exist",
                         sanitize(here.string(), kNameMost));
    const std::vector<std::string> names = names_in(folder);
    const std::string near = nearest(part->string(), names);
    if (!near.empty()) {
      fs::path meant = folder / near;
      for (auto rest = std::next(part); rest != path.end(); ++rest) meant /= *rest;
      return fmt::format("did you mean `{}`?", sanitize(meant.string(), kNameMost));
    }
    const std::string there = sanitize(holds(folder, names, path.extension()), kNameMost);
    if (last) return there;
    return fmt::format("there is no folder `{}`: {}", sanitize(here.string(), kNameMost), there);
  }
  return "";
}

std::string error_text(int error) { return std::strerror(error); }

// Closes on every way out.
struct Descriptor {
  int fd = -1;
  bool owned = false;
  ~Descriptor() {
    if (owned && fd >= 0) ::close(fd);
  }
};

Result<std::string> read_all(int fd, const std::string& path, size_t expected, size_t max_bytes) {
  constexpr size_t kChunk = size_t{64} << 10;
  std::string text;
  text.reserve(expected);
  for (;;) {
    const size_t have = text.size();
    // One byte beyond the limit is asked for, to tell "exactly full" from "too large".
    const size_t want = std::min(kChunk, max_bytes + 1 - have);
    text.resize(have + want);
    const ssize_t got = ::read(fd, text.data() + have, want);
    if (got < 0 && errno == EINTR) {
      text.resize(have);
      continue;
    }
    if (got < 0) return tl::unexpected(failure(path, error_text(errno)));
    text.resize(have + static_cast<size_t>(got));
    if (got == 0) return text;
    if (text.size() > max_bytes) return tl::unexpected(too_large(path, max_bytes));
  }
}

}  // namespace

// Of what flows by, so much is kept for whoever reads it again: as long as a result may be.
constexpr size_t kMaxKeptBytes = size_t{64} << 20;

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  if (path.empty()) return tl::unexpected(Failure{"an empty file name was given"});
  if (path.find('\0') != std::string::npos) {
    return tl::unexpected(failure(path, "a file name cannot hold a NUL byte"));
  }
  // Standard input and pipes flow by once; whoever reads a description again means the same text.
  static std::map<std::string, std::string> seen;
  if (const auto kept = seen.find(path); kept != seen.end()) {
    if (kept->second.size() > max_bytes) return tl::unexpected(too_large(path, max_bytes));
    return kept->second;
  }
  Descriptor file;
  if (path == "-") {
    file.fd = STDIN_FILENO;
  } else {
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    file.owned = true;
    if (file.fd < 0) return tl::unexpected(open_failure(path, errno));
  }
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return tl::unexpected(failure(path, error_text(errno)));
  if (S_ISDIR(info.st_mode)) return tl::unexpected(open_failure(path, EISDIR));
  size_t expected = 0;
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    expected = static_cast<size_t>(info.st_size);
    if (expected > max_bytes) return tl::unexpected(too_large(path, max_bytes));
  }
  Result<std::string> text = read_all(file.fd, path, expected, max_bytes);
  const bool flows = path == "-" || !S_ISREG(info.st_mode);
  if (flows && text && text->size() <= kMaxKeptBytes) seen[path] = *text;
  return text;
}

Failure open_failure(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return failure(path, "no such file", missing_help(path));
    case EISDIR:
      return failure(path, "is a directory, not a file",
                     sanitize("name a file in it: " + holds(path, names_in(path), ""), kNameMost));
    case EACCES:
      return failure(path, "may not be read (permission denied)",
                     "`ls -l` shows who may; `chmod` changes it");
    case ELOOP:
      return failure(path, "a link that leads back to itself", "`ls -l` shows where it leads");
    case ENXIO:  // nobody can open one
      return not_a_file(path, S_IFSOCK);
    default:
      return failure(path, error_text(error));
  }
}

Failure not_a_file(const std::string& path, unsigned mode) {
  if (S_ISFIFO(mode))
    return failure(path, "a pipe, not a file", "let it flow in: `COMMAND | assay ... -`");
  if (S_ISSOCK(mode)) return failure(path, "a socket, not a file", "name a file");
  return failure(path, "a device, not a file", "name a file; `-` is standard input");
}

Result<bool> write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return tl::unexpected(write_failure(path, errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0) return tl::unexpected(write_failure(path, errno));
  if (!written) return tl::unexpected(write_failure(path, error));
  return true;
}

Result<bool> can_write(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return tl::unexpected(write_failure(path, EISDIR));
  const fs::path folder = fs::path(path).parent_path();
  const bool there = fs::exists(path, error);
  const std::string asked = there ? path : folder.empty() ? "." : folder.string();
  if (::access(asked.c_str(), W_OK) != 0) return tl::unexpected(write_failure(path, errno));
  if (!there && !fs::is_directory(asked, error))
    return tl::unexpected(write_failure(path, ENOTDIR));
  return true;
}

Result<bool> can_read(const std::string& path) {
  struct stat info {};
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return true;
  Descriptor file;
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  file.owned = true;
  if (file.fd < 0) return tl::unexpected(open_failure(path, errno));
  char first = 0;
  ssize_t got = 0;
  do {
    got = ::read(file.fd, &first, 1);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return tl::unexpected(failure(path, error_text(errno)));
  return true;
}

Failure write_failure(const std::string& path, int error) {
  const std::string what = fmt::format("cannot be written: {}", error_text(error));
  const std::string folder = sanitize(fs::path(path).parent_path().string(), kNameMost);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return failure(path, what,
                     folder.empty() ? "give the name of a file"
                                    : fmt::format("create the folder first: mkdir -p {}", folder));
    case EISDIR:
      return failure(path, what, "it is a directory: name a file in it");
    case ENOSPC:
      return failure(path, what, "make room, or write to another disk");
    default:
      return failure(path, what, "choose a place where you may write");
  }
}

bool file_exists(const std::string& path) {
  if (path == "-") return true;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

}  // namespace assay

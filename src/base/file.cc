#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace assay {
namespace {

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : sanitize(path);
}

Failure failure(const std::string& path, const std::string& what) {
  return Failure{fmt::format("{}: {}", shown_name(path), what)};
}

std::string too_large(size_t max_bytes) {
  return fmt::format("is larger than the limit of {} MB", max_bytes >> 20);
}

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
    if (got < 0) return tl::unexpected(failure(path, std::strerror(errno)));
    text.resize(have + static_cast<size_t>(got));
    if (got == 0) return text;
    if (text.size() > max_bytes) return tl::unexpected(failure(path, too_large(max_bytes)));
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  if (path.empty()) return tl::unexpected(Failure{"an empty file name was given"});
  if (path.find('\0') != std::string::npos) {
    return tl::unexpected(failure(path, "a file name cannot hold a NUL byte"));
  }
  Descriptor file;
  if (path == "-") {
    file.fd = STDIN_FILENO;
  } else {
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    file.owned = true;
    if (file.fd < 0) return tl::unexpected(failure(path, std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return tl::unexpected(failure(path, std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) return tl::unexpected(failure(path, "is a directory, not a file"));
  size_t expected = 0;
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    expected = static_cast<size_t>(info.st_size);
    if (expected > max_bytes) return tl::unexpected(failure(path, too_large(max_bytes)));
  }
  return read_all(file.fd, path, expected, max_bytes);
}

bool file_exists(const std::string& path) {
  if (path == "-") return true;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

}  // namespace assay

#include "ingest/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

namespace assay {
namespace {

struct Close {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzFile = std::unique_ptr<gzFile_s, Close>;

Failure failure(const std::string& path, std::string_view what) {
  return Failure{fmt::format("{}: {}", sanitize(path), what)};
}

// zlib's reader passes a file that is not gzip through as it is.
Result<GzFile> open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return tl::unexpected(failure(path, "is a directory"));
  }
  errno = 0;
  GzFile file(path == "-" ? gzdopen(0, "rb") : gzopen(path.c_str(), "rb"));
  if (!file) {
    return tl::unexpected(failure(path, errno != 0 ? std::strerror(errno) : "cannot be opened"));
  }
  gzbuffer(file.get(), 1u << 17);
  return file;
}

// Reads up to `bytes`; false when the stream is damaged.
bool read_up_to(gzFile file, size_t bytes, std::string& out) {
  constexpr size_t kPiece = size_t{1} << 20;
  while (out.size() < bytes) {
    const size_t had = out.size();
    const size_t want = std::min(kPiece, bytes - had);
    out.resize(had + want);
    const int got = gzread(file, out.data() + had, static_cast<unsigned>(want));
    out.resize(had + static_cast<size_t>(std::max(got, 0)));
    if (got < 0) return false;
    if (got == 0) break;
  }
  int error = Z_OK;
  gzerror(file, &error);
  return error == Z_OK || error == Z_STREAM_END;
}

}  // namespace

Result<std::string> read_text_head(const std::string& path, size_t bytes) {
  const Result<GzFile> file = open(path);
  if (!file) return tl::unexpected(file.error());
  std::string text;
  if (!read_up_to(file->get(), bytes, text) && text.empty()) {
    return tl::unexpected(failure(path, "cannot be read (damaged gzip stream?)"));
  }
  return text;
}

Result<std::string> read_text(const std::string& path, size_t max_bytes) {
  const Result<GzFile> file = open(path);
  if (!file) return tl::unexpected(file.error());
  std::string text;
  if (!read_up_to(file->get(), max_bytes + 1, text)) {
    return tl::unexpected(failure(path, "the gzip stream is damaged or cut short"));
  }
  if (text.size() > max_bytes) {
    return tl::unexpected(failure(path, fmt::format("more than {} MB of text", max_bytes >> 20)));
  }
  return text;
}

}  // namespace assay

#include "ingest/gzip.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"

namespace assay {

struct ByteState {
  std::string name, path;
  uint64_t most_bytes = 0, file_bytes = 0;
  int fd = -1;  // -1: `memory` is the input
  bool owned = false;
  std::string_view memory, whole;  // what is left, and all of it

  std::string peeked;  // decoded, but not delivered yet: from `peeked_at` on
  size_t peeked_at = 0;

  std::vector<unsigned char> input;  // the piece of the file being looked at
  bool input_over = false;

  bool started = false, gzip = false, ended = false, inflating = false, broken = false;
  z_stream stream{};
  uint64_t in = 0, out = 0;
  std::string damage;

  ByteState() = default;
  ByteState(const ByteState&) = delete;
  ByteState& operator=(const ByteState&) = delete;
  ~ByteState() {
    if (inflating) inflateEnd(&stream);
    if (owned && fd >= 0) ::close(fd);
  }
};

namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr size_t kNameMost = 4096;  // PATH_MAX

Failure failure(const std::string& name, const std::string& what) { return Failure{what, name}; }

}  // namespace

ByteSource::ByteSource(std::unique_ptr<ByteState> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

const std::string& ByteSource::name() const { return state_->name; }
const std::string& ByteSource::damage() const { return state_->damage; }
bool ByteSource::broken() const { return state_->broken; }
uint64_t ByteSource::bytes_out() const { return state_->out; }
bool ByteSource::compressed() const { return state_->gzip; }
uint64_t ByteSource::size_hint() const { return state_->gzip ? 0 : state_->file_bytes; }

ByteSource ByteSource::over(std::string_view bytes, const std::string& name, uint64_t most_bytes) {
  auto state = std::make_unique<ByteState>();
  state->name = name;
  state->most_bytes = most_bytes;
  state->memory = state->whole = bytes;
  return ByteSource(std::move(state));
}

Result<ByteSource> ByteSource::open(const std::string& path, uint64_t most_bytes) {
  const std::string name = path == "-" ? "standard input" : sanitize(path, kNameMost);
  if (path.empty()) return tl::unexpected(Failure{"an empty file name was given"});
  if (path.find('\0') != std::string::npos) {
    return tl::unexpected(failure(name, "a file name cannot hold a NUL byte"));
  }
  auto state = std::make_unique<ByteState>();
  state->name = name;
  state->path = path;
  state->most_bytes = most_bytes;
  // Without O_NONBLOCK a pipe that nobody writes to would be waited for in open() itself.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  state->fd = path == "-" ? STDIN_FILENO : ::open(path.c_str(), kFlags);
  state->owned = path != "-";
  struct stat info {};
  if (state->fd < 0 || ::fstat(state->fd, &info) != 0) {
    return tl::unexpected(open_failure(path, errno));
  }
  if (S_ISDIR(info.st_mode)) return tl::unexpected(open_failure(path, EISDIR));
  if (state->owned && !S_ISREG(info.st_mode)) {
    return tl::unexpected(not_a_file(path, info.st_mode));
  }
  if (S_ISREG(info.st_mode)) state->file_bytes = static_cast<uint64_t>(info.st_size);
  state->input.resize(kPiece);
  return ByteSource(std::move(state));
}

namespace {

// Makes at least one byte of input visible in [*at, *at + size); an empty view is the end.
Result<std::string_view> more_input(ByteState& s) {
  if (s.fd < 0) {
    const std::string_view all = s.memory;
    s.memory = {};
    s.input_over = true;
    return all;
  }
  for (;;) {
    const ssize_t got = ::read(s.fd, s.input.data(), s.input.size());
    if (got < 0 && errno == EINTR) continue;
    s.broken = got < 0;
    if (s.broken) return tl::unexpected(failure(s.name, std::strerror(errno)));
    if (got == 0) s.input_over = true;
    return std::string_view(reinterpret_cast<const char*>(s.input.data()),
                            static_cast<size_t>(got));
  }
}

Result<bool> refill(ByteState& s) {  // false: nothing is left
  if (s.stream.avail_in > 0) return true;
  if (s.input_over) return false;
  const Result<std::string_view> piece = more_input(s);
  if (!piece) return tl::unexpected(piece.error());
  // zlib counts in 32 bits; a larger buffer in memory is handed over in parts.
  const size_t part = std::min(piece->size(), size_t{1} << 30);
  if (part < piece->size()) {
    s.memory = piece->substr(part);
    s.input_over = false;
  }
  s.stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece->data()));
  s.stream.avail_in = static_cast<uInt>(part);
  s.in += part;
  return part > 0;
}

Result<bool> start(ByteState& s) {
  s.started = true;
  const Result<bool> any = refill(s);
  if (!any || !*any) return any;
  const unsigned char* head = s.stream.next_in;
  s.gzip = s.stream.avail_in >= 2 && head[0] == 0x1f && head[1] == 0x8b;
  if (!s.gzip) return true;
  constexpr int kGzipOnly = 16;
  if (inflateInit2(&s.stream, MAX_WBITS + kGzipOnly) != Z_OK) {
    return tl::unexpected(failure(s.name, "no memory to decompress it"));
  }
  s.inflating = true;
  return true;
}

Result<size_t> copy_plain(ByteState& s, char* into, size_t size) {
  const Result<bool> any = refill(s);
  if (!any) return tl::unexpected(any.error());
  if (!*any) return size_t{0};
  const size_t part = std::min<size_t>(size, s.stream.avail_in);
  std::memcpy(into, s.stream.next_in, part);
  s.stream.next_in += part;
  s.stream.avail_in -= static_cast<uInt>(part);
  return part;
}

// A member has ended: true when another one follows.
Result<bool> next_member(ByteState& s) {
  const Result<bool> any = refill(s);
  if (!any || !*any) return any;
  if (s.stream.next_in[0] != 0x1f) {
    // Some tools pad a gzip to whole blocks with zeros; that is no damage.
    if (s.stream.next_in[0] != 0) s.damage = "bytes that are not gzip follow the gzip data";
    return false;
  }
  inflateReset(&s.stream);
  return true;
}

Result<size_t> inflate_some(ByteState& s, char* into, size_t size) {
  s.stream.next_out = reinterpret_cast<Bytef*>(into);
  s.stream.avail_out = static_cast<uInt>(std::min(size, size_t{1} << 30));
  const uInt asked = s.stream.avail_out;
  while (s.stream.avail_out > 0 && !s.ended) {
    const Result<bool> any = refill(s);
    if (!any) return tl::unexpected(any.error());
    const int rc = inflate(&s.stream, Z_NO_FLUSH);
    if (rc == Z_STREAM_END) {
      const Result<bool> more = next_member(s);
      if (!more) return tl::unexpected(more.error());
      s.ended = !*more;
    } else if (rc != Z_OK) {
      s.ended = true;
      if (rc == Z_BUF_ERROR && !*any) {
        s.damage = "the gzip data end in the middle: the file was cut short";
      } else {
        s.damage = fmt::format("the gzip data are damaged ({})",
                               s.stream.msg != nullptr ? s.stream.msg : "unknown reason");
      }
    }
  }
  return size_t{asked - s.stream.avail_out};
}

}  // namespace

namespace {

Result<size_t> decode(ByteState& s, char* into, size_t size) {
  if (!s.started) {
    const Result<bool> begun = start(s);
    if (!begun) return tl::unexpected(begun.error());
  }
  if (s.ended || size == 0) return size_t{0};
  const Result<size_t> got = s.gzip ? inflate_some(s, into, size) : copy_plain(s, into, size);
  if (!got) return got;
  s.out += *got;
  if (s.out > s.most_bytes) {
    return tl::unexpected(failure(
        s.name, fmt::format("holds more than the limit of {} MB of text", s.most_bytes >> 20)));
  }
  const uint64_t used = s.in - s.stream.avail_in;
  if (s.gzip && s.out > kBombBytes && s.out / kBombRatio > used) {
    return tl::unexpected(failure(
        s.name, fmt::format("{} MB of gzip hold over {} MB of text, more than {} to 1: refused as "
                            "a decompression bomb",
                            used >> 20, s.out >> 20, kBombRatio)));
  }
  return got;
}

}  // namespace

Result<size_t> ByteSource::read(char* into, size_t size) {
  ByteState& s = *state_;
  const size_t waiting = s.peeked.size() - s.peeked_at;
  if (waiting == 0) return decode(s, into, size);
  const size_t part = std::min(waiting, size);
  std::memcpy(into, s.peeked.data() + s.peeked_at, part);
  s.peeked_at += part;
  if (part == waiting) {
    s.peeked = std::string();
    s.peeked_at = 0;
  }
  return part;
}

Result<std::string_view> ByteSource::peek(size_t bytes) {
  ByteState& s = *state_;
  s.peeked.erase(0, std::exchange(s.peeked_at, 0));
  while (s.peeked.size() < bytes) {
    const size_t had = s.peeked.size();
    s.peeked.resize(bytes);
    const Result<size_t> got = decode(s, s.peeked.data() + had, bytes - had);
    s.peeked.resize(had + got.value_or(0));
    if (!got && had == 0) return tl::unexpected(got.error());
    if (!got || *got == 0) break;
  }
  return std::string_view(s.peeked).substr(0, bytes);
}

Result<ByteSource> ByteSource::again() const {
  if (state_->fd < 0) return over(state_->whole, state_->name, state_->most_bytes);
  if (!state_->owned) return tl::unexpected(failure(state_->name, "cannot be read twice"));
  return open(state_->path, state_->most_bytes);
}

}  // namespace assay

// The bytes of a file or a buffer, in pieces, decompressed on the way where they are gzip.
//
// Recognised by content, not by name: 1f 8b is gzip (several members one after another are one
// text, as `cat a.gz b.gz` makes them), anything else is passed on as it is. Nothing is held but
// one piece of compressed input, so that a file of any size is read in bounded memory.
//
// Limits, because a gzip of 10 MB can hold 10 GB: a text over `most_bytes`, or one that is over
// kBombBytes and more than kBombRatio times its compressed size, is a Failure. A damaged or cut
// gzip is not: what was decoded before the damage is delivered, and `damage()` says what happened.
//
// Only regular files are opened, and standard input: a pipe or a device named as a file could keep
// a reader waiting for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace assay {

// Honest traces compress 10 to 40 times; deflate's own limit is 1,032.
constexpr uint64_t kBombRatio = 200;
constexpr uint64_t kBombBytes = uint64_t{64} << 20;

struct ByteState;

class ByteSource {
 public:
  // "-" is standard input.
  static Result<ByteSource> open(const std::string& path, uint64_t most_bytes);
  // REQUIRES: `bytes` outlives the source. `name` is for messages.
  static ByteSource over(std::string_view bytes, const std::string& name, uint64_t most_bytes);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Fills `into` with up to `size` bytes and returns how many; 0: the end.
  Result<size_t> read(char* into, size_t size);

  // The next `bytes` of the text (fewer where it ends before), which read() still delivers: to tell
  // what a file is without opening it twice. Valid until the next call. A text that cannot be read
  // as far as that shows what can be.
  Result<std::string_view> peek(size_t bytes);

  // The same bytes from the beginning; fails for standard input, which is gone.
  Result<ByteSource> again() const;

  const std::string& name() const;  // for messages, fit for a terminal
  // Empty, or why the text ends early: `gzip data end in the middle`.
  const std::string& damage() const;
  bool broken() const;         // the disk or the network below the file failed
  uint64_t bytes_out() const;  // of text, decoded so far
  bool compressed() const;
  // How long the text will be, to make room once; zero where that is not known (gzip, a pipe).
  uint64_t size_hint() const;

 private:
  explicit ByteSource(std::unique_ptr<ByteState>);
  std::unique_ptr<ByteState> state_;
};

}  // namespace assay

// A window that slides over a ByteSource: the bytes in sight are contiguous, padded as the scanner
// requires, and never more than the caller lets it grow to. Internal to the Kineto reader.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "ingest/gzip.h"
#include "ingest/kineto_scan.h"

namespace assay {

class Window {
 public:
  Window(ByteSource source, size_t bytes_most)
      : source_(std::move(source)), bytes_most_(bytes_most), buffer_(kFirst + scan::kScanPadding) {}

  const char* begin() const { return buffer_.data() + begin_; }
  const char* end() const { return buffer_.data() + end_; }
  size_t size() const { return end_ - begin_; }
  uint64_t offset() const { return gone_ + begin_; }  // of begin(), in the text
  bool full() const { return size() >= bytes_most_; }
  const ByteSource& source() const { return source_; }

  // REQUIRES: begin() <= p <= end().
  void consume_to(const char* p) { begin_ = static_cast<size_t>(p - buffer_.data()); }

  // Brings more bytes into sight, which moves the others; false at the end of the text. Doubles
  // when all of it is in use, so that scanning an event again and again stays linear.
  Result<bool> more() {
    std::memmove(buffer_.data(), begin(), size());
    gone_ += begin_;
    end_ -= begin_;
    begin_ = 0;
    size_t room = buffer_.size() - scan::kScanPadding;
    if (end_ * 2 > room) {
      room = std::min(std::max(bytes_most_, kFirst), room * 2);
      buffer_.resize(std::max(room, end_) + scan::kScanPadding);
      room = buffer_.size() - scan::kScanPadding;
    }
    const Result<size_t> got = source_.read(buffer_.data() + end_, room - end_);
    if (!got) return tl::unexpected(got.error());
    end_ += *got;
    std::fill_n(buffer_.begin() + static_cast<std::ptrdiff_t>(end_), scan::kScanPadding, '\0');
    return *got > 0;
  }

 private:
  static constexpr size_t kFirst = size_t{256} << 10;

  ByteSource source_;
  size_t bytes_most_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t gone_ = 0;  // bytes of the text before the buffer
};

}  // namespace assay

// The event queue of the simulator.
//
// Events are ordered by time (integer nanoseconds), then by a named priority, then by the order in
// which they were pushed; so a run is the same on every machine. Any number of events may be
// pending; push and pop cost O(log n) on a 4-ary heap (four children of 32 bytes are two cache
// lines), without allocation once the heap has grown. Events are never removed from the middle: an
// event whose reason has gone is recognised by its owner when it comes up (owners keep a
// generation).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/units.h"

namespace assay {

using Nanoseconds = int64_t;

constexpr double kNanosecondsPerSecond = 1e9;
// 146 years: half of the range, so that sums of two times never overflow.
constexpr Nanoseconds kTimeMax = INT64_MAX / 2;

// Rounds to the nearest; anything at or beyond the range is kTimeMax.
inline Nanoseconds to_ns(Seconds s) {
  const double ns = s.v * kNanosecondsPerSecond;
  if (!(ns < static_cast<double>(kTimeMax))) return kTimeMax;
  return static_cast<Nanoseconds>(ns + (ns < 0 ? -0.5 : 0.5));
}
inline Seconds to_seconds(Nanoseconds ns) {
  return Seconds(static_cast<double>(ns) / kNanosecondsPerSecond);
}

template <class Payload>
class EventQueue {
 public:
  struct Event {
    Nanoseconds time = 0;
    uint64_t order = 0;  // priority in the top byte, then sequence
    Payload payload{};
    uint8_t priority() const { return static_cast<uint8_t>(order >> kSequenceBits); }
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time < b.time : a.order < b.order;
    }
  };

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  const Event& top() const { return heap_.front(); }
  void reserve(size_t events) { heap_.reserve(events); }
  void clear() {
    heap_.clear();
    sequence_ = 0;
  }

  // Lower priorities come first at the same time.
  void push(Nanoseconds time, uint8_t priority, const Payload& payload) {
    ASSERT(sequence_ >> kSequenceBits == 0);
    Event e{time, (uint64_t{priority} << kSequenceBits) | sequence_++, payload};
    size_t at = heap_.size();
    heap_.push_back(e);
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (!(e < heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = e;
  }

  // REQUIRES: !empty().
  Event pop() {
    ASSERT(!heap_.empty());
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return first;
  }

 private:
  static constexpr size_t kChildren = 4;
  static constexpr int kSequenceBits = 56;

  void sift_down(const Event& e) {
    const size_t size = heap_.size();
    size_t at = 0;
    for (;;) {
      const size_t child = at * kChildren + 1;
      if (child >= size) break;
      size_t least = child;
      const size_t end = child + kChildren < size ? child + kChildren : size;
      for (size_t c = child + 1; c < end; ++c) {
        if (heap_[c] < heap_[least]) least = c;
      }
      if (!(heap_[least] < e)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = e;
  }

  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace assay

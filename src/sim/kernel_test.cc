#include "sim/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "base/random.h"

namespace assay {
namespace {

// The naive twin: an unordered list, searched for the earliest event each time.
class ListQueue {
 public:
  struct Event {
    Nanoseconds time;
    uint8_t priority;
    int payload;
  };
  void push(Nanoseconds time, uint8_t priority, int payload) {
    events_.push_back({time, priority, payload});
  }
  bool empty() const { return events_.empty(); }
  Event pop() {
    auto first = events_.begin();
    for (auto e = events_.begin(); e != events_.end(); ++e) {
      if (e->time < first->time || (e->time == first->time && e->priority < first->priority)) {
        first = e;
      }
    }
    const Event event = *first;
    events_.erase(first);
    return event;
  }

 private:
  std::list<Event> events_;
};

TEST(Kernel, AgreesWithTheNaiveTwin) {
  EventQueue<int> fast;
  ListQueue naive;
  Stream s(3, cause_id("kernel test"));
  for (int i = 0; i < 5000; ++i) {
    // Few distinct times and priorities, so that ties are common.
    const Nanoseconds time = static_cast<Nanoseconds>(s.bits() % 200);
    const uint8_t priority = static_cast<uint8_t>(s.bits() % 3);
    fast.push(time, priority, i);
    naive.push(time, priority, i);
    if (s.bits() % 3 == 0) {
      const auto a = fast.pop();
      const auto b = naive.pop();
      ASSERT_EQ(a.payload, b.payload);
      ASSERT_EQ(a.time, b.time);
      ASSERT_EQ(a.priority(), b.priority);
    }
  }
  while (!naive.empty()) ASSERT_EQ(fast.pop().payload, naive.pop().payload);
  EXPECT_TRUE(fast.empty());
}

TEST(Kernel, TimesRoundAndSaturate) {
  EXPECT_EQ(to_ns(Seconds(1.5)), 1500000000);
  EXPECT_EQ(to_ns(Seconds(1e-9 * 0.6)), 1);
  EXPECT_EQ(to_ns(Seconds(1e30)), kTimeMax);
  EXPECT_EQ(to_ns(Seconds(std::numeric_limits<double>::infinity())), kTimeMax);
  EXPECT_EQ(to_seconds(2500000000).v, 2.5);
}

}  // namespace
}  // namespace assay

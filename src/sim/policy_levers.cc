#include "sim/policy_levers.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace assay {
namespace {

// FT-HSDP (arXiv 2602.00277) at about 100,000 GPUs: everyone waits this long when a replica leaves.
// Smaller jobs wait less; nobody has published how much.
constexpr Seconds kLeaveStall{180};
// Replicas that are tried: FT-HSDP has 12. More of them lose less with each failure and need more
// memory.
constexpr int64_t kReplicas[] = {4, 8, 12, 16, 32, 64};
constexpr size_t kReplicasTried = 3;

std::string_view name_of(Restart r) {
  return r == Restart::kElastic       ? "elastic"
         : r == Restart::kWarmStandby ? "warm standby"
                                      : "requeue";
}

class Policies {
 public:
  explicit Policies(const SpecInput& input) : input_(input), now_(*input.operations) {}

  template <class Change>
  bool add(std::string name, std::string change, Change&& apply) {
    Operations operations = now_;
    apply(operations);
    SpecInput other = input_;
    other.operations = &operations;
    SpecResult made = make_spec(other);
    if (!made.problems.empty() || !check(made.spec).empty()) return false;
    list.push_back({std::move(name), std::move(change), std::move(made.spec)});
    return true;
  }

  void elastic() {
    const int64_t dp = std::max<int64_t>(1, input_.prediction->dp);
    size_t tried = 0;
    // Most first: where they fit, fewer are only tried beside them.
    for (auto r = std::rbegin(kReplicas); r != std::rend(kReplicas) && tried < kReplicasTried;
         ++r) {
      const int64_t replicas = *r;
      if (dp % replicas != 0 || dp < replicas || replicas == current()) continue;
      const bool fits =
          add("elastic replicas", fmt::format("{} -> {} that come and go", before(), replicas),
              [&](Operations& o) {
                o.recovery = Restart::kElastic;
                o.replicas = replicas;
                o.replicas_least = 0;
                if (now_.recovery != Restart::kElastic) {
                  o.leave_stall = kLeaveStall;
                  o.standby_share = 1;  // the replica that left starts cold
                }
              });
      tried += fits ? 1 : 0;
    }
  }

  void others() {
    if (now_.recovery == Restart::kElastic) {
      add("warm standby", "elastic -> warm standby",
          [](Operations& o) { o.recovery = Restart::kWarmStandby; });
    }
    const Checkpointing& c = now_.checkpoint;
    if (!c.local_disk && !c.peer_memory && input_.setting->cluster.node.disk_bandwidth.v > 0) {
      add("local-disk tier", "none -> beside the remote one",
          [](Operations& o) { o.checkpoint.local_disk = true; });
    }
    const bool slower = now_.detection != Detection::kInspected || !c.peer_memory ||
                        c.mode != SaveMode::kAsync || now_.recovery == Restart::kRequeue;
    if (slower) {
      add("best recovery", "inspected, standby, async, peer saves", [](Operations& o) {
        o.detection = Detection::kInspected;
        if (o.recovery == Restart::kRequeue) o.recovery = Restart::kWarmStandby;
        o.checkpoint.mode = SaveMode::kAsync;
        o.checkpoint.rule = SaveRule::kOptimal;
        o.checkpoint.stall = Seconds(0);  // what the mode makes of it
        o.checkpoint.peer_memory = true;
        o.checkpoint.peer_interval = kPeerInterval;
      });
    }
  }

  std::vector<Lever> list;

 private:
  int64_t current() const { return now_.recovery == Restart::kElastic ? now_.replicas : 0; }
  std::string before() const {
    return current() > 0 ? fmt::format("{}", current()) : std::string(name_of(now_.recovery));
  }

  const SpecInput& input_;
  const Operations& now_;
};

}  // namespace

std::vector<Lever> policy_levers(const SpecInput& input) {
  Policies policies(input);
  policies.elastic();
  policies.others();
  return std::move(policies.list);
}

void keep_best(std::vector<LeverResult>& levers) {
  std::stable_sort(levers.begin(), levers.end(), [](const LeverResult& a, const LeverResult& b) {
    return a.useful_share.mean > b.useful_share.mean;
  });
  std::set<std::string> seen;
  std::erase_if(levers, [&](const LeverResult& l) { return !seen.insert(l.name).second; });
}

}  // namespace assay

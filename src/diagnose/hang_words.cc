#include "diagnose/hang_words.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr size_t kNamed = 8;  // ranks listed in a sentence

class Writer {
 public:
  Writer(const HangView& view, const std::map<int, const RankEvidence*>& evidence, Analysis& out)
      : view_(view), evidence_(evidence), out_(out) {}

  void write(bool hung) {
    if (!hung) {
      if (!view_.dumps.empty()) {
        out_.notes.push_back("no collective is in flight on any rank that left a dump: no hang");
      }
      return;
    }
    if (!view_.blamed.empty()) blame();
    for (const HangMismatch& mismatch : view_.model.mismatches) tell_mismatch(mismatch);
    ask_running();
    ask_suspects();
    ask_absent();
    if (view_.blamed.empty() && view_.model.mismatches.empty()) ask_rest();
  }

 private:
  const HangRank& rank(int index) const { return view_.model.ranks[static_cast<size_t>(index)]; }

  std::string ranks(const std::vector<int>& indices) const {
    std::string out = indices.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < indices.size() && i < kNamed; ++i) {
      out += fmt::format("{}{}", i == 0 ? "" : ", ", rank(indices[i]).rank);
    }
    if (indices.size() > kNamed) out += fmt::format(" and {} more", indices.size() - kNamed);
    return out;
  }
  std::string group_text(int group) const {
    const HangGroup& known = view_.model.groups[static_cast<size_t>(group)];
    return fmt::format("{} ({}, {} ranks)",
                       known.description.empty() ? "process group" : known.description, known.name,
                       known.members.size());
  }
  std::string op_text(const HangOp& op) const {
    std::string out = op.name;
    if (op.sequence >= 0) out += fmt::format(" #{}", op.sequence);
    if (!op.sizes.empty()) out += fmt::format(" [{}]", op.sizes);
    return out;
  }
  const RankEvidence* evidence(int index) const {
    const auto found = evidence_.find(rank(index).rank);
    return found == evidence_.end() ? nullptr : found->second;
  }

  // The operation that a rank holds up for the most others.
  int weightiest(const std::vector<int>& ops) const {
    int best = -1;
    for (const int id : ops) {
      if (best < 0 || view_.model.ops[static_cast<size_t>(id)].waiting.size() >
                          view_.model.ops[static_cast<size_t>(best)].waiting.size()) {
        best = id;
      }
    }
    return best;
  }
  std::vector<int> held_up() const {
    std::vector<int> out;
    for (size_t r = 0; r < view_.model.ranks.size(); ++r) {
      const bool is_blamed =
          std::any_of(view_.blamed.begin(), view_.blamed.end(),
                      [&](const Blamed& one) { return one.index == static_cast<int>(r); });
      if (!is_blamed && !view_.model.ranks[r].in_flight.empty()) out.push_back(static_cast<int>(r));
    }
    return out;
  }

  void blame() {
    Finding finding;
    finding.cause = Cause::kHang;
    finding.urgent = true;
    finding.confidence = Confidence::kHigh;
    std::vector<int> indices;
    for (const Blamed& one : view_.blamed) {
      indices.push_back(one.index);
      finding.where.push_back(fmt::format("rank {}", rank(one.index).rank));
      finding.confidence = std::min(finding.confidence, one.confidence);
    }
    std::string names = ranks(indices);
    names[0] = 'R';
    finding.title = fmt::format("{} stopped; {} ranks wait", names, held_up().size());
    finding.detail = blame_text();
    finding.fix = fix();
    finding.evidence.push_back(blamed_rows());
    finding.evidence.push_back(waiting_rows());
    out_.findings.push_back(std::move(finding));
  }
  // Ranks that hold up the same operation for the same reason share a sentence.
  std::string blame_text() const {
    std::map<std::pair<int, std::string>, std::vector<int>> by_op;
    for (const Blamed& one : view_.blamed) {
      by_op[{weightiest(view_.waited_by[static_cast<size_t>(one.index)]), one.why}].push_back(
          one.index);
    }
    std::string out;
    constexpr size_t kEnough = 600;
    for (const auto& [key, indices] : by_op) {
      if (out.size() > kEnough) break;
      std::string names = ranks(indices);
      names[0] = 'R';
      out += fmt::format("{}{}: {}", out.empty() ? "" : " ", names, key.second);
      if (key.first >= 0) {
        const HangOp& op = view_.model.ops[static_cast<size_t>(key.first)];
        out += fmt::format("; {} of {} lacks {} on {}", op_text(op), group_text(op.group),
                           indices.size() == 1 ? "it" : "them", ranks(op.waiting));
      }
      out += '.';
    }
    return out;
  }
  std::string fix() const {
    std::string out;
    for (const Blamed& one : view_.blamed) {
      const RankEvidence* known = evidence(one.index);
      if (!known || known->host.empty()) continue;
      const bool device = !known->xids.empty() || known->stopped_reporting;
      out += device
                 ? fmt::format("scontrol update NodeName={} State=DRAIN Reason=\"hang, rank {}\"; ",
                               known->host, rank(one.index).rank)
                 : fmt::format("rank {} runs on {}; ", rank(one.index).rank, known->host);
      if (out.size() > 400) break;
    }
    return out +
           "look at the stack of its process (py-spy dump --pid PID) and at its host's kernel log "
           "(dmesg | grep Xid), then restart from the last checkpoint without that node";
  }
  Evidence blamed_rows() const {
    Evidence out;
    out.title = "what the ranks to blame have not enqueued";
    out.columns = {"rank", "process group", "collective", "lacking", "ranks that wait"};
    for (const Blamed& one : view_.blamed) {
      for (const int id : view_.waited_by[static_cast<size_t>(one.index)]) {
        if (out.rows.size() >= kEvidenceRows) return out;
        const HangOp& op = view_.model.ops[static_cast<size_t>(id)];
        out.rows.push_back({fmt::format("{}", rank(one.index).rank), group_text(op.group),
                            op_text(op), ranks(op.lacks), ranks(op.waiting)});
      }
      if (rank(one.index).dump >= 0) {
        out.file = view_.dumps[static_cast<size_t>(rank(one.index).dump)].file;
      }
    }
    return out;
  }
  Evidence waiting_rows() const {
    Evidence out;
    out.title = "where the other ranks wait";
    out.columns = {"rank", "first in flight", "process group", "in flight", "waits for"};
    for (const int r : held_up()) {
      if (out.rows.size() >= kEvidenceRows) break;
      const HangOp& op = view_.model.ops[static_cast<size_t>(rank(r).in_flight.front())];
      out.rows.push_back({fmt::format("{}", rank(r).rank), op_text(op), group_text(op.group),
                          fmt::format("{}", rank(r).in_flight.size()),
                          op.lacks.empty() ? "-" : ranks(op.lacks)});
    }
    return out;
  }

  void tell_mismatch(const HangMismatch& mismatch) {
    Finding finding;
    finding.cause = Cause::kHang;
    finding.urgent = true;
    size_t others = 0;
    for (size_t i = 1; i < mismatch.callers.size(); ++i) others += mismatch.callers[i].size();
    const bool sided = mismatch.callers[0].size() >= 2 && mismatch.callers[0].size() > others;
    finding.confidence = sided ? Confidence::kHigh : Confidence::kMedium;
    finding.title = fmt::format("Ranks of {} call different collectives under number {}",
                                group_text(mismatch.group), mismatch.sequence);
    for (size_t i = 0; i < mismatch.calls.size() && i < 3; ++i) {
      finding.detail += fmt::format("{}{}: {}", i == 0 ? "" : "; ", ranks(mismatch.callers[i]),
                                    mismatch.calls[i]);
      if (i > 0 && sided) {
        for (const int r : mismatch.callers[i]) {
          finding.where.push_back(fmt::format("rank {}", rank(r).rank));
        }
      }
    }
    if (!sided) {
      const HangGroup& group = view_.model.groups[static_cast<size_t>(mismatch.group)];
      finding.where.push_back(fmt::format("process group {}", group.name));
    }
    finding.fix =
        "the ranks took different branches: find the collective that one of them skipped or called "
        "twice (TORCH_DISTRIBUTED_DEBUG=DETAIL names it at the call)";
    Evidence rows;
    rows.title = "what each rank called";
    rows.columns = {"call", "ranks"};
    for (size_t i = 0; i < mismatch.calls.size() && i < kEvidenceRows; ++i) {
      rows.rows.push_back({mismatch.calls[i], ranks(mismatch.callers[i])});
    }
    finding.evidence.push_back(std::move(rows));
    out_.findings.push_back(std::move(finding));
  }

  void ask_running() {
    if (view_.running.empty()) return;
    out_.open.push_back(
        {fmt::format("{} {} behind, but {}: the job may just be slow", ranks(view_.running),
                     view_.running.size() == 1 ? "is" : "are",
                     view_.early ? "the dumps were written at different times while it went on"
                                 : "the dumps were written seconds after the last collective"),
         "dumps of all ranks after the job stood still for a minute, or two dumps of one rank"});
  }
  void ask_suspects() {
    for (const int index : view_.suspects) {
      out_.open.push_back(
          {fmt::format(
               "rank {} is undecided: it still shows {} operations in flight that its peers "
               "completed, so its device or its recorder stopped; but it had enqueued all "
               "that they wait for, so the order of collectives cannot convict it",
               rank(index).rank, rank(index).stale),
           fmt::format("the kernel log of rank {}'s host (XID), the time of its last activity, or "
                       "its GPU's utilisation and power after the job stopped",
                       rank(index).rank)});
    }
  }
  void ask_absent() {
    std::vector<int> absent;
    for (size_t r = 0; r < view_.model.ranks.size(); ++r) {
      const bool is_blamed =
          std::any_of(view_.blamed.begin(), view_.blamed.end(),
                      [&](const Blamed& one) { return one.index == static_cast<int>(r); });
      if (view_.model.ranks[r].dump < 0 && !is_blamed) absent.push_back(static_cast<int>(r));
    }
    if (absent.empty()) return;
    const bool waited = std::any_of(absent.begin(), absent.end(), [&](int r) {
      return !view_.maybe_waited[static_cast<size_t>(r)].empty();
    });
    out_.open.push_back({fmt::format("{} left no dump{}", ranks(absent),
                                     waited ? ", and others may wait for it" : ""),
                         "their dumps, or the logs of their hosts"});
  }
  // Nobody is to blame by the order: say where the wait begins.
  void ask_rest() {
    if (view_.outside > 0) {
      out_.open.push_back(
          {fmt::format("{} ranks have nothing in flight while others wait for them: they wait for "
                       "something that no dump shows (another backend, the store, a file system)",
                       view_.outside),
           "the stacks of those processes (py-spy dump)"});
      return;
    }
    if (!view_.running.empty() || !view_.suspects.empty()) return;
    for (const HangOp& op : view_.model.ops) {
      if (!op.lacks.empty() || !op.unknown.empty() || op.waiting.size() < 2) continue;
      const bool first = std::all_of(op.waiting.begin(), op.waiting.end(), [&](int r) {
        return &view_.model.ops[static_cast<size_t>(rank(r).in_flight.front())] == &op;
      });
      if (!first) continue;
      out_.open.push_back(
          {fmt::format("{} of {} is enqueued by all its ranks and completed by none:"
                       " a device or a link inside it is stuck",
                       op_text(op), group_text(op.group)),
           "kernel logs (XID), link counters and GPU utilisation of its ranks"});
      return;
    }
    out_.open.push_back(
        {"ranks wait for one another in a circle: the order of collectives differs "
         "between them, or one stopped with asynchronous operations in flight",
         "the stacks of the processes, or dumps with completed entries "
         "(TORCH_NCCL_TRACE_BUFFER_SIZE) that show the usual order"});
  }

  const HangView& view_;
  const std::map<int, const RankEvidence*>& evidence_;
  Analysis& out_;
};

}  // namespace

void describe_hang(const HangView& view, const std::map<int, const RankEvidence*>& evidence,
                   bool hung, Analysis& out) {
  Writer(view, evidence, out).write(hung);
}

}  // namespace assay

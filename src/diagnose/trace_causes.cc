#include "diagnose/trace_causes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "diagnose/gain_clock.h"
#include "diagnose/gain_reads.h"
#include "diagnose/gain_replay.h"
#include "diagnose/gain_share.h"
#include "diagnose/gain_whatif.h"
#include "diagnose/infer_steps.h"
#include "diagnose/kernel_waste.h"
#include "diagnose/trace_device.h"
#include "diagnose/trace_findings.h"
#include "diagnose/trace_idle.h"
#include "diagnose/trace_ledger.h"

namespace assay {
namespace {

// How much faster or slower the host may really be than without_profiler() makes it: the replay
// misses the step without the profiler by -32 to +39 % (see there). What is worth removing anywhere
// in that range is worth naming, for what hides it may be the profiler itself; in doubt a little
// more than the usual 3 % must be at stake.
constexpr double kHostFaster = 1.25, kHostSlower = 1.5;
// Within which most hosts are: the range that is told with a price, and that launches may need.
constexpr double kHostDoubt = 1.25;
constexpr double kWorthInDoubt = 0.04;

// A step that waits for the device more often than this cannot be captured into graphs as it is.
constexpr int kHeldOften = 2;
// Share of the kernels' gain from which what holds the host is told first, as the surer repair;
// assumed.
constexpr double kHoldsFirst = 0.97;
// A repair of kernels whose gain is the device's to less than this share mostly saves launches.
constexpr double kMostlyDevice = 0.5;

using Edit = std::function<StepGraph(StepGraph)>;

struct Hunt {
  const FindingInput& in;
  StepGraph graph;   // with the causes found so far taken out
  double scale = 1;  // of the host
  Seconds base;      // the step as it is, at this scale
  std::vector<Priced> found;
  // What kernels beside those that were taken out gain: no replay of streams shows it.
  Seconds beside;
  std::vector<std::string> notes;

  Seconds whole(const StepGraph& g) const { return replay(g, {scale}); }
  Seconds step(const StepGraph& g) const { return whole(g) - beside; }
  bool worth(Seconds gain) const { return base.v > 0 && gain / base >= kWorthFixing; }

  // A device that waits less draws more power. Kernels that change keep the clock they were priced
  // at.
  StepGraph fed(StepGraph without, const StepGraph& with, bool kernels) const {
    if (kernels) return without;
    const double before = held_clock_of(with, in.table, in.device, whole(with));
    const double after = held_clock_of(without, in.table, in.device, whole(without));
    return at_clock(std::move(without), in.table, before, after);
  }

  // The step `with` a cause, that takes `before`, without it. A host that waits less leaves the
  // kernels as they are, but for those that were only read: the step is never shorter than the time
  // at which any of them runs. Kernels
  // that get shorter free the device for those beside them, however the streams are bound to one
  // another, down to the pace of the host.
  Seconds shortened(const StepGraph& with, const StepGraph& without, Seconds before,
                    Seconds replayed, bool kernels) const {
    if (!kernels) {
      const int64_t left = std::min(computing_ns(with), computing_ns(without));
      const Seconds computing(static_cast<double>(left) * 1e-9);
      return std::max(replayed, std::min(before, computing));
    }
    if (!overlaps(with)) return replayed;
    StepGraph host = without;
    for (DeviceOp& op : host.ops) op.duration_ns = op.late_ns = op.after_ns = 0;
    const Seconds shared(static_cast<double>(busy_ns(with) - busy_ns(without)) * 1e-9);
    return std::min(replayed, std::max(before - shared, whole(host)));
  }

  // Takes a cause out for good when that is worth it, both by itself and after those found before
  // it; the smaller of the two is its gain. So nothing is counted twice, and nothing is promised
  // that only another repair would make possible.
  bool take(Cause cause, const Edit& edit, Confidence confidence, Waste waste = {}) {
    const bool kernels = waste.cause == cause;
    StepGraph without = fed(edit(graph), graph, kernels);
    const Seconds before = step(graph), replayed = step(without);
    const Seconds after = shortened(graph, without, before, replayed, kernels);
    Seconds alone = after;
    if (!found.empty()) {
      const StepGraph only = fed(edit(in.graph), in.graph, kernels);
      alone = shortened(in.graph, only, base, whole(only), kernels);
    }
    if (!worth(before - after) || !worth(base - alone)) return false;
    Priced p;
    p.cause = cause;
    p.gain = std::min(before - after, base - alone);
    p.after = before - after <= base - alone ? after : alone;
    p.base = base;
    p.alone = base - alone;
    const StepGraph& left =
        before - after <= base - alone ? without : fed(edit(in.graph), in.graph, kernels);
    p.fast_host = p.after + replay(left, {scale / kHostDoubt}) - whole(left);
    p.slow_host = p.after + replay(left, {scale * kHostDoubt}) - whole(left);
    p.confidence = confidence;
    p.waste = std::move(waste);
    found.push_back(std::move(p));
    graph = std::move(without);
    if (kernels) beside += replayed - after;
    return true;
  }
};

void hunt_syncs(Hunt& h) {
  const Edit edit = [&](StepGraph g) {
    return without_reads(without_syncs(std::move(g)), h.in.trace);
  };
  if (h.take(Cause::kHostSync, edit, Confidence::kHigh)) return;
  const double scale = h.scale;
  const Seconds base = h.base;
  for (double slower : {1 / kHostFaster, kHostSlower}) {
    // Worth it only for another host: from here on the step is looked at that way.
    h.scale = scale * slower;
    h.base = h.whole(h.in.graph);
    const Seconds after = h.step(edit(h.graph));
    if ((h.step(h.graph) - after).v < kWorthInDoubt * h.base.v) continue;
    if (h.take(Cause::kHostSync, edit, Confidence::kMedium)) return;
  }
  h.scale = scale;
  h.base = base;
}

// Takes faster kernels, and what the host saves by not launching those that are part of another.
bool take_waste(Hunt& h, Waste waste) {
  const std::vector<int64_t> durations = waste.duration_ns;
  const std::vector<double> casts = waste.casts;
  const Edit edit = [&](StepGraph g) {
    return with_more_launches(without_launches(with_durations(std::move(g), durations), durations),
                              casts);
  };
  const Cause cause = waste.cause;
  const Confidence confidence = waste.confidence;
  return h.take(cause, edit, confidence, std::move(waste));
}

bool held_often(const Hunt& h) {
  const std::vector<HostCall>& calls = h.in.graph.calls;
  return std::count_if(calls.begin(), calls.end(), waits) > kHeldOften;
}

// Many passes over memory keep the host as busy as the device, and one repair takes both away: so
// where launching limits a step that is memory-bound as well, and the device is busy for most of
// it, fusing comes first. A step that waits for the device is not the launches' to begin with.
void hunt_passes(Hunt& h) {
  if (held_often(h) || !is_memory_bound(h.graph, h.in.trace, h.in.table)) return;
  if (static_cast<double>(busy_ns(h.graph)) * 2e-9 < h.base.v) return;
  Waste waste = fusable_kernels(h.graph, h.in.trace, h.in.table);
  if (h.worth(Seconds(static_cast<double>(waste.saved_ns) * 1e-9))) take_waste(h, std::move(waste));
}

Seconds graphs_gain(const Hunt& h) {
  const StepGraph graphs = with_graphs(h.graph);
  const Seconds before = h.step(h.graph);
  return before - h.shortened(h.graph, graphs, before, h.step(graphs), false);
}

bool take_launches(Hunt& h, Confidence confidence) {
  const Seconds before = h.step(h.graph);
  const Seconds fused = h.step(with_one_optimizer_call(h.graph, h.in.table));
  if (!h.take(Cause::kLaunchBound, with_graphs, confidence)) return false;
  if (h.worth(before - fused)) h.found.back().alternative = fused;
  return true;
}

void hunt_launches(Hunt& h) {
  if (h.worth(graphs_gain(h))) hunt_passes(h);
  const bool plain = graphs_gain(h).v > 0.1 * h.base.v;
  if (take_launches(h, plain ? Confidence::kHigh : Confidence::kMedium)) return;
  if (!h.found.empty()) return;
  // Worth it only for a host that the profiler slows less than it usually does.
  const double scale = h.scale;
  const Seconds base = h.base;
  h.scale = scale * kHostDoubt;
  h.base = h.whole(h.in.graph);
  if (graphs_gain(h).v >= kWorthInDoubt * h.base.v && take_launches(h, Confidence::kMedium)) return;
  h.scale = scale;
  h.base = base;
}

void hunt_waste(Hunt& h, Waste waste) {
  if (waste.saved_ns == 0) return;
  // It must be worth it for the device; what the host saves beside that is launching's.
  const Seconds device = h.step(h.graph) - h.step(with_durations(h.graph, waste.duration_ns));
  if (!h.worth(device)) return;
  if (take_waste(h, std::move(waste))) h.found.back().device = device;
}

void hunt_tensor_cores(Hunt& h) {
  const Accelerator* a = h.in.device.accelerator;
  if (a == nullptr) return;
  Waste half = no_tensor_cores(h.graph, h.in.trace, h.in.table, h.in.device, half_of(*a));
  // By itself, whatever else was found.
  const Waste tf32 =
      no_tensor_cores(h.in.graph, h.in.trace, h.in.table, h.in.device, Precision::kTf32);
  const Seconds with_tf32 = h.whole(with_durations(h.in.graph, tf32.duration_ns));
  const size_t before = h.found.size();
  hunt_waste(h, std::move(half));
  if (h.found.size() > before && tf32.saved_ns > 0) h.found.back().alternative = with_tf32;
}

// What faster kernels leave to gain for the device is worth it.
bool worth_for_device(const Hunt& h, const Waste& w) {
  if (w.saved_ns == 0) return false;
  return h.worth(h.step(h.graph) - h.step(with_durations(h.graph, w.duration_ns)));
}

// Less than a memory-bound step is what an eager framework costs every model; it is worth a note.
// What needs no compiler to go is a fault in any step: an optimizer in passes, norms and
// activations that are written out.
void hunt_memory(Hunt& h) {
  Waste waste = fusable_kernels(h.graph, h.in.trace, h.in.table);
  Waste library = optimizer_passes(h.graph, h.in.trace);
  join(library, hand_updates(h.graph, h.in.trace, h.in.table));
  if (!worth_for_device(h, library)) library = waste_of(h.graph, Cause::kMemoryBound);
  const Waste written = written_out(h.graph, h.in.trace, h.in.table);
  const bool spelled = worth_for_device(h, written);
  // Two repairs of one cause: the larger speaks for itself, with the smaller as a note.
  const bool update = library.saved_ns > waste.saved_ns;
  if (is_memory_bound(h.graph, h.in.trace, h.in.table) && !update) {
    if (library.saved_ns > 0) join(waste, library);
    const size_t before = h.found.size();
    const StepGraph fused = with_durations(h.in.graph, written.duration_ns);
    hunt_waste(h, std::move(waste));
    if (h.found.size() == before || !spelled) return;
    h.found.back().alternative = h.whole(without_launches(fused, written.duration_ns));
    return;
  }
  if (spelled) join(library, written);
  if (library.saved_ns > 0) hunt_waste(h, std::move(library));
  waste = fusable_kernels(h.graph, h.in.trace, h.in.table);
  if (waste.saved_ns == 0) return;
  const Seconds before = h.step(h.graph);
  const Seconds after = h.step(with_durations(h.graph, waste.duration_ns));
  if (!h.worth(before - after)) return;
  h.notes.push_back(
      fmt::format("as in any eager program, a compiler (torch.compile) could fuse {:.1f} ms of "
                  "memory-bound kernels a step, for up to {:.0f} % of it; not counted as a fault",
                  static_cast<double>(waste.before_ns) * 1e-6, (before - after) / h.base * 100));
}

// What is moved still takes its time: no more is hidden than leaves the step as long as its
// traffic.
void hunt_communication(Hunt& h, bool point_to_point) {
  double share = 1;
  const Edit hide = [&](StepGraph g) {
    return with_hidden_communication(std::move(g), h.in.trace, h.in.table, point_to_point, share);
  };
  int64_t traffic = 0;
  for (const DeviceOp& op : h.graph.ops) {
    const size_t event = static_cast<size_t>(op.event);
    if (h.in.table.of(event).kind == KernelKind::kCommunication) traffic += op.duration_ns;
  }
  const auto too_short = [&] {
    return h.step(hide(h.graph)).v * 1e9 < static_cast<double>(traffic);
  };
  if (traffic > 0 && too_short()) {
    constexpr int kHalvings = 10;
    double low = 0, high = 1;
    for (int i = 0; i < kHalvings; ++i) {
      share = (low + high) / 2;
      (too_short() ? high : low) = share;
    }
    share = low;
  }
  h.take(point_to_point ? Cause::kPipelineBubble : Cause::kExposedCommunication, hide,
         Confidence::kLow);
}

// A pause that nobody names and that comes in a minority of the steps may be any hiccup of a busy
// machine; it counts when it is large. A single step tells nothing.
bool pauses_count(const Hunt& h) {
  constexpr double kLarge = 0.10;
  const StepGraph& g = h.graph;
  if (!g.pauses_told) return false;
  if (g.pause_annotated) return true;
  if (h.in.view.steps < 2) return false;
  if (2 * g.paused_steps > g.steps) return true;
  return (h.step(g) - h.step(without_pauses(g))).v > kLarge * h.base.v;
}

// What holds the host, the one that idles the device most first.
void hunt_holds(Hunt& h) {
  struct Candidate {
    int64_t idle_ns;
    std::function<void()> hunt;
  };
  auto idle = [&](Cause c) { return h.in.idle.by_cause[static_cast<size_t>(c)]; };
  const bool named = h.graph.data_annotated && data_ns(h.graph) >= pin_ns(h.graph);
  const Confidence data = named ? Confidence::kHigh : Confidence::kMedium;
  const Confidence pause = h.graph.pause_annotated ? Confidence::kHigh : Confidence::kLow;
  const Edit fetch = [&](StepGraph g) { return without_data(std::move(g), h.in.trace); };
  const Edit pin = [&](StepGraph g) {
    return with_pinned_copies(std::move(g), h.in.trace, h.in.device.accelerator);
  };
  std::vector<Candidate> candidates = {
      {idle(Cause::kDataStarved), [&] { h.take(Cause::kDataStarved, fetch, data); }},
      {idle(Cause::kPageableCopies),
       [&] { h.take(Cause::kPageableCopies, pin, Confidence::kHigh); }},
      {idle(Cause::kAllocator),
       [&] { h.take(Cause::kAllocator, without_allocation, Confidence::kHigh); }},
      {idle(Cause::kGarbageCollection),
       [&] {
         if (pauses_count(h)) h.take(Cause::kGarbageCollection, without_pauses, pause);
       }},
      {idle(Cause::kHostSync), [&] { hunt_syncs(h); }},
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.idle_ns > b.idle_ns; });
  for (const Candidate& c : candidates) c.hunt();
}

void hunt_kernels(Hunt& h) {
  const FindingInput& in = h.in;
  hunt_waste(h, unfused_attention(h.graph, in.trace, in.table, in.device));
  hunt_tensor_cores(h);
  hunt_waste(h, plane_layout(h.graph, in.trace, in.table, in.device));
  hunt_waste(h, misaligned_shapes(h.graph, in.trace, in.table, in.device));
  hunt_memory(h);
}

// All causes. Launching comes after what holds the host: a step that is held cannot be captured,
// and what holds it makes launches look slow.
Hunt hunted(const FindingInput& in, bool holds_first) {
  Hunt h{in, in.graph, 1, {}, {}, {}, {}};
  h.base = replay(in.graph);
  if (holds_first) hunt_holds(h);
  hunt_kernels(h);
  if (!holds_first) hunt_holds(h);
  hunt_launches(h);
  hunt_communication(h, true);
  hunt_communication(h, false);
  return h;
}

// Fusing that mostly saves launches.
bool saves_launches(const Priced& p) {
  return p.cause == Cause::kMemoryBound && p.device.v > 0 && p.device < p.gain * kMostlyDevice;
}

// Norms and activations that are written out, in a step that is not memory-bound.
bool only_written(const Priced& p) {
  return p.cause == Cause::kMemoryBound && p.waste.memory_ns == 0 &&
         p.waste.written_ns > p.waste.optimizer_ns;
}

// What is taken out later counts only what is left to it. So the larger of the two kinds goes
// first: a hold that gives back as much by itself as any kernels do, or that stands in their way.
bool holds_weigh_more(const Hunt& h) {
  Seconds kernels, holds;
  bool launches = false, allocates = false, written = false, syncs = false;
  for (const Priced& p : h.found) {
    if (p.cause == Cause::kLaunchBound) continue;
    Seconds& most = p.waste.cause == p.cause ? kernels : holds;
    most = std::max(most, p.alone);
    launches = launches || saves_launches(p);
    allocates = allocates || p.cause == Cause::kAllocator;
    written = written || only_written(p);
    syncs = syncs || p.cause == Cause::kHostSync;
  }
  return kernels.v > 0 && (holds > kernels * kHoldsFirst || (launches && allocates) ||
                           (written && syncs && held_often(h)));
}

void finish(Hunt& h, TraceDiagnosis& d) {
  std::stable_sort(h.found.begin(), h.found.end(),
                   [](const Priced& a, const Priced& b) { return a.gain > b.gain; });
  const bool held = held_often(h);
  for (const Priced& p : h.found) {
    d.analysis.findings.push_back(describe(p, h.in));
    // A compiler breaks its graph where the host waits, as a capture does; so what fusing saves in
    // launches comes after the waits, too, and so do formulas, which it would take out with the
    // rest.
    const bool launches = saves_launches(p);
    if (held && (p.cause == Cause::kLaunchBound || launches || only_written(p))) {
      d.analysis.findings.back().after = Cause::kHostSync;
    } else if (launches) {
      d.analysis.findings.back().after = Cause::kAllocator;
    }
  }
  if (d.analysis.findings.empty()) {
    d.analysis.findings.push_back(healthy(h.in, d.step_time));
  }
}

void note_limits(const Trace& t, const TraceDiagnosis& d, const MeasuredLedger& m,
                 Analysis& analysis) {
  if (t.steps_inferred) {
    analysis.notes.push_back(fmt::format(
        "no steps are marked (profiler.step()): {} were told apart by their optimizer", d.steps));
  }
  if (d.accelerator.empty()) {
    analysis.notes.push_back(
        "the device is not in the catalog: arithmetic could not be compared with its peaks");
  }
  if (m.flops_known() < 0.5) {
    analysis.notes.push_back(
        "shapes were not recorded (record_shapes=True): useful FLOPs are not known");
  }
  if (d.unexplained.v >= kWorthFixing * d.step_time.v) {
    analysis.open.push_back(
        {fmt::format(
             "{:.1f} ms of idle time have no cause that the file shows: work launched before "
             "it began, or a host that records nothing",
             d.unexplained.v * 1e3),
         "a profile of whole steps (torch.profiler schedule), with_stack=True"});
  }
}

// What the file leaves open about input. Loader workers that keep up with the profiled step may not
// with the faster one; and a batch that is made in the training process, in silence, takes as long
// as the one before it, unless something else runs meanwhile.
void ask_about_input(const Trace& t, const HostMarks& marks, TraceDiagnosis& d) {
  constexpr double kFaster = 1.25;     // the measured step over the one without the profiler
  constexpr int64_t kTimesAsLong = 3;  // one batch over another
  const bool starved = std::any_of(d.analysis.findings.begin(), d.analysis.findings.end(),
                                   [](const Finding& f) { return f.cause == Cause::kDataStarved; });
  if (!starved && marks.data_named && !marks.loader_in_process &&
      d.step_time.v > kFaster * d.replayed.v) {
    d.analysis.open.push_back(
        {fmt::format(
             "the loader's workers keep up with the profiled step ({:.1f} ms); whether they "
             "do without the profiler ({:.1f} ms) the file does not show",
             d.step_time.v * 1e3, d.replayed.v * 1e3),
         fmt::format(
             "the step timed without the profiler: much more than {:.1f} ms is the loader's",
             d.replayed.v * 1e3)});
  }
  if (!starved || marks.data_named) return;
  int64_t least = INT64_MAX, most = 0;
  for (int32_t index : t.steps) {
    const HostEvent& step = t.host[static_cast<size_t>(index)];
    const int64_t data = split_host(marks, step.start_ns, step.start_ns + step.duration_ns).data_ns;
    least = std::min(least, data);
    most = std::max(most, data);
  }
  if (least >= most || most < kTimesAsLong * least) return;
  d.analysis.open.push_back(
      {fmt::format(
           "making a batch takes the host {:.1f} ms in one step and {:.1f} in another: where "
           "batches are alike, Python's garbage collector runs in between",
           static_cast<double>(least) * 1e-6, static_cast<double>(most) * 1e-6),
       "a few steps with gc.disable(), or a profile with with_stack=True"});
}

struct Booked {
  IdleSplit idle;
  MeasuredLedger ledger;
  // The mean step over the median one, by their kernels: batches of different lengths.
  double longer = 1;
};

// The median step, or the mean of all whole ones where they are uneven. Steps that launch as many
// operations as one another do the same on batches of different sizes; others do different things
// (evaluation, checkpoints), and none speaks for all.
Booked book_steps(const Trace& trace, const StepView& view, const StepGraph& graph,
                  const HostMarks& marks, const KernelTable& table, const DeviceModel& device) {
  Booked out;
  if (view.uneven.empty()) {
    out.idle = idle_split(trace, view, graph, marks);
    out.ledger = trace_ledger(trace, view, table, out.idle, device);
    return out;
  }
  bool same = true;
  double work = 0;
  for_each_uneven(trace, view, marks, [&](const StepView& step, const StepGraph& g) {
    const double launches = static_cast<double>(graph.ops.size());
    same =
        same && std::abs(static_cast<double>(g.ops.size()) - launches) <= kSameLaunches * launches;
    work += static_cast<double>(computing_ns(g));
    const IdleSplit idle = idle_split(trace, step, g, marks);
    add(trace_ledger(trace, step, table, idle, device), out.ledger);
    add(idle, out.idle);
  });
  const auto steps = static_cast<int64_t>(view.uneven.size());
  const double median = static_cast<double>(computing_ns(graph) * steps);
  if (same && median > 0) out.longer = work / median;
  out.idle = mean(std::move(out.idle), steps);
  out.ledger = mean(out.ledger, steps);
  return out;
}

}  // namespace

TraceDiagnosis diagnose_trace(const Trace& trace, const TraceContext& context) {
  TraceDiagnosis d;
  const StepView view = step_view(trace);
  d.whole = breakdown(trace);
  d.window = breakdown(trace, view.from_ns, view.to_ns);
  d.steps = view.steps;
  d.from_ns = view.from_ns;
  d.to_ns = view.to_ns;
  d.step_time = Seconds(static_cast<double>(view.to_ns - view.from_ns) * 1e-9);
  d.uneven = !view.uneven.empty();
  d.spread = Seconds(static_cast<double>(view.slowest_ns - view.fastest_ns) * 1e-9);
  if (trace.device.empty() || view.to_ns <= view.from_ns) {
    d.analysis.notes.push_back("the trace has no device events: nothing to diagnose");
    return d;
  }
  const DeviceModel device = device_model(trace, context);
  if (device.accelerator != nullptr) d.accelerator = device.accelerator->name;
  const KernelTable table = kernel_table(trace);
  const HostMarks marks = host_marks(trace);
  const StepGraph graph = step_graph(trace, view, marks);
  const auto [idle, measured, longer] = book_steps(trace, view, graph, marks, table, device);
  d.step = measured.ledger();
  if (d.uneven) d.step_time = Seconds(static_cast<double>(measured.window_ns) * 1e-9);
  d.idle_ns = idle.by_cause;
  for (const IdleGap& g : idle.gaps) d.spans.push_back({g.start_ns, g.end_ns, g.cause});
  d.unexplained = Seconds(static_cast<double>(idle.unexplained_ns) * 1e-9);

  const StepGraph usual = paced_by_loader(without_profiler(graph), d.step_time * (1 / longer));
  const FindingInput in{trace, view, usual, table, idle, device, longer};
  Hunt first = hunted(in, false);
  Hunt hunt = holds_weigh_more(first) ? hunted(in, true) : std::move(first);
  d.analysis.notes = std::move(hunt.notes);
  // What was replayed is the median step; what is booked and measured is the mean.
  for (Priced& p : hunt.found) {
    for (Seconds* s : {&p.gain, &p.after, &p.base, &p.alone, &p.device, &p.alternative,
                       &p.fast_host, &p.slow_host}) {
      *s *= longer;
    }
    for (int64_t* ns : {&p.waste.before_ns, &p.waste.saved_ns, &p.waste.optimizer_ns,
                        &p.waste.written_ns, &p.waste.memory_ns, &p.waste.math_ns}) {
      *ns = of_the_mean(in, *ns);
    }
  }
  d.replayed = hunt.base * longer;
  finish(hunt, d);
  note_limits(trace, d, measured, d.analysis);
  ask_about_input(trace, marks, d);
  return d;
}

}  // namespace assay

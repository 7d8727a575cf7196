#include "validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "perf/memory.h"
#include "perf/predict.h"
#include "validate/text.h"

namespace assay {
namespace {

// Rows with the same text ran the same work on the same machine with the same software: they differ
// only in their plan, so the model should pick the fastest.
std::string sweep_key(const Run& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.source, r.model_name, r.gpu,
                     r.accelerators.value_or(0), r.global_batch.value_or(0), r.seq.value_or(0),
                     r.precision, r.framework, r.task, r.layers.value_or(0), r.hidden.value_or(0),
                     r.heads.value_or(0), r.inter_link);
}

// The nearest possible plan, where one is plain to see. True when the plan was changed.
bool repair(const Impossible& problem, const Setting& s, Plan& p) {
  const Model& m = s.workload.model;
  if (problem.setting == "plan.ep") {
    const int64_t ranks = s.accelerators / std::max<int64_t>(1, p.pp);
    for (int64_t ep = std::min(p.ep - 1, ranks); ep >= 1; --ep) {
      if (ranks % ep == 0 && m.experts % ep == 0) {
        p.ep = ep;
        return true;
      }
    }
    return false;
  }
  // Where nothing is said of it, a stack shares sequences where it can.
  if (problem.setting == "plan.sequence_parallel") {
    p.sequence_parallel = false;
    return true;
  }
  if (problem.setting == "plan.schedule" && folded(p.schedule)) {
    p.schedule = Schedule::kZeroBubble;
    return true;
  }
  if ((problem.setting == "plan.pp" || problem.setting == "plan.vpp") && p.vpp > 1) {
    // As many chunks as there are layers for; fewer were wrong by their rounds, so none.
    const int64_t most = p.pp > 1 ? std::max<int64_t>(1, m.layers / p.pp) : 1;
    p.vpp = most < p.vpp ? most : 1;
    if (p.vpp == 1 && p.schedule == Schedule::kInterleaved) p.schedule = Schedule::kOneFOneB;
    return true;
  }
  return false;
}

// The column that a setting comes from; empty: none of its own.
std::string column_of(const std::string& setting) {
  constexpr std::pair<std::string_view, std::string_view> kColumns[] = {
      {"plan.tp", "parallel_tp"},
      {"plan.pp", "pp"},
      {"plan.vpp", "vpp"},
      {"plan.cp", "cp"},
      {"plan.ep", "ep"},
      {"plan.dp", "dp"},
      {"plan.sharding_group", "sharding_group"},
      {"plan.zero", "zero_stage_or_fsdp"},
      {"plan.recompute", "recompute"},
      {"plan.precision", "precision"},
      {"plan.micro_batch", "micro_batch"},
      {"workload.global_batch", "global_batch"},
      {"workload.seq", "seq_len"}};
  for (const auto& [from, column] : kColumns) {
    if (setting == from) return std::string(column);
  }
  return "";
}

// The nearest possible plan; what is still wrong with it, if anything.
std::optional<Impossible> bring_near(const Predictor& predictor, Plan& plan,
                                     std::vector<std::string>& assumed) {
  std::optional<Impossible> problem = predictor.impossible(plan);
  for (int tries = 0; problem && tries < 4; ++tries) {
    if (!repair(*problem, predictor.setting(), plan)) break;
    assumed.push_back(fmt::format("{} changed: {}", problem->setting, problem->reason));
    problem = predictor.impossible(plan);
  }
  return problem;
}

Refusal refusal_of(const Impossible& problem) {
  return {RunStatus::kUnsupported, problem.reason, column_of(problem.setting), problem.fix};
}

void refuse(const Refusal& refusal, RowResult& out) {
  out.status = refusal.status;
  out.reason = refusal.reason;
  out.column = refusal.column;
  out.fix = refusal.fix;
}

// A step's time from what it did of the model's FLOPs. A rate that counts what runs again, too,
// says less.
std::optional<double> time_by_rate(const Run& run, const Scenario& s, const Prediction& p) {
  constexpr double kTera = 1e12;
  const bool hardware =
      affirms(clause_words(run.tflops_kind),
              {"hardware", "hfu", "recompute", "recomputed", "recomputation", "full recompute"});
  const auto parts = static_cast<double>(s.setting.accelerators);
  if (run.tflops_per_gpu && !hardware)
    return p.model_flops.v / (*run.tflops_per_gpu * kTera * parts);
  if (!run.mfu_pct || *run.mfu_pct > 100) return {};
  const FlopRate of = peak(s.setting.cluster.accelerator, s.plan.precision);
  return p.model_flops.v / (*run.mfu_pct / 100 * of.v * parts);
}

void set_times(const Run& run, const Scenario& s, const Prediction& p, RowResult& out) {
  if (!std::isfinite(p.step.v) || p.step.v <= 0) {
    out.status = RunStatus::kUnsupported;
    out.reason = "the model gives no finite step time";
    return;
  }
  out.predicted_s = p.step.v;
  out.low_s = p.low.v;
  out.high_s = p.high.v;
  out.extrapolated = p.extrapolated;
  Bytes peak = s.counter.reserved ? p.memory.reserved : p.memory.most_allocated;
  if (s.counter.device) peak += kDriverMemory;
  out.predicted_mem_gb = peak / s.counter.unit;
  out.device_gb = p.memory.capacity / kGB;
  out.fits = p.memory.fits();
  const auto parts = static_cast<double>(s.setting.accelerators);
  if (!out.measured_s && run.tokens_per_s_per_gpu) {
    const double tokens = static_cast<double>(s.setting.workload.global_batch) *
                          static_cast<double>(s.setting.workload.seq);
    out.measured_s = tokens / (*run.tokens_per_s_per_gpu * parts);
  }
  if (out.measured_s && *out.measured_s > 0) {
    const FlopRate of = assay::peak(s.setting.cluster.accelerator, s.plan.precision);
    out.peak_share = p.model_flops.v / (*out.measured_s * of.v * parts);
  }
  if (!out.measured_s) out.measured_s = time_by_rate(run, s, p);
  if (!*out.fits) {
    out.reason = fmt::format("needs {:.1f} GB of {:.1f} GB", p.memory.reserved / kGB,
                             p.memory.capacity / kGB);
    // A time that stands there and cannot be read is one of a run that ran.
    const bool timed =
        std::any_of(out.ignored.begin(), out.ignored.end(), [](const IgnoredCell& c) {
          return c.column.starts_with("step_time") || c.column.starts_with("tokens_per_s");
        });
    if (!out.measured_s) out.status = timed ? RunStatus::kIncomplete : RunStatus::kOom;
    if (!out.measured_s && timed) out.reason += ", and its time cannot be read";
  }
}

std::string size_class(int64_t accelerators) {
  return accelerators <= 8 ? "1-8" : accelerators <= 1024 ? "9-1024" : ">1024";
}

// Groups of one kind in the order their first row appears, or as listed.
void add_groups(const std::vector<RowResult>& rows, const std::string& kind,
                std::vector<std::string> order, std::string (*name_of)(const RowResult&),
                std::vector<GroupStats>& out) {
  std::map<std::string, std::vector<const RowResult*>> members;
  for (const RowResult& r : rows) {
    const std::string name = name_of(r);
    if (name.empty()) continue;
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
    members[name].push_back(&r);
  }
  for (const std::string& name : order) {
    if (!members[name].empty()) out.push_back(stats_of(kind, name, members[name]));
  }
}

}  // namespace

std::vector<Case> read_cases(const CsvTable& table, const Catalog& catalog) {
  std::vector<Case> cases;
  for (Run& run : read_runs(table)) {
    Case c;
    c.scenario = to_scenario(run, catalog);
    c.run = std::move(run);
    cases.push_back(std::move(c));
  }
  return cases;
}

RowResult predict_case(const Case& c) {
  RowResult out;
  out.id = c.run.id;
  out.source = c.run.source;
  out.line = c.run.line;
  out.measured_s = c.run.measured_s();
  out.by_tokens_s = c.run.by_tokens_s();
  out.measured_mem_gb = c.run.peak_mem_gb;
  out.usable = c.run.usable();
  out.unusable_for = c.run.unusable_for();
  out.ignored = c.run.ignored;
  out.time_column = c.run.time_column;
  out.failed_for_memory = c.run.ran_out_of_memory();
  out.accelerators = c.run.accelerators.value_or(0);
  out.sweep = sweep_key(c.run);
  if (!c.scenario) {
    refuse(c.scenario.error(), out);
    return out;
  }
  const Scenario& s = *c.scenario;
  out.kind = s.kind;
  out.accelerator = s.setting.cluster.accelerator.name;
  out.stack = s.setting.stack.name;
  out.assumed = s.assumed;
  Predictor predictor(s.setting);
  Plan plan = s.plan;
  if (const auto problem = bring_near(predictor, plan, out.assumed)) {
    refuse(refusal_of(*problem), out);
    return out;
  }
  set_times(c.run, s, predictor.predict(plan), out);
  return out;
}

tl::expected<Description, Refusal> describe_case(const Case& c) {
  if (!c.scenario) return tl::unexpected(c.scenario.error());
  const Scenario& s = *c.scenario;
  std::vector<std::string> assumed = s.assumed;
  Description d;
  d.setting = s.setting;
  d.has_workload = true;
  d.plan = s.plan;
  if (const auto problem = bring_near(Predictor(s.setting), d.plan, assumed))
    return tl::unexpected(refusal_of(*problem));
  d.plan_keys = {"tp", "pp", "micro_batch"};
  for (std::string& text : assumed)
    d.assumed.push_back({"", std::move(text), "not as such in the row"});
  d.workload_name = s.setting.workload.model.name;
  d.cluster_name = s.setting.cluster.name;
  d.stack_name = s.setting.stack.name;
  return d;
}

ValidateReport run_validate(const std::vector<Case>& cases,
                            const std::function<void(double)>& progress) {
  ValidateReport out;
  for (const Case& c : cases) {
    out.rows.push_back(predict_case(c));
    if (progress)
      progress(static_cast<double>(out.rows.size()) / static_cast<double>(cases.size()));
  }
  std::vector<const RowResult*> all;
  for (const RowResult& r : out.rows) all.push_back(&r);
  out.groups.push_back(stats_of("all", "all", all));
  add_groups(
      out.rows, "source", {}, [](const RowResult& r) { return r.source; }, out.groups);
  add_groups(
      out.rows, "class", {"dense 3D", "FSDP", "MoE", "long context", "LoRA"},
      [](const RowResult& r) {
        return r.accelerator.empty()
                   ? std::string()
                   : std::string(enum_names(RunClass{})[static_cast<size_t>(r.kind)]);
      },
      out.groups);
  add_groups(
      out.rows, "accelerator", {}, [](const RowResult& r) { return r.accelerator; }, out.groups);
  add_groups(
      out.rows, "size", {"1-8", "9-1024", ">1024"},
      [](const RowResult& r) {
        return r.accelerators > 0 ? size_class(r.accelerators) : std::string();
      },
      out.groups);
  return out;
}

ValidateReport run_validate(const CsvTable& table, const Catalog& catalog,
                            const std::function<void(double)>& progress) {
  ValidateReport out = run_validate(read_cases(table, catalog), progress);
  out.file = table.file;
  out.lost_lines = table.lost_lines;
  out.catalog_date = catalog.date;
  return out;
}

}  // namespace assay

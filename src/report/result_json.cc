#include "report/result_json.h"

#include "report/result_file.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/range.h"
#include "world/rules.h"

namespace assay {
namespace {

Diagnostics problem(const std::string& message, const std::string& file, const std::string& help) {
  Diagnostic d;
  d.message = message;
  d.at.file = file;
  d.help = help;
  return {d};
}

}  // namespace

Json description_json(const Setting& s) {
  Json d;
  d["workload"] = value_json(s.workload);
  d["cluster"] = value_json(s.cluster);
  d["stack"] = value_json(s.stack);
  d["accelerators"] = accelerators_used(s);
  return d;
}

Json plan_json_of(const Plan& p) { return value_json(p); }

Json memory_json(const MemoryUse& m) {
  Json j;
  j["weights"] = m.weights.v;
  j["gradients"] = m.gradients.v;
  j["optimizer"] = m.optimizer.v;
  j["activations"] = m.activations.v;
  j["buffers"] = m.buffers.v;
  j["framework"] = m.framework.v;
  j["allocated"] = m.allocated.v;
  j["reserved"] = m.reserved.v;
  j["reserved_range"] = range_json(memory_range(m));
  j["capacity"] = m.capacity.v;
  j["stage"] = m.stage;
  j["fits"] = m.fits();
  return j;
}

Json run_json(const RunFigures& r) {
  Json j;
  j["tokens"] = r.tokens;
  j["steps"] = r.steps;
  j["days"] = r.time_s.value / kSecondsPerDay;
  j["days_range"] = {r.time_s.low / kSecondsPerDay, r.time_s.high / kSecondsPerDay};
  j["gpu_hours"] = r.accelerator_hours.value;
  j["gpu_hours_range"] = range_json(r.accelerator_hours);
  j["cost_usd"] = r.price_known ? Json(r.cost_usd.value) : Json(nullptr);
  j["cost_usd_range"] = r.price_known ? range_json(r.cost_usd) : Json(nullptr);
  j["price_usd_per_gpu_hour"] = r.price_known ? Json(r.price_per_hour) : Json(nullptr);
  j["energy_kwh"] = r.energy_kwh.value;
  j["energy_kwh_range"] = range_json(r.energy_kwh);
  j["power_w"] = r.power_w;
  const std::string predicted(1, kPredicted), cost(1, cost_mark(r));
  j["marks"] = {{"days", predicted},       {"gpu_hours", predicted},
                {"cost_usd", cost},        {"price_usd_per_gpu_hour", r.price_stated ? "s" : "a"},
                {"energy_kwh", predicted}, {"power_w", predicted}};
  return j;
}

Json ledger_json(const Ledger& ledger, Seconds step) {
  Json list = Json::array();
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (ledger[a].v == 0) continue;
    list.push_back(
        {{"account", info(a).key}, {"seconds", ledger[a].v}, {"share", ledger[a] / step}});
  }
  return list;
}

Json candidate_json(const Plan& plan, const Prediction& p, const Setting& s) {
  Json j;
  j["mfu"] = p.mfu;
  j["mfu_range"] = range_json(mfu_range(p));
  j["step_s"] = p.step.v;
  j["step_s_range"] = {p.low.v, p.high.v};
  j["tokens_per_s"] = p.tokens_per_s;
  j["tokens_per_s_range"] = range_json(tokens_range(p));
  j["tflops_per_gpu"] =
      p.model_flops.v / p.step.v / static_cast<double>(accelerators_used(s)) / 1e12;
  j["power_w_per_gpu"] = p.power.v;
  j["dp"] = p.dp;
  j["microbatches"] = p.microbatches;
  j["extrapolated"] = p.extrapolated;
  j["slow_end"] = p.experts_wait ? "expert layers that wait for the host" : "measured scatter";
  const double best = best_measured(s.kernels, plan.precision);
  j["best_measured_mfu"] = best > 0 ? Json(best) : Json();
  j["plan"] = plan_json_of(plan);
  j["memory_bytes"] = memory_json(p.memory);
  j["mark"] = std::string(1, kPredicted);  // of all of these but the plan
  return j;
}

Json outlook_json(const std::optional<Outlook>& o, const PlanOutlook& of) {
  if (!o) return nullptr;
  const Expectation& e = o->expected;
  const auto finite = [](double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); };
  Json j;
  j["goodput"] = e.goodput;
  j["slowdown"] = e.slowdown;
  j["days"] = o->ends() ? Json(e.time.v / kSecondsPerDay) : Json(nullptr);
  j["gpu_hours"] = o->ends() ? Json(o->gpu_hours) : Json(nullptr);
  j["cost_usd"] = o->ends() && o->usd > 0 ? Json(o->usd) : Json(nullptr);
  j["factors"] = {{"failures_and_saves", e.places}, {"missing_machines", e.machines},
                  {"planned_stops", e.planned},     {"site_hours", e.hours},
                  {"late_batches", e.input},        {"start_up", e.start}};
  j["spare_nodes"] = o->spares;
  j["spares_usd"] = o->ends() && o->spares_usd > 0 ? Json(o->spares_usd) : Json(nullptr);
  j["usd_per_gpu_hour"] = o->usd_per_gpu_hour > 0 ? Json(o->usd_per_gpu_hour) : Json(nullptr);
  j["mtbf_s"] = finite(e.mtbf.v);
  j["checkpoint_interval_s"] = finite(e.interval.v);
  j["run"] = of.operations_name;
  j["mark"] = of.stated ? "c" : "a";
  j["method"] = "closed form (docs/models/goodput.md); `assay simulate` has its ledger and ranges";
  return j;
}

Json change_json(const Change& c) {
  Json j;
  j["setting"] = c.path;
  j["before"] = c.before;
  j["after"] = c.after;
  j["mfu"] = c.mfu ? Json(*c.mfu) : Json(nullptr);
  j["step_s"] = c.step_s ? Json(*c.step_s) : Json(nullptr);
  j["first_s"] = c.first_s ? Json(*c.first_s) : Json(nullptr);
  j["last_s"] = c.last_s ? Json(*c.last_s) : Json(nullptr);
  j["mark"] = std::string(1, kPredicted);
  Json with = Json::array();
  for (const Switched& s : c.with)
    with.push_back({{"setting", s.path}, {"before", s.before}, {"after", s.after}});
  j["with"] = std::move(with);
  return j;
}

Json diagnostics_json(const Diagnostics& problems) {
  Json list = Json::array();
  for (const Diagnostic& d : problems) {
    Json j;
    j["severity"] = d.severity == Severity::kError     ? "error"
                    : d.severity == Severity::kWarning ? "warning"
                                                       : "note";
    j["message"] = d.message;
    j["file"] = d.at.file;
    j["line"] = d.at.line;
    j["column"] = d.at.column;
    j["length"] = d.at.length;
    j["help"] = d.help;
    list.push_back(std::move(j));
  }
  return list;
}

Json assumed_json(const std::vector<Assumption>& assumed) {
  Json list = Json::array();
  for (const Assumption& a : assumed) {
    list.push_back({{"path", a.path}, {"value", a.value}, {"why", a.why}});
  }
  return list;
}

Json origins_json(const Origins& origins) {
  Json stated = Json::object();
  for (const auto& [path, o] : origins) {
    if (o.mark == 'a' || o.file.starts_with("catalog/")) continue;
    stated[path] = {
        {"mark", std::string(1, o.mark)}, {"source", o.source}, {"file", o.file}, {"line", o.line}};
  }
  return stated;
}

bool is_result(const std::string& text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || text[start] != '{') return false;
  return text.substr(start, 200).find("\"schema\": \"assay.") != std::string::npos ||
         text.substr(start, 200).find("\"schema\":\"assay.") != std::string::npos;
}

namespace {

// The description and the plan inside a document; null where it holds none.
struct Held {
  const Json* holder = nullptr;  // of the description and where it comes from
  const Json* description = nullptr;
  const Json* plan = nullptr;
  int64_t accelerators = 0;  // zero: the description's
};

const Json* member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? &object[key] : nullptr;
}

Held held_in(const Json& doc, const std::string& which) {
  Held held;
  held.holder = &doc;
  held.description = member(doc, "description");
  const auto take = [&held](const Json* holder) {
    if (holder != nullptr && member(*holder, "plan") != nullptr)
      held.plan = member(*holder, "plan");
  };
  take(member(doc, "nearest_miss"));  // where nothing fitted, it is still a plan to compare with
  take(member(doc, "best"));
  take(member(doc, "plan"));
  const bool kept = which.ends_with("-kept");
  const std::string part = kept ? which.substr(0, which.size() - 5) : which;
  const Json* sizes = member(doc, kept ? "fixed" : "best");
  for (size_t i = 0; sizes != nullptr && sizes->is_array() && i < sizes->size(); ++i) {
    const Json* n = member((*sizes)[i], "accelerators");
    if (n == nullptr || !n->is_number_integer() || std::to_string(n->get<int64_t>()) != part)
      continue;
    held.accelerators = n->get<int64_t>();
    if (const Json* result = member((*sizes)[i], "result")) take(result);
  }
  const Json* sides = member(doc, "sides");
  for (size_t i = 0; sides != nullptr && sides->is_array() && i < sides->size(); ++i) {
    const Json& side = (*sides)[i];
    const Json* name = member(side, "name");
    const bool named = name != nullptr && name->is_string() && *name == which;
    if (!named && std::to_string(i + 1) != which) continue;
    const Json* run = member(side, "simulation");
    held.holder = run != nullptr ? run : &side;
    held.description = member(*held.holder, "description");
    take(run != nullptr ? member(*run, "plan") : member(side, "result"));
  }
  return held;
}

// A document may have been edited or cut: what a description must hold, this one must hold, too.
void check_held(const Setting& s, const std::string& file, Diagnostics& problems) {
  const size_t before = problems.size();
  if (s.workload.seq < 1 || s.workload.global_batch < 1)
    problems.push_back(problem("`description.workload` is incomplete", file, "").front());
  check_model(s.workload.model, "description.workload.model", Value{}, problems);
  check_cluster(s.cluster, {}, problems);
  for (size_t i = before; i < problems.size(); ++i) problems[i].at.file = file;
}

// What was assumed and what was stated where, so that marks survive being saved.
void read_origins(const Json& doc, Description& d) {
  const auto text = [](const Json& object, const char* key) {
    const Json* value = member(object, key);
    return value != nullptr && value->is_string() ? sanitize(value->get<std::string>(), 200)
                                                  : std::string();
  };
  if (const Json* assumed = member(doc, "assumed"); assumed != nullptr && assumed->is_array()) {
    for (const Json& a : *assumed) {
      const std::string path = text(a, "path");
      d.assumed.push_back({path, text(a, "value"), text(a, "why")});
      d.origins[path] = Origin{'a', text(a, "why"), "", 0};
    }
  }
  const Json* stated = member(doc, "origins");
  if (stated == nullptr || !stated->is_object()) return;
  for (const auto& [path, o] : stated->items()) {
    const std::string mark = text(o, "mark");
    const Json* line = member(o, "line");
    d.origins[sanitize(path, 100)] =
        Origin{mark == "m"   ? 'm'
               : mark == "c" ? 'c'
                             : 's',
               text(o, "source"), text(o, "file"),
               line != nullptr && line->is_number_integer() ? line->get<int>() : 0};
  }
}

}  // namespace

tl::expected<Description, Diagnostics> read_result(const std::string& text, const std::string& file,
                                                   const Catalog& known, const std::string& which) {
  Diagnostics problems;
  const std::optional<Json> read = read_document(text, file, "", "not a result of assay",
                                                 "write one with `assay plan ... -o`", problems);
  if (!read) return tl::unexpected(problems);
  const Json& doc = *read;
  const Held held = held_in(doc, which);
  if (held.description == nullptr || held.plan == nullptr) {
    const bool many = doc.contains("sides") || (doc.contains("best") && doc["best"].is_array());
    return tl::unexpected(many ? problem("this result holds several plans", file,
                                         "one is written by `assay plan ... -o result.json`; of "
                                         "this one, `assay explain` takes FIGURE@PART")
                               : problem("this result holds no plan", file,
                                         "write one with `assay plan ... -o result.json`"));
  }
  // A section that is not there would be explained with the usual one, and nobody would know.
  for (const char* section : {"workload", "cluster", "stack"}) {
    if (member(*held.description, section) != nullptr) continue;
    problems.push_back(problem(fmt::format("`description.{}` is missing", section), file,
                               "the file was cut or edited; write it again with -o")
                           .front());
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  Description d;
  const FieldReader reader(*held.description, "description", file, problems);
  reader("workload", d.setting.workload, kAny, "");
  reader("cluster", d.setting.cluster, kAny, "");
  reader("stack", d.setting.stack, kAny, "");
  reader("accelerators", d.setting.accelerators, Limits{0, 1e6}, "");
  if (held.accelerators > 0 && held.accelerators <= 1'000'000) {
    d.setting.accelerators = held.accelerators;
    const int64_t per_node = std::max<int64_t>(1, d.setting.cluster.node.accelerators);
    d.setting.cluster.nodes =
        std::max(d.setting.cluster.nodes, (held.accelerators + per_node - 1) / per_node);
  }
  FieldReader(*held.plan, "plan", file, problems).read(*held.plan, "plan", d.plan, kAny);
  check_held(d.setting, file, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  for (const char* key : {"tp", "pp", "micro_batch"}) d.plan_keys.insert(key);
  d.workload_name = d.setting.workload.name;
  d.cluster_name = d.setting.cluster.name;
  d.stack_name = d.setting.stack.name;
  read_origins(*held.holder, d);
  resolve(d.setting, known);
  return d;
}

}  // namespace assay

#include "world/describe.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "config/scalar.h"
#include "world/checkpoint.h"
#include "world/inputs.h"
#include "world/operations_rules.h"
#include "world/place.h"
#include "world/read.h"
#include "world/rules.h"
#include "world/site_rules.h"

namespace assay {
namespace {

// Reads the sections that were given into one description. Steps are in the order in which later
// ones need earlier ones: the cluster names the vendor, the vendor the stack, the stack the plan.
class Describer {
 public:
  Describer(Inputs& inputs, const Catalog& catalog, Diagnostics& problems)
      : inputs_(inputs),
        catalog_(catalog),
        problems_(problems),
        reader_(catalog, problems, result_.origins) {}

  void read_workload(double tokens);
  void read_cluster(int64_t gpus);
  void read_site();
  void note_idle();
  void read_operations();
  void read_stack();
  void check_stack(const Mark& at);
  void read_plan();
  void settle_schedule();
  void settle_precision();
  void settle_sequence();
  // What no section can know alone.
  void check_together();
  void check_storage();
  void check_offer();
  void finish() { resolve(result_.setting, catalog_); }

  Description& result() { return result_; }

 private:
  void problem(const Mark& at, std::string message, std::string help = "") {
    problems_.push_back(problem_at(at, std::move(message), std::move(help)));
  }
  size_t errors() const {
    return static_cast<size_t>(
        std::count_if(problems_.begin(), problems_.end(),
                      [](const Diagnostic& d) { return d.severity == Severity::kError; }));
  }
  bool clean_since(size_t before) const { return errors() == before; }
  int64_t take_gpus(Value& cluster, Mark& at);
  Mark storage_place(const char* key) const;
  void size_cluster(int64_t gpus, bool nodes_stated, const Mark& at);
  std::string take_name(const Value& section, const std::string& otherwise);
  void move_warnings();

  Inputs& inputs_;
  const Catalog& catalog_;
  Diagnostics& problems_;
  Description result_;
  Reader reader_;
  bool workload_known_ = false;
};

std::string Describer::take_name(const Value& section, const std::string& otherwise) {
  std::string name = otherwise;
  const Entry* entry = section.find("name");
  if (entry != nullptr) reader_.read(entry->value, name, "name", kAny);
  result_.origins.erase("name");
  return sanitize(name, 80);
}

void Describer::move_warnings() {
  for (const Diagnostic& d : problems_) {
    if (d.severity != Severity::kError) result_.warnings.push_back(d);
  }
  std::erase_if(problems_, [](const Diagnostic& d) { return d.severity != Severity::kError; });
}

void Describer::read_workload(double tokens) {
  const size_t before = errors();
  Workload& w = result_.setting.workload;
  const Value& value = inputs_.workload.value;
  reader_.read_struct(value, w, "workload");
  result_.has_workload = true;
  // Who names a model alone names the workload by it, also where --set then takes another model.
  const bool by_model = find_entry<Model>(catalog_, inputs_.workload.label) != nullptr;
  result_.workload_name =
      take_name(value, by_model && !w.model.name.empty() ? w.model.name : inputs_.workload.label);
  w.name = result_.workload_name;
  if (w.model.name.empty()) w.model.name = w.name;
  if (std::isnan(tokens) || tokens < 0 || tokens > 1e18) {
    problem({}, "--tokens must be a positive number", "as in `--tokens 2T`");
  } else if (tokens > 0) {
    w.tokens = tokens;
    result_.origins["workload.tokens"] = Origin{'s', "--tokens", "", 0};
  }
  if (!clean_since(before)) return;
  const Entry* model = value.find("model");
  if (model == nullptr) {
    problem(value.at, "workload.model is not stated",
            "name one of the catalog, as in `model: llama-3.1-70b`, or describe it");
    return;
  }
  check_model(w.model, "workload.model", model->value, problems_);
  // In what is described so far zero stands for what nobody stated.
  for (const auto& [key, stated] : {std::pair("seq", static_cast<double>(w.seq)),
                                    std::pair("global_batch", static_cast<double>(w.global_batch)),
                                    std::pair("tokens", w.tokens)}) {
    const Entry* entry = value.find(key);
    if (entry == nullptr || stated > 0) continue;
    problem(entry->value.at, fmt::format("workload.{} must be at least 1", key),
            "leave it out for a usual one");
  }
  if (!clean_since(before)) return;
  Assumptions assume(result_.assumed, result_.origins);
  complete_workload(w, assume);
  const Entry* seq = value.find("seq");
  check_workload(w, seq == nullptr ? value.at : seq->value.at, problems_);
  move_warnings();
  workload_known_ = clean_since(before);
}

// `gpus: 64` in a cluster says how many are used, and how many nodes there are if nothing does.
int64_t Describer::take_gpus(Value& cluster, Mark& at) {
  Entry* entry = cluster.find("gpus");
  if (entry == nullptr) return 0;
  int64_t gpus = 0;
  at = entry->value.at;
  reader_.read(entry->value, gpus, "cluster.gpus", kCount);
  cluster.entries.erase(cluster.entries.begin() + (entry - cluster.entries.data()));
  return gpus;
}

void Describer::size_cluster(int64_t gpus, bool nodes_stated, const Mark& at) {
  Cluster& c = result_.setting.cluster;
  const int64_t per_node = std::max<int64_t>(1, c.node.accelerators);
  const int64_t most = 1'000'000 * per_node;  // the limit of cluster.nodes
  if (gpus < 0 || gpus > most) {
    problem(at, fmt::format("the number of GPUs must be between 1 and {}", most));
    return;
  }
  const bool follows = !nodes_stated && gpus > 0;
  if (follows) {
    c.nodes = (gpus + per_node - 1) / per_node;
  } else if (!nodes_stated) {
    Assumptions(result_.assumed, result_.origins).add("cluster.nodes", "1", "none was stated");
  }
  if (gpus > c.accelerators()) {
    problem(at,
            fmt::format("{} GPUs were asked for, but the cluster has {}", gpus, c.accelerators()),
            fmt::format("ask for at most {}, or add `--set cluster.nodes={}`", c.accelerators(),
                        (gpus + per_node - 1) / per_node));
    return;
  }
  result_.setting.accelerators = gpus;
  // A run needs whole nodes; whoever finds that out must know where it was said.
  if (gpus > per_node && gpus % per_node != 0)
    result_.origins["cluster.gpus"] =
        Origin{'s', "", file_of(at), line_of(at), at.offset, at.length};
}

void Describer::read_cluster(int64_t gpus) {
  const size_t before = errors();
  Cluster& c = result_.setting.cluster;
  Value& value = inputs_.cluster.value;
  Mark at = value.at;
  const int64_t stated_gpus = value.is_map() ? take_gpus(value, at) : 0;
  reader_.read_struct(value, c, "cluster");
  result_.cluster_name = take_name(value, c.name.empty() ? inputs_.cluster.label : c.name);
  c.name = result_.cluster_name;
  if (!clean_since(before)) return;
  const bool nodes_stated = result_.origins.contains("cluster.nodes");
  const Mark option{gpus != 0 ? inputs_.sources.add(fmt::format("--gpus {}", gpus), "") : nullptr};
  size_cluster(gpus != 0 ? gpus : stated_gpus, nodes_stated, gpus != 0 ? option : at);
  if (const Entry* price = value.find("price"); price != nullptr && c.price.v == 0) {
    problem(price->value.at, "cluster.price must be more than zero",
            "leave it out for the accelerator's usual price");
  }
  if (!clean_since(before)) return;
  check_fabric(c, value, problems_);
  Assumptions assume(result_.assumed, result_.origins);
  const Entry* fabric = value.is_map() ? value.find("fabric") : nullptr;
  if (connect_nodes(c, catalog_, value, assume) && fabric != nullptr && fabric->value.is_map())
    reader_.read_struct(fabric->value, c.fabric, "cluster.fabric");
  complete_cluster(c, catalog_, assume);
  check_cluster(c, value, problems_);
  for (Diagnostic& d : doubts_of_cluster(c, catalog_, value))
    result_.warnings.push_back(std::move(d));
  const int64_t used = result_.setting.accelerators;
  if (workload_known_)
    fit_batch(result_.setting.workload, {used > 0 ? used : c.accelerators()}, result_.assumed,
              result_.origins);
}

void Describer::read_site() {
  const size_t before = errors();
  Site& site = result_.site;
  const Value& value = inputs_.site.value;
  reader_.read_struct(value, site, "site");
  result_.site_name = take_name(value, site.name.empty() ? inputs_.site.label : site.name);
  site.name = result_.site_name;
  result_.has_site = true;
  check_site(site, value, problems_);
  if (!clean_since(before)) return;
  Assumptions assume(result_.assumed, result_.origins);
  const bool unnamed = site.cooling.name.empty();
  complete_site(site, catalog_, assume);
  // Where the usual plant was filled in, what is stated of the cooling still holds.
  const Entry* cooling = value.is_map() ? value.find("cooling") : nullptr;
  if (unnamed && !site.cooling.name.empty() && cooling && cooling->value.is_map()) {
    reader_.read_struct(cooling->value, site.cooling, "site.cooling");
  }
}

// What can be said and nothing here depends on: it must not look as if it mattered.
void Describer::note_idle() {
  const Workload& w = result_.setting.workload;
  const bool known = workload_known_;
  const bool no_adapters = known && w.task != Task::kLora;
  const bool no_experts = known && w.model.experts == 0;
  const bool not_latent = known && w.model.kv_lora_rank == 0;
  const bool one_token = known && w.model.kind == ModelKind::kDlrm;
  const Plan& p = result_.plan;
  struct Idle {
    const char* path;
    bool idle;
    const char* why;
  };
  for (const Idle& x : {Idle{"site.climate.latitude", true, "no figure depends on it"},
                        Idle{"site.climate.longitude", true, "no figure depends on it"},
                        Idle{"site.cooling.liquid_share", true, "no figure depends on it"},
                        Idle{"site.storage.usd_per_tb_month", true, "no figure depends on it"},
                        Idle{"cluster.node.numa_nodes", true, "no figure depends on it"},
                        Idle{"cluster.fabric.degraded_speed",
                             result_.setting.cluster.fabric.degraded_links == 0,
                             "no links are degraded"},
                        Idle{"workload.seq", one_token, "a sample is one token"},
                        Idle{"workload.model.q_lora_rank", not_latent,
                             "kv_lora_rank is not stated"},
                        Idle{"workload.model.qk_nope_head_dim", not_latent,
                             "kv_lora_rank is not stated"},
                        Idle{"workload.model.shared_expert_ffn", no_experts,
                             "the model has no experts"},
                        Idle{"workload.model.dense_layers", no_experts, "the model has no experts"},
                        Idle{"workload.model.moe_every", no_experts, "the model has no experts"},
                        Idle{"workload.model.expert_bias", no_experts, "the model has no experts"},
                        Idle{"workload.model.expert_hidden", no_experts,
                             "the model has no experts"},
                        Idle{"plan.context", result_.plan_keys.contains("cp") && p.cp == 1,
                             "plan.cp is 1"},
                        Idle{"workload.lora_rank", no_adapters, "the task is not lora"},
                        Idle{"workload.lora_mlp", no_adapters, "the task is not lora"},
                        Idle{"plan.etp", no_experts, "the model has no experts"},
                        Idle{"plan.overlap_expert", no_experts, "the model has no experts"},
                        Idle{"plan.expert_skew", no_experts, "the model has no experts"},
                        Idle{"plan.expert_capacity", no_experts, "the model has no experts"}}) {
    const auto stated = result_.origins.find(x.path);
    if (!x.idle || stated == result_.origins.end() || stated->second.file.empty() ||
        stated->second.file.starts_with("catalog/"))
      continue;
    Diagnostic d =
        problem_of(result_.origins, x.path, fmt::format("{} changes nothing: {}", x.path, x.why),
                   "keep it as a note, or leave it out");
    d.severity = Severity::kWarning;
    result_.warnings.push_back(std::move(d));
  }
}

void Describer::read_operations() {
  Operations& run = result_.operations;
  const Value& value = inputs_.run.value;
  const bool named = value.is_map() && value.find("base") != nullptr;
  if (!named) {
    reader_.read_name(scalar_value("usual", {}), run, "run");
    Assumptions(result_.assumed, result_.origins).add("run", "usual", "good practice of 2026");
  }
  if (inputs_.run.given) reader_.read_struct(value, run, "run");
  // Whoever counts spares does not want the usual share of nodes besides.
  if (value.is_map() && value.find("spares") && !value.find("spare_share")) run.spare_share = 0;
  result_.operations_name = take_name(value, run.name);
  result_.has_operations = inputs_.run.given;
  check_operations(run, value, problems_);
  const Entry* saves = value.is_map() ? value.find("checkpoint") : nullptr;
  const Entry* interval = saves && saves->value.is_map() ? saves->value.find("interval") : nullptr;
  if (interval && run.checkpoint.rule != SaveRule::kFixed) {
    Diagnostic d = problem_at(interval->key_at,
                              "run.checkpoint.interval changes nothing: the rule chooses another",
                              "add `rule: fixed` (--set run.checkpoint.rule=fixed), or remove it");
    d.severity = Severity::kWarning;
    result_.warnings.push_back(std::move(d));
  }
}

// Prices that were asked for another part say little about this one.
void Describer::check_offer() {
  const std::string& priced = result_.site.offer.accelerator;
  const std::string& built = result_.setting.cluster.accelerator.name;
  if (!result_.has_site || priced.empty() || built.empty() || priced == built) return;
  Mark at = inputs_.site.value.at;
  if (const Entry* offer = inputs_.site.value.find("offer")) at = offer->value.at;
  Diagnostic d = problem_at(
      at, fmt::format("the offer's prices are for {}, the cluster has {}", priced, built),
      "state `site.offer` with prices for it");
  d.severity = Severity::kWarning;
  result_.warnings.push_back(std::move(d));
}

// The place of a key of the site's storage, or of what is above it.
Mark Describer::storage_place(const char* key) const {
  const Value& site = inputs_.site.value;
  const Entry* storage = site.is_map() ? site.find("storage") : nullptr;
  if (storage == nullptr) return site.at;
  const Entry* stated = storage->value.is_map() ? storage->value.find(key) : nullptr;
  return stated != nullptr ? stated->value.at : storage->value.at;
}

void Describer::check_storage() {
  const Storage& storage = result_.site.storage;
  const int64_t kept = std::max<int64_t>(1, result_.operations.checkpoint.keep);
  const Bytes one = checkpoint_bytes(result_.setting.workload);
  if (storage.capacity.v > 0 && one * static_cast<double>(kept) > storage.capacity) {
    problem(storage_place("capacity"),
            fmt::format("{} of {:.3g} TB do{} not fit into storage of {:.3g} TB",
                        kept == 1 ? "a checkpoint" : fmt::format("{} checkpoints", kept),
                        one.v / 1e12, kept == 1 ? "es" : "", storage.capacity.v / 1e12),
            kept == 1 ? "state a larger `site.storage.capacity`"
                      : "keep fewer (`run.checkpoint.keep`), or state a larger capacity");
  }
  const auto slow = [&](Bandwidth b, const char* key) {
    if (b.v <= 0 || (one / b).v <= kSecondsPerYear) return;
    problem(storage_place(key),
            fmt::format("site.storage.{}: a checkpoint of {:.3g} TB would take {:.3g} years", key,
                        one.v / 1e12, (one / b).v / kSecondsPerYear),
            "raise it, as in `100 GB/s`");
  };
  slow(storage.write, "write");
  slow(storage.read, "read");
}

void Describer::check_together() {
  if (workload_known_ && result_.has_site) check_storage();
  const Operations& run = result_.operations;
  const int64_t nodes = result_.setting.cluster.nodes;
  if (run.recovery != Restart::kElastic || run.replicas <= nodes || nodes < 1) return;
  const Entry* stated = inputs_.run.value.is_map() ? inputs_.run.value.find("replicas") : nullptr;
  problem(stated != nullptr ? stated->value.at : inputs_.run.value.at,
          fmt::format("run.replicas: {} nodes cannot be {} replicas", nodes, run.replicas),
          fmt::format("a replica is whole nodes: state at most {}", nodes));
}

void Describer::read_stack() {
  Stack& stack = result_.setting.stack;
  const Value& value = inputs_.stack.value;
  const bool named = value.is_map() && value.find("base") != nullptr;
  const Setting& s = result_.setting;
  const Stack* usual = default_stack(s.cluster.accelerator, s.workload.model.kind, catalog_);
  if (!named && usual != nullptr) {
    const Value name = scalar_value(usual->name, {});
    reader_.read_name(name, stack, "stack");
    const std::string& vendor = result_.setting.cluster.accelerator.vendor;
    Assumptions(result_.assumed, result_.origins)
        .add("stack", usual->name,
             vendor.empty() ? "the usual one" : fmt::format("usual on {}", sanitize(vendor, 40)));
  }
  if (inputs_.stack.given) reader_.read_struct(value, stack, "stack");
  result_.stack_name = take_name(value, stack.name);
  if (named) check_stack(value.find("base")->value.at);
}

// Its costs are then another maker's, but a port may exist that nobody here knows of.
void Describer::check_stack(const Mark& at) {
  const Accelerator& a = result_.setting.cluster.accelerator;
  const Stack& stack = result_.setting.stack;
  const Stack* instead = stack_instead(stack, a, catalog_);
  if (instead == nullptr) return;
  Diagnostic d = problem_at(
      at,
      fmt::format("stack {} does not run on {} of {}: it communicates by {}",
                  sanitize(result_.stack_name, 60), sanitize(a.name, 60), sanitize(a.vendor, 40),
                  stack.library),
      fmt::format("use {}, or another that communicates by {}", instead->name, instead->library));
  d.severity = Severity::kWarning;
  result_.warnings.push_back(std::move(d));
}

void Describer::read_plan() {
  result_.plan = result_.setting.stack.defaults;
  const Value& value = inputs_.plan.value;
  if (inputs_.plan.given) reader_.read_struct(value, result_.plan, "plan");
  for (const Entry& entry : value.entries) {
    if (!is_reserved_key(entry.key)) result_.plan_keys.insert(entry.key);
  }
  settle_schedule();
  settle_precision();
  settle_sequence();
}

// Chunks of a stage are what interleaving is. Of two statements that exclude each other neither is
// dropped in silence.
void Describer::settle_schedule() {
  Plan& plan = result_.plan;
  const Value& value = inputs_.plan.value;
  const bool chunks = plan.vpp > 1;
  if (!result_.origins.contains("plan.schedule")) {
    if (chunks) plan.schedule = Schedule::kInterleaved;
    return;
  }
  if (!result_.origins.contains("plan.vpp")) return;  // the search chooses it
  const bool interleaved = plan.schedule == Schedule::kInterleaved;
  if (interleaved == chunks) return;
  const Mark& at = value.find("schedule")->value.at;
  if (interleaved) {
    problem(at, "plan.schedule: interleaved needs chunks of a stage, and plan.vpp is 1",
            "set plan.vpp to at least 2, or leave out plan.schedule");
  } else {
    const auto name = enum_names(plan.schedule)[static_cast<size_t>(plan.schedule)];
    problem(
        at,
        fmt::format("plan.schedule: {} has no virtual stages, and plan.vpp is {}", name, plan.vpp),
        "leave out plan.vpp, or plan.schedule: plan.vpp above 1 is interleaved");
  }
}

// A stated format that the accelerator has not is a mistake; a stack's is replaced.
void Describer::settle_precision() {
  const Accelerator& a = result_.setting.cluster.accelerator;
  Plan& plan = result_.plan;
  if (a.memory.v == 0 || supports(a, plan.precision)) return;  // no accelerator, or nothing amiss
  const auto name = [](Precision p) { return enum_names(p)[static_cast<size_t>(p)]; };
  const std::string why = fmt::format("{} has no {}", sanitize(a.name, 60), name(plan.precision));
  if (const Entry* stated = inputs_.plan.value.find("precision")) {
    if (!result_.origins.contains("plan.precision")) return;  // it was no format at all
    problem(stated->value.at, "plan.precision: " + why,
            fmt::format("use one of {}", supported_precisions(a)));
    return;
  }
  plan.precision = usable_precision(a, plan.precision);
  Assumptions(result_.assumed, result_.origins)
      .add("plan.precision", std::string(name(plan.precision)), why);
}

// A stack shares sequences among tensor parallel ranks where that is possible; who states it wants
// to hear that it is not.
void Describer::settle_sequence() {
  Plan& plan = result_.plan;
  const Workload& w = result_.setting.workload;
  const bool stated = inputs_.plan.value.find("sequence_parallel") != nullptr;
  if (stated || !workload_known_ || shares_sequence(w, result_.setting.stack, plan)) return;
  plan.sequence_parallel = false;
  Assumptions(result_.assumed, result_.origins)
      .add("plan.sequence_parallel", "false",
           fmt::format("tp {} x cp {} does not divide {} tokens", plan.tp, plan.cp, w.seq));
}

// A setting that nothing would read is a mistake, not a wish.
void check_effect(const Request& request, Inputs& inputs, Diagnostics& problems) {
  for (const std::string& set : request.sets) {
    const bool run = set.starts_with("run.") || set.starts_with("run=");
    const bool site = set.starts_with("site.") || set.starts_with("site=");
    if (!run && !site) continue;
    const Mark at{inputs.sources.add("--set " + sanitize(set, 100), "")};
    const std::string path = sanitize(set.substr(0, set.find('=')), 60);
    if (!request.needs_operations) {
      problems.push_back(
          problem_at(at, fmt::format("`{}` changes nothing here: it is about weeks of a run", path),
                     "`assay simulate` takes it"));
    } else if (site && !inputs.site.given && !request.needs_site) {
      problems.push_back(problem_at(at, fmt::format("`{}` changes nothing: there is no site", path),
                                    "name one, as in `phoenix`, or give a file"));
    }
  }
}

}  // namespace

DescribeAttempt try_describe(const Request& request, const Catalog& catalog) {
  Inputs inputs;
  DescribeAttempt attempt;
  Diagnostics& problems = attempt.problems;
  gather_inputs(request, catalog, inputs, problems);
  // A file that could not be read may have held what is missing: say that alone.
  const bool all_read = !has_errors(problems);
  check_effect(request, inputs, problems);
  bool plannable = all_read && inputs.workload.given && inputs.cluster.given;
  const auto missing = [&](const char* what, const Section& section, const char* usual) {
    if (!all_read || section.given) return;
    const std::string& name = section.passed_over;
    problems.push_back(problem_at({}, fmt::format("no {} was given", what),
                                  name.empty() ? usual
                                               : fmt::format("`{0}` is read as another kind of "
                                                             "thing; write `{1}={0}`",
                                                             sanitize(name, 80), what)));
  };
  if (request.needs_workload)
    missing("workload", inputs.workload, "name a model, as in `llama-3.1-70b`, or give a file");
  missing("cluster", inputs.cluster, "name one, as in `h100-1024`, or give a file");
  if (request.needs_site) missing("site", inputs.site, "name one, as in `phoenix`, or give a file");
  Describer describer(inputs, catalog, problems);
  const auto errors = [&] {
    return std::count_if(problems.begin(), problems.end(),
                         [](const Diagnostic& d) { return d.severity == Severity::kError; });
  };
  auto before = errors();
  if (inputs.workload.given && !inputs.workload.failed) describer.read_workload(request.tokens);
  if (inputs.cluster.given) describer.read_cluster(request.gpus);
  plannable = plannable && errors() == before;
  before = errors();
  if (inputs.site.given) describer.read_site();
  attempt.site_broken = errors() != before;
  if (inputs.run.given || request.needs_operations) describer.read_operations();
  before = errors();
  describer.read_stack();
  describer.read_plan();
  plannable = plannable && errors() == before;
  if (request.needs_operations) describer.check_together();
  describer.check_offer();
  describer.note_idle();
  sort_by_place(problems);
  if (has_errors(problems) && !plannable) return attempt;
  describer.finish();
  attempt.readable = std::move(describer.result());
  if (attempt.site_broken) attempt.readable->has_site = false;
  return attempt;
}

tl::expected<Description, Diagnostics> describe(const Request& request, const Catalog& catalog) {
  DescribeAttempt attempt = try_describe(request, catalog);
  if (has_errors(attempt.problems)) return tl::unexpected(std::move(attempt.problems));
  return std::move(*attempt.readable);
}

Diagnostics lay_over(const std::vector<std::string>& sets, const Catalog& catalog, Operations& run,
                     Site& site) {
  Inputs inputs;
  Diagnostics problems;
  Origins ignored;
  Request request;
  request.sets = sets;
  gather_inputs(request, catalog, inputs, problems);
  Reader reader(catalog, problems, ignored);
  Operations new_run = run;
  Site new_site = site;
  if (inputs.run.given) reader.read_struct(inputs.run.value, new_run, "run");
  if (inputs.site.value.is_map()) reader.read_struct(inputs.site.value, new_site, "site");
  check_operations(new_run, inputs.run.value, problems);
  if (!problems.empty()) return problems;
  run = std::move(new_run);
  site = std::move(new_site);
  return {};
}

CheckReport check_file(const std::string& path, const Catalog& catalog) {
  CheckReport report;
  Inputs inputs;
  Request request;
  request.inputs = {path};
  gather_inputs(request, catalog, inputs, report.problems);
  Describer describer(inputs, catalog, report.problems);
  if (inputs.workload.given && !inputs.workload.failed) describer.read_workload(0);
  if (inputs.cluster.given) describer.read_cluster(0);
  if (inputs.site.given) describer.read_site();
  // A whole job would be planned with what is usual of these.
  const bool job = inputs.workload.given && inputs.cluster.given;
  if (inputs.run.given || job) describer.read_operations();
  if (inputs.stack.given || job) describer.read_stack();
  describer.read_plan();
  describer.note_idle();
  report.problems.insert(report.problems.end(), describer.result().warnings.begin(),
                         describer.result().warnings.end());
  sort_by_place(report.problems);
  report.assumed = describer.result().assumed;
  return report;
}

}  // namespace assay

#include "plan/study.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/assert.h"

namespace assay {
namespace {

bool knows(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The catalog's entry of a setting: `stack.jitter` is `stacks.megatron-core.jitter`.
std::string catalog_path(const Setting& s, const std::string& path) {
  const std::pair<std::string, std::string> sections[] = {
      {"cluster.accelerator.", "accelerators." + s.cluster.accelerator.name},
      {"cluster.node.", "nodes." + s.cluster.node.name},
      {"cluster.fabric.", "fabrics." + s.cluster.fabric.name},
      {"workload.model.", "models." + s.workload.model.name},
      {"stack.", "stacks." + s.stack.name},
      {"kernels.", "kernels." + s.kernels.name},
      {"scaleup_params.", "collectives." + s.scaleup_params.name},
      {"fabric_params.", "collectives." + s.fabric_params.name},
  };
  for (const auto& [section, entry] : sections) {
    if (path.starts_with(section)) return entry + "." + path.substr(section.size());
  }
  return path;
}

const Origin* origin_of(const Description& d, const Catalog& known, const std::string& path) {
  for (const Origins* origins : {&d.origins, &known.origins}) {
    const auto found = origins->find(origins == &d.origins ? path : catalog_path(d.setting, path));
    if (found != origins->end()) return &found->second;
  }
  return nullptr;
}

// Useful work is arithmetic on specs; everything else is the calibrated model's, but for kernels
// that nobody measured.
char account_mark(Account a, bool kernels_assumed) {
  if (a == Account::kUseful) return 's';
  return kernels_assumed && info(a).group == "kernels" ? 'a' : 'c';
}

std::vector<LedgerLine> ledger_lines(const Prediction& p, bool kernels_assumed) {
  std::vector<LedgerLine> lines;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const double share = p.ledger[a] / p.step;
    if (share == 0 && a != Account::kUseful) continue;
    lines.push_back({a, p.ledger[a].v, share, account_mark(a, kernels_assumed)});
  }
  std::stable_sort(lines.begin() + 1, lines.end(),
                   [](const LedgerLine& a, const LedgerLine& b) { return a.seconds > b.seconds; });
  return lines;
}

// The share from `begin` to `end` of the whole, as a whole of its own.
std::function<void(double)> part(const StudyOptions& options, double begin, double end) {
  if (!options.progress) return {};
  return [&options, begin, end](double f) { options.progress(begin + (end - begin) * f); };
}
// What-ifs take about as long as the search.
constexpr double kSearchShare = 0.5;

void fill_found(PlanResult& r, const StudyOptions& options) {
  const Setting& setting = r.description.setting;
  r.fits = true;
  r.run = run_figures(r.description, r.prediction);
  r.ledger = ledger_lines(r.prediction, r.kernels_assumed);
  if (options.what_ifs) {
    r.levers = levers(setting, {r.plan, r.prediction}, r.description.plan_keys,
                      part(options, r.searched ? kSearchShare : 0, 1));
  }
}

void fill_miss(PlanResult& r, const Catalog& known, const StudyOptions& options) {
  const Description& d = r.description;
  r.plan = r.miss->plan;
  r.prediction.memory = r.miss->memory;
  r.prediction.dp = r.miss->dp;
  if (options.what_ifs) {
    r.fixes = fixes(d.setting, d.plan, d.plan_keys, *r.miss, known,
                    part(options, r.searched ? kSearchShare : 0, 1));
  }
}

void predict_stated(PlanResult& r, Predictor& predictor, bool ran) {
  r.plan = r.description.plan;
  r.impossible = predictor.impossible(r.plan);
  if (r.impossible) return;
  r.prediction = predictor.predict(r.plan);
  r.fits = ran || r.prediction.memory.fits();
  if (!r.fits) r.miss = Miss{r.plan, r.prediction.memory, r.prediction.dp};
}

void search_best(PlanResult& r, Predictor& predictor, const StudyOptions& options) {
  SearchOptions how;
  how.progress = part(options, 0, options.what_ifs ? kSearchShare : 1);
  r.search = search(predictor, r.description.plan, r.description.plan_keys, how);
  r.fits = r.search.found();
  r.miss = r.search.nearest_miss;
  r.impossible = r.search.impossible;
  if (!r.fits) return;
  r.plan = r.search.top[0].plan;
  r.prediction = r.search.top[0].prediction;
  if (const Candidate* next = r.search.runner_up()) {
    r.runner_up = *next;
    r.why_lost = why_slower(r.prediction, next->prediction);
  }
}

}  // namespace

PlanResult study(Description description, const Catalog& known, const StudyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PlanResult r;
  r.what_ifs = options.what_ifs;
  r.description = std::move(description);
  Setting& setting = r.description.setting;
  setting.accelerators = accelerators_used(setting);
  // An entry may inherit measured matmuls from another architecture's; its spread is its own.
  for (const char* path : {"kernels.matmul.efficiency", "kernels.spread"}) {
    const Origin* kernels = origin_of(r.description, known, path);
    r.kernels_assumed = r.kernels_assumed || kernels == nullptr || kernels->mark == 'a';
  }
  Predictor predictor(setting);
  r.searched = !fully_stated(setting, r.description.plan, r.description.plan_keys);
  if (r.searched) {
    search_best(r, predictor, options);
  } else {
    predict_stated(r, predictor, options.ran);
  }
  if (r.fits) {
    fill_found(r, options);
  } else if (r.miss) {
    fill_miss(r, known, options);
  }
  r.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return r;
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names = Predictor::figures();
  for (const std::string& n : run_figure_names()) names.push_back(n);
  return names;
}

bool is_figure(const std::string& name) { return knows(figure_names(), name); }

namespace {

// Puts in where each setting of a derivation was stated.
void cite(const PlanResult& r, const Catalog& known, Derivation& figure) {
  const Description& d = r.description;
  if (r.kernels_assumed && figure.mark == 'c' && figure.name.starts_with("kernels."))
    figure.mark = 'a';
  if (const Origin* o = figure.path.empty() ? nullptr : origin_of(d, known, figure.path)) {
    figure.mark = o->mark;
    const std::string place = o->line > 0 ? fmt::format("{}:{}", o->file, o->line) : o->file;
    figure.source = place + (place.empty() || o->source.empty() ? "" : "  ") + o->source;
    if (figure.source.empty()) figure.source = figure.path;
  }
  for (Derivation& input : figure.inputs) cite(r, known, input);
}

// The 90 % range of a figure, in any unit; nothing where none is known.
std::optional<Interval> figure_range(const PlanResult& r, const std::string& figure) {
  const Prediction& p = r.prediction;
  if (figure == "memory" || figure == "reserved") return memory_range(p.memory);
  if (figure == "headroom") {
    const Interval used = memory_range(p.memory);
    const double all = p.memory.capacity.v;
    return Interval{all - used.value, all - used.high, all - used.low};
  }
  if (!r.fits) return std::nullopt;  // only its memory is known
  if (figure == "mfu" || figure == "tflops") return mfu_range(p);
  if (figure == "step_time") return Interval{p.step.v, p.low.v, p.high.v};
  if (figure == "tokens_per_s") return tokens_range(p);
  if (figure == "days") return r.run.time_s;
  if (figure == "gpu_hours") return r.run.accelerator_hours;
  if (figure == "cost") return r.run.cost_usd;
  if (figure == "energy") return r.run.energy_kwh;
  return std::nullopt;
}

}  // namespace

Derivation explain_figure(const PlanResult& r, const std::string& figure, const Catalog& known) {
  ASSERT(r.fits || r.miss);
  Predictor predictor(r.description.setting);
  Derivation d;
  if (knows(run_figure_names(), figure)) {
    Derivation step = predictor.explain(r.plan, "step_time");
    step.inputs.clear();  // a figure of its own
    d = explain_run(r.description, r.prediction, figure, std::move(step));
  } else {
    d = predictor.explain(r.plan, figure);
  }
  cite(r, known, d);
  if (const std::optional<Interval> range = figure_range(r, figure); range && range->value != 0) {
    d.low = d.value * (range->low / range->value);
    d.high = d.value * (range->high / range->value);
  }
  return d;
}

}  // namespace assay

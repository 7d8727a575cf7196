#include "plan/study.h"

#include <algorithm>
#include <chrono>

#include "base/assert.h"

namespace assay {
namespace {

constexpr double kShareLeast = 0.0005;  // smaller accounts are not listed one by one

bool knows(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The mark of an account is the mark of its derivation; useful work is arithmetic on specs.
char mark_of(Predictor& predictor, const Plan& plan, Account account) {
  static const std::vector<std::string> known = Predictor::figures();
  const std::string key(info(account).key);
  if (account == Account::kUseful) return 's';
  return knows(known, key) ? predictor.explain(plan, key).mark : 'c';
}

std::vector<LedgerLine> ledger_lines(Predictor& predictor, const Plan& plan, const Prediction& p) {
  std::vector<LedgerLine> lines;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const double share = p.ledger[a] / p.step;
    if (share < kShareLeast && a != Account::kUseful) continue;
    lines.push_back({a, p.ledger[a].v, share, mark_of(predictor, plan, a)});
  }
  std::stable_sort(lines.begin() + 1, lines.end(),
                   [](const LedgerLine& a, const LedgerLine& b) { return a.seconds > b.seconds; });
  return lines;
}

void fill_found(PlanResult& r, Predictor& predictor, const StudyOptions& options) {
  const Setting& setting = r.description.setting;
  r.fits = true;
  r.run = run_figures(r.description, r.prediction);
  r.ledger = ledger_lines(predictor, r.plan, r.prediction);
  if (options.what_ifs) {
    r.levers = levers(setting, {r.plan, r.prediction}, r.description.plan_keys);
  }
}

void fill_miss(PlanResult& r, const Catalog& known, const StudyOptions& options) {
  const Description& d = r.description;
  r.plan = r.miss->plan;
  r.prediction.memory = r.miss->memory;
  r.prediction.dp = r.miss->dp;
  if (options.what_ifs) r.fixes = fixes(d.setting, d.plan, d.plan_keys, *r.miss, known);
}

void predict_stated(PlanResult& r, Predictor& predictor) {
  r.plan = r.description.plan;
  r.impossible = predictor.impossible(r.plan);
  if (r.impossible) return;
  r.prediction = predictor.predict(r.plan);
  r.fits = r.prediction.memory.fits();
  if (!r.fits) r.miss = Miss{r.plan, r.prediction.memory, r.prediction.dp};
}

void search_best(PlanResult& r, Predictor& predictor, const StudyOptions& options) {
  SearchOptions how;
  how.progress = options.progress;
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
  r.description = std::move(description);
  Setting& setting = r.description.setting;
  setting.accelerators = accelerators_used(setting);
  Predictor predictor(setting);
  r.searched = !fully_stated(setting, r.description.plan, r.description.plan_keys);
  if (r.searched) {
    search_best(r, predictor, options);
  } else {
    predict_stated(r, predictor);
  }
  if (r.fits) {
    fill_found(r, predictor, options);
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

Derivation explain_figure(const PlanResult& r, const std::string& figure) {
  ASSERT(r.fits || r.miss);
  Predictor predictor(r.description.setting);
  const std::vector<std::string>& run = run_figure_names();
  if (!knows(run, figure)) return predictor.explain(r.plan, figure);
  const std::vector<std::string> known = Predictor::figures();
  Derivation step;
  if (knows(known, "step_time")) {
    step = predictor.explain(r.plan, "step_time");
  } else {
    step.name = "step time";
    step.value = r.prediction.step.v;
    step.unit = "s";
  }
  return explain_run(r.description, r.prediction, figure, std::move(step));
}

}  // namespace assay

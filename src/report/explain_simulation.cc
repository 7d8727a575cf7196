// Where the figures of a simulated run come from.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/explain_parts.h"

namespace assay {
namespace {

struct RunKey {
  Account account;
  const char* key;  // below `run`
  const char* name;
  const char* unit;
  double by;
};

// What an account of a run rests on in how the run is operated.
constexpr RunKey kRunKeys[] = {
    {Account::kDetection, "detection", "who notices", "word", 1},
    {Account::kReplacement, "spares", "spare nodes", "", 1},
    {Account::kReplacement, "spare_share", "or of the job's nodes", "%", 100},
    {Account::kReplacement, "swap", "to bring a spare in", "s", 1},
    {Account::kReplacement, "reliability.repair_mean", "mean repair", "s", 1},
    {Account::kRestart, "recovery", "what follows a failure", "word", 1},
    {Account::kRestart, "requeue_wait", "requeueing", "s", 1},
    {Account::kRestart, "allocation", "allocation", "s", 1},
    {Account::kRestart, "init_base", "initialisation", "s", 1},
    {Account::kRestart, "init_per_gpu", "and for every accelerator", "s", 1},
    {Account::kRestart, "compile", "compilation", "s", 1},
    {Account::kRestart, "warmup", "warm-up", "s", 1},
    {Account::kLostWork, "checkpoint.rule", "interval rule", "word", 1},
    {Account::kLostWork, "checkpoint.interval", "interval, where fixed", "s", 1},
    {Account::kLostWork, "checkpoint.peer_memory", "copies in peer memory", "word", 1},
    {Account::kCheckpoint, "checkpoint.mode", "mode", "word", 1},
    {Account::kCheckpoint, "checkpoint.stall", "stall, where stated", "s", 1},
    {Account::kStraggler, "reliability.jitter", "jitter of one rank", "%", 100},
    {Account::kStraggler, "reliability.slow_nodes", "slow nodes", "%", 100},
    {Account::kStraggler, "reliability.slow_by", "slower by", "%", 100},
    {Account::kCorruption, "reliability.corruption_per_gpu_hour", "per GPU-hour", "", 1},
    {Account::kUndetected, "reliability.corruption_noticed", "until it is noticed", "s", 1},
    {Account::kMaintenance, "maintenance_every", "planned stops every", "s", 1},
    {Account::kMaintenance, "maintenance", "each", "s", 1},
    {Account::kSpare, "spares", "spare nodes", "", 1},
    {Account::kSpare, "spare_share", "or of the job's nodes", "%", 100},
    {Account::kQueue, "queue_wait", "queue", "s", 1},
};

const Json& at_dotted(const Json& doc, const std::string& path) {
  const Json* here = &doc;
  for (size_t from = 0; from <= path.size();) {
    const size_t dot = std::min(path.find('.', from), path.size());
    here = &at(*here, {std::string_view(path).substr(from, dot - from)});
    from = dot + 1;
  }
  return *here;
}

void cite(const Json& doc, const Catalog& known, const std::string& key, Derivation& d) {
  const Json& stated = at(doc, {"origins", "run." + key});
  if (stated.is_object()) {
    d.mark = 's';
    d.source = text_at(stated, {"file"});
    if (d.source.empty()) d.source = text_at(stated, {"source"});
    return;
  }
  const auto found = known.origins.find("operations." + text_at(doc, {"run"}) + "." + key);
  d.mark = found != known.origins.end() ? found->second.mark : 'a';
  d.source = found != known.origins.end() ? fmt::format("{}:{}  {}", found->second.file,
                                                        found->second.line, found->second.source)
                                          : "run." + key;
}

void add_run_keys(const Json& doc, const Catalog& known, Account a, Derivation& d) {
  for (const RunKey& k : kRunKeys) {
    const Json& value = at_dotted(at(doc, {"operations"}), k.key);
    if (k.account != a || value.is_null()) continue;
    Derivation input = figure(k.name, 0, k.unit, "");
    if (value.is_number()) {
      input.value = k.by * value.get<double>();
      if (input.value == 0) continue;
    } else {
      input.equation =
          value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : sanitize(value.dump(), 80);
      std::erase(input.equation, '"');
    }
    cite(doc, known, k.key, input);
    d.inputs.push_back(std::move(input));
  }
}

double hours(const Json& doc, std::string_view key) {
  return number(doc, {"ledger_gpu_s", key, "mean"}) / kSecondsPerHour;
}

Derivation paid_figure(const Json& doc) {
  Derivation d = figure("paid", number(doc, {"paid_gpu_s", "mean"}) / kSecondsPerHour, "GPU-h",
                        "(the job's accelerators + spares) x period");
  d.inputs = {figure("accelerators", number(doc, {"description", "accelerators"}), "", "", 's'),
              figure("period", number(doc, {"period_s", "mean"}) / kSecondsPerDay, "days", ""),
              figure("spares", hours(doc, "idle.spares"), "GPU-h", "")};
  return d;
}

Derivation kept_figure(const Json& doc) {
  const double job =
      number(doc, {"paid_gpu_s", "mean"}) / kSecondsPerHour - hours(doc, "idle.spares");
  return figure("steps kept", number(doc, {"goodput", "mean"}) * job, "GPU-h",
                "time of steps that no rollback gave up, as long as they took");
}

Derivation goodput_figure(const Json& doc) {
  Derivation d =
      figure("goodput", 100 * number(doc, {"goodput", "mean"}), "%",
             "steps kept / (paid - spares), the mean of the runs", 'c', "docs/models/goodput.md");
  d.inputs = {kept_figure(doc), paid_figure(doc)};
  std::vector<Derivation> lost;
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    const std::string key(info(a).key);
    if (a < Account::kCheckpoint || a == Account::kSpare || hours(doc, key) <= 0) continue;
    lost.push_back(figure(key, hours(doc, key), "GPU-h", std::string(info(a).help)));
  }
  std::stable_sort(lost.begin(), lost.end(),
                   [](const Derivation& x, const Derivation& y) { return x.value > y.value; });
  d.inputs.insert(d.inputs.end(), lost.begin(), lost.end());
  return d;
}

Derivation account_figure(const Json& doc, const Catalog& known, Account a) {
  const std::string key(info(a).key);
  Derivation d = figure(key, hours(doc, key), "GPU-h", std::string(info(a).help), 'c',
                        "docs/models/goodput.md");
  const Derivation paid = paid_figure(doc);
  const double share = paid.value > 0 ? d.value / paid.value : 0;
  d.inputs.push_back(figure("of what was paid", 100 * share, "%", ""));
  if (a < Account::kCheckpoint) {
    const Derivation kept = kept_figure(doc);
    d.inputs.push_back(kept);
    d.inputs.push_back(figure("share of a kept step",
                              kept.value > 0 ? 100 * d.value / kept.value : 0, "%",
                              "`assay explain` of the plan has its equation"));
  }
  const double failures = number(doc, {"interruptions", "mean"});
  const double gpus = number(doc, {"description", "accelerators"});
  if (info(a).group == "failure" && failures > 0 && gpus > 0) {
    d.inputs.push_back(figure("interruptions", failures, "", "mean of the runs"));
    d.inputs.push_back(figure("of the whole job, each", d.value * kSecondsPerHour / failures / gpus,
                              "s", "this account / (interruptions x accelerators)"));
  }
  add_run_keys(doc, known, a, d);
  return d;
}

Derivation interruptions_figure(const Json& doc) {
  Derivation d =
      figure("interruptions", number(doc, {"interruptions", "mean"}), "",
             "rates by cause x accelerators x period, the mean of the runs", 'c',
             "catalog/reliability.yaml: " + text_at(doc, {"operations", "reliability", "name"}));
  for (const Json& c : at(doc, {"causes"})) {
    d.inputs.push_back(figure(text_at(c, {"cause"}), number(c, {"interruptions", "mean"}), "", ""));
  }
  return d;
}

Derivation checkpoint_figure(const Json& doc) {
  Derivation d = figure("checkpoint interval", 0, "s",
                        "the interval that loses least at this failure rate, or the stated one",
                        'c', "docs/models/goodput.md");
  for (const Json& t : at(doc, {"checkpoint", "tiers"})) {
    if (!at(t, {"interval_s"}).is_number()) continue;  // it saves not once within the run
    d.value = number(t, {"interval_s"});
    Derivation tier = figure(text_at(t, {"name"}), d.value, "s", "");
    tier.inputs = {figure("stall", number(t, {"stall_s"}), "s", ""),
                   figure("until it is safe", number(t, {"persist_s"}), "s", ""),
                   figure("restore", number(t, {"restore_s"}), "s", ""),
                   figure("best interval", number(t, {"best_interval_s"}), "s", "")};
    d.inputs.push_back(std::move(tier));
  }
  d.inputs.push_back(
      figure("size", number(doc, {"checkpoint", "bytes"}), "B", "", 'c', "docs/models/memory.md"));
  d.inputs.push_back(figure("storage, write",
                            number(doc, {"checkpoint", "storage_write_bytes_per_s"}), "B/s", ""));
  d.inputs.push_back(figure("mean time between failures", number(doc, {"mtbf_s"}), "s", ""));
  return d;
}

Derivation cost_figure(const Json& doc) {
  const Derivation paid = paid_figure(doc);
  const double price = number(doc, {"usd_per_gpu_hour"});
  Derivation d = figure("cost", price * paid.value, "$", "price x paid GPU-hours", 'c',
                        "docs/models/economics.md");
  Derivation price_input = figure("price", price, "$/h", "");
  for (const auto& [name, share] : at(doc, {"cost_shares"}).items()) {
    if (share.is_number() && share.get<double>() > 0)
      price_input.inputs.push_back(
          figure(sanitize(name, 60), 100 * share.get<double>(), "%", "of it"));
  }
  d.inputs = {std::move(price_input), paid};
  return d;
}

Derivation energy_figure(const Json& doc) {
  Derivation d = figure("energy", number(doc, {"energy", "kwh"}), "kWh",
                        "sum over accounts: steps at full power, waiting at rest; at the meter",
                        'c', "docs/models/economics.md");
  for (const auto& [key, kwh] : at(doc, {"ledger_kwh"}).items()) {
    if (kwh.is_number() && kwh.get<double>() >= 0.001 * d.value)
      d.inputs.push_back(figure(sanitize(key, 60), kwh.get<double>(), "kWh", ""));
  }
  return d;
}

const std::vector<std::string>& simulate_names() {
  static const std::vector<std::string> names{
      "goodput", "useful_share", "days", "tokens",        "gpu_hours",
      "cost",    "energy",       "mtbf", "interruptions", "checkpoint_interval"};
  return names;
}

}  // namespace

std::vector<std::string> simulate_figures(const Json& doc) {
  std::vector<std::string> names = simulate_names();
  for (const auto& [key, band] : at(doc, {"ledger_gpu_s"}).items()) names.push_back(key);
  return names;
}

std::optional<DocumentFigure> simulate_figure(const Json& doc, const std::string& name,
                                              const Catalog& known) {
  if (name == "goodput")
    return DocumentFigure{goodput_figure(doc), band_text(at(doc, {"goodput"}), 100)};
  if (name == "useful_share") {
    Derivation d = figure(name, 100 * number(doc, {"useful_share", "mean"}), "%",
                          "steps kept at their nominal time / paid", 'c', "docs/models/goodput.md");
    d.inputs = {kept_figure(doc), paid_figure(doc)};
    return DocumentFigure{std::move(d), band_text(at(doc, {"useful_share"}), 100)};
  }
  if (name == "days")
    return DocumentFigure{
        figure(name, number(doc, {"period_s", "mean"}) / kSecondsPerDay, "days", "the period"),
        band_text(at(doc, {"period_s"}), 1 / kSecondsPerDay)};
  if (name == "tokens") {
    Derivation d = figure(name, number(doc, {"tokens", "mean"}), "tokens",
                          "steps kept at their nominal time x tokens per second");
    d.inputs = {kept_figure(doc),
                figure("tokens per s", number(doc, {"plan", "tokens_per_s"}), "tokens/s", "")};
    return DocumentFigure{std::move(d), ""};
  }
  if (name == "gpu_hours") return DocumentFigure{paid_figure(doc), ""};
  if (name == "cost") return DocumentFigure{cost_figure(doc), ""};
  if (name == "energy") return DocumentFigure{energy_figure(doc), ""};
  if (name == "mtbf")
    return DocumentFigure{figure(name, number(doc, {"mtbf_s"}), "s",
                                 "1 / (sum of rates x accelerators), shocks included"),
                          ""};
  if (name == "interruptions")
    return DocumentFigure{interruptions_figure(doc), band_text(at(doc, {"interruptions"}), 1)};
  if (name == "checkpoint_interval") return DocumentFigure{checkpoint_figure(doc), ""};
  for (int i = 0; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (info(a).key != name || at(doc, {"ledger_gpu_s"}).is_null()) continue;
    if (at(doc, {"ledger_gpu_s", name}).is_null())  // a document holds those with time in them
      return DocumentFigure{
          figure(name, 0, "GPU-h", std::string(info(a).help) + "; none in this run"), ""};
    return DocumentFigure{account_figure(doc, known, a),
                          band_text(at(doc, {"ledger_gpu_s", name}), 1 / kSecondsPerHour)};
  }
  return std::nullopt;
}

}  // namespace assay

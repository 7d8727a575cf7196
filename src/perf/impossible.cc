// Why a plan cannot run at all. Memory is another matter: a possible plan may still not fit.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "perf/memory.h"
#include "perf/predict.h"
#include "world/model_size.h"

namespace assay {
namespace {

std::string divisors(int64_t n, int64_t limit) {
  std::string out;
  int shown = 0;
  for (int64_t d = 1; d <= n && d <= limit && shown < 12; ++d) {
    if (n % d != 0) continue;
    out += out.empty() ? std::to_string(d) : ", " + std::to_string(d);
    ++shown;
  }
  return "use one of " + out;
}

using Verdict = std::optional<Impossible>;
using Rule = Verdict (*)(const Setting&, const Plan&);

Verdict heads_divided(const Setting& s, const Plan& p) {
  const Model& m = s.workload.model;
  if (m.heads <= 0 || attention_layers(m) == 0 || m.heads % p.tp == 0) return std::nullopt;
  return Impossible{"plan.tp",
                    fmt::format("tp {} does not divide {} attention heads", p.tp, m.heads),
                    divisors(m.heads, 64)};
}

Verdict mixer_heads_divided(const Setting& s, const Plan& p) {
  const Mixer& x = s.workload.model.mixer;
  const int64_t shares = mixer_shares(x);
  if (x.layers == 0 || shares % (p.tp * p.cp) == 0) return std::nullopt;
  const bool by_context = shares % p.tp == 0;
  return Impossible{by_context ? "plan.cp" : "plan.tp",
                    fmt::format("{} does not divide the {} heads of the recurrent mixer",
                                by_context ? fmt::format("tp {} x cp {}", p.tp, p.cp)
                                           : fmt::format("tp {}", p.tp),
                                shares),
                    divisors(by_context ? shares / p.tp : shares, 64)};
}

Verdict key_values_shared(const Setting& s, const Plan& p) {
  const Model& m = s.workload.model;
  const int64_t kv = kv_head_count(m);
  // Whoever does not divide the heads is told that.
  if (kv <= 0 || p.tp <= kv || p.tp % kv == 0 || m.heads % p.tp != 0) return std::nullopt;
  return Impossible{"plan.tp",
                    fmt::format("tp {} is not a multiple of {} key-value heads", p.tp, kv),
                    divisors(m.heads, 64)};
}

Verdict enough_heads(const Setting& s, const Plan& p) {
  const Model& m = s.workload.model;
  const bool whole = m.heads % (p.tp * p.cp) == 0;
  if (p.context != ContextKind::kAllToAll || kv_head_count(m) <= 0 || p.cp == 1 || whole)
    return std::nullopt;
  return Impossible{
      "plan.cp",
      fmt::format("all-to-all context parallel needs tp x cp to divide {} heads", m.heads),
      "use context: ring, or another cp"};
}

// Layers stated of the ends leave one at least to every stage between, and whole chunks.
Verdict stated_ends(const Setting& s, const Plan& p) {
  if (p.first_layers == 0 && p.last_layers == 0) return std::nullopt;
  const std::string path = p.last_layers > 0 ? "plan.last_layers" : "plan.first_layers";
  if (p.pp == 1) {
    return Impossible{path, "one stage holds all layers", "leave it out, or state plan.pp"};
  }
  const Stages stages = stages_of(s.workload.model, p);
  if (!stages.possible(p.vpp)) {
    const int64_t most = stages.layers - stages.open_stages() * p.vpp;
    return Impossible{path,
                      fmt::format("{} layers at the ends leave {} of {} to the {} other stages",
                                  p.first_layers + p.last_layers, stages.open_layers(),
                                  stages.layers, stages.open_stages()),
                      fmt::format("{} {}",
                                  stages.open_stages() > 0 ? "keep the ends together at most"
                                                           : "make them add up to",
                                  most)};
  }
  if (p.first_layers % p.vpp != 0 || p.last_layers % p.vpp != 0) {
    return Impossible{path, fmt::format("vpp {} does not divide the layers of an end", p.vpp),
                      "state multiples of plan.vpp"};
  }
  return std::nullopt;
}

Verdict enough_layers(const Setting& s, const Plan& p) {
  const int64_t layers = layer_count(s.workload.model);
  // The embedding and the head may each stand for a layer in the split.
  const int64_t chunks = p.schedule == Schedule::kDualPipeV ? 2 : p.vpp;
  if (p.pp == 1 || p.pp * chunks <= layers + 2) return std::nullopt;
  return Impossible{"plan.pp",
                    fmt::format("pp {} x {} chunks is more than {} layers", p.pp, chunks, layers),
                    fmt::format("keep their product at {} or below", layers)};
}

Verdict shared_weights(const Setting& s, const Plan& p) {
  if (s.workload.model.weight_sets == 0 || p.pp == 1) return std::nullopt;
  return Impossible{"plan.pp", "layers that share their weights are not spread over a pipeline",
                    "use plan.pp=1"};
}

Verdict interleaved_pipeline(const Setting&, const Plan& p) {
  if (p.vpp > 1 && p.pp <= 1) {
    return Impossible{"plan.vpp", "interleaving needs a pipeline",
                      "set plan.pp above 1 or plan.vpp to 1"};
  }
  if (p.vpp > 1 || p.schedule != Schedule::kInterleaved) return std::nullopt;
  return Impossible{"plan.schedule", "interleaved needs a pipeline with several chunks per stage",
                    p.pp > 1 ? "set plan.vpp to at least 2, or leave out plan.schedule"
                             : "set plan.pp and plan.vpp to at least 2, or leave out "
                               "plan.schedule"};
}

Verdict experts_divided(const Setting& s, const Plan& p) {
  const Model& m = s.workload.model;
  if (m.experts > 0 && m.experts % p.ep != 0) {
    return Impossible{"plan.ep", fmt::format("ep {} does not divide {} experts", p.ep, m.experts),
                      divisors(m.experts, 1024)};
  }
  if (m.experts == 0 && p.ep > 1)
    return Impossible{"plan.ep", "expert parallel needs a model with experts", "set plan.ep to 1"};
  return std::nullopt;
}

// The degree to change: the first that does not fit alone, else the largest. One of 1, which nobody
// stated, is not to blame.
std::string degree_to_blame(const Plan& p, int64_t accelerators) {
  const std::pair<const char*, int64_t> degrees[] = {
      {"plan.tp", p.tp}, {"plan.pp", p.pp}, {"plan.cp", p.cp}};
  const std::pair<const char*, int64_t>* largest = degrees;
  for (const auto& degree : degrees) {
    if (degree.second < 1 || accelerators % degree.second != 0) return degree.first;
    if (degree.second > largest->second) largest = &degree;
  }
  return largest->first;
}

// Rules of the ranks need whole replicas.
Verdict whole_replicas(const Setting& s, const Plan& p) {
  const int64_t n = s.accelerators;
  const int64_t used = p.tp * p.pp * p.cp;
  if (n >= 1 && used >= 1 && n % used == 0) return std::nullopt;
  return Impossible{degree_to_blame(p, n),
                    fmt::format("tp {} x pp {} x cp {} = {} does not divide {} accelerators", p.tp,
                                p.pp, p.cp, used, n),
                    "choose degrees whose product divides the number of accelerators"};
}

int64_t replicas(const Setting& s, const Plan& p) { return s.accelerators / (p.tp * p.pp * p.cp); }

Verdict stated_replicas(const Setting& s, const Plan& p) {
  const int64_t dp = replicas(s, p);
  const bool whole = dp * p.tp * p.pp * p.cp == s.accelerators;
  if (p.dp <= 0 || (whole && p.dp == dp)) return std::nullopt;
  return Impossible{
      "plan.dp",
      fmt::format("dp {} with tp {} pp {} cp {} is not {} accelerators", p.dp, p.tp, p.pp, p.cp,
                  s.accelerators),
      whole ? fmt::format("leave plan.dp out, or set it to {}", dp) : "leave plan.dp out"};
}

Verdict experts_among_ranks(const Setting& s, const Plan& p) {
  if (s.workload.model.experts == 0) return std::nullopt;
  const int64_t etp = p.ep > 1 || p.etp > 0 ? expert_tensor(s, p) : 1;
  const int64_t ranks = replicas(s, p) * p.cp * p.tp;
  if (s.workload.model.expert_ffn % etp != 0) {
    return Impossible{"plan.etp",
                      fmt::format("etp {} does not divide experts of {} neurons", etp,
                                  s.workload.model.expert_ffn),
                      divisors(s.workload.model.expert_ffn, 64)};
  }
  if (ranks % (p.ep * etp) == 0) return std::nullopt;
  if (p.ep <= 1) {
    return Impossible{
        "plan.etp",
        fmt::format("etp {} does not divide the {} ranks of a pipeline stage", etp, ranks),
        divisors(ranks, 64)};
  }
  return Impossible{
      "plan.ep",
      fmt::format("ep {} does not divide the {} ranks of a pipeline stage", p.ep * etp, ranks),
      "choose ep as a divisor of tp x cp x dp"};
}

// Copies of the weights are sharded alike: each over as many of the ranks that share them.
Verdict copies_divided(const Setting& s, const Plan& p) {
  const int64_t ranks = replicas(s, p) * p.cp * pipeline_ends(p), group = p.sharding_group;
  if (group <= 0 || ranks % group == 0) return std::nullopt;
  int64_t below = std::min(group, ranks), above = group;
  while (ranks % below != 0) --below;
  while (above < ranks && ranks % above != 0) ++above;
  std::string nearest = std::to_string(below);
  if (above <= ranks) nearest += fmt::format(" or {}", above);
  return Impossible{
      "plan.sharding_group",
      fmt::format("groups of {} do not divide the {} ranks that share the weights", group, ranks),
      fmt::format("set it to {}, or leave it out for all of them", nearest)};
}

Verdict batch_divided(const Setting& s, const Plan& p) {
  const int64_t dp = replicas(s, p), batch = s.workload.global_batch;
  if (batch % (dp * p.micro_batch) == 0) return std::nullopt;
  return Impossible{
      "plan.micro_batch",
      fmt::format("global batch {} is not a multiple of dp {} x micro-batch {}", batch, dp,
                  p.micro_batch),
      fmt::format("set workload.global_batch to a multiple of {}", dp * p.micro_batch)};
}

// Chunks take turns after pp micro-batches; Megatron-LM refuses what is left over.
Verdict whole_rounds(const Setting& s, const Plan& p) {
  const int64_t microbatches = s.workload.global_batch / (replicas(s, p) * p.micro_batch);
  if (p.vpp <= 1 || batch_divided(s, p) || microbatches % p.pp == 0) return std::nullopt;
  return Impossible{"plan.vpp",
                    fmt::format("interleaving runs rounds of pp {} micro-batches, and {} are not "
                                "whole rounds",
                                p.pp, microbatches),
                    "set plan.vpp to 1, or change plan.micro_batch or workload.global_batch"};
}

// A folded pipeline fills with two micro-batches a rank before it runs steadily (DeepSeek's code
// refuses fewer); from both ends, half of them enter at each.
Verdict folded_pipeline(const Setting& s, const Plan& p) {
  if (p.pp == 1 || !folded(p.schedule) || batch_divided(s, p)) return std::nullopt;
  const bool both_ends = p.schedule == Schedule::kDualPipe;
  if (both_ends && p.pp % 2 != 0) {
    return Impossible{"plan.schedule", fmt::format("dualpipe pairs stages, and pp {} is odd", p.pp),
                      "set plan.pp to an even number, or plan.schedule=dualpipe-v"};
  }
  const int64_t microbatches = s.workload.global_batch / (replicas(s, p) * p.micro_batch);
  if (microbatches >= 2 * p.pp && (!both_ends || microbatches % 2 == 0)) return std::nullopt;
  return Impossible{"plan.schedule",
                    fmt::format("a folded pipeline of pp {} needs {} micro-batches or more{}, and "
                                "there are {}",
                                p.pp, 2 * p.pp, both_ends ? ", an even number" : "", microbatches),
                    "set plan.schedule=1f1b, or change plan.pp, plan.micro_batch or "
                    "workload.global_batch"};
}

// As batch_divided, of a micro-batch alone, for plans of which nobody knows how many replicas they
// have.
Verdict batch_of_micro_batches(const Setting& s, const Plan& p) {
  const int64_t batch = s.workload.global_batch;
  if (p.micro_batch >= 1 && batch % p.micro_batch == 0) return std::nullopt;
  return Impossible{
      "plan.micro_batch",
      fmt::format("global batch {} is not a multiple of micro-batch {}", batch, p.micro_batch),
      divisors(batch, 256)};
}

Verdict sequence_divided(const Setting& s, const Plan& p) {
  if (s.workload.seq % p.cp == 0) return std::nullopt;
  return Impossible{"plan.cp", fmt::format("cp {} does not divide {} tokens", p.cp, s.workload.seq),
                    divisors(s.workload.seq, 256)};
}

// Each tensor parallel rank holds as many of a sequence's tokens between the blocks.
Verdict sequence_shared(const Setting& s, const Plan& p) {
  const int64_t seq = s.workload.seq, ranks = p.tp * p.cp;
  // Whoever does not divide it among contexts is told that.
  if (seq % p.cp != 0 || shares_sequence(s.workload, s.stack, p)) return std::nullopt;
  return Impossible{
      "plan.sequence_parallel",
      fmt::format("tp {} x cp {} does not divide the {} tokens of a sequence", p.tp, p.cp, seq),
      fmt::format("set it to false, or workload.seq to {}", (seq / ranks + 1) * ranks)};
}

// Below ZeRO-3 every rank uses its weights where they lie.
Verdict offload_of_shards(const Setting&, const Plan& p) {
  if (p.offload_parameters <= 0 || p.zero >= 3) return std::nullopt;
  return Impossible{
      "plan.offload_parameters",
      fmt::format("weights that are not sharded (zero {}) cannot be kept on the host", p.zero),
      "set plan.zero to 3, or plan.offload_parameters to 0"};
}

// Degrees that a recommendation model has no use for.
struct Degree {
  const char* path;
  int64_t Plan::*of;
};
constexpr Degree kLayerDegrees[] = {{"plan.tp", &Plan::tp},
                                    {"plan.pp", &Plan::pp},
                                    {"plan.vpp", &Plan::vpp},
                                    {"plan.cp", &Plan::cp},
                                    {"plan.ep", &Plan::ep}};

// Takes them out of the plan, so that other rules judge the rest.
std::vector<Impossible> layers_of_dlrm(const Setting& s, Plan& p) {
  std::vector<Impossible> all;
  if (s.workload.model.kind != ModelKind::kDlrm) return all;
  if (p.vpp > 1) p.schedule = Schedule{};  // which chunks imply
  for (const Degree& degree : kLayerDegrees) {
    const int64_t n = std::exchange(p.*degree.of, 1);
    if (n == 1) continue;
    all.push_back({degree.path,
                   fmt::format("{} is {}, and a recommendation model has no layers to spread: its "
                               "tables lie on all ranks, its MLPs on each",
                               std::string(degree.path).substr(5), n),
                   fmt::format("set {} to 1, or leave it out", degree.path)});
  }
  return all;
}

constexpr Rule kRankRules[] = {experts_among_ranks, copies_divided, batch_divided, whole_rounds,
                               folded_pipeline};
constexpr Rule kSizeRules[] = {sequence_divided, sequence_shared, offload_of_shards};
constexpr Rule kModelRules[] = {heads_divided,        mixer_heads_divided, key_values_shared,
                                enough_heads,         enough_layers,       stated_ends,
                                interleaved_pipeline, shared_weights,      experts_divided};

}  // namespace

std::optional<Impossible> Predictor::impossible(const Plan& stated) const {
  Plan p = stated;
  if (std::vector<Impossible> all = layers_of_dlrm(setting(), p); !all.empty()) return all.front();
  if (Verdict v = whole_replicas(setting(), p)) return v;
  if (Verdict v = stated_replicas(setting(), p)) return v;
  for (const std::span<const Rule> rules :
       {std::span<const Rule>(kRankRules), std::span<const Rule>(kSizeRules),
        std::span<const Rule>(kModelRules)}) {
    for (const Rule rule : rules) {
      if (Verdict v = rule(setting(), p)) return v;
    }
  }
  return std::nullopt;
}

std::vector<Impossible> Predictor::all_impossible(const Plan& stated) const {
  Plan p = stated;
  std::vector<Impossible> all = layers_of_dlrm(setting(), p);
  const auto add = [&](Verdict v) {
    if (v) all.push_back(std::move(*v));
    return v.has_value();
  };
  const bool broken = add(whole_replicas(setting(), p));
  add(stated_replicas(setting(), p));
  if (broken) {
    add(batch_of_micro_batches(setting(), p));
  } else {
    for (const Rule rule : kRankRules) add(rule(setting(), p));
  }
  for (const Rule rule : kSizeRules) add(rule(setting(), p));
  for (const Rule rule : kModelRules) add(rule(setting(), p));
  return all;
}

}  // namespace assay

// Why a plan cannot run at all. Memory is another matter: a possible plan may still not fit.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "perf/memory.h"
#include "perf/predict.h"

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

Verdict model_problem(const Model& m, const Plan& p) {
  if (m.heads > 0 && m.heads % p.tp != 0) {
    return Impossible{"plan.tp",
                      fmt::format("tp {} does not divide {} attention heads", p.tp, m.heads),
                      divisors(m.heads, 64)};
  }
  const int64_t kv = m.kv_heads > 0 ? m.kv_heads : m.heads;
  if (kv > 0 && p.tp > kv && p.tp % kv != 0) {
    return Impossible{"plan.tp",
                      fmt::format("tp {} is not a multiple of {} key-value heads", p.tp, kv),
                      divisors(m.heads, 64)};
  }
  if (p.context == ContextKind::kAllToAll && kv > 0 && (p.tp * p.cp) > m.heads) {
    return Impossible{"plan.cp",
                      fmt::format("all-to-all context parallel needs tp x cp <= {} heads", m.heads),
                      "use context: ring, or a smaller cp"};
  }
  const int64_t layers = layer_count(m);
  // The embedding and the head may each stand for a layer in the split.
  if (p.pp > std::max<int64_t>(1, layers) || p.pp * p.vpp > layers + 2) {
    return Impossible{"plan.pp",
                      fmt::format("pp {} x vpp {} is more than {} layers", p.pp, p.vpp, layers),
                      fmt::format("keep pp x vpp at {} or below", layers)};
  }
  if (p.vpp > 1 && p.pp == 1) {
    return Impossible{"plan.vpp", "interleaving needs a pipeline",
                      "set plan.pp above 1 or plan.vpp to 1"};
  }
  if (m.experts > 0 && m.experts % p.ep != 0) {
    return Impossible{"plan.ep", fmt::format("ep {} does not divide {} experts", p.ep, m.experts),
                      divisors(m.experts, 1024)};
  }
  if (m.experts == 0 && p.ep > 1) {
    return Impossible{"plan.ep", "expert parallel needs a model with experts", "set plan.ep to 1"};
  }
  return std::nullopt;
}

Verdict size_problem(const Setting& s, const Plan& p) {
  const int64_t n = s.accelerators;
  const int64_t used = p.tp * p.pp * p.cp;
  if (n < 1 || used < 1 || n % used != 0) {
    return Impossible{"plan.tp",
                      fmt::format("tp {} x pp {} x cp {} = {} does not divide {} accelerators",
                                  p.tp, p.pp, p.cp, used, n),
                      "choose degrees whose product divides the number of accelerators"};
  }
  const int64_t dp = n / used;
  if (p.dp > 0 && p.dp != dp) {
    return Impossible{"plan.dp",
                      fmt::format("dp {} with tp {} pp {} cp {} is not {} accelerators", p.dp, p.tp,
                                  p.pp, p.cp, n),
                      fmt::format("leave plan.dp out, or set it to {}", dp)};
  }
  const int64_t etp = p.etp > 0 ? p.etp : 1;
  if (p.ep > 1 && (dp * p.cp * p.tp) % (p.ep * etp) != 0) {
    return Impossible{"plan.ep",
                      fmt::format("ep {} does not divide the {} ranks of a pipeline stage",
                                  p.ep * etp, dp * p.cp * p.tp),
                      "choose ep as a divisor of tp x cp x dp"};
  }
  const int64_t batch = s.workload.global_batch;
  if (batch % (dp * p.micro_batch) != 0) {
    return Impossible{
        "plan.micro_batch",
        fmt::format("global batch {} is not a multiple of dp {} x micro-batch {}", batch, dp,
                    p.micro_batch),
        fmt::format("set workload.global_batch to a multiple of {}", dp * p.micro_batch)};
  }
  if (s.workload.seq % p.cp != 0) {
    return Impossible{"plan.cp",
                      fmt::format("cp {} does not divide {} tokens", p.cp, s.workload.seq),
                      divisors(s.workload.seq, 256)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Impossible> Predictor::impossible(const Plan& p) const {
  if (Verdict v = size_problem(setting(), p)) return v;
  return model_problem(setting().workload.model, p);
}

}  // namespace assay

#include "perf/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

// A group of `ranks` members that sit `stride` ranks apart. `node` accelerators share NICs,
// `domain` accelerators share scale-up links. Groups lie side by side: where they are shorter than
// a node that is a domain of its own and do not divide it (six ranks on nodes of eight), some begin
// in one and end in the next, and those set the pace. Theirs starts at a multiple of the two
// lengths' common divisor. Of a rack that is one domain, a job takes as many nodes as its groups
// fill, where the racks are enough for that.
struct Places {
  int64_t domain, node;  // accelerators that share scale-up links; that share NICs
  int64_t domains;       // of the cluster
  int64_t job;           // accelerators
};

Group strided(int64_t ranks, int64_t stride, const Places& at) {
  const int64_t domain = at.domain, node = at.node;
  Group g;
  g.ranks = std::max<int64_t>(1, ranks);
  const int64_t length = g.ranks * std::max<int64_t>(1, stride);
  const bool room = domain > node && domain / length * length * at.domains >= at.job;
  const bool torn = length < domain && domain % length != 0 && !room;
  const int64_t together = torn ? std::gcd(length, domain) : domain;
  g.per_domain = std::clamp<int64_t>(together / std::max<int64_t>(1, stride), 1, g.ranks);
  while (g.ranks % g.per_domain != 0) --g.per_domain;
  // Every rank of a node belongs to one such group; those of a node use its NICs at once.
  const int64_t members_per_node =
      std::clamp<int64_t>(node / std::max<int64_t>(1, stride), 1, g.ranks);
  g.sharing = std::max<int64_t>(1, node / members_per_node);
  g.stride = std::max<int64_t>(1, stride);
  return g;
}

// The stages of a pipeline, each `stage` ranks long. If one domain does not hold them all, some
// neighbours sit in different ones, and they set the pace; of a node that holds several stages only
// the last one's ranks send out.
Group neighbours(int64_t stages, int64_t stage, int64_t domain, int64_t node) {
  const int64_t per_domain = stages * stage <= domain ? stages : 1;
  return {stages, per_domain, std::min(stage, node), stage};
}

}  // namespace

Links links_of(const Setting& s) {
  Links links = resolve_links(s.cluster, s.scaleup_params, s.fabric_params);
  links.pair_tree = s.stack.pair_tree;
  const int64_t job = s.accelerators > 0 ? s.accelerators : s.cluster.accelerators();
  links.slice = std::min(links.scaleup_domain, job);
  return links;
}

bool adds_up_whole(const Stack& st, const Plan& p, const Layout& l) {
  return p.zero >= 2 && l.shard > 1 && l.microbatches > 1 && (st.gradients_whole || l.pp > 1);
}

namespace {

// Coefficient of variation of experts' loads in a layer of a router that is left alone and has
// settled: 0.05 for 8 experts with an auxiliary loss (scattermoe issue 10), 0.19 (DeepSeekMoE-16B
// on text, arXiv 2605.20982) to 0.45 (FLAME-MoE's logs) for 64, 0.33 by a Dirichlet fit to 192
// (marin-community, Grug); the power joins the ends. Fine-tuning and the first hundred steps are
// less even (0.46 to 1.1), which published steps do not show.
constexpr double kLoadVariation = 0.3, kManyExperts = 128, kVariationPower = 0.65;

// Expected largest of n standard normal values, n = 2, 4, 8 ...; linear in log2 n between.
constexpr std::array kLargestNormal = {0.0,   0.564, 1.029, 1.424, 1.766, 2.070,
                                       2.344, 2.594, 2.825, 3.041, 3.244};

double largest_normal(double n) {
  const double at = std::clamp(std::log2(n), 0.0, real(kLargestNormal.size() - 1));
  const size_t below = std::min(static_cast<size_t>(at), kLargestNormal.size() - 2);
  const double part = at - real(below);
  return kLargestNormal[below] * (1 - part) + kLargestNormal[below + 1] * part;
}

// A rank's load is the mean of its experts'; ranks' loads are near log-normal (as DeepEP's pull 393
// finds them). Adds what chance does to few tokens.
double natural_skew(const Workload& w, const Layout& l) {
  const double experts = real(w.model.experts), ep = real(l.ep);
  const double k = real(w.model.experts_per_token);
  const double each =
      kLoadVariation * std::pow(std::min(1.0, experts / kManyExperts), kVariationPower);
  const double tokens = real(w.seq * l.micro_batch) / real(l.cp);
  const double chance = (ep - 1) * (experts - k) / ((experts - 1) * tokens * ep * k);
  const double variance = each * each * ep / experts * (1 - 1 / ep) + std::max(0.0, chance);
  const double log_variance = std::log1p(variance);
  return std::exp(std::sqrt(log_variance) * largest_normal(ep) - log_variance / 2);
}

}  // namespace

double load_skew(const Setting& s, const Plan& p, const Layout& l) {
  if (l.ep <= 1 || p.expert_capacity > 0) return 1;
  return p.expert_skew > 0 ? p.expert_skew : std::max(1.0, natural_skew(s.workload, l));
}

int gathers_each_microbatch(const Stack& st, const Plan& p, const Layout& l) {
  if (p.zero == 3) return 2;
  const bool freed = st.sharding == Sharding::kFsdp && p.zero == 2 && l.shard > 1;
  return freed && !adds_up_whole(st, p, l) ? 1 : 0;
}

double passes_ahead(const Plan& p, const Layout& l) {
  return p.vpp > 1 ? 1 + real(l.pp) * (1 - 1 / real(p.vpp)) : 1;
}

bool experts_whole(const Stack& st, const Layout& l) {
  return st.experts_whole > 0 && l.ep >= st.experts_whole;
}

int64_t expert_tensor(const Setting& s, const Plan& p) {
  if (p.etp > 0) return p.etp;
  if (p.ep <= 1 || s.workload.model.experts == 0) return p.tp;
  if (s.stack.experts_fold) return 1;
  const int64_t n = s.accelerators > 0 ? s.accelerators : s.cluster.accelerators();
  const bool divides = n / p.pp % (p.ep * p.tp) == 0 && s.workload.model.expert_ffn % p.tp == 0;
  return divides ? p.tp : 1;
}

Layout make_layout(const Setting& s, const Plan& p) {
  Layout l;
  const int64_t n = s.accelerators > 0 ? s.accelerators : s.cluster.accelerators();
  const int64_t node = std::min(s.cluster.node.accelerators, n);
  const int64_t domain = std::min(s.cluster.scaleup_domain(), n);
  const int64_t domains = (s.cluster.accelerators() + domain - 1) / domain;
  const Places at{domain, node, domains, n};
  l.ranks = n;
  l.tp = p.tp;
  // A pipeline fed from both ends is two folded ones, each of half its ranks: they share weights,
  // as data-parallel copies do.
  l.ends = pipeline_ends(p);
  l.pp = p.pp / l.ends;
  l.vpp = p.pp > 1 && folded(p.schedule) ? 2 : p.vpp;
  l.cp = p.cp;
  l.dp = n / (p.tp * p.pp * p.cp);
  l.ep = s.workload.model.experts > 0 ? p.ep : 1;
  l.etp = expert_tensor(s, p);
  l.micro_batch = p.micro_batch;
  l.microbatches = std::max<int64_t>(1, s.workload.global_batch / (l.dp * l.ends * p.micro_batch));
  const int64_t data = l.dp * l.ends * l.cp;
  // The other holders of a stage's weights sit where the pipeline's other half does.
  const auto spread = [&](int64_t ranks, int64_t stride) {
    const bool both = l.ends == 2 && ranks * stride > l.tp * l.cp * l.dp;
    Group g = strided(both ? ranks / 2 : ranks, stride, at);
    if (!both) return g;
    if (g.per_domain == g.ranks && n <= domain) g.per_domain *= 2;
    g.ranks *= 2;
    return g;
  };
  l.shard = p.zero == 0 ? 1 : (p.sharding_group > 0 ? std::min(p.sharding_group, data) : data);
  l.tensor = strided(l.tp, 1, at);
  l.context = strided(l.cp, l.tp, at);
  l.expert = strided(l.ep, l.etp, at);
  l.expert_tensor = strided(l.etp, 1, at);
  l.data = spread(data, l.tp);
  l.data_expert = spread(std::max<int64_t>(1, data * l.tp / (l.ep * l.etp)), l.ep * l.etp);
  if (s.workload.model.kind == ModelKind::kDlrm) l.data_expert = Group{};  // tables have one copy
  l.shard_group = spread(l.shard, l.tp);
  l.replica_group = spread(data / std::max<int64_t>(1, l.shard), l.tp * l.shard);
  const int64_t apart = l.ep * l.etp;
  // Of the ranks that share one copy of the rest, those that hold the same experts. XLA's axis of
  // sharding stands beside that of experts.
  const bool beside = s.stack.sharding == Sharding::kJax;
  const int64_t inside = beside ? l.shard : std::max<int64_t>(1, l.shard * l.tp / apart);
  const bool whole = p.zero == 0 || experts_whole(s.stack, l);
  const int64_t share = whole ? 1 : std::min(inside, l.data_expert.ranks);
  l.shard_expert = spread(share, apart);
  l.replica_expert = spread(l.data_expert.ranks / share, apart * share);
  l.pipeline = neighbours(p.pp, l.tp * l.cp * l.dp, domain, node);
  return l;
}

}  // namespace assay

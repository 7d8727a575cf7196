#include "world/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/scalar.h"
#include "world/model_size.h"
#include "world/names.h"
#include "world/usual_fabric.h"

namespace assay {
namespace {

constexpr int64_t kUsualSequence = 4096;
// The order of the batches of Llama 3, DeepSeek and GPT-3 in the middle of their runs.
constexpr int64_t kUsualBatchTokens = int64_t{4} << 20;
// Compute-optimal training: Hoffmann et al. 2022, arXiv:2203.15556.
constexpr double kTokensPerParameter = 20;
// Fine-tuning: 128 sequences and 100 M tokens are a usual instruction set, seen a few times.
constexpr int64_t kTuningBatch = 128;
constexpr double kTuningTokens = 100e6;
// MLPerf training, DLRM-dcnv2 reference: batch and samples of one pass over Criteo 1TB.
constexpr int64_t kDlrmBatch = 65536;
constexpr double kDlrmSamples = 4195197692.0;
// A port that came up with half of its lanes or at the previous speed.
constexpr double kSlowLinkSpeed = 0.5;

int64_t usual_batch(const Workload& w) {
  if (w.model.kind == ModelKind::kDlrm) return kDlrmBatch;
  if (w.task != Task::kPretrain) return kTuningBatch;
  const int64_t fit = std::max<int64_t>(1, kUsualBatchTokens / w.seq);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fit)));
}

std::string usual_batch_why(const Workload& w) {
  if (w.model.kind == ModelKind::kDlrm) return "as MLPerf's DLRM";
  return w.task != Task::kPretrain ? "a usual fine-tuning batch" : "about 4 M tokens per step";
}

void complete_batch(Workload& w, Assumptions& assume) {
  if (w.global_batch != 0) return;
  w.global_batch = usual_batch(w);
  assume.add("workload.global_batch", fmt::format("{}", w.global_batch), usual_batch_why(w));
}

void complete_dlrm(Workload& w, Assumptions& assume) {
  w.seq = 1;  // a sample is one token
  complete_batch(w, assume);
  if (w.tokens == 0) {
    w.tokens = kDlrmSamples;
    assume.add("workload.tokens", "4.2 B", "samples of one pass over Criteo 1TB");
  }
}

// 8.2e11 -> `820 B`.
std::string short_count(double n) {
  const std::pair<double, const char*> scales[] = {
      {1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [scale, suffix] : scales) {
    if (n >= scale) return fmt::format("{:.3g}{}", n / scale, suffix);
  }
  return fmt::format("{:.3g}", n);
}

// The fabric that the catalog's clusters put around such nodes, or null.
const Cluster* usual_cluster(const Cluster& c, const Catalog& catalog) {
  const auto connected = [](const Cluster& other) { return other.nodes > 1; };
  for (const Cluster& other : catalog.clusters) {
    if (connected(other) && other.node.name == c.node.name) return &other;
  }
  for (const Cluster& other : catalog.clusters) {
    const bool same = other.accelerator.name == c.accelerator.name;
    if (connected(other) && same && other.node.accelerators == c.node.accelerators) return &other;
  }
  return nullptr;
}

// What stands between nodes where nobody said: why that, in words.
std::string fill_fabric(Cluster& c, const Catalog& catalog) {
  if (wired_as_torus(c.accelerator)) {
    c.fabric = torus_of(catalog, c.accelerator);
    return "the chips' own links";
  }
  const FabricKind kind = usual_fabric_kind(c.accelerator, c.node);
  const Cluster* usual = usual_cluster(c, catalog);
  const bool same_node = usual != nullptr && usual->node.name == c.node.name;
  const bool rack = usual != nullptr && usual->fabric.scaleup_domain > 0;
  constexpr double kSameSpeed = 0.1;  // of two ports: far below the step to the next generation
  const bool same_ports =
      usual != nullptr && usual->fabric.kind == kind &&
      std::abs(usual->node.nic_bandwidth / c.node.nic_bandwidth - 1) < kSameSpeed;
  if (same_node || rack || same_ports) {
    c.fabric = usual->fabric;
    if (rack && !same_node) c.fabric.kind = kind;
    return fmt::format("as in {}", usual->name);
  }
  c.fabric = fabric_of_kind(catalog, kind, c.node.nic_bandwidth, c.node.nics);
  return "usual for such ports";
}

// A fabric of one node, around several: the node was named and its number changed.
bool joins_nothing(const Cluster& c) {
  return c.fabric.kind == FabricKind::kNone && c.accelerators() > c.scaleup_domain();
}

// Without rails all ports of a node hang on one leaf, where a railed leaf has one port of each. So
// where somebody takes the rails away from a fabric and says no more, fewer nodes share a leaf.
void rewire(Cluster& c, const Catalog& catalog, Assumptions& assume) {
  const Fabric* named = find_fabric(catalog, c.fabric.name);
  const bool railed = named ? named->rail_optimised : Fabric{}.rail_optimised;
  const std::string counted = assume.file("cluster.fabric.nodes_per_leaf");
  const bool by_catalog = counted.empty() || counted == "catalog/fabrics.yaml";
  if (c.fabric.rail_optimised || !railed || !by_catalog) return;
  c.fabric.nodes_per_leaf =
      std::max<int64_t>(1, c.fabric.nodes_per_leaf / std::max<int64_t>(1, c.node.nics));
  assume.add("cluster.fabric.nodes_per_leaf", fmt::format("{}", c.fabric.nodes_per_leaf),
             "without rails a leaf takes all ports of a node");
}

// A node that was changed does not draw what the one it was copied from does: a nameplate (and what
// it draws at rest) that its accelerators leave far behind, or do not reach, is not its own.
void forget_nameplate(Cluster& c, Assumptions& assume) {
  constexpr double kFew = 0.55, kMany = 1.01;  // of the catalog: 0.57 to 1
  const std::string path = "cluster.node.nameplate";
  const bool by_hand = assume.stated(path) && !assume.file(path).starts_with("catalog/");
  if (c.node.nameplate.v <= 0 || by_hand) return;
  const Watts all = c.node.host_power + c.accelerator.tdp * real(c.node.accelerators);
  const double share = all / c.node.nameplate;
  if (share >= kFew && share <= kMany) return;
  c.node.nameplate = Watts(0);
  const std::string idle = "cluster.node.idle_power";
  if (!assume.stated(idle) || assume.file(idle).starts_with("catalog/"))
    c.node.idle_power = Watts(0);
  assume.add(path, "not known", "its parts draw more or less than the node's it is taken from");
}

// Vendors' 80 GB are 80 GiB. Whoever writes GiB or MiB, as drivers and frameworks print it, means
// what is there: the accelerator that a vendor would sell as so many GB.
void take_binary_memory(Cluster& c, const Value& stated) {
  const Value* memory = find_path(stated, "accelerator.memory");
  if (memory == nullptr || !memory->is_scalar() || memory->text.find("iB") == std::string::npos)
    return;
  constexpr double kBinary = 1.073741824;  // GiB over GB
  c.accelerator.memory = c.accelerator.memory / kBinary;
}

// Of a node that is described by hand, what its accelerator's usual node says.
void complete_node(Cluster& c, const Catalog& catalog, Assumptions& assume) {
  forget_nameplate(c, assume);
  const Node* usual = usual_node(c.accelerator.name, catalog);
  if (c.node.name.empty() && usual == nullptr && !assume.stated("cluster.node.host_power")) {
    constexpr double kHost = 0.43;  // of the accelerators' power: median of the catalog's nodes
    c.node.host_power = c.accelerator.tdp * (kHost * real(c.node.accelerators));
    assume.add("cluster.node.host_power", format_quantity(c.node.host_power.v, Dimension::kWatts),
               "0.43 of its accelerators' power, as nodes have");
  }
  if (!c.node.name.empty() || usual == nullptr) return;
  const double part =
      static_cast<double>(c.node.accelerators) / static_cast<double>(usual->accelerators);
  const std::string why =
      fmt::format("as {}", usual->name) + (part == 1 ? "" : ", for as many accelerators");
  if (!assume.stated("cluster.node.host_power") && usual->host_power.v > 0) {
    c.node.host_power = usual->host_power * part;
    assume.add("cluster.node.host_power", format_quantity(c.node.host_power.v, Dimension::kWatts),
               why);
  }
  if (!assume.stated("cluster.node.host_memory") && usual->host_memory.v > 0) {
    c.node.host_memory = usual->host_memory * part;
    assume.add("cluster.node.host_memory", format_quantity(c.node.host_memory.v, Dimension::kBytes),
               why);
  }
  if (usual->nics == 0 || usual->nic_bandwidth.v == 0 ||
      assume.stated("cluster.node.nic_bandwidth"))
    return;
  c.node.nic_bandwidth = usual->nic_bandwidth;
  assume.add("cluster.node.nic_bandwidth",
             format_quantity(c.node.nic_bandwidth.v, Dimension::kBandwidth), why);
  if (assume.stated("cluster.node.nics")) return;
  c.node.nics = std::max<int64_t>(1, std::llround(static_cast<double>(usual->nics) * part));
  assume.add("cluster.node.nics", fmt::format("{}", c.node.nics), why);
}

}  // namespace

bool connect_nodes(Cluster& c, const Catalog& catalog, const Value& stated, Assumptions& assume) {
  take_binary_memory(c, stated);
  complete_node(c, catalog, assume);
  if (assume.stated("cluster.fabric.kind") && !joins_nothing(c)) return false;
  const std::string why = fill_fabric(c, catalog);
  // One node has what it would be joined by: for when more of them are imagined.
  const bool one_node = c.accelerators() <= c.node.accelerators;
  if (!one_node) assume.add("cluster.fabric", c.fabric.name, why);
  return true;
}

void Assumptions::add(const std::string& path, std::string value, std::string why) {
  origins_[path] = Origin{'a', why, "", 0};
  list_.push_back({path, std::move(value), std::move(why)});
}

// Replicas must divide the batch, and tensor and pipeline degrees are powers of two where nothing
// forces others: so 24,576 = 3 x 8,192 accelerators want a batch with a factor of 3, and as many of
// 2 as its size allows. That is d x 2^k above 3/4 of the usual batch (and then at most 3/2), where
// d is the largest odd factor of their number that is no larger itself. REQUIRES: positive numbers.
int64_t divisible_batch(int64_t usual, const std::vector<int64_t>& accelerators) {
  int64_t batch = 1;
  for (const int64_t n : accelerators) {
    const int64_t missing = n / std::gcd(n, batch);
    int64_t factor = 1;
    for (int64_t d = 1; d * d <= missing; ++d) {
      if (missing % d != 0) continue;
      for (const int64_t f : {d, missing / d}) {
        if (f % 2 == 1 && f > factor && 2 * batch * f <= 3 * usual) factor = f;
      }
    }
    batch *= factor;
  }
  while (4 * batch <= 3 * usual) batch *= 2;
  return batch;
}

void fit_batch(Workload& w, const std::vector<int64_t>& accelerators,
               std::vector<Assumption>& assumed, Origins& origins) {
  for (Assumption& a : assumed) {
    if (a.path != "workload.global_batch") continue;
    const int64_t batch = divisible_batch(usual_batch(w), accelerators);
    if (batch == w.global_batch) return;
    w.global_batch = batch;
    a.value = fmt::format("{}", batch);
    a.why = usual_batch_why(w);
    if (batch != usual_batch(w))
      a.why += fmt::format(", with factors of {} accelerators", fmt::join(accelerators, ", "));
    origins[a.path].source = a.why;
  }
}

bool shares_sequence(const Workload& w, const Stack& stack, const Plan& p) {
  const bool even = stack.sharding == Sharding::k3d;
  const bool split = p.sequence_parallel && p.tp > 1 && w.model.kind == ModelKind::kTransformer;
  return !split || !even || w.seq % (p.tp * p.cp) == 0;
}

void complete_workload(Workload& w, Assumptions& assume) {
  if (w.model.kind == ModelKind::kDlrm) {
    complete_dlrm(w, assume);
    return;
  }
  if (w.seq == 0) {
    const bool shorter = w.model.max_positions > 0 && w.model.max_positions < kUsualSequence;
    w.seq = shorter ? w.model.max_positions : kUsualSequence;
    assume.add("workload.seq", fmt::format("{}", w.seq),
               shorter ? "the model's longest sequence" : "a usual length");
  }
  const bool tuning = w.task != Task::kPretrain;
  complete_batch(w, assume);
  if (w.tokens == 0) {
    w.tokens = tuning ? kTuningTokens : kTokensPerParameter * active_parameters(w.model);
    assume.add("workload.tokens", short_count(w.tokens),
               tuning ? "a usual fine-tuning set" : "20 tokens per active parameter");
  }
}

void complete_cluster(Cluster& c, const Catalog& catalog, Assumptions& assume) {
  if (c.price.v == 0 && c.accelerator.price.v > 0) {
    c.price = c.accelerator.price;
    assume.add("cluster.price", format_quantity(c.price.v, Dimension::kDollarRate),
               "the accelerator's usual price");
  }
  if (!assume.stated("cluster.pue")) {
    assume.add("cluster.pue", fmt::format("{}", c.pue), "a modern air-cooled hall");
  }
  if (c.fabric.degraded_links > 0 && !assume.stated("cluster.fabric.degraded_speed")) {
    c.fabric.degraded_speed = kSlowLinkSpeed;
    assume.add("cluster.fabric.degraded_speed", fmt::format("{}", kSlowLinkSpeed),
               "a link that lost half of its lanes");
  }
  rewire(c, catalog, assume);
}

bool grow_cluster(Cluster& c, int64_t accelerators, const Catalog& catalog) {
  const int64_t per_node = std::max<int64_t>(1, c.node.accelerators);
  c.nodes = std::max(c.nodes, (accelerators + per_node - 1) / per_node);
  if (joins_nothing(c)) fill_fabric(c, catalog);
  return c.accelerators() <= c.scaleup_domain() || (c.node.nics > 0 && c.node.nic_bandwidth.v > 0);
}

bool supports(const Accelerator& a, Precision p) {
  const std::string vendor = normalised(a.vendor);
  switch (p) {
    case Precision::kFp32:
      return true;
    case Precision::kTf32:
      return a.tf32.v > 0;
    case Precision::kFp16:
      return a.fp16.v > 0;
    case Precision::kBf16:
      return a.bf16.v > 0;
    case Precision::kFp8:
      return a.fp8.v > 0;
    case Precision::kMxfp8:
      // Scales per block came to hardware together with 4 bits, which need them: Blackwell's
      // block-scaled MMA, CDNA4's scaled MFMA. Before, libraries scale fp8.
      return a.fp8.v > 0 && a.fp4.v > 0;
    case Precision::kNvfp4:
      return a.fp4.v > 0 && (vendor == "nvidia" || vendor.empty());
    case Precision::kMxfp4:
      return a.fp4.v > 0;
    case Precision::kInt8:
      return a.int8.v > 0;
  }
  return false;
}

Precision usable_precision(const Accelerator& a, Precision wanted) {
  if (supports(a, wanted)) return wanted;
  for (const Precision p : {Precision::kBf16, Precision::kFp16}) {
    // P40's fp16 units are there for programs to run at all.
    const FlopRate rate = p == Precision::kBf16 ? a.bf16 : a.fp16;
    if (wanted > Precision::kTf32 && rate.v > 0 && rate >= a.fp32) return p;
  }
  return Precision::kFp32;
}

std::string supported_precisions(const Accelerator& a) {
  std::string list;
  for (int i = 0; i < kPrecisions; ++i) {
    const Precision p = static_cast<Precision>(i);
    if (supports(a, p)) list += (list.empty() ? "" : ", ") + std::string(enum_names(p)[i]);
  }
  return list;
}

const Stack* default_stack(const Accelerator& accelerator, ModelKind kind, const Catalog& catalog) {
  const std::string vendor = normalised(accelerator.vendor);
  const bool gaudi = accelerator.architecture.starts_with("gaudi");
  const char* name = kind == ModelKind::kDlrm                ? "torchrec"
                     : vendor == "nvidia" || vendor == "amd" ? "megatron-core"
                     : vendor == "google"                    ? "maxtext"
                     : vendor == "aws"                       ? "nxd"
                     : gaudi                                 ? "gaudi"
                                                             : "pytorch-fsdp2";
  const Stack* stack = find_stack(catalog, name);
  if (stack != nullptr) return stack;
  return catalog.stacks.empty() ? nullptr : &catalog.stacks.front();
}

const Stack* stack_instead(const Stack& stack, const Accelerator& accelerator,
                           const Catalog& catalog) {
  const Stack* usual = default_stack(accelerator, ModelKind::kTransformer, catalog);
  if (accelerator.vendor.empty() || usual == nullptr || usual->library == stack.library)
    return nullptr;
  bool known = false;
  const Stack* alike = usual->sharding == stack.sharding ? usual : nullptr;
  const Stack* kin = nullptr;  // `maxtext-gpu` of `maxtext`
  for (const Stack& other : catalog.stacks) {
    known |= other.library == stack.library;
    const bool same = other.library == usual->library && other.sharding == stack.sharding;
    if (alike == nullptr && same) alike = &other;
    const bool named = std::find(other.kin.begin(), other.kin.end(), stack.name) != other.kin.end();
    if (kin == nullptr && same && named) kin = &other;
  }
  if (kin != nullptr) alike = kin;
  if (!known) return nullptr;
  return alike != nullptr ? alike : usual;
}

const Node* usual_node(const std::string& accelerator, const Catalog& catalog) {
  const Node* any = nullptr;
  for (const Node& node : catalog.nodes) {
    if (node.accelerator != accelerator) continue;
    if (node.accelerators > 1) return &node;
    if (any == nullptr) any = &node;
  }
  return any;
}

void check_workload(const Workload& w, const Mark& at, Diagnostics& problems) {
  if (w.model.kind == ModelKind::kDlrm && w.task != Task::kPretrain) {
    problems.push_back(problem_at(at, "recommendation models are pretrained here, not fine-tuned",
                                  "leave workload.task out"));
  }
  const bool limited = w.model.max_positions > 0 && w.model.kind == ModelKind::kTransformer;
  if (limited && w.seq > w.model.max_positions) {
    Diagnostic d = problem_at(at, fmt::format("workload.seq {} is longer than the {} positions the "
                                              "model was built for",
                                              w.seq, w.model.max_positions));
    d.severity = Severity::kWarning;
    problems.push_back(d);
  }
}

void check_fabric(const Cluster& c, const Value& stated, Diagnostics& problems) {
  const Entry* fabric = stated.find("fabric");
  if (fabric == nullptr || c.nodes < 2 || !joins_nothing(c)) return;
  const Entry* kind = fabric->value.is_map() ? fabric->value.find("kind") : fabric;
  if (kind == nullptr) kind = fabric->value.find("base");
  if (kind == nullptr) return;
  problems.push_back(problem_at(kind->value.at,
                                fmt::format("cluster.fabric joins nothing, and {} nodes need one "
                                            "that does",
                                            c.nodes),
                                "state its kind, as in `infiniband`, or use one node"));
}

void check_cluster(const Cluster& c, const Value& stated, Diagnostics& problems) {
  const auto refuse = [&](bool wrong, std::initializer_list<std::string_view> keys,
                          std::string message, std::string help) {
    if (wrong)
      problems.push_back(
          problem_at(last_stated(stated, keys), std::move(message), std::move(help)));
  };
  const bool unknown = c.node.accelerator.empty() && c.accelerator.name.empty();
  if (unknown && c.accelerator.memory.v == 0) {
    refuse(true, {"node", "accelerator"}, "cluster.node is not stated",
           "name a node of the catalog, as in `node: dgx-h100`");
    return;
  }
  const Accelerator& a = c.accelerator;
  const double peak = std::max({a.fp32.v, a.tf32.v, a.fp16.v, a.bf16.v, a.fp8.v});
  refuse(peak == 0, {"accelerator"}, "cluster.accelerator has no peak: state bf16 or another",
         "as in `bf16: 989 TFLOPS`, of its data sheet, without sparsity");
  refuse(a.memory.v == 0, {"accelerator.memory", "accelerator"},
         "cluster.accelerator.memory is not stated", "as in `memory: 80 GB`");
  refuse(a.memory_bandwidth.v == 0, {"accelerator.memory_bandwidth", "accelerator"},
         "cluster.accelerator.memory_bandwidth is not stated",
         "as in `memory_bandwidth: 3.35 TB/s`");
  refuse(a.tdp.v > 0 && a.tdp <= a.idle, {"accelerator.tdp", "accelerator.idle"},
         fmt::format("cluster.accelerator.tdp of {:g} W is not above its idle power of {:g} W",
                     a.tdp.v, a.idle.v),
         fmt::format("write a tdp above {:g} W, or a lower `idle`; is the unit right?", a.idle.v));
  const bool one_domain = c.accelerators() <= c.scaleup_domain();
  refuse(!one_domain && (c.node.nics == 0 || c.node.nic_bandwidth.v == 0),
         {"nodes", "gpus", "node.nics", "node.nic_bandwidth", "fabric.scaleup_domain"},
         fmt::format("the {} nodes are not connected: cluster.node has no NICs", c.nodes),
         "state node.nics and node.nic_bandwidth, or use one node");
  const int64_t domain = c.scaleup_domain();
  const int64_t per_node = c.node.accelerators;
  refuse(
      domain > 0 && domain % per_node != 0 && per_node % domain != 0,
      {"fabric.scaleup_domain", "node.accelerators"},
      fmt::format("a scale-up domain of {} does not fit nodes of {}", domain, per_node),
      fmt::format("write a multiple of {} as `fabric.scaleup_domain`, or leave it out", per_node));
}

namespace {

Diagnostic doubtful(const Mark& at, std::string message, std::string help) {
  Diagnostic d = problem_at(at, std::move(message), std::move(help));
  d.severity = Severity::kWarning;
  return d;
}

// A node's price where one accelerator's belongs.
void doubt_price(const Cluster& c, const Value& stated, Diagnostics& all) {
  constexpr double kFar = 5;
  const Entry* price = stated.is_map() ? stated.find("price") : nullptr;
  const double usual = c.accelerator.price.v;
  if (price == nullptr || usual <= 0 || c.price.v < kFar * usual || c.node.accelerators < 2) return;
  all.push_back(doubtful(
      price->value.at,
      fmt::format("cluster.price is of one accelerator, and usual is {}",
                  format_quantity(usual, Dimension::kDollarRate)),
      fmt::format("if it is a node's, write {}",
                  format_quantity(c.price.v / real(c.node.accelerators), Dimension::kDollarRate))));
}

// Bits taken for bytes: no port is as fast.
void doubt_port(const Cluster& c, const Value& stated, Diagnostics& all) {
  constexpr Bandwidth kFastest{1600e9 / 8};
  const Value* port = find_path(stated, "node.nic_bandwidth");
  if (port == nullptr || c.node.nic_bandwidth <= kFastest) return;
  all.push_back(
      doubtful(port->at, "no port carries as much: B are bytes, b bits",
               fmt::format("if it is {:.0f} Gb/s, write so", c.node.nic_bandwidth.v / 1e9)));
}

// The accelerator's own figures over the catalog's: twice the peak is the data sheet's with
// sparsity, ten times anything another unit.
void doubt_accelerator(const Cluster& c, const Catalog& catalog, const Value& stated,
                       Diagnostics& all) {
  constexpr double kSparse = 1.7, kUnit = 8;
  const Accelerator* known = find_accelerator(catalog, c.accelerator.name);
  if (known == nullptr) return;
  const auto compare = [&](const char* key, double now, double usual, Dimension d, bool peak) {
    const Value* value = find_path(stated, fmt::format("accelerator.{}", key));
    if (value == nullptr || usual <= 0 || now <= 0) return;
    const double ratio = now / usual;
    const bool sparse = peak && ratio > kSparse && ratio < 2.5;
    if (!sparse && ratio < kUnit && ratio > 1 / kUnit) return;
    all.push_back(doubtful(
        value->at, fmt::format("{} has {} by the catalog", known->name, format_quantity(usual, d)),
        sparse ? "peaks are dense: data sheets print twice as much, with sparsity"
               : "check the unit"));
  };
  const Accelerator& a = c.accelerator;
  compare("bf16", a.bf16.v, known->bf16.v, Dimension::kFlopRate, true);
  compare("fp16", a.fp16.v, known->fp16.v, Dimension::kFlopRate, true);
  compare("fp8", a.fp8.v, known->fp8.v, Dimension::kFlopRate, true);
  compare("tf32", a.tf32.v, known->tf32.v, Dimension::kFlopRate, true);
  compare("memory", a.memory.v, known->memory.v, Dimension::kBytes, false);
  compare("memory_bandwidth", a.memory_bandwidth.v, known->memory_bandwidth.v,
          Dimension::kBandwidth, false);
  compare("scaleup_bandwidth", a.scaleup_bandwidth.v, known->scaleup_bandwidth.v,
          Dimension::kBandwidth, false);
}

}  // namespace

Diagnostics doubts_of_cluster(const Cluster& c, const Catalog& catalog, const Value& stated) {
  Diagnostics all;
  doubt_price(c, stated, all);
  doubt_port(c, stated, all);
  doubt_accelerator(c, catalog, stated, all);
  return all;
}

}  // namespace assay

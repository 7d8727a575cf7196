// Writes docs/reference/yaml.md from the `fields` of src/world, so that the page cannot be wrong.
//
//   yaml_reference                 prints the page
//   yaml_reference --check FILE    exit 1 when the file is not that page
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "config/scalar.h"
#include "world/operations.h"
#include "world/setting.h"
#include "world/site.h"

namespace assay {
namespace {

constexpr std::string_view kHead = R"(# YAML keys

Written by `build/yaml_reference` from the schema in src/world; a test keeps this page equal to it.

A file has one or more of the sections `workload`, `cluster`, `site`, `stack`, `plan` and `run`. A
section is a catalog name, or a mapping. Everything left out comes from the catalog, from the
stack's defaults or from a rule, and `assay check FILE` lists what was assumed.

- **Units stand in the value**: `80 GB`, `450 GB/s`, `400 Gbps`, `989 TFLOPS`, `700 W`, `5 us`,
  `1.98 GHz`, `$2.49/h`. A bare number where a unit is needed is an error; zero needs none.
- **Numbers**: `1_000`, `1e3`, `2.0 T` (tokens), `40 %`, `2:1`. `8k` is refused where a whole number
  is meant: it is 8000 to one person and 8192 to another.
- **`base: NAME`** in a mapping starts from a catalog entry; the other keys change it.
- **`source:`, `mark:`, `sources:`, `marks:`** say where figures come from (docs/concepts/marks.md).
- Every key is also a path for `--set`: `--set cluster.node.nics=4`.
- Refused: unknown and duplicate keys, anchors, aliases, tags, tabs, more than one document.
)";

std::string quantity_unit(Dimension d) {
  switch (d) {
    case Dimension::kBytes:
      return "size, `80 GB`";
    case Dimension::kBandwidth:
      return "bandwidth, `450 GB/s`";
    case Dimension::kFlopRate:
      return "rate, `989 TFLOPS`";
    case Dimension::kFlops:
      return "amount, `1 PFLOP`";
    case Dimension::kWatts:
      return "power, `700 W`";
    case Dimension::kJoules:
      return "energy, `1 kWh`";
    case Dimension::kSeconds:
      return "time, `5 us`";
    case Dimension::kHertz:
      return "frequency, `1.98 GHz`";
    case Dimension::kDollars:
      return "money, `$5`";
    case Dimension::kDollarRate:
      return "price, `$2.49/h`";
    case Dimension::kEnergyPrice:
      return "price, `$0.08/kWh`";
    case Dimension::kNumber:
      return "number";
  }
  return "number";
}

template <class T>
concept Described = requires(T& t) { fields(t, [](auto&&...) {}); };

template <class M>
std::string kind_of() {
  if constexpr (std::is_same_v<M, bool>)
    return "true or false";
  else if constexpr (std::is_same_v<M, int64_t>)
    return "whole number";
  else if constexpr (std::is_same_v<M, double>)
    return "number";
  else if constexpr (std::is_same_v<M, std::string>)
    return "text";
  else if constexpr (std::is_same_v<M, std::vector<std::string>>)
    return "list of texts";
  else if constexpr (std::is_same_v<M, std::vector<int64_t>>)
    return "list of whole numbers";
  else if constexpr (std::is_same_v<M, std::vector<double>>)
    return "list of numbers";
  else if constexpr (requires { requires Described<typename M::value_type>; })
    return "list of mappings, below";
  else if constexpr (std::is_enum_v<M>)
    return fmt::format("`{}`", fmt::join(enum_names(M{}), "`, `"));
  else if constexpr (Described<M>)
    return "name or mapping, below";
  else
    return quantity_unit(DimensionOf<M>::kIs);
}

std::string limits_text(const Limits& l) {
  const bool below = l.min > -1e299, above = l.max < 1e299;
  if (l.min == kPositive.min && !above) return "above 0";
  if (below && above) return fmt::format("{:g} to {:g}", l.min, l.max);
  if (below) return fmt::format("at least {:g}", l.min);
  return above ? fmt::format("at most {:g}", l.max) : "";
}

template <class T>
std::string table(const char* title, const char* remark) {
  std::string text = fmt::format(
      "\n## {}\n\n{}\n\n| key | written as | limits | what it is |\n"
      "|---|---|---|---|\n",
      title, remark);
  T any{};
  fields(any, [&](const char* key, auto& member, const Limits& limits, const char* help) {
    using M = std::remove_cvref_t<decltype(member)>;
    text += fmt::format("| `{}` | {} | {} | {} |\n", key, kind_of<M>(), limits_text(limits), help);
  });
  return text;
}

std::string site_tables() {
  std::string text = table<Site>("site", "Where a cluster stands, and on which terms.");
  text += table<Climate>("site.climate", "A catalog name, or twelve months.");
  text += table<Power>("site.power", "At the meter, on the way to the racks, and what it costs.");
  text += table<Tariff>("site.power.tariff", "A catalog name or a mapping.");
  text += table<Curtailment>("site.power.curtailment", "Hours and months wrap around.");
  text += table<Cooling>("site.cooling", "A catalog name or a mapping.");
  text += table<Tier>("site.tier", "A catalog name or a mapping.");
  text += table<Hall>("site.hall", "One room; what is not stated cannot bind.");
  text += table<Storage>("site.storage", "A catalog name or a mapping.");
  text += table<Registry>("site.registry", "Where container images come from.");
  text += table<Offer>("site.offer", "A catalog name or a mapping.");
  text += table<PricePoint>("site.offer.prices", "In the order of their dates.");
  text += table<DataPlace>("site.data", "Where the data are and whether they may come here.");
  text += table<RunHours>("site.schedule", "Which hours of a day are used.");
  return text;
}

std::string page() {
  std::string text(kHead);
  text += table<Workload>("workload", "What is to be trained.");
  text +=
      table<Model>("workload.model", "A catalog name, a Hugging Face `config.json`, or the shape.");
  text += table<Cluster>("cluster", "Identical nodes and the fabric between them.");
  text += table<Node>("cluster.node", "A catalog name or a mapping.");
  text += table<Fabric>("cluster.fabric", "A catalog name or a mapping.");
  text += table<Accelerator>("cluster.accelerator",
                             "Overrides of the node's accelerator. Peaks are dense.");
  text += table<Plan>("plan", "Keys left out are searched, or are the stack's defaults.");
  text += table<Stack>("stack", "The software. Most files only name one.");
  text += site_tables();
  text += table<Operations>("run", "How a run is operated; a catalog name or a mapping.");
  text += table<Checkpointing>("run.checkpoint", "How progress is saved.");
  text += table<Reliability>("run.reliability", "What fails, a catalog name or a mapping.");
  text += table<FailureKind>("run.reliability.failures", "One entry for each root cause.");
  text += table<Kernels>("kernels", "Only in catalog/kernels.yaml: one entry per architecture.");
  text += table<MatmulParams>("kernels.matmul", "docs/models/matmul.md has the equation.");
  text += table<CollectiveParams>("collectives",
                                  "Only in catalog/collectives.yaml: one entry per link.");
  return text;
}

int check(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (text && *text == page()) return 0;
  fmt::print(stderr, "{}: not what the schema says; run: build/yaml_reference > {}\n", path, path);
  return 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--check") return assay::check(argv[2]);
  fmt::print("{}", assay::page());
  return 0;
}

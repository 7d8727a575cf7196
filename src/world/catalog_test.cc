#include "world/catalog.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "world/names.h"
#include "world/read.h"

namespace assay {
namespace {

TEST(Catalog, TheBuiltInOneLoadsWithoutProblems) {
  const tl::expected<Catalog, Diagnostics> loaded = load_catalog(ASSAY_ROOT "/catalog");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_EQ(catalog().accelerators.size(), loaded->accelerators.size());
  EXPECT_EQ(catalog().models.size(), loaded->models.size());
  EXPECT_EQ(catalog().origins.size(), loaded->origins.size());
}

TEST(Catalog, EveryFigureHasASourceAndAMark) {
  for (const auto& [path, origin] : catalog().origins) {
    EXPECT_FALSE(origin.source.empty()) << path;
    EXPECT_NE(std::string("msca").find(origin.mark), std::string::npos) << path;
    EXPECT_GT(origin.line, 0) << path;
  }
}

// A constant whose fit ends at a limit was not found by the fit: whoever set the limit chose it.
TEST(Catalog, WhatALimitChoseIsNotCalledCalibrated) {
  std::ifstream params(ASSAY_ROOT "/tools/calibrate.params");
  int constants = 0, at_limits = 0;
  for (std::string line; std::getline(params, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string path;
    double low = 0, high = 0;
    if (!(words >> path >> low >> high)) continue;
    const auto found = catalog().origins.find(path);
    ASSERT_NE(found, catalog().origins.end()) << path;
    std::ifstream file(ASSAY_ROOT "/" + found->second.file);
    file.seekg(static_cast<std::streamoff>(found->second.offset));
    double value = 0;
    std::string unit;
    file >> value >> unit;
    if (unit == "us") value *= 1e-6;
    ++constants;
    if (value > low * 1.001 && value < high * 0.999) continue;
    ++at_limits;
    EXPECT_EQ(found->second.mark, 'a') << path;
  }
  EXPECT_GT(constants, 50);
  EXPECT_GT(at_limits, 0);
}

TEST(Catalog, PartsFitTogether) {
  const Catalog& c = catalog();
  for (const Node& node : c.nodes) {
    EXPECT_NE(find_accelerator(c, node.accelerator), nullptr) << node.name;
  }
  for (const Cluster& cluster : c.clusters) {
    EXPECT_EQ(cluster.accelerator.name, cluster.node.accelerator) << cluster.name;
    EXPECT_GT(cluster.accelerator.memory.v, 0) << cluster.name;
  }
  for (const Accelerator& a : c.accelerators) {
    EXPECT_NE(find_entry<Kernels>(c, a.architecture), nullptr) << a.name << " " << a.architecture;
    EXPECT_NE(find_collectives(c, a.scaleup_link, true), nullptr) << a.name;
    EXPECT_GT(a.memory.v, 0) << a.name;
  }
  for (std::string_view kind : enum_names(FabricKind{})) {
    EXPECT_NE(find_collectives(c, std::string(kind), false), nullptr) << kind;
  }
}

// What supplies carry holds the host and all accelerators at their limit: a node that took it from
// another kind, by its base, once held less.
TEST(Catalog, NameplatesHoldWhatIsBehindThem) {
  const Catalog& c = catalog();
  for (const Node& n : c.nodes) {
    const Accelerator* a = find_accelerator(c, n.accelerator);
    if (n.nameplate.v <= 0 || a == nullptr) continue;
    const Watts all = n.host_power + static_cast<double>(n.accelerators) * a->tdp;
    EXPECT_GE(n.nameplate, all) << n.name;
  }
}

TEST(Catalog, PeaksAndLinksOfOnePartAgree) {
  for (const Accelerator& a : catalog().accelerators) {
    const bool over_pcie = a.scaleup_link.starts_with("pcie");
    EXPECT_TRUE(!over_pcie || a.scaleup_bandwidth <= a.pcie_bandwidth) << a.name;
    // GeForce parts add up 16-bit products in 32 bits at half the rate, but not 8-bit integers.
    const bool half_rate = a.name.starts_with("rtx-") && a.architecture.ends_with("-half");
    const double whole = half_rate && a.bf16.v > 0 ? a.int8 / a.bf16 : 4;
    EXPECT_NEAR(whole, 4, 0.03) << a.name;
    // Half the bits are at least twice the rate.
    const bool narrow = a.vendor == "NVIDIA" && a.fp8.v > 0;
    EXPECT_GT(narrow ? a.fp8 / a.bf16 : 2, 1.99) << a.name;
  }
}

TEST(Catalog, AnySpelling) {
  const auto accelerator = [](const char* name) {
    const Accelerator* a = find_accelerator(catalog(), name);
    return a == nullptr ? "" : a->name;
  };
  for (const char* name : {"H100", "h100", "NVIDIA H100-SXM5-80GB", "H100 SXM5 80GB", "h100_sxm5",
                           "NVIDIA H100 80GB HBM3", "H100-SXM"}) {
    EXPECT_EQ(accelerator(name), "h100-sxm5-80gb") << name;
  }
  for (const char* name : {"A100", "A100-SXM4-80GB", "A100 80GB", "NVIDIA A100-SXM4-80GB"}) {
    EXPECT_EQ(accelerator(name), "a100-sxm4-80gb") << name;
  }
  EXPECT_EQ(accelerator("TPUv5e"), accelerator("TPU v5e"));
  EXPECT_NE(accelerator("TPUv5e"), "");
  EXPECT_NE(accelerator("MI300X"), "");
  EXPECT_EQ(accelerator("AMD Instinct MI300X"), accelerator("mi300x"));
  EXPECT_NE(accelerator("Trn1-NeuronCore"), "");
  EXPECT_EQ(accelerator("GB200-186GB (NVL72, per GPU)"), "gb200-186gb");
  EXPECT_EQ(accelerator("GB300-288GB (NVL72, per GPU)"), "gb300-288gb");
  EXPECT_EQ(accelerator(""), "");
  EXPECT_EQ(accelerator("NVIDIA"), "");
  EXPECT_EQ(accelerator("H1000"), "");
}

TEST(Catalog, ModelsAndStacks) {
  ASSERT_NE(find_model(catalog(), "meta-llama/Llama-3.1-70B"), nullptr);
  EXPECT_EQ(find_model(catalog(), "GPT-3 1.3B")->name, "gpt-3-1.3b");
  EXPECT_EQ(find_model(catalog(), "GPT-3 13B")->name, "gpt-3-13b");
  ASSERT_NE(find_stack(catalog(), "Megatron-LM"), nullptr);
  EXPECT_EQ(find_stack(catalog(), "megatron_core")->name, "megatron-core");
  EXPECT_EQ(find_stack(catalog(), "no-such-stack"), nullptr);
  EXPECT_EQ(find_kernels(catalog(), "no-such-architecture")->name, "generic");
  EXPECT_EQ(find_collectives(catalog(), "warp-drive", true)->name, "generic-scaleup");
  EXPECT_EQ(find_collectives(catalog(), "warp-drive", false)->name, "generic-fabric");
}

TEST(Names, Normalised) {
  EXPECT_EQ(normalised("NVIDIA H100-SXM5 80GB"), "nvidiah100sxm580gb");
  EXPECT_EQ(without_vendor("NVIDIA H100-SXM5 80GB"), "h100sxm580gb");
  EXPECT_EQ(normalised("org/Model-1.3B"), "model1.3b");
  EXPECT_EQ(normalised("v.5"), "v5");
}

// A folder of catalog files that lives as long as the test.
class TemporaryCatalog {
 public:
  TemporaryCatalog() {
    static int count = 0;
    folder_ = testing::TempDir() + "assay_catalog_" + std::to_string(getpid()) + "_" +
              std::to_string(count++);
    std::filesystem::create_directory(folder_);
  }
  ~TemporaryCatalog() { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::FILE* file = std::fopen((folder_ + "/" + name).c_str(), "wb");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  tl::expected<Catalog, Diagnostics> load() const { return load_catalog(folder_); }
  std::string error() const {
    const tl::expected<Catalog, Diagnostics> c = load();
    return c ? "" : c.error().front().message;
  }

 private:
  std::string folder_;
};

TEST(Catalog, BaseCopiesWithoutNamesAndKeepsOrigins) {
  const TemporaryCatalog folder;
  folder.write("accelerators.yaml",
               "date: 2026-11-15\n"
               "one:\n  aliases: [uno]\n  memory: 80 GB\n  tdp: 700 W\n  source: sheet\n  mark: s\n"
               "  marks: {memory: m}\n  sources: {memory: seen}\n"
               "two:\n  base: one\n  tdp: 500 W\n  source: guess\n  mark: a\n");
  const tl::expected<Catalog, Diagnostics> c = folder.load();
  ASSERT_TRUE(c) << render(c.error());
  EXPECT_EQ(c->date, "2026-11-15");
  EXPECT_EQ(c->accelerators[1].memory.v, 80e9);
  EXPECT_TRUE(c->accelerators[1].aliases.empty());
  EXPECT_EQ(find_accelerator(*c, "uno")->name, "one");
  const Origin& memory = c->origins.at("accelerators.two.memory");
  EXPECT_EQ(memory.mark, 'm');
  EXPECT_EQ(memory.source, "seen");
  EXPECT_EQ(c->origins.at("accelerators.two.tdp").source, "guess");
  EXPECT_EQ(c->origins.at("accelerators.two.tdp").line, 12);
}

TEST(Catalog, ProblemsAreFound) {
  const auto error = [](const std::string& text) {
    const TemporaryCatalog folder;
    folder.write("accelerators.yaml", text);
    return folder.error();
  };
  EXPECT_EQ(error(""), "");
  EXPECT_EQ(error("a: {memory: 80}"), "accelerators.a.memory needs the unit GB");
  EXPECT_EQ(error("a: {memry: 80 GB}"), "unknown key `memry` in accelerators.a");
  EXPECT_EQ(error("a: 5"), "accelerators.a must be a mapping");
  EXPECT_EQ(error("a: {mark: x}"), "accelerators.a.mark must be one of m, s, c, a");
  EXPECT_EQ(error("a: {marks: {memory: q}}"),
            "accelerators.a.marks.memory must be one of m, s, c, a");
  EXPECT_EQ(error("a: {sources: {memry: q}}"), "unknown key `memry` in accelerators.a.sources");
  EXPECT_EQ(error("a: {aliases: [b]}\nb: {tdp: 1 W}"), "the name `b` belongs to a already");
  EXPECT_EQ(error("a: {base: b}\nb: {}"),
            "accelerators.a: no entry `b` in the catalog of accelerators");
  EXPECT_EQ(error("- a"), "accelerators must be a mapping of names");
}

// Writes every field of a struct as text and reads it back: no field is lost, none is misread.
template <class T>
void round_trip(const T& original) {
  Value map;
  map.kind = Value::Kind::kMap;
  fields(original, [&](const char* key, const auto& member, const Limits&, const char*) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<M, int64_t>) {
      map.entries.push_back({key, {}, scalar_value(std::to_string(member), {})});
    } else if constexpr (requires { DimensionOf<M>::kIs; }) {
      const std::string text = format_quantity(member.v, DimensionOf<M>::kIs);
      map.entries.push_back({key, {}, scalar_value(text, {})});
    } else if constexpr (std::is_enum_v<M>) {
      const std::string text(enum_names(member)[static_cast<size_t>(member)]);
      map.entries.push_back({key, {}, scalar_value(text, {})});
    }
  });
  T copy{};
  Diagnostics problems;
  Origins origins;
  Reader reader(catalog(), problems, origins);
  reader.read_struct(map, copy, "x");
  EXPECT_TRUE(problems.empty()) << original.name << "\n" << render(problems);
  std::vector<double> before, after;
  const auto collect = [](std::vector<double>& into) {
    return [&into](const char*, const auto& member, const Limits&, const char*) {
      using M = std::remove_cvref_t<decltype(member)>;
      if constexpr (std::is_same_v<M, int64_t>) into.push_back(static_cast<double>(member));
      if constexpr (requires { DimensionOf<M>::kIs; }) into.push_back(member.v);
    };
  };
  fields(original, collect(before));
  fields(static_cast<const T&>(copy), collect(after));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], after[i], 1e-5 * std::abs(before[i])) << original.name;
  }
}

TEST(Reader, WhatIsWrittenIsReadBack) {
  for (const Accelerator& a : catalog().accelerators) round_trip(a);
  for (const Node& n : catalog().nodes) round_trip(n);
  for (const Model& m : catalog().models) round_trip(m);
  for (const Cooling& c : catalog().cooling) round_trip(c);
  for (const Storage& s : catalog().storage) round_trip(s);
  for (const Tier& t : catalog().tiers) round_trip(t);
}

}  // namespace
}  // namespace assay

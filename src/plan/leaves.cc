#include "plan/leaves.h"

#include <type_traits>

#include <fmt/format.h>

#include "config/scalar.h"

namespace assay {
namespace {

struct Nothing {
  template <class... A>
  void operator()(A&&...) const {}
};
template <class T>
concept Nested = requires(T& t) {
  fields(t, Nothing{});
};

template <class T>
concept NestedList = requires(T& t) {
  requires Nested<typename T::value_type>;
};

std::string text_of(int64_t v) { return fmt::format("{}", v); }
std::string text_of(double v) { return fmt::format("{:g}", v); }
std::string text_of(bool v) { return v ? "on" : "off"; }
std::string text_of(const std::string& v) { return v; }
template <class Tag>
std::string text_of(Quantity<Tag> v) {
  return format_quantity(v.v, DimensionOf<Quantity<Tag>>::kIs);
}
template <class T>
std::string text_of(const std::vector<T>& v) {
  return fmt::format("{}", fmt::join(v, " "));
}
template <class E>
requires std::is_enum_v<E> std::string text_of(E v) {
  return std::string(enum_names(v)[static_cast<size_t>(v)]);
}

template <class T>
constexpr LeafOps kOps{
    [](const void* at) { return text_of(*static_cast<const T*>(at)); },
    [](const void* a, const void* b) {
      return *static_cast<const T*>(a) == *static_cast<const T*>(b);
    },
    [](void* to, const void* from) { *static_cast<T*>(to) = *static_cast<const T*>(from); },
};

struct Collector {
  std::string prefix;
  std::vector<Leaf>* out;

  template <class T>
  void operator()(std::string_view key, T& member, const Limits&, std::string_view) const {
    std::string path = prefix + std::string(key);
    if (path == "stack.defaults") return;
    if constexpr (Nested<T>) {
      fields(member, Collector{path + ".", out});
    } else if constexpr (NestedList<T>) {
      for (size_t i = 0; i < member.size(); ++i) {
        fields(member[i], Collector{fmt::format("{}[{}].", path, i), out});
      }
    } else {
      out->push_back({std::move(path), &member, &kOps<T>});
    }
  }
};

template <class T>
std::vector<Leaf> leaves_of(T& entry) {
  std::vector<Leaf> all;
  fields(entry, Collector{"", &all});
  return all;
}

}  // namespace

std::vector<Leaf> leaves(Accelerator& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Node& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Fabric& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Cluster& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Model& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Stack& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Kernels& e) { return leaves_of(e); }
std::vector<Leaf> leaves(CollectiveParams& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Climate& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Tariff& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Cooling& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Tier& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Storage& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Offer& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Site& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Reliability& e) { return leaves_of(e); }
std::vector<Leaf> leaves(Operations& e) { return leaves_of(e); }

std::vector<Leaf> leaves(Setting& setting, Plan& plan) {
  std::vector<Leaf> all;
  fields(setting.workload, Collector{"workload.", &all});
  fields(setting.cluster, Collector{"cluster.", &all});
  fields(setting.stack, Collector{"stack.", &all});
  fields(plan, Collector{"plan.", &all});
  all.push_back({"accelerators", &setting.accelerators, &kOps<int64_t>});
  return all;
}

}  // namespace assay

// The accelerator of a run by any of its names: with the memory, the form and the node that the row
// states beside it, and as the part of a package that the row counts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "validate/links.h"
#include "validate/machines.h"
#include "validate/scenario.h"
#include "validate/text.h"

namespace assay {
namespace {

// `H100s`, `TPU v4s`, `trn1 NeuronCores`: one of them.
std::string singular(const std::string& words) {
  std::string out = " ";
  for (std::string& word : split_any(words, " ")) {
    const size_t size = word.size();
    const bool many = size >= 4 || (size == 3 && is_digit(word[1]));
    if (many && word.back() == 's') word.pop_back();
    out += word + " ";
  }
  return out;
}

// The accelerator whose longest name is contained in the text: `8x NVIDIA A100-SXM4-80GB (Lambda)`.
const Accelerator* contained(const Catalog& catalog, const std::string& text) {
  const std::string words = plain_words(text), one = singular(words);
  const Accelerator* best = nullptr;
  size_t length = 0;
  // A model's number says more than words, however many: `GB300 Grace Blackwell Ultra`.
  constexpr size_t kNumbered = 1000;
  for (const Accelerator& a : catalog.accelerators) {
    std::vector<std::string> names = a.aliases;
    names.push_back(a.name);
    for (const std::string& name : names) {
      const std::string phrase(trimmed_cell(plain_words(name)));
      const bool numbered = phrase.find_first_of("0123456789") != std::string::npos;
      const size_t weight = phrase.size() + (numbered ? kNumbered : 0);
      if (phrase.empty() || weight <= length) continue;
      if (!says(words, phrase) && !says(one, phrase)) continue;
      // `Gaudi 4` is no Gaudi that is known.
      const std::optional<double> behind = number_after(words, phrase);
      if (!numbered && behind && *behind < 10) continue;
      best = &a;
      length = weight;
    }
  }
  return best;
}

// `GH200` holds a Hopper, `GB200` a B200.
bool superchip(const Accelerator& whole, const Accelerator& chip) {
  const std::string& name = whole.name;
  return name.size() > 3 && name[0] == 'g' && name[1] == chip.name[0] && is_digit(name[2]) &&
         whole.vendor == chip.vendor;
}

// Whether a list names different accelerators: `A100, V100`, but not `A100-SXM4, 80 GB, NVLink`.
bool names_several(const Catalog& catalog, const std::string& text) {
  const Accelerator* first = nullptr;
  std::string list = text;
  for (const std::string_view word : {" and ", " or ", " vs ", " vs. ", " & ", "\xe2\x86\x92"}) {
    for (size_t at; (at = list.find(word)) != std::string::npos;)
      list.replace(at, word.size(), ", ");
  }
  for (const std::string& part : split_any(list, ",;+/&(")) {
    const Accelerator* named = contained(catalog, part);
    // A machine is named after what it holds: `A100-SXM4-40GB (DGX-A100)`.
    if (first && named && family_of(*first) == family_of(*named) &&
        says_any(plain_words(part), {"dgx", "hgx"}))
      continue;
    // The chip of a superchip is named beside it: `GH200: Grace CPU and H100`.
    const bool whole = first && named && (superchip(*first, *named) || superchip(*named, *first));
    // And a chip beside its cores: `trn1.32xlarge/trn1n.32xlarge NeuronCore-v2`.
    const bool core =
        first && named && named->vendor == "AWS" && named->architecture == first->architecture;
    if (first && named && named != first && !whole && !core) return true;
    if (!first) first = named;
  }
  return false;
}

// `8xA100`, `64 x H100`: a count before the name, which has a column of its own.
std::string without_count(std::string gpu) {
  // `H100x8`.
  const size_t last = gpu.find_last_not_of("0123456789");
  if (last != std::string::npos && last > 0 && last + 1 < gpu.size() && gpu[last] == 'x' &&
      is_digit(gpu[last - 1]) && gpu.find_first_not_of("0123456789") != last) {
    gpu.resize(last);
  }
  const size_t digits = gpu.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return gpu;
  const size_t times = gpu.find_first_not_of(' ', digits);
  if (times == std::string::npos || (gpu[times] != 'x' && gpu[times] != '*')) return gpu;
  return gpu.substr(times + 1);
}

// The card, and not the host's bus: `PCIe A100`, but not `A100-SXM4 (PCIe Gen4)`. A part of which
// nothing else is said is the card too where its node has PCIe only.
bool names_pcie(const Run& run, const std::string& gpu) {
  const std::string words = plain_words(gpu);
  if (words.find(" sxm") != std::string::npos ||
      says_any(words, {"nvswitch", "nvlink", "hgx", "dgx"})) {
    return false;
  }
  const bool bus = pcie_only(run.intra_link) && affirms(clause_words(run.intra_link), {"pcie"});
  return affirms(clause_words(gpu), {"pcie"}) || bus;
}

// `ascend-910b3` and `ascend-910c-die` are bins of `ascend-910`: its number and a letter more.
bool numbered_bin(const std::string& name, const std::string& of) {
  return is_digit(of.back()) && name.starts_with(of) && name.size() > of.size() &&
         !is_digit(name[of.size()]) && name[of.size()] != '-';
}

// The same part with another memory or form: `A100 with 40GB`, `PCIe H100`, 39.4 GB as torch prints
// it. The one whose name has most in common.
const Accelerator* variant_of(const Catalog& catalog, const Run& run, const Accelerator& found,
                              double gb, const std::string& gpu) {
  const bool pcie = names_pcie(run, gpu);
  // A module is no card, whatever its memory: `H100 SXM5 94GB` is not the H100 NVL.
  const std::string words = plain_words(gpu);
  const bool module = words.find(" sxm") != std::string::npos || says(words, "nvlink");
  const auto card = [](const Accelerator& a) { return a.scaleup_link.starts_with("pcie"); };
  // The NVL are cards with bridges.
  const auto form = [](const Accelerator& a) {
    return a.name.find("pcie") != std::string::npos || a.name.find("-nvl") != std::string::npos;
  };
  const auto apart = [&](const Accelerator& a) { return std::abs(gb * 1e9 / a.memory.v - 1); };
  constexpr double kSame = 0.06;  // of nominal memory
  const bool other_form = pcie && !form(found);
  if (!other_form && (gb <= 0 || apart(found) < kSame)) return &found;
  const Accelerator* best = &found;
  double nearest = other_form ? 1e9 : kSame;
  for (const Accelerator& a : catalog.accelerators) {
    // `Ascend910` is the first of its line and what a host shows of each later one.
    const bool bin = numbered_bin(a.name, found.name);
    if ((family_of(a) != family_of(found) && !bin) || a.architecture != found.architecture)
      continue;
    if (module && card(a) && !card(found)) continue;
    const auto titanium = [](const Accelerator& x) { return x.name.ends_with("-ti"); };
    if (form(a) != (pcie || form(found)) || titanium(a) != titanium(found)) {
      continue;
    }
    const double distance = gb > 0 ? apart(a) : std::abs(a.memory.v / found.memory.v - 1);
    // Of two with that memory, the one that stands in nodes of that many.
    const bool placed = run.per_node && bin && !carries(catalog, *best, *run.per_node) &&
                        carries(catalog, a, *run.per_node);
    if (distance < nearest || (distance == nearest && placed)) best = &a, nearest = distance;
  }
  return best;
}

// Gigabytes that a text names: `A100 with 40GB`, `V100 (16 GB, SXM2)`, `H100 (95 GiB)`; zero: none.
double memory_named(const std::string& words) {
  for (const std::string& word : split_any(words, " ")) {
    const size_t end = word.find_first_not_of("0123456789");
    if (end == 0 || end == std::string::npos || word.substr(end) != "gb") continue;
    return cell_number(word.substr(0, end)).value_or(0);
  }
  // What is sold as 80 GB shows as 79 GiB.
  return number_before(words, "gb").value_or(number_before(words, "gib").value_or(0));
}

// The accelerator of a cloud's shape: `p5.48xlarge`.
const Accelerator* of_shape(const Catalog& catalog, const std::string& gpu) {
  const Node* node = find_node(catalog, gpu);
  return node ? find_accelerator(catalog, node->accelerator) : nullptr;
}

// What a machine named beside the part holds of its kind: the `V100 32GB (DGX-2)` are those of
// NVSwitch.
const Accelerator* of_machine(const Catalog& catalog, const Accelerator& found,
                              const std::string& gpu) {
  for (const Node* node : nodes_named_in(catalog, gpu)) {
    const Accelerator* held = find_accelerator(catalog, node->accelerator);
    if (held && family_of(*held) == family_of(found) && held->architecture == found.architecture &&
        held->memory.v == found.memory.v && held->scaleup_link == found.scaleup_link) {
      return held;
    }
  }
  return &found;
}

// A name without a number is that of a kind (`NeuronCore`, `Trainium`, `Gaudi`): stated memory
// tells which of its generations.
const Accelerator* of_kind(const Catalog& catalog, const Accelerator& found, double gb,
                           const std::string& words) {
  constexpr double kSame = 0.12;  // of nominal memory
  const auto apart = [&](const Accelerator& a) { return std::abs(gb * 1e9 / a.memory.v - 1); };
  const std::string kind(trimmed_cell(words));
  const bool numbered = kind.find_first_of("0123456789") != std::string::npos;
  if (gb <= 0 || numbered || kind.size() < 4 || apart(found) < kSame) return &found;
  for (const Accelerator& a : catalog.accelerators) {
    const bool named = std::any_of(a.aliases.begin(), a.aliases.end(), [&](const std::string& n) {
      return plain_words(n).find(kind) != std::string::npos;
    });
    if (named && a.vendor == found.vendor && apart(a) < kSame) return &a;
  }
  return &found;
}

// The architecture of parts whose kernels nobody measured.
constexpr std::string_view kUnmeasured = "generic";
const std::vector<std::string_view> kSeveral = {"hetero", "heterogeneous", "mixed"};

// `A100-40G` has 40 GB; `v4-128` is a slice of TPUs.
std::string as_named(std::string gpu) {
  for (size_t i = 1; i < gpu.size(); ++i) {
    const bool last =
        i + 1 == gpu.size() || std::string_view(" ),/").find(gpu[i + 1]) != std::string_view::npos;
    if ((gpu[i] == 'G' || gpu[i] == 'g') && is_digit(gpu[i - 1]) && last) gpu.insert(i + 1, "B");
  }
  // `v4`, `v5lite`: a generation of TPUs alone.
  constexpr size_t kGeneration = 8;
  if (gpu.size() >= 2 && gpu.size() <= kGeneration && gpu[0] == 'v' && gpu[1] >= '2' &&
      gpu[1] <= '7' && gpu.find_first_of(" -") == std::string::npos) {
    return "TPU " + gpu;
  }
  const bool slice = gpu.size() > 3 && gpu[0] == 'v' && is_digit(gpu[1]) && !is_digit(gpu[2]) &&
                     is_digit(gpu.back()) && gpu.find('-') != std::string::npos;
  if (slice) return "TPU " + gpu.substr(0, gpu.find('-'));
  // `Cloud TPU pod v3-32`
  const std::string words = lower(gpu);
  if (!words.starts_with("tpu v") && words.find("tpu ") != std::string::npos) {
    for (const char* generation : {"v2", "v3", "v4", "v5p", "v5e", "v6e"}) {
      if (words.find(std::string(" ") + generation + "-") != std::string::npos) {
        return std::string("TPU ") + generation;
      }
    }
  }
  return gpu;
}

// Cores that the name of a slice of TPUs counts, `v3-128`, where frameworks see each as a device;
// later generations show a chip as one.
int64_t slice_cores(const std::string& gpu) {
  const std::string words = lower(gpu);
  for (const std::string generation : {"v2-", "v3-"}) {
    const size_t at = words.find(generation);
    if (at == std::string::npos) continue;
    const std::string rest = words.substr(at + generation.size());
    const size_t end = rest.find_first_not_of("0123456789");
    const std::optional<double> cores = cell_number(rest.substr(0, end));
    if (cores && *cores <= 1e6) return std::llround(*cores);
  }
  return 0;
}

// Into how many devices of the kind `part` a package falls: dies, tiles, cores. Zero: into none.
int64_t parts_of(const Accelerator& whole, const Accelerator& part) {
  const bool kin = whole.vendor == part.vendor && whole.architecture == part.architecture;
  if (!kin || part.compute_units == 0 || whole.compute_units % part.compute_units != 0) return 0;
  const int64_t n = whole.compute_units / part.compute_units;
  constexpr int64_t kMost = 8;
  constexpr double kSame = 0.15;
  const auto agrees = [&](double ratio) {
    return std::abs(ratio / static_cast<double>(n) - 1) < kSame;
  };
  const bool split = agrees(whole.fp16 / part.fp16) && agrees(whole.memory / part.memory);
  return n >= 2 && n <= kMost && split ? n : 0;
}

// What a row says that it counts, by the word in the catalog's name of it: `n_gpus counts GCDs`,
// `Max Series 1550 (one stack)`.
std::string_view counted_part(const Run& run) {
  struct Part {
    std::string_view one, many, name;
  };
  static constexpr std::array<Part, 6> kParts = {{{"gcd", "gcds", "gcd"},
                                                  {"tile", "tiles", "tile"},
                                                  {"stack", "stacks", "tile"},
                                                  {"die", "dies", "die"},
                                                  {"core", "cores", "core"},
                                                  {"neuroncore", "neuroncores", "neuroncore"}}};
  const std::string gpu = clause_words(run.gpu), notes = clause_words(run.notes);
  for (const Part& part : kParts) {
    // `(2 stacks)` is what a package has.
    const bool several = affirms(gpu, {part.many}) && !number_before(gpu, part.many);
    if (several || affirms(gpu, {part.one})) return part.name;
    for (const std::string_view verb :
         {"counts ", "count ", "counted in ", "counted as ", "are "}) {
      if (affirms(notes, {std::string(verb) + std::string(part.many)})) return part.name;
    }
  }
  return {};
}

size_t common_start(const std::string& a, const std::string& b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

// The part that a row counts where it names the package, `8` of a node that holds four, 128 of a
// TPU v3-128; or the package where it names a shape of a cloud by parts.
const Accelerator* as_counted(const Run& run, const Accelerator* found, const Catalog& catalog,
                              bool shape = false) {
  const double memory = run.gpu_mem_gb.value_or(0) * 1e9;
  if (run.accelerators && slice_cores(run.gpu) == *run.accelerators) {
    const Accelerator* core = find_accelerator(catalog, found->name + "-core");
    if (core && memory < 1.5 * core->memory.v) return core;
  }
  constexpr double kSame = 0.12;  // of nominal memory
  const auto holds = [&](const Accelerator& a) {
    return std::abs(memory / a.memory.v - 1) < kSame;
  };
  const int64_t per_node = run.per_node.value_or(0);
  const bool whole = per_node > 0 && carries(catalog, *found, per_node);
  std::string_view told = counted_part(run);
  if (found->name.find(told) != std::string::npos) told = {};  // it is one
  const Accelerator* best = found;
  int strongest = 0;
  for (const Accelerator& a : catalog.accelerators) {
    const int64_t n = parts_of(*found, a), up = shape ? parts_of(a, *found) : 0;
    if (n == 0 && up == 0) continue;
    // A package of two is named with all its memory even where its halves are counted.
    const bool vetoed = n > 2 && memory > 0 && holds(*found);
    int evidence = 0;
    if (per_node > 0 && !whole && !vetoed && carries(catalog, a, per_node)) evidence = 3;
    if (n > 0 && memory > 0 && holds(a) && !holds(*found)) evidence += 2;
    if (n > 0 && !told.empty() && a.name.find(told) != std::string::npos) evidence += 2;
    // A sister's half is not its own: of equals the one whose name has most in common.
    const bool own = evidence == strongest && evidence > 0 &&
                     common_start(a.name, found->name) > common_start(best->name, found->name);
    if (evidence > strongest || (own && best != found)) best = &a, strongest = evidence;
  }
  return best;
}

}  // namespace

const Accelerator* choose_accelerator(const Run& run, const Catalog& catalog) {
  if (run.gpu.empty()) return nullptr;
  const std::string written = without_count(run.gpu), gpu = as_named(written);
  const std::string words = plain_words(gpu);
  if (says_any(words, kSeveral) || affirms(clause_words(gpu), {"mig"}) ||
      names_several(catalog, gpu))
    return nullptr;
  const Accelerator* found = find_accelerator(catalog, written);
  const bool shape = !found && of_shape(catalog, written);
  if (shape) found = of_shape(catalog, written);
  if (found && !run.gpu_mem_gb && !names_pcie(run, gpu))
    return as_counted(run, found, catalog, shape);
  found = nullptr;
  if (run.gpu_mem_gb) {
    found = find_accelerator(catalog, fmt::format("{}-{:.0f}GB", gpu, *run.gpu_mem_gb));
  }
  if (!found) found = find_accelerator(catalog, gpu);
  if (!found) found = contained(catalog, gpu);
  if (!found) found = contained(catalog, written);  // the G of `A10G` is no gigabyte
  if (!found) found = of_shape(catalog, gpu);
  if (!found) return nullptr;
  const double memory = run.gpu_mem_gb.value_or(memory_named(words));
  found = variant_of(catalog, run, *of_kind(catalog, *found, memory, words), memory, gpu);
  return as_counted(run, of_machine(catalog, *found, gpu), catalog, shape);
}

// `NVIDIA Hopper, 80 GB`: the part of a named architecture with that memory, or else the one that
// draws most, which is the one that clusters are built of. A part that one system was given draws a
// tenth more than its kind; another form draws at least half as much again.
const Accelerator* usual_accelerator(const Run& run, const Catalog& catalog) {
  const std::string words = plain_words(run.gpu);
  if (says_any(words, kSeveral)) return nullptr;
  constexpr double kOtherForm = 1.2;
  const Accelerator* best = nullptr;
  const double stated = run.gpu_mem_gb.value_or(memory_named(words));
  const auto distance = [&](const Accelerator& a) {
    return stated > 0 ? std::abs(a.memory.v / 1e9 - stated) : 0.0;
  };
  // `Blackwell Ultra` does not name Blackwell beside it.
  size_t longest = 0;
  for (const Accelerator& a : catalog.accelerators) {
    if (says(words, trimmed_cell(plain_words(a.architecture))))
      longest = std::max(longest, split_any(plain_words(a.architecture), " ").size());
  }
  const int64_t per_node = run.per_node.value_or(0);
  const auto placed = [&](const Accelerator& a) { return carries(catalog, a, per_node); };
  for (const Accelerator& a : catalog.accelerators) {
    if (a.architecture == kUnmeasured) continue;  // a word, not a name
    const std::string named = plain_words(a.architecture);
    if (!says(words, trimmed_cell(named)) || split_any(named, " ").size() < longest) continue;
    if (best && best->architecture != a.architecture) return nullptr;  // names two
    const bool nearer = !best || distance(a) < distance(*best) - 1;
    const bool as_near = nearer || distance(a) < distance(*best) + 1;
    // Nodes of so many hold one of them and not the other: B300 and GB300.
    const bool fits = as_near && !nearer && per_node > 0 && placed(a) != placed(*best);
    const bool heavier = as_near && !nearer && a.tdp > best->tdp * kOtherForm;
    if (nearer || (fits ? placed(a) : heavier)) best = &a;
  }
  return best;
}

// A word of a part's cell that makes it another part than the one it was found as: the A3 of
// `Ascend910 (A3 node)`, the 3000 or the laptop of `RTX PRO 3000 Laptop`. Sizes, forms and shapes
// of clouds are read elsewhere.
void tell_unread_part(const Accelerator& a, const std::string& gpu,
                      std::vector<std::string>& assumed) {
  std::string known = plain_words(a.name + " ; " + a.architecture);
  for (const std::string& alias : a.aliases) known += plain_words(alias).substr(1);
  const std::vector<std::string> words = split_any(plain_words(without_count(gpu)), " ");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (known.find(word) != std::string::npos) continue;
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    const bool model = digits && word.size() == 4 && word[0] != '1' && word[0] != '2';  // no year
    const bool kind = word == "laptop" || word == "mobile" || word == "ada" || word == "super";
    // One letter and one digit, but no version or shape of a cloud (`a3-highgpu-8g`,
    // `p6-b300.48xlarge`).
    const bool short_name =
        word.size() == 2 && word[0] != 'v' && !is_digit(word[0]) && is_digit(word[1]);
    const bool shape = gpu.find("xlarge") != std::string::npos ||
                       (i + 1 < words.size() && words[i + 1].ends_with("gpu"));
    if (!model && !kind && (!short_name || shape)) continue;
    assumed.push_back(fmt::format("accelerator {}, by a part of its name: {} is not known", a.name,
                                  sanitize(word, 20)));
    return;
  }
}

}  // namespace assay

#include "validate/machines.h"

#include <algorithm>

#include "base/text.h"
#include "validate/text.h"

namespace assay {

const Node* reference_node(const Catalog& catalog, const Accelerator& a, int64_t per_node,
                           std::string_view prefix) {
  const Node* any = nullptr;
  for (const Node& n : catalog.nodes) {
    if (n.accelerator != a.name || n.nics == 0 || !n.name.starts_with(prefix)) continue;
    if (n.accelerators == per_node || per_node == 0) return &n;
    if (!any) any = &n;
  }
  return any;
}

const Node* kin_node(const Catalog& catalog, const Accelerator& a, int64_t per_node) {
  const Node* best = nullptr;
  size_t nearest = 0;
  for (const Node& n : catalog.nodes) {
    const Accelerator* kin = find_accelerator(catalog, n.accelerator);
    if (!kin || n.nics == 0 || kin->vendor != a.vendor || kin->architecture != a.architecture ||
        kin->scaleup_link != a.scaleup_link || kin->compute_units > 3 * a.compute_units / 2 ||
        a.compute_units > 3 * kin->compute_units / 2) {
      continue;
    }
    const auto alike =
        std::mismatch(a.name.begin(), a.name.end(), n.accelerator.begin(), n.accelerator.end());
    const size_t common = static_cast<size_t>(alike.first - a.name.begin());
    const size_t score = 2 * common + (n.accelerators == per_node ? 1 : 0);
    if (score > nearest) {
      best = &n;
      nearest = score;
    }
  }
  return best;
}

bool carries(const Catalog& catalog, const Accelerator& a, int64_t per_node) {
  return std::any_of(catalog.nodes.begin(), catalog.nodes.end(), [&](const Node& n) {
    return n.accelerator == a.name && n.accelerators == per_node;
  });
}

std::vector<const Node*> nodes_named_in(const Catalog& catalog, const std::string& text,
                                        bool notes) {
  constexpr size_t kWordsMost = 4, kShortest = 4;  // of a name that is one word: `lumi`
  std::vector<const Node*> out;
  for (const std::string& clause : clauses_of(clause_words(text))) {
    const std::vector<std::string> words = split_any(clause, " ");
    for (size_t k = 0; k < words.size(); ++k) {
      // The longest name at each word: `GCP A3 Mega` before `GCP A3`.
      for (size_t n = std::min(kWordsMost, words.size() - k); n > 0; --n) {
        if (n == 1 && (notes || words[k].size() < kShortest)) continue;
        std::string name, phrase;
        for (size_t i = k; i < k + n; ++i) {
          // The point of `p5.48xlarge` is part of its name (world/names.h).
          if (i > k && is_digit(name.back()) && is_digit(words[i].front())) name += '.';
          name += words[i];
          phrase += (i > k ? " " : "") + words[i];
        }
        const auto known = catalog.aliases.find("nodes." + name);
        if (known == catalog.aliases.end()) continue;
        if (claims(clause, phrase) == true) out.push_back(find_node(catalog, known->second));
        k += n - 1;  // its words are no other's, denied or not
        break;
      }
    }
  }
  return out;
}

std::string family_of(const Accelerator& a) {
  size_t end = a.name.find('-');
  const std::string first = a.name.substr(0, end);
  if (end != std::string::npos && first.find_first_of("0123456789") == std::string::npos)
    end = a.name.find('-', end + 1);
  return a.name.substr(0, end);
}

}  // namespace assay

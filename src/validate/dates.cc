// Years and months of dates as people write them.
#include <array>

#include "validate/scenario.h"
#include "validate/text.h"

namespace assay {

int year_of(const std::string& date) {
  for (size_t i = 0; i + 4 <= date.size(); ++i) {
    if (date.compare(i, 2, "20") != 0) continue;
    const std::optional<double> year = cell_number(std::string_view(date).substr(i, 4));
    if (year && *year >= 2010 && *year < 2100) return static_cast<int>(*year);
  }
  // MLPerf's first rounds; later ones are of the software that their files name.
  const std::string words = plain_words(date);
  if (says(words, "mlperf v0") || says(words, "training v0")) return 2020;
  for (int version = 1; version < 3; ++version) {
    const std::string name = std::to_string(version);
    if (says(words, "mlperf v" + name) || says(words, "mlperf training v" + name))
      return 2020 + version;
  }
  return 0;
}

namespace {

// The month that a date names beside its year: `2024-05`, `2024/05`, `05.2024`, `20240517`,
// `May 2024`, `Q2 2024` (its first); zero: none.
int month_of(const std::string& date) {
  static constexpr std::array<std::string_view, 12> kMonths = {
      "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
  const std::vector<std::string> all = split_any(plain_words(date), " ");
  for (const std::string& word : all) {
    for (size_t m = 0; m < kMonths.size(); ++m) {
      if (word.starts_with(kMonths[m])) return static_cast<int>(m) + 1;
    }
    if (word.size() == 2 && word[0] == 'q' && word[1] >= '1' && word[1] <= '4')
      return 3 * (word[1] - '1') + 1;
    if (word.size() == 8 && word.starts_with("20"))
      return static_cast<int>(cell_number(word.substr(4, 2)).value_or(0));
  }
  // A number beside the year, joined to it: `2024-05`, `05/2024`.
  for (size_t i = 0; i < all.size(); ++i) {
    if (year_of(all[i]) == 0 || all[i].size() != 4) continue;
    const size_t at = date.find(all[i]);
    const auto joined = [&](size_t k) {
      return k < date.size() && std::string_view("-/._").find(date[k]) != std::string_view::npos;
    };
    const bool behind = joined(at + 4), before = at > 0 && joined(at - 1);
    const std::string other = behind && i + 1 < all.size() ? all[i + 1]
                              : before && i > 0            ? all[i - 1]
                                                           : "";
    const std::optional<double> n = cell_number(other);
    if (n && other.size() <= 2 && *n >= 1 && *n <= 12) return static_cast<int>(*n);
  }
  return 0;
}

}  // namespace

bool dated_from(const std::string& date, std::string_view first) {
  const int year = year_of(date), wanted = year_of(std::string(first));
  if (year != wanted) return year > wanted;
  const int month = month_of(date);
  return month > 0 && month >= month_of(std::string(first));
}

}  // namespace assay

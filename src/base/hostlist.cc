#include "base/hostlist.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"

namespace assay {
namespace {

constexpr size_t kMaxNameBytes = 256;

struct Range {
  uint64_t from = 0, to = 0;
  size_t width = 0;
};

tl::expected<std::vector<Range>, std::string> read_ranges(std::string_view text) {
  std::vector<Range> out;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const std::string_view low = part.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : part.substr(dash + 1);
    Range range;
    range.width = low.size();
    const auto a = std::from_chars(low.data(), low.data() + low.size(), range.from);
    const auto b = std::from_chars(high.data(), high.data() + high.size(), range.to);
    if (low.empty() || high.empty() || a.ec != std::errc() || b.ec != std::errc() ||
        a.ptr != low.data() + low.size() || b.ptr != high.data() + high.size()) {
      return tl::unexpected(std::string("a range that is no number"));
    }
    if (range.to < range.from) return tl::unexpected(std::string("a range that runs backwards"));
    out.push_back(range);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

// One element of the list: text and brackets in turn. The names so far times the next bracket.
tl::expected<std::vector<std::string>, std::string> expand_one(std::string_view text, size_t max) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const size_t open = text.find('[');
    const std::string_view plain = text.substr(0, open);
    for (std::string& name : names) name += plain;
    if (open == std::string_view::npos) break;
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) return tl::unexpected(std::string("a bracket stays open"));
    const auto ranges = read_ranges(text.substr(open + 1, close - open - 1));
    if (!ranges) return tl::unexpected(ranges.error());
    uint64_t numbers = 0;
    for (const Range& range : *ranges) {
      const uint64_t more = range.to - range.from;
      if (more >= max || numbers + more + 1 > max) numbers = max + 1;
      if (numbers <= max) numbers += more + 1;
    }
    if (numbers > max || names.size() * numbers > max || names.front().size() > kMaxNameBytes) {
      return tl::unexpected(fmt::format("more than {} hosts", max));
    }
    std::vector<std::string> next;
    next.reserve(names.size() * numbers);
    for (const std::string& name : names) {
      for (const Range& range : *ranges) {
        for (uint64_t n = range.from; n <= range.to; ++n) {
          next.push_back(fmt::format("{}{:0{}}", name, n, std::min(range.width, size_t{20})));
          if (n == UINT64_MAX) break;
        }
      }
    }
    names = std::move(next);
    text.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

tl::expected<std::vector<std::string>, std::string> expand_hostlist(std::string_view text,
                                                                    size_t max) {
  std::vector<std::string> out;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (depth < 0 || depth > 1) return tl::unexpected(std::string("brackets that do not match"));
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    const std::string_view part = text.substr(begin, i - begin);
    begin = i + 1;
    if (part.empty()) continue;
    const auto names = expand_one(part, max - out.size());
    if (!names) return tl::unexpected(names.error());
    if (out.size() + names->size() > max) {
      return tl::unexpected(fmt::format("more than {} hosts", max));
    }
    out.insert(out.end(), names->begin(), names->end());
  }
  if (depth != 0) return tl::unexpected(std::string("a bracket stays open"));
  return out;
}

std::string compress_hostlist(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  // Names that differ only in their last number share a bracket. A number keeps its leading zeros,
  // so its width belongs to the key where there are any.
  struct Part {
    std::string prefix, suffix;
    size_t width = 0;
    bool operator<(const Part& o) const {
      return std::tie(prefix, suffix, width) < std::tie(o.prefix, o.suffix, o.width);
    }
  };
  std::map<Part, std::vector<uint64_t>> numbers;
  std::vector<std::string> plain;
  for (const std::string& name : names) {
    size_t end = name.size();
    while (end > 0 && !is_digit(name[end - 1])) --end;
    size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    uint64_t value = 0;
    const auto read = std::from_chars(name.data() + begin, name.data() + end, value);
    if (begin == end || read.ec != std::errc()) {
      plain.push_back(name);
      continue;
    }
    numbers[{name.substr(0, begin), name.substr(end), name[begin] == '0' ? end - begin : 0}]
        .push_back(value);
  }
  // `08` and `10` are one range of width two: numbers without zeros join a padded key of their
  // width.
  for (auto& [part, values] : numbers) {
    if (part.width != 0) continue;
    for (auto& [padded, others] : numbers) {
      if (padded.width == 0 || padded.prefix != part.prefix || padded.suffix != part.suffix)
        continue;
      const auto moved = std::stable_partition(values.begin(), values.end(), [&](uint64_t v) {
        return fmt::formatted_size("{}", v) != padded.width;
      });
      others.insert(others.end(), moved, values.end());
      values.erase(moved, values.end());
    }
  }
  std::string out;
  const auto append = [&](const std::string& item) { out += out.empty() ? item : "," + item; };
  for (auto& [part, values] : numbers) {
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    std::string list;
    for (size_t i = 0; i < values.size();) {
      size_t j = i;
      while (j + 1 < values.size() && values[j + 1] == values[j] + 1) ++j;
      list += fmt::format("{}{:0{}}", list.empty() ? "" : ",", values[i], part.width);
      if (j > i) list += fmt::format("-{:0{}}", values[j], part.width);
      i = j + 1;
    }
    const bool single = values.size() == 1;
    append(single ? part.prefix + list + part.suffix
                  : part.prefix + "[" + list + "]" + part.suffix);
  }
  for (const std::string& name : plain) append(name);
  return out;
}

}  // namespace assay

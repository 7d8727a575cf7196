#include "base/hostlist.h"

#include <algorithm>
#include <charconv>

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

}  // namespace assay

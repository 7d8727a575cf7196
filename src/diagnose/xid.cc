#include "diagnose/xid.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/assert.h"
#include "config/yaml.h"
#include "ingest/text.h"
#include "world/embedded.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 6> kClasses = {"application", "driver", "memory",
                                                      "link",        "board",  "information"};
constexpr std::array<std::string_view, 4> kDrains = {"no", "yes", "fatal", "action"};
constexpr std::array<std::string_view, 3> kConfidences = {"low", "medium", "high"};

std::string_view text_of(const Value& entry, std::string_view key) {
  const Entry* found = entry.find(key);
  ASSERT(found != nullptr && found->value.is_scalar() && "catalog/xid.yaml: a key is missing");
  return found->value.text;
}

template <size_t N>
size_t choice(const std::array<std::string_view, N>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  ASSERT(found != words.end() && "catalog/xid.yaml: not one of the words it may be");
  return static_cast<size_t>(found - words.begin());
}

XidInfo info_of(const Entry& entry) {
  XidInfo info;
  const std::optional<uint64_t> code =
      entry.key.starts_with("xid-") ? unsigned_number(entry.key.substr(4)) : std::nullopt;
  ASSERT(code && *code > 0 && *code < 1000 && "catalog/xid.yaml: entries are named xid-N");
  info.code = static_cast<int>(*code);
  info.kind = static_cast<XidClass>(choice(kClasses, text_of(entry.value, "class")));
  info.drain = static_cast<XidDrain>(choice(kDrains, text_of(entry.value, "drain")));
  info.confidence =
      static_cast<Confidence>(choice(kConfidences, text_of(entry.value, "confidence")));
  info.what = text_of(entry.value, "what");
  info.action = text_of(entry.value, "action");
  return info;
}

std::vector<XidInfo> load_table() {
  std::vector<XidInfo> table;
  for (const auto& [name, text] : embedded_catalog()) {
    if (name != "xid.yaml") continue;
    Sources sources;
    Diagnostics problems;
    const std::optional<Value> root =
        parse_yaml(*sources.add("catalog/xid.yaml", std::string(text)), problems);
    ASSERT(root && root->is_map() && problems.empty() && "catalog/xid.yaml is valid");
    for (const Entry& entry : root->entries) {
      if (entry.key != "date") table.push_back(info_of(entry));
    }
  }
  std::sort(table.begin(), table.end(),
            [](const XidInfo& a, const XidInfo& b) { return a.code < b.code; });
  return table;
}

}  // namespace

const std::vector<XidInfo>& xid_table() {
  static const std::vector<XidInfo> kTable = load_table();
  return kTable;
}

const XidInfo* find_xid(int code) {
  const std::vector<XidInfo>& table = xid_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const XidInfo& info) { return info.code == code; });
  return found == table.end() ? nullptr : &*found;
}

bool must_drain(const XidInfo& info, bool fatal, std::string_view detail) {
  switch (info.drain) {
    case XidDrain::kNo:
      return false;
    case XidDrain::kYes:
      return true;
    case XidDrain::kIfFatal:
      return fatal;
    case XidDrain::kByAction: {
      // `GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)`
      const size_t to = detail.rfind(" to ");
      const std::string_view now = to == std::string_view::npos ? detail : detail.substr(to);
      return contains_any_case(now, "reset") || contains_any_case(now, "reboot") ||
             contains_any_case(now, "drain");
    }
  }
  return false;
}

}  // namespace assay

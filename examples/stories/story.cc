#include "story.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace assay {

const std::vector<NamedStory>& stories() {
  static const std::vector<NamedStory> all{{"team", team_story},       {"sixteen", sixteen_story},
                                           {"images", images_story},   {"pump", pump_story},
                                           {"phoenix", phoenix_story}, {"bill", bill_story},
                                           {"api", api_story},         {"tier", tier_story}};
  return all;
}

std::string story_text(const Story& s) {
  std::string out = fmt::format("{}\n  claim    {}\n", s.name, s.claim);
  for (const StoryInput& i : s.inputs) {
    out += fmt::format("  input    {}: {}  {}{}\n", i.name, i.value, i.mark,
                       i.survives.empty() ? "" : "   holds for " + i.survives);
  }
  for (const auto& [name, value] : s.figures)
    out += fmt::format("  outcome  {}: {}\n", name, value);
  out += fmt::format("  cause    {}\n  fix      {}\n  verdict  {}\n", s.cause, s.fix, s.verdict);
  for (const std::string& c : s.commands) out += fmt::format("  try      {}\n", c);
  return out;
}

std::string survives(double base, const std::vector<double>& tried,
                     const std::function<bool(double)>& holds) {
  const auto at = std::find(tried.begin(), tried.end(), base);
  ASSERT(at != tried.end());
  if (!holds(base)) return "none";
  auto low = at, high = at;
  while (low != tried.begin() && holds(*(low - 1))) --low;
  while (high + 1 != tried.end() && holds(*(high + 1))) ++high;
  return low == high ? fmt::format("{:g}", base) : fmt::format("{:g} to {:g}", *low, *high);
}

}  // namespace assay

#include "story.h"

#include <fmt/format.h>

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

std::string survives(const std::vector<double>& tried, const std::function<bool(double)>& holds) {
  std::string from, to;
  for (const double value : tried) {
    if (holds(value)) {
      if (from.empty()) from = fmt::format("{:g}", value);
      to = fmt::format("{:g}", value);
    } else if (!from.empty()) {
      break;
    }
  }
  return from.empty() ? "none" : from == to ? from : from + " to " + to;
}

}  // namespace assay

// Stories of the field, computed: a claim, the inputs taken from the catalog or assumed before the
// outcome is known, what happens with the cause and without it, and how far the conclusion holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace assay {

struct StoryInput {
  std::string name, value;
  char mark = 'a';       // as everywhere: m measured, s spec, c calibrated, a assumed
  std::string survives;  // the range of this input over which the conclusion holds
};

struct Story {
  std::string name;
  std::string claim;  // as told
  std::vector<StoryInput> inputs;
  std::vector<std::pair<std::string, std::string>> figures;  // what came out
  std::string cause, fix;
  bool symptom = false;        // with the cause
  bool without_cause = false;  // the same symptom when only the cause is removed: must not be
  std::string verdict;         // whether the claim holds up
  std::vector<std::string> commands;  // to see it with the program
};

struct NamedStory {
  const char* name;
  Story (*tell)(const std::string& folder);  // of the example files
};
const std::vector<NamedStory>& stories();

std::string story_text(const Story&);

// `36 to 46`: how far from `base` on the tried values, ascending and `base` among them, the
// conclusion holds without a gap; `none` where it does not hold for `base` itself.
std::string survives(double base, const std::vector<double>& tried,
                     const std::function<bool(double)>& holds);

Story team_story(const std::string& folder);
Story sixteen_story(const std::string& folder);
Story images_story(const std::string& folder);
Story pump_story(const std::string& folder);
Story phoenix_story(const std::string& folder);
Story bill_story(const std::string& folder);
Story api_story(const std::string& folder);
Story tier_story(const std::string& folder);

}  // namespace assay

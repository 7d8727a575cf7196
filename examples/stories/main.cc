// stories [NAME...]: tells them. Run it in the root of the repository, or give --examples FOLDER.
#include <cstdio>
#include <cstring>

#include "story.h"

int main(int argc, char** argv) {
  std::string folder = "examples/stories";
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--examples") == 0 && i + 1 < argc) {
      folder = argv[++i];
    } else {
      wanted.push_back(argv[i]);
    }
  }
  bool any = false;
  for (const assay::NamedStory& s : assay::stories()) {
    bool told = wanted.empty();
    for (const std::string& w : wanted) told = told || w == s.name;
    if (!told) continue;
    std::printf("%s%s", any ? "\n" : "", assay::story_text(s.tell(folder)).c_str());
    any = true;
  }
  if (any) return 0;
  std::fprintf(
      stderr,
      "stories: no such story; there are team, sixteen, images, pump, phoenix, bill, api, tier\n");
  return 2;
}

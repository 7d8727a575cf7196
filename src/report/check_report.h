// The screen and the document of `assay check`, and problems as JSON for any command.
#pragma once

#include "report/screen.h"
#include "world/describe.h"

namespace assay {

struct CheckedFile {
  std::string path;
  CheckReport report;
  std::string what;  // where it is no description: what it is
};

std::string check_text(const std::vector<CheckedFile>&, const Style&);
std::string check_json(const std::vector<CheckedFile>&, const Stamp&);

// `assay.error/1`: what a command with --json prints where the input or the world is wrong.
std::string errors_json(const Diagnostics&, const Stamp&);

}  // namespace assay

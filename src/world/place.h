// Problems that are found after a description was read: by the plan, or by weeks of a run.
#pragma once

#include "world/catalog.h"

namespace assay {

// At the value of the field `path` where it was stated; else at what was stated nearest to it: a
// field within it, or within the mapping above. What the catalog says is never to blame. The file
// is read again for the line and its column; of what cannot be, the line stays.
Diagnostic problem_of(const Origins&, std::string path, std::string message, std::string help);

}  // namespace assay

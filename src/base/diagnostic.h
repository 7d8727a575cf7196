// What is wrong with somebody's input, where, and how to mend it. Readers collect all of them
// before anything stops; the CLI renders them (file:line:column, source line, caret, the fix).
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace assay {

enum class Severity { kError, kWarning, kNote };

struct Position {
  std::string file;  // empty: no file (a command-line value)
  int line = 0;      // 1-based; 0: unknown
  int column = 0;    // 1-based; 0: unknown
  int length = 1;    // characters to underline
};

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string message;  // `unknown key `gpus_per_nod` in cluster`
  Position at;
  std::string source_line;  // the text of that line, sanitised, for the caret display
  std::string help;         // `did you mean `gpus_per_node`?`
};

using Diagnostics = std::vector<Diagnostic>;

bool has_errors(const Diagnostics&);

// One rustc-like block per diagnostic, ending in a newline. Plain ASCII, no colour.
std::string render(const Diagnostic&);
std::string render(const Diagnostics&);

// In the order of a file's lines; files in the order in which they first appear.
void sort_by_place(Diagnostics&);

// A failure of the world (file missing, device gone): exit code 3. Input failures are Diagnostics.
struct Failure {
  std::string message;    // what is wrong, without the thing's name: `no such file`
  std::string file = {};  // the thing, as the user named it; empty: none
  std::string help = {};  // how to mend it; empty: nobody knows
  int exit_code = 3;
};
// The same, to be shown among problems of the input: both look alike.
Diagnostic to_diagnostic(const Failure&);

template <class T>
using Result = tl::expected<T, Failure>;

// The closest of `candidates` to `word` by edit distance, or empty when none is near; of equally
// close ones that which begins alike and is as long.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// Text from outside made safe for a terminal: control characters and invalid UTF-8 become `?`,
// at most `max` characters are kept.
std::string sanitize(const std::string& text, size_t max = 200);

}  // namespace assay

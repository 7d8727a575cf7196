// How a result looks on a terminal: width, bars, colour, padding.
//
// Screens are plain text of at most `width` columns. Colour never carries meaning alone; bold is
// for the verdict only. Bars are `#` and `.`, or block characters where the terminal can show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Style {
  int width = 100;
  bool unicode = false;
  bool color = false;
  bool quiet = false;    // no next commands, no legend
  bool verbose = false;  // all that was assumed, all accounts
  bool timing = false;   // wall-clock time may be shown: a terminal, nobody compares bytes
};

// What makes a result reproducible; printed in the footer and in every JSON document.
struct Stamp {
  std::string version;
  std::string catalog_date;
  std::string seed;
  std::string inputs;          // operands as written, for suggested commands
  std::string gpus, settings;  // of the same: ` --gpus 64`, ` --set plan.tp=8`
  std::string saved;           // the file of -o
};
std::string footer(const Stamp&);

// Every figure carries the mark of where it comes from; this says what they mean.
constexpr std::string_view kMarks =
    "m measured  s vendor spec or stated  c calibrated model  a assumed";

// A bar for `share` of `columns`. Anything above nothing shows at least a dot.
std::string bar(double share, int columns, const Style&);

std::string left(const std::string& text, size_t columns);   // padded on the right
std::string right(const std::string& text, size_t columns);  // padded on the left
std::string bold(const std::string& text, const Style&);
std::string warning(const std::string& text, const Style&);  // yellow, with a leading `! `

// Words over lines of at most `width` columns; lines after the first start with `indent` spaces.
// Spaces at the start and between words stay.
std::string wrap(const std::string& text, int width, size_t indent = 0);

// A command line, broken before options only and so that a shell still takes it.
std::string command_lines(const std::string& command, int width, size_t indent);

// `text` and, at the right edge, `tail`: on one line, or on the next where there is no room.
std::string with_tail(const std::string& text, const std::string& tail, int width);

// The same without spaces at the ends of lines.
std::string trimmed_lines(const std::string&);

// Columns of text, each as wide as its widest cell; the first column is left-aligned, the others
// right. Rows may be shorter than the header.
std::string table(const std::vector<std::vector<std::string>>& rows, size_t indent = 2);

}  // namespace assay

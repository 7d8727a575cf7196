// A YAML text as checked values that know where they stand. Nothing here depends on a YAML library.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace assay {

// One text that values point into: a file, or one `--set`, without a byte order mark.
struct Source {
  std::string file;
  std::string text;
  std::vector<size_t> line_starts;
  size_t order = 0;  // among those of one reading: files first, then each `--set`
};

// Owns every text of a reading, so that marks stay valid. Addresses are stable.
class Sources {
 public:
  const Source* add(std::string file, std::string text);

 private:
  std::deque<Source> all_;
};

// A range of bytes of a source. Lines and columns are worked out only when something is wrong: on a
// hostile line of a megabyte, counting columns for every value would take minutes.
struct Mark {
  static constexpr size_t kWhole = static_cast<size_t>(-1);  // the source as a whole
  const Source* source = nullptr;
  size_t offset = kWhole;
  size_t length = 1;
};

std::string file_of(const Mark&);
int line_of(const Mark&);  // 1-based; 0: unknown

struct Entry;

struct Value {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Mark at;
  std::string text;            // of a scalar
  bool quoted = false;         // "8" is text, 8 is a number
  std::vector<Value> items;    // of a list
  std::vector<Entry> entries;  // of a mapping, in the order of the text, keys unique

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // The entry of a mapping, or null.
  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Entry {
  std::string key;
  Mark key_at;
  Value value;
};

Value scalar_value(std::string text, const Mark&);

// What stands at `accelerator.tdp` inside a mapping, or null.
const Value* find_path(const Value& map, std::string_view path);
// Whether `a` was said after `b`: later in one text, or in a later one.
bool said_later(const Mark& a, const Mark& b);
// The place of that of these paths which was stated last; of the whole when none was.
Mark last_stated(const Value& map, std::initializer_list<std::string_view> paths);

// A diagnostic at a mark, with the source line for the caret.
Diagnostic problem_at(const Mark&, std::string message, std::string help = "");

// Whether no further problem belongs on the list: more than a hundred help nobody, and hostile
// files have thousands. The list says once that it stops.
bool list_is_full(Diagnostics&);

}  // namespace assay

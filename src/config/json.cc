#include "config/json.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr int kDeepest = 32;  // levels; no config has so many, and each costs a call
constexpr size_t kMostValues = 200000;
constexpr std::string_view kBlanks = " \t\r\n";

// The UTF-8 form of one \uXXXX. Halves of a pair become `?`: names and keys have none.
std::string utf8_of(unsigned code) {
  const auto byte = [](unsigned b) { return static_cast<char>(static_cast<unsigned char>(b)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0u | (code >> 6)), byte(0x80u | (code & 0x3Fu))};
  if (code >= 0xD800 && code <= 0xDFFF) return "?";
  return {byte(0xE0u | (code >> 12)), byte(0x80u | ((code >> 6) & 0x3Fu)),
          byte(0x80u | (code & 0x3Fu))};
}

// Each step reads one thing from `at_` on and says whether to go on; false leaves a problem behind.
class JsonParser {
 public:
  JsonParser(const Source& source, Diagnostics& problems)
      : source_(source), text_(source.text), problems_(problems) {}

  bool document(Value& into) {
    if (text_.find_first_not_of(kBlanks) == std::string_view::npos) {
      problems_.push_back(problem_at({&source_, 0}, "the file is empty", "is it the right file?"));
      return false;
    }
    if (!value(into, 0)) return false;
    skip_blanks();
    return at_ == text_.size() ||
           fail(at_, 1, "text after the end of the document", "keep one `{ ... }`, and remove it");
  }

 private:
  bool fail(size_t offset, size_t length, std::string_view message, std::string help) {
    problems_.push_back(problem_at({&source_, offset, length},
                                   fmt::format("not valid JSON: {}", message), std::move(help)));
    return false;
  }

  // What was opened at `opened` is not closed when the text ends.
  bool cut(size_t opened) {
    const size_t last = text_.find_last_not_of(kBlanks);
    return fail(last, 1,
                fmt::format("the file ends inside the `{}` of line {}", text_[opened],
                            line_of({&source_, opened})),
                "the file may be cut: copy it whole, or close what is open");
  }

  void skip_blanks() { at_ = std::min(text_.size(), text_.find_first_not_of(kBlanks, at_)); }
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  bool value(Value& into, int depth) {
    skip_blanks();
    if (++values_ > kMostValues) {
      return fail(at_, 1, fmt::format("more than {} values", kMostValues),
                  "no model's config has so many: is it the right file?");
    }
    if (next_is('{') || next_is('[')) return container(into, depth);
    if (!next_is('"')) return word(into);
    const size_t begin = at_;
    std::string text;
    if (!quoted(text)) return false;
    into = scalar_value(std::move(text), {&source_, begin, at_ - begin});
    into.quoted = true;
    return true;
  }

  bool container(Value& into, int depth) {
    if (depth >= kDeepest) {
      return fail(at_, 1, fmt::format("nested deeper than {} levels", kDeepest),
                  "no model's config is: is it the right file?");
    }
    const size_t opened = at_++;
    const bool map = text_[opened] == '{';
    const char closing = map ? '}' : ']';
    into.kind = map ? Value::Kind::kMap : Value::Kind::kList;
    into.at = {&source_, opened, 1};
    std::unordered_set<std::string> keys;  // of a map: which of two values counts, nobody knows
    for (bool first = true;; first = false) {
      skip_blanks();
      if (at_ == text_.size()) return cut(opened);
      if (first && next_is(closing)) break;
      if (!(map ? entry(into, keys, opened, depth) : value(into.items.emplace_back(), depth + 1)))
        return false;
      skip_blanks();
      if (at_ == text_.size()) return cut(opened);
      if (next_is(closing)) break;
      if (!next_is(',')) {
        return fail(at_, 1, fmt::format("`,` or `{}` is expected", closing),
                    "put a comma between two values");
      }
      const size_t comma = at_++;
      skip_blanks();
      if (next_is(closing))
        return fail(comma, 1, "a comma with nothing after it", "remove the comma");
    }
    ++at_;
    return true;
  }

  bool entry(Value& map, std::unordered_set<std::string>& keys, size_t opened, int depth) {
    const size_t begin = at_;
    if (!next_is('"'))
      return fail(at_, 1, "a key in double quotes is expected", "write `\"key\": value`");
    Entry& e = map.entries.emplace_back();
    if (!quoted(e.key)) return false;
    e.key_at = {&source_, begin, at_ - begin};
    if (!keys.insert(e.key).second) {
      problems_.push_back(problem_at(
          e.key_at, fmt::format("duplicate key `{}`", sanitize(e.key, 60)), "keep one of the two"));
      return false;
    }
    skip_blanks();
    if (at_ == text_.size()) return cut(opened);
    if (!next_is(':')) return fail(at_, 1, "`:` is expected after a key", "write `\"key\": value`");
    ++at_;
    skip_blanks();
    if (at_ == text_.size()) return cut(opened);
    return value(e.value, depth + 1);
  }

  // A number, true, false or null.
  bool word(Value& into) {
    const size_t begin = at_;
    const size_t end = std::min(text_.size(), text_.find_first_of(" \t\r\n,:{}[]\"", at_));
    const std::string_view text = text_.substr(begin, end - begin);
    double ignored = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), ignored);
    const bool digits = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
    const bool number = digits && error != std::errc::invalid_argument &&
                        stop == text.data() + text.size() && !text.empty();
    if (!number && text != "true" && text != "false" && text != "null") {
      return fail(begin, std::max<size_t>(1, text.size()),
                  text.empty() ? "a value is missing"
                               : fmt::format("`{}` is no value", sanitize(std::string(text), 40)),
                  "write a number, true, false, null, or text in double quotes");
    }
    at_ = end;
    into.at = {&source_, begin, text.size()};
    if (text != "null") into = scalar_value(std::string(text), into.at);
    return true;
  }

  bool quoted(std::string& into) {
    const size_t opened = at_++;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\') {
        into += c;
      } else if (!escape(into)) {
        return fail(at_ - 1, 1, "an unknown escape", "write a backslash as `\\\\`");
      }
    }
    if (text_.find_first_not_of(kBlanks, at_) == std::string_view::npos) return cut(opened);
    return fail(opened, 1, "this quote is never closed", "add a closing `\"`");
  }

  // What stands after a backslash.
  bool escape(std::string& into) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) return true;  // the quote is open, which is said
    const char c = text_[at_++];
    if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
      into += kMeant[known];
      return true;
    }
    const std::string_view digits = text_.substr(at_, 4);
    unsigned code = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    const bool all = digits.size() == 4 && stop == digits.data() + digits.size();
    if (c != 'u' || error != std::errc() || !all) return false;
    at_ += 4;
    into += utf8_of(code);
    return true;
  }

  const Source& source_;
  std::string_view text_;
  Diagnostics& problems_;
  size_t at_ = 0;
  size_t values_ = 0;
};

}  // namespace

std::optional<Value> parse_json(const Source& source, Diagnostics& problems) {
  Value root;
  if (!JsonParser(source, problems).document(root)) return std::nullopt;
  return root;
}

}  // namespace assay

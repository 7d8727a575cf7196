#include "config/yaml.h"

#include <unordered_set>

#include <fmt/format.h>
#include <yaml.h>

#include "base/assert.h"
#include "config/text_check.h"

namespace assay {
namespace {

// The library counts characters, values count bytes. Its marks come nearly in the order of the
// text, so the last place is a good start for the next.
class Offsets {
 public:
  explicit Offsets(std::string_view text) : text_(text) {}

  size_t bytes_at(size_t character) {
    if (character < character_) byte_ = character_ = 0;
    while (character_ < character && byte_ < text_.size()) {
      ++byte_;
      while (byte_ < text_.size() && continues(text_[byte_])) ++byte_;
      ++character_;
    }
    return byte_;
  }

 private:
  static bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

  std::string_view text_;
  size_t character_ = 0;
  size_t byte_ = 0;
};

// What most often lies behind the library's words.
std::string advice(std::string_view problem) {
  struct Known {
    std::string_view problem, help;
  };
  constexpr Known kKnown[] = {
      {"did not find expected key", "write `key: value`, indented like its neighbours"},
      {"could not find expected ':'", "write `key: value`"},
      {"mapping values are not allowed in this context",
       "quote the text if it holds a colon, or start a new line"},
      {"did not find expected ',' or ']'", "close the list with `]`"},
      {"did not find expected ',' or '}'", "close the mapping with `}`"},
      {"did not find expected '-' indicator", "start every item of the list with `- `"},
      {"found character that cannot start any token", "put the text into quotes"},
  };
  for (const Known& k : kKnown) {
    if (k.problem == problem) return std::string(k.help);
  }
  return "look for an unquoted `{ } [ ] , : # & *` or a wrong indent here; quote text that has "
         "them";
}

// Builds the tree from the library's events: depth and number are checked while it parses, and
// duplicate keys are seen at all. Each step says whether to go on; false leaves a problem behind.
class Builder {
 public:
  Builder(const Source& source, const YamlLimits& limits, Diagnostics& problems)
      : source_(source), limits_(limits), problems_(problems), offsets_(source.text) {}

  Value take() { return std::move(root_); }

  bool on(const yaml_event_t& event) {
    const yaml_mark_t& at = event.start_mark;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (++documents_ == 1) return true;
        return fail(where(at, 3), "more than one YAML document", "keep one document per file");
      case YAML_ALIAS_EVENT:
        return fail(where(at, 1), "YAML aliases are not supported", "write the value out");
      case YAML_SCALAR_EVENT:
        return plain(at, event.data.scalar.anchor, event.data.scalar.tag) && scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return plain(at, event.data.sequence_start.anchor, event.data.sequence_start.tag) &&
               open(at, Value::Kind::kList);
      case YAML_MAPPING_START_EVENT:
        return plain(at, event.data.mapping_start.anchor, event.data.mapping_start.tag) &&
               open(at, Value::Kind::kMap);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close();
      default:
        return true;
    }
  }

  // Where the library gave up, and why.
  void broken(const yaml_parser_t& parser) {
    const std::string why = parser.problem != nullptr ? parser.problem : "out of memory";
    const std::string in = parser.context != nullptr ? parser.context : "";
    const bool quote = why == "found unexpected end of stream" && in.ends_with("quoted scalar");
    const Mark at = where(quote ? parser.context_mark : parser.problem_mark, 1);
    if (quote) {
      fail(at, "this quote is never closed",
           fmt::format("add a closing {}", source_.text.substr(at.offset, 1)));
      return;
    }
    std::string message = fmt::format("not valid YAML: {}{}{}", why, in.empty() ? "" : " ", in);
    // The text goes on to be read as if it were inside, so the mistake may be lines above.
    const bool bracket = in.find("flow") != std::string::npos;
    if (bracket) message += fmt::format(" that opens in line {}", parser.context_mark.line + 1);
    fail(at, std::move(message), advice(why));
  }

 private:
  // A list or mapping that is still being filled. `key` waits for its value.
  struct Open {
    Value value;
    Entry pending;
    bool has_key = false;
    bool duplicate = false;
    std::unordered_set<std::string> keys;
  };

  Mark where(const yaml_mark_t& mark, size_t length) {
    return {&source_, offsets_.bytes_at(mark.index), length};
  }

  bool fail(const Mark& at, std::string message, std::string help = "") {
    problems_.push_back(problem_at(at, std::move(message), std::move(help)));
    return false;
  }

  bool plain(const yaml_mark_t& at, const yaml_char_t* anchor, const yaml_char_t* tag) {
    if (anchor != nullptr) {
      return fail(where(at, 1), "YAML anchors are not supported",
                  "write the value out where needed");
    }
    if (tag == nullptr) return true;
    return fail(where(at, 1), "YAML tags are not supported",
                "remove the word that starts with `!`");
  }

  bool scalar(const yaml_event_t& event) {
    const auto& s = event.data.scalar;
    const std::string text(reinterpret_cast<const char*>(s.value), s.length);
    const bool unquoted = s.style == YAML_PLAIN_SCALAR_STYLE;
    const bool null = unquoted && (text.empty() || text == "~" || text == "null" ||
                                   text == "Null" || text == "NULL");
    const size_t begin = offsets_.bytes_at(event.start_mark.index);
    const size_t end = offsets_.bytes_at(event.end_mark.index);
    const bool block = s.style == YAML_LITERAL_SCALAR_STYLE || s.style == YAML_FOLDED_SCALAR_STYLE;
    const Mark at{&source_, begin, block || end <= begin ? 1 : end - begin};
    Value value;
    value.at = at;
    if (!null) value = scalar_value(text, at);
    value.quoted = !unquoted;
    return add(std::move(value));
  }

  bool open(const yaml_mark_t& mark, Value::Kind kind) {
    if (!stack_.empty() && stack_.back().value.is_map() && !stack_.back().has_key) {
      return fail(where(mark, 1), "a key must be plain text", "quote it if it holds brackets");
    }
    if (stack_.size() >= static_cast<size_t>(limits_.depth)) {
      return fail(where(mark, 1), fmt::format("nested deeper than {} levels", limits_.depth),
                  "no description is: is it the right file?");
    }
    Open next;
    next.value.kind = kind;
    next.value.at = where(mark, 1);
    stack_.push_back(std::move(next));
    return true;
  }

  bool close() {
    ASSERT(!stack_.empty());
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(value));
  }

  bool add(Value value) {
    if (++nodes_ > limits_.nodes) {
      return fail(value.at, fmt::format("more than {} values", limits_.nodes),
                  "no description has so many: is it the right file?");
    }
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& top = stack_.back();
    if (top.value.is_list()) {
      top.value.items.push_back(std::move(value));
    } else if (!top.has_key) {
      return take_key(top, value);
    } else {
      top.has_key = false;
      top.pending.value = std::move(value);
      if (!top.duplicate) top.value.entries.push_back(std::move(top.pending));
      top.pending = {};
    }
    return true;
  }

  bool take_key(Open& top, const Value& value) {
    if (!value.is_scalar()) return fail(value.at, "a key is missing before `:`");
    top.has_key = true;
    top.pending.key = value.text;
    top.pending.key_at = value.at;
    top.duplicate = !top.keys.insert(value.text).second;
    if (top.duplicate && !list_is_full(problems_)) {
      problems_.push_back(problem_at(
          value.at, fmt::format("duplicate key `{}`{}", sanitize(value.text, 60), parent_name()),
          "keep one of the two"));
    }
    return true;
  }

  std::string parent_name() const {
    if (stack_.size() < 2) return "";
    const Open& above = stack_[stack_.size() - 2];
    return above.has_key ? fmt::format(" in {}", sanitize(above.pending.key, 60)) : "";
  }

  const Source& source_;
  const YamlLimits& limits_;
  Diagnostics& problems_;
  Offsets offsets_;
  std::vector<Open> stack_;
  Value root_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

// True when the whole text was taken; false leaves a problem with the builder.
bool run_parser(const Source& source, Builder& builder) {
  struct Parser {
    yaml_parser_t it;
    ~Parser() { yaml_parser_delete(&it); }
  } parser;
  ASSERT(yaml_parser_initialize(&parser.it) == 1);
  yaml_parser_set_encoding(&parser.it, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(
      &parser.it, reinterpret_cast<const unsigned char*>(source.text.data()), source.text.size());
  for (bool more = true; more;) {
    yaml_event_t event;
    if (yaml_parser_parse(&parser.it, &event) == 0) {
      builder.broken(parser.it);
      return false;
    }
    more = event.type != YAML_STREAM_END_EVENT;
    const bool good = builder.on(event);
    yaml_event_delete(&event);
    if (!good) return false;
  }
  return true;
}

}  // namespace

std::optional<Value> parse_yaml(const Source& source, Diagnostics& problems,
                                const YamlLimits& limits) {
  if (std::optional<Diagnostic> d = check_text(source, limits)) {
    problems.push_back(std::move(*d));
    return {};
  }
  Builder builder(source, limits, problems);
  if (!run_parser(source, builder)) return {};
  return builder.take();
}

}  // namespace assay

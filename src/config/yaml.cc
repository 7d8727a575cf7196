#include "config/yaml.h"

#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/assert.h"
#include "config/text_check.h"

namespace assay {
namespace {

// Thrown through the library to stop it; never leaves this file.
struct Stop {};

// Builds the tree from the library's events. Using events instead of its nodes means that depth and
// number are checked while it parses, and that duplicate keys are seen at all.
class Builder : public YAML::EventHandler {
 public:
  Builder(const Source& source, const YamlLimits& limits, Diagnostics& problems)
      : source_(source), limits_(limits), problems_(problems) {}

  Value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      fail(where(mark, 3), "more than one YAML document", "keep one document per file");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Value value;
    value.at = where(mark, 1);
    add(std::move(value));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(where(mark, 1), "YAML aliases are not supported", "write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Value value = scalar_value(text, {});
    value.quoted = tag == "!";
    const size_t length = value.quoted ? quoted_length(mark) : text.size();
    value.at = where(mark, length);
    add(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark, 1); }

 private:
  // A list or mapping that is still being filled. `key` waits for its value.
  struct Open {
    Value value;
    Entry pending;
    bool has_key = false;
    bool duplicate = false;
    std::unordered_set<std::string> keys;
  };

  Mark where(const YAML::Mark& mark, size_t length) const {
    return {&source_, static_cast<size_t>(std::max(0, mark.pos)), length};
  }

  [[noreturn]] void fail(const Mark& at, std::string message, std::string help = "") {
    problems_.push_back(problem_at(at, std::move(message), std::move(help)));
    throw Stop{};
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    fail(where(mark, 1), "YAML anchors are not supported", "write the value out where needed");
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fail(where(mark, 1), "YAML tags are not supported", "remove the word that starts with `!`");
  }

  // Bytes from the opening to the closing quote. The library accepts a quote that never closes.
  size_t quoted_length(const YAML::Mark& mark) {
    const std::string& text = source_.text;
    const size_t begin = static_cast<size_t>(std::max(0, mark.pos));
    const char quote = begin < text.size() ? text[begin] : ' ';
    if (quote != '"' && quote != '\'') return 1;  // a block scalar
    for (size_t i = begin + 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
        if (!doubled) return i + 1 - begin;
        ++i;
      }
    }
    fail(where(mark, 1), "this quote is never closed", fmt::format("add a closing {}", quote));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Value::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (!stack_.empty() && stack_.back().value.is_map() && !stack_.back().has_key) {
      fail(where(mark, 1), "a key must be plain text", "quote it if it holds brackets");
    }
    if (stack_.size() >= static_cast<size_t>(limits_.depth)) {
      fail(where(mark, 1), fmt::format("nested deeper than {} levels", limits_.depth));
    }
    Open next;
    next.value.kind = kind;
    next.value.at = where(mark, 1);
    stack_.push_back(std::move(next));
  }

  void close() {
    ASSERT(!stack_.empty());
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(value));
  }

  void add(Value value) {
    if (++nodes_ > limits_.nodes) {
      fail(value.at, fmt::format("more than {} values", limits_.nodes));
    }
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& top = stack_.back();
    if (top.value.is_list()) {
      top.value.items.push_back(std::move(value));
    } else if (!top.has_key) {
      take_key(top, value);
    } else {
      top.has_key = false;
      top.pending.value = std::move(value);
      if (!top.duplicate) top.value.entries.push_back(std::move(top.pending));
      top.pending = {};
    }
  }

  void take_key(Open& top, const Value& value) {
    if (!value.is_scalar()) fail(value.at, "a key is missing before `:`");
    constexpr size_t kMaxProblems = 100;
    top.has_key = true;
    top.pending.key = value.text;
    top.pending.key_at = value.at;
    top.duplicate = !top.keys.insert(value.text).second;
    if (top.duplicate && problems_.size() < kMaxProblems) {
      problems_.push_back(problem_at(
          value.at, fmt::format("duplicate key `{}`{}", sanitize(value.text, 60), parent_name()),
          "keep one of the two"));
    }
  }

  std::string parent_name() const {
    if (stack_.size() < 2) return "";
    const Open& above = stack_[stack_.size() - 2];
    return above.has_key ? fmt::format(" in {}", sanitize(above.pending.key, 60)) : "";
  }

  const Source& source_;
  const YamlLimits& limits_;
  Diagnostics& problems_;
  std::vector<Open> stack_;
  Value root_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

void run_parser(const Source& source, Builder& builder) {
  std::istringstream in(source.text);
  YAML::Parser parser(in);
  while (parser.HandleNextDocument(builder)) {
  }
}

}  // namespace

std::optional<Value> parse_yaml(const Source& source, Diagnostics& problems,
                                const YamlLimits& limits) {
  if (std::optional<Diagnostic> d = check_text(source, limits)) {
    problems.push_back(std::move(*d));
    return {};
  }
  Builder builder(source, limits, problems);
  try {
    run_parser(source, builder);
    return builder.take();
  } catch (const Stop&) {
  } catch (const YAML::Exception& e) {
    const size_t offset = static_cast<size_t>(std::max(0, e.mark.pos));
    problems.push_back(problem_at({&source, offset}, fmt::format("not valid YAML: {}", e.msg)));
  } catch (const std::exception& e) {
    problems.push_back(problem_at({&source}, fmt::format("not valid YAML: {}", e.what())));
  }
  return {};
}

}  // namespace assay

// The machine has a stack of values, a stack of marks and a memo. Every instruction reads at least
// one byte and pushes at most one node, so work and memory are bounded by the input; the limits
// bound them again for hostile inputs of one-byte instructions.
#include "ingest/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>

#include "ingest/text.h"

namespace assay {
namespace {

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& file, const PlainLimits& limits)
      : bytes_(bytes), file_(file), limits_(limits) {}

  tl::expected<PlainDocument, Diagnostic> run() {
    while (!stopped_ && error_.empty()) {
      begin_ = at_;
      if (at_ >= bytes_.size()) {
        fail("the file ends before the pickle does (truncated?)");
        break;
      }
      step(static_cast<unsigned char>(bytes_[at_++]));
      if (out_.nodes.size() > limits_.nodes) {
        fail(fmt::format("more than {} values: not a dump of this kind", limits_.nodes));
      }
    }
    if (!error_.empty()) return tl::unexpected(problem());
    return std::move(out_);
  }

 private:
  Diagnostic problem() const {
    Diagnostic out;
    out.message = fmt::format("pickle, byte {}: {}", begin_, error_);
    out.at.file = file_;
    out.help = help_;
    return out;
  }
  void fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  // ---- reading ----
  bool take(size_t n, std::string_view& out) {
    if (n > bytes_.size() - at_) {
      fail("the file ends inside a value (truncated?)");
      return false;
    }
    out = bytes_.substr(at_, n);
    at_ += n;
    return true;
  }
  uint64_t number(size_t n) {
    std::string_view raw;
    if (!take(n, raw)) return 0;
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      fail("the file ends inside a value (truncated?)");
      return {};
    }
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // ---- building ----
  PlainId node(PlainKind kind) {
    out_.nodes.push_back({kind, 0, 0, 0});
    return static_cast<PlainId>(out_.nodes.size() - 1);
  }
  void push_integer(int64_t value, PlainKind kind = PlainKind::kInt) {
    const PlainId id = node(kind);
    out_.nodes[id].integer = value;
    stack_.push_back(id);
  }
  void push_real(double value) {
    const PlainId id = node(PlainKind::kReal);
    out_.nodes[id].real = value;
    stack_.push_back(id);
  }
  void push_text(std::string_view value, PlainKind kind) {
    const PlainId id = node(kind);
    out_.nodes[id].a = static_cast<uint32_t>(out_.text.size());
    out_.nodes[id].integer = static_cast<int64_t>(value.size());
    out_.text.append(value);
    stack_.push_back(id);
  }
  void push_sized_text(size_t width, PlainKind kind) {
    const uint64_t size = number(width);
    std::string_view value;
    if (!error_.empty()) return;
    if (size > bytes_.size()) {
      fail("a text longer than the file");
    } else if (take(static_cast<size_t>(size), value)) {
      push_text(value, kind);
    }
  }
  PlainId container(PlainKind kind, std::vector<PlainId> items) {
    const PlainId id = node(kind);
    out_.nodes[id].a = static_cast<uint32_t>(out_.lists.size());
    out_.lists.push_back(std::move(items));
    return id;
  }
  void push_container(PlainKind kind, std::vector<PlainId> items) {
    if (kind == PlainKind::kDict && items.size() % 2 != 0) {
      fail("a dict with a key and no value");
      return;
    }
    stack_.push_back(container(kind, std::move(items)));
  }
  bool need(size_t n) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor >= n) return true;
    fail("an instruction finds too few values on the stack");
    return false;
  }
  // Everything above the last mark.
  std::vector<PlainId> since_mark() {
    if (marks_.empty()) {
      fail("an instruction finds no mark");
      return {};
    }
    const size_t from = marks_.back();
    marks_.pop_back();
    std::vector<PlainId> out(stack_.begin() + static_cast<ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    return out;
  }
  void push_top(size_t n) {
    if (!need(n)) return;
    const std::vector<PlainId> items(stack_.end() - static_cast<ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    push_container(PlainKind::kTuple, items);
  }
  void extend(const std::vector<PlainId>& items, PlainKind kind) {
    if (!error_.empty() || !need(1)) return;
    const PlainNode& target = out_.at(stack_.back());
    if (target.kind != kind || (kind == PlainKind::kDict && items.size() % 2 != 0)) {
      fail("items are added to a value that cannot hold them");
      return;
    }
    std::vector<PlainId>& list = out_.lists[target.a];
    list.insert(list.end(), items.begin(), items.end());
  }
  void extend_by(size_t n, PlainKind kind) {
    if (!need(n + 1)) return;
    const std::vector<PlainId> items(stack_.end() - static_cast<ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    extend(items, kind);
  }

  // ---- memo ----
  void put(uint64_t key) {
    if (!need(1)) return;
    if (memo_.size() >= limits_.memo) {
      fail(fmt::format("more than {} remembered values", limits_.memo));
      return;
    }
    memo_[key] = stack_.back();
  }
  void get(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) {
      fail(fmt::format("refers to value {} that was never stored", key));
    } else {
      stack_.push_back(found->second);
      // A value on the stack costs memory too, though it makes no node.
      if (stack_.size() > limits_.nodes) fail("too many values on the stack");
    }
  }
  uint64_t line_number() {
    const std::string_view digits = line();
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size())
      fail("a memo key is no number");
    return value;
  }

  // ---- numbers and texts of the old text protocol ----
  void decimal(std::string_view digits) {
    if (digits == "00" || digits == "01") {
      push_integer(digits == "01", PlainKind::kBool);
      return;
    }
    if (!digits.empty() && digits.back() == 'L') digits.remove_suffix(1);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code == std::errc() && end == digits.data() + digits.size() && !digits.empty()) {
      push_integer(value);
    } else {
      real(digits);
    }
  }
  void real(std::string_view digits) {
    const std::string text(digits.substr(0, 400));
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) {
      fail("a number that is none");
    } else {
      push_real(value);
    }
  }
  void long_bytes(uint64_t size) {
    std::string_view raw;
    if (!error_.empty()) return;
    if (size > bytes_.size() || !take(static_cast<size_t>(size), raw)) {
      fail("a number longer than the file");
      return;
    }
    const bool negative = !raw.empty() && (static_cast<unsigned char>(raw.back()) & 0x80) != 0;
    if (raw.size() <= 8) {
      uint64_t value = negative ? ~uint64_t{0} : 0;
      for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
      push_integer(static_cast<int64_t>(value));
      return;
    }
    double value = 0;
    for (size_t i = raw.size(); i-- > 0;) value = value * 256 + static_cast<unsigned char>(raw[i]);
    if (negative)
      value -= std::ldexp(1.0, static_cast<int>(std::min<size_t>(raw.size(), 4096)) * 8);
    push_real(std::isnan(value) ? -HUGE_VAL : value);
  }
  // A quoted text of protocol 0; escapes stay as they are written, which is enough for names.
  void quoted(std::string_view text) {
    if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') ||
        text.back() != text.front()) {
      fail("a text without its quotes");
      return;
    }
    push_text(text.substr(1, text.size() - 2), PlainKind::kText);
  }

  // ---- what is refused ----
  void refuse(std::string_view instruction, std::string_view name) {
    fail(name.empty() ? fmt::format("instruction {} is refused", instruction)
                      : fmt::format("instruction {} asks for `{}` and is refused", instruction,
                                    sanitize(std::string(name.substr(0, 400)), 100)));
    help_ =
        "pickles are read as plain data; this one tries to import or call something: do not "
        "open it with Python";
  }
  void refuse_global(std::string_view instruction) {
    const std::string module(line());
    const std::string name(line());
    error_.clear();  // a cut name is refused as well
    refuse(instruction, module + "." + name);
  }
  void refuse_stack_global() {
    std::string name;
    if (stack_.size() >= 2) {
      name = std::string(out_.text_of(stack_[stack_.size() - 2])) + "." +
             std::string(out_.text_of(stack_.back()));
    }
    refuse("STACK_GLOBAL", name);
  }

  // ---- the instructions ----
  void step(unsigned char code) {
    if (!step_value(code) && !step_container(code) && !step_memo(code) && !step_refused(code)) {
      fail(fmt::format("unknown instruction {:#04x}: not a pickle, or a damaged one", code));
    }
  }
  bool step_value(unsigned char code) {
    switch (code) {
      case 'N':
        stack_.push_back(node(PlainKind::kNone));
        return true;
      case 0x88:
      case 0x89:
        push_integer(code == 0x88, PlainKind::kBool);
        return true;
      case 'I':
      case 'L':
        decimal(line());
        return true;
      case 'J':
        push_integer(static_cast<int32_t>(number(4)));
        return true;
      case 'K':
        push_integer(static_cast<int64_t>(number(1)));
        return true;
      case 'M':
        push_integer(static_cast<int64_t>(number(2)));
        return true;
      case 0x8a:
        long_bytes(number(1));
        return true;
      case 0x8b:
        long_bytes(number(4));
        return true;
      case 'F':
        real(line());
        return true;
      case 'G': {
        std::string_view raw;
        uint64_t bits = 0;
        if (take(8, raw)) {
          for (const char c : raw) bits = bits << 8 | static_cast<unsigned char>(c);
        }
        push_real(std::bit_cast<double>(bits));
        return true;
      }
      default:
        return step_text(code);
    }
  }
  bool step_text(unsigned char code) {
    switch (code) {
      case 'S':
        quoted(line());
        return true;
      case 'V':
        push_text(line(), PlainKind::kText);
        return true;
      case 'U':
      case 0x8c:
        push_sized_text(1, PlainKind::kText);
        return true;
      case 'T':
      case 'X':
        push_sized_text(4, PlainKind::kText);
        return true;
      case 0x8d:
        push_sized_text(8, PlainKind::kText);
        return true;
      case 'C':
        push_sized_text(1, PlainKind::kBytes);
        return true;
      case 'B':
        push_sized_text(4, PlainKind::kBytes);
        return true;
      case 0x8e:
      case 0x96:
        push_sized_text(8, PlainKind::kBytes);
        return true;
      default:
        return false;
    }
  }
  bool step_container(unsigned char code) {
    switch (code) {
      case ']':
        push_container(PlainKind::kList, {});
        return true;
      case '}':
        push_container(PlainKind::kDict, {});
        return true;
      case ')':
        push_container(PlainKind::kTuple, {});
        return true;
      case 0x8f:
        push_container(PlainKind::kSet, {});
        return true;
      case 'l':
        push_container(PlainKind::kList, since_mark());
        return true;
      case 'd':
        push_container(PlainKind::kDict, since_mark());
        return true;
      case 't':
        push_container(PlainKind::kTuple, since_mark());
        return true;
      case 0x91:
        push_container(PlainKind::kSet, since_mark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push_top(code - 0x84u);
        return true;
      case 'a':
        extend_by(1, PlainKind::kList);
        return true;
      case 'e':
        extend(since_mark(), PlainKind::kList);
        return true;
      case 's':
        extend_by(2, PlainKind::kDict);
        return true;
      case 'u':
        extend(since_mark(), PlainKind::kDict);
        return true;
      case 0x90:
        extend(since_mark(), PlainKind::kSet);
        return true;
      default:
        return false;
    }
  }
  bool step_memo(unsigned char code) {
    switch (code) {
      case 'p':
        put(line_number());
        return true;
      case 'q':
        put(number(1));
        return true;
      case 'r':
        put(number(4));
        return true;
      case 0x94:
        put(memo_.size());
        return true;
      case 'g':
        get(line_number());
        return true;
      case 'h':
        get(number(1));
        return true;
      case 'j':
        get(number(4));
        return true;
      default:
        return step_control(code);
    }
  }
  bool step_control(unsigned char code) {
    switch (code) {
      case '(':
        marks_.push_back(stack_.size());
        if (marks_.size() > limits_.nodes) fail("too many marks");
        return true;
      case '.':
        if (stack_.empty()) {
          fail("the pickle holds no value");
        } else {
          out_.root = stack_.back();
        }
        stopped_ = true;
        return true;
      case '0':
        if (need(1)) stack_.pop_back();
        return true;
      case '1':
        since_mark();
        return true;
      case '2':
        if (need(1)) stack_.push_back(stack_.back());
        if (stack_.size() > limits_.nodes) fail("too many values on the stack");
        return true;
      case 0x80:
        if (const uint64_t version = number(1); version > 5) {
          fail(fmt::format("protocol {} is unknown (0 to 5 are read)", version));
        }
        return true;
      case 0x95:  // FRAME: only a hint for buffered readers
        number(8);
        return true;
      default:
        return false;
    }
  }
  bool step_refused(unsigned char code) {
    switch (code) {
      case 'c':
        refuse_global("GLOBAL");
        return true;
      case 'i':
        refuse_global("INST");
        return true;
      case 0x93:
        refuse_stack_global();
        return true;
      case 'P':
        refuse("PERSID", line());
        return true;
      default:
        break;
    }
    struct Refused {
      unsigned char code;
      const char* name;
    };
    static constexpr Refused kRefused[] = {
        {'Q', "BINPERSID"},
        {'R', "REDUCE"},
        {'b', "BUILD"},
        {'o', "OBJ"},
        {0x81, "NEWOBJ"},
        {0x82, "EXT1"},
        {0x83, "EXT2"},
        {0x84, "EXT4"},
        {0x92, "NEWOBJ_EX"},
        {0x97, "NEXT_BUFFER"},
        {0x98, "READONLY_BUFFER"},
    };
    for (const Refused& refused : kRefused) {
      if (refused.code != code) continue;
      refuse(refused.name, {});
      return true;
    }
    return false;
  }

  std::string_view bytes_;
  const std::string& file_;
  const PlainLimits& limits_;
  size_t at_ = 0;
  size_t begin_ = 0;  // of the instruction now running
  bool stopped_ = false;
  std::string error_;
  std::string help_;
  PlainDocument out_;
  std::vector<PlainId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PlainId> memo_;
};

}  // namespace

tl::expected<PlainDocument, Diagnostic> read_pickle(std::string_view bytes, const std::string& file,
                                                    const PlainLimits& limits) {
  if (bytes.size() > UINT32_MAX) {
    return tl::unexpected(problem(Severity::kError, "larger than 4 GiB: not read", file));
  }
  return Machine(bytes, file, limits).run();
}

bool looks_like_pickle(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const unsigned char first = static_cast<unsigned char>(bytes[0]);
  const unsigned char second = static_cast<unsigned char>(bytes[1]);
  if (first == 0x80) return second >= 2 && second <= 5;
  if (first == '(') return second == 'd' || second == 'l' || second == 'i' || second == 'c';
  return (first == '}' || first == ']') && (second == 'q' || second == 'p' || second == '(');
}

}  // namespace assay

#include "ingest/plain.h"

#include <cmath>

#include <fmt/format.h>
#include <simdjson.h>

#include "ingest/text.h"

namespace assay {

std::string_view PlainDocument::text_of(PlainId id) const {
  const PlainNode& node = at(id);
  if (node.kind != PlainKind::kText && node.kind != PlainKind::kBytes) return {};
  return std::string_view(text).substr(node.a, static_cast<size_t>(node.integer));
}

const std::vector<PlainId>& PlainDocument::items(PlainId id) const {
  static const std::vector<PlainId> kEmpty;
  const PlainNode& node = at(id);
  return node.kind < PlainKind::kList ? kEmpty : lists[node.a];
}

bool PlainDocument::find(PlainId dict, std::string_view key, PlainId& value) const {
  if (at(dict).kind != PlainKind::kDict) return false;
  const std::vector<PlainId>& all = items(dict);
  for (size_t i = all.size() / 2; i-- > 0;) {
    if (at(all[2 * i]).kind == PlainKind::kText && text_of(all[2 * i]) == key) {
      value = all[2 * i + 1];
      return true;
    }
  }
  return false;
}

int64_t PlainDocument::integer_or(PlainId id, int64_t otherwise) const {
  const PlainNode& node = at(id);
  if (node.kind == PlainKind::kInt || node.kind == PlainKind::kBool) return node.integer;
  constexpr double kWhole = 9007199254740992.0;  // 2^53: every whole real below it is exact
  if (node.kind == PlainKind::kReal && std::fabs(node.real) < kWhole &&
      node.real == std::floor(node.real)) {
    return static_cast<int64_t>(node.real);
  }
  return otherwise;
}

namespace {

// Copies a parsed JSON value into the arena. The parser bounds the depth of its input (1024), so
// recursion is safe here.
class JsonCopy {
 public:
  JsonCopy(PlainDocument& out, const PlainLimits& limits) : out_(out), limits_(limits) {}

  bool full() const { return out_.nodes.size() >= limits_.nodes; }

  PlainId add(const simdjson::dom::element& value) {
    if (full()) return 0;
    switch (value.type()) {
      case simdjson::dom::element_type::ARRAY:
        return array(value);
      case simdjson::dom::element_type::OBJECT:
        return object(value);
      case simdjson::dom::element_type::STRING:
        return text(std::string_view(value));
      default:
        return scalar(value);
    }
  }

 private:
  PlainId node(PlainKind kind) {
    out_.nodes.push_back({kind, 0, 0, 0});
    return static_cast<PlainId>(out_.nodes.size() - 1);
  }
  PlainId container(PlainKind kind) {
    const PlainId id = node(kind);
    out_.nodes[id].a = static_cast<uint32_t>(out_.lists.size());
    out_.lists.emplace_back();
    return id;
  }
  PlainId text(std::string_view value) {
    const PlainId id = node(PlainKind::kText);
    out_.nodes[id].a = static_cast<uint32_t>(out_.text.size());
    out_.nodes[id].integer = static_cast<int64_t>(value.size());
    out_.text.append(value);
    return id;
  }
  PlainId array(const simdjson::dom::element& value) {
    const PlainId id = container(PlainKind::kList);
    for (const simdjson::dom::element child : simdjson::dom::array(value)) {
      if (full()) break;
      const PlainId child_id = add(child);
      out_.lists[out_.nodes[id].a].push_back(child_id);
    }
    return id;
  }
  PlainId object(const simdjson::dom::element& value) {
    const PlainId id = container(PlainKind::kDict);
    for (const simdjson::dom::key_value_pair field : simdjson::dom::object(value)) {
      if (full()) break;
      const PlainId key = text(field.key);
      const PlainId child = add(field.value);
      out_.lists[out_.nodes[id].a].insert(out_.lists[out_.nodes[id].a].end(), {key, child});
    }
    return id;
  }
  PlainId scalar(const simdjson::dom::element& value) {
    if (value.is_bool()) {
      const PlainId id = node(PlainKind::kBool);
      out_.nodes[id].integer = bool(value) ? 1 : 0;
      return id;
    }
    if (value.is_int64()) {
      const PlainId id = node(PlainKind::kInt);
      out_.nodes[id].integer = int64_t(value);
      return id;
    }
    if (value.is_number()) {
      const PlainId id = node(PlainKind::kReal);
      out_.nodes[id].real = double(value);
      return id;
    }
    return node(PlainKind::kNone);
  }

  PlainDocument& out_;
  const PlainLimits& limits_;
};

// Bytes that no JSON text may hold are replaced, one for one, so that offsets stay true.
std::string cleaned(std::string_view bytes) {
  std::string out(bytes);
  size_t i = 0;
  while (i < out.size()) {
    const unsigned char c = static_cast<unsigned char>(out[i]);
    if (c < 0x80) {
      if (c < 0x20 && c != '\n' && c != '\r' && c != '\t') out[i] = '?';
      ++i;
      continue;
    }
    const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c >= 0xc2 && c < 0xf5 && i + length <= out.size() &&
        simdjson::validate_utf8(out.data() + i, length)) {
      i += length;
    } else {
      out[i++] = '?';
    }
  }
  return out;
}

}  // namespace

tl::expected<PlainDocument, Diagnostic> read_plain_json(std::string_view bytes,
                                                        const std::string& file,
                                                        const PlainLimits& limits) {
  if (bytes.size() > UINT32_MAX) {
    return tl::unexpected(problem(Severity::kError, "larger than 4 GiB: not read", file));
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::error_code error = parser.parse(bytes.data(), bytes.size()).get(root);
  if (error == simdjson::UTF8_ERROR || error == simdjson::UNESCAPED_CHARS) {
    const std::string clean = cleaned(bytes);
    error = parser.parse(clean).get(root);
  }
  if (error != simdjson::SUCCESS) {
    return tl::unexpected(
        problem(Severity::kError, fmt::format("not JSON: {}", error_message(error)), file));
  }
  PlainDocument out;
  JsonCopy copy(out, limits);
  out.root = copy.add(root);
  if (copy.full()) {
    return tl::unexpected(
        problem(Severity::kError,
                fmt::format("more than {} values: not a dump of this kind", limits.nodes), file));
  }
  return out;
}

}  // namespace assay

#include "ingest/kineto_texts.h"

#include <cstring>

namespace assay {

using scan::Kind;
using scan::Slice;

Interner::Interner(std::vector<std::string>& strings) : strings_(strings), slots_(1024) {
  if (strings_.empty()) strings_.emplace_back();
}

namespace {

// Eight bytes at a time; good enough for a table, and never seen from outside.
uint32_t hash_of(std::string_view text) {
  uint64_t h = text.size() * 0x9E3779B97F4A7C15u;
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0xC2B2AE3D27D4EB4Fu;
    h ^= h >> 29;
  }
  uint64_t word = 0;
  std::memcpy(&word, p, left);
  h = (h ^ word) * 0xC2B2AE3D27D4EB4Fu;
  return static_cast<uint32_t>(h ^ (h >> 32));
}

}  // namespace

uint32_t* Interner::find(std::string_view text, uint32_t hash) {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.index == 0) {
      slot.hash = hash;
      return &slot.index;
    }
    if (slot.hash == hash && strings_[slot.index] == text) return &slot.index;
  }
}

void Interner::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.index == 0) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].index != 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

uint32_t Interner::add(std::string_view text) {
  if (text.empty()) return 0;
  const uint32_t hash = hash_of(text);
  uint32_t* index = find(text, hash);
  if (*index != 0) return *index;
  const uint32_t made = static_cast<uint32_t>(strings_.size());
  *index = made;
  strings_.emplace_back(text);
  bytes_ += text.size() + sizeof(std::string);
  if (strings_.size() * 2 > slots_.size()) grow();
  return made;
}

uint32_t Interner::add_text(Slice text) {
  if (text.size == 0) return 0;
  if (text.kind != Kind::kEscapedText) {
    // A text that is in the table already was looked at when it came first.
    const uint32_t hash = hash_of(text.view());
    const uint32_t* index = find(text.view(), hash);
    if (*index != 0) return *index;
    if (scan::clean(text.view())) return add(text.view());
  }
  bool repaired = false;
  const std::string decoded = scan::decode(text, repaired);
  repaired_ += repaired ? 1 : 0;
  return add(decoded);
}

uint32_t Interner::add_value(Slice value) {
  const std::string_view raw = value.view();
  if (raw.find('\n') == std::string_view::npos) return add(raw);
  std::string line;  // an indented file spreads an array over lines
  for (size_t i = 0; i < raw.size(); ++i) {
    if (!scan::blank(raw[i])) line.push_back(raw[i]);
    if (raw[i] == ',') line.push_back(' ');
  }
  return add(line);
}

}  // namespace assay

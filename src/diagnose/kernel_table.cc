#include "diagnose/kernel_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/text.h"

namespace assay {
namespace {

constexpr int64_t kThreadsPerBlock = 128;  // of PyTorch's vectorised element-wise kernels
constexpr int64_t kDimensionMost = (int64_t{1} << 31) - 1;
constexpr size_t kArgumentsMost = 64, kNumbersMost = 8;

// The annotation around an operator that says more than it: the optimizer's step.
uint32_t outer_name(const Trace& t, int32_t op) {
  for (int depth = 0; op >= 0 && depth < 64; ++depth) {
    const HostEvent& e = t.host[static_cast<size_t>(op)];
    if (contains(t.text(e.name), "Optimizer.step")) return e.name;
    op = e.parent;
  }
  return 0;
}

// The operator behind an event, or the first around it, that has its shapes recorded.
const HostEvent* shaped_op(const Trace& t, const DeviceEvent& e, std::string_view prefix) {
  int32_t op = e.op;
  for (int depth = 0; op >= 0 && depth < 8; ++depth) {
    const HostEvent& h = t.host[static_cast<size_t>(op)];
    if (h.shapes != 0 && t.text(h.name).substr(0, prefix.size()) == prefix) return &h;
    op = h.parent;
  }
  return nullptr;
}

bool sane(const std::vector<int64_t>& dims) {
  for (int64_t d : dims) {
    if (d < 1 || d > kDimensionMost) return false;
  }
  return true;
}

// The number after `<` and after each `, ` of a template's arguments: `kernel<128, 4, ...`.
std::vector<int64_t> leading_numbers(std::string_view name, size_t most) {
  std::vector<int64_t> out;
  size_t at = name.find('<');
  while (at != std::string_view::npos && out.size() < most) {
    ++at;
    while (at < name.size() && name[at] == ' ') ++at;
    int64_t value = 0;
    const size_t begin = at;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9' && value < 4096) {
      value = value * 10 + (name[at++] - '0');
    }
    if (at == begin) break;
    out.push_back(value);
    if (at >= name.size() || name[at] != ',') break;
  }
  return out;
}

std::optional<Flops> convolution_flops(const Trace& t, const DeviceEvent& e) {
  const HostEvent* op = shaped_op(t, e, "aten::conv");
  if (op == nullptr) op = shaped_op(t, e, "aten::cudnn_convolution");
  if (op == nullptr) return std::nullopt;
  const auto dims = parse_dims(t.text(op->shapes));
  // Forward: input [b, c, h, w], weight [o, c/g, kh, kw]. The output's size needs the stride, which
  // only the concrete inputs tell; without it the output is taken as large as the input.
  if (dims.size() < 2 || dims[0].size() != 4 || dims[1].size() != 4) return std::nullopt;
  if (!sane(dims[0]) || !sane(dims[1])) return std::nullopt;
  double stride = 1;
  const auto inputs = t.text(op->inputs);
  if (const size_t at = inputs.find("[2, 2]"); at != std::string_view::npos) stride = 2;
  const double out =
      static_cast<double>(dims[0][2]) * static_cast<double>(dims[0][3]) / (stride * stride);
  const double weight = static_cast<double>(dims[1][0]) * static_cast<double>(dims[1][1]) *
                        static_cast<double>(dims[1][2]) * static_cast<double>(dims[1][3]);
  return Flops(2 * static_cast<double>(dims[0][0]) * out * weight);
}

std::optional<Flops> attention_flops(const Trace& t, const DeviceEvent& e) {
  const HostEvent* op = shaped_op(t, e, "aten::_scaled_dot_product");
  if (op == nullptr) op = shaped_op(t, e, "aten::scaled_dot_product");
  if (op == nullptr) return std::nullopt;
  const bool backward = contains(t.text(op->name), "backward");
  const auto dims = parse_dims(t.text(op->shapes));
  const size_t q = backward ? 1 : 0;
  if (dims.size() < q + 2 || dims[q].size() != 4 || dims[q + 1].size() != 4) return std::nullopt;
  if (!sane(dims[q]) || !sane(dims[q + 1])) return std::nullopt;
  const double pairs = static_cast<double>(dims[q][0]) * static_cast<double>(dims[q][1]) *
                       static_cast<double>(dims[q][2]) * static_cast<double>(dims[q + 1][2]);
  return Flops((backward ? 10.0 : 4.0) * pairs * static_cast<double>(dims[q][3]));
}

}  // namespace

std::vector<int32_t> events_by_launch(const Trace& t) {
  std::vector<int32_t> events;
  for (size_t i = 0; i < t.device.size(); ++i) {
    if (t.device[i].launch >= 0) events.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(events.begin(), events.end(), [&](int32_t a, int32_t b) {
    return t.device[static_cast<size_t>(a)].launch < t.device[static_cast<size_t>(b)].launch;
  });
  return events;
}

KernelTable kernel_table(const Trace& t) {
  KernelTable table;
  table.event_class.reserve(t.device.size());
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, Role>, uint32_t> known;
  std::vector<uint32_t> outer(t.host.size(), 0);
  std::vector<char> asked(t.host.size(), 0);
  for (const DeviceEvent& e : t.device) {
    uint32_t op = 0, around = 0;
    if (e.op >= 0) {
      const size_t i = static_cast<size_t>(e.op);
      op = t.host[i].name;
      if (asked[i] == 0) {
        outer[i] = outer_name(t, e.op);
        asked[i] = 1;
      }
      around = outer[i];
    }
    const auto [it, fresh] = known.try_emplace({e.name, op, around, e.role},
                                               static_cast<uint32_t>(table.classes.size()));
    if (fresh) {
      KernelClass c = classify_kernel(t.text(e.name), t.text(op), t.text(around));
      if (e.role == Role::kCommunication) c.kind = KernelKind::kCommunication;
      table.classes.push_back(c);
    }
    table.event_class.push_back(it->second);
  }
  mark_updates(t, table);
  return table;
}

std::string_view op_name(const Trace& t, const DeviceEvent& e) {
  return e.op < 0 ? std::string_view{} : t.text(t.host[static_cast<size_t>(e.op)].name);
}

Flops RecordedMatmul::flops() const {
  return Flops(2 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
               static_cast<double>(k));
}

std::optional<RecordedMatmul> recorded_matmul(const Trace& t, const DeviceEvent& e) {
  for (std::string_view name : {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
                                "aten::linear", "aten::_scaled_mm"}) {
    const HostEvent* op = shaped_op(t, e, name);
    if (op == nullptr || t.text(op->name) != name) continue;
    const auto dims = parse_dims(t.text(op->shapes));
    const size_t first = name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0;
    if (dims.size() < first + 2) return std::nullopt;
    const std::vector<int64_t>&x = dims[first], &w = dims[first + 1];
    if (!sane(x) || !sane(w)) return std::nullopt;
    RecordedMatmul r;
    if (name == "aten::linear" && x.size() >= 2 && w.size() == 2) {
      r.m = 1;
      for (size_t i = 0; i + 1 < x.size(); ++i) {
        r.m *= x[i];
        if (r.m > kDimensionMost) return std::nullopt;
      }
      r.k = x.back();
      r.n = w[0];
      return r;
    }
    const size_t rank = x.size();
    if (rank != w.size() || rank < 2 || rank > 3) return std::nullopt;
    if (rank == 3) r.batch = x[0];
    r.m = x[rank - 2];
    r.k = x[rank - 1];
    r.n = w[rank - 1];
    return r;
  }
  return std::nullopt;
}

std::optional<Flops> recorded_flops(const Trace& t, const DeviceEvent& e) {
  if (const auto matmul = recorded_matmul(t, e)) return matmul->flops();
  if (const auto attention = attention_flops(t, e)) return attention;
  return convolution_flops(t, e);
}

std::vector<std::vector<int64_t>> parse_dims(std::string_view text) {
  std::vector<std::vector<int64_t>> out;
  int depth = 0;
  for (size_t i = 0; i < text.size() && out.size() <= kArgumentsMost; ++i) {
    const char c = text[i];
    if (c == '[') {
      if (++depth == 2) out.emplace_back();
      if (depth > 8) break;
    } else if (c == ']') {
      if (--depth < 0) break;
    } else if (c >= '0' && c <= '9') {
      int64_t value = 0;
      while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
        if (value <= kDimensionMost) value = value * 10 + (text[i] - '0');
        ++i;
      }
      --i;
      if (depth == 2 && out.back().size() < kNumbersMost) out.back().push_back(value);
    } else if (c == '-' && depth == 2) {
      out.back().push_back(-1);  // never a size
      while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') ++i;
    }
  }
  return out;
}

int64_t elements_of(std::string_view name, const DeviceEvent& e) {
  const int64_t blocks = static_cast<int64_t>(e.grid[0]);
  if (blocks <= 0 || e.grid[1] > 1 || e.grid[2] > 1) return 0;
  if (contains(name, "vectorized_elementwise_kernel<")) {
    // One-byte types take more a thread, by version: left out.
    if (contains(name, "<bool>") || contains(name, "unsigned char")) return 0;
    const auto n = leading_numbers(name.substr(name.find("vectorized_elementwise_kernel<")), 1);
    return n.empty() ? 0 : blocks * kThreadsPerBlock * n[0];
  }
  if (contains(name, "unrolled_elementwise_kernel<")) return 0;
  if (const size_t at = name.find("elementwise_kernel<"); at != std::string_view::npos) {
    const auto n = leading_numbers(name.substr(at), 2);
    return n.size() < 2 ? 0 : blocks * n[0] * n[1];
  }
  return 0;
}

}  // namespace assay

#include "diagnose/trace_device.h"

#include <string>

#include "world/catalog.h"

namespace assay {
namespace {

const Accelerator* accelerator_named(const std::string& name) {
  if (name.empty()) return nullptr;
  if (const Accelerator* found = find_accelerator(catalog(), name)) return found;
  std::string part;
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : ' ';
    if (c != ' ' && c != '-' && c != '_') {
      part += c;
      continue;
    }
    const bool letter = part.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 0;
    const bool digit = part.find_first_of("0123456789") != std::string::npos;
    if (letter && digit && part.size() >= 3) {
      if (const Accelerator* found = find_accelerator(catalog(), part)) return found;
    }
    part.clear();
  }
  return nullptr;
}

}  // namespace

DeviceModel device_model(const Trace& trace, const TraceContext& context) {
  DeviceModel d;
  d.accelerator = context.accelerator;
  for (const TraceDevice& device : trace.devices) {
    if (d.accelerator == nullptr) d.accelerator = accelerator_named(device.name);
  }
  if (d.accelerator == nullptr) return {};
  d.kernels = context.kernels != nullptr ? context.kernels
                                         : find_kernels(catalog(), d.accelerator->architecture);
  if (d.kernels == nullptr) return {};
  return d;
}

}  // namespace assay

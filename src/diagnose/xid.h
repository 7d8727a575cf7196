// What an XID means and what to do about it, from catalog/xid.yaml. The table's validity is tested;
// an error in it is our bug.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"

namespace assay {

enum class XidClass { kApplication, kDriver, kMemory, kLink, kBoard, kInformation };

enum class XidDrain {
  kNo,
  kYes,
  kIfFatal,   // where the line says `Fatal`
  kByAction,  // XID 154 says in words what the GPU needs
};

struct XidInfo {
  int code = 0;
  XidClass kind = XidClass::kInformation;
  XidDrain drain = XidDrain::kNo;
  Confidence confidence = Confidence::kMedium;
  std::string what;    // `the GPU fell off the PCIe bus`
  std::string action;  // sentences for the operator
};

const std::vector<XidInfo>& xid_table();  // by code
const XidInfo* find_xid(int code);        // null: not known

// Whether a node with this line must be taken out of service.
bool must_drain(const XidInfo&, bool fatal, std::string_view detail);

}  // namespace assay

#include "ingest/kineto_head.h"

#include <algorithm>

namespace assay {
namespace {

using scan::Slice;

constexpr size_t kListMost = 100'000;  // devices or process groups; a job has a few thousand

std::string text_of(Slice value) {
  bool repaired = false;
  return value.text() ? scan::decode(value, repaired) : std::string(value.view());
}

bool set(Slice value) { return value.view() != "0" && value.view() != "false"; }

void read_device(std::string_view object, Trace& trace) {
  TraceDevice device;
  scan::for_each_member(object, [&](Slice key, Slice value) {
    if (key.view() == "id") device.id = scan::small_number(value, 0);
    if (key.view() == "name") device.name = text_of(value);
    if (key.view() == "computeMajor") device.major = scan::small_number(value, 0);
  });
  if (trace.devices.size() < kListMost) trace.devices.push_back(std::move(device));
}

void read_group(std::string_view object, Trace& trace) {
  ProcessGroup group;
  scan::for_each_member(object, [&](Slice key, Slice value) {
    if (key.view() == "pg_name") group.name = text_of(value);
    if (key.view() == "pg_desc") group.description = text_of(value);
    if (key.view() == "ranks") group.ranks = text_of(value);
    if (key.view() == "pg_size") group.size = scan::small_number(value, 0);
  });
  if (trace.groups.size() < kListMost) trace.groups.push_back(std::move(group));
}

void read_distributed(std::string_view object, Trace& trace) {
  scan::for_each_member(object, [&](Slice key, Slice value) {
    if (key.view() == "backend") trace.backend = text_of(value);
    if (key.view() == "rank") trace.rank = scan::small_number(value, -1);
    if (key.view() == "world_size") trace.world_size = scan::small_number(value, 0);
    if (key.view() == "pg_config") {
      scan::for_each_element(value.view(), [&](Slice one) { read_group(one.view(), trace); });
    }
  });
}

}  // namespace

bool head_key(std::string_view key) {
  return key == "deviceProperties" || key == "distributedInfo" || key == "baseTimeNanoseconds" ||
         key == "record_shapes" || key == "with_stack" || key == "profile_memory";
}

void read_head(std::string_view key, Slice value, Trace& trace) {
  if (key == "deviceProperties") {
    scan::for_each_element(value.view(), [&](Slice one) { read_device(one.view(), trace); });
  } else if (key == "distributedInfo") {
    read_distributed(value.view(), trace);
  } else if (key == "baseTimeNanoseconds") {
    trace.base_ns = scan::whole_number(value.view()).value_or(0);
  } else if (key == "record_shapes") {
    trace.shapes = trace.shapes || set(value);
  } else if (key == "with_stack") {
    trace.stacks = trace.stacks || set(value);
  } else if (key == "profile_memory") {
    trace.memory = trace.memory || set(value);
  }
}

}  // namespace assay

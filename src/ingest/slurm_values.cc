#include <algorithm>
#include <cmath>

#include "ingest/slurm.h"
#include "ingest/text.h"
#include "ingest/time_text.h"

namespace assay {
namespace {

constexpr double kMostGpus = 1e7;  // of one job; more is a damaged field

double count_or_zero(std::string_view text) {
  const std::optional<double> value = leading_number(text);
  return value && *value >= 0 && *value <= kMostGpus ? *value : 0;
}

bool unset(std::string_view text) {
  return text.empty() || text == "Unknown" || text == "None" || text == "N/A" || text == "NONE" ||
         text == "INVALID" || text == "(null)";
}

}  // namespace

std::string_view job_state_name(JobState state) {
  constexpr std::string_view kNames[] = {"unknown",   "pending",   "running", "completed",
                                         "failed",    "cancelled", "timeout", "out-of-memory",
                                         "node-fail", "preempted", "requeued"};
  return kNames[static_cast<size_t>(state)];
}

JobState parse_job_state(std::string_view text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" +"));
  struct Known {
    std::string_view word, letters;
    JobState state;
  };
  static constexpr Known kKnown[] = {
      {"PENDING", "PD", JobState::kPending},
      {"RUNNING", "R", JobState::kRunning},
      {"COMPLETING", "CG", JobState::kRunning},
      {"CONFIGURING", "CF", JobState::kRunning},
      {"SUSPENDED", "S", JobState::kRunning},
      {"RESIZING", "RS", JobState::kRunning},
      {"STOPPED", "ST", JobState::kRunning},
      {"SIGNALING", "SI", JobState::kRunning},
      {"STAGE_OUT", "SO", JobState::kRunning},
      {"COMPLETED", "CD", JobState::kCompleted},
      {"FAILED", "F", JobState::kFailed},
      {"SPECIAL_EXIT", "SE", JobState::kFailed},
      {"CANCELLED", "CA", JobState::kCancelled},
      {"REVOKED", "RV", JobState::kCancelled},
      {"TIMEOUT", "TO", JobState::kTimeout},
      {"DEADLINE", "DL", JobState::kTimeout},
      {"OUT_OF_MEMORY", "OOM", JobState::kOutOfMemory},
      {"OUT_OF_ME", "OOM", JobState::kOutOfMemory},  // as the default width cuts it
      {"NODE_FAIL", "NF", JobState::kNodeFail},
      {"BOOT_FAIL", "BF", JobState::kNodeFail},
      {"LAUNCH_FAILED", "LF", JobState::kNodeFail},
      {"RECONFIG_FAIL", "RF", JobState::kNodeFail},
      {"PREEMPTED", "PR", JobState::kPreempted},
      {"REQUEUED", "RQ", JobState::kRequeued},
      {"REQUEUE_HOLD", "RH", JobState::kPending},
      {"REQUEUE_FED", "RF", JobState::kPending},
      {"RESV_DEL_HOLD", "RD", JobState::kPending},
  };
  for (const Known& known : kKnown) {
    if (word == known.word || word == known.letters) return known.state;
  }
  return JobState::kUnknown;
}

std::optional<int64_t> parse_slurm_duration(std::string_view text) {
  text = trimmed(text);
  if (unset(text) || text.find_first_not_of("0123456789-:.") != std::string_view::npos) {
    return std::nullopt;
  }
  int64_t days = 0;
  bool has_days = false;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<uint64_t> value = unsigned_number(text.substr(0, dash));
    constexpr uint64_t kMostDays = 1000000;
    if (!value || *value > kMostDays) return std::nullopt;
    days = static_cast<int64_t>(*value);
    has_days = true;
    text.remove_prefix(dash + 1);
  }
  std::vector<double> parts;
  for (const std::string_view part : fields(text, ':', 8)) {
    const std::optional<double> value = whole_number(part);
    constexpr double kMost = 1e12;
    if (!value || *value < 0 || *value > kMost) return std::nullopt;
    parts.push_back(*value);
  }
  double seconds = 0;
  if (has_days) {  // D-HH[:MM[:SS]]
    constexpr double kUnits[] = {3600, 60, 1};
    if (parts.size() > 3) return std::nullopt;
    for (size_t i = 0; i < parts.size(); ++i) seconds += parts[i] * kUnits[i];
  } else if (parts.size() == 1) {
    seconds = parts[0] * 60;
  } else if (parts.size() == 2) {
    seconds = parts[0] * 60 + parts[1];
  } else if (parts.size() == 3) {
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  } else {
    return std::nullopt;
  }
  return days * 86400 + static_cast<int64_t>(std::floor(seconds));
}

std::optional<int64_t> parse_slurm_time(std::string_view text) {
  text = trimmed(text);
  if (unset(text)) return std::nullopt;
  constexpr uint64_t kMost = 100000000000;  // the year 5138; beyond it seconds are damaged
  if (const std::optional<uint64_t> epoch = unsigned_number(text); epoch && text.size() >= 9) {
    return *epoch < kMost ? std::optional<int64_t>(static_cast<int64_t>(*epoch)) : std::nullopt;
  }
  const std::optional<double> at = time_at(text);
  if (!at || *at <= 0 || *at > static_cast<double>(kMost)) return std::nullopt;
  return static_cast<int64_t>(std::floor(*at));
}

double tres_gpus(std::string_view text) {
  double untyped = -1, typed = 0;
  for (const std::string_view part : fields(text, ',', 256)) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = part.substr(0, equals);
    if (key == "gres/gpu") untyped = count_or_zero(part.substr(equals + 1));
    if (key.starts_with("gres/gpu:")) typed += count_or_zero(part.substr(equals + 1));
  }
  return untyped >= 0 ? untyped : typed;
}

std::optional<int64_t> tres_nodes(std::string_view text) {
  for (const std::string_view part : fields(text, ',', 256)) {
    if (!part.starts_with("node=")) continue;
    const double value = count_or_zero(part.substr(5));
    return static_cast<int64_t>(value);
  }
  return std::nullopt;
}

double gres_gpus(std::string_view text) {
  double sum = 0;
  // Commas inside parentheses (`(IDX:0,2-3)`) do not separate.
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    std::string_view part = trimmed(text.substr(begin, i - begin));
    begin = i + 1;
    part = part.substr(0, part.find('('));
    const size_t gpu = part.find("gpu");
    if (gpu == std::string_view::npos ||
        (gpu > 0 && part[gpu - 1] != ':' && part[gpu - 1] != '/')) {
      continue;
    }
    const size_t last = part.find_last_of(":=");
    if (last == std::string_view::npos || last < gpu) {
      sum += 1;  // `gpu` alone is one
    } else {
      sum += count_or_zero(part.substr(last + 1));
    }
  }
  return sum;
}

}  // namespace assay

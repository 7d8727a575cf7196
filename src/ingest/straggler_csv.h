// A job's operation trace: one row an operation of one rank in one step of pipelined training, as
// ByteDance's straggler study publishes them.
//
//   dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc
//
// Columns are found by name, in any order; further columns are ignored, `seq_id`, `mc` and `gmc`
// may be absent (-1). Times are seconds in the file and integer nanoseconds here; they count from
// the file's own zero of the step. Rows that make no sense (a number that is none, a negative
// duration, a rank at two places of the grid) are left out, counted, and the first of them reported
// with their line.
//
// The reader is fed in pieces and holds one row of text and 48 bytes an operation, so memory is
// bounded by kMaxOperations whatever the file is. Names of operation types are untrusted text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.h"
#include "ingest/gzip.h"

namespace assay {

struct Operation {
  int64_t start_ns = 0, duration_ns = 0;
  int64_t step = 0;
  int32_t rank = 0, dp = 0, stage = 0;
  int32_t sequence = -1;  // the how-manieth of its type on this rank in this step
  int32_t chunk = -1;     // model chunk of this stage (virtual pipeline); -1: not of one
  uint16_t type = 0;      // index into types
};

struct OperationTrace {
  std::string file;
  std::vector<std::string> types;     // `forward-compute`; as written, untrusted
  std::vector<Operation> operations;  // in the order of the file
  size_t rows = 0, refused = 0;
  bool cut = false;      // the compressed file is damaged from there on
  Diagnostics problems;  // an error: nothing can be said of this file
};

constexpr size_t kMaxOperations = size_t{8} << 20;      // 400 MB; 1,000 ranks x 200 steps x 40
constexpr size_t kMaxOperationBytes = size_t{4} << 30;  // of text, after decompression
constexpr size_t kMaxOperationTypes = 64;
constexpr size_t kMaxOperationLine = 4096;      // bytes; honest rows have about 100
constexpr int32_t kMaxOperationRank = 1 << 20;  // of rank, dp_rank and stage alike

class OperationReader {
 public:
  explicit OperationReader(std::string file);
  void feed(std::string_view bytes);
  OperationTrace finish();

 private:
  struct Columns {
    int dp = -1, stage = -1, rank = -1, step = -1, type = -1, start = -1, duration = -1;
    int sequence = -1, chunk = -1;
  };
  void line(std::string_view text);
  bool header(std::string_view text);
  void row(std::string_view text);
  void refuse(const std::string& why);
  void fail(const std::string& why);

  OperationTrace trace_;
  Columns columns_;
  std::vector<std::string_view> cells_;
  std::unordered_map<std::string, uint16_t> type_ids_;
  std::unordered_map<int32_t, uint64_t> places_;  // rank -> dp and stage
  std::string partial_;
  int line_ = 0;
  bool has_header_ = false, failed_ = false, too_long_ = false;
};

// From a file, plain or gzip. Fails only where the file cannot be read.
Result<OperationTrace> read_operations(const std::string& path);
Result<OperationTrace> read_operations(ByteSource source);

}  // namespace assay

// What a file is, by its content: names and endings lie, and people hand over whatever they have.
//
// The decision looks at the structure of the beginning (top-level keys of JSON, the root of XML,
// header lines, the shape of log lines), never at a file's name. What is not known is kUnknown; a
// guess would be worse, because each kind is then read by a strict reader.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "ingest/gzip.h"

namespace assay {

enum class FileKind {
  kUnknown,
  kKinetoTrace,           // any trace of events as Chrome writes them
  kFlightRecorderPickle,  // NCCL Flight Recorder, as dumped
  kFlightRecorderJson,
  kExecutionTrace,  // PyTorch execution trace (Chakra): recognised, but not diagnosed
  kSmiCsv,          // nvidia-smi --query-gpu=... --format=csv
  kSmiText,         // nvidia-smi -q, or a capture of several nvidia-smi screens
  kSmiXml,          // nvidia-smi -q -x
  kSmiMonitor,      // nvidia-smi dmon or pmon, dcgmi dmon
  kPrometheusText,  // a scraped page: dcgm-exporter, nvidia_gpu_exporter, ...
  kPrometheusJson,  // the answer to a query: vector or matrix
  kMonitorJsonl,    // JSON of a sampler of NVML: a line a time, or one array
  kNcclTests,       // text of nccl-tests or rccl-tests
  kNcclTestsJson,   // nccl-tests -J
  kTopoMatrix,      // nvidia-smi topo -m
  kNvlinkStatus,    // nvidia-smi nvlink -s or -e
  kNcclXml,         // NCCL topology
  kHwlocXml,        // hwloc topology
  kKernelLog,       // dmesg, kmsg, journal, pstore, fabric manager
  kSacct,           // Slurm accounting
  kSinfo,
  kSqueue,
  kScontrol,
  kTrainingLog,   // Megatron, Megatron-DeepSpeed, NeMo
  kStragglerCsv,  // operations of a job by rank, stage and step
  kAssayResult,   // what a command of ours wrote with -o
};
constexpr int kFileKinds = static_cast<int>(FileKind::kAssayResult) + 1;

std::string_view kind_name(FileKind);  // `nvidia-smi query log`
bool is_telemetry(FileKind);           // samples of devices, in any of their forms

constexpr size_t kRecogniseBytes = size_t{64} << 10;
// A trainer may print megabytes before its first iteration; undecided text is looked at this far.
constexpr size_t kRecogniseBytesMost = size_t{4} << 20;

// `head` is the beginning of a file's text, decompressed.
FileKind recognise(std::string_view head);

// Why a text of that beginning is kUnknown, and what to do: empty, packed with another program.
Failure why_unknown(std::string_view head, const std::string& file);

// The kind of a source, plain or gzip, nothing of which is consumed; and for a file. Fails where it
// cannot be read.
Result<FileKind> recognise(ByteSource&);
Result<FileKind> recognise_file(const std::string& path);

}  // namespace assay

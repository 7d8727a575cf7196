// Reads a PyTorch profiler (Kineto) trace: plain or gzip JSON, PyTorch 1.8 to 2.9, CUDA, ROCm and
// MTIA, keys in any order, traceEvents anywhere (or the bare array of events).
//
// The file is read once, front to back, through a window of a few hundred kilobytes: memory is what
// the Trace itself needs (about 100 bytes an event that is kept), whatever the size of the file. No
// state is shared: files may be read by several threads at once, and a folder of a thousand ranks
// is read one after another in the memory of one.
//
// What is wrong with a file is a warning wherever something can still be told: a cut or damaged
// file keeps what came before, a broken event is left out, control characters and invalid UTF-8 in
// texts become '?', events with impossible times are left out and counted. Warnings have the place:
// the byte of the decompressed text, and its line and column where the file can be read once more.
// A Failure is: no such file, empty, not JSON, no traceEvents, cut before the first event, larger
// than the limits, a decompression bomb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "ingest/gzip.h"
#include "ingest/trace.h"

namespace assay {

struct KinetoLimits {
  // JSON after decompression. Reading streams, so this guards time, not memory.
  uint64_t json_bytes = uint64_t{64} << 30;
  // Rows kept, all kinds together: about 100 bytes each, so this is 4 GB and a file of 10 GB.
  uint64_t events = 40'000'000;
  // One event, or one value of the head of the file that is looked at. A call stack of a thousand
  // frames is 100 KB.
  uint64_t event_bytes = uint64_t{32} << 20;
  // Distinct texts, together.
  uint64_t text_bytes = uint64_t{2} << 30;
};

Result<Trace> read_kineto(const std::string& path, Diagnostics& warnings,
                          const KinetoLimits& limits = {});

// The same from a source that was opened already; its name stands in messages.
Result<Trace> read_kineto(ByteSource source, Diagnostics& warnings,
                          const KinetoLimits& limits = {});

// The same from bytes in memory (plain or gzip); `name` stands for the file in messages.
Result<Trace> read_kineto_text(std::string_view bytes, const std::string& name,
                               Diagnostics& warnings, const KinetoLimits& limits = {});

}  // namespace assay

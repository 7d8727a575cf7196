// Reading a whole file, or standard input, without trusting it: a limit on its size is part of
// every call, so that a file of a gigabyte is refused before it is read.
#pragma once

#include <cstddef>
#include <string>

#include "base/diagnostic.h"

namespace assay {

constexpr size_t kMaxYamlBytes = size_t{16} << 20;    // honest ones are a few hundred KB
constexpr size_t kMaxTableBytes = size_t{256} << 20;  // tables of measurements

// The bytes of a file; "-" is standard input. Fails on a missing or unreadable file, a directory,
// and on more than `max_bytes`. Never holds more than `max_bytes` in memory.
Result<std::string> read_file(const std::string& path, size_t max_bytes = kMaxYamlBytes);

// Why `path` could not be opened for reading, from the `errno` of the attempt, and what to do: a
// file that does not exist is looked for under similar names, one that may not be read is not.
Failure open_failure(const std::string& path, int error);

// Why something that is neither a file nor a folder is not read: it could keep its reader waiting
// for ever, or never end. `mode` is its st_mode.
Failure not_a_file(const std::string& path, unsigned mode);

// Writes a whole file; what was there before is gone. "-" is no standard output here.
Result<bool> write_file(const std::string& path, const std::string& text);
// Whether it probably will, without touching anything.
Result<bool> can_write(const std::string& path);

// Whether the first byte of a file can be read. What flows by once is not touched.
Result<bool> can_read(const std::string& path);
// Why `path` could not be written, and what to do.
Failure write_failure(const std::string& path, int error);

// Whether something of that name exists and is not a directory ("-" does).
bool file_exists(const std::string& path);

}  // namespace assay

// Tables as RFC 4180 writes them, read without trust: quoted fields with embedded commas, quotes
// and line breaks; LF, CRLF or CR line ends; a byte order mark. Whatever is odd about a table
// becomes a problem with its line; no row is dropped silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/file.h"

namespace assay {

struct CsvRow {
  int line = 0;  // where the record starts, 1-based
  std::vector<std::string> fields;
  // Where each field starts on that line, 1-based; zero where it starts on a later one.
  std::vector<uint32_t> starts;
  uint32_t end = 0;  // behind the last field, in the same way
};

struct CsvTable {
  std::string file;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;  // ragged rows included, exactly as long as they were written
  Diagnostics problems;
  // What parts the fields of the header, where it is no comma: then no row was read.
  char separator = ',';
  // Lines that are in no row: behind a limit, or taken in by a quote that never ends.
  int64_t lost_lines = 0;

  // The index of a column, or -1. Neither case nor blanks around a name matter.
  int column(std::string_view name) const;
  // A cell; empty when the column is -1 or the row is too short.
  std::string_view cell(const CsvRow&, int column) const;
  std::string_view cell(const CsvRow&, std::string_view name) const;
  // Where a cell stands, or would stand in a row that is too short; only the line where the column
  // is missing.
  Position place(const CsvRow&, std::string_view name) const;
};

// Cells are what costs memory: the limit holds a hostile table to about 350 MB.
struct CsvLimits {
  size_t cells = size_t{8} << 20;
  size_t columns = 4096;
  size_t problems = 100;  // more are counted, not listed
};

// `text` is the file's content; `file` is only for messages. The first record is the header.
CsvTable parse_csv(std::string_view text, const std::string& file, const CsvLimits& = {});

// The same from a file or "-". Fails only where the file cannot be read.
Result<CsvTable> read_csv(const std::string& path, size_t max_bytes = kMaxTableBytes);

}  // namespace assay

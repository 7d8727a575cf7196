// What nccl-tests (and rccl-tests) print: who took part, one row a size, in and out of place.
//
// A file may hold several tests, one after the other, and lines of srun, mpirun and NCCL in
// between. Columns are found by the header line, because versions differ. A test that failed keeps
// its reasons and has no rows. Text is untrusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

namespace assay {

struct NcclTiming {
  Seconds time;
  Bandwidth algorithm;
  Bandwidth bus;                // zero where one rank talks to itself
  std::optional<double> wrong;  // elements that were wrong; none: not checked
};

struct NcclRow {
  Bytes size;
  std::string type;       // `float`
  std::string operation;  // `sum`; empty or `none` where nothing is reduced
  std::optional<NcclTiming> out_of_place, in_place;

  // The mean of the bus bandwidths there are, as nccl-tests averages them.
  Bandwidth bus() const;
};

struct NcclRank {
  int rank = 0;
  std::string host;
  int device = 0;
  std::string bus;    // `0x8f` or `0000:19:00`
  std::string model;  // `NVIDIA H200`
};

struct NcclTest {
  std::string collective;  // `all_reduce`; empty: neither stated nor told by the figures
  int line = 0;            // where it starts
  std::vector<NcclRank> ranks;
  std::vector<NcclRow> rows;
  std::optional<double> out_of_bounds;   // values; none: not stated
  std::optional<Bandwidth> average_bus;  // as printed
  std::vector<std::string> failures;     // fit for a terminal

  std::vector<std::string> hosts() const;  // each once, in order of rank
};

struct NcclTests {
  std::string file;
  std::vector<NcclTest> tests;
  Diagnostics problems;
};

NcclTests read_nccl_tests(std::string_view text, const std::string& file);
NcclTests read_nccl_tests_json(std::string_view text, const std::string& file);

}  // namespace assay

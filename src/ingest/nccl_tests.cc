#include "ingest/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>
#include <simdjson.h>

#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kTestsMax = 4096, kRanksMax = size_t{1} << 20, kRowsMax = 65536, kFailuresMax = 8;
constexpr size_t kProblemsMax = 20;
constexpr double kGiga = 1e9;  // nccl-tests counts GB/s in powers of ten

// srun -l puts `12: ` before a line, mpirun --tag-output `[1,0]<stdout>:`.
std::string_view without_prefix(std::string_view line) {
  const size_t tag = line.find(">:");
  if (!line.empty() && line[0] == '[' && tag != std::string_view::npos && tag < 24) {
    return line.substr(tag + 2);
  }
  const std::string_view bare = trimmed(line);
  size_t digits = 0;
  while (digits < bare.size() && bare[digits] >= '0' && bare[digits] <= '9') ++digits;
  const bool prefix = digits > 0 && digits < 7 && bare.size() > digits && bare[digits] == ':';
  return prefix && (bare.size() == digits + 1 || bare[digits + 1] == ' ') ? bare.substr(digits + 1)
                                                                          : line;
}

// Where the figures of a row are, counted from its end: the texts before them may be blank.
struct Layout {
  size_t width = 0;  // columns from the first `time` on
  struct Group {
    size_t time = 0, algorithm = 0, bus = 0;
    std::optional<size_t> wrong;
  };
  std::vector<Group> groups;  // out of place, in place
};

std::optional<Layout> layout_of(std::string_view line) {
  std::vector<std::string_view> names = words(line);
  if (!names.empty() && names[0] == "#") names.erase(names.begin());
  const auto is_time = [](std::string_view name) { return name == "time" || name == "cputime"; };
  const auto first = std::find_if(names.begin(), names.end(), is_time);
  if (first == names.end()) return std::nullopt;
  Layout layout;
  layout.width = static_cast<size_t>(names.end() - first);
  for (size_t i = 0; i < layout.width; ++i) {
    const std::string_view name = first[static_cast<std::ptrdiff_t>(i)];
    if (is_time(name)) layout.groups.push_back({i, 0, 0, std::nullopt});
    if (layout.groups.empty()) continue;
    if (name == "algbw") layout.groups.back().algorithm = i;
    if (name == "busbw") layout.groups.back().bus = i;
    if (name == "#wrong" || name == "error") layout.groups.back().wrong = i;
  }
  const bool whole = std::all_of(layout.groups.begin(), layout.groups.end(),
                                 [](const Layout::Group& g) { return g.bus > g.algorithm; });
  return whole ? std::optional<Layout>(layout) : std::nullopt;
}

std::optional<NcclTiming> timing(const std::vector<std::string_view>& figures,
                                 const Layout::Group& group) {
  const std::optional<double> time = whole_number(figures[group.time]);
  const std::optional<double> algorithm = whole_number(figures[group.algorithm]);
  const std::optional<double> bus = whole_number(figures[group.bus]);
  if (!time || !algorithm || !bus || *time < 0 || *algorithm < 0 || *bus < 0) return std::nullopt;
  NcclTiming out;
  out.time = *time * kMicrosecond;
  out.algorithm = Bandwidth(*algorithm * kGiga);
  out.bus = Bandwidth(*bus * kGiga);
  if (group.wrong) out.wrong = whole_number(figures[*group.wrong]);
  return out;
}

bool read_row(std::string_view line, const Layout& layout, NcclRow& row) {
  const std::vector<std::string_view> cells = words(line);
  if (cells.size() < layout.width + 2) return false;
  const std::optional<uint64_t> bytes = unsigned_number(cells[0]);
  if (!bytes) return false;
  row.size = Bytes(static_cast<double>(*bytes));
  const size_t texts = cells.size() - layout.width;
  if (texts > 2) row.type = std::string(cells[2].substr(0, 32));
  if (texts > 3) row.operation = std::string(cells[3].substr(0, 32));
  const std::vector<std::string_view> figures(cells.begin() + static_cast<std::ptrdiff_t>(texts),
                                              cells.end());
  row.out_of_place = timing(figures, layout.groups[0]);
  if (layout.groups.size() > 1) row.in_place = timing(figures, layout.groups[1]);
  return row.out_of_place || row.in_place;
}

// `#  Rank  0 Group  0 Pid 362942 on compute-25 device  0 [0x0f] NVIDIA H100 80GB HBM3`
bool read_rank(std::string_view line, NcclRank& rank) {
  const std::vector<std::string_view> cells = words(line, 64);
  if (cells.size() < 8 || cells[0] != "#" || cells[1] != "Rank") return false;
  const std::optional<uint64_t> number = unsigned_number(cells[2]);
  if (!number || *number >= kRanksMax) return false;
  rank.rank = static_cast<int>(*number);
  for (size_t i = 3; i + 1 < cells.size(); ++i) {
    if (cells[i] == "on") rank.host = std::string(cells[i + 1].substr(0, 256));
    if (cells[i] == "device") {
      rank.device =
          static_cast<int>(std::min<uint64_t>(unsigned_number(cells[i + 1]).value_or(0), 1024));
    }
  }
  const size_t open = line.find('['), close = line.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open) {
    rank.bus = std::string(line.substr(open + 1, std::min<size_t>(close - open - 1, 64)));
    rank.model = std::string(trimmed(line.substr(close + 1)).substr(0, 128));
  }
  return true;
}

// The collective that a command or a banner names.
std::string collective_in(std::string_view line) {
  constexpr std::array<std::string_view, 11> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "alltoallv", "alltoall", "broadcast",
      "sendrecv",   "hypercube",  "gather",         "scatter",   "reduce"};
  const size_t at = line.find("_perf");
  if (at == std::string_view::npos) return {};
  for (const std::string_view name : kNames) {
    if (at >= name.size() && line.substr(at - name.size(), name.size()) == name) {
      return std::string(name);
    }
  }
  return {};
}

bool is_failure(std::string_view line) {
  constexpr std::array<std::string_view, 7> kFailureMarks = {
      "Test CUDA failure", "Test NCCL failure", "NCCL WARN",     "srun: error",
      "Test failure",      "CUDA error",        "mpirun noticed"};
  return std::any_of(kFailureMarks.begin(), kFailureMarks.end(),
                     [&](std::string_view mark) { return contains(line, mark); });
}

// The collective by its own arithmetic, where no line names it: bus over algorithm bandwidth is
// 2 (n-1)/n for an all-reduce and (n-1)/n for a reduce-scatter. What reduces nothing is ambiguous.
std::string collective_of(const NcclTest& test) {
  const double n = static_cast<double>(test.ranks.size());
  if (n < 3 || test.rows.empty()) return {};  // with two ranks 2 (n-1)/n is 1, as of others
  const NcclRow& row = test.rows.back();
  const std::optional<NcclTiming>& timing = row.out_of_place ? row.out_of_place : row.in_place;
  if (row.operation != "sum" || !(timing->algorithm.v > 0)) return {};
  const double factor = timing->bus / timing->algorithm;
  constexpr double kRounding = 0.01;  // figures have two decimals
  if (std::abs(factor / (2 * (n - 1) / n) - 1) < kRounding) return "all_reduce";
  if (std::abs(factor / ((n - 1) / n) - 1) < kRounding) return "reduce_scatter";
  return {};
}

class NcclTestsReader {
 public:
  explicit NcclTestsReader(const std::string& file) { out_.file = file; }

  void line(std::string_view raw, int number) {
    const std::string_view text = without_prefix(raw);
    const std::string named = collective_in(text);
    if (!named.empty()) collective_ = named;
    if (contains(text, "# nThread ")) begin(number);
    NcclRank rank;
    if (contains(text, "Rank") && read_rank(text, rank)) {
      if (open(number).ranks.size() < kRanksMax) open(number).ranks.push_back(std::move(rank));
    } else if (contains(text, "busbw") && contains(text, "algbw")) {
      open(number);
      layout_ = layout_of(text);
    } else if (is_failure(text)) {
      NcclTest& test = open(number);
      if (test.failures.size() < kFailuresMax) {
        test.failures.push_back(sanitize(std::string(trimmed(text)), 160));
      }
    } else if (contains(text, "Out of bounds values")) {
      open(number).out_of_bounds = leading_number(text.substr(text.find(':') + 1));
    } else if (contains(text, "Avg bus bandwidth")) {
      const std::optional<double> bus = leading_number(text.substr(text.find(':') + 1));
      if (bus && *bus >= 0) open(number).average_bus = Bandwidth(*bus * kGiga);
    } else {
      row(text, number);
    }
  }

  NcclTests finish() {
    if (out_.tests.empty()) {
      out_.problems.push_back(
          problem(Severity::kWarning, "no result of nccl-tests in this file", out_.file, 0));
    }
    for (NcclTest& test : out_.tests) {
      if (test.collective.empty()) test.collective = collective_;
      if (test.collective.empty()) test.collective = collective_of(test);
    }
    return std::move(out_);
  }

 private:
  void begin(int number) {
    // The header comes before the ranks; only failures of the start may already be there.
    if (!out_.tests.empty() && out_.tests.back().rows.empty() && out_.tests.back().ranks.empty()) {
      out_.tests.back().collective = collective_;
      return;
    }
    layout_.reset();
    if (out_.tests.size() < kTestsMax) out_.tests.emplace_back();
    out_.tests.back().line = number;
    out_.tests.back().collective = collective_;
  }

  NcclTest& open(int number) {
    if (out_.tests.empty()) begin(number);
    return out_.tests.back();
  }

  void row(std::string_view text, int number) {
    if (!layout_ || out_.tests.empty()) return;
    const std::string_view bare = trimmed(text);
    if (bare.empty() || bare[0] < '0' || bare[0] > '9') return;
    NcclRow result;
    if (read_row(bare, *layout_, result)) {
      if (out_.tests.back().rows.size() < kRowsMax) out_.tests.back().rows.push_back(result);
    } else if (out_.problems.size() < kProblemsMax) {
      out_.problems.push_back(problem(Severity::kWarning,
                                      "a row that does not fit its header; it is left out",
                                      out_.file, number));
    }
  }

  NcclTests out_;
  std::string collective_;
  std::optional<Layout> layout_;
};

// --- JSON (-J) --------------------------------------------------------------------------------

std::optional<NcclTiming> json_timing(simdjson::dom::element row, const char* key) {
  simdjson::dom::object object;
  if (row[key].get(object) != simdjson::SUCCESS) return std::nullopt;
  double time = 0, algorithm = 0, bus = 0, wrong = 0;
  if (object["time"].get(time) != simdjson::SUCCESS &&
      object["cpu_time"].get(time) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  if (object["alg_bw"].get(algorithm) != simdjson::SUCCESS) return std::nullopt;
  if (object["bus_bw"].get(bus) != simdjson::SUCCESS) return std::nullopt;
  if (time < 0 || algorithm < 0 || bus < 0) return std::nullopt;
  NcclTiming out{time * kMicrosecond, Bandwidth(algorithm * kGiga), Bandwidth(bus * kGiga), {}};
  if (object["nwrong"].get(wrong) == simdjson::SUCCESS) out.wrong = wrong;
  return out;
}

std::string text_of(simdjson::dom::element element, const char* key) {
  std::string_view text;
  if (element[key].get(text) != simdjson::SUCCESS) return {};
  return std::string(text.substr(0, 256));
}

int int_of(simdjson::dom::element element, const char* key) {
  int64_t value = 0;
  if (element[key].get(value) != simdjson::SUCCESS) return 0;
  return static_cast<int>(std::clamp<int64_t>(value, 0, static_cast<int64_t>(kRanksMax)));
}

void json_devices(simdjson::dom::element root, NcclTest& test) {
  simdjson::dom::array devices;
  if (root["config"]["devices"].get(devices) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element device : devices) {
    if (test.ranks.size() >= kRanksMax) break;
    test.ranks.push_back({int_of(device, "rank"), text_of(device, "hostname"),
                          int_of(device, "device"), text_of(device, "device_hex"),
                          text_of(device, "device_info")});
  }
}

}  // namespace

Bandwidth NcclRow::bus() const {
  if (!in_place) return out_of_place ? out_of_place->bus : Bandwidth();
  return out_of_place ? 0.5 * (out_of_place->bus + in_place->bus) : in_place->bus;
}

std::vector<std::string> NcclTest::hosts() const {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> seen;
  for (const NcclRank& rank : ranks) {
    if (seen.insert(rank.host).second) out.push_back(rank.host);
  }
  return out;
}

NcclTests read_nccl_tests(std::string_view text, const std::string& file) {
  NcclTestsReader reader(file);
  std::string_view line;
  int number = 0;
  while (next_line(text, line)) reader.line(line, ++number);
  return reader.finish();
}

NcclTests read_nccl_tests_json(std::string_view text, const std::string& file) {
  NcclTests out;
  out.file = file;
  simdjson::dom::parser parser(size_t{64} << 20);
  simdjson::dom::element root;
  const simdjson::error_code error = parser.parse(text.data(), text.size()).get(root);
  simdjson::dom::array results;
  if (error != simdjson::SUCCESS || root["results"].get(results) != simdjson::SUCCESS) {
    out.problems.push_back(problem(Severity::kError,
                                   error != simdjson::SUCCESS
                                       ? fmt::format("not JSON: {}", simdjson::error_message(error))
                                       : std::string("no `results` in this nccl-tests JSON"),
                                   file, 0));
    return out;
  }
  NcclTest test;
  simdjson::dom::array args;
  if (root["args"].get(args) == simdjson::SUCCESS) {
    for (const simdjson::dom::element arg : args) {
      std::string_view word;
      if (arg.get(word) == simdjson::SUCCESS && test.collective.empty()) {
        test.collective = collective_in(word);
      }
    }
  }
  json_devices(root, test);
  for (const simdjson::dom::element row : results) {
    if (test.rows.size() >= kRowsMax) break;
    NcclRow one;
    uint64_t size = 0;
    if (row["size"].get(size) != simdjson::SUCCESS) continue;
    one.size = Bytes(static_cast<double>(size));
    one.type = text_of(row, "type");
    one.operation = text_of(row, "redop");
    one.out_of_place = json_timing(row, "out_of_place");
    one.in_place = json_timing(row, "in_place");
    if (one.out_of_place || one.in_place) test.rows.push_back(std::move(one));
  }
  double figure = 0;
  if (root["out_of_bounds"]["count"].get(figure) == simdjson::SUCCESS) test.out_of_bounds = figure;
  if (root["average_bus_bandwidth"]["bandwidth"].get(figure) == simdjson::SUCCESS && figure >= 0) {
    test.average_bus = Bandwidth(figure * kGiga);
  }
  out.tests.push_back(std::move(test));
  return out;
}

}  // namespace assay

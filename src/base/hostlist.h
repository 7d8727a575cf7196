// Lists of hosts as Slurm writes them: `node[001-128,130],login1`, with several brackets in a name
// (`rack[1-2]n[01-04]`) and leading zeros that count.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace assay {

constexpr size_t kMaxHosts = size_t{1} << 16;

// All names in the order of the list. The error says what is wrong: a bracket that never closes, a
// range that runs backwards, more than `max` hosts (a hostile range costs no memory).
tl::expected<std::vector<std::string>, std::string> expand_hostlist(std::string_view,
                                                                    size_t max = kMaxHosts);

}  // namespace assay

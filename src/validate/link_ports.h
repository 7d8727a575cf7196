// Figures in a text about links: the rates of ports, how many there are, and of how many
// accelerators. A part of links.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

// Spellings that mean the same: `3,200 Gbps`, `4xHDR200`, `CX-7`, `HDR-100`, `two 200GbE ports`.
std::string spelled_alike(const std::string& cell);

// The first rate of a segment, in bytes per second; of `10Gb/25Gb/.../200Gb` the last.
std::optional<double> first_rate(const std::string& segment);
// What a named generation of port runs at where no rate is written, in bytes per second.
std::optional<double> generation_rate(const std::string& words);

// Ports of a node: `8x`, `8 ConnectX-7`, `4 HCA per node`, `NDR (4 per node)`.
std::optional<int64_t> port_count(const std::string& written);
// Ports over accelerators where that is said: `1 NIC per 2 GPUs`, `2 GPUs per HCA` are 0.5.
std::optional<double> port_share(const std::string& words, std::optional<int64_t> ports);

}  // namespace assay

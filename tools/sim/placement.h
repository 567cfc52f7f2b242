// SPDX-License-Identifier: BSD-3-Clause
//
// Which host each rank is on (dissertation 8.4.2): sequential, rank i on the i-th
// host; or by default, as the launcher had it: on hosts drawn at random.
//
// Threading: pure functions. Errors: a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/topology.h"

namespace coop::sim {

enum class Mapping : std::uint8_t { kSequential, kRandom };

// `ranks` of `free`, which are in order.
std::variant<std::vector<NodeIndex>, std::string> place(Mapping mapping, std::uint32_t ranks, const std::vector<NodeIndex>& free, std::uint64_t seed);

}  // namespace coop::sim

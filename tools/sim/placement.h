// SPDX-License-Identifier: BSD-3-Clause
//
// The host of each rank (dissertation 8.4.2): sequential, rank i on the i-th host; or,
// as with that launcher's default, on random hosts. A host may take several ranks.
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

// The host of each rank. Takes hosts of `free`, which are in order, for `per_host` consecutive ranks each.
std::variant<std::vector<NodeIndex>, std::string> place(Mapping mapping, std::uint32_t ranks,
                                                        const std::vector<NodeIndex>& free, std::uint64_t seed,
                                                        std::uint32_t per_host = 1);

}  // namespace coop::sim

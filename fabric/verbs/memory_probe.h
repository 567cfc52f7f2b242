// SPDX-License-Identifier: BSD-3-Clause
//
// Checks whether memory is mapped without touching it: by mappings instead of
// pages, so that a large range costs no more than a small one.
//
// Linux 6.11 can be asked for a single mapping (PROCMAP_QUERY); before that, all
// of /proc/self/maps is read. If neither works, every address counts as mapped,
// and a copy finds the bad ones.
#pragma once

#include <cstdint>

namespace coop::fabric {

bool is_mapped(std::uint64_t address, std::uint64_t bytes, bool writable);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Whether memory is there, asked without touching it: by mappings and not by
// pages, so that a large range costs no more than a small one.
//
// Linux 6.11 answers for one mapping at a time (PROCMAP_QUERY); before, all of
// /proc/self/maps is read. If neither works, everything counts as mapped, and a
// bad address is found when something is copied.
#pragma once

#include <cstdint>

namespace coop::fabric {

bool is_mapped(std::uint64_t address, std::uint64_t bytes, bool writable);

}  // namespace coop::fabric

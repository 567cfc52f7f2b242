// SPDX-License-Identifier: BSD-3-Clause
//
// RLIMIT_MEMLOCK as the kernel applies it to registered memory: it counts the
// whole pages of every region, even where regions overlap. Processes with
// CAP_IPC_LOCK have no limit. If the subnet has a limit of its own, this limit applies
// instead to each of its processes, also to those with CAP_IPC_LOCK.
#pragma once

#include <cstdint>

#include "fabric/engine/client.h"

namespace coop::fabric {

inline constexpr std::uint64_t kPageBytes = 4096;

inline std::uint64_t page_floor(std::uint64_t address) { return address & ~(kPageBytes - 1); }
inline std::uint64_t page_ceiling(std::uint64_t address) { return page_floor(address + kPageBytes - 1); }

// The size of the pages that the range touches.
inline std::uint64_t locked_bytes(std::uint64_t address, std::uint64_t bytes) {
    return page_ceiling(address + bytes) - page_floor(address);
}
bool charge_locked(const Client& client, std::uint64_t bytes);  // false: over the limit
void discharge_locked(const Client& client, std::uint64_t bytes);

}  // namespace coop::fabric

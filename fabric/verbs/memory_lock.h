// SPDX-License-Identifier: BSD-3-Clause
//
// RLIMIT_MEMLOCK as the kernel keeps it for registered memory: whole pages of
// every region, even where regions overlap; no limit for who has CAP_IPC_LOCK.
// A subnet can have a limit of its own, which then holds for everybody.
#pragma once

#include <cstdint>

#include "fabric/engine/client.h"

namespace coop::fabric {

inline constexpr std::uint64_t kPageBytes = 4096;

inline std::uint64_t page_floor(std::uint64_t address) { return address & ~(kPageBytes - 1); }
inline std::uint64_t page_ceiling(std::uint64_t address) { return page_floor(address + kPageBytes - 1); }

// Bytes of the pages that the range touches.
inline std::uint64_t locked_bytes(std::uint64_t address, std::uint64_t bytes) {
    return page_ceiling(address + bytes) - page_floor(address);
}
bool charge_locked(const Client& client, std::uint64_t bytes);  // false: that would be too much
void discharge_locked(const Client& client, std::uint64_t bytes);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Locks of single bytes of a file, by which one process learns that another one has ended, in whatever way and in
// whatever PID namespace. A lock belongs to an open file (F_OFD_SETLK of fcntl(2), Linux 3.15), so it ends when the last
// descriptor of this open file is closed, or by unlock_byte(). Processes forked while it is open share it.
//
// Threading: any. Errors: none; a lock that cannot be taken is not held.
#pragma once

#include <cstdint>

#include "coop/base/export.h"

namespace coop::node {

// Returns false if the system has no such locks, or another open file of the same file has locked the byte.
[[nodiscard]] COOP_EXPORT bool lock_byte(std::int32_t fd, std::uint32_t at) noexcept;

// Ends the lock for all processes that share it.
COOP_EXPORT void unlock_byte(std::int32_t fd, std::uint32_t at) noexcept;

// Whether another open file of the same file has locked the byte. True if that cannot be found out.
[[nodiscard]] COOP_EXPORT bool is_locked_elsewhere(std::int32_t fd, std::uint32_t at) noexcept;

}  // namespace coop::node

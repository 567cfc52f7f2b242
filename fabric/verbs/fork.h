// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of registered memory when the process forks. Nothing is pinned
// here, and whoever copies names the process: fork() does no harm, which the
// program is told (IBV_FORK_UNNEEDED), as by a kernel that copies on fork.
//
// With Header::strict_fork it is as on an older kernel at its worst. Without
// ibv_fork_init() all regions are lost when the process forks: hardware keeps the
// pages, and the process may get others. After ibv_fork_init() children do not
// have the memory (MADV_DONTFORK, whole pages, until no region covers them).
//
// Threading: any. Errors: none.
#pragma once

#include <cstdint>

namespace coop::fabric {

// A range that was registered, or deregistered, on a strict subnet.
void hide_from_children(std::uint64_t address, std::uint64_t bytes);
void show_to_children(std::uint64_t address, std::uint64_t bytes);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// The effect of fork() on registered memory. Nothing is pinned here, and copies go
// to the process that registered the memory, by its number, so fork() is harmless.
// The program is told so (IBV_FORK_UNNEEDED), as by a kernel that copies pinned
// pages on fork.
//
// Header::strict_fork simulates the worst case of an older kernel. Without
// ibv_fork_init() all regions are lost when the process forks: the hardware keeps
// the old pages, and the process may get others. After ibv_fork_init() children do
// not have the memory (MADV_DONTFORK, whole pages, until no region covers them).
//
// Threading: any. Errors: none.
#pragma once

#include <cstdint>

namespace coop::fabric {

// Called when a range is registered or deregistered on a subnet with strict_fork.
void hide_from_children(std::uint64_t address, std::uint64_t bytes);
void show_to_children(std::uint64_t address, std::uint64_t bytes);

}  // namespace coop::fabric

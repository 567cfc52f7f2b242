// SPDX-License-Identifier: BSD-3-Clause
//
// Strict mode: a registered range that the program unmaps, replaces, moves or
// gives back to the system is marked stale, and said so. With real hardware the
// pages stay pinned and the program reads other memory than the HCA writes; here
// the HCA follows the address, and hides the mistake.
//
// The kernel reports such changes through a userfaultfd on which the range is
// registered (no page is protected, nothing faults). It can do so for anonymous
// and shared memory; other mappings are traced as not watched.
//
// Threading: any. The thread that unmaps waits, in the kernel, until a thread of
// ours has read the report; it may hold any lock, also malloc's. That thread
// therefore allocates nothing and takes no lock.
#pragma once

#include "fabric/engine/client.h"

namespace coop::fabric {

// A region of this process, entered in the table already.
void watch_region(const Client& client, std::uint32_t region);
void unwatch_region(const Client& client, std::uint32_t region);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Strict mode: a registered range that the program unmaps, replaces, moves or
// gives back to the system is marked stale. The trace says so, and for the first 16
// a message. On real hardware the pages stay pinned, and the program reads other
// memory than the HCA writes. Here the HCA uses the address, which would hide the
// mistake.
//
// The kernel reports such changes through a userfaultfd on which the range is
// registered (no page is protected, and no access faults). It can do so for
// anonymous and shared memory; for other mappings the trace says that they cannot
// be watched.
//
// Threading: any. The unmapping thread waits in the kernel until our monitor
// thread has read the report. The unmapping thread may hold any lock, including
// malloc's, so the monitor thread allocates nothing and takes no lock.
#pragma once

#include "fabric/engine/client.h"

namespace coop::fabric {

// The region must already be in the table.
void watch_region(const Client& client, std::uint32_t region);
void unwatch_region(const Client& client, std::uint32_t region);

}  // namespace coop::fabric

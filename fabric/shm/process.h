// SPDX-License-Identifier: BSD-3-Clause
//
// Processes on a subnet: joining, leaving, and taking away what a dead one left.
//
// Waking: a process's engine sleeps on the futex Process::wake. The descriptors
// of its completion and event channels are reached with pidfd_getfd, which asks
// for the same permission as process_vm_writev, and are kept.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

// Takes a place for this process; the calling thread must be one that lives as long as the process uses the subnet,
// because its end is what others see as the process's death. kNone: no place left.
std::uint32_t join(const Segment& subnet, std::uint32_t host);
// Gives back everything that process still has, and its place. By the process itself.
void leave(const Segment& subnet, std::uint32_t process);

inline bool is_alive(const Process& process) {
    return Segment::in_use(process) && process.life.is_held();
}
// Takes away what dead processes left: their objects, their heap, their places. Returns how many there were. Anyone may
// call it at any time; a living process is never touched.
int reap(const Segment& subnet);

void wake(Process& process) noexcept;

// Writes to descriptor `fd` of that process (its completion or event channel). Never blocks; false if it could not be
// written (the process is dead, or the channel is full).
bool write_to(const Segment& subnet, std::uint32_t process, std::int32_t fd, const void* record, std::size_t bytes) noexcept;

// Reports an asynchronous event to one open device, or to all open ones of an HCA.
void raise(const Segment& subnet, std::uint32_t context, const EventRecord& event) noexcept;
void raise_on_hca(const Segment& subnet, std::uint32_t hca, const EventRecord& event) noexcept;

// Why processes cannot copy from one another here (Yama, seccomp, …), as a sentence; empty: they can. Tries it on `pid`.
std::string copy_refusal(std::int32_t pid);

}  // namespace coop::fabric

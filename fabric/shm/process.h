// SPDX-License-Identifier: BSD-3-Clause
//
// Processes on a subnet: joining, leaving, and reaping dead ones.
//
// A process's engine sleeps on the futex Process::wake. Other processes reach the
// descriptors of its completion and event channels with pidfd_getfd, which needs
// the same permission as process_vm_writev, and cache them.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

// Claims an entry for this process. The calling thread must live as long as the process uses the subnet, because others
// take its end for the process's death. Returns kNone if the table is full.
std::uint32_t join(const Segment& subnet, std::uint32_t host);
// Gives back everything that the calling process still has, and its entry.
void leave(const Segment& subnet, std::uint32_t process);

inline bool is_alive(const Process& process) { return Segment::in_use(process) && process.life.is_held(); }
// Removes what dead processes left: their objects, heap and entries. Returns the number of processes. Anyone may call
// it at any time; it never touches a living process.
int reap(const Segment& subnet);

void wake(Process& process) noexcept;

// Writes to descriptor `fd` of that process (its completion or event channel). Never blocks. Returns false if the
// process is dead or the channel is full.
bool write_to(const Segment& subnet, std::uint32_t process, std::int32_t fd, const void* record,
              std::size_t bytes) noexcept;

// Reports an asynchronous event to one open device, or to all open ones of an HCA.
void raise(const Segment& subnet, std::uint32_t context, const EventRecord& event) noexcept;
void raise_on_hca(const Segment& subnet, std::uint32_t hca, const EventRecord& event) noexcept;

// Copies from process `pid` and fetches one of its descriptors, to find out whether processes can do so here. Returns
// the reason why not (Yama, seccomp, …) as a sentence, or an empty string.
std::string copy_refusal(std::int32_t pid);

}  // namespace coop::fabric

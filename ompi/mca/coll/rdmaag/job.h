// SPDX-License-Identifier: BSD-3-Clause
//
// A call of MPI_Allgather and the like, as a group executes it.
//
// Ownership: the caller keeps it until it is done. Threading: see group.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/base/list.h"
#include "coop/coll/blocks.h"
#include "coop/coll/steps.h"
#include "coop/sched/rail_set.h"

namespace coop::ag {

struct Job {
    Job(std::byte* all, const coll::Blocks& where, coll::Algorithm by, std::uint32_t part = 1) noexcept
        : memory(all), blocks(where), algorithm(by), short_part(part) {}

    std::byte* memory;
    coll::Blocks blocks;
    coll::Algorithm algorithm;
    std::uint32_t short_part;  // short steps have at most 1/short_part of the limit; the same in all processes
    void (*on_done)(Job&) noexcept = nullptr;  // non-blocking; null: the caller polls `done`
    bool urgent = false;                       // its packets interrupt their receivers
    std::uint8_t lane = sched::kNoLane;        // the rail of its puts
    bool in_packets = false;                   // long steps travel in packets

    std::atomic<bool> done{false};
    std::uint32_t lap = 0;  // its number among the jobs of the group
    ListNode node;          // of the group's queue, then of a list of jobs that are done
};
using JobList = List<Job, &Job::node>;

}  // namespace coop::ag

// SPDX-License-Identifier: BSD-3-Clause
//
// Putting completions into a CQ, of this process or another, and telling its
// owner if the CQ is armed (InfiniBand 11.4.2: request completion notification).
#pragma once

#include "fabric/shm/segment.h"

namespace coop::fabric {

// False: the CQ is full, or has been before: CQ_ERR at its owner, and from then on it takes nothing.
bool put_completion(const Segment& subnet, std::uint32_t cq, const Completion& completion) noexcept;

// The next completion of an own CQ; false: there is none. Only now do send requests give back their places. One thread at a time (the verbs layer locks).
bool take_completion(const Segment& subnet, std::uint32_t cq, Completion& completion) noexcept;

// Arms the CQ. Fires at once if completions (solicited ones, if so asked) wait already, as hardware that is told the
// consumer's index does; not so in a subnet with strict_arm.
void arm(const Segment& subnet, std::uint32_t cq, bool solicited_only) noexcept;

// What is written to a completion channel and read by ibv_get_cq_event.
struct ChannelRecord {
    std::uint32_t cq;    // index
    std::uint32_t used;  // its `used` then
};

}  // namespace coop::fabric

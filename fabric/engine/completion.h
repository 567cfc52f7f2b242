// SPDX-License-Identifier: BSD-3-Clause
//
// Putting completions into a CQ, of this process or another, and telling its
// owner if the CQ is armed (InfiniBand 11.4.2: request completion notification).
#pragma once

#include <array>

#include "fabric/shm/segment.h"

namespace coop::fabric {

// What is written to a completion channel and read by ibv_get_cq_event.
struct ChannelRecord {
    std::uint32_t cq;    // index
    std::uint32_t used;  // its `used` then
};

// Notifications that are due and not yet written to their completion channels. Whoever executes a message collects them and
// writes them when all completions of that step are in their CQs: else the receiver's answer can come before the sender's
// own completion does.
//
// Threading: one thread at a time. Ownership: what has not been written when this ends is lost; see flush().
class Notices {
public:
    bool is_empty() const { return count_ == 0; }
    // The CQ has been disarmed by the caller. `of_sender`: because a send request is completed.
    void add(const Segment& subnet, std::uint32_t cq, bool of_sender) noexcept;
    // Writes them, the sender's first. A CQ that is gone meanwhile is passed by.
    void flush(const Segment& subnet) noexcept;

private:
    static constexpr std::size_t kRoom = 8;  // more are written at once
    struct Notice {
        ChannelRecord record;
        bool of_sender;
    };
    std::array<Notice, kRoom> notices_{};
    std::size_t count_ = 0;
};

// False: the CQ is full, or has been before: CQ_ERR at its owner, and from then on it takes nothing.
bool put_completion(const Segment& subnet, std::uint32_t cq, const Completion& completion, Notices& notices) noexcept;

// The next completion of an own CQ; false: there is none. Only now do send requests give back their places. One thread at a time (the verbs layer locks).
bool take_completion(const Segment& subnet, std::uint32_t cq, Completion& completion) noexcept;

// Arms the CQ. Fires at once if completions (solicited ones, if so asked) wait that no notification has been for, as hardware
// does that is told the consumer's index; not so in a subnet with strict_arm. A notification is for one completion: who arms
// again before it polls is not told of the same one twice.
void arm(const Segment& subnet, std::uint32_t cq, bool solicited_only) noexcept;
// Whether somebody waits for a notification: the owner sleeps, or is about to.
bool is_armed(const Segment& subnet, std::uint32_t cq) noexcept;

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Puts completions into a CQ of this or another process, and notifies its owner
// if the CQ is armed (InfiniBand 11.4.2: request completion notification).
#pragma once

#include <array>

#include "fabric/shm/segment.h"

namespace coop::fabric {

// A record in the pipe of a completion channel; ibv_get_cq_event reads it.
struct ChannelRecord {
    std::uint32_t cq;    // index
    std::uint32_t used;  // the CQ's `used` at that time
};

// Notifications that are due but not yet written to their completion channels. The thread that executes a message
// collects them, and writes them when all completions of that step are in their CQs. Otherwise the receiver's answer
// could come before the sender's own completion.
//
// Threading: one thread at a time. The destructor drops what flush() has not written.
class Notices {
public:
    bool is_empty() const { return count_ == 0; }
    // The caller must have disarmed the CQ. `of_sender`: the notification is for the completion of a send request.
    void add(const Segment& subnet, std::uint32_t cq, bool of_sender) noexcept;
    // Writes them, the sender's first. Skips CQs that have been destroyed.
    void flush(const Segment& subnet) noexcept;

private:
    static constexpr std::size_t kRoom = 8;  // if more are added, add() writes those collected so far
    struct Notice {
        ChannelRecord record;
        bool of_sender;
    };
    std::array<Notice, kRoom> notices_{};
    std::size_t count_ = 0;
};

// Returns false if the CQ is full or has overflowed before. An overflow raises CQ_ERR; the CQ takes no completions from
// then on.
bool put_completion(const Segment& subnet, std::uint32_t cq, const Completion& completion, Notices& notices) noexcept;

// Takes the next completion of a CQ of this process; returns false if there is none. Taking a completion frees the
// places of its send requests. One thread at a time (the verbs layer locks).
bool take_completion(const Segment& subnet, std::uint32_t cq, Completion& completion) noexcept;

// Arms the CQ. Fires at once if it holds completions (with `solicited_only`: solicited ones) that no notification was
// for, as hardware does when it is told the consumer's index; not in a subnet with strict_arm. Each completion causes
// at most one notification: arming again before polling does not report it twice.
void arm(const Segment& subnet, std::uint32_t cq, bool solicited_only) noexcept;
// True if the owner waits for a notification, or is about to.
bool is_armed(const Segment& subnet, std::uint32_t cq) noexcept;

}  // namespace coop::fabric

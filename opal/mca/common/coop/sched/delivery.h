// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of one sender go to their receiver one after the other, in order, also
// where several threads bring them and the receiver is called without the lock.
// One thread at a time delivers; what others bring meanwhile, it delivers, too.
//
//     lock;   due(packet) …; if (!begin(self)) { unlock; return; }   another thread delivers
//     unlock
//     loop:   lock; packet = next(); unlock; if (!packet) return; call the receiver
//
// A thread whose receiver polls, and so gets here again from within, delivers
// further packets itself: it would otherwise wait for itself.
//
// Threading: every call under the owner's lock. Ownership: packets are the
// caller's. Errors: none.
#pragma once

#include <cstdint>
#include <optional>

#include "coop/base/list.h"

namespace coop::sched {

template <class Packet, ListNode Packet::*Node>
class Delivery {
public:
    using Thread = std::uint64_t;  // names a thread of the process

    // The packet is the next one after all that are due already.
    void due(Packet& packet) noexcept { due_.push_back(&packet); }

    // False: another thread delivers, and will find what is due now.
    [[nodiscard]] bool begin(Thread self) noexcept {
        if (deliverer_ && *deliverer_ != self) return false;
        deliverer_ = self;
        return true;
    }

    // Null: nothing is due, and delivery has ended.
    Packet* next() noexcept {
        Packet* packet = due_.pop_front();
        if (packet == nullptr) deliverer_.reset();
        return packet;
    }

private:
    List<Packet, Node> due_;
    std::optional<Thread> deliverer_;
};

}  // namespace coop::sched

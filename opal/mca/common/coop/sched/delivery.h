// SPDX-License-Identifier: BSD-3-Clause
//
// Delivers the packets of one sender one at a time and in order, even if several threads receive packets and
// the receiver is called without the lock. One thread at a time delivers, including packets that other threads
// add meanwhile.
//
//     lock;   due(packet) …; if (!begin(self)) { unlock; return; }   another thread delivers
//     unlock
//     loop:   lock; packet = next(); unlock; if (!packet) return; call the receiver
//
// If the receiver polls and so re-enters this code, the thread delivers the next packets in the nested call;
// otherwise it would wait for itself.
//
// Threading: every call under the owner's lock. Ownership: packets are the caller's. Errors: none.
#pragma once

#include <cstdint>
#include <optional>

#include "coop/base/list.h"

namespace coop::sched {

template <class Packet, ListNode Packet::*Node>
class Delivery {
public:
    using Thread = std::uint64_t;  // identifies a thread of the process

    // Queues the packet for delivery.
    void due(Packet& packet) noexcept { due_.push_back(&packet); }

    // Returns false if another thread delivers; it will also deliver the queued packets.
    [[nodiscard]] bool begin(Thread self) noexcept {
        if (deliverer_ && *deliverer_ != self) return false;
        deliverer_ = self;
        return true;
    }

    // The same, if no packet is queued: then the caller may hand on its packet first, without queueing it.
    [[nodiscard]] bool begin_at_once(Thread self) noexcept { return due_.empty() && begin(self); }

    // Returns the next packet. Null: none is queued, and delivery has ended.
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

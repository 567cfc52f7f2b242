// SPDX-License-Identifier: BSD-3-Clause
//
// Rings: the sender writes short messages into the memory of the receiver, which polls
// it (coop/sched/ring.h explains slots, laps and credits).
//
//     inbox    a ring in our memory: made for a peer that has sent `ring_threshold`
//              messages, and offered to it; the peer writes, we poll
//     outbox   a ring in the peer's memory: we write while we have credits, and
//              otherwise send
//
// A message in a ring has a sequence number of the channel like any other and can use
// any rail. So messages of rings, receive queues and rails may arrive in any order.
//
// Every message to the peer returns the owed credits, except those of kind kUnordered.
// If half of the credits are owed, a message without payload (kCredits) returns them. A
// sender without credits does not wait; it uses an ordinary send.
//
// Threading: under Module::lock, except Inbox::may_have_message() and reading Inboxes.
// Ownership: the channel owns its rings; `Inboxes` only lists them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "coop/sched/ring.h"
#include "pools.h"

namespace coop::ib {

struct Inbox;
struct Module;

// All inboxes of the process, for polling without the lock. Only one thread adds inboxes at a time; they are removed
// when no thread polls any more.
class Inboxes {
public:
    std::uint32_t size() const noexcept { return count_.load(std::memory_order_acquire); }
    Inbox& operator[](std::uint32_t i) const noexcept { return *all_[i]; }
    void add(Inbox& inbox) noexcept {
        all_[size()] = &inbox;
        count_.store(size() + 1, std::memory_order_release);
    }
    void remove(const Inbox& inbox) noexcept {
        const auto end = all_.begin() + size();
        const auto place = std::find(all_.begin(), end, &inbox);
        if (place == end) return;
        *place = *(end - 1);
        count_.store(size() - 1, std::memory_order_release);
    }

private:
    std::array<Inbox*, sched::kMaxRings> all_{};  // the first count_ are valid
    std::atomic<std::uint32_t> count_{0};
};

struct Inbox {
    Inbox(Inboxes& all, Endpoint& owner, sched::RingShape shape)
        : list(all), endpoint(owner), slots(shape), buffers(shape.slots) {}
    ~Inbox() { list.remove(*this); }
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    const std::byte* end_of_next() const noexcept { return memory.data() + slots.shape().end_of(slots.next_slot()); }
    std::byte& last_byte(std::uint32_t slot) noexcept { return memory.data()[slots.shape().end_of(slot) - 1]; }

    // Checks one byte, without the lock. The result may be wrong while another thread takes the message.
    bool may_have_message() const noexcept {
        return *watched.load(std::memory_order_relaxed) != empty_lap.load(std::memory_order_relaxed);
    }
    void watch_next() noexcept {
        watched.store(reinterpret_cast<const volatile std::uint8_t*>(end_of_next() - 1), std::memory_order_relaxed);
        empty_lap.store(slots.empty_lap(), std::memory_order_relaxed);
    }

    Inboxes& list;
    Endpoint& endpoint;
    RegisteredMemory memory;  // registered on every HCA
    sched::RingReceiver slots;
    std::vector<ReceiveBuffer> buffers;                          // one for each slot
    std::atomic<const volatile std::uint8_t*> watched{nullptr};  // last byte of the next slot
    std::atomic<std::uint8_t> empty_lap{0};
};

struct Outbox {
    explicit Outbox(sched::RingShape shape) : slots(shape), psns(shape.slots) {}
    std::uint64_t end_of(std::uint32_t slot) const noexcept { return address + slots.shape().end_of(slot); }

    sched::RingSender slots;
    std::uint64_t address = 0;
    std::uint32_t rkey[kMostRkeys] = {};      // of the ring, on each HCA of the peer
    std::vector<sched::SequenceNumber> psns;  // of the last message in each slot
    std::uint32_t oldest = 0;                 // the first slot whose credit has not come back
    std::uint32_t repeating = 0;  // writes under way that repeat earlier ones; until they have ended, no slot
                                  // is used again: they might land behind its next message
};

// Counts a message from the receive queue. After enough of them, offers the peer a ring.
void count_towards_ring(Module& m, Endpoint& endpoint);
// Handles a control message, whose bytes follow the header.
void take_control(Endpoint& endpoint, const Header& header);
// The peer has returned credits: slots of its ring that are free again.
void take_ring_credits(Module& m, Endpoint& endpoint, std::uint32_t credits);
ReceiveBuffer* take_slot(Inbox& ring);  // returns null if the next slot is empty
// Frees the slot. Call this when no one reads it any more.
void finish_slot(Module& m, const ReceiveBuffer& slot);

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// The sequence-number space of a channel (dissertation 4.2.2), common to all its rails: each message carries a
// packet sequence number (PSN). The receiver delivers the message with the expected sequence number (ESN) and
// holds those ahead of it. send_window.h has the sender's half.
//
//     arrival   distance = PSN - ESN (32 bits, wrapping)
//     < 0                  duplicate: it was delivered before
//     0 .. window-1        duplicate, if a packet with this PSN is held; else
//       0                  in order: delivered; then pop_next() until null
//       1 .. window-1      held
//     >= window            beyond: the peer violates the protocol
//
// Space for held packets grows on demand, up to the window.
//
// Units: packets. Threading: none; the caller holds the lock of the channel. Ownership: the packets are the
// caller's. Memory: none until the first packet arrives early, then a power of two of places. Each step takes
// constant time unless the space grows. Errors: the process ends if there is no memory for the places.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coop::sched {

using SequenceNumber = std::uint32_t;

// How far a sender may go ahead of its first message that has not landed. Receivers rely on this number, so it is part
// of the protocol.
constexpr std::uint32_t kSendWindow = 1024;

// Of the numbers without an order (held.h), this many are left for messages that return credits and acknowledge. If
// both sides could give all of them to other messages, neither could acknowledge those of the other side, and no number
// would become free. A process that hears nothing from its peer needs fewer of them, with packets of up to 16 KiB: one
// for each 64 messages or 64 KiB that have arrived, or for half of the buffers of a rail or a ring.
constexpr std::uint32_t kCreditNumbers = kSendWindow / 2;

enum class Arrival : std::uint8_t { kInOrder, kHeld, kDuplicate, kBeyondWindow };

template <class Packet>
class ReorderWindow {
public:
    // `window`: 1..2^31.
    explicit ReorderWindow(std::size_t window, SequenceNumber first = 0) noexcept : window_(window), expected_(first) {}

    // kHeld: the window keeps `packet` (not null) until pop_next() or pop_any() returns it. Otherwise it stays
    // with the caller.
    [[nodiscard]] Arrival on_arrival(SequenceNumber psn, Packet* packet) noexcept {
        const SequenceNumber distance = psn - expected_;
        if (distance > kMaxAhead) return Arrival::kDuplicate;
        if (distance == 0 && held_ == 0) {
            ++expected_;
            return Arrival::kInOrder;
        }
        if (distance >= window_) return Arrival::kBeyondWindow;
        if (distance >= places_.size()) grow(distance + std::size_t{1});
        Packet*& place = place_of(psn);
        if (place != nullptr) return Arrival::kDuplicate;
        if (distance == 0) {
            ++expected_;
            return Arrival::kInOrder;
        }
        place = packet;
        ++held_;
        return Arrival::kHeld;
    }

    // Whether the packet arrives early: on_arrival() would hold or refuse it.
    bool is_ahead(SequenceNumber psn) const noexcept { return psn != expected_ && psn - expected_ <= kMaxAhead; }

    // Returns the next held packet that is now in order, or null. Call it until null after each kInOrder.
    Packet* pop_next() noexcept {
        if (held_ == 0) return nullptr;
        Packet*& place = place_of(expected_);
        Packet* packet = place;
        if (packet == nullptr) return nullptr;
        place = nullptr;
        --held_;
        ++expected_;
        return packet;
    }

    // For giving up the channel: returns the held packets one by one; null after the last.
    Packet* pop_any() noexcept {
        if (held_ == 0) return nullptr;
        for (Packet*& place : places_) {
            if (place == nullptr) continue;
            Packet* packet = place;
            place = nullptr;
            --held_;
            return packet;
        }
        return nullptr;
    }

    SequenceNumber expected() const noexcept { return expected_; }
    std::uint32_t held() const noexcept { return held_; }
    std::size_t places() const noexcept { return places_.size(); }

private:
    // A larger distance means that the number is in the past.
    static constexpr SequenceNumber kMaxAhead = UINT32_MAX / 2;
    static constexpr std::size_t kFirstPlaces = 64;

    Packet*& place_of(SequenceNumber psn) noexcept { return places_[psn & (places_.size() - 1)]; }

    void grow(std::size_t wanted) noexcept {
        std::vector<Packet*> larger(std::bit_ceil(std::max(wanted, kFirstPlaces)));
        for (SequenceNumber ahead = 0; ahead < places_.size(); ++ahead)
            larger[(expected_ + ahead) & (larger.size() - 1)] = place_of(expected_ + ahead);
        places_ = std::move(larger);
    }

    std::size_t window_;
    std::vector<Packet*> places_;  // size: a power of two, or 0
    SequenceNumber expected_;
    std::uint32_t held_ = 0;
};

}  // namespace coop::sched

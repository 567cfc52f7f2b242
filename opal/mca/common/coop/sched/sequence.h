// SPDX-License-Identifier: BSD-3-Clause
//
// One sequence-number space per channel (dissertation 4.2.2): what is sent over
// any of its rails carries a packet sequence number (PSN); the receiver hands on
// what has the expected one (ESN) and keeps what is ahead of it.
//
//     arrival   distance = PSN - ESN (32 bits, wrapping)
//     < 0                  duplicate: it was replayed, and the first one came, too
//     0 .. window-1        duplicate, if its place is taken by a held one; else
//       0                  in order: handed on; then pop_next() until null
//       1 .. window-1      held
//     >= window            beyond: the peer breaks the protocol, or the window is
//                          smaller than the receive buffers of the channel
//
// What is held keeps its receive buffer, so no more can arrive than there are
// buffers, and a window of as many places is never exceeded by a peer that keeps
// to the protocol.
//
// Units: packets. Threading: none; the caller holds the lock of the channel.
// Ownership: the caller's, of the packets and of the places for them. No
// allocation; each step takes constant time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace coop::sched {

using SequenceNumber = std::uint32_t;

// The sender's.
class Sequencer {
public:
    explicit Sequencer(SequenceNumber first = 0) noexcept : next_(first) {}
    SequenceNumber next() noexcept { return next_++; }  // each one once

private:
    SequenceNumber next_;
};

enum class Arrival : std::uint8_t { kInOrder, kHeld, kDuplicate, kBeyondWindow };

template <class Packet>
class ReorderWindow {
public:
    // Places for early packets: a power of two of them, all null, at most 2^31.
    // They belong to the window as long as it lives.
    explicit ReorderWindow(std::span<Packet*> places, SequenceNumber first = 0) noexcept : places_(places), expected_(first) {}

    static constexpr bool fits(std::size_t places) noexcept { return std::has_single_bit(places) && places <= std::size_t{1} << 31; }

    // kHeld: the window keeps `packet` (not null) until pop_next() returns it.
    // Otherwise it stays with the caller.
    [[nodiscard]] Arrival on_arrival(SequenceNumber psn, Packet* packet) noexcept {
        const SequenceNumber distance = psn - expected_;
        if (distance > kMostAhead) return Arrival::kDuplicate;
        if (distance >= places_.size()) return Arrival::kBeyondWindow;
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

    // The next held packet whose turn it is; null when there is none. To be asked
    // until null after each kInOrder.
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

    // When the channel is given up: one held packet after the other; null after
    // the last.
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

private:
    // Farther ahead than half of the numbers is behind.
    static constexpr SequenceNumber kMostAhead = UINT32_MAX / 2;

    Packet*& place_of(SequenceNumber psn) noexcept { return places_[psn & (places_.size() - 1)]; }

    std::span<Packet*> places_;
    SequenceNumber expected_;
    std::uint32_t held_ = 0;
};

}  // namespace coop::sched

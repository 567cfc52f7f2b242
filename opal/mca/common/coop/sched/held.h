// SPDX-License-Identifier: BSD-3-Clause
//
// The retransmission window of a channel: the messages that the peer's process has not acknowledged yet, in the order
// of their numbers. The acknowledgement of an HCA is not enough: it says that the message has reached the other HCA,
// which may fail before the process has the message.
//
//     hold(number, packet)    the packet stays with the window until it is acknowledged
//     copy(number, bytes)     the caller writes the message there; for messages that have no packet of their own
//     acknowledge(expected)   the peer's process has all numbers before `expected`
//
// Numbers are consecutive. Their sender bounds how many there are (send_window.h).
//
// Copies lie in chunks, which are filled in the order of the numbers and freed when the last one in them is
// acknowledged. Memory: places grow by doubling, 32 bytes for each message; one chunk is kept for reuse. A copy does
// not move.
//
// Units: messages, bytes. Threading: none; the caller holds the lock of the channel. Ownership: packets are the
// caller's until hold() and again after `released`. Errors: the process ends if there is no memory for places or
// copies.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "coop/sched/rail_set.h"
#include "coop/sched/sequence.h"

namespace coop::sched {

template <class Packet>
class Held {
public:
    struct Place {
        Packet* packet = nullptr;   // null: a copy
        std::byte* copy = nullptr;  // valid if packet is null
        std::uint64_t address = 0;  // the caller's; of a copy
        std::uint32_t bytes = 0;    // of a copy
        RailIndex rail = 0;         // of a copy: the rail over which it went
    };

    explicit Held(SequenceNumber first = 0) noexcept : first_(first), next_(first) {}

    // The number must follow the last one.
    void hold(SequenceNumber number, Packet& packet) { add(number) = {&packet, nullptr, 0, 0, 0}; }
    // Returns room for the copy of a message.
    std::byte* copy(SequenceNumber number, std::uint32_t bytes, RailIndex rail, std::uint64_t address) {
        std::byte* const room = take_room(number, bytes);
        add(number) = {nullptr, room, address, bytes, rail};
        return room;
    }

    // Calls released(packet) for each packet before `expected`. Precondition: expected is in first()..next().
    template <class Released>
    void acknowledge(SequenceNumber expected, Released released) {
        while (first_ != expected) {
            if (Packet* const packet = place_of(first_).packet) released(*packet);
            ++first_;
        }
        while (!chunks_.empty() && chunks_.front().last - first_ > kPast) free_first_chunk();
    }

    // The message of this number is not repeated any more. The packet is the caller's again.
    void forget(SequenceNumber number) noexcept {
        if (number - first_ < size()) place_of(number) = {};
    }

    // Calls each(number, place) in order; it may exchange a copy for a packet.
    template <class Each>
    void for_each(Each each) {
        for (SequenceNumber number = first_; number != next_; ++number) each(number, place_of(number));
    }

    SequenceNumber first() const noexcept { return first_; }
    SequenceNumber next() const noexcept { return next_; }
    std::size_t size() const noexcept { return next_ - first_; }
    std::size_t memory_bytes() const noexcept {
        std::size_t bytes = places_.size() * sizeof(Place) + (spare_ ? kChunkBytes : 0);
        for (const Chunk& chunk : chunks_) bytes += chunk.size;
        return bytes;
    }

private:
    static constexpr std::size_t kFirstPlaces = 4;
    static constexpr std::uint32_t kChunkBytes = 2048;
    static constexpr SequenceNumber kPast = UINT32_MAX / 2;  // a larger difference is negative

    struct Chunk {
        std::unique_ptr<std::byte[]> bytes;
        std::uint32_t size = 0, used = 0;
        SequenceNumber last = 0;  // number of the last copy in it
    };

    Place& place_of(SequenceNumber number) noexcept { return places_[number & (places_.size() - 1)]; }

    Place& add(SequenceNumber number) {
        if (size() == places_.size()) grow();
        next_ = number + 1;
        return place_of(number);
    }

    void grow() {
        std::vector<Place> larger(std::max(places_.size() * 2, kFirstPlaces));
        for (SequenceNumber number = first_; number != next_; ++number)
            larger[number & (larger.size() - 1)] = place_of(number);
        places_ = std::move(larger);
    }

    std::byte* take_room(SequenceNumber number, std::uint32_t bytes) {
        bytes = (bytes + 15) / 16 * 16;
        if (chunks_.empty() || chunks_.back().used + bytes > chunks_.back().size)
            add_chunk(std::max(bytes, kChunkBytes));
        Chunk& chunk = chunks_.back();
        std::byte* const room = chunk.bytes.get() + chunk.used;
        chunk.used += bytes;
        chunk.last = number;
        return room;
    }

    void add_chunk(std::uint32_t size) {
        const bool uses_spare = spare_ && size == kChunkBytes;
        chunks_.push_back({uses_spare ? std::move(spare_) : std::make_unique<std::byte[]>(size), size, 0, 0});
    }
    void free_first_chunk() {
        if (chunks_.front().size == kChunkBytes) spare_ = std::move(chunks_.front().bytes);
        chunks_.erase(chunks_.begin());
    }

    SequenceNumber first_, next_;
    std::vector<Place> places_;  // size: a power of two, or 0
    std::vector<Chunk> chunks_;  // the first one is the oldest
    std::unique_ptr<std::byte[]> spare_;
};

// The receiver's half for numbers that have no order: tells the first arrival of each number from repetitions.
class SeenNumbers {
public:
    enum class Seen : std::uint8_t { kFirst, kAgain, kBeyond };

    Seen on_arrival(SequenceNumber number) noexcept {
        const SequenceNumber distance = number - expected_;
        if (distance > UINT32_MAX / 2) return Seen::kAgain;
        if (distance >= kSendWindow) return Seen::kBeyond;
        if ((word_of(number) & bit_of(number)) != 0) return Seen::kAgain;
        word_of(number) |= bit_of(number);
        while ((word_of(expected_) & bit_of(expected_)) != 0) {
            word_of(expected_) &= ~bit_of(expected_);
            ++expected_;
        }
        return Seen::kFirst;
    }
    SequenceNumber expected() const noexcept { return expected_; }  // the first number that has not arrived

private:
    std::uint64_t& word_of(SequenceNumber number) noexcept { return seen_[number % kSendWindow / 64]; }
    static std::uint64_t bit_of(SequenceNumber number) noexcept { return std::uint64_t{1} << number % 64; }

    std::array<std::uint64_t, kSendWindow / 64> seen_{};
    SequenceNumber expected_ = 0;
};

}  // namespace coop::sched

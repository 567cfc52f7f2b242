// SPDX-License-Identifier: BSD-3-Clause
//
// A ring of slots in the receiver's memory. The sender writes messages into it by RDMA and the receiver polls
// it, so a short message needs no completion queue at the receiver. (Idea: J. Liu and others, High Performance
// RDMA-Based MPI Implementation over InfiniBand, ICS 2003; fixed place of the tail: eager RDMA of Open MPI's
// btl/openib.) This file decides which slots each side may use, and tells full slots from empty ones.
//
// The slots are numbered from the end of the memory to its beginning. A message ends where its first slot ends, so its
// tail has a fixed place, and takes as many slots as it needs. Below the last slot there is spare room, for a message
// whose tail lies in that slot:
//
//     |<-- room -->|<---- slot n-1 ---->| ... |<------- slot 1 ------->|<------- slot 0 ------->|
//                                                     | message              | padding |  tail  |
//                                                     |<------------ one RDMA write ---------->| ^
//                                                                             the lap, in the last byte
//
// The last byte of a write must land last. InfiniBand does not promise an order of bytes; an HCA may write the
// packets of one RDMA write to memory in any order, for example if they took different routes. This depends on
// the receiver's HCA, so the receiver limits the length of a write: bytes_in_order() gives a length that lands in
// order, which is any length on some HCAs and otherwise one packet (with data and tail). Longer messages go as
// ordinary sends to the receive queue, or by a handshake if no receive buffer can hold them.
//
// The lap counts the rounds through the ring, so that slots need not be cleared:
//
//     last byte of the next slot    = its lap      full
//                                   = the previous lap (0: memory never written)  empty
//                                   any other      broken
//
// A message of several slots leaves its data in the last bytes of all but the first. Before the receiver returns their
// credits, it writes the lap there (RingReceiver::others).
//
// Credits: the sender has one for each free slot. The receiver returns them in the order of the slots, whatever
// the order in which messages are finished.
//
// Units: bytes, slots. Threading: none; the caller holds the lock of the channel. Ownership: plain values; the
// memory is the caller's. Allocations: two, when the receiver is constructed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coop/base/export.h"

namespace coop::sched {

constexpr std::uint32_t kMinRingSlots = 2, kMaxRingSlots = 4096;
constexpr std::uint32_t kMaxRings = 1024;  // polled by one process
constexpr std::uint32_t kMinSlotBytes = 128, kMaxSlotBytes = 128 * 1024;

// At the end of each message in a ring.
struct RingTail {
    std::uint32_t bytes;  // of the message, excluding padding and tail
    std::uint16_t check;
    std::uint8_t slot;  // lower 8 bits of the slot number
    std::uint8_t lap;   // 1..255
};
static_assert(sizeof(RingTail) == 8 && offsetof(RingTail, lap) == 7);

inline std::uint16_t check_of(const RingTail& tail) noexcept {
    constexpr std::uint64_t kSeed = 0x636f6f7072696e67ull, kFactor = 0xBF58476D1CE4E5B9ull;
    const std::uint64_t place = std::uint64_t{tail.slot} << 8 | tail.lap;
    return static_cast<std::uint16_t>((kSeed + (place << 32 | tail.bytes)) * kFactor >> 48);
}

struct RingShape {
    std::uint32_t slots = 0;
    std::uint32_t slot_bytes = 0;
    std::uint32_t most_bytes = slot_bytes;  // written for the longest message, with padding and tail

    // The shape comes from a peer: check this before calling any function below.
    bool valid() const noexcept {
        return slots >= kMinRingSlots && slots <= kMaxRingSlots && is_length(slot_bytes) && is_length(most_bytes) &&
               slot_bytes <= most_bytes;
    }
    // An odd number of cache lines, so that the tails spread over all cache sets.
    std::uint64_t stride() const noexcept { return (lines(slot_bytes) | 1) * std::uint64_t{64}; }
    std::uint64_t ring_bytes() const noexcept {
        return (slots - 1) * stride() + std::max(stride(), lines(most_bytes) * std::uint64_t{64});
    }
    std::uint64_t end_of(std::uint32_t slot) const noexcept { return ring_bytes() - slot * stride(); }
    // How many slots a message takes whose tail is in `slot`. `bytes`: written, with padding and tail.
    std::uint32_t slots_of(std::uint32_t slot, std::uint32_t bytes) const noexcept {
        if (bytes <= stride()) return 1;
        return std::min(static_cast<std::uint32_t>((bytes + stride() - 1) / stride()), slots - slot);
    }
    bool has_short_slots() const noexcept { return most_bytes > stride(); }

private:
    static constexpr bool is_length(std::uint32_t bytes) noexcept {
        return bytes >= kMinSlotBytes && bytes <= kMaxSlotBytes && bytes % 8 == 0;
    }
    static constexpr std::uint32_t lines(std::uint32_t bytes) noexcept { return (bytes + 63) / 64; }
};

// Bytes written for a message of `bytes` bytes: including padding (a message begins at a multiple of 8) and
// tail.
constexpr std::uint32_t padded(std::uint32_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
constexpr std::uint32_t written(std::uint32_t bytes) noexcept {
    return padded(bytes) + static_cast<std::uint32_t>(sizeof(RingTail));
}

// The longest message of which `most` bytes can be written.
constexpr std::uint32_t longest_in_ring(std::uint32_t most) noexcept {
    return most / 8 * 8 - static_cast<std::uint32_t>(sizeof(RingTail));
}

// Value of `in_order_bytes` if writes of any length land in order.
constexpr std::uint32_t kWholeWrite = UINT32_MAX;
constexpr std::uint32_t kMinMtuBytes = 256;  // IBTA

// Returns the length of writes to permit if `wanted` is desired and writes land in order up to `in_order_bytes`: a path's
// MTU or kWholeWrite.
constexpr std::uint32_t bytes_in_order(std::uint32_t wanted, std::uint32_t in_order_bytes) noexcept {
    const std::uint32_t whole = padded(wanted);
    return whole <= in_order_bytes ? whole : (in_order_bytes < kMinMtuBytes ? kMinMtuBytes : in_order_bytes) / 8 * 8;
}
static_assert(kMinMtuBytes >= kMinSlotBytes && kMinMtuBytes % 8 == 0);

struct RingPlace {
    std::uint32_t slot = 0;
    std::uint8_t lap = 1;

    void advance(std::uint32_t by, std::uint32_t slots) noexcept {
        slot += by;
        if (slot < slots) return;
        slot = 0;
        lap = lap == 255 ? std::uint8_t{1} : static_cast<std::uint8_t>(lap + 1);
    }
};

class RingSender {
public:
    explicit RingSender(const RingShape& shape) noexcept : shape_(shape), credits_(shape.slots) {}

    const RingShape& shape() const noexcept { return shape_; }
    std::uint32_t credits() const noexcept { return credits_; }
    bool fits(std::uint32_t bytes) const noexcept {
        return bytes <= shape_.most_bytes && written(bytes) <= shape_.most_bytes;
    }
    // Whether take() would return a place for a message of `bytes` bytes, which fits.
    bool has_room(std::uint32_t bytes) const noexcept {
        return shape_.slots_of(next_.slot, written(bytes)) <= credits_;
    }

    // Returns the place of a message of `bytes` bytes, which fits, and which the caller must then write; nothing if too
    // few slots are free.
    std::optional<RingPlace> take(std::uint32_t bytes) noexcept {
        const std::uint32_t needed = shape_.slots_of(next_.slot, written(bytes));
        if (credits_ < needed) return std::nullopt;
        credits_ -= needed;
        const RingPlace place = next_;
        next_.advance(needed, shape_.slots);
        return place;
    }

    // Returns false and changes nothing if more slots are returned than were in use.
    [[nodiscard]] bool on_credits(std::uint32_t given) noexcept {
        if (given > shape_.slots - credits_) return false;
        credits_ += given;
        return true;
    }

private:
    RingShape shape_;
    std::uint32_t credits_;
    RingPlace next_;
};

inline RingTail make_tail(std::uint32_t bytes, const RingPlace& place) noexcept {
    RingTail tail{bytes, 0, static_cast<std::uint8_t>(place.slot), place.lap};
    tail.check = check_of(tail);
    return tail;
}

enum class SlotState : std::uint8_t { kEmpty, kFull, kBroken };

// The invalid field in the tail of a full slot.
enum class TailFlaw : std::uint8_t { kNone, kCheck, kSlot, kBytes };

class COOP_EXPORT RingReceiver {
public:
    explicit RingReceiver(const RingShape& shape) : shape_(shape), taken_(shape.slots), finished_(shape.slots) {}

    const RingShape& shape() const noexcept { return shape_; }
    std::uint32_t next_slot() const noexcept { return next_.slot; }
    std::uint8_t empty_lap() const noexcept { return empty_lap_; }  // last byte of the next slot while it is empty

    // State of the next slot, according to its last byte.
    SlotState state(std::uint8_t last_byte) const noexcept {
        if (last_byte == empty_lap_) return SlotState::kEmpty;
        return last_byte == next_.lap && in_use_ < shape_.slots ? SlotState::kFull : SlotState::kBroken;
    }

    // Checks the tail of the next slot, which must be full. Every message has at least `least` bytes.
    TailFlaw flaw(const RingTail& tail, std::uint32_t least) const noexcept;

    // Takes the message in the next slot, whose tail has no flaw; returns the slot's number.
    std::uint32_t take(const RingTail& tail) noexcept {
        const RingPlace place = next_;
        const std::uint32_t slots = shape_.slots_of(place.slot, written(tail.bytes));
        taken_[place.slot] = {static_cast<std::uint16_t>(slots), place.lap};
        next_.advance(slots, shape_.slots);
        if (next_.slot == 0) empty_lap_ = place.lap;
        in_use_ += slots;
        return place.slot;
    }

    // The number of slots that the message takes beside this one. Before finish(), the caller writes lap(slot) into the
    // last byte of each of them.
    std::uint32_t others(std::uint32_t slot) const noexcept { return taken_[slot].slots - 1u; }
    std::uint8_t lap(std::uint32_t slot) const noexcept { return taken_[slot].lap; }

    // The message in this slot is no longer in use. May be called in any order.
    void finish(std::uint32_t slot) noexcept {
        finished_[slot] = 1;
        while (finished_[oldest_] != 0) {
            finished_[oldest_] = 0;
            const std::uint32_t slots = taken_[oldest_].slots;
            if ((oldest_ += slots) == shape_.slots) oldest_ = 0;
            in_use_ -= slots;
            owed_ += slots;
        }
    }

    std::uint32_t owed() const noexcept { return owed_; }  // credits not yet returned to the sender
    bool owes_half() const noexcept { return owed_ * 2 >= shape_.slots; }
    std::uint16_t take_owed() noexcept {
        const auto owed = static_cast<std::uint16_t>(owed_);
        owed_ = 0;
        return owed;
    }

private:
    struct Taken {
        std::uint16_t slots;
        std::uint8_t lap;
    };

    RingShape shape_;
    RingPlace next_;
    std::uint8_t empty_lap_ = 0;
    std::uint32_t oldest_ = 0;  // oldest slot in use, or the next one if none is
    std::uint32_t in_use_ = 0;  // slots taken but not yet free
    std::uint32_t owed_ = 0;
    std::vector<Taken> taken_;            // per slot that holds a tail: of its message
    std::vector<std::uint8_t> finished_;  // per slot: its message is finished, but an older one is not
};
static_assert(kMaxRingSlots <= UINT16_MAX);

}  // namespace coop::sched

// SPDX-License-Identifier: BSD-3-Clause
//
// A ring of slots in the receiver's memory, which the sender fills by RDMA write
// and the receiver polls: a short message without a completion queue there (the
// idea: J. Liu and others, High Performance RDMA-Based MPI Implementation over
// InfiniBand, ICS 2003; the fixed place of the tail: eager RDMA of Open MPI's
// btl/openib). Here is who may use which slot, and how a full one is told from an
// empty one.
//
// A message ends where its slot ends, so that its tail has a fixed place:
//
//     |<------------------ slot_bytes ------------------->|<- gap ->| next slot
//     |      not written      | message | padding |  tail |
//                             |<-- one RDMA write -->| ^
//                                                      the lap, last byte of all
//
// The last byte of a write must land last. InfiniBand promises no order of bytes;
// an HCA may put the packets of a write into memory in any order, for example if
// they took different ways. The receiver's HCA decides, so the receiver bounds
// its slots: by slot_bytes_for() a slot holds no more than lands in order, which
// is a whole message or one packet (its data and tail in one). The sender sends
// what does not fit into a slot.
//
// The lap counts how often the ring has come round, so nothing has to be cleared:
//
//     last byte of the next slot    = its lap      full
//                                   = the lap before (0: memory never written)  empty
//                                   any other      broken
//
// Credits: the sender has one for each slot that is free. The receiver gives them
// back in the order of the slots, however the messages are finished with.
//
// Units: bytes, slots. Threading: none; the caller holds the lock of the channel.
// Ownership: plain values; the memory is the caller's. One allocation, when the
// receiver is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coop/base/export.h"

namespace coop::sched {

constexpr std::uint32_t kLeastRingSlots = 2, kMostRingSlots = 4096;
constexpr std::uint32_t kMostRings = 1024;  // that a process polls
constexpr std::uint32_t kLeastSlotBytes = 128, kMostSlotBytes = 64 * 1024;

// At the end of each message in a ring.
struct RingTail {
    std::uint32_t bytes;  // of the message, without padding and tail
    std::uint16_t check;
    std::uint8_t slot;    // its number, the lower 8 bits
    std::uint8_t lap;     // 1..255
};
static_assert(sizeof(RingTail) == 8 && offsetof(RingTail, lap) == 7);

COOP_EXPORT std::uint16_t check_of(const RingTail& tail) noexcept;

struct RingShape {
    std::uint32_t slots = 0;
    std::uint32_t slot_bytes = 0;

    // A peer tells its shape: to be asked before anything below.
    bool valid() const noexcept {
        return slots >= kLeastRingSlots && slots <= kMostRingSlots && slot_bytes >= kLeastSlotBytes && slot_bytes <= kMostSlotBytes && slot_bytes % 8 == 0;
    }
    // An odd number of cache lines, so that the tails do not all fall into the same cache set.
    std::uint64_t stride() const noexcept { return ((slot_bytes + 63) / 64 | 1) * std::uint64_t{64}; }
    std::uint64_t ring_bytes() const noexcept { return slots * stride(); }
    std::uint64_t end_of(std::uint32_t slot) const noexcept { return slot * stride() + slot_bytes; }
};

// What is written for a message of `bytes`: with padding (the message begins at a
// multiple of 8) and tail.
constexpr std::uint32_t padded(std::uint32_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
constexpr std::uint32_t written(std::uint32_t bytes) noexcept { return padded(bytes) + static_cast<std::uint32_t>(sizeof(RingTail)); }

// `in_order_bytes` of a write that land in order, if it is of any length.
constexpr std::uint32_t kWholeWrite = UINT32_MAX;
constexpr std::uint32_t kLeastMtuBytes = 256;  // IBTA

// The size of a slot that is to be `wanted` bytes long, where writes land in order up to `in_order_bytes`: a path's MTU, or kWholeWrite.
constexpr std::uint32_t slot_bytes_for(std::uint32_t wanted, std::uint32_t in_order_bytes) noexcept {
    const std::uint32_t slot = padded(wanted);
    return slot <= in_order_bytes ? slot : (in_order_bytes < kLeastMtuBytes ? kLeastMtuBytes : in_order_bytes) / 8 * 8;
}
static_assert(kLeastMtuBytes >= kLeastSlotBytes && kLeastMtuBytes % 8 == 0);

struct RingPlace {
    std::uint32_t slot = 0;
    std::uint8_t lap = 1;

    void advance(std::uint32_t slots) noexcept {
        if (++slot < slots) return;
        slot = 0;
        lap = lap == 255 ? std::uint8_t{1} : static_cast<std::uint8_t>(lap + 1);
    }
};

class RingSender {
public:
    explicit RingSender(const RingShape& shape) noexcept : shape_(shape), credits_(shape.slots) {}

    const RingShape& shape() const noexcept { return shape_; }
    std::uint32_t credits() const noexcept { return credits_; }
    bool fits(std::uint32_t bytes) const noexcept { return bytes <= shape_.slot_bytes && written(bytes) <= shape_.slot_bytes; }

    // The place of the next message, which has to be written then; null: no slot is free.
    std::optional<RingPlace> take() noexcept {
        if (credits_ == 0) return std::nullopt;
        --credits_;
        const RingPlace place = next_;
        next_.advance(shape_.slots);
        return place;
    }

    // False: more than it had lent; nothing has changed.
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

COOP_EXPORT RingTail make_tail(std::uint32_t bytes, const RingPlace& place) noexcept;

enum class SlotState : std::uint8_t { kEmpty, kFull, kBroken };

// What is wrong with the tail of a full slot.
enum class TailFlaw : std::uint8_t { kNone, kCheck, kSlot, kBytes };

class COOP_EXPORT RingReceiver {
public:
    explicit RingReceiver(const RingShape& shape) : shape_(shape), finished_(shape.slots) {}

    const RingShape& shape() const noexcept { return shape_; }
    std::uint32_t next_slot() const noexcept { return next_.slot; }
    std::uint8_t empty_lap() const noexcept { return empty_lap_; }  // of the next slot

    // Of the next slot, by its last byte.
    SlotState state(std::uint8_t last_byte) const noexcept {
        if (last_byte == empty_lap_) return SlotState::kEmpty;
        return last_byte == next_.lap && in_use_ < shape_.slots ? SlotState::kFull : SlotState::kBroken;
    }

    // Of the next slot, when it is full. `least` bytes are in every message.
    TailFlaw flaw(const RingTail& tail, std::uint32_t least) const noexcept;

    // The next slot's message is taken; its number.
    std::uint32_t take() noexcept {
        const RingPlace taken = next_;
        next_.advance(shape_.slots);
        if (next_.slot == 0) empty_lap_ = taken.lap;
        ++in_use_;
        return taken.slot;
    }

    // Nobody reads that slot any more. In any order.
    void finish(std::uint32_t slot) noexcept {
        finished_[slot] = 1;
        while (finished_[oldest_] != 0) {
            finished_[oldest_] = 0;
            if (++oldest_ == shape_.slots) oldest_ = 0;
            --in_use_;
            ++owed_;
        }
    }

    std::uint32_t owed() const noexcept { return owed_; }  // credits that the sender has not been told of
    bool owes_half() const noexcept { return owed_ * 2 >= shape_.slots; }
    std::uint16_t take_owed() noexcept {
        const auto owed = static_cast<std::uint16_t>(owed_);
        owed_ = 0;
        return owed;
    }

private:
    RingShape shape_;
    RingPlace next_;
    std::uint8_t empty_lap_ = 0;
    std::uint32_t oldest_ = 0;  // slot that is not free yet, or the next one
    std::uint32_t in_use_ = 0;  // taken, and not yet free
    std::uint32_t owed_ = 0;
    std::vector<std::uint8_t> finished_;  // of each slot: nobody reads it, but an older one is still read
};
static_assert(kMostRingSlots <= UINT16_MAX);

}  // namespace coop::sched

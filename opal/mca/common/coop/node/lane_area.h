// SPDX-License-Identifier: BSD-3-Clause
//
// The memory in which a process receives from the other processes of its node: one ring for each process that sends to
// it (node/lane_ring.h). A sender claims a ring when it has something to say; the pages of the others are never
// touched.
//
//     bells     one bit per ring: its writer has written although its reader slept
//     kept      bytes of long messages that the owner has taken from the rings and not received yet
//     claims    one word per ring: free, or which process writes to it
//     controls  per ring: who its sender is, how far it is read, its reader's word about an offer, and whether the reader sleeps
//     slots     one per ring
//     rings
//
// States of a claim:
//
//          sender: claim()        open()            close()          reader has read everything: reset()
//     free -----------------> claimed ------> open --------> closed ------------------------------------> free
//      ^                       |   |                                                                       ^
//      |   give_up(): there is |   | watch()                                                               |
//      +--- no memory for it --+   +--------> watched                                                      |
//                                                |    the sender's lock has ended, and the reader          |
//                                                +---- has read everything: reset() -----------------------+
//
// The reader does not touch a ring that is only claimed, because the system may not provide its memory.
//
// A sender of another job may end while the reader goes on. It takes a lock that ends with it (node/byte_lock.h), and
// has its claim watched, and then its ring. To leave the ring it ends the lock, and does nothing else: if it freed or
// closed the ring itself, the next sender could claim the ring before the lock has ended, and would not get it. If the
// lock ends before the ring is open, the reader frees the ring. The senders of the reader's own job end with the
// reader.
//
// Units: bytes. Threading: processes and threads synchronize by the atomic words. Ownership: the memory stays the
// caller's, aligned to a cache line and zeroed before prepare(). Errors: the counts and offsets that a peer tells are
// checked by LaneShape::valid() and by the reader of a ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/node/lane_ring.h"

namespace coop::node {

constexpr std::uint32_t kMaxLaneRings = 512;
// Processes of other jobs share the last rings of an area, so that they leave one for each process of the owner's job.
constexpr std::uint32_t kGuestRings = 8;

// How many rings an area has, and how long each is.
struct LaneShape {
    std::uint32_t rings = 0;
    std::uint32_t ring_bytes = 0;

    constexpr bool valid() const noexcept {
        return rings >= 1 && rings <= kMaxLaneRings && std::has_single_bit(ring_bytes) && ring_bytes >= kMinLaneRing &&
               ring_bytes <= kMaxLaneRing;
    }
};

// The shape for at most `memory` bytes of rings: one for each of `senders` as far as they fit with kMinLaneRing, each
// as long as possible up to `longest`. No rings if not even one fits.
constexpr LaneShape lane_shape(std::uint64_t memory, std::uint32_t senders, std::uint32_t longest) noexcept {
    const std::uint64_t most = std::min<std::uint64_t>(memory / kMinLaneRing, kMaxLaneRings);
    const auto rings = static_cast<std::uint32_t>(std::min<std::uint64_t>(senders, most));
    if (rings == 0) return {};
    const std::uint64_t each = std::min<std::uint64_t>(memory / rings, std::min(longest, kMaxLaneRing));
    return {rings, static_cast<std::uint32_t>(std::bit_floor(std::max<std::uint64_t>(each, kMinLaneRing)))};
}

class LaneArea {
public:
    static constexpr std::size_t kLine = kLaneLine, kPage = 4096;
    static constexpr std::uint32_t kBellWords = kMaxLaneRings / 64;

    struct alignas(kLine) Control {
        std::atomic<std::uint64_t> freed;                  // written by the reader now and then
        std::atomic<std::uint64_t> sender;                 // its name, if it has introduced itself
        std::atomic<std::uint64_t> answer;                 // to the last offer in the ring (node/lane_offer.h)
        alignas(kLine) std::atomic<std::uint32_t> asleep;  // written by the reader seldom, read by the writer often
        // The offer that the reader has begun to read. Alone in its line, because the reader sets it before each copy.
        alignas(kLine) std::atomic<std::uint64_t> reading;
    };
    static_assert(sizeof(Control) == 3 * kLine && std::atomic<std::uint64_t>::is_always_lock_free);

    LaneArea() = default;
    LaneArea(std::byte* memory, LaneShape shape) noexcept
        : memory_(memory), controls_(reinterpret_cast<Control*>(memory + controls_at(shape.rings))),
          slots_(memory + slots_at(shape.rings)), rings_(memory + rings_at(shape.rings)), shape_(shape) {}

    static constexpr std::size_t bytes_for(LaneShape shape) noexcept {
        return rings_at(shape.rings) + std::size_t{shape.rings} * shape.ring_bytes;
    }
    // Bytes before the slots and rings.
    static constexpr std::size_t head_bytes(LaneShape shape) noexcept { return slots_at(shape.rings); }

    explicit operator bool() const noexcept { return memory_ != nullptr; }
    const LaneShape& shape() const noexcept { return shape_; }

    // By the owner, before any sender knows the area.
    void prepare() const noexcept {
        for (std::uint32_t i = 0; i < shape_.rings; ++i) control(i).asleep.store(1, std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t>& bells(std::uint32_t word) const noexcept {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_)[word];
    }
    // Senders read it before each long message, so it has a cache line of its own.
    std::atomic<std::uint64_t>& kept() const noexcept {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_ + kLine);
    }
    std::atomic<std::uint64_t>& claim_of(std::uint32_t ring) const noexcept {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_ + 2 * kLine)[ring];
    }
    Control& control(std::uint32_t ring) const noexcept { return controls_[ring]; }
    std::byte* ring(std::uint32_t ring) const noexcept { return rings_ + std::size_t{ring} * shape_.ring_bytes; }
    bool is_in_ring(const std::byte* body) const noexcept { return body >= rings_; }
    // The ring in which `body` lies.
    std::uint32_t ring_at(const std::byte* body) const noexcept {
        return static_cast<std::uint32_t>(static_cast<std::size_t>(body - ring(0)) / shape_.ring_bytes);
    }
    std::atomic<std::uint64_t>& answer(std::uint32_t ring) const noexcept { return control(ring).answer; }
    std::atomic<std::uint64_t>& reading(std::uint32_t ring) const noexcept { return control(ring).reading; }
    std::byte* slot(std::uint32_t ring) const noexcept { return slots_ + std::size_t{ring} * kLaneSlot; }
    LaneMemory memory_of(std::uint32_t at) const noexcept { return {ring(at), &control(at).freed, slot(at)}; }

    // -- by a sender

    // Claims a free ring for the process `pid`. Processes with other values of `rank` look first at other rings.
    // Nothing: all that it may use are in use. Call open(), watch() or give_up() next.
    std::optional<std::uint32_t> claim(std::int32_t pid, std::uint32_t rank, bool is_guest = false) const noexcept {
        const std::uint32_t first = is_guest ? shape_.rings - guest_rings() : 0, rings = shape_.rings - first;
        for (std::uint32_t k = 0; k < rings; ++k) {
            const std::uint32_t i = first + (rank % rings + k) % rings;
            std::uint64_t free = kFree;
            if (claim_of(i).load(std::memory_order_relaxed) == kFree &&
                claim_of(i).compare_exchange_strong(free, claim_word(pid, kClaimed), std::memory_order_acq_rel))
                return i;
        }
        return std::nullopt;
    }
    // After claim(), when a lock tells whether this process has ended.
    void watch_claim(std::uint32_t ring, std::int32_t pid) const noexcept {
        claim_of(ring).store(claim_word(pid, kClaimedAndWatched), std::memory_order_release);
    }
    // When the ring has memory for the first records.
    void open(std::uint32_t ring, std::int32_t pid) const noexcept {
        claim_of(ring).store(claim_word(pid, kOpen), std::memory_order_release);
    }
    // Instead of open(): nothing is written. Not after watch_claim().
    void give_up(std::uint32_t ring) const noexcept { claim_of(ring).store(kFree, std::memory_order_release); }
    // After open(). `name`: unique, not 0.
    void introduce(std::uint32_t ring, std::uint64_t name) const noexcept {
        control(ring).sender.store(name, std::memory_order_release);
    }
    // After its last record. Not after watch().
    void close(std::uint32_t ring, std::int32_t pid) const noexcept {
        claim_of(ring).store(claim_word(pid, kClosed), std::memory_order_release);
        wake(ring);
    }
    // Instead of open(), after watch_claim().
    void watch(std::uint32_t ring, std::int32_t pid) const noexcept {
        claim_of(ring).store(claim_word(pid, kWatched), std::memory_order_release);
    }
    // After each record. Without a full fence: node/lane_inbox.h tells why none is needed.
    void wake(std::uint32_t ring) const noexcept {
        if (control(ring).asleep.load(std::memory_order_relaxed) == 0) return;
        const std::uint64_t bit = std::uint64_t{1} << ring % 64;
        if (!(bells(ring / 64).load(std::memory_order_relaxed) & bit))
            bells(ring / 64).fetch_or(bit, std::memory_order_release);
    }

    // -- by the reader

    // The ring of the sender with this name.
    std::optional<std::uint32_t> ring_of(std::uint64_t name) const noexcept {
        for (std::uint32_t i = 0; i < shape_.rings; ++i)
            if (control(i).sender.load(std::memory_order_acquire) == name) return i;
        return std::nullopt;
    }
    // For tests.
    bool is_free(std::uint32_t ring) const noexcept { return claim_of(ring).load(std::memory_order_relaxed) == kFree; }
    // Whether the ring may hold records.
    bool is_used(std::uint32_t ring) const noexcept {
        const std::uint64_t claim = claim_of(ring).load(std::memory_order_acquire);
        return claim != kFree && (claim & kClaimed) == 0;
    }
    // Frees a ring that is only claimed if is_gone() says that its sender has ended.
    template <class IsGone>
    void free_if_gone(std::uint32_t ring, IsGone&& is_gone) const {
        std::uint64_t claim = claim_of(ring).load(std::memory_order_acquire);
        if ((claim & kStates) == kClaimedAndWatched && is_gone(ring))
            claim_of(ring).compare_exchange_strong(claim, kFree, std::memory_order_release, std::memory_order_relaxed);
    }
    bool is_closed(std::uint32_t ring) const noexcept {
        return (claim_of(ring).load(std::memory_order_acquire) & kStates) == kClosed;
    }
    // The process that has claimed the ring.
    std::int32_t claimant(std::uint32_t ring) const noexcept {
        return static_cast<std::int32_t>(claim_of(ring).load(std::memory_order_relaxed) >> 3);
    }
    bool is_watched(std::uint32_t ring) const noexcept {
        return (claim_of(ring).load(std::memory_order_acquire) & kStates) == kWatched;
    }
    // Frees a ring whose sender is done and whose records are all read. `has_slot`: the reader has been told of the slot; otherwise its memory may not exist.
    void reset(std::uint32_t ring, bool has_slot) const noexcept {
        memory_of(ring).clear_word(0);
        if (has_slot) memory_of(ring).publish_slot(0);
        control(ring).sender.store(0, std::memory_order_relaxed);
        control(ring).freed.store(0, std::memory_order_relaxed);
        control(ring).answer.store(0, std::memory_order_relaxed);
        control(ring).reading.store(0, std::memory_order_relaxed);
        control(ring).asleep.store(1, std::memory_order_relaxed);
        claim_of(ring).store(kFree, std::memory_order_release);
    }

private:
    // Of few rings at least one is not for guests, unless there is only one.
    std::uint32_t guest_rings() const noexcept {
        return std::min(kGuestRings, std::max(shape_.rings - 1, std::uint32_t{1}));
    }

    static constexpr std::uint64_t kFree = 0, kOpen = 1, kClosed = 2, kWatched = 3, kClaimed = 4,
                                   kClaimedAndWatched = 5, kStates = 7;
    static constexpr std::uint64_t claim_word(std::int32_t pid, std::uint64_t state) noexcept {
        return std::uint64_t{static_cast<std::uint32_t>(pid)} << 3 | state;
    }
    static constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
        return (bytes + unit - 1) / unit * unit;
    }
    static constexpr std::size_t controls_at(std::uint32_t rings) noexcept {
        return 2 * kLine + round_up(rings * sizeof(std::uint64_t), kLine);
    }
    // Whole pages: those of a ring that nobody has claimed, and of slots that nobody writes, are never touched.
    static constexpr std::size_t slots_at(std::uint32_t rings) noexcept {
        return round_up(controls_at(rings) + rings * sizeof(Control), kPage);
    }
    static constexpr std::size_t rings_at(std::uint32_t rings) noexcept {
        return round_up(slots_at(rings) + rings * std::size_t{kLaneSlot}, kPage);
    }

    std::byte* memory_ = nullptr;
    Control* controls_ = nullptr;
    std::byte *slots_ = nullptr, *rings_ = nullptr;
    LaneShape shape_;
};

static_assert(LaneArea::kBellWords * sizeof(std::uint64_t) == LaneArea::kLine);

}  // namespace coop::node

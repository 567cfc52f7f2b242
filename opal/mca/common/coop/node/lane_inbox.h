// SPDX-License-Identifier: BSD-3-Clause
//
// The reader of an area: finds the records in its rings (node/lane_area.h). Only rings that carried something lately
// are looked at each time, so that silent senders cost nothing:
//
//              bell, or a look around finds a record            kPatience polls without a record, while
//     asleep ---------------------------------------> awake     more than kAlwaysAwake rings are awake
//        ^                                           |     ^
//        |                                           v     |  a record
//        +------------------------------------------- drowsy
//            kPatience more polls without a record
//
// Rings that are awake or drowsy are looked at by each poll(). The writers of a drowsy ring already ring the bell. A
// writer publishes a record and then looks whether it has to ring. There is no full fence in between, which would make
// every message wait until its record is visible here, so this look may come first and find a reader that does not
// sleep yet. Such a record becomes visible while the ring is drowsy: it was on its way when the reader told that it
// sleeps, and store buffers drain in much less time than kPatience polls take. Nothing depends on that: every
// kLookAround-th poll looks at one more ring, in turns, so that a record that is still later is found, too.
//
// A ring that its sender has closed is freed when it is empty, and so is a watched one whose sender has ended.
//
// Threading: one thread at a time. Ownership: the area is the caller's. Errors: damaged() is called for a ring that
// contains what no sender writes; it must not return to normal use of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "coop/base/prefetch.h"
#include "coop/node/lane_area.h"

namespace coop::node {

// Beside each ring: what its reader, and our writer to the same process, tell each other about the two slots (node/lane_ring.h).
struct alignas(kLaneLine) LaneTurns {
    std::atomic<bool> taken{false};      // by the reader: turn of the last record that we took from their slot
    std::atomic<bool> confirmed{false};  // by the reader: turn of our last record that they have taken
    // By the writer: our slot, and how much of it the last record used.
    std::atomic<std::byte*> slot{nullptr};
    std::atomic<std::uint32_t> used{0};
};

// What becomes of a record.
enum class LaneTake : std::uint8_t {
    kNext,  // it is taken, and the next one may follow
    kLast,  // it is taken, and the next one of its ring is left to the next poll
    kLater  // it is left to the next poll, and so are those behind it
};

class LaneInbox {
public:
    static constexpr std::uint32_t kPatience = 256, kAlwaysAwake = 4, kLookAround = 16, kMostRecords = 32;

    LaneInbox() = default;
    explicit LaneInbox(LaneArea area)
        : area_(area), words_((area.shape().rings + 63) / 64), rings_(area.shape().rings),
          turns_(new LaneTurns[area.shape().rings]) {
        for (std::uint32_t i = 0; i < rings_.size(); ++i) start(i);
        awake_.reserve(rings_.size());
    }

    // Takes the records that are there, at most kMostRecords from each ring. Calls take(kind, body, bytes) for each,
    // which returns a LaneTake; the body is valid until it returns, or with kLater until a later call has taken the
    // record. damaged(ring) as described above. is_gone(ring) tells whether the sender of a watched ring has ended; it
    // is seldom called. Returns the number of records that are taken.
    template <class Take, class Damaged, class IsGone>
    int poll(Take&& take, Damaged&& damaged, IsGone&& is_gone) {
        hear_bells();
        int records = 0;
        for (std::size_t k = 0; k < awake_.size();) {
            const std::uint32_t ring = awake_[k];
            const int found = drain(ring, take, damaged);
            records += found;
            if (found == 0 && leaves(ring, is_gone)) awake_[k] = awake_.back(), awake_.pop_back();
            else ++k;
        }
        if (++polls_ % kLookAround == 0) look_around(is_gone);
        return records;
    }

    // Lives as long as this object.
    LaneTurns& turns(std::uint32_t ring) noexcept { return turns_[ring]; }

    std::size_t awake() const noexcept { return awake_.size(); }  // drowsy ones included; for tests

private:
    struct Ring {
        LaneReader<LaneMemory> reader;
        std::uint32_t idle = 0;  // polls without a record
        bool is_awake = false;   // or drowsy
        bool is_drowsy = false;
        bool confirmed = false;  // as in LaneTurns
    };

    void pass_slot(std::uint32_t at) noexcept {
        rings_[at].reader.pass_slot();
        turns_[at].taken.store(rings_[at].reader.turn(), std::memory_order_release);
    }
    // The other process has taken our record from the slot. Prefetches its lines for writing, without the first, which that process
    // polls: they arrive while this record is handled.
    [[gnu::noinline]] void confirm(std::uint32_t at) noexcept {
        LaneTurns& turns = turns_[at];
        const std::byte* const slot = turns.slot.load(std::memory_order_relaxed);
        const std::uint32_t used = turns.used.load(std::memory_order_relaxed);
        for (std::uint32_t line = kLaneLine; line < used; line += kLaneLine) prefetch_to_write(slot + line);
        rings_[at].confirmed = !rings_[at].confirmed;
        turns.confirmed.store(rings_[at].confirmed, std::memory_order_release);
    }

    void start(std::uint32_t ring) noexcept {
        rings_[ring].reader = LaneReader<LaneMemory>(area_.memory_of(ring), area_.shape().ring_bytes);
    }

    void hear_bells() {
        for (std::uint32_t w = 0; w < words_; ++w) {
            if (area_.bells(w).load(std::memory_order_relaxed) == 0) continue;
            for (std::uint64_t bits = area_.bells(w).exchange(0, std::memory_order_acquire); bits; bits &= bits - 1) {
                const std::uint32_t ring = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
                if (ring < rings_.size()) wake(ring);
            }
        }
    }

    void wake(std::uint32_t ring) {
        if (rings_[ring].is_awake) return;
        rings_[ring].is_awake = true;
        rings_[ring].idle = 0;
        area_.control(ring).asleep.store(0, std::memory_order_relaxed);
        awake_.push_back(ring);
    }

    template <class Take, class Damaged>
    [[gnu::always_inline]] int drain(std::uint32_t at, Take&& take, Damaged&& damaged) {
        Ring& ring = rings_[at];
        LaneReader<LaneMemory>& reader = ring.reader;
        std::byte* const start = area_.ring(at);
        int records = 0;
        for (auto record = reader.look(); record; record = reader.look()) {
            if (record->kind == 0) [[unlikely]] {
                damaged(at);
                break;
            }
            if (record->taken != ring.confirmed) [[unlikely]]  // our record in the other slot is taken
                confirm(at);
            const bool is_in_slot = record->is_in_slot();
            std::byte* const body = is_in_slot ? area_.slot(at) + kLaneWord : start + record->at;
            const LaneTake taken = take(record->kind, body, record->bytes);
            if (taken == LaneTake::kLater) [[unlikely]] {
                stir(at);
                break;
            }
            if (is_in_slot) pass_slot(at);
            else reader.pass(*record);
            if (++records == static_cast<int>(kMostRecords) || taken == LaneTake::kLast) break;
        }
        if (records > 0) stir(at);
        return records;
    }

    void stir(std::uint32_t at) noexcept {
        Ring& ring = rings_[at];
        ring.idle = 0;
        if (!ring.is_drowsy) return;
        ring.is_drowsy = false;
        area_.control(at).asleep.store(0, std::memory_order_relaxed);
    }

    // Returns true if the ring, which has just been found empty, is asleep or free now.
    template <class IsGone>
    bool leaves(std::uint32_t at, IsGone&& is_gone) {
        Ring& ring = rings_[at];
        if (++ring.idle < kPatience) return false;
        ring.idle = 0;
        if (has_ended(at, is_gone)) {
            if (ring.reader.look()) return false;
            free(at);
            return true;
        }
        if (ring.is_drowsy) {
            ring.is_awake = ring.is_drowsy = false;
            return true;
        }
        ring.is_drowsy = awake_.size() > kAlwaysAwake;
        if (ring.is_drowsy) area_.control(at).asleep.store(1, std::memory_order_relaxed);
        return false;
    }

    // Whether no record follows those that a later look finds.
    template <class IsGone>
    bool has_ended(std::uint32_t ring, IsGone&& is_gone) const {
        return area_.is_closed(ring) || (area_.is_watched(ring) && is_gone(ring));
    }

    // Its sender is of another job, which uses no slots, or at its end: we send it nothing any more, so the turns may begin anew.
    void free(std::uint32_t ring) noexcept {
        const bool has_slot = rings_[ring].reader.has_slot();
        rings_[ring] = {};
        turns_[ring].taken.store(false, std::memory_order_relaxed);
        turns_[ring].confirmed.store(false, std::memory_order_relaxed);
        start(ring);
        area_.reset(ring, has_slot);
    }

    template <class IsGone>
    void look_around(IsGone&& is_gone) {
        const std::uint32_t ring = polls_ / kLookAround % static_cast<std::uint32_t>(rings_.size());
        if (rings_[ring].is_awake) return;
        if (!area_.is_used(ring)) return area_.free_if_gone(ring, is_gone);
        const bool has_no_more = has_ended(ring, is_gone);  // before the look
        if (rings_[ring].reader.look()) wake(ring);
        else if (has_no_more) free(ring);
    }

    LaneArea area_;
    std::uint32_t words_ = 0, polls_ = 0;
    std::vector<Ring> rings_;
    std::unique_ptr<LaneTurns[]> turns_;
    std::vector<std::uint32_t> awake_;
};

}  // namespace coop::node

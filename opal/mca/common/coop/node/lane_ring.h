// SPDX-License-Identifier: BSD-3-Clause
//
// One direction between two processes that share memory: a ring of records with one writer and one reader.
//
//     | word | body .......... | word | body | word 0 |  free  ...
//       ^ reader                               ^ writer
//
// A record starts at a cache line with one word: kind and length, or 0 if the record is not there yet. So a short
// record needs one cache line on its way from core to core. Before the writer publishes a record (a release store of
// its word) it clears the word that follows, because old bytes of an earlier lap may look like a record. After a
// record of one line it also clears the word after the *next* line. The next one-line record then touches only its own
// line. After a longer record (up to kLongestPrepared) that answers one of the reader's, it clears the word after a
// next record of the same length, and prefetches the lines of that record. A record does not wrap: if it does not fit
// before the end, the writer publishes a skip, and the record starts at the beginning. The reader tells how far it has
// read with the first record that completes an eighth of the longest lap so far, at least 512 bytes and at most
// 16 KiB; the writer looks at that only when the ring seems full. (Lamport's queue, with the index of the writer in
// the data.)
//
// The writer may use only the beginning of the ring, and skip the rest of each lap: at first to save page faults, later
// because node/lane_laps.h has chosen a shorter lap. The reader assumes that this part ends with the farthest record that it
// has seen.
//
// Beside the ring there is a slot for one record, of 193 to 2104 bytes. Its lines are always the same, so both cores have
// them in their caches, while the lines of a long ring have to come from farther away. A record goes into the slot if it
// answers one of the reader's, nothing has followed the last answer in the ring, and the slot is known to be read. The
// words keep the order:
//
//     turn     a bit that each record in the slot inverts. Each word in the ring has the turn of the last record that was put
//              into the slot before it. So a word in the ring with the reader's turn comes before the record in the slot, and
//              one with the other turn after it. If the ring is empty, the word of the slot tells: its turn is not
//              the reader's if its record is new
//     taken    words of the other direction have the turn of the last record that was taken from the slot. The writer
//              writes to the slot only when that is its own turn. So at most one record in the slot is not taken, and one bit
//              is enough
//     has slot words in the ring tell the reader that the memory of the slot exists; before, it does not touch it
//
// `Memory` does the loads and stores, so that a test can run this code on a model of weakly ordered memory:
//
//     std::uint64_t load_word(std::uint32_t at)                 acquire
//     void clear_word(std::uint32_t at)                         relaxed: a later publish_word() makes it visible
//     void publish_word(std::uint32_t at, std::uint64_t word)   release
//     void prepare_to_write(std::uint32_t at, std::uint32_t bytes)   no effect but on speed
//     void prepare_to_read(std::uint32_t at, std::uint32_t bytes)    the same; may reach behind the ring
//     std::uint64_t load_freed(), void store_freed(std::uint64_t)   acquire, release; bytes, counted from the start
//     std::uint64_t load_slot(), void publish_slot(std::uint64_t)   acquire, release; the word of the slot
//     void prepare_to_read_slot(std::uint32_t bytes)                 no effect but on speed; behind the first line
//
// Units: bytes; offsets are in the ring. Threading: one writer at a time and one reader at a time. Errors: the reader
// refuses a word that no writer writes; the ring cannot be used any more then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "coop/base/prefetch.h"
#include "coop/node/lane_word.h"

namespace coop::node {

constexpr std::uint32_t kMinLaneRing = 16 * 1024, kMaxLaneRing = 4096 * 1024;  // powers of two

// The longest record after which the next one is prepared: 2 KiB and a header. To take so many lines of a longer one delays
// the lines of the answer, which are needed first: half round trips of 4 and 8 KiB took 1.2 times as long with it.
constexpr std::uint32_t kLongestPrepared = 2048 + kLaneLine;

// As soon as the reader has seen the word of a record of up to kFetchedEarly bytes, it prefetches up to kMostEarly bytes behind
// the first line. Longer records took more time with this than without.
constexpr std::uint32_t kFetchedEarly = 512, kMostEarly = 256;

// Shorter records are quicker in the ring, whose next lines the writer has already prepared.
constexpr std::uint32_t kShortestInSlot = 3 * kLaneLine + 1;
// How much of a record in the slot the reader prefetches as soon as it has seen its word.
constexpr std::uint32_t kMostEarlyInSlot = 1024;

// The longest record: three eighths of the ring. One always fits an empty ring: before it a skip, which is shorter, and
// at most the last eighth, about which the reader has not told.
constexpr std::uint32_t longest_lane_record(std::uint32_t ring_bytes) noexcept {
    return ring_bytes / 8 * 3 - kLaneWord;
}

// How much may be read before the reader tells, if `used` bytes of the ring are used. At most an eighth of the short part of
// node/lane_laps.h: after a long lap the writer may return to it, and must not wait for the reader then.
constexpr std::uint32_t kLongestLaneDelay = 16 * 1024;
constexpr std::uint32_t lane_delay(std::uint32_t used) noexcept {
    return std::clamp(used / 8, 512u, kLongestLaneDelay);
}

// How much of a ring to use at first: records of up to `bytes` bytes that are read at once never seem to fill it. Before a
// record at the beginning there must be room for it there, of which the reader tells with a delay.
constexpr std::uint32_t first_lane_end(std::uint32_t ring_bytes, std::uint32_t bytes) noexcept {
    constexpr std::uint32_t kPage = 4096;
    const std::uint32_t two = 2 * (lane_record_bytes(bytes) + kLaneLine);
    const std::uint32_t least = two + lane_delay(two / 7 * 8 + 8);
    return std::min((least + kPage - 1) / kPage * kPage, ring_bytes);
}

// The longest record that always fits the first `end` bytes of a ring when all records before it have been read.
constexpr std::uint32_t longest_record_of(std::uint32_t end) noexcept {
    return (end - lane_delay(end)) / 2 - 2 * kLaneLine - kLaneWord;
}

// Where the body of a record lies in its ring, or nothing. Like std::optional, which GCC passes through memory here.
class LanePlace {
public:
    LanePlace() = default;
    explicit LanePlace(std::uint32_t at) noexcept : at_(at) {}
    explicit operator bool() const noexcept { return at_ != 0; }
    std::uint32_t operator*() const noexcept { return at_; }

private:
    std::uint32_t at_ = 0;  // 0: nothing; no body lies there, because a word precedes it
};

struct Lap {
    std::uint32_t bytes;  // of records
    bool of_answers;      // answers have taken at least half of them
};

template <class Memory>
class LaneWriter {
public:
    LaneWriter() = default;
    // `end`: how much of the ring may be used now; whole cache lines.
    LaneWriter(Memory memory, std::uint32_t ring_bytes, std::uint32_t end) noexcept
        : memory_(memory), size_(ring_bytes) {
        use(end);
    }
    // For tests: all of the ring may be used.
    LaneWriter(Memory memory, std::uint32_t ring_bytes) noexcept : LaneWriter(memory, ring_bytes, ring_bytes) {}

    std::uint32_t longest() const noexcept { return longest_lane_record(size_); }  // for tests
    std::uint32_t end() const noexcept { return end_; }
    // More or less of the ring may be used from now on.
    void use(std::uint32_t end) noexcept {
        end_ = end;
        // Behind a record there is the word of the next one, which is at the beginning only if the record ends with the ring.
        last_ = end == size_ ? size_ : end - kLaneLine;
    }

    // Returns where to write the body of a record of at most longest_lane_record() bytes, or nothing if the ring, as
    // far as it may be used, is full or shorter than the record. Until publish() the reader sees no record, perhaps a
    // skip, and reserve() may be called again.
    LanePlace reserve(std::uint32_t bytes) noexcept {
        const std::uint32_t need = lane_record_bytes(bytes), at = offset();
        if (at + need > last_) [[unlikely]]
            return reserve_at_beginning(need);
        if (!has_room(need + kLaneLine)) return {};
        if (need > kLaneLine) clear_behind(need);
        return LanePlace(at + kLaneWord);
    }

    // Shows the record that was reserved last and is written now. `bytes`: at most what was reserved. `is_answer`: the reader
    // has probably read all records before, and sends something itself before the next one. `taken`: lane_word.h.
    void publish(std::uint8_t kind, std::uint32_t bytes, bool is_answer = false, bool taken = false) noexcept {
        const std::uint32_t at = offset(), record = lane_record_bytes(bytes);
        const std::uint64_t next = position_ + record;
        clear_behind(record);
        position_ = next;
        memory_.publish_word(at, lane_word(kind, bytes, slot_, taken));
        if (is_answer) {  // nothing in a stream, which needs the time
            answered_ += record;
            answer_end_ = next;
        }
        if (record == kLaneLine || (is_answer && record <= kLongestPrepared)) prepare_next(next, record);
    }

    // The memory of the slot is provided. The next record in the ring tells the reader so.
    void use_slot() noexcept {
        slot_ |= kLaneHasSlot;
        slot_from_ = position_;
    }
    // Whether an answer with a body of at most `bytes` bytes goes into the slot. `confirmed`: the turn of the last record that the
    // reader is known to have taken.
    bool takes_slot(std::uint32_t bytes, bool confirmed) const noexcept {
        const bool is_known = (slot_ & kLaneHasSlot) && position_ != slot_from_;
        return is_known && confirmed == turn() && position_ == answer_end_ && bytes >= kShortestInSlot &&
               bytes <= kLaneSlot - kLaneWord;
    }
    // Shows the record whose body has been written to the slot, behind its word.
    void publish_slot(std::uint8_t kind, std::uint32_t bytes, bool taken) noexcept {
        slot_ ^= kLaneTurn;
        memory_.publish_slot(lane_word(kind, bytes, slot_, taken));
    }

    // After the first record of a lap: what the lap before was.
    Lap end_lap() noexcept {
        const std::uint64_t answered = std::exchange(answered_, 0);
        const std::uint32_t bytes = std::exchange(lap_, size_);
        return {bytes, bytes > 0 && answered >= bytes / 2};
    }

private:
    bool turn() const noexcept { return (slot_ & kLaneTurn) != 0; }
    std::uint32_t offset() const noexcept { return static_cast<std::uint32_t>(position_ & (size_ - 1)); }
    bool has_room(std::uint32_t bytes) noexcept {
        if (position_ + bytes - freed_ <= size_) return true;
        freed_ = memory_.load_freed();
        return position_ + bytes - freed_ <= size_;
    }

    [[gnu::noinline]] LanePlace reserve_at_beginning(std::uint32_t need) noexcept {
        const std::uint32_t at = offset(), skip = size_ - at;
        if (!has_room(skip + need + kLaneLine)) return {};
        memory_.clear_word(0);
        memory_.publish_word(at, lane_word(kLaneSkip, 0, slot_));
        lap_ = at;
        position_ += skip;
        if (need > kLaneLine) clear_behind(need);
        return LanePlace(offset() + kLaneWord);
    }

    // Clears the word behind the record at `position_`, unless that has been done.
    void clear_behind(std::uint32_t record) noexcept {
        const std::uint64_t behind = position_ + record;
        if (behind == cleared_) return;
        cleared_ = behind;
        memory_.clear_word(static_cast<std::uint32_t>(behind & (size_ - 1)));
    }

    // Prepares for a next record, at `position`, that is as long as this one: clears the word behind it, too, and takes its
    // cache lines. In a series of longer records the reader is still busy with the lines before, and this makes both slower,
    // so publish() calls it only for answers then.
    void prepare_next(std::uint64_t position, std::uint32_t record) noexcept {
        const std::uint32_t at = static_cast<std::uint32_t>(position & (size_ - 1)), behind = at + record;
        if (behind + kLaneLine > end_ || position + record + kLaneLine - freed_ > size_) return;
        cleared_ = position + record;
        memory_.clear_word(behind);
        if (record > kLaneLine) memory_.prepare_to_write(at, record);
    }

    Memory memory_{};
    std::uint32_t size_ = 0;
    std::uint32_t end_ = 0, last_ = 0;  // no byte from end_ on is used, and no record ends behind last_
    std::uint64_t position_ = 0;        // of the next record
    std::uint64_t freed_ = 0;           // as the reader told last
    std::uint64_t answered_ = 0;        // bytes of records in this lap that are answers
    std::uint32_t lap_ = 0;             // bytes of records in the last lap; at first there was none
    std::uint64_t answer_end_ = 0;      // position behind the last answer in the ring
    std::uint64_t slot_ = 0;            // kLaneSlotState of the next word
    std::uint64_t slot_from_ = 0;       // the record at this position is the first that tells of the slot
    std::uint64_t cleared_ = 0;         // a position at which the word is cleared, if it is still to come; 0: none
};

struct LaneRecord {
    std::uint32_t at;     // of the body in the ring; 0: it is in the slot
    std::uint32_t bytes;  // of the body
    std::uint8_t kind;    // 0: the word is damaged
    bool taken;           // lane_word.h

    bool is_in_slot() const noexcept { return at == 0; }
};

template <class Memory>
class LaneReader {
public:
    LaneReader() = default;
    LaneReader(Memory memory, std::uint32_t ring_bytes) noexcept
        : memory_(memory), size_(ring_bytes), longest_(longest_lane_record(ring_bytes)) {}

    // Returns the next record, which stays until pass(); nothing: none is there yet.
    [[gnu::always_inline]] std::optional<LaneRecord> look() noexcept {
        const std::uint32_t at = offset();
        const std::uint64_t word = memory_.load_word(at);
        if (word == 0 && !slot_has_record()) return std::nullopt;
        // The same state: no record in the slot comes first.
        if (is_lane_record(word) && (word & kLaneSlotState) == slot_) [[likely]]
            return in_ring(at, word);
        return look_closely();
    }

    // The turn of the last record that was taken from the slot.
    bool turn() const noexcept { return (slot_ & kLaneTurn) != 0; }
    bool has_slot() const noexcept { return (slot_ & kLaneHasSlot) != 0; }
    // Frees the record that look() has returned. Precondition: the record is in the slot (is_in_slot()).
    void pass_slot() noexcept { slot_ ^= kLaneTurn; }
    // Frees the record that look() has returned. Precondition: the record is in the ring (not is_in_slot()).
    void pass(const LaneRecord& record) noexcept {
        const std::uint32_t bytes = lane_record_bytes(record.bytes), end = record.at - kLaneWord + bytes;
        if (end > used_) {
            used_ = end;
            delay_ = lane_delay(end);
        }
        const std::uint64_t position = position_ + bytes;
        position_ = position;
        if (position - told_ >= delay_) memory_.store_freed(told_ = position);
    }

private:
    std::uint32_t offset() const noexcept { return static_cast<std::uint32_t>(position_ & (size_ - 1)); }
    // Whether there is a record in the slot that has not been taken.
    bool slot_has_record() noexcept { return has_slot() && ((memory_.load_slot() ^ slot_) & kLaneTurn) != 0; }
    // The rest of look(): skips, records in the slot, the first record that tells of it, damaged words.
    [[gnu::noinline]] std::optional<LaneRecord> look_closely() noexcept {
        for (;;) {
            // First the slot: if its record is visible, so are all records that were written to the ring before it.
            const bool has_record = slot_has_record();
            const std::uint32_t at = offset();
            const std::uint64_t word = memory_.load_word(at);
            if (word == 0 && !has_record) return std::nullopt;
            slot_ |= word & kLaneHasSlot;
            if (word == 0 || (word & kLaneSlotState) != slot_) return in_slot();
            if (word != lane_word(kLaneSkip, 0, slot_) || at == 0) return in_ring(at, word);
            position_ += size_ - at;
        }
    }
    LaneRecord in_ring(std::uint32_t at, std::uint64_t word) noexcept {
        const std::uint8_t kind = lane_kind(word);
        const std::uint64_t length = lane_length(word);
        const auto bytes = static_cast<std::uint32_t>(length);
        if (length > kLaneLine - kLaneWord && length <= kFetchedEarly)
            memory_.prepare_to_read(at + kLaneLine, std::min(bytes, kMostEarly));
        if (kind == kLaneSkip || length > longest_ || at + lane_record_bytes(bytes) > size_) [[unlikely]]
            return {at, 0, 0, false};
        return {at + kLaneWord, bytes, kind, lane_taken(word)};
    }
    LaneRecord in_slot() noexcept {
        if (!has_slot()) [[unlikely]]
            return {0, 0, 0, false};  // damaged
        const std::uint64_t word = memory_.load_slot();
        const std::uint8_t kind = lane_kind(word);
        const std::uint64_t length = lane_length(word);
        const auto bytes = static_cast<std::uint32_t>(length);
        const bool is_new = (word & kLaneSlotState) == (slot_ ^ kLaneTurn);
        if (!is_new || kind == kLaneSkip || length > kLaneSlot - kLaneWord) [[unlikely]]
            return {0, 0, 0, false};
        memory_.prepare_to_read_slot(std::min(bytes, kMostEarlyInSlot));
        return {0, bytes, kind, lane_taken(word)};
    }

    Memory memory_{};
    std::uint32_t size_ = 0, longest_ = 0;
    std::uint64_t position_ = 0;           // of the next record
    std::uint64_t slot_ = 0;               // kLaneSlotState of the last record
    std::uint64_t told_ = 0;               // what the writer may know
    std::uint32_t used_ = 0;               // the end of the farthest record
    std::uint32_t delay_ = lane_delay(0);  // how much may be read before the writer is told
};

// A ring in memory.
struct LaneMemory {
    std::byte* bytes = nullptr;  // aligned to a cache line
    std::atomic<std::uint64_t>* freed = nullptr;
    std::byte* slot = nullptr;  // aligned to a cache line

    std::uint64_t load_word(std::uint32_t at) const noexcept { return word(at).load(std::memory_order_acquire); }
    void clear_word(std::uint32_t at) const noexcept { word(at).store(0, std::memory_order_relaxed); }
    void publish_word(std::uint32_t at, std::uint64_t value) const noexcept {
        word(at).store(value, std::memory_order_release);
    }
    void prepare_to_write(std::uint32_t at, std::uint32_t length) const noexcept {
        for (std::uint32_t line = 0; line < length; line += kLaneLine) prefetch_to_write(bytes + at + line);
    }
    void prepare_to_read(std::uint32_t at, std::uint32_t length) const noexcept {
        for (std::uint32_t line = 0; line < length; line += kLaneLine) prefetch_to_read(bytes + at + line);
    }
    void prepare_to_read_slot(std::uint32_t length) const noexcept {
        for (std::uint32_t line = kLaneLine; line < kLaneWord + length; line += kLaneLine)
            prefetch_to_read(slot + line);
    }
    std::uint64_t load_freed() const noexcept { return freed->load(std::memory_order_acquire); }
    void store_freed(std::uint64_t position) const noexcept { freed->store(position, std::memory_order_release); }
    std::uint64_t load_slot() const noexcept { return slot_word().load(std::memory_order_acquire); }
    void publish_slot(std::uint64_t word) const noexcept { slot_word().store(word, std::memory_order_release); }

private:
    std::atomic_ref<std::uint64_t> word(std::uint32_t at) const noexcept {
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(bytes + at));
    }
    std::atomic_ref<std::uint64_t> slot_word() const noexcept {
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot));
    }
};

}  // namespace coop::node

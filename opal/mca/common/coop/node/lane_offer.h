// SPDX-License-Identifier: BSD-3-Clause
//
// A message that stays in its sender's memory: the sender waits in its call while the receiver lets the kernel copy it
// (node/remote_copy.h). The record is that of a message in parts (node/lane_parts.h), of which no part is written, with
// the offer before the payload. The reader tells by a word beside the ring (LaneArea::answer()) whether it has copied the
// message. If the kernel refuses the copy, the writer writes the payload in parts.
//
// The writer also writes the payload if no answer comes, because the receiver may compute for long, and a send must not
// depend on that. First it withdraws the offer. The reader may begin to read at the same moment, so each side writes a
// word, and then looks at the other's:
//
//     writer: sets the word of the parts, looks at LaneArea::reading()   reader begins: wait for the answer; else write
//     reader: sets LaneArea::reading(), looks at the word of the parts   withdrawn: answer "not copied"; else read
//
// At least one of them sees the other's word, because a full fence lies between the two steps. If both do, the writer
// gets the answer, and writes the parts then.
//
// Threading: one writer and one reader; the reader copies the offer before it answers. Errors: an address that the
// reader cannot access makes the kernel refuse the copy.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace coop::node {

struct LaneOffer {
    std::uint64_t address = 0;  // of the payload in the writer's process
    std::uint64_t number = 0;   // counted by the writer, from 1 on

    void write(std::byte* to) const noexcept { std::memcpy(to, this, sizeof *this); }
    static LaneOffer read(const std::byte* from) noexcept {
        LaneOffer offer;
        std::memcpy(&offer, from, sizeof offer);
        return offer;
    }

    // By the writer. Returns whether it has the offer back. If not, the reader answers.
    template <class Parts>
    bool take_back(Parts& parts, const std::atomic<std::uint64_t>& reading) const noexcept {
        parts.withdraw();
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return reading.load(std::memory_order_relaxed) != number;
    }
    // By the reader. Returns whether it may read the message. If not, it has to answer that it has not copied it.
    template <class Parts>
    bool begins_reading(Parts& parts, std::atomic<std::uint64_t>& reading) const noexcept {
        reading.store(number, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return !parts.is_withdrawn();
    }

    std::uint64_t answer(bool is_copied) const noexcept { return number << 1 | (is_copied ? 1 : 0); }
    // Nothing: the word does not answer this offer yet.
    std::optional<bool> is_copied(std::uint64_t word) const noexcept {
        return word >> 1 == number ? std::optional((word & 1) != 0) : std::nullopt;
    }
};

// Which messages are left out, that is, not offered although they could be. An answer is late if the receiver computed
// or the kernel refused the copy. So that a sender does not wait again and again, `n` of the next messages are then
// left out:
//
// - At first n is kFirst.
// - Each late answer doubles n for the next late one, up to kMost.
// - Each answer in time reduces n by an eighth, rounded up, down to kFirst. If one answer in four is late, n grows up
//   to kMost.
// - After a wait of more than n * kShare looks, looks / kShare messages are left out instead, so that the average wait
//   is at most kShare looks for each message.
class OfferBackoff {
public:
    static constexpr std::uint64_t kFirst = 4, kMost = std::uint64_t{1} << 40;
    static constexpr std::uint64_t kShare = 4096;  // looks for the answer

    // Counts a message that could be offered.
    bool leaves_out() noexcept {
        if (left_ == 0) return false;
        --left_;
        return true;
    }
    void answered_in_time() noexcept { next_ = std::max(next_ - (next_ + 7) / 8, kFirst); }
    // `looks`: so often the sender has looked for the answer.
    void answered_late(std::uint64_t looks) noexcept {
        left_ = std::max(next_, looks / kShare);
        next_ = std::min(2 * next_, kMost);
    }

private:
    std::uint64_t left_ = 0, next_ = kFirst;
};

}  // namespace coop::node

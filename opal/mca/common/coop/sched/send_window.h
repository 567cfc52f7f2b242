// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's half of a channel's sequence (sequence.h has the receiver's). It assigns packet sequence numbers
// (PSN) to messages and tracks which have landed, that is, were acknowledged by the peer's HCA. A message is
// sent only if it is less than `kSendWindow` ahead of the first one that has not landed.
//
//     first_                                      next_
//       v                                           v
//     [ in flight | landed | landed | in flight ] ...            next_ - first_ <= kSendWindow
//
// Rails have different speeds, and one may stall while the others continue. The receiver must then keep the
// messages that arrive ahead of one on the stalled rail. The window bounds their number without any message
// from the receiver.
//
// Source: the ordering of virtual subchannels (dissertation 4.2.2), which does not limit how far ahead a rail
// may run. Units: messages. Threading: none; the caller holds the lock of the channel. Ownership: one bit per
// message of the window, no allocation. Errors: none; calling landed() twice for one PSN has no effect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coop/sched/sequence.h"

namespace coop::sched {

class SendWindow {
public:
    explicit SendWindow(SequenceNumber first = 0) noexcept : first_(first), next_(first) {}

    bool has_room() const noexcept { return next_ - first_ < limit_; }
    // Whether `count` messages have room, and leave some for `reserve` others.
    bool has_room_for(std::uint32_t count, std::uint32_t reserve = 0) const noexcept {
        return under_way() + count + reserve <= limit_;
    }
    // Returns the number of the next message. Precondition: has_room().
    SequenceNumber take() noexcept { return next_++; }

    void landed(SequenceNumber psn) noexcept {
        if (psn - first_ >= next_ - first_) return;
        word_of(psn) |= bit_of(psn);
        while (first_ != next_ && (word_of(first_) & bit_of(first_)) != 0) {
            word_of(first_) &= ~bit_of(first_);
            ++first_;
        }
    }

    // All messages before `expected` have landed. Returns false, and changes nothing, if one of them was not sent yet.
    // A number before the first one that has not landed is old news.
    [[nodiscard]] bool landed_before(SequenceNumber expected) noexcept {
        if (next_ - expected > UINT32_MAX / 2) return false;
        if (expected - first_ > UINT32_MAX / 2) return true;
        for (; first_ != expected; ++first_) word_of(first_) &= ~bit_of(first_);
        return true;
    }

    // While it is shut there is no room.
    void shut() noexcept { limit_ = 0; }
    void open() noexcept { limit_ = kSendWindow; }
    SequenceNumber first() const noexcept { return first_; }
    SequenceNumber next() const noexcept { return next_; }

    std::uint32_t under_way() const noexcept {
        return next_ - first_;
    }  // messages from the first one that has not landed

private:
    static_assert((kSendWindow & (kSendWindow - 1)) == 0 && kSendWindow % 64 == 0);
    std::uint64_t& word_of(SequenceNumber psn) noexcept { return landed_[psn % kSendWindow / 64]; }
    static std::uint64_t bit_of(SequenceNumber psn) noexcept { return std::uint64_t{1} << psn % 64; }

    std::array<std::uint64_t, kSendWindow / 64> landed_{};  // one bit per message from first_ on
    SequenceNumber first_, next_;
    std::uint32_t limit_ = kSendWindow;
};

}  // namespace coop::sched

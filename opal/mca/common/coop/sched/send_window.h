// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's half of the one sequence of a channel (sequence.h has the
// receiver's). It gives each message its packet sequence number (PSN), and knows
// which of them have landed: the HCA of the peer has acknowledged them. No message
// is sent that is `kSendWindow` or more ahead of the first one that has not landed.
//
//     first_                                   next_
//       v                                        v
//     [ under way | landed | landed | under way ] ...            next_ - first_ <= kSendWindow
//
// Rails have different speeds, and one may stand still while the others go on. The
// receiver has to keep what arrives ahead of a message that is still on such a
// rail; the window bounds that, without any message of the receiver.
//
// Source: after the ordering of virtual subchannels (dissertation 4.2.2), which
// leaves open how far ahead a rail may run. Units: messages. Threading: none; the
// caller holds the lock of the channel. Ownership: a bit for each place of the
// window, no allocation. Errors: none; landed() twice for one PSN changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coop/sched/sequence.h"

namespace coop::sched {

class SendWindow {
public:
    explicit SendWindow(SequenceNumber first = 0) noexcept : first_(first), next_(first) {}

    bool has_room() const noexcept { return next_ - first_ < kSendWindow; }
    // The number of the next message. Precondition: has_room().
    SequenceNumber take() noexcept { return next_++; }

    void landed(SequenceNumber psn) noexcept {
        if (psn - first_ >= next_ - first_) return;
        word_of(psn) |= bit_of(psn);
        while (first_ != next_ && (word_of(first_) & bit_of(first_)) != 0) {
            word_of(first_) &= ~bit_of(first_);
            ++first_;
        }
    }

    std::uint32_t under_way() const noexcept { return next_ - first_; }  // from the first that has not landed on

private:
    static_assert((kSendWindow & (kSendWindow - 1)) == 0 && kSendWindow % 64 == 0);
    std::uint64_t& word_of(SequenceNumber psn) noexcept { return landed_[psn % kSendWindow / 64]; }
    static std::uint64_t bit_of(SequenceNumber psn) noexcept { return std::uint64_t{1} << psn % 64; }

    std::array<std::uint64_t, kSendWindow / 64> landed_{};  // of the places from first_ on
    SequenceNumber first_, next_;
};

}  // namespace coop::sched

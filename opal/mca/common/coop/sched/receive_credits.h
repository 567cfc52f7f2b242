// SPDX-License-Identifier: BSD-3-Clause
//
// Credits for the receive buffers of one queue pair. With a credit, a sender never finds the receiver not ready
// (RNR; InfiniBand 9.7.5.2.8), which would cost the RNR timer each time.
//
//     first    credits that the sender has from the start
//     reserve  buffers for messages that carry only credits; these messages are sent without a credit
//     the rest is owed to the sender from the start
//
// A queue pair that replaces another one has a later generation. Credits for the buffers of an earlier one are void.
//
// Units: buffers. Threading: none; the caller holds the lock of the channel. Ownership: plain values, no
// allocation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coop/sched/rail_set.h"

namespace coop::sched {

constexpr std::uint32_t kFirstCredits = 8;
constexpr std::uint32_t kReservedReceives = 4;

// Credits in a message header: `count` more buffers of a rail are free.
struct Grant {
    RailIndex rail = 0;
    std::uint32_t count = 0;
    std::uint32_t generation = 0;  // queue pairs that the rail has had before, modulo kGenerations

    static constexpr std::uint32_t kMax = 0x7f, kGenerations = 16;
    // How far the generation of a grant may be ahead. Others count as past: a grant may be that late if its message is
    // repeated.
    static constexpr std::uint32_t kMostAhead = 4;
    std::uint16_t word() const noexcept { return static_cast<std::uint16_t>(rail << 11 | generation << 7 | count); }
    static Grant of(std::uint16_t word) noexcept {
        return {static_cast<RailIndex>(word >> 11), word & kMax, word >> 7 & (kGenerations - 1)};
    }
};
static_assert(kMaxRails <= 32);

class SendCredits {
public:
    std::uint32_t left() const noexcept { return left_; }
    bool take() noexcept {
        if (left_ == 0) return false;
        --left_;
        return true;
    }
    // Returns false and changes nothing if the total would exceed what any queue pair can have.
    [[nodiscard]] bool give(std::uint32_t count) noexcept {
        if (count > Grant::kMax - left_) return false;
        left_ += count;
        return true;
    }

private:
    std::uint32_t left_ = kFirstCredits;
};

class ReceiveCredits {
public:
    // With fewer buffers than first + reserve, a sender may find no buffer; then RNR slows it down.
    explicit ReceiveCredits(std::uint32_t buffers = 0) noexcept
        : all_(std::max(buffers, kFirstCredits + kReservedReceives) - kReservedReceives), owed_(all_ - kFirstCredits) {}

    // A buffer that was used by a message with a credit is posted again.
    void on_free() noexcept { owed_ = std::min(owed_ + 1, all_); }
    std::uint32_t owed() const noexcept { return owed_; }
    bool owes_half() const noexcept { return owed_ * 2 >= all_; }
    // Compares the parts of the buffers that are owed.
    bool owes_more_than(const ReceiveCredits& other) const noexcept {
        return std::uint64_t{owed_} * other.all_ > std::uint64_t{other.owed_} * all_;
    }
    std::uint32_t take_owed() noexcept {
        const std::uint32_t owed = std::min(owed_, Grant::kMax);
        owed_ -= owed;
        return owed;
    }

private:
    std::uint32_t all_;
    std::uint32_t owed_;
};

}  // namespace coop::sched

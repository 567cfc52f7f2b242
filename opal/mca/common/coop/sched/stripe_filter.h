// SPDX-License-Identifier: BSD-3-Clause
//
// Completion filters: the layer above hears of a message once, not of each of
// its stripes (dissertation 4.2.3; 8.3.3 for the weights).
//
//     SentStripes      at the sender: each stripe completes in its own time
//     ArrivedStripes   at the receiver: each stripe has a FIN of its own, which
//                      carries its weight; the start of the message carries
//                      W_batch, the sum of them, for the receiver does not know
//                      how the message was cut
//
// Both know their stripes by index, so a stripe that was replayed on another rail
// after a failure, and then came twice, counts once. What comes from the peer is
// checked: an index or a weight that cannot be is kWrong and changes nothing.
//
// Units: stripes; weights as the sender has them. Threading: none; the caller
// holds the lock of the channel. Ownership: plain values.
#pragma once

#include <cstdint>

#include "coop/sched/rail_set.h"

namespace coop::sched {

enum class Landed : std::uint8_t {
    kPartly,    // others are missing
    kComplete,  // this was the last one
    kAgain,     // a replay of one that had landed
    kWrong,     // there is no such stripe, or its weight does not fit
};

// One bit for each stripe of a schedule.
using StripeMask = RailMask;

class SentStripes {
public:
    // `count`: 1..kMaxRails.
    explicit SentStripes(std::size_t count) noexcept : count_(count), missing_(first_rails(count)) {}

    [[nodiscard]] Landed on_completed(std::size_t stripe) noexcept {
        if (stripe >= count_) return Landed::kWrong;
        const StripeMask bit = StripeMask{1} << stripe;
        if ((missing_ & bit) == 0) return Landed::kAgain;
        missing_ &= ~bit;
        return missing_ == 0 ? Landed::kComplete : Landed::kPartly;
    }

    // Those to replay if their rails go down.
    StripeMask missing() const noexcept { return missing_; }
    bool complete() const noexcept { return missing_ == 0; }

private:
    std::size_t count_;
    StripeMask missing_;
};

class ArrivedStripes {
public:
    // W_batch, from the start of the message (not 0). A FIN on another rail may
    // have been faster. kPartly, kComplete, kAgain (a replay of the start) or
    // kWrong (not what the FINs so far, or another start, say).
    [[nodiscard]] Landed on_start(std::uint32_t batch_weight) noexcept {
        if (batch_weight == 0 || arrived_weight_ > batch_weight) return Landed::kWrong;
        if (batch_weight_ != 0) return batch_weight_ == batch_weight ? Landed::kAgain : Landed::kWrong;
        batch_weight_ = batch_weight;
        return result();
    }

    [[nodiscard]] Landed on_fin(std::size_t stripe, std::uint32_t weight) noexcept {
        if (stripe >= kMaxRails || weight == 0) return Landed::kWrong;
        const StripeMask bit = StripeMask{1} << stripe;
        if ((arrived_ & bit) != 0) return Landed::kAgain;
        if (weight > most_left()) return Landed::kWrong;
        arrived_ |= bit;
        arrived_weight_ += weight;
        return result();
    }

    bool complete() const noexcept { return batch_weight_ != 0 && arrived_weight_ == batch_weight_; }
    std::uint32_t arrived_weight() const noexcept { return arrived_weight_; }

private:
    std::uint32_t most_left() const noexcept { return (batch_weight_ != 0 ? batch_weight_ : UINT32_MAX) - arrived_weight_; }
    Landed result() const noexcept { return complete() ? Landed::kComplete : Landed::kPartly; }

    StripeMask arrived_ = 0;
    std::uint32_t batch_weight_ = 0;  // 0: the start is not here yet
    std::uint32_t arrived_weight_ = 0;
};

}  // namespace coop::sched

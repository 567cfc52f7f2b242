// SPDX-License-Identifier: BSD-3-Clause
//
// The completion filter: reports a message as complete once, not once per stripe (dissertation 4.2.3), for
// writes and reads. The README explains why the other side needs no filter, and why W_batch (8.3.3) is not transmitted.
//
// Units: stripes. Threading: none; the caller holds the lock of the channel. Ownership: plain values.
#pragma once

#include <cstdint>

#include "coop/sched/rail_set.h"

namespace coop::sched {

enum class Landed : std::uint8_t {
    kPartly,    // other stripes are missing
    kComplete,  // this was the last stripe
    kAgain,     // this stripe had completed before
    kWrong,     // no such stripe
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

    // The stripes to replay if their rails go down.
    StripeMask missing() const noexcept { return missing_; }
    bool complete() const noexcept { return missing_ == 0; }

private:
    std::size_t count_;
    StripeMask missing_;
};

}  // namespace coop::sched

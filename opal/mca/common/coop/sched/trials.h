// SPDX-License-Identifier: BSD-3-Clause
//
// Whether stripes pay. On links that are slow, several rails move an operation faster than one. On links that are not, the
// processor needs longer for several requests and completions than the links save. So operations that have the rails to
// themselves are timed, and those of about the same length go whole if that has been faster.
//
//     striped ──kFirst times──► whole ──kFirst times──► the faster way; one of kEvery goes the other way
//        ▲
//        └── for ever if stripes take longer than the limit: then the links need most of the time
//
// A time is the least so far; a longer one raises it by at most 1/16, so that an interrupted process does not decide, and
// a link that has become slower does.
//
// Not from the dissertation, whose threshold is a constant (6.2.3). Units: bytes, nanoseconds of any monotonic clock.
// Threading: none. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coop::sched {

class StripeTrials {
public:
    enum class Way : std::uint8_t { kStriped, kWhole };
    static constexpr std::uint32_t kFirst = 4, kEvery = 64;

    // Stripes that take longer are not compared. 0: none are.
    void set_limit(std::uint64_t ns) noexcept { limit_ns_ = ns; }

    // The way of an operation that has the rails to itself. on_time() should follow.
    Way choose(std::uint64_t bytes) noexcept {
        Times* const times = of(bytes);
        if (!times) return Way::kStriped;
        const Way best = times->best(limit_ns_);
        if (!times->are_compared(limit_ns_)) return best;
        if (times->whole.count < kFirst) return Way::kWhole;
        if (++times->turn % kEvery != 0) return best;
        return best == Way::kStriped ? Way::kWhole : Way::kStriped;
    }
    // The way of an operation beside others.
    Way known(std::uint64_t bytes) noexcept {
        const Times* const times = of(bytes);
        return times ? times->best(limit_ns_) : Way::kStriped;
    }

    void on_time(std::uint64_t bytes, Way way, std::uint64_t ns) noexcept {
        if (Times* const times = of(bytes)) (way == Way::kWhole ? times->whole : times->striped).add(ns);
    }

private:
    struct Time {
        std::uint64_t ns = 0;  // valid if count > 0
        std::uint32_t count = 0;

        void add(std::uint64_t sample_ns) noexcept {
            ns = count == 0 ? sample_ns : std::min(sample_ns, ns + ns / 16 + 1);
            if (count < kFirst) ++count;
        }
    };
    struct Times {
        Time striped, whole;
        std::uint32_t turn = 0;

        bool are_compared(std::uint64_t limit_ns) const noexcept {
            return striped.count == kFirst && striped.ns <= limit_ns;
        }
        // Whole only if that is faster by 1/8, so that chance does not make the ways alternate.
        Way best(std::uint64_t limit_ns) const noexcept {
            const bool whole_pays = are_compared(limit_ns) && whole.count == kFirst &&
                                    whole.ns + whole.ns / 8 < striped.ns;
            return whole_pays ? Way::kWhole : Way::kStriped;
        }
    };

    // Lengths up to twice the shortest are of one class. 4 KiB to 4 MiB; others are striped.
    static constexpr int kFirstBits = 13;
    Times* of(std::uint64_t bytes) noexcept {
        const int bits = std::bit_width(bytes);
        const auto last = kFirstBits + static_cast<int>(classes_.size());
        return bits < kFirstBits || bits >= last ? nullptr : &classes_[static_cast<std::size_t>(bits - kFirstBits)];
    }

    std::uint64_t limit_ns_ = 0;
    std::array<Times, 10> classes_{};
};

}  // namespace coop::sched

// SPDX-License-Identifier: BSD-3-Clause
//
// Whether stripes pay. On links that are slow, several rails move an operation faster than one. On links that are not, the
// processor needs longer for several requests and completions than the links save. So operations that have the rails to
// themselves are timed, and those of about the same length go whole if that has been faster.
//
//     striped ──kFirst times──► whole ──kFirst times──► the faster way; one of kEvery goes the other way
//        ▲
//        └── for ever if a single rail cannot be faster: stripes take no longer than the fastest link needs for the whole
//            operation, or longer than the limit, so that their cost does not matter
//
// A time is the least so far; a longer one raises it by at most 1/16, so that an interrupted process does not decide, and
// a link that has become slower does. Of the way that is rarely taken: by at most 1/4.
//
// Not from the dissertation, whose threshold is a constant (6.2.3). Units: bytes, nanoseconds of any monotonic clock.
// Threading: none. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace coop::sched {

class StripeTrials {
public:
    enum class Way : std::uint8_t { kStriped, kWhole };
    static constexpr std::uint32_t kFirst = 4, kEvery = 64;

    // `ns`: stripes that take longer are not compared; 0: none are. `link_bytes_per_s`: nominal bandwidth of the fastest
    // rail; 0: unknown.
    void set_limits(std::uint64_t ns, std::uint64_t link_bytes_per_s) noexcept {
        limit_ns_ = ns;
        link_ = link_bytes_per_s;
    }

    // The way of an operation that has the rails to itself. on_time() should follow.
    Way choose(std::uint64_t bytes) noexcept {
        Times* const times = of(bytes);
        if (!times) return Way::kStriped;
        const Range range = range_of(bytes);
        const Way best = times->best(range);
        if (!times->are_compared(range)) return best;
        if (times->whole.count < kFirst) return Way::kWhole;
        if (++times->turn % kEvery != 0) return best;
        return best == Way::kStriped ? Way::kWhole : Way::kStriped;
    }
    // The way of an operation beside others. Where the links do not decide, stripes cost without a gain: the rails are busy
    // in any case.
    Way known(std::uint64_t bytes) const noexcept { return links_matter(bytes) ? Way::kStriped : Way::kWhole; }

    // Whether the links decide how long such an operation takes, as far as is known: a single rail needs more time than all
    // of them. If not, the times of stripes say nothing about the rails.
    bool links_matter(std::uint64_t bytes) const noexcept {
        const Times* const times = of(bytes);
        if (!times || !times->are_compared(range_of(bytes)) || times->whole.count < kFirst) return true;
        return times->whole.ns > times->striped.ns + times->striped.ns / 4;
    }

    // Whether links_matter() has become false for operations of this length since the last call: what their stripes have
    // shown of the rails until now is noise.
    [[nodiscard]] bool links_stop_mattering(std::uint64_t bytes) noexcept {
        Times* const times = of(bytes);
        if (!times) return false;
        const bool matters = links_matter(bytes);
        return std::exchange(times->mattered, matters) && !matters;
    }
    // Whether the links are known to decide for operations of some length: what their stripes show of the rails is true.
    bool links_matter_somewhere() const noexcept {
        for (int i = 0; i < static_cast<int>(classes_.size()); ++i)
            if (const std::uint64_t bytes = std::uint64_t{1} << (kFirstBits - 1 + i);
                is_decided(bytes) && links_matter(bytes))
                return true;
        return false;
    }

    void on_time(std::uint64_t bytes, Way way, std::uint64_t ns) noexcept {
        Times* const times = of(bytes);
        if (!times) return;
        const std::uint64_t rise = way == times->best(range_of(bytes)) ? kRise : kRareRise;
        (way == Way::kWhole ? times->whole : times->striped).add(ns, rise);
    }

private:
    static constexpr std::uint64_t kRise = 16, kRareRise = 4;

    struct Time {
        std::uint64_t ns = 0;  // valid if count > 0
        std::uint32_t count = 0;

        void add(std::uint64_t sample_ns, std::uint64_t rise) noexcept {
            ns = count == 0 ? sample_ns : std::min(sample_ns, ns + ns / rise + 1);
            if (count < kFirst) ++count;
        }
    };
    // The times of stripes that are compared with those of whole operations.
    struct Range {
        std::uint64_t above_ns, up_to_ns;
    };
    struct Times {
        Time striped, whole;
        std::uint32_t turn = 0;
        bool mattered = true;  // links_matter() in the last call of links_stop_mattering()

        bool are_compared(Range range) const noexcept {
            return striped.count == kFirst && striped.ns > range.above_ns && striped.ns <= range.up_to_ns;
        }
        // Whole only if that is faster by 1/8, so that chance does not make the ways alternate.
        Way best(Range range) const noexcept {
            const bool whole_pays = are_compared(range) && whole.count == kFirst &&
                                    whole.ns + whole.ns / 8 < striped.ns;
            return whole_pays ? Way::kWhole : Way::kStriped;
        }
    };

    // Lengths up to twice the shortest are of one class. 4 KiB to 8 MiB; others are striped.
    static constexpr int kFirstBits = 13;
    const Times* of(std::uint64_t bytes) const noexcept {
        const int bits = std::bit_width(bytes);
        const auto last = kFirstBits + static_cast<int>(classes_.size());
        return bits < kFirstBits || bits >= last ? nullptr : &classes_[static_cast<std::size_t>(bits - kFirstBits)];
    }
    Times* of(std::uint64_t bytes) noexcept { return const_cast<Times*>(std::as_const(*this).of(bytes)); }

    // Whether enough times are known for links_matter().
    bool is_decided(std::uint64_t bytes) const noexcept {
        const Times& times = *of(bytes);
        return times.striped.count == kFirst && (times.whole.count == kFirst || !times.are_compared(range_of(bytes)));
    }

    // The time of stripes is that of the shortest operation of its class.
    Range range_of(std::uint64_t bytes) const noexcept {
        constexpr std::uint64_t kNsPerS = 1'000'000'000;
        const std::uint64_t shortest = std::bit_floor(bytes);
        return {link_ == 0 ? 0 : shortest * kNsPerS / link_, limit_ns_};
    }

    std::uint64_t limit_ns_ = 0, link_ = 0;
    std::array<Times, 11> classes_{};
};

}  // namespace coop::sched

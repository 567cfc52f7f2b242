// SPDX-License-Identifier: BSD-3-Clause
//
// Whether long messages from a neighbour should be copied by the kernel or come through the lane, in fragments, if both
// sides wait for them. A copy by the kernel moves a byte once, but pins each page first; the lane moves it twice, while both
// sides work. Which one is quicker depends on the kernel, on virtual machines, on caches and on how far the CPUs are
// from each other, which no short measurement shows. So the receiver times the messages, and tries the other way now and
// then. The way changes if the other one takes an eighth less time for a byte, as the medians of a block say:
//
//     kKernel --wait blocks--> try the lane ----quicker by 1/8--> kLane
//     kLane ----wait blocks--> try the kernel --quicker by 1/8--> kKernel
//     wait = kFirstWait after a change; twice as many blocks after each trial without one, up to kLongestWait
//
// Lengths are in four ranges (up to 256 KiB, 1 MiB, 4 MiB, and above), because what is in a cache is copied faster; each has a way
// of its own.
//
// Not from the papers. Units: bytes, nanoseconds. Threading: one thread at a time. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace coop::rndv {

class LongWay {
public:
    enum class Way : std::uint8_t { kKernel, kLane };

    // Shorter messages use the lane up to a limit that is computed (coop/node/lane_limit.h).
    static constexpr std::uint64_t kShortest = 64 * 1024;
    static constexpr unsigned kInBlock = 9,
                              kToSkip = 3;  // messages; the first ones of a way find memory that is not in caches
    static constexpr std::uint32_t kFirstWait = 2, kLongestWait = 128;  // blocks

    // The way of the next message of this length. `bytes` >= kShortest.
    Way way(std::uint64_t bytes) const noexcept { return lengths_[range_of(bytes)].next(); }
    // The same if the next message is as long as the last one.
    Way way_of_next() const noexcept { return lengths_[last_].next(); }

    // A message has come that went the way that way() returned, and took `ns` since it was matched.
    void on_ended(Way way, std::uint64_t bytes, std::uint64_t ns) noexcept {
        last_ = range_of(bytes);
        lengths_[last_].add(way, static_cast<double>(ns) / static_cast<double>(bytes));
    }
    // A message should have come through the lane, but a side does not wait for it.
    void on_declined(std::uint64_t bytes) noexcept {
        last_ = range_of(bytes);
        lengths_[last_].stay_with_kernel();
    }

private:
    static constexpr std::size_t kRanges = 4;
    static constexpr std::size_t range_of(std::uint64_t bytes) noexcept {
        std::size_t range = 0;
        for (std::uint64_t end = 4 * kShortest; bytes >= end && range + 1 < kRanges; end *= 4) ++range;
        return range;
    }
    static constexpr Way other(Way way) noexcept { return way == Way::kKernel ? Way::kLane : Way::kKernel; }

    class Range {
    public:
        Way next() const noexcept { return is_trial_ ? other(way_) : way_; }

        void add(Way way, double byte_ns) noexcept {
            if (way != next()) return;
            if (to_skip_ > 0) {
                --to_skip_;
                return;
            }
            block_[messages_++] = byte_ns;
            if (messages_ < kInBlock) return;
            std::nth_element(block_.begin(), block_.begin() + kInBlock / 2, block_.end());
            judge(block_[kInBlock / 2]);
        }

        void stay_with_kernel() noexcept {
            wait_longer();
            way_ = Way::kKernel;
            begin(false);
            waited_ = 0;
        }

    private:
        void begin(bool is_trial) noexcept {
            is_trial_ = is_trial;
            messages_ = 0;
            to_skip_ = kToSkip;
        }
        void wait_longer() noexcept { wait_ = std::min(2 * wait_, kLongestWait); }

        void judge(double byte_ns) noexcept {
            messages_ = 0;
            if (!is_trial_) {
                before_ = byte_ns;
                if (++waited_ >= wait_) begin(true);
                return;
            }
            if (byte_ns < before_ * 15 / 16) {
                way_ = other(way_);
                wait_ = kFirstWait;
            } else {
                wait_longer();
            }
            waited_ = 0;
            begin(false);
        }

        Way way_ = Way::kKernel;  // the better one, as far as is known
        bool is_trial_ = false;   // the other one is being tried
        unsigned to_skip_ = kToSkip, messages_ = 0;
        std::uint32_t wait_ = kFirstWait, waited_ = 0;  // blocks
        double before_ = 0;                             // ns for a byte before the trial
        std::array<double, kInBlock> block_{};
    };

    std::array<Range, kRanges> lengths_;
    std::size_t last_ = 0;  // the range of the last message
};

}  // namespace coop::rndv

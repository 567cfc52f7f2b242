// SPDX-License-Identifier: BSD-3-Clause
//
// Whether long messages from a neighbour should be copied by the kernel or come through the lane, in fragments, if both
// sides wait for them. A copy by the kernel moves a byte once, but pins each page first; the lane moves it twice, while both
// sides work. Which one is quicker depends on the kernel, on virtual machines, on caches and on how far the CPUs are
// from each other, which no short measurement shows. So the receiver times the messages, and tries the other way now and
// then. It times periods in which such messages are under way: of one message, or of a window. The way changes if the other one
// takes a sixteenth less time for a byte, as the medians of two blocks say:
//
//     kKernel --wait blocks--> try the lane ----quicker by 1/16--> kLane
//     kLane ----wait blocks--> try the kernel --quicker by 1/16--> kKernel
//     wait = kFirstWait after a change; twice as many blocks after each trial without one, up to kLongestWait
//
// A message for which a side turns out not to wait is copied by the kernel. If that happens to more than one in five
// messages that should use the lane, a trial has failed, and a lane that was in use is given up.
//
// The lengths from one power of two to the next (a range) have a way of their own, because what is in a cache is copied faster. A
// period in which messages of several ranges or of both ways were under way says nothing; where the lane is in use or tried, it
// counts as if a message had been declined, so that a program with such windows returns to the kernel.
//
// Not from the papers. Units: bytes, nanoseconds. Threading: one thread at a time. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace coop::rndv {

class LongWay {
public:
    enum class Way : std::uint8_t { kKernel, kLane };

    // Shorter messages use the lane up to a limit that is computed (coop/node/lane_limit.h).
    static constexpr std::uint64_t kShortest = 64 * 1024;
    static constexpr unsigned kInBlock = 9;   // messages
    static constexpr unsigned kOfPeriod = 3;  // so many of a window count, each with the mean of the window
    // Before a block, with the rest of their period: the first messages of a way find memory that is not in caches.
    static constexpr unsigned kToSkip = 3;
    static constexpr std::uint32_t kFirstWait = 2, kLongestWait = 128;  // blocks
    static constexpr unsigned kDeclines = 4, kMostDeclined = 16;

    // The way of the next message of this length. `bytes` >= kShortest.
    Way way(std::uint64_t bytes) const noexcept { return lengths_[range_of(bytes)].next(); }

    // A message begins to come, one way or the other.
    void on_begun(std::uint64_t now_ns) noexcept {
        if (under_way_++ == 0) period_ = {.start_ns = now_ns};
    }
    // It has come, whole. `both_waited`: as far as is known, its sender has waited for it; without any such message a period does
    // not count, because one side may have copied alone.
    void on_ended(Way way, std::uint64_t bytes, std::uint64_t now_ns, bool both_waited) noexcept {
        period_.bytes += bytes;
        ++period_.messages;
        period_.both_waited |= both_waited;
        period_.ranges |= 1u << range_of(bytes);
        (way == Way::kLane ? period_.by_lane : period_.by_kernel) = true;
        if (--under_way_ == 0) end_period(way, now_ns);
    }
    // A message should have come through the lane, but a side does not wait for it.
    void on_declined(std::uint64_t bytes) noexcept { lengths_[range_of(bytes)].decline(); }

private:
    static constexpr std::size_t kRanges = 8;  // the last one is from 8 MiB on
    static constexpr std::size_t range_of(std::uint64_t bytes) noexcept {
        const auto powers = static_cast<std::size_t>(std::bit_width(bytes / kShortest));
        return std::clamp<std::size_t>(powers, 1, kRanges) - 1;
    }
    static constexpr Way other(Way way) noexcept { return way == Way::kKernel ? Way::kLane : Way::kKernel; }

    struct Period {
        std::uint64_t start_ns = 0, bytes = 0, messages = 0;
        unsigned ranges = 0;  // a bit for each
        bool by_kernel = false, by_lane = false, both_waited = false;
    };

    class Range {
    public:
        Way next() const noexcept { return is_trial_ ? other(way_) : way_; }

        void add(Way way, double byte_ns, std::uint64_t messages) noexcept {
            if (way != next()) return;
            if (way == Way::kLane) declined_ -= static_cast<unsigned>(std::min<std::uint64_t>(declined_, messages));
            if (to_skip_ > 0) {
                to_skip_ -= static_cast<unsigned>(std::min<std::uint64_t>(to_skip_, messages));
                return;
            }
            messages = std::min<std::uint64_t>(messages, kOfPeriod);
            for (; messages > 0 && messages_ < kInBlock; --messages) block_[messages_++] = byte_ns;
            if (messages_ < kInBlock) return;
            std::nth_element(block_.begin(), block_.begin() + kInBlock / 2, block_.end());
            judge(block_[kInBlock / 2]);
        }

        void decline() noexcept {
            declined_ += kDeclines;
            if (declined_ <= kMostDeclined) return;
            if (is_trial_) wait_longer();
            else wait_ = kFirstWait;
            way_ = Way::kKernel;
            begin(false);
        }

    private:
        void begin(bool is_trial) noexcept {
            is_trial_ = is_trial;
            messages_ = declined_ = waited_ = 0;
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
            begin(false);
        }

        Way way_ = Way::kKernel;  // the better one, as far as is known
        bool is_trial_ = false;   // the other one is being tried
        unsigned to_skip_ = kToSkip, messages_ = 0;
        unsigned declined_ = 0;                         // kDeclines for each message, less one for each that was not
        std::uint32_t wait_ = kFirstWait, waited_ = 0;  // blocks
        double before_ = 0;                             // ns for a byte before the trial
        std::array<double, kInBlock> block_{};
    };

    void end_period(Way way, std::uint64_t now_ns) noexcept {
        const bool is_uniform = std::has_single_bit(period_.ranges) && !(period_.by_lane && period_.by_kernel);
        if (!is_uniform) {
            for (std::size_t i = 0; i < kRanges; ++i)
                if ((period_.ranges >> i & 1) && lengths_[i].next() == Way::kLane) lengths_[i].decline();
        } else if (period_.both_waited) {
            const double byte_ns = static_cast<double>(now_ns - period_.start_ns) / static_cast<double>(period_.bytes);
            lengths_[static_cast<std::size_t>(std::countr_zero(period_.ranges))].add(way, byte_ns, period_.messages);
        }
    }

    std::array<Range, kRanges> lengths_;
    std::uint64_t under_way_ = 0;  // messages
    Period period_;                // valid if some are under way
};

}  // namespace coop::rndv

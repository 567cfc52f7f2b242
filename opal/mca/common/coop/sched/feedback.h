// SPDX-License-Identifier: BSD-3-Clause
//
// Weights that follow what the rails deliver (dissertation 7.1.2 and 8.2.1).
//
//     W'_i = (1 - alpha) W_i + alpha W_round (b_i / t_i) / sum_k (b_k / t_k)
//
// over the rails of a round. With all rails in it this is equation 7.4, with the
// rails of a batch 8.3.
//
// What is measured: the stripes of operations that an adaptive policy has cut, if
// they are not shorter than the minimum. The caller gives all stripes of an
// operation the same time of posting. Fragments, and operations that take turns,
// are not measured: their lengths differ from rail to rail, so that latency would
// make the rail of the shorter ones look slow.
//
// b_i is what was put on the rail. The paper has W_i for it, which is the same
// but for alignment and minimum (equation 7.1).
//
// t_i is the time during which the rail had something to do: a stripe counts from
// its post, or from the completion before it on this rail, if that is later. With
// one message at a time it is the paper's time. With many, the time in the queue
// would otherwise make a rail look slower than it is.
//
// A round is about one message: it is complete when each rail that has stripes
// has completed one. With a queue it is about half of that, four stripes of a
// rail at most: what a late look at a completion takes off one end of the time,
// it adds at the other, and the more stripes lie between the less it matters.
//
// Late completions (the three cases of 7.1.2): not late, the rates are exact; some
// late, those rails look slower, and the weights still improve or stay; all found
// at the same time, b_i / t_i is as W_i, and nothing changes. For this to hold in
// a long queue, too, a completed round is settled only once the time has moved on:
// all completions found in one sweep over the completion queues belong together.
// So the caller reads the clock once a sweep.
//
// How far a round is believed:
//
//   short     If latency is most of t_i, b_i / t_i is as W_i, whatever the rails can
//             do: nothing would correct a weight that noise has changed. So the
//             measured shares are mixed with the first weights, by (latency_ns /
//             t)^2 for the longest t of the round.
//   the same  No rail is a quarter faster or slower than its weight: alpha / 16.
//   a change  A rail is, and was so in the rounds before, the same way: alpha. Two
//             rounds show it; four, if one of the t_i was below pause_ns, because a
//             process that does not run for a moment finds the stripes of one rail
//             in time and those of another late.
//   doubtful  A rail is, but was not so before: the round changes nothing.
//
// Units: bytes, nanoseconds of any monotonic clock. Threading: none; the caller
// holds the lock of the channel. Errors: none.
#pragma once

#include <array>
#include <cstdint>

#include "coop/sched/config.h"
#include "coop/sched/rail_set.h"

namespace coop::sched {

// The sum of the weights of all rails.
constexpr double kTotalWeight = 1 << 20;

class Feedback {
public:
    void set_limits(std::uint64_t min_bytes, const SchedConfig& config) noexcept {
        min_bytes_ = min_bytes;
        alpha_ = config.alpha_percent / 100.0;
        latency_ns_ = static_cast<double>(config.latency_ns);
        pause_ns_ = static_cast<double>(config.pause_ns);
    }

    // Of stripes that are measured; one below the minimum changes nothing.
    void on_posted(RailIndex rail, std::uint64_t bytes) noexcept;
    void on_completed(const RailSet& rails, RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns) noexcept;
    // It will not complete, or what it took says nothing.
    void on_aborted(RailIndex rail, std::uint64_t bytes) noexcept;
    // Something that is not measured has completed.
    void on_others_completed(RailIndex rail, std::uint64_t now_ns) noexcept;

    // Nothing measured on this rail counts any more (it went down).
    void forget(RailIndex rail) noexcept;

    // New weights, if a round is complete and the time has moved on since.
    void settle(RailSet& rails, std::uint64_t now_ns) noexcept {
        if (ripe_ && now_ns > ripe_ns_) redistribute(rails);
    }

    // What is under way on the rail will measure it.
    bool is_measuring(RailIndex rail) const noexcept { return samples_[rail].outstanding != 0; }
    // Its last round was doubtful, and showed it faster than its weight.
    bool may_be_faster(RailIndex rail) const noexcept { return samples_[rail].trend == Trend::kFaster; }

private:
    // How a rail looked in its last round, against its weight.
    enum class Trend : std::uint8_t { kUnknown, kSame, kFaster, kSlower };

    struct Sample {
        std::uint64_t bytes = 0;    // completed in this round
        std::uint64_t busy_ns = 0;  // that they took
        std::uint64_t last_completed_ns = 0;
        std::uint32_t outstanding = 0;  // measured stripes
        std::uint32_t completed = 0;    // of these, in this round
        std::uint32_t due = 0;          // as many are enough; valid while completed != 0
        Trend trend = Trend::kUnknown;
        std::uint8_t rounds = 0;  // one after the other with this trend; at most kMostRounds
    };

    // All rails of a round together.
    struct Round {
        double weight = 0, first_weight = 0, rate = 0;  // sums
        double longest_ns = 0, shortest_ns = 0;         // of the times of a rail
    };

    static Trend trend_of(double part_of_weight) noexcept;
    bool confirms(RailIndex rail, double part_of_weight, unsigned rounds) noexcept;
    Round sum_up(const RailSet& rails) const noexcept;
    double rate_of(const RailSet& rails, RailIndex rail) const noexcept;
    double target_of(const RailSet& rails, RailIndex rail, const Round& round) const noexcept;
    double alpha_of(const RailSet& rails, const Round& round) noexcept;
    void redistribute(RailSet& rails) noexcept;
    void close_if_complete(std::uint64_t now_ns) noexcept;
    void take_off(RailIndex rail) noexcept;

    std::array<Sample, kMaxRails> samples_{};
    RailMask waiting_ = 0;  // rails that have measured stripes under way
    RailMask done_ = 0;     // rails that have a sample in this round
    std::uint64_t min_bytes_ = 1;
    std::uint64_t ripe_ns_ = 0;  // valid while ripe_
    double alpha_ = 0.5, latency_ns_ = 0, pause_ns_ = 0;
    bool ripe_ = false;
};

}  // namespace coop::sched

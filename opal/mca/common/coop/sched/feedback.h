// SPDX-License-Identifier: BSD-3-Clause
//
// Adapts weights to the throughput of the rails (dissertation 7.1.2 and 8.2.1).
//
//     W'_i = (1 - alpha) W_i + alpha W_round (b_i / t_i) / sum_k (b_k / t_k)
//
// where i and k are the rails of a round. If these are all rails, this is equation 7.4; for the rails of a
// batch, 8.3.
//
// Measured are the stripes of operations that an adaptive policy has cut, unless they are shorter than the
// minimum. The caller passes the same posting time for all stripes of an operation. Fragments and multiplexed
// operations are not measured: their lengths differ from rail to rail, so latency would make the rail with the
// shorter ones look slow.
//
// b_i is the number of bytes posted on the rail. The paper uses W_i, which differs only by alignment and
// minimum (equation 7.1).
//
// t_i is the time during which the rail was busy: a stripe counts from its posting or from the previous
// completion on this rail in its direction, whichever is later. With one message at a time this is the paper's time. With many
// messages in flight, time in the queue would otherwise make a rail look slower than it is.
//
// A round is about one message: it is complete when each rail that has stripes has completed one. With longer
// queues it is half of the queue, at most four stripes per rail: a completion found late shortens the next
// interval by as much as it lengthens this one, so over more stripes the error matters less.
//
// Late completions (the three cases of 7.1.2): if none is late, the rates are exact. If some are, those rails
// look slower, and the weights still improve or stay. If all are found at the same time, b_i / t_i is
// proportional to W_i, and nothing changes. For the last case to hold with long queues, all completions found
// in one sweep over the completion queues must belong to the same round; so a complete round is settled only
// when the time has advanced, and the caller must read the clock once per sweep.
//
// How much a round changes the weights:
//
//   short      If latency is most of t_i, b_i / t_i is proportional to W_i whatever the rails can do, and nothing
//              would correct a weight that noise has changed. So the measured shares are mixed with the initial
//              weights by (latency_ns / t)^2, where t is the longest t_i of the round.
//   unchanged  No rail differs from its weight by more than a quarter: alpha / 16.
//   changed    A rail does, and did in the same direction in the previous rounds: alpha. Two rounds confirm a change,
//              or four if one of the t_i was below pause_ns: while a process is not scheduled, the completions of one
//              rail may be found in time and those of another late. The first round of a rail needs no confirmation.
//   doubtful   A rail does, but this is not confirmed yet: the round changes nothing.
//
// Units: bytes, nanoseconds of any monotonic clock. Threading: none; the caller holds the lock of the channel.
// Errors: none.
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

    // For measured stripes only. A stripe below the minimum has no effect.
    void on_posted(RailIndex rail, std::uint64_t bytes) noexcept;
    void on_completed(const RailSet& rails, RailIndex rail, Direction direction, std::uint64_t bytes,
                      std::uint64_t posted_ns, std::uint64_t now_ns) noexcept;
    // The stripe will not complete, or its time is meaningless.
    void on_aborted(RailIndex rail, std::uint64_t bytes) noexcept;
    // A stripe that is not measured has completed.
    void on_others_completed(RailIndex rail, Direction direction, std::uint64_t now_ns) noexcept;

    // Discards all measurements of the rail, because it went down.
    void forget(RailIndex rail) noexcept;

    // Updates the weights if a round is complete and the time has advanced since.
    void settle(RailSet& rails, std::uint64_t now_ns) noexcept {
        if (ripe_ && now_ns > ripe_ns_) redistribute(rails);
    }

    // Whether a measured stripe is in flight on the rail.
    bool is_measuring(RailIndex rail) const noexcept { return samples_[rail].outstanding != 0; }
    // Whether the rail's last round showed it faster than its weight.
    bool may_be_faster(RailIndex rail) const noexcept { return samples_[rail].trend == Trend::kFaster; }

private:
    // A rail's throughput in its last round, compared with its weight.
    enum class Trend : std::uint8_t { kUnknown, kSame, kFaster, kSlower };

    struct Sample {
        std::uint64_t bytes = 0;                                     // completed in this round
        std::uint64_t busy_ns = 0;                                   // in which they completed
        std::array<std::uint64_t, kDirections> last_completed_ns{};  // by direction
        std::uint32_t outstanding = 0;                               // measured stripes in flight
        std::uint32_t completed = 0;                                 // measured stripes, in this round
        std::uint32_t due = 0;  // completions that end the round; valid while completed != 0
        Trend trend = Trend::kUnknown;
        std::uint8_t rounds = 0;  // consecutive rounds with this trend; at most kMaxRounds
    };

    // Totals over the rails of a round.
    struct Round {
        double weight = 0, first_weight = 0, rate = 0;  // sums
        double longest_ns = 0, shortest_ns = 0;         // longest and shortest t_i
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
    RailMask waiting_ = 0;  // rails with measured stripes in flight
    RailMask done_ = 0;     // rails with a complete sample in this round
    std::uint64_t min_bytes_ = 1;
    std::uint64_t ripe_ns_ = 0;  // valid while ripe_
    double alpha_ = 0.5, latency_ns_ = 0, pause_ns_ = 0;
    bool ripe_ = false;
};

}  // namespace coop::sched

// SPDX-License-Identifier: BSD-3-Clause
//
// The communication scheduler of one channel (dissertation 4.1): it asks the
// policy of a message which rails to use, and keeps what the policies need to
// remember: turns, weights, how long a rail has not been measured.
//
//     message -> make_schedule -> stripes -> (posted on their rails) on_posted
//                                            (completed)  on_completed -> weights
//
// Units: bytes, nanoseconds of any monotonic clock, read once per sweep over the
// completion queues (feedback.h says why). Threading: none; the caller holds the
// lock of the channel. Ownership: a plain value, no allocation. Errors: a
// schedule without stripes when all rails are down.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "coop/base/export.h"
#include "coop/sched/config.h"
#include "coop/sched/feedback.h"
#include "coop/sched/marker.h"
#include "coop/sched/policy.h"
#include "coop/sched/rail_set.h"
#include "coop/sched/schedule.h"
#include "coop/sched/split.h"

namespace coop::sched {

class COOP_EXPORT Scheduler {
public:
    // defect(config, rails.size()) has found nothing. The caller keeps `config`,
    // which many channels share, for as long as this lives.
    Scheduler(const SchedConfig& config, const RailSet& rails) noexcept;
    Scheduler(const SchedConfig&& gone, const RailSet& rails) = delete;

    Schedule make_schedule(std::uint64_t bytes, Marker marker, std::uint64_t now_ns) noexcept;

    // Whether make_schedule() would cut it by measured weights: the later it is asked, the better it knows.
    bool would_measure(std::uint64_t bytes, Marker marker) const noexcept { return row_of(choose(bytes, marker).policy).measures; }

    // Whether make_schedule() would cut it by measured weights, and the rails that it would go to have enough to do meanwhile: each its
    // part of two such messages, and of some more. What is wrong with the weights then shows in the last few messages of a queue, and
    // not in all of it. False while a rail that it would go to is idle; so a message that may wait is let go by a completion.
    bool may_wait(std::uint64_t bytes, Marker marker) const noexcept;

    // The rail of a message that goes whole because it is below the threshold, as make_schedule() would choose it; without
    // the clock, as policies for such messages do not measure. Some rail is not down.
    RailIndex rail_of_small(std::uint64_t bytes) noexcept;
    // The rail of a message that goes whole because it is never striped, whatever its length: chosen as for a small one.
    RailIndex rail_of_fragment(std::uint64_t bytes) noexcept { return rail_of_small(std::min(bytes, config_->striping_threshold - 1)); }

    // A stripe that cannot be posted yet (the send queue, or the limit on reads), and when it is about to be: its bytes are
    // ahead of whatever comes to that rail meanwhile.
    void on_waiting(RailIndex rail, std::uint64_t bytes) noexcept;
    void on_waited(RailIndex rail, std::uint64_t bytes) noexcept;

    // One of each per stripe that a rail has taken: posted, then completed or aborted (flushed, or completed with an error: nothing is
    // learnt from it). `posted_ns` is the same in both: when make_schedule() was called for its operation, if the schedule is_measured();
    // else kNotMeasured, as for fragments.
    void on_posted(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns) noexcept;
    void on_completed(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns) noexcept;
    void on_aborted(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns) noexcept;

    // A rail that comes back from being down has its first weight again.
    void set_state(RailIndex rail, RailState state) noexcept;

    const RailSet& rails() const noexcept { return rails_; }
    const StripeLimits& limits() const noexcept { return limits_; }
    // The last one of a message below the striping threshold, and of any other; without stripes: there was none yet.
    Schedule last_small() const noexcept;
    const Schedule& last_large() const noexcept { return last_large_; }
    std::string describe_last_small() const { return describe(last_small(), *config_); }
    std::string describe_last_large() const { return describe(last_large_, *config_); }

private:
    // Small and large messages have their own turns: a program that sends one of
    // each in turn would else have all of one kind on the same rails.
    struct Turns {
        RailIndex next = 0;        // round robin: looked for from here
        std::uint32_t sent = 0;    // window_round_robin: messages on this rail so far
        std::array<std::int64_t, kMaxRails> credit{};  // weighted_round_robin
    };

    Schedule::Header choose(std::uint64_t bytes, Marker marker) const noexcept;
    Schedule::Header choose_epc(std::uint64_t bytes, Marker marker) const noexcept;

    void remember(const Schedule& schedule) noexcept;

    RailIndex take_turn(Policy policy, RailMask usable, Turns& turns) noexcept;
    RailIndex window_turn(RailMask usable, Turns& turns) noexcept;
    RailIndex weighted_turn(RailMask usable, Turns& turns) noexcept;
    RailIndex shortest_queue(RailMask usable, Turns& turns) noexcept;

    void stripe(Policy policy, RailMask usable, std::uint64_t now_ns, Schedule& schedule) noexcept;
    RailMask candidates(Policy policy, RailMask usable) const noexcept;
    RailMask batch(RailMask paths) const noexcept;
    RailMask striped_rails(Policy policy, RailMask paths) const noexcept { return policy == Policy::kBss ? batch(paths) : paths; }
    RailMask idle_among(RailMask rails) const noexcept;
    RailMask rails_of_cut(Policy policy, RailMask rails, std::uint64_t bytes) const noexcept;
    bool have_enough(RailMask busy, RailMask rails, std::uint64_t bytes) const noexcept;
    void cut(Policy policy, RailMask rails, std::uint64_t bytes, std::uint64_t now_ns, Schedule& schedule) const noexcept;
    void cut_with_probe(Policy policy, RailMask rails, RailIndex probed, std::uint64_t now_ns, Schedule& schedule) const noexcept;
    std::uint32_t weight(Policy policy, RailIndex rail) const noexcept;
    RailIndex overdue(RailMask passed_by, std::uint64_t bytes) noexcept;

    void take_fixed_weights(const Weights& weights) noexcept;
    void take_initial_weights() noexcept;
    void set_weight(RailIndex rail, double weight) noexcept;

    const SchedConfig* config_;
    RailSet rails_;
    Feedback feedback_;
    StripeLimits limits_;
    std::uint32_t batch_size_;  // n_batch
    RailMask bss_paths_;        // the n_paths that are used first
    RailIndex first_rail_;      // of binding; where turns and equal weights begin
    RailIndex next_first_;      // whose stripe lies first, and is left out last of equal ones
    Turns small_, large_;
    std::array<std::uint32_t, kMaxRails> fixed_{};    // weights of the configuration, or nominal
    std::array<std::uint32_t, kMaxRails> passed_by_{};  // striped messages since the rail had one
    Schedule::Header last_small_;
    RailIndex last_small_rail_ = kNoRailIndex;  // a small message has one stripe
    Schedule last_large_;
};

// Of the memory per connected peer. It is a plain value of a channel.
static_assert(sizeof(Scheduler) < 6 * 1024);

}  // namespace coop::sched

// SPDX-License-Identifier: BSD-3-Clause
//
// The communication scheduler of one channel (dissertation 4.1). It applies the policy of each message to
// choose its rails, and keeps the state of the policies: turns, weights, and how long each rail has not been
// measured. What a process sends and what it reads go in opposite directions of the links, so each direction has
// its own turns and queues, and both share the weights.
//
//     message -> make_schedule -> stripes -> (posted on their rails) on_posted
//                                            (completed)  on_completed -> weights
//
// Units: bytes, nanoseconds of any monotonic clock, read once per sweep over the completion queues (feedback.h
// says why). Threading: none; the caller holds the lock of the channel. Ownership: a plain value, no
// allocation. Errors: if all rails are down, a schedule has no stripes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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
    // Precondition: defect(config, rails.size()) returns nothing. `config`, which many channels share, must
    // outlive this object.
    Scheduler(const SchedConfig& config, const RailSet& rails) noexcept;
    Scheduler(const SchedConfig&& gone, const RailSet& rails) = delete;

    Schedule make_schedule(std::uint64_t bytes, Marker marker, std::uint64_t now_ns,
                           Direction direction = Direction::kOut) noexcept;
    // The schedule of a message that must not be striped, whatever its length. Its rail is that of the lane: lanes take
    // the usable rails in turn. Without a lane small_policy chooses it, or, if stripes are not worth it (kNotWorth), the
    // rail is the one that will have carried it first, by weight.
    Schedule make_whole(std::uint64_t bytes, std::uint8_t lane = kNoLane, Direction direction = Direction::kOut,
                        Reason reason = Reason::kWhole) noexcept;

    // Whether make_schedule() would stripe the message by measured weights. The later it is called, the better
    // the weights.
    bool would_measure(std::uint64_t bytes, Marker marker) const noexcept {
        return row_of(choose(bytes, marker).policy).measures;
    }

    // Whether striping this message can wait: it would be striped by measured weights, and each of its rails
    // has enough queued, namely its share of two such messages and of kBusyBytes per rail. A wrong weight then
    // affects only the last few messages of a queue instead of all. Returns false while a rail of the message
    // is idle, so a completion always follows and can start the message.
    bool may_wait(std::uint64_t bytes, Marker marker, Direction direction = Direction::kOut) const noexcept;

    // Chooses the rail of a message below the threshold, as make_schedule() would. Needs no clock because
    // policies for such messages do not measure. Precondition: at least one rail is not down.
    RailIndex rail_of_small(std::uint64_t bytes, Direction direction = Direction::kOut) noexcept {
        return has_one_usable() ? rail_of_any(bytes, direction) : turn_of_small(bytes, direction);
    }
    // Whether only one rail is usable: then nothing is divided, and nothing is learned about rails.
    bool has_one_usable() const noexcept {
        const RailMask usable = rails_.usable();
        return usable != 0 && (usable & (usable - 1)) == 0;
    }
    // The rail of a message, whatever its length, that is not measured. Precondition: has_one_usable().
    RailIndex rail_of_any(std::uint64_t bytes, Direction direction, Reason reason = Reason::kOneRail) noexcept {
        const auto rail = static_cast<RailIndex>(std::countr_zero(rails_.usable()));
        Schedule::Header& header = bytes < config_->striping_threshold ? last_small_ : last_large_.header;
        header = {};
        header.bytes = bytes;
        header.reason = bytes < config_->striping_threshold ? Reason::kSmall : reason;
        header.suspect = rails_[rail].state == RailState::kSuspect;
        header.direction = direction;
        if (bytes < config_->striping_threshold) {
            header.policy = config_->small_policy;
            last_small_rail_ = rail;
        } else {
            last_large_.clear();
            last_large_.add(rail, 0, bytes, 1);
        }
        return rail;
    }

    // The links do not limit what is being sent: what has been measured of them is noise.
    void forget_weights() noexcept;
    // The rail of a message that goes whole because it is never striped, whatever its length: chosen as for a small
    // one.
    RailIndex rail_of_fragment(std::uint64_t bytes) noexcept {
        return rail_of_small(std::min(bytes, config_->striping_threshold - 1));
    }

    // on_waiting(): a stripe cannot be posted yet (send queue full, or too many reads outstanding).
    // on_waited(): it is about to be posted. Meanwhile its bytes count as queued on the rail.
    void on_waiting(RailIndex rail, std::uint64_t bytes, Direction direction = Direction::kOut) noexcept {
        rails_[rail].in(direction).waiting_bytes += bytes;
    }
    void on_waited(RailIndex rail, std::uint64_t bytes, Direction direction = Direction::kOut) noexcept {
        rails_[rail].in(direction).waiting_bytes -= bytes;
    }

    // Call for each stripe that a rail accepts: on_posted(), then on_completed() or on_aborted() (flushed or
    // completed with an error, and not measured). `posted_ns` is the same in both calls: the time at which
    // make_schedule() was called for the operation if the schedule is_measured(); otherwise kNotMeasured, as
    // for fragments.
    void on_posted(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns,
                   Direction direction = Direction::kOut) noexcept {
        if (posted_ns != kNotMeasured) measure_from(rail, bytes, posted_ns, direction);
        Traffic& traffic = rails_[rail].in(direction);
        traffic.outstanding_bytes += bytes;
        ++traffic.outstanding_stripes;
    }
    void on_completed(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns,
                      Direction direction = Direction::kOut) noexcept {
        // Without a second rail there is nothing to compare.
        if (rails_.size() > 1 || posted_ns != kNotMeasured) measure_to(rail, bytes, posted_ns, now_ns, direction);
        Traffic& traffic = rails_[rail].in(direction);
        traffic.begun_ns = now_ns;
        traffic.outstanding_bytes -= bytes;
        --traffic.outstanding_stripes;
    }
    void on_aborted(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns,
                    Direction direction = Direction::kOut) noexcept;

    // A rail that leaves kDown gets its initial weight.
    void set_state(RailIndex rail, RailState state) noexcept;

    const RailSet& rails() const noexcept { return rails_; }
    // Of all rails, in this direction.
    std::uint64_t backlog_bytes(Direction direction) const noexcept {
        std::uint64_t bytes = 0;
        for (RailIndex rail : each(rails_.all())) bytes += rails_[rail].in(direction).backlog_bytes();
        return bytes;
    }
    const StripeLimits& limits() const noexcept { return limits_; }
    // The nominal bandwidth of the fastest rail; 0: unknown.
    std::uint64_t fastest_rail() const noexcept { return fastest_; }
    // The last schedule of a message below the striping threshold, and of any other message; without stripes if
    // there was none.
    Schedule last_small() const noexcept;
    const Schedule& last_large() const noexcept { return last_large_; }
    std::string describe_last_small() const { return describe(last_small(), *config_); }
    std::string describe_last_large() const { return describe(last_large_, *config_); }

private:
    // Small and large messages take turns separately. Otherwise a program that alternates between them would
    // send all messages of one kind over the same rails.
    struct Rotation {
        RailIndex next = 0;                            // round robin: search from here
        std::uint32_t sent = 0;                        // window_round_robin: messages on this rail so far
        std::array<std::int64_t, kMaxRails> credit{};  // weighted_round_robin
    };
    struct Turns {
        Rotation small, large;
    };
    RailIndex turn_of_small(std::uint64_t bytes, Direction direction) noexcept;
    void measure_from(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, Direction direction) noexcept;
    void measure_to(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns,
                    Direction direction) noexcept;

    Turns& of(Direction direction) noexcept { return turns_[static_cast<std::size_t>(direction)]; }

    Schedule::Header choose(std::uint64_t bytes, Marker marker) const noexcept;
    Schedule::Header choose_epc(std::uint64_t bytes, Marker marker) const noexcept;

    void finish(Schedule& schedule) noexcept;  // sets `suspect`, and keeps it for the report

    RailIndex take_turn(Policy policy, RailMask usable, Direction direction, Rotation& rotation) noexcept;
    RailIndex window_turn(RailMask usable, Rotation& rotation) noexcept;
    RailIndex weighted_turn(RailMask usable, Rotation& rotation) noexcept;
    RailIndex shortest_queue(RailMask usable, Direction direction, Rotation& rotation) noexcept;
    RailIndex soonest(RailMask usable, Direction direction, std::uint64_t bytes) noexcept;

    void stripe(Policy policy, RailMask usable, std::uint64_t now_ns, Schedule& schedule) noexcept;
    RailMask candidates(Policy policy, RailMask usable) const noexcept;
    RailMask batch(RailMask paths) const noexcept;
    RailMask striped_rails(Policy policy, RailMask paths) const noexcept {
        return policy == Policy::kBss ? batch(paths) : paths;
    }
    RailMask idle_among(RailMask rails, Direction direction) const noexcept;
    RailMask rails_of_cut(Policy policy, RailMask rails, std::uint64_t bytes, Direction direction) const noexcept;
    bool have_enough(RailMask busy, RailMask rails, std::uint64_t bytes, Direction direction) const noexcept;
    void cut(Policy policy, RailMask rails, std::uint64_t bytes, std::uint64_t now_ns,
             Schedule& schedule) const noexcept;
    void cut_with_probe(Policy policy, RailMask rails, RailIndex probed, std::uint64_t now_ns,
                        Schedule& schedule) const noexcept;
    std::uint32_t weight(Policy policy, RailIndex rail) const noexcept;
    RailIndex overdue(RailMask passed_by, std::uint64_t bytes) noexcept;

    void take_fixed_weights(const Weights& weights) noexcept;
    void take_initial_weights() noexcept;
    void set_weight(RailIndex rail, double weight) noexcept;

    const SchedConfig* config_;
    RailSet rails_;
    Feedback feedback_;
    std::uint64_t fastest_;  // nominal bandwidth, bytes per second
    StripeLimits limits_;
    std::uint32_t batch_size_;              // n_batch
    RailMask bss_paths_;                    // the n_paths preferred rails
    RailIndex first_rail_;                  // rail of binding; first in turn and among equal weights
    RailIndex next_first_;                  // rail of the first stripe; among equal weights the last to be left out
    std::array<Turns, kDirections> turns_;  // by direction
    std::array<std::uint32_t, kMaxRails> fixed_{};      // configured weights, or nominal bandwidths
    std::array<std::uint32_t, kMaxRails> passed_by_{};  // striped messages since the rail had a stripe
    Schedule::Header last_small_;
    RailIndex last_small_rail_ = kNoRailIndex;  // a small message has one stripe
    Schedule last_large_;
};

// Part of the memory per connected peer.
static_assert(sizeof(Scheduler) < 8 * 1024);

}  // namespace coop::sched

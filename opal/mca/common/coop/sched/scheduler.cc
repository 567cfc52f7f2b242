// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/scheduler.h"

#include <algorithm>

namespace coop::sched {
namespace {

constexpr std::uint64_t kBusyBytes = 512 * 1024;  // keeps a rail busy until the next sweep

constexpr std::uint64_t kUnitOfNominal = 1'000'000;  // MB/s, so that a weight fits into 32 bits

// The nominal bandwidth of the fastest rail; 0: unknown.
std::uint64_t fastest(const RailSet& rails) noexcept {
    std::uint64_t most = 0;
    for (RailIndex rail : each(rails.all())) most = std::max(most, rails[rail].info.bytes_per_s);
    return most;
}

StripeLimits limits_of(const SchedConfig& config, const RailSet& rails) noexcept {
    std::uint64_t alignment = config.alignment;
    if (alignment == 0)
        for (RailIndex rail : each(rails.all()))
            alignment = std::max<std::uint64_t>(alignment, rails[rail].info.mtu_bytes);
    alignment = std::max<std::uint64_t>(alignment, 1);
    const std::uint64_t min = config.min_stripe != 0 ? config.min_stripe : shortest_stripe(fastest(rails));
    return {(min + alignment - 1) / alignment * alignment, alignment};
}

bool all_nominals_known(const RailSet& rails) noexcept {
    for (RailIndex rail : each(rails.all()))
        if (rails[rail].info.bytes_per_s == 0) return false;
    return true;
}

// Whether striped messages use BSS, whose weights start equal.
bool uses_bss(const SchedConfig& config) noexcept {
    return config.large_policy == Policy::kBss ||
           (config.large_policy == Policy::kEpc && config.epc_striping == Policy::kBss);
}

// Balances queues: the bytes queued on a rail count as a part of its stripe, so that all rails of a message
// finish at the same time (7.1.2).
class Queues {
public:
    // Returns which of `rails` get a stripe of `bytes`. A rail whose queue exceeds its share of everything gets
    // none.
    RailMask level(const RailSet& set, RailMask rails, Direction direction, std::uint64_t bytes,
                   std::uint64_t now_ns) noexcept {
        for (RailIndex rail : each(rails)) left_[rail] = set[rail].in(direction).left_bytes(now_ns, set[rail].rate);
        const double size = std::max(static_cast<double>(bytes), 1.0);
        RailMask over = level_once(set, rails, size);
        while (over != 0 && over != rails) {
            rails &= ~over;
            over = level_once(set, rails, size);
        }
        return rails;
    }
    std::uint32_t weight(RailIndex rail) const noexcept {
        return static_cast<std::uint32_t>(std::max(parts_[rail], 1.0));
    }

private:
    // Returns the rails whose share would be negative. These are never all rails, except by rounding: the
    // shares add up to the message.
    RailMask level_once(const RailSet& set, RailMask rails, double bytes) noexcept {
        double queued = 0, weights = 0;
        for (RailIndex rail : each(rails)) {
            queued += left_[rail];
            weights += set[rail].weight;
        }
        RailMask over = 0;
        for (RailIndex rail : each(rails)) {
            const double share = (bytes + queued) * set[rail].weight / weights - left_[rail];
            if (share < 0) over |= bit_of(rail);
            parts_[rail] = kTotalWeight * share / bytes;
        }
        return over;
    }

    std::array<double, kMaxRails> left_{};  // bytes; valid for the rails that level() was given
    std::array<double, kMaxRails>
        parts_{};  // share of the message, in parts of kTotalWeight; valid for the rails that level() returned
};

}  // namespace

Scheduler::Scheduler(const SchedConfig& config, const RailSet& rails) noexcept
    : config_(&config), rails_(rails), fastest_(fastest(rails)), limits_(limits_of(config, rails)),
      batch_size_(bss_batch(config, rails.size())), bss_paths_(rails.first(bss_paths(config, rails.size()))),
      first_rail_(rails.first()), next_first_(first_rail_) {
    for (Turns& turns : turns_) turns.small.next = turns.large.next = first_rail_;
    feedback_.set_limits(limits_.min, config);
    take_fixed_weights(config.weights);
    take_initial_weights();
}

// --- weights ----------------------------------------------------------------

void Scheduler::take_fixed_weights(const Weights& weights) noexcept {
    const bool nominal = all_nominals_known(rails_);
    for (RailIndex rail : each(rails_.all())) {
        if (weights.count != 0) fixed_[rail] = weights.of[rail];
        else if (nominal)
            fixed_[rail] = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(rails_[rail].info.bytes_per_s / kUnitOfNominal, 1, kMaxWeight));
        else fixed_[rail] = 1;
    }
}

// BSS starts with equal weights (equation 8.1), adaptive striping with the nominal bandwidths (7.1.2).
// Configured weights take precedence over both.
void Scheduler::take_initial_weights() noexcept {
    const bool equal = config_->weights.count == 0 && uses_bss(*config_);
    double sum = 0;
    for (RailIndex rail : each(rails_.all())) sum += equal ? 1.0 : fixed_[rail];
    for (RailIndex rail : each(rails_.all()))
        rails_[rail].weight = rails_[rail].first_weight = kTotalWeight * (equal ? 1.0 : fixed_[rail]) / sum;
}

// The other rails keep their proportions, and the sum stays kTotalWeight.
void Scheduler::set_weight(RailIndex rail, double weight) noexcept {
    const double others = kTotalWeight - rails_[rail].weight;
    for (RailIndex other : each(rails_.all() & ~bit_of(rail)))
        if (others > 0) rails_[other].weight *= (kTotalWeight - weight) / others;
    rails_[rail].weight = weight;
}

void Scheduler::forget_weights() noexcept {
    for (RailIndex rail : each(rails_.all())) rails_[rail].weight = rails_[rail].first_weight;
}

std::uint32_t Scheduler::weight(Policy policy, RailIndex rail) const noexcept {
    if (policy == Policy::kEvenStriping) return 1;
    if (!row_of(policy).measures) return fixed_[rail];
    return static_cast<std::uint32_t>(std::clamp(rails_[rail].weight, 1.0, kTotalWeight));
}

// --- message -> policy ------------------------------------------------------

Schedule::Header Scheduler::choose(std::uint64_t bytes, Marker marker) const noexcept {
    Schedule::Header header;
    header.bytes = bytes;
    if (bytes < config_->striping_threshold) {
        header.policy = config_->small_policy;
        header.reason = Reason::kSmall;
        return header;
    }
    if (config_->large_policy == Policy::kEpc) return choose_epc(bytes, marker);
    header.policy = config_->large_policy;
    header.reason = Reason::kLarge;
    return header;
}

// Section 6.2. A nonblocking message shares the rails with others; a blocking or collective one has them to
// itself. Unlike the paper we also stripe very large nonblocking messages: the paper measures the cost of
// stripes at 16 to 64 KiB, not at very large sizes (6.3.2), and without stripes a single large message would
// use one rail only.
Schedule::Header Scheduler::choose_epc(std::uint64_t bytes, Marker marker) const noexcept {
    Schedule::Header header;
    header.bytes = bytes;
    header.by_epc = true;
    header.policy = config_->epc_striping;
    switch (marker) {
    case Marker::kNone: header.reason = Reason::kNoMarker; break;
    case Marker::kBlocking: header.reason = Reason::kBlocking; break;
    case Marker::kCollective: header.reason = Reason::kCollective; break;
    case Marker::kNonblocking:
        if (config_->epc_always_stripe != 0 && bytes >= config_->epc_always_stripe) {
            header.reason = Reason::kVeryLarge;
        } else {
            header.policy = config_->epc_multiplexing;
            header.reason = Reason::kNonblocking;
        }
        break;
    }
    return header;
}

// --- policy -> rails --------------------------------------------------------

Schedule Scheduler::make_schedule(std::uint64_t bytes, Marker marker, std::uint64_t now_ns,
                                  Direction direction) noexcept {
    feedback_.settle(rails_, now_ns);
    const RailMask usable = rails_.usable();
    if (bytes < config_->striping_threshold && usable != 0) {
        static_cast<void>(rail_of_small(bytes, direction));
        return last_small();
    }
    Schedule schedule;
    schedule.header = choose(bytes, marker);
    schedule.header.direction = direction;
    const Policy policy = schedule.header.policy;
    if (usable == 0) {
        schedule.header.reason = Reason::kNoRail;
    } else if (multiplexes(policy)) {
        schedule.add(take_turn(policy, usable, direction, of(direction).large), 0, bytes, 1);
    } else {
        stripe(policy, usable, now_ns, schedule);
    }
    finish(schedule);
    return schedule;
}

Schedule Scheduler::make_whole(std::uint64_t bytes, std::uint8_t lane, Direction direction, Reason reason) noexcept {
    const RailMask usable = rails_.usable();
    const bool by_weight = reason == Reason::kNotWorth;
    Schedule schedule;
    schedule.header.bytes = bytes;
    schedule.header.direction = direction;
    schedule.header.policy = lane != kNoLane ? Policy::kBinding
                             : by_weight     ? Policy::kShortestQueue
                                             : config_->small_policy;
    schedule.header.reason = usable != 0 ? reason : Reason::kNoRail;
    const auto rail = [&] {
        if (lane != kNoLane) return nth_of(usable, lane % count_of(usable));
        return by_weight ? soonest(usable, direction, bytes)
                         : take_turn(config_->small_policy, usable, direction, of(direction).small);
    };
    if (usable != 0) schedule.add(rail(), 0, bytes, 1);
    finish(schedule);
    return schedule;
}

void Scheduler::finish(Schedule& schedule) noexcept {
    schedule.header.suspect = !schedule.empty() && rails_[schedule[0].rail].state == RailState::kSuspect;
    if (schedule.header.bytes >= config_->striping_threshold) {
        last_large_ = schedule;
        return;
    }
    last_small_ = schedule.header;
    last_small_rail_ = schedule.empty() ? kNoRailIndex : schedule[0].rail;
}

Schedule Scheduler::last_small() const noexcept {
    Schedule schedule;
    schedule.header = last_small_;
    if (last_small_rail_ != kNoRailIndex) schedule.add(last_small_rail_, 0, last_small_.bytes, 1);
    return schedule;
}

RailIndex Scheduler::turn_of_small(std::uint64_t bytes, Direction direction) noexcept {
    const RailIndex rail = take_turn(config_->small_policy, rails_.usable(), direction, of(direction).small);
    last_small_ = {};
    last_small_.direction = direction;
    last_small_.bytes = bytes;
    last_small_.policy = config_->small_policy;
    last_small_.reason = Reason::kSmall;
    last_small_.suspect = rails_[rail].state == RailState::kSuspect;
    last_small_rail_ = rail;
    return rail;
}

RailIndex Scheduler::take_turn(Policy policy, RailMask usable, Direction direction, Rotation& rotation) noexcept {
    if (policy == Policy::kBinding) return first_from(usable, first_rail_);
    if (policy == Policy::kWindowRoundRobin) return window_turn(usable, rotation);
    if (policy == Policy::kWeightedRoundRobin) return weighted_turn(usable, rotation);
    if (policy == Policy::kShortestQueue) return shortest_queue(usable, direction, rotation);
    const RailIndex rail = first_from(usable, rotation.next);
    rotation.next = after(rail);
    return rail;
}

RailIndex Scheduler::window_turn(RailMask usable, Rotation& rotation) noexcept {
    const RailIndex rail = first_from(usable, rotation.next);
    if (rail != rotation.next) rotation.sent = 0;
    const bool full = ++rotation.sent >= config_->window;
    rotation.next = full ? after(rail) : rail;
    if (full) rotation.sent = 0;
    return rail;
}

// Each message gives every rail credit equal to its weight, and the chosen rail pays the sum of all weights; so
// the turns of a heavy rail are spread among those of the others.
RailIndex Scheduler::weighted_turn(RailMask usable, Rotation& rotation) noexcept {
    std::int64_t sum = 0;
    for (RailIndex rail : each(usable)) {
        rotation.credit[rail] += fixed_[rail];
        sum += fixed_[rail];
    }
    RailIndex best = first_from(usable, first_rail_);
    for (RailIndex rail : each(usable))
        if (rotation.credit[rail] > rotation.credit[best]) best = rail;
    rotation.credit[best] -= sum;
    return best;
}

RailIndex Scheduler::shortest_queue(RailMask usable, Direction direction, Rotation& rotation) noexcept {
    const auto queued = [&](RailIndex rail) { return rails_[rail].in(direction).backlog_bytes(); };
    RailIndex best = first_from(usable, rotation.next);
    RailMask left = usable & ~bit_of(best);
    for (RailIndex rail = best; left != 0; left &= ~bit_of(rail)) {
        rail = first_from(left, after(rail));
        if (queued(rail) < queued(best)) best = rail;
    }
    rotation.next = after(best);
    return best;
}

// The rail that will have carried `bytes` more first, as far as the weights are right; in turn among equal ones.
RailIndex Scheduler::soonest(RailMask usable, Direction direction, std::uint64_t bytes) noexcept {
    Rotation& rotation = of(direction).large;
    const auto end = [&](RailIndex rail) {
        const auto queued = static_cast<double>(rails_[rail].in(direction).backlog_bytes() + bytes);
        return queued / std::max(rails_[rail].weight, 1.0);
    };
    RailIndex best = first_from(usable, rotation.next);
    RailMask left = usable & ~bit_of(best);
    for (RailIndex rail = best; left != 0; left &= ~bit_of(rail)) {
        rail = first_from(left, after(rail));
        if (end(rail) < end(best)) best = rail;
    }
    rotation.next = after(best);
    return best;
}

// --- rails -> stripes -------------------------------------------------------

void Scheduler::stripe(Policy policy, RailMask usable, std::uint64_t now_ns, Schedule& schedule) noexcept {
    const RailMask paths = candidates(policy, usable);
    const RailMask rails = striped_rails(policy, paths);
    cut(policy, rails, schedule.header.bytes, now_ns, schedule);
    if (row_of(policy).measures) {
        const RailIndex probed = overdue(paths & ~schedule.rails(), schedule.header.bytes);
        if (probed != kNoRailIndex) cut_with_probe(policy, rails & ~bit_of(probed), probed, now_ns, schedule);
        for (const Stripe& stripe : schedule) passed_by_[stripe.rail] = 0;
    }
    if (schedule.size() < count_of(rails)) next_first_ = after(schedule[schedule.size() - 1].rail);
}

RailMask Scheduler::candidates(Policy policy, RailMask usable) const noexcept {
    if (policy != Policy::kBss || (usable & bss_paths_) == 0) return usable;
    return usable & bss_paths_;
}

// If the message's rails are all idle, no completion would start it. So it never waits while one of them is
// idle.
bool Scheduler::may_wait(std::uint64_t bytes, Marker marker, Direction direction) const noexcept {
    const Policy policy = choose(bytes, marker).policy;
    if (!row_of(policy).measures) return false;
    const RailMask rails = striped_rails(policy, candidates(policy, rails_.usable()));
    if (count_of(rails) < 2) return false;  // no weights to learn
    const RailMask idle = idle_among(rails, direction);
    if (idle == rails || (idle != 0 && (rails_of_cut(policy, rails, bytes, direction) & idle) != 0)) return false;
    return have_enough(rails & ~idle, rails, bytes, direction);
}

RailMask Scheduler::idle_among(RailMask rails, Direction direction) const noexcept {
    RailMask idle = 0;
    for (RailIndex rail : each(rails))
        if (rails_[rail].in(direction).backlog_bytes() == 0) idle |= bit_of(rail);
    return idle;
}

RailMask Scheduler::rails_of_cut(Policy policy, RailMask rails, std::uint64_t bytes,
                                 Direction direction) const noexcept {
    Schedule schedule;
    schedule.header.bytes = bytes;
    schedule.header.direction = direction;
    cut(policy, rails, bytes, 0, schedule);
    return schedule.rails();
}

// Whether each of the `busy` rails has its share, by weight, of two such messages and of kBusyBytes for each of
// `rails`. A share below the shortest possible stripe counts as none: a rail of very low weight does not get
// stripes that short.
bool Scheduler::have_enough(RailMask busy, RailMask rails, std::uint64_t bytes, Direction direction) const noexcept {
    const std::uint64_t least = std::min(limits_.min, bytes);
    double weights = 0;
    for (RailIndex rail : each(rails)) weights += rails_[rail].weight;
    const double enough = static_cast<double>(2 * bytes + kBusyBytes * count_of(rails));
    for (RailIndex rail : each(busy))
        if (static_cast<double>(rails_[rail].in(direction).backlog_bytes() + least) <
            enough * rails_[rail].weight / weights)
            return false;
    return true;
}

// The n_batch paths of the highest weight; among equal ones those from first_rail_ on.
RailMask Scheduler::batch(RailMask paths) const noexcept {
    if (count_of(paths) <= batch_size_) return paths;
    RailMask chosen = 0;
    for (std::uint32_t n = 0; n < batch_size_; ++n) {
        const RailMask left = paths & ~chosen;
        RailIndex best = first_from(left, first_rail_);
        for (RailIndex rail : each(left))
            if (rails_[rail].weight > rails_[best].weight) best = rail;
        chosen |= bit_of(best);
    }
    return chosen;
}

void Scheduler::cut(Policy policy, RailMask rails, std::uint64_t bytes, std::uint64_t now_ns,
                    Schedule& schedule) const noexcept {
    Queues queues;
    const bool balance = row_of(policy).measures && config_->count_backlog;
    if (balance) rails = queues.level(rails_, rails, schedule.header.direction, bytes, now_ns);
    Shares shares;
    RailIndex from = next_first_;
    for (RailMask left = rails; left != 0;) {
        const RailIndex rail = first_from(left, from);
        shares.add(rail, balance ? queues.weight(rail) : weight(policy, rail));
        left &= ~bit_of(rail);
        from = after(rail);
    }
    split(bytes, shares, limits_, schedule);
}

// The probed rail gets the end of the message: the minimum, and the remainder from alignment.
void Scheduler::cut_with_probe(Policy policy, RailMask rails, RailIndex probed, std::uint64_t now_ns,
                               Schedule& schedule) const noexcept {
    const std::uint64_t bytes = schedule.header.bytes;
    schedule.clear();
    const std::uint64_t others = (bytes - limits_.min) / limits_.alignment * limits_.alignment;
    cut(policy, rails, others, now_ns, schedule);
    schedule.add(probed, others, bytes - others, weight(policy, probed));
    schedule.header.probed = probed;
}

// Chooses a rail to probe: a rail whose weight is too low for a stripe would otherwise never show that it has
// recovered. Among the rails that a message skips, this is the one skipped most often, if that was often enough
// and the message can be cut. A rail that last looked faster than its weight need not wait, because it takes
// several rounds to confirm that. A measured stripe in flight on a rail also serves as a probe.
RailIndex Scheduler::overdue(RailMask passed_by, std::uint64_t bytes) noexcept {
    RailIndex longest = kNoRailIndex;
    std::uint32_t most = 0;
    for (RailIndex rail : each(passed_by)) {
        ++passed_by_[rail];
        const std::uint32_t due = feedback_.may_be_faster(rail) ? 0 : config_->probe_every;
        if (passed_by_[rail] <= std::max(due, most) || feedback_.is_measuring(rail)) continue;
        longest = rail;
        most = passed_by_[rail];
    }
    const bool may = config_->probe_every != 0 && bytes >= 2 * limits_.min;
    return may ? longest : kNoRailIndex;
}

// --- events -----------------------------------------------------------------

void Scheduler::measure_from(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns,
                             Direction direction) noexcept {
    Traffic& traffic = rails_[rail].in(direction);
    feedback_.settle(rails_, posted_ns);
    feedback_.on_posted(rail, bytes);
    if (traffic.outstanding_stripes == 0) traffic.begun_ns = std::max(traffic.begun_ns, posted_ns);
}

void Scheduler::measure_to(RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns,
                           Direction direction) noexcept {
    feedback_.settle(rails_, now_ns);
    if (posted_ns != kNotMeasured) feedback_.on_completed(rails_, rail, direction, bytes, posted_ns, now_ns);
    else feedback_.on_others_completed(rail, direction, now_ns);
}

void Scheduler::on_aborted(RailIndex at, std::uint64_t bytes, std::uint64_t posted_ns, Direction direction) noexcept {
    if (posted_ns != kNotMeasured) feedback_.on_aborted(at, bytes);
    Traffic& traffic = rails_[at].in(direction);
    traffic.outstanding_bytes -= bytes;
    --traffic.outstanding_stripes;
}

void Scheduler::set_state(RailIndex rail, RailState state) noexcept {
    if (rails_[rail].state == state) return;
    if (state == RailState::kDown) feedback_.forget(rail);
    if (rails_[rail].state == RailState::kDown) set_weight(rail, rails_[rail].first_weight);
    passed_by_[rail] = 0;
    for (Turns& turns : turns_) turns.small.credit = turns.large.credit = {};
    rails_.set_state(rail, state);
}

}  // namespace coop::sched

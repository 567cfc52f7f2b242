// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/feedback.h"

#include <algorithm>

namespace coop::sched {
namespace {

constexpr std::uint32_t kMaxInRound = 4;  // stripes per rail
constexpr double kFar = 1.25;  // a measured share differing from the weight by more than this factor may be a change
constexpr double kDoubt = 16;  // divides alpha if no change is confirmed
constexpr unsigned kRounds = 2, kShortRounds = 4, kMaxRounds = 4;  // rounds needed to confirm a change

}  // namespace

void Feedback::on_posted(RailIndex rail, std::uint64_t bytes) noexcept {
    if (bytes < min_bytes_) return;
    ++samples_[rail].outstanding;
    waiting_ |= bit_of(rail);
}

void Feedback::on_completed(const RailSet& rails, RailIndex rail, Direction direction, std::uint64_t bytes,
                            std::uint64_t posted_ns, std::uint64_t now_ns) noexcept {
    Sample& sample = samples_[rail];
    const std::uint64_t start_ns = std::max(posted_ns, sample.last_completed_ns[static_cast<std::size_t>(direction)]);
    on_others_completed(rail, direction, now_ns);
    if (bytes < min_bytes_) return;
    if (sample.completed++ == 0) sample.due = std::clamp(sample.outstanding / 2, 1u, kMaxInRound);
    take_off(rail);
    if (rails[rail].state == RailState::kDown) return;
    sample.bytes += bytes;
    if (now_ns > start_ns) sample.busy_ns += now_ns - start_ns;
    const bool enough = sample.completed >= sample.due || sample.outstanding == 0;
    if (enough && sample.busy_ns != 0) done_ |= bit_of(rail);
    close_if_complete(now_ns);
}

void Feedback::on_others_completed(RailIndex rail, Direction direction, std::uint64_t now_ns) noexcept {
    std::uint64_t& last_ns = samples_[rail].last_completed_ns[static_cast<std::size_t>(direction)];
    last_ns = std::max(now_ns, last_ns);
}

void Feedback::on_aborted(RailIndex rail, std::uint64_t bytes) noexcept {
    if (bytes >= min_bytes_) take_off(rail);
}

void Feedback::forget(RailIndex rail) noexcept {
    samples_[rail].bytes = 0;
    samples_[rail].busy_ns = 0;
    samples_[rail].completed = 0;
    samples_[rail].trend = Trend::kUnknown;
    done_ &= ~bit_of(rail);
    waiting_ &= ~bit_of(rail);
}

void Feedback::take_off(RailIndex rail) noexcept {
    Sample& sample = samples_[rail];
    if (sample.outstanding != 0) --sample.outstanding;
    if (sample.outstanding == 0) waiting_ &= ~bit_of(rail);
}

void Feedback::close_if_complete(std::uint64_t now_ns) noexcept {
    if (ripe_ || (waiting_ & ~done_) != 0) return;
    ripe_ = true;
    ripe_ns_ = now_ns;
}

Feedback::Trend Feedback::trend_of(double part_of_weight) noexcept {
    if (part_of_weight > kFar) return Trend::kFaster;
    return part_of_weight < 1 / kFar ? Trend::kSlower : Trend::kSame;
}

// The first measurement counts at once: it is better than the initial guess.
bool Feedback::confirms(RailIndex rail, double part_of_weight, unsigned rounds) noexcept {
    Sample& sample = samples_[rail];
    const Trend before = sample.trend;
    sample.trend = trend_of(part_of_weight);
    const unsigned shown = before == Trend::kUnknown ? rounds
                           : before == sample.trend  ? std::min(sample.rounds + 1u, kMaxRounds)
                                                     : 1;
    sample.rounds = static_cast<std::uint8_t>(shown);
    return sample.trend != Trend::kSame && shown >= rounds;
}

// Bytes per nanosecond, at most the link's: a faster rate means that the start of the measurement was seen
// late.
double Feedback::rate_of(const RailSet& rails, RailIndex rail) const noexcept {
    const Sample& sample = samples_[rail];
    const double rate = static_cast<double>(sample.bytes) / static_cast<double>(sample.busy_ns);
    const std::uint64_t nominal = rails[rail].info.bytes_per_s;
    return nominal == 0 ? rate : std::min(rate, static_cast<double>(nominal) * 1e-9);
}

Feedback::Round Feedback::sum_up(const RailSet& rails) const noexcept {
    Round round;
    for (RailIndex rail : each(done_)) {
        const double busy_ns = static_cast<double>(samples_[rail].busy_ns);
        round.weight += rails[rail].weight;
        round.first_weight += rails[rail].first_weight;
        round.rate += rate_of(rails, rail);
        round.longest_ns = std::max(round.longest_ns, busy_ns);
        round.shortest_ns = round.shortest_ns == 0 ? busy_ns : std::min(round.shortest_ns, busy_ns);
    }
    return round;
}

// The weight of the rail according to this round alone.
double Feedback::target_of(const RailSet& rails, RailIndex rail, const Round& round) const noexcept {
    const double part = std::min(latency_ns_ / round.longest_ns, 1.0);
    const double measured = rate_of(rails, rail) / round.rate, first = rails[rail].first_weight / round.first_weight;
    return round.weight * ((1 - part * part) * measured + part * part * first);
}

double Feedback::alpha_of(const RailSet& rails, const Round& round) noexcept {
    if (count_of(done_) == 1) return alpha_ / kDoubt;  // no other rail to compare with
    const unsigned rounds = round.shortest_ns < pause_ns_ ? kShortRounds : kRounds;
    bool changed = false, doubtful = false;
    for (RailIndex rail : each(done_)) {
        if (confirms(rail, target_of(rails, rail, round) / rails[rail].weight, rounds)) changed = true;
        if (samples_[rail].trend != Trend::kSame) doubtful = true;
    }
    return changed ? alpha_ : doubtful ? 0 : alpha_ / kDoubt;
}

void Feedback::redistribute(RailSet& rails) noexcept {
    const Round round = sum_up(rails);
    const double alpha = alpha_of(rails, round);
    for (RailIndex rail : each(done_)) {
        const double rate = rate_of(rails, rail), target = target_of(rails, rail, round);
        Rail& known = rails[rail];
        known.rate = known.rate == 0 ? rate : (1 - alpha) * known.rate + alpha * rate;
        known.weight = (1 - alpha) * known.weight + alpha * target;
        Sample& sample = samples_[rail];
        sample.bytes = sample.busy_ns = 0;
        sample.completed = 0;
    }
    done_ = 0;
    ripe_ = false;
}

}  // namespace coop::sched

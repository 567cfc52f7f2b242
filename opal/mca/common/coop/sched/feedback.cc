// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/feedback.h"

#include <algorithm>

namespace coop::sched {
namespace {

constexpr std::uint32_t kMostInRound = 4;  // stripes of a rail
constexpr double kFar = 1.25;              // a rail's part of its weight, or the inverse: more may be a change
constexpr double kDoubt = 16;              // what alpha is divided by, if it is none

// Bytes per nanosecond. No rail is faster than its link: a time below that is one
// that was measured too late at its start.
double rate_of(std::uint64_t bytes, std::uint64_t busy_ns, std::uint64_t nominal_bytes_per_s) noexcept {
    const double rate = static_cast<double>(bytes) / static_cast<double>(busy_ns);
    return nominal_bytes_per_s == 0 ? rate : std::min(rate, static_cast<double>(nominal_bytes_per_s) * 1e-9);
}

}  // namespace

void Feedback::on_posted(RailIndex rail, std::uint64_t bytes) noexcept {
    if (bytes < min_bytes_) return;
    ++samples_[rail].outstanding;
    waiting_ |= bit_of(rail);
}

void Feedback::on_completed(const RailSet& rails, RailIndex rail, std::uint64_t bytes, std::uint64_t posted_ns, std::uint64_t now_ns) noexcept {
    Sample& sample = samples_[rail];
    const std::uint64_t start_ns = std::max(posted_ns, sample.last_completed_ns);
    sample.last_completed_ns = std::max(now_ns, sample.last_completed_ns);
    if (bytes < min_bytes_) return;
    if (sample.completed++ == 0) sample.due = std::clamp(sample.outstanding / 2, 1u, kMostInRound);
    take_off(rail);
    if (rails[rail].state == RailState::kDown) return;
    sample.bytes += bytes;
    if (now_ns > start_ns) sample.busy_ns += now_ns - start_ns;
    const bool enough = sample.completed >= sample.due || sample.outstanding == 0;
    if (enough && sample.busy_ns != 0) done_ |= bit_of(rail);
    close_if_complete(now_ns);
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

// The first measurement is better than any guess.
bool Feedback::confirms(RailIndex rail, double part_of_weight) noexcept {
    const Trend before = samples_[rail].trend;
    const Trend now = samples_[rail].trend = trend_of(part_of_weight);
    return now != Trend::kSame && (before == now || before == Trend::kUnknown);
}

// A rail that is alone in its round has nothing to be compared with.
void Feedback::redistribute(RailSet& rails) noexcept {
    std::array<double, kMaxRails> rates{};
    double round_weight = 0, round_rate = 0;
    for (RailIndex rail : each(done_)) {
        const Sample& sample = samples_[rail];
        rates[rail] = rate_of(sample.bytes, sample.busy_ns, rails[rail].info.bytes_per_s);
        round_weight += rails[rail].weight;
        round_rate += rates[rail];
    }
    bool changed = false;
    for (RailIndex rail : each(done_))
        if (confirms(rail, round_weight * rates[rail] / round_rate / rails[rail].weight)) changed = true;
    const double alpha = changed ? alpha_ : alpha_ / kDoubt;
    for (RailIndex rail : each(done_)) {
        Sample& sample = samples_[rail];
        sample.bytes = sample.busy_ns = 0;
        sample.completed = 0;
        rails[rail].rate = rails[rail].rate == 0 ? rates[rail] : (1 - alpha) * rails[rail].rate + alpha * rates[rail];
        rails[rail].weight = (1 - alpha) * rails[rail].weight + alpha * round_weight * rates[rail] / round_rate;
    }
    done_ = 0;
    ripe_ = false;
}

}  // namespace coop::sched

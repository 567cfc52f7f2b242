// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/tuner.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace coop::coll {
namespace {

std::uint64_t mean_of(const Situation& s) noexcept { return s.bytes / s.processes; }

// The steps double from one block on, so that one of them lies between the limits.
bool has_step_between(const Situation& s, std::uint64_t lower, std::uint64_t upper) noexcept {
    return mean_of(s) <= upper && s.bytes / 2 > lower;
}

bool applies(const Candidate& candidate, const Situation& s, std::uint64_t short_bytes) noexcept {
    const Way& way = candidate.way;
    if (!way.algorithm) return true;
    return fits(*way.algorithm, s.processes) && mean_of(s) >= candidate.min_block &&
           (candidate.powers_of_two || !std::has_single_bit(s.processes)) &&
           (way.short_part == 1 || has_step_between(s, short_bytes / way.short_part, short_bytes));
}

}  // namespace

Trials::Trials(const Situation& situation, std::uint64_t short_bytes, std::uint32_t calls) noexcept {
    const Choice usual = choose(situation);
    usual_ = usual.reason;
    ways_[count_++] = {usual.algorithm};
    for (const Candidate& candidate : kCandidates)
        if (candidate.way != ways_[0] && applies(candidate, situation, short_bytes)) ways_[count_++] = candidate.way;
    total_ = count_ * std::clamp<std::size_t>(calls, 1, kMaxTrials / count_);
}

void Trials::decide() noexcept {
    constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / kMarginPercent;
    shortest_.fill(kLongest);
    for (std::size_t call = 0; call < total_; ++call) {
        std::int64_t& time = shortest_[index_of(call)];
        time = std::min(time, std::clamp<std::int64_t>(times_[call], 0, kLongest));
    }
    const auto fastest = std::min_element(shortest_.begin(), shortest_.begin() + static_cast<std::ptrdiff_t>(count_));
    const bool clearly = shortest_[0] * 100 > *fastest * kMarginPercent;
    winner_ = clearly ? static_cast<std::size_t>(fastest - shortest_.begin()) : 0;
    decided_ = true;
}

Plan plan_without_tuner(const Situation& situation) noexcept {
    const Choice usual = choose(situation);
    return {{usual.algorithm}, usual.reason};
}

Plan Tuner::plan_first(std::size_t index, const Situation& situation) {
    const Plan usual = plan_without_tuner(situation);
    if (calls_ == 0 || usual.reason == Reason::kAsked) return usual;
    classes_[index] = std::make_unique<Trials>(situation, short_bytes_, calls_);
    return classes_[index]->plan();
}

}  // namespace coop::coll

// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/tuner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace coop::coll {
namespace {

std::uint64_t mean_of(const Situation& s) noexcept { return s.bytes / s.processes; }

// The last step has half of the blocks, or nearly so.
bool has_step_beyond(const Situation& s, std::uint64_t limit) noexcept { return s.bytes / 2 > limit; }

// The steps double from one block on, so that one of them lies between the limits.
bool has_step_between(const Situation& s, std::uint64_t lower, std::uint64_t upper) noexcept {
    return mean_of(s) <= upper && has_step_beyond(s, lower);
}

bool applies(const Candidate& candidate, const Situation& s, std::uint64_t short_bytes) noexcept {
    const Way& way = candidate.way;
    if (!way.algorithm) return true;
    return fits(*way.algorithm, s.processes) && mean_of(s) >= candidate.min_block && mean_of(s) < candidate.end_block &&
           (!way.packets || has_step_beyond(s, short_bytes)) &&
           (candidate.powers_of_two || !std::has_single_bit(s.processes)) &&
           (way.short_part == 1 || has_step_between(s, short_bytes / way.short_part, short_bytes));
}

}  // namespace

Trials::Trials(const Situation& situation, std::uint64_t short_bytes, std::uint32_t calls) noexcept {
    const Plan usual = plan_without_tuner(situation);
    usual_ = usual.reason;
    ways_[count_++] = usual.way;
    if (situation.shared_memory) {
        ways_[count_++] = {};
        ways_[count_++] = {choose(situation).algorithm};
        // On several nodes the processes of a node share its links.
        const Way ring{Algorithm::kRing};
        if (!situation.one_node && ways_[2] != ring && mean_of(situation) >= kManySteps) ways_[count_++] = ring;
    } else {
        for (const Candidate& candidate : kCandidates)
            if (candidate.way != ways_[0] && applies(candidate, situation, short_bytes))
                ways_[count_++] = candidate.way;
    }
    total_ = count_ * std::clamp<std::size_t>(calls, 1, kMaxTrials / count_);
}

std::size_t Trials::index_of(std::size_t call) const noexcept {
    const std::size_t in_pairs = total_ / count_ / 2 * 2 * count_;
    const std::size_t turn = call < in_pairs ? call / 2 : in_pairs / 2 + (call - in_pairs);
    return (turn % count_ + turn / count_) % count_;
}

// The mean of the shorter half of the calls of the way.
std::int64_t Trials::result_of(std::size_t way) const noexcept {
    constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / kMarginPercent / kMaxTrials;
    std::array<std::int64_t, kMaxTrials> times;
    std::size_t n = 0;
    for (std::size_t call = 0; call < total_; ++call)
        if (index_of(call) == way) times[n++] = std::clamp<std::int64_t>(times_[call], 0, kLongest);
    const std::size_t half = (n + 1) / 2;
    const auto end = times.begin() + static_cast<std::ptrdiff_t>(half);
    std::partial_sort(times.begin(), end, times.begin() + static_cast<std::ptrdiff_t>(n));
    return std::accumulate(times.begin(), end, std::int64_t{0}) / static_cast<std::int64_t>(half);
}

void Trials::decide() noexcept {
    for (std::size_t way = 0; way < count_; ++way) results_[way] = result_of(way);
    const auto fastest = std::min_element(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(count_));
    const bool clearly = results_[0] * 100 > *fastest * kMarginPercent;
    winner_ = clearly ? static_cast<std::size_t>(fastest - results_.begin()) : 0;
    decided_ = true;
}

Plan plan_without_tuner(const Situation& situation) noexcept {
    if (situation.shared_memory)
        return {{.shared_memory = true}, situation.wish == Wish::kNode ? Reason::kAsked : Reason::kSharedMemory};
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

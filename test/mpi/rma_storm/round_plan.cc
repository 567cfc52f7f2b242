// SPDX-License-Identifier: BSD-3-Clause
//
// Draws the window of a round and its epochs.
#include <algorithm>
#include <cmath>

#include "plan.h"

namespace rma_storm {
namespace {

using pattern::Random;

struct Weight {
    Feature feature;
    std::uint64_t weight;
};

// Draws one of the features that are in use; `fallback` if none is.
template <std::size_t n>
Feature pick(const Options& options, Random& random, const Weight (&weights)[n], Feature fallback) {
    std::uint64_t sum = 0;
    for (const Weight& w : weights) sum += options.has(w.feature) ? w.weight : 0;
    std::uint64_t at = random.below(sum);
    for (const Weight& w : weights) {
        if (!options.has(w.feature)) continue;
        if (at < w.weight) return w.feature;
        at -= w.weight;
    }
    return fallback;
}

WindowKind draw_kind(const Options& options, Random& random, bool one_node) {
    const Weight weights[] = {
        {Feature::kCreate, 4}, {Feature::kAllocate, 4}, {Feature::kShared, one_node ? 3u : 0u}, {Feature::kDynamic, 2}};
    switch (pick(options, random, weights, Feature::kAllocate)) {
    case Feature::kCreate: return WindowKind::kCreated;
    case Feature::kShared: return WindowKind::kShared;
    case Feature::kDynamic: return WindowKind::kDynamic;
    default: return WindowKind::kAllocated;
    }
}

EpochKind draw_epoch(const Options& options, Random& random, bool active_only) {
    const Weight weights[] = {{Feature::kFence, 2},
                              {Feature::kPscw, 3},
                              {Feature::kLocks, active_only ? 0u : 3u},
                              {Feature::kLockAll, active_only ? 0u : 3u}};
    switch (pick(options, random, weights, Feature::kFence)) {
    case Feature::kPscw: return EpochKind::kPscw;
    case Feature::kLocks: return EpochKind::kLocks;
    case Feature::kLockAll: return EpochKind::kLockAll;
    default: return EpochKind::kFence;
    }
}

std::vector<Segment> draw_segments(Random& random, WindowKind kind, std::size_t bytes) {
    std::vector<Segment> segments;
    if (kind != WindowKind::kDynamic) return {{0, bytes}};
    const std::size_t parts = 1 + random.below(3);
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t part = std::max<std::size_t>(1, i + 1 == parts ? bytes : random.below(bytes + 1));
        segments.push_back({at, part});
        at = (at + part + kSegmentStep - 1) / kSegmentStep * kSegmentStep;
        bytes -= std::min(part, bytes);
    }
    return segments;
}

WindowPlan draw_window(const Options& options, Random& random, int size, bool one_node) {
    static constexpr int kUnits[] = {1, 1, 2, 3, 4, 8, 8, 16, 64, 1000};
    WindowPlan plan;
    plan.kind = draw_kind(options, random, one_node);
    // Some windows have room for the longest operations.
    const std::size_t most = random.one_in(5) ? 3 * options.max_bytes : std::min<std::size_t>(options.max_bytes, 40000);
    const std::size_t bytes = 64 + most / 8 + draw_bytes(random, most);
    const bool equal = random.one_in(2), equal_units = random.one_in(2);
    const int unit = kUnits[random.below(std::size(kUnits))];
    for (int rank = 0; rank < size; ++rank) {
        std::size_t own = bytes;
        if (!equal && random.one_in(2)) own = random.one_in(5) ? 0 : 1 + random.below(bytes);
        if (plan.kind == WindowKind::kAllocated && !options.has(Feature::kOdd)) own = own / 64 * 64;
        if (plan.kind == WindowKind::kShared) own = own / 16 * 16;  // the next rank's part begins behind it
        plan.segments.push_back(draw_segments(random, plan.kind, own));
        const int other = kUnits[random.below(std::size(kUnits))];
        plan.unit.push_back(plan.kind == WindowKind::kDynamic ? 1 : equal_units ? unit : other);
    }
    plan.hints = options.has(Feature::kHints) && random.one_in(2);
    if (plan.hints) {
        plan.no_locks = random.one_in(4) && (options.has(Feature::kFence) || options.has(Feature::kPscw));
        plan.unordered = random.one_in(4);
        plan.one_operation = random.one_in(4);
        plan.noncontiguous = random.one_in(2);
    }
    return plan;
}

void draw_groups(const Options& options, Random& random, int size, Phase& phase) {
    const std::uint64_t dense = 1 + random.below(3);
    const auto n = static_cast<std::size_t>(size);
    phase.access.assign(n, std::vector<bool>(n, false));
    for (auto& targets : phase.access)
        for (std::size_t t = 0; t < n; ++t) targets[t] = random.below(4) < dense;
    if (options.has(Feature::kEmpty)) return;
    for (std::size_t rank = 0; rank < n; ++rank) phase.access[rank][(rank + 1) % n] = true;
}

void draw_epochs(const Options& options, Random& random, int size, Round& round) {
    const std::size_t epochs = 1 + random.below(4);
    for (std::size_t e = 0; e < epochs; ++e) {
        const EpochKind kind = draw_epoch(options, random, round.window.no_locks);
        const bool long_one = kind == EpochKind::kFence || kind == EpochKind::kLockAll;
        const std::size_t phases = long_one ? 1 + random.below(3) : 1;
        for (std::size_t i = 0; i < phases; ++i) {
            Phase phase{};
            phase.kind = kind;
            phase.opens = i == 0;
            phase.closes = i + 1 == phases;
            phase.check = phase.closes || random.one_in(2);
            // Inside of an epoch others do not wait for this rank's check. After it they do: a rank exposes its window
            // only after its own check, and passive epochs begin with a barrier.
            phase.barrier = phase.closes ? random.one_in(3) : phase.check;
            phase.nested = kind == EpochKind::kLocks && options.has(Feature::kNested) && random.one_in(3);
            phase.no_check = options.has(Feature::kAsserts) && random.one_in(4);
            phase.asserts = options.has(Feature::kAsserts) && random.one_in(2);
            if (kind == EpochKind::kPscw) draw_groups(options, random, size, phase);
            round.phases.push_back(phase);
        }
    }
}

}  // namespace

std::size_t WindowPlan::bytes(int rank) const {
    const Segment& last = segments[static_cast<std::size_t>(rank)].back();
    return last.at + last.bytes;
}

std::size_t draw_bytes(Random& random, std::size_t most) {
    // Limits of transports and protocols. A size is as often close to one of them as it is random.
    static constexpr std::size_t kEdges[] = {1,    4,    8,     64,    256,   1024,   2048,
                                             4096, 8192, 16384, 32768, 65536, 131072, 1u << 20};
    std::size_t bytes;
    if (random.one_in(3)) {
        bytes = kEdges[random.below(random.one_in(4) ? std::size(kEdges) : 7)] + random.below(9);
        if (random.one_in(2)) bytes -= std::min<std::size_t>(bytes, random.below(160));
    } else {
        const std::size_t highest = random.one_in(8) ? most : std::min<std::size_t>(most, 5000);
        const double u = static_cast<double>(random.below(1u << 30)) / (1u << 30);
        bytes = static_cast<std::size_t>(std::exp(u * std::log(static_cast<double>(highest) + 1)));
    }
    return std::max<std::size_t>(1, std::min(bytes, most));
}

Round make_round(const Options& options, std::uint64_t key, int size, bool one_node, int threads,
                 std::uint64_t operations) {
    Round round;
    round.key = key;
    round.size = size;
    Random random(key);
    round.window = draw_window(options, random, size, one_node);
    draw_epochs(options, random, size, round);
    for (Phase& phase : round.phases)
        plan_operations(options, round, threads, 1 + operations / round.phases.size(), random, phase);
    return round;
}

}  // namespace rma_storm

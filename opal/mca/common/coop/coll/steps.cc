// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/steps.h"

#include <algorithm>
#include <bit>

namespace coop::coll {
namespace {

// All arguments are below p, so no sum overflows.
std::uint32_t plus(std::uint32_t rank, std::uint32_t distance, std::uint32_t p) noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + distance) % p);
}
std::uint32_t minus(std::uint32_t rank, std::uint32_t distance, std::uint32_t p) noexcept {
    return plus(rank, p - distance, p);
}

// The two partners have the same blocks but for bit `step` of their ranks: each has all blocks whose higher bits are its
// own.
Step doubling(std::uint32_t rank, std::uint32_t step) noexcept {
    const std::uint32_t count = 1u << step, partner = rank ^ count;
    return {partner, partner, {rank & ~(count - 1), count}, {partner & ~(count - 1), count}};
}

// Before the step, each process has the `distance` blocks that begin with its own.
Step bruck(std::uint32_t p, std::uint32_t rank, std::uint32_t step) noexcept {
    const std::uint32_t distance = 1u << step, count = std::min(distance, p - distance);
    const std::uint32_t from = plus(rank, distance, p);
    return {minus(rank, distance, p), from, {rank, count}, {from, count}};
}

Step ring(std::uint32_t p, std::uint32_t rank, std::uint32_t step) noexcept {
    return {plus(rank, 1, p), minus(rank, 1, p), {minus(rank, step, p), 1}, {minus(rank, step + 1, p), 1}};
}

// Pairs of neighbours exchange their blocks, then each process exchanges with its two neighbours in turn the pair of
// blocks that it received last. (Chen, Zhang, Zhang, Yuan: Performance Evaluation of Allgather Algorithms on
// Terascale Linux Cluster with Fast Ethernet, HPCASIA 2005)
Step neighbour(std::uint32_t p, std::uint32_t rank, std::uint32_t step) noexcept {
    const bool even = rank % 2 == 0;
    const auto neighbour_in = [&](std::uint32_t s) {
        return even == (s % 2 == 0) ? plus(rank, 1, p) : minus(rank, 1, p);
    };
    // The first block of the pair that was received in a step. The pairs of the steps 1, 2, … of an even rank lie 2
    // below, 2 above, 4 below, 4 above its own pair; those of an odd rank the other way round.
    const auto pair_of = [&](std::uint32_t s) {
        const std::uint32_t own = even ? rank : rank - 1, distance = (s + 1) / 2 * 2;
        return even == (s % 2 == 0) ? plus(own, distance % p, p) : minus(own, distance % p, p);
    };
    const std::uint32_t partner = neighbour_in(step);
    if (step == 0) return {partner, partner, {rank, 1}, {partner, 1}};
    return {partner, partner, {step == 1 ? (even ? rank : rank - 1) : pair_of(step - 1), 2}, {pair_of(step), 2}};
}

}  // namespace

const char* text(Algorithm algorithm) noexcept {
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return "doubling";
    case Algorithm::kBruck: return "bruck";
    case Algorithm::kRing: return "ring";
    case Algorithm::kNeighbour: return "neighbour";
    }
    return "unknown";
}

bool fits(Algorithm algorithm, std::uint32_t processes) noexcept {
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return (processes & (processes - 1)) == 0 && processes > 0;
    case Algorithm::kNeighbour: return processes % 2 == 0;
    case Algorithm::kBruck:
    case Algorithm::kRing: break;
    }
    return processes > 0;
}

std::uint32_t count_steps(Algorithm algorithm, std::uint32_t processes) noexcept {
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling:
    case Algorithm::kBruck: return static_cast<std::uint32_t>(std::bit_width(processes - 1));
    case Algorithm::kRing: return processes - 1;
    case Algorithm::kNeighbour: return processes / 2;
    }
    return 0;
}

std::uint32_t count_announcements(Algorithm algorithm, std::uint32_t processes) noexcept {
    const std::uint32_t steps = count_steps(algorithm, processes);
    switch (algorithm) {
    case Algorithm::kRing: return std::min(steps, 1u);
    case Algorithm::kNeighbour: return std::min(steps, 2u);
    default: return steps;
    }
}

Step step_of(Algorithm algorithm, std::uint32_t processes, std::uint32_t rank, std::uint32_t step) noexcept {
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return doubling(rank, step);
    case Algorithm::kBruck: return bruck(processes, rank, step);
    case Algorithm::kRing: return ring(processes, rank, step);
    case Algorithm::kNeighbour: break;
    }
    return neighbour(processes, rank, step);
}

Step ring_step_of(const RingOrder& order, std::uint32_t step) noexcept {
    const auto rank_at = [&](std::uint32_t position) { return order.rank_at[position]; };
    const Step by_position = ring(static_cast<std::uint32_t>(order.rank_at.size()), order.position, step);
    return {rank_at(by_position.to),
            rank_at(by_position.from),
            {rank_at(by_position.send.first), 1},
            {rank_at(by_position.receive.first), 1}};
}

}  // namespace coop::coll

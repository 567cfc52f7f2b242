// SPDX-License-Identifier: BSD-3-Clause
#include "sim/workload.h"

#include <bit>

#include "sim/random.h"

namespace coop::sim {
namespace {

constexpr const char* kNames[] = {"ring", "alltoall", "allgather", "allreduce", "shifts"};

Step shift(std::uint32_t ranks, std::uint32_t rank, std::uint32_t by, std::uint64_t bytes) noexcept {
    return {(rank + by) % ranks, (rank + ranks - by) % ranks, bytes, 0};
}

Step alltoall(const Workload& w, std::uint32_t rank, std::uint32_t step) noexcept {
    if (!std::has_single_bit(w.ranks)) return shift(w.ranks, rank, step + 1, w.bytes);
    return {rank ^ (step + 1), rank ^ (step + 1), w.bytes, 0};
}

Step allgather(const Workload& w, std::uint32_t rank, std::uint32_t step) noexcept {
    const coll::Step blocks = coll::step_of(w.algorithm, w.ranks, rank, step);
    const std::uint64_t bytes = blocks.send.count * w.bytes;
    const bool copied = bytes <= w.copy_below;
    return {blocks.to, blocks.from, bytes, 0, copied, copied || w.announce == Announce::kCall};
}

// --- allreduce ------------------------------------------------------------------------------------------------------

Step reduce_scatter_and_allgather(const Workload& w, std::uint32_t rank, std::uint32_t step) noexcept {
    const std::uint64_t block = (w.bytes + w.ranks - 1) / w.ranks;
    if (step >= w.ranks - 1) return shift(w.ranks, rank, 1, block);
    Step reduce = shift(w.ranks, rank, step + 1, block);
    reduce.reduced_bytes = block;
    return reduce;
}

// Step 0: of the first 2 · extra ranks, the even ones send their vector to the odd
// ones and wait. The last step sends the result back.
class RecursiveDoubling {
public:
    explicit RecursiveDoubling(const Workload& w) noexcept
        : w_(w), power_(std::bit_floor(w.ranks)), extra_(w.ranks - power_) {}

    std::uint32_t steps() const noexcept { return static_cast<std::uint32_t>(std::countr_zero(power_)) + 2; }

    Step step(std::uint32_t rank, std::uint32_t step) const noexcept {
        const bool folded = rank < 2 * extra_ && rank % 2 == 0;
        const bool folds = rank < 2 * extra_ && rank % 2 == 1;
        if (step == 0) {
            if (folded) return {rank + 1, kNone, w_.bytes, 0};
            return folds ? Step{kNone, rank - 1, w_.bytes, w_.bytes} : Step{};
        }
        if (step + 1 == steps()) {
            if (folds) return {rank - 1, kNone, w_.bytes, 0};
            return folded ? Step{kNone, rank + 1, w_.bytes, 0} : Step{};
        }
        if (folded) return {};
        const std::uint32_t partner = rank_of(number_of(rank) ^ (1u << (step - 1)));
        return {partner, partner, w_.bytes, w_.bytes};
    }

private:
    std::uint32_t number_of(std::uint32_t rank) const noexcept { return rank < 2 * extra_ ? rank / 2 : rank - extra_; }
    std::uint32_t rank_of(std::uint32_t number) const noexcept {
        return number < extra_ ? number * 2 + 1 : number + extra_;
    }

    const Workload& w_;
    std::uint32_t power_, extra_;
};

}  // namespace

std::optional<Pattern> pattern_named(std::string_view word) {
    for (std::size_t i = 0; i < std::size(kNames); ++i)
        if (word == kNames[i]) return static_cast<Pattern>(i);
    return std::nullopt;
}

std::optional<coll::Algorithm> algorithm_named(std::string_view word) {
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i)
        if (word == coll::text(static_cast<coll::Algorithm>(i))) return static_cast<coll::Algorithm>(i);
    return std::nullopt;
}

const char* name(Pattern pattern) noexcept { return kNames[static_cast<std::size_t>(pattern)]; }

std::uint32_t steps_of(const Workload& w) noexcept {
    if (w.only_step != 0) return 1;
    if (w.pattern == Pattern::kAllgather && w.algorithm != coll::Algorithm::kRing)
        return coll::count_steps(w.algorithm, w.ranks);
    if (w.pattern != Pattern::kAllreduce) return (w.ranks - 1 + w.every - 1) / w.every;
    return std::has_single_bit(w.ranks) ? 2 * (w.ranks - 1) : RecursiveDoubling(w).steps();
}

Step step_of(const Workload& w, std::uint32_t rank, std::uint32_t iteration, std::uint32_t step) noexcept {
    switch (w.pattern) {
    case Pattern::kRing: return shift(w.ranks, rank, w.only_step != 0 ? w.only_step : step * w.every + 1, w.bytes);
    case Pattern::kAlltoall: return alltoall(w, rank, step * w.every);
    case Pattern::kAllgather: return allgather(w, rank, step * w.every);
    case Pattern::kAllreduce:
        return std::has_single_bit(w.ranks) ? reduce_scatter_and_allgather(w, rank, step)
                                            : RecursiveDoubling(w).step(rank, step);
    case Pattern::kShifts: {
        const std::uint64_t number = std::uint64_t{iteration} * (w.ranks - 1) + step;
        return shift(w.ranks, rank, 1 + Random(w.seed * 0x10001 + number).below(w.ranks - 1), w.bytes);
    }
    }
    return {};
}

}  // namespace coop::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the fastest way to do the allgathers of a communicator: its first calls try several ways.
//
//     size class   the operation, and the power of two of the mean length of a block; each
//                  class is tuned by itself
//     ways         the choice of choose(), then the rows of kCandidates that apply; if there is
//                  shared memory: that, the component of lower priority, the choice of
//                  choose(), and on several nodes the ring
//     trials       rounds in which each way has two calls, or one in the last round, so that a
//                  disturbance affects all ways alike. The second call of a way finds its
//                  code and data in the caches. Each round begins with the next way; otherwise
//                  a program whose calls repeat in a pattern could favour one.
//     result       each process measures its calls. For each call the processes take the
//                  longest of their times, and for each way the mean of the shorter half of
//                  its calls.
//
// The longest time of a call is at least the time from the arrival of the last process to
// the departure of the last one, which is the cost of the call. What exceeds it is waiting
// for late processes and other disturbance; the shorter half of several calls has the least
// of it, and omits what only the first call of a way costs: connections, registrations. A
// time of one process alone may be too short, because a late process finds its blocks
// delivered.
//
// Which way a call takes depends only on the calls before it and on times that are the
// same in all processes. So all processes take the same.
//
// Units: bytes, ns. Pure. Threading: calls of a communicator follow each other.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "coop/base/export.h"
#include "coop/coll/choice.h"

namespace coop::coll {

enum class Operation : std::uint8_t { kAllgather, kAllgatherv };
constexpr std::size_t kOperations = 2;

constexpr std::uint32_t kMaxRings = 4;  // at once

// A way to do a call.
struct Way {
    std::optional<Algorithm> algorithm{};  // none: by shared memory, or the component of lower priority does it
    std::uint32_t short_part = 1;          // short steps have at most 1/short_part of the usual limit
    std::uint32_t rings = 1;               // several rings at once, each with its part of each block
    bool packets = false;                  // long steps are copied in packets, so no memory is registered
    bool shared_memory = false;            // then without an algorithm
    bool operator==(const Way&) const = default;
};

// A way that is tried, and where.
struct Candidate {
    Way way;
    std::uint64_t min_block = 0;           // mean length of a block from which on it is tried
    std::uint64_t end_block = UINT64_MAX;  // and up to which; this length is not included
    bool powers_of_two = true;             // false: not where recursive doubling is possible
};

// To add a way, add a row. An algorithm is tried only where it fits the number of processes; a way with a lower limit
// only where it makes a short step long, one by packets only where there is a long step.
inline constexpr std::uint64_t kManySteps = 1024;  // shorter blocks are not worth the steps of ring and neighbour
// Shorter blocks are not worth the announcements of several rings.
inline constexpr std::uint64_t kLongBlocks = 64 * 1024;
// From this length on a registration costs less than the copies.
inline constexpr std::uint64_t kCopiedBlocks = 256 * 1024;
inline constexpr Candidate kCandidates[] = {
    {.way = {std::nullopt}},
    {.way = {Algorithm::kRecursiveDoubling}},
    {.way = {Algorithm::kBruck}, .powers_of_two = false},
    {.way = {Algorithm::kRing}, .min_block = kManySteps},
    {.way = {Algorithm::kNeighbour}, .min_block = kManySteps},
    {.way = {Algorithm::kRecursiveDoubling, 4}},
    {.way = {Algorithm::kBruck, 4}, .powers_of_two = false},
    {.way = {.algorithm = Algorithm::kRecursiveDoubling, .packets = true}, .end_block = kCopiedBlocks},
    {.way = {.algorithm = Algorithm::kBruck, .packets = true}, .end_block = kCopiedBlocks, .powers_of_two = false},
    {.way = {.algorithm = Algorithm::kRing, .rings = kMaxRings}, .min_block = kLongBlocks},
};

constexpr std::size_t kMaxTrials = 20;                        // calls of a size class
constexpr std::size_t kMaxWays = std::size(kCandidates) + 1;  // and the choice of choose()
// Rows of doubling and of bruck never apply together, so at least one row is left out.
static_assert(2 * (kMaxWays - 1) <= kMaxTrials, "each way needs a second call");

// Another way than the usual one, that of plan_without_tuner(), is taken only if the usual one takes more than 103 % of
// its time.
constexpr std::int64_t kMarginPercent = 103;

class Trials;

// How to do a call.
struct Plan {
    Way way;
    Reason reason;
    Trials* trials = nullptr;  // if not null, the call is a trial, and its time is added
};

// The trials of one size class.
class Trials {
public:
    // `short_bytes`: the usual limit of short steps; `calls` by each way, fewer if kMaxTrials requires it.
    COOP_EXPORT Trials(const Situation& situation, std::uint64_t short_bytes, std::uint32_t calls) noexcept;

    std::span<const Way> ways() const noexcept { return {ways_.data(), count_}; }
    std::size_t total() const noexcept { return total_; }  // number of calls

    // Of the next call: a trial until decide().
    Plan plan() noexcept { return decided_ ? winner() : Plan{way_of(done_), Reason::kTuning, this}; }
    // The usual way until decide().
    Plan winner() const noexcept { return {ways_[winner_], winner_ == 0 ? usual_ : Reason::kMeasured}; }

    // The time of the call that plan() was for.
    void add(std::int64_t ns) noexcept { times_[done_++] = ns; }
    // Then the processes replace each time by the longest of all processes, and decide.
    bool is_complete() const noexcept { return done_ == total_; }
    std::span<std::int64_t> times() noexcept { return {times_.data(), total_}; }
    COOP_EXPORT void decide() noexcept;
    std::int64_t time_of(std::size_t way) const noexcept { return results_[way]; }  // after decide()

private:
    // The way of a call, as an index.
    COOP_EXPORT std::size_t index_of(std::size_t call) const noexcept;
    std::int64_t result_of(std::size_t way) const noexcept;
    const Way& way_of(std::size_t call) const noexcept { return ways_[index_of(call)]; }

    std::array<Way, kMaxWays> ways_{};  // the first: the usual one
    std::array<std::int64_t, kMaxTrials> times_{};
    std::array<std::int64_t, kMaxWays> results_{};
    std::size_t count_ = 0, total_ = 0, done_ = 0;
    std::size_t winner_ = 0;
    Reason usual_;
    bool decided_ = false;
};

// The usual way: by shared memory if that is possible, otherwise the choice of choose().
COOP_EXPORT Plan plan_without_tuner(const Situation& situation) noexcept;

class Tuner {
public:
    // `calls` by each way; 0: no trials.
    explicit Tuner(std::uint32_t calls) noexcept : calls_(calls) {}

    // The usual limit of short steps, before the first call.
    void agree(std::uint64_t short_bytes) noexcept { short_bytes_ = short_bytes; }

    // For a call whose time can be measured; the same in all processes. `block`: mean length of a block.
    Plan plan(Operation operation, std::uint64_t block, const Situation& situation) {
        const std::size_t index = index_of(operation, block);
        return classes_[index] ? classes_[index]->plan() : plan_first(index, situation);
    }

    // For a non-blocking call, which has an algorithm: the one that its class has been tuned to, or the choice of
    // choose().
    Plan plan_without_trial(Operation operation, std::uint64_t block, const Situation& situation) const noexcept {
        const auto& trials = classes_[index_of(operation, block)];
        if (trials && trials->winner().way.algorithm) return trials->winner();
        const Choice usual = choose(situation);
        return {{usual.algorithm}, usual.reason};
    }

private:
    static constexpr std::size_t kClasses = 48;  // the last: blocks of 2^46 bytes and more
    static std::size_t index_of(Operation operation, std::uint64_t block) noexcept {
        const auto size = static_cast<std::size_t>(std::bit_width(block));
        return static_cast<std::size_t>(operation) * kClasses + std::min(size, kClasses - 1);
    }
    COOP_EXPORT Plan plan_first(std::size_t index, const Situation& situation);

    std::uint32_t calls_;
    std::uint64_t short_bytes_ = 0;
    std::array<std::unique_ptr<Trials>, kOperations * kClasses> classes_;  // null: no call so far
};

}  // namespace coop::coll

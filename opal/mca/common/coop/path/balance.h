// SPDX-License-Identifier: BSD-3-Clause
//
// When a queue pair leaves a congested path: it measures the rate at which the queue pair's requests complete, and asks
// for the alternate path if the present one delivers too little. One queue pair so uses several paths, one at a time.
//
//     stretch: while requests are under way ─► window: 20 ms of stretches ─► verdict after two windows, or a long one
//
//     verdict   free         at least half of the expected rate
//               congested    less. Paths that were not measured since the last free one are tried, in the order of the
//                            ring (path/alternates.h). If all are congested, the queue pair goes to the best of them
//                            and waits, for twice as long each time, at most a minute
//
// The expected rate is the nominal one of the link, or, if that is unknown, the best one that was measured.
//
// A stretch counts if it moved so many bytes that latency does not matter, and if the process found the last completion
// soon: one that computes finds it late, and its path would look slow.
//
// Both processes of a pair may ask. A path can be congested in one direction only, so that each of two paths suits one
// of them; then they wait longer and longer between their moves.
//
// Source: dissertation 9.2.3. Units: nanoseconds of any steady clock, bytes. Threading: the owner's lock. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/base/export.h"
#include "coop/path/alternates.h"

namespace coop::path {

struct BalancePatience {
    std::uint64_t hold = 1'000'000'000;  // after a search; doubles with each one that follows soon
    std::uint64_t longest_hold = 60'000'000'000;
    std::uint64_t calm = 10'000'000'000;  // after the end of a hold, until a search does not follow soon any more
};

class Balance {
public:
    static constexpr std::uint64_t kLeastBytes = 128 * 1024;  // of a stretch
    static constexpr std::uint64_t kLeastMean = 32 * 1024;    // of its requests; shorter ones are limited by processors
    static constexpr std::uint64_t kWindowNs = 20'000'000;    // sum of the stretches
    static constexpr double kFree = 0.5;                      // part of the expected rate
    static constexpr double kBetter = 1.25;                   // a path is worth a move if it is faster by this factor
    static constexpr std::uint64_t kAskAgainNs = 100'000'000;

    // `paths`: of the ring, at most kMostAlternates. `link_rate`: bytes per ns; 0: unknown.
    explicit Balance(std::size_t paths, double link_rate, const BalancePatience& patience = {}) noexcept
        : patience_(patience), paths_(paths), link_rate_(link_rate), hold_(patience.hold) {}

    COOP_EXPORT void on_posted(std::uint32_t bytes, std::uint64_t now) noexcept;
    // A posted request has completed. `seen_before`: when the process has looked for completions the last time before `now`;
    // any other value is taken for unknown. Returns whether the queue pair should move to the next path of the ring.
    [[nodiscard]] COOP_EXPORT bool on_completed(std::uint32_t bytes, std::uint64_t now,
                                                std::uint64_t seen_before) noexcept;
    // The queue pair is on this path now, for whatever reason.
    COOP_EXPORT void on_moved(std::size_t path, std::uint64_t now) noexcept;

    std::size_t paths() const noexcept { return paths_; }
    std::size_t current() const noexcept { return current_; }
    // Bytes per ns in the last window over the path; 0: not measured.
    double rate(std::size_t path) const noexcept { return path < paths_ ? last_rate_[path] : 0; }

private:
    bool close_window(std::uint64_t now) noexcept;
    bool on_congested(double rate, std::uint64_t now) noexcept;
    void end_search(std::uint64_t now) noexcept;
    bool ask(std::uint64_t now) noexcept;
    std::size_t best() const noexcept;

    BalancePatience patience_;
    std::size_t paths_;
    double link_rate_;  // bytes per ns; 0: unknown
    std::size_t current_ = 0;
    std::uint64_t under_way_ = 0;  // bytes posted and not completed
    // The stretch. It began at most so much earlier.
    std::optional<std::uint64_t> begin_;  // nothing: unknown
    std::uint64_t begin_doubt_ = 0, stretch_bytes_ = 0, requests_ = 0;
    std::uint64_t bytes_ = 0, busy_ns_ = 0;               // of this window
    std::uint32_t congested_ = 0;                         // windows in a row
    std::array<double, kMostAlternates> last_rate_{};     // by path
    double best_rate_ = 0;                                // of all windows
    std::array<double, kMostAlternates> search_{};        // the same since the last free window; 0: not measured
    std::optional<std::size_t> target_;                   // the best path, to which it is going
    std::uint64_t hold_, hold_until_ = 0, asked_at_ = 0;  // asked_at_: 0 if not since the last move
};

}  // namespace coop::path

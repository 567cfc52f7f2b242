// SPDX-License-Identifier: BSD-3-Clause
//
// When a queue pair leaves a congested path: it measures the rate at which the queue pair's requests complete, and asks
// for the alternate path if the present one delivers too little. One queue pair so uses several paths, one at a time.
//
//     stretch: while requests are under way ─► window: 20 ms of stretches ─► verdict after two windows, or a long one
//
//     verdict   free         the port carried at least half of the rate of the link
//               congested    less. Paths that were not measured since the last free one are tried, in the order of the
//                            ring (path/alternates.h). If all are congested, the queue pair goes to one that is clearly
//                            better than the first of them, or back to that, and waits: for twice as long each time, at
//                            most a minute
//
// What other queue pairs of the process carry over the port counts for the verdict, because they share the link. If the
// rate of the link is unknown, the best one that was measured stands for it.
//
// A stretch counts if it moved so many bytes that latency does not matter, and if the process found the last completion
// soon: one that computes finds it late, and its path would look slow.
//
// That a path is loaded does not mean that it works. A path is barred for a minute if the queue pair was lost on it, or has
// left it for another reason than this: the path may have failed, or the peer may have left it because it is congested the
// other way. So if each of two paths suits one of the two processes, they seldom move.
//
// Source: dissertation 9.2.3. Units: nanoseconds of any steady clock, bytes. Threading: the owner's lock. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coop/base/export.h"

namespace coop::path {

struct BalancePatience {
    std::uint64_t hold = 1'000'000'000;  // after a search; doubles with each one that follows soon
    std::uint64_t longest_hold = 60'000'000'000;
    std::uint64_t calm = 10'000'000'000;  // after the end of a hold, until a search does not follow soon any more
    std::uint64_t bar = 60'000'000'000;
};

// Bytes that the queue pairs of a port have carried in one direction; any start.
using Carried = std::uint64_t;

class Balance {
public:
    static constexpr std::uint64_t kLeastBytes = 128 * 1024;  // of a stretch
    static constexpr std::uint64_t kLeastMean = 32 * 1024;    // of its requests; shorter ones are limited by processors
    static constexpr std::uint64_t kWindowNs = 20'000'000;    // sum of the stretches
    static constexpr double kFree = 0.5;                      // part of the rate of the link
    static constexpr double kBetter = 1.25;                   // a path is worth a move if it is faster by this factor
    static constexpr std::uint64_t kAskAgainNs = 150'000'000;
    static constexpr unsigned kMostAsks = 3;  // without a move

    // `links`: the rates of the paths of the ring, bytes per ns; 0: unknown. At least one.
    COOP_EXPORT explicit Balance(const std::vector<double>& links, const BalancePatience& patience = {});

    // `port`: of all queue pairs, with this request's bytes.
    COOP_EXPORT void on_posted(std::uint32_t bytes, std::uint64_t now, Carried port) noexcept;
    // A posted request has completed. `seen_before`: when the process has looked for completions the last time before `now`;
    // any other value is taken for unknown. Returns whether the queue pair should move to the next path of the ring.
    [[nodiscard]] COOP_EXPORT bool on_completed(std::uint32_t bytes, std::uint64_t now, std::uint64_t seen_before,
                                                Carried port) noexcept;
    // The queue pair is on this path now. `asked`: because on_completed() has asked for it.
    COOP_EXPORT void on_moved(std::size_t path, std::uint64_t now, bool asked) noexcept;
    // The queue pair was lost. A new one, on this path, takes its place.
    COOP_EXPORT void on_replaced(std::size_t path, std::uint64_t now) noexcept;

    std::size_t paths() const noexcept { return known_.size(); }
    std::size_t current() const noexcept { return current_; }
    // Bytes per ns of this queue pair in the last window over the path; 0: not measured.
    double rate(std::size_t path) const noexcept { return known_[path].rate; }

private:
    struct Path {
        double link = 0;    // rate, bytes per ns; 0: unknown
        double rate = 0;    // of the last window; 0: not measured
        double search = 0;  // the same in this search
        std::uint64_t barred_until = 0;
    };

    void begin(std::uint64_t now, std::uint64_t doubt, Carried port) noexcept;
    bool close_window(std::uint64_t now) noexcept;
    bool on_congested(std::uint64_t now) noexcept;
    bool is_searching() const noexcept { return start_.has_value(); }
    std::optional<std::size_t> wanted() const noexcept;
    void end_search(std::uint64_t now) noexcept;
    bool ask(std::uint64_t now) noexcept;
    void forget_measurements() noexcept;
    std::size_t next() const noexcept { return (current_ + 1) % known_.size(); }

    BalancePatience patience_;
    std::vector<Path> known_;  // by place in the ring
    std::size_t current_ = 0;
    std::uint64_t under_way_ = 0;  // bytes posted and not completed
    // The stretch. It began at most `begin_doubt_` earlier.
    std::optional<std::uint64_t> begin_;  // nothing: unknown
    std::uint64_t begin_doubt_ = 0, stretch_bytes_ = 0, requests_ = 0;
    Carried begin_port_ = 0;
    // The window.
    std::uint64_t bytes_ = 0, port_bytes_ = 0, busy_ns_ = 0;
    std::uint32_t congested_ = 0;       // windows in a row
    double best_rate_ = 0;              // of the port in all windows
    std::optional<std::size_t> start_;  // where the search began; nothing: there is none
    std::uint64_t hold_, hold_until_ = 0, asked_at_ = 0;
    unsigned asks_ = 0;  // since the last move
};

}  // namespace coop::path

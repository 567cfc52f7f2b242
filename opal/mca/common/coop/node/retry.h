// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules retries of a refused system call: after a pause that doubles with each failure, up to a maximum.
//
// Units: ns of any monotonic clock. Pure. Threading: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace coop::node {

class Retry {
public:
    static constexpr std::uint64_t kFirstPauseNs = 1'000'000, kLongestPauseNs = 10'000'000'000;

    // The first attempt is due at once.
    bool is_due(std::uint64_t now_ns) const noexcept { return now_ns >= next_ns_; }

    void failed(std::uint64_t now_ns) noexcept {
        next_ns_ = now_ns + pause_ns_;
        pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
    }

private:
    std::uint64_t next_ns_ = 0;
    std::uint64_t pause_ns_ = kFirstPauseNs;
};

}  // namespace coop::node

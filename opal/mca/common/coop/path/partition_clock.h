// SPDX-License-Identifier: BSD-3-Clause
//
// Tells when two processes have been without a rail for too long, so that the job ends. Time counts only
//
//     while a request of this process waits for a rail, or a message may be lost because it is not acknowledged,
//     while the process calls MPI: of a longer time between two looks, kLongestLook counts, and
//     while the peer may be gone: a peer that says that it is busy (Kind::kBusy) begins the time again.
//
// So neither a process that computes nor one that waits for such a process ends the job.
//
// Call look() while requests wait, and once when none does. Time: nanoseconds of any steady clock. Threading: the
// owner's lock. Ownership: values only. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace coop::path {

class PartitionClock {
public:
    static constexpr std::uint64_t kLongestLook = 100'000'000;

    void look(bool waits, std::uint64_t now) noexcept {
        if (waits && waited_last_ && now > last_) waited_ += std::min(now - last_, kLongestLook);
        if (!waits) waited_ = 0;
        waited_last_ = waits;
        last_ = now;
    }
    // The peer's process lives, and will answer when it calls MPI.
    void hear() noexcept { waited_ = 0; }

    std::uint64_t waited() const noexcept { return waited_; }

private:
    bool waited_last_ = false;
    std::uint64_t last_ = 0, waited_ = 0;
};

}  // namespace coop::path

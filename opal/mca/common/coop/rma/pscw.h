// SPDX-License-Identifier: BSD-3-Clause
//
// What has arrived for the epochs of post, start, complete and wait of one window: by
// peer, how many posts and how many completes have not been used yet.
//
//     exposed process                      accessing process
//     post ───────────── post ───────────► on_post()        start
//                                          take_post()      before the first access
//     on_complete() ◄─── complete ──────── complete
//     take_completes()   wait has ended, if all_complete()
//
// They are counters, because a packet may arrive before the call that waits for it. A post may
// also be taken before its packet arrives: the count becomes negative until then.
// With MPI_MODE_NOCHECK, the window neither sends nor takes posts; MPI requires the assertion in
// both calls (active.cc, communicate.cc).
//
// Units: ranks, packets. Memory: one entry for each peer with a number other than 0. Threading: none; the caller holds
// the lock of the window. A group names each rank once. Errors: the caller checks ranks; on_post(), on_complete() and a
// take_post() before the post pass on std::bad_alloc, and nothing has changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace coop::rma {

class Pscw {
public:
    // --- accessing process ---

    void on_post(std::uint32_t source) { add(source, &Counts::posts, 1); }
    bool has_post(std::uint32_t source) const noexcept { return count(source, &Counts::posts) > 0; }
    // If the post has not arrived, it counts as taken when it does.
    void take_post(std::uint32_t source) { add(source, &Counts::posts, -1); }

    // --- exposed process ---

    void on_complete(std::uint32_t source) { add(source, &Counts::completes, 1); }
    bool all_complete(std::span<const std::uint32_t> group) const noexcept {
        return std::ranges::all_of(group, [&](std::uint32_t source) { return count(source, &Counts::completes) > 0; });
    }
    // Precondition: all_complete(group), so that each has an entry, and this does not allocate.
    void take_completes(std::span<const std::uint32_t> group) noexcept {
        for (const std::uint32_t source : group) add(source, &Counts::completes, -1);
    }

    // --- both ---

    // For tests and diagnosis: the number of peers with an entry.
    std::size_t peers() const noexcept { return peers_.size(); }

private:
    struct Counts {
        std::int32_t posts = 0;
        std::int32_t completes = 0;
    };
    using Field = std::int32_t Counts::*;

    std::int32_t count(std::uint32_t source, Field field) const noexcept {
        const auto found = peers_.find(source);
        return found == peers_.end() ? 0 : found->second.*field;
    }
    void add(std::uint32_t source, Field field, std::int32_t number) {
        const auto peer = peers_.try_emplace(source).first;
        peer->second.*field += number;
        if (peer->second.posts == 0 && peer->second.completes == 0) peers_.erase(peer);
    }

    std::unordered_map<std::uint32_t, Counts> peers_;
};

}  // namespace coop::rma

// SPDX-License-Identifier: BSD-3-Clause
//
// The lock of one process's part of a window, kept by that process: who holds it, and who
// waits for it.
//
//     request ──► waits ──► holds ──► release
//
// Requests are granted in the order in which they came: a shared request behind an exclusive
// one waits for it, although others hold the lock shared. All shared requests at the head are
// granted together. Exception: a shared request that overtakes (request()) goes to the head, so
// an exclusive request may wait for long while such requests keep coming.
//
//     held by      waiting        after a release
//     A shared     B excl, C sh   A: B
//     B exclusive  C sh, D sh     B: C and D
//     C, D shared  E excl         C: nobody; D: E
//
// Units: ranks. Memory: one entry for each process that holds or waits. Threading: none; the
// caller holds the lock of the window. grant() may call request() and release(). Errors: a process
// that holds or waits cannot request again; request() passes on std::bad_alloc, and nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "coop/base/list.h"

namespace coop::rma {

enum class LockType : std::uint8_t { kShared, kExclusive };

class LockQueue {
public:
    LockQueue() = default;
    LockQueue(const LockQueue&) = delete;
    LockQueue& operator=(const LockQueue&) = delete;

    // Calls grant(source, cookie) for each process that gets the lock now, perhaps this one. False: this process
    // already holds it or waits for it. overtakes: a shared request waits only for an exclusive holder, not behind
    // exclusive requests. Processes that have other locks of the window use it. Otherwise two of them could deadlock:
    // each waits behind an exclusive request, which waits for a lock that the other one holds.
    template <class F>
    bool request(std::uint32_t source, LockType type, std::uint64_t cookie, F&& grant, bool overtakes = false) {
        const auto [place, is_new] = entries_.try_emplace(source);
        if (!is_new) return false;
        Entry& entry = place->second;
        entry.source = source;
        entry.type = type;
        entry.cookie = cookie;
        if (overtakes && type == LockType::kShared) waiting_.push_front(&entry);
        else waiting_.push_back(&entry);
        grant_all(grant);
        return true;
    }

    // False: this process does not hold the lock (perhaps it waits); nothing has changed.
    template <class F>
    bool release(std::uint32_t source, F&& grant) {
        const auto place = entries_.find(source);
        if (place == entries_.end() || !place->second.holds) return false;
        entries_.erase(place);
        --holders_;
        grant_all(grant);
        return true;
    }

    // For tests: nobody holds it, nobody waits.
    bool idle() const noexcept { return entries_.empty(); }

private:
    struct Entry {
        ListNode node;  // linked while it waits
        std::uint64_t cookie = 0;
        std::uint32_t source = 0;
        LockType type = LockType::kShared;
        bool holds = false;
    };

    bool may_hold(LockType type) const noexcept {
        return holders_ == 0 || (type == LockType::kShared && held_ == LockType::kShared);
    }
    // grant() may call request() and release(), so no reference is kept across it.
    template <class F>
    void grant_all(F& grant) {
        while (!waiting_.empty() && may_hold(waiting_.front()->type)) {
            Entry& entry = *waiting_.pop_front();
            entry.holds = true;
            held_ = entry.type;
            ++holders_;
            const std::uint32_t source = entry.source;
            const std::uint64_t cookie = entry.cookie;
            grant(source, cookie);
        }
    }

    std::unordered_map<std::uint32_t, Entry> entries_;  // its elements do not move
    List<Entry, &Entry::node> waiting_;
    std::size_t holders_ = 0;
    LockType held_ = LockType::kShared;  // valid if there are holders
};

}  // namespace coop::rma

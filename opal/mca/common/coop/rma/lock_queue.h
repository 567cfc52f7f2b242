// SPDX-License-Identifier: BSD-3-Clause
//
// The lock of one process's part of a window, kept by that process: who holds it, and who
// waits for it.
//
//     request ──► waits ──► holds ──► release
//
// Requests are granted strictly in the order in which they came, so nobody waits for ever:
// a shared request behind an exclusive one waits for it, although others hold the lock
// shared. All shared requests at the head are granted together.
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

    // Calls grant(source, cookie) for each process that holds the lock from now on: perhaps for this one, at once. False:
    // this process holds it or waits for it.
    // overtakes: a shared request does not wait behind exclusive ones that wait, only for the holder. Processes that have
    // other locks of the window ask so: otherwise two of them could wait for each other behind requests that wait for
    // them, although shared locks do not exclude each other.
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

    // Nobody holds it, nobody waits.
    bool idle() const noexcept { return entries_.empty(); }
    std::size_t holders() const noexcept { return holders_; }
    std::size_t waiters() const noexcept { return entries_.size() - holders_; }

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
    // grant() may change everything, so nothing is kept across it.
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

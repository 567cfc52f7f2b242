// SPDX-License-Identifier: BSD-3-Clause
//
// Timers for many state machines. Finding the earliest takes constant time, however many others wait.
//
// Time: nanoseconds of any steady clock. Threading: none; the owner's lock. Ownership: owners are identified by
// pointers and must be removed before they are destroyed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace coop::path {

template <class Owner>
class Timers {
public:
    using Moment = std::uint64_t;

    // Sets the timer of `owner` to `next`; nothing: no timer. `listed` is the owner's copy of the time under
    // which it is listed, and is updated.
    void set(Owner& owner, std::optional<Moment>& listed, std::optional<Moment> next) {
        if (next == listed) return;
        if (listed) all_.erase({*listed, &owner});
        if (next) all_.insert({*next, &owner});
        listed = next;
    }

    std::optional<Moment> first() const { return all_.empty() ? std::nullopt : std::optional(all_.begin()->first); }
    bool is_first(const Owner& owner) const { return !all_.empty() && all_.begin()->second == &owner; }

    // Returns the owner with the earliest timer that has expired, or null. It stays listed until its next
    // set().
    Owner* due(Moment now) const {
        return !all_.empty() && all_.begin()->first <= now ? all_.begin()->second : nullptr;
    }

    std::size_t size() const { return all_.size(); }

private:
    std::set<std::pair<Moment, Owner*>> all_;
};

}  // namespace coop::path

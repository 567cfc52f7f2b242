// SPDX-License-Identifier: BSD-3-Clause
//
// The moments at which the owners of many state machines have something to do:
// finding the first takes constant time, however many others wait for later.
//
// Time: nanoseconds of any steady clock. Threading: none; the owner's lock.
// Ownership: owners are named by pointers, and have to be taken out before they go.
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

    // `listed` is the owner's own record of the moment under which it is listed. Nothing as `next`: it has nothing to do later.
    void set(Owner& owner, std::optional<Moment>& listed, std::optional<Moment> next) {
        if (next == listed) return;
        if (listed) all_.erase({*listed, &owner});
        if (next) all_.insert({*next, &owner});
        listed = next;
    }

    std::optional<Moment> first() const { return all_.empty() ? std::nullopt : std::optional(all_.begin()->first); }
    bool is_first(const Owner& owner) const { return !all_.empty() && all_.begin()->second == &owner; }

    // An owner whose moment has come, the earliest first; null: none. It stays listed until its next set().
    Owner* due(Moment now) const { return !all_.empty() && all_.begin()->first <= now ? all_.begin()->second : nullptr; }

    std::size_t size() const { return all_.size(); }

private:
    std::set<std::pair<Moment, Owner*>> all_;
};

}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that have begun and are not over, in the order in which they began.
// So somebody can wait for all that began before a moment, however many others
// begin meanwhile.
//
//     begin() ... begin() | last(): the moment | begin() ...
//     all_over(moment)    every operation before the moment has ended
//
// Units: operations. Threading: none; the owner's lock. Ownership: none; an
// operation lives until its end(). Errors: none.
#pragma once

#include <cstdint>

#include "coop/base/list.h"

namespace coop::sched {

// Part of each operation.
struct Begun {
    ListNode node;
    std::uint64_t number = 0;  // valid between begin() and end()
};

class BegunOperations {
public:
    // `number` rises from one begin() to the next.
    void begin(Begun& operation, std::uint64_t number) noexcept {
        operation.number = number;
        all_.push_back(&operation);
    }
    void end(Begun& operation) noexcept { all_.remove(&operation); }

    // Whether no operation is left with this number or a lower one.
    bool all_over(std::uint64_t number) noexcept { return all_.empty() || all_.front()->number > number; }

private:
    List<Begun, &Begun::node> all_;
};

}  // namespace coop::sched

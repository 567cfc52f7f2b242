// SPDX-License-Identifier: BSD-3-Clause
//
// Operations in progress, in the order in which they began. Lets a caller wait for all operations that began
// before a given moment, however many begin afterwards.
//
//     begin() ... begin() | the moment: the last number | begin() ...
//     all_over(number)    every operation before the moment has ended
//
// Units: operations. Threading: none; the owner's lock. Ownership: none; an operation lives until its end().
// Errors: none.
#pragma once

#include <cstdint>

#include "coop/base/list.h"

namespace coop::sched {

// Embedded in each operation.
struct Begun {
    ListNode node;
    std::uint64_t number = 0;  // valid between begin() and end()
};

class BegunOperations {
public:
    // `number` increases from call to call.
    void begin(Begun& operation, std::uint64_t number) noexcept {
        operation.number = number;
        all_.push_back(&operation);
    }
    void end(Begun& operation) noexcept { all_.remove(&operation); }

    // Whether all operations with this number or a lower one have ended.
    bool all_over(std::uint64_t number) noexcept { return all_.empty() || all_.front()->number > number; }

private:
    List<Begun, &Begun::node> all_;
};

}  // namespace coop::sched

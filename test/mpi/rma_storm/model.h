// SPDX-License-Identifier: BSD-3-Clause
//
// The shadow model: the content that the windows of all ranks must have, and the results that the operations of this
// rank must fetch. It is computed before the operations run, so that a result can be compared as soon as it is there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan.h"

namespace rma_storm {

using Bytes = std::vector<unsigned char>;

// What the rank has to know about one of its own operations.
struct Expectation {
    Bytes result;     // empty: not known in advance
    Bytes comparand;  // of a compare-and-swap
};

class Model {
public:
    Model(const Round& round, int self);

    // The new content of fresh areas and then all operations whose outcome is known in advance.
    void begin_phase(const Phase& phase);

    Bytes& window(int rank) { return windows_[static_cast<std::size_t>(rank)]; }
    const Bytes& own() const { return windows_[static_cast<std::size_t>(self_)]; }
    const Bytes& own_before() const { return before_; }  // before the phase, without its fresh areas
    const Expectation& expected(std::size_t operation) const { return expected_.at(operation); }

private:
    void apply(const Phase& phase, std::size_t index);
    void swap(const Operation& o, const Area& area, Expectation* own);

    const int self_;
    std::vector<Bytes> windows_;
    Bytes before_;
    std::map<std::size_t, Expectation> expected_;  // by operation of the phase
};

// The content of rank's window at the start of the round.
Bytes initial_content(const Round& round, int rank);

// The operand of an operation, in the order of its elements.
Bytes operand(const Operation& o);

}  // namespace rma_storm

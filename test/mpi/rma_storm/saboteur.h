// SPDX-License-Identifier: BSD-3-Clause
//
// Makes one operation of one rank wrong, on purpose: the storm must then fail.
#pragma once

#include <atomic>

#include "plan.h"

namespace rma_storm {

class Saboteur {
public:
    // `rank`: this process; `ranks`: of the job.
    Saboteur(const Options& options, int rank, int ranks);

    // True for the one operation that is to be spoilt, and for no other.
    bool strikes(const Round& round, const Phase& phase, const Operation& o);
    Sabotage kind() const { return kind_; }

    // Another place for a misplaced operation.
    static std::size_t another_place(const Round& round, const Operation& o);

private:
    Sabotage kind_ = Sabotage::kNone;
    std::atomic<int> countdown_{0};  // operations that could have been spoilt
};

}  // namespace rma_storm

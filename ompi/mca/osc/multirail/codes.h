// SPDX-License-Identifier: BSD-3-Clause
//
// The Open MPI code for a verdict of the epoch machine.
#pragma once

#include "compat.h"
#include "coop/rma/epoch.h"

namespace coop::osc {

constexpr int code_of(rma::Verdict verdict) noexcept {
    switch (verdict) {
    case rma::Verdict::kProceed: return OMPI_SUCCESS;
    case rma::Verdict::kBadRank: return MPI_ERR_RANK;
    case rma::Verdict::kNotSynchronized:
    case rma::Verdict::kNoLocks: break;
    }
    return OMPI_ERR_RMA_SYNC;
}

}  // namespace coop::osc

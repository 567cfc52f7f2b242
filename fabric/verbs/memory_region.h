// SPDX-License-Identifier: BSD-3-Clause
//
// Registered memory: an entry of the subnet's table, in which the holder of a key
// finds the address in this process. Nothing is pinned.
#pragma once

#include "fabric/verbs/protection_domain.h"

namespace coop::fabric {

struct VerbsMr : ibv_mr {
    explicit VerbsMr(VerbsPd& of) : ibv_mr{}, domain(&of) {}

    VerbsPd* domain;
    std::uint32_t index = kNone;
    std::uint32_t access = 0;
    std::uint64_t iova = 0;
};

inline VerbsMr& to_mr(ibv_mr* mr) { return *static_cast<VerbsMr*>(mr); }

}  // namespace coop::fabric

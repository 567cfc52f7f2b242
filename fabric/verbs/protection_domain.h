// SPDX-License-Identifier: BSD-3-Clause
//
// A protection domain: a number, unique on the subnet, that memory regions and
// queue pairs share. It cannot be deallocated while they use it.
#pragma once

#include <atomic>

#include "fabric/verbs/context.h"

namespace coop::fabric {

struct VerbsPd : ibv_pd {
    explicit VerbsPd(VerbsContext& of) : ibv_pd{}, owner(of) {}

    VerbsContext& owner;
    std::uint32_t number = 0;
    std::atomic<int> users{0};  // memory regions, QPs, SRQs
};

inline VerbsPd& to_pd(ibv_pd* pd) { return *static_cast<VerbsPd*>(pd); }

}  // namespace coop::fabric

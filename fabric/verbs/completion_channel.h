// SPDX-License-Identifier: BSD-3-Clause
//
// A completion channel: a pipe. A process that puts a completion into an armed CQ
// writes the CQ's identity to it.
#pragma once

#include "fabric/verbs/context.h"

namespace coop::fabric {

struct VerbsChannel : ibv_comp_channel {
    explicit VerbsChannel(VerbsContext& of) : ibv_comp_channel{}, owner(of) {}

    VerbsContext& owner;
    int writer = -1;
};

inline VerbsChannel& to_channel(ibv_comp_channel* channel) { return *static_cast<VerbsChannel*>(channel); }

}  // namespace coop::fabric

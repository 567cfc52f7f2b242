// SPDX-License-Identifier: BSD-3-Clause
//
// An address handle: where datagrams go, resolved once.
#pragma once

#include "fabric/engine/local_qp.h"
#include "fabric/verbs/context.h"

namespace coop::fabric {

struct VerbsAh : ibv_ah {
    VerbsAh() : ibv_ah{} {}
    DatagramAddress to;
};

inline const VerbsAh& to_ah(const ibv_ah* ah) { return *static_cast<const VerbsAh*>(ah); }

// Whether an address vector makes sense on this device: its port, its index of a GID, and with Ethernet a GID at all.
bool is_good_address(const VerbsContext& context, const ibv_ah_attr& attr);

}  // namespace coop::fabric

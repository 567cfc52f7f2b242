// SPDX-License-Identifier: BSD-3-Clause
//
// An address handle: the route of datagrams to an address, resolved once.
#pragma once

#include "fabric/engine/local_qp.h"
#include "fabric/verbs/context.h"

namespace coop::fabric {

struct VerbsAh : ibv_ah {
    VerbsAh() : ibv_ah{} {}
    DatagramAddress to;
};

inline const VerbsAh& to_ah(const ibv_ah* ah) { return *static_cast<const VerbsAh*>(ah); }

// True if an address vector is valid on this device: its port, its GID index, and with Ethernet the presence of a GID.
bool is_good_address(const VerbsContext& context, const ibv_ah_attr& attr);

}  // namespace coop::fabric

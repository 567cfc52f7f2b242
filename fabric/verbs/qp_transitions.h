// SPDX-License-Identifier: BSD-3-Clause
//
// The state changes that ibv_modify_qp can make, and the attributes that each
// requires or permits (InfiniBand 10.3.1 and table 91 in 11.2.5.2, as Linux checks
// them):
//
//     RESET ──▶ INIT ──▶ RTR ──▶ RTS ◀──▶ SQD
//                ↺                ↺ ▲      ↺
//                                   └── SQE (UC and UD, after an error in sending)
//
//     any ──▶ RESET          any but RESET ──▶ ERR
#pragma once

#include "fabric/verbs/exports.h"

namespace coop::fabric {

// Returns 0, or EINVAL if there is no such transition or if `mask` lacks or exceeds its attributes.
int check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace coop::fabric

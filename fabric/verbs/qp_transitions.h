// SPDX-License-Identifier: BSD-3-Clause
//
// Which changes of state a queue pair can make by ibv_modify_qp, and which
// attributes each needs or takes (InfiniBand 10.3.1 and table 91 in 11.2.5.2, as
// Linux checks it):
//
//                    ┌───────────────────────────────┐ from any state but RESET:
//                    ▼                               │   to RESET, to ERR
//     RESET ──▶ INIT ──▶ RTR ──▶ RTS ◀──▶ SQD        │
//                ↺                ↺ ▲       ↺       any ──▶ ERR
//                                   └── SQE (UC and UD, after an error in sending)
#pragma once

#include "fabric/verbs/exports.h"

namespace coop::fabric {

// 0, or EINVAL: there is no such transition, or the attributes of `mask` are too few or too many for it.
int check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace coop::fabric

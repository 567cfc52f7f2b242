// SPDX-License-Identifier: BSD-3-Clause
//
// fork(): nothing is pinned, and whoever copies names the process, so copy on
// write does no harm to registered memory. The child's own start on the subnet is
// in client.cc.
#include "fabric/verbs/exports.h"

COOP_VERB int ibv_fork_init() { return 0; }
COOP_VERB ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

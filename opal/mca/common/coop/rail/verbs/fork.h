// SPDX-License-Identifier: BSD-3-Clause
//
// fork() and registered memory. A child shares the parent's pages until one of them writes; before Linux 5.12
// the parent may then get a different page from the one that the HCA uses. libibverbs knows whether the kernel
// copies such pages at fork(). If it does not, ibv_fork_init() excludes registered memory from children; a
// child that only executes another program does not need it.
//
// Threading: one thread. Errors: a message that says why children are not safe.
#pragma once

#include "coop/rail/verbs/objects.h"

namespace coop::rail {

// Call it before any code of this process creates a libibverbs object.
Status make_forks_safe();

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
//
// fork() and registered memory. A child shares the parent's pages until one of
// them writes; before Linux 5.12 the parent may then get another page than the
// one that the HCA has. libibverbs knows whether the kernel copies such pages
// when a process forks. Where it does not, ibv_fork_init() keeps registered
// memory from children: a child that only executes a program never misses it.
//
// Threading: one thread. Errors: says why children are not safe.
#pragma once

#include "coop/rail/verbs/objects.h"

namespace coop::rail {

// Before the first object of libibverbs is made by anybody in this process.
Status make_forks_safe();

}  // namespace coop::rail

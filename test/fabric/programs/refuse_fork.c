/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: ibv_fork_init() fails, so that registered memory cannot be kept from children. */
#include <errno.h>

__attribute__((visibility("default"))) int ibv_fork_init(void) { return ENOSYS; }

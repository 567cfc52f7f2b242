/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: registered memory cannot be kept from children. */
#include <errno.h>

__attribute__((visibility("default"))) int ibv_fork_init(void) { return ENOSYS; }

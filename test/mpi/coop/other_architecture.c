/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: makes the process of rank 1 claim another architecture, like a processor of the other byte
 * order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t opal_local_arch;

__attribute__((visibility("default"))) int opal_arch_init(void) {
    int (*real)(void) = (int (*)(void))dlsym(RTLD_NEXT, "opal_arch_init");
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    const int rc = real ? real() : -1;
    if (rank && strcmp(rank, "1") == 0) opal_local_arch ^= 8; /* OPAL_ARCH_ISBIGENDIAN */
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded: memfd_create as on a machine that refuses it. NO_MEMFD=noexec: executable memory is refused, as with the
 * sysctl vm.memfd_noexec at 2; none: all memory is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOEXEC_SEAL 8u /* MFD_NOEXEC_SEAL */

int memfd_create(const char* name, unsigned flags) {
    const char* how = getenv("NO_MEMFD");
    if (how != NULL && (strcmp(how, "none") == 0 || (flags & NOEXEC_SEAL) == 0)) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

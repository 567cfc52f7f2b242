/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: the completion channels of the HCA named by $BROKEN_CHANNEL fail from the beginning, like those of a
 * device that was removed. Their descriptor is always ready, but reading from it fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context) {
    static struct ibv_comp_channel* (*next)(struct ibv_context*);
    const char* broken = getenv("BROKEN_CHANNEL");
    int ends[2];
    if (!next) next = (struct ibv_comp_channel * (*)(struct ibv_context*)) dlsym(RTLD_NEXT, "ibv_create_comp_channel");
    struct ibv_comp_channel* channel = next(context);
    if (!channel || !broken || strcmp(ibv_get_device_name(context->device), broken) != 0 || pipe(ends) != 0)
        return channel;
    close(ends[1]);
    dup(channel->fd); /* stays open: who writes to a pipe without a reader gets SIGPIPE */
    dup2(ends[0], channel->fd);
    close(ends[0]);
    return channel;
}

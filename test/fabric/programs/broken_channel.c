/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: completion channels of the HCA that $BROKEN_CHANNEL names fail from the beginning, as those of a device that was
 * removed do. Their descriptor is ready for ever, and nothing can be read from it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    static struct ibv_comp_channel *(*next)(struct ibv_context *);
    const char *broken = getenv("BROKEN_CHANNEL");
    int ends[2];
    if (!next) next = (struct ibv_comp_channel * (*)(struct ibv_context *)) dlsym(RTLD_NEXT, "ibv_create_comp_channel");
    struct ibv_comp_channel *channel = next(context);
    if (!channel || !broken || strcmp(ibv_get_device_name(context->device), broken) != 0 || pipe(ends) != 0) return channel;
    close(ends[1]);
    dup2(ends[0], channel->fd);
    close(ends[0]);
    return channel;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded. Each event that tells of a path migration becomes one that tells of an error of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>

__attribute__((visibility("default"))) int ibv_get_async_event(struct ibv_context* context,
                                                               struct ibv_async_event* event) {
    static int (*next)(struct ibv_context*, struct ibv_async_event*);
    if (!next) next = (int (*)(struct ibv_context*, struct ibv_async_event*))dlsym(RTLD_NEXT, "ibv_get_async_event");
    const int error = next(context, event);
    if (error == 0 && event->event_type == IBV_EVENT_PATH_MIG) event->event_type = IBV_EVENT_PATH_MIG_ERR;
    return error;
}

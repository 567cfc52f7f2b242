/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded. On the HCA named by $REFUSE_RAIL, creating an RC queue pair fails once a UD queue pair has been
 * created. So btl/coopib finds the HCA usable, but cannot open rails on it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr) {
    static struct ibv_qp* (*next)(struct ibv_pd*, struct ibv_qp_init_attr*);
    static int ready;
    const char* refused = getenv("REFUSE_RAIL");
    if (!next) next = (struct ibv_qp * (*)(struct ibv_pd*, struct ibv_qp_init_attr*)) dlsym(RTLD_NEXT, "ibv_create_qp");
    if (refused && strcmp(ibv_get_device_name(pd->context->device), refused) == 0) {
        if (attr->qp_type == IBV_QPT_UD) ready = 1;
        if (attr->qp_type == IBV_QPT_RC && ready) return errno = ENOMEM, NULL;
    }
    return next(pd, attr);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: at its end each process appends to the file $WATCH_ADDRESSES what the addresses of its reliable
 * queue pairs and of its address handles had in common, one line each: 'rc sl 3 tc 16 grh 1 gid 0 pkey 2'; '?' where
 * they differed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SL, TC, GRH, GID, PKEY, FIELDS, NONE = -2, MANY = -1 };
static const char* const names[FIELDS] = {"sl", "tc", "grh", "gid", "pkey"};

struct seen {
    const char* what;
    int value[FIELDS];
};
static struct seen of_rc = {"rc", {NONE, NONE, NONE, NONE, NONE}}, of_ah = {"ah", {NONE, NONE, NONE, NONE, NONE}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(struct seen* seen, int field, int value) {
    pthread_mutex_lock(&lock);
    seen->value[field] = seen->value[field] == NONE || seen->value[field] == value ? value : MANY;
    pthread_mutex_unlock(&lock);
}

static void note_address(struct seen* seen, const struct ibv_ah_attr* address) {
    note(seen, SL, address->sl);
    note(seen, GRH, address->is_global);
    note(seen, TC, address->grh.traffic_class);
    note(seen, GID, address->grh.sgid_index);
}

__attribute__((visibility("default"))) int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask) {
    int (*next)(struct ibv_qp*, struct ibv_qp_attr*, int) = (int (*)(struct ibv_qp*, struct ibv_qp_attr*, int))dlsym(
        RTLD_NEXT, "ibv_modify_qp");
    struct seen* seen = qp->qp_type == IBV_QPT_RC ? &of_rc : &of_ah;
    if (mask & IBV_QP_PKEY_INDEX) note(seen, PKEY, attr->pkey_index);
    if (mask & IBV_QP_AV) note_address(seen, &attr->ah_attr);
    return next(qp, attr, mask);
}

__attribute__((visibility("default"))) struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr) {
    struct ibv_ah* (*next)(struct ibv_pd*,
                           struct ibv_ah_attr*) = (struct ibv_ah * (*)(struct ibv_pd*, struct ibv_ah_attr*))
        dlsym(RTLD_NEXT, "ibv_create_ah");
    note_address(&of_ah, attr);
    return next(pd, attr);
}

static void say(FILE* file, const struct seen* seen) {
    if (seen->value[SL] == NONE) return;
    fprintf(file, "%s", seen->what);
    for (int i = 0; i < FIELDS; ++i)
        if (seen->value[i] >= 0) fprintf(file, " %s %d", names[i], seen->value[i]);
        else fprintf(file, " %s ?", names[i]);
    fprintf(file, "\n");
}

__attribute__((destructor)) static void at_end(void) {
    const char* path = getenv("WATCH_ADDRESSES");
    FILE* file = path != NULL && (of_rc.value[SL] != NONE || of_ah.value[SL] != NONE) ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    say(file, &of_rc);
    say(file, &of_ah);
    fclose(file);
}

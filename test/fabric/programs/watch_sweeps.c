/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded into a process with two HCAs, coop0 and coop1: checks that it polls the completion queues of both
 * before it handles any completion. Handling takes time and posts new operations, so a rail whose queue is polled after
 * that looks slower than it is, or is not polled at all. Prints at the end of the process
 *
 *     sweeps: 4711 found something on coop0; of these 0 left coop1 out, 0 read the clock or posted before coop1 was
 * polled
 *
 * Considers only the completion queues of reliable queue pairs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

static struct ibv_cq* _Atomic queues[2];
static _Atomic long found, left_out, too_early;
static _Thread_local int between,
    polling; /* between: coop0 had completions, and coop1 has not been polled yet; polling: in a call of the device */
static int (*real_post)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);
static int (*real_poll)(struct ibv_cq*, int, struct ibv_wc*);

static void* next(const char* name) {
    void* symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "watch_sweeps: there is no %s\n", name);
        abort();
    }
    return symbol;
}

static void act(void) {
    if (between && !polling) atomic_fetch_add(&too_early, 1);
}

static int post(struct ibv_qp* qp, struct ibv_send_wr* first, struct ibv_send_wr** bad) {
    act();
    ++polling;
    const int error = real_post(qp, first, bad);
    --polling;
    return error;
}

static int poll(struct ibv_cq* cq, int room, struct ibv_wc* wc) {
    ++polling;
    const int n = real_poll(cq, room, wc);
    --polling;
    if (cq == atomic_load(&queues[0])) {
        if (between) atomic_fetch_add(&left_out, 1);
        between = n > 0 && atomic_load(&queues[1]) != NULL;
        if (between) atomic_fetch_add(&found, 1);
    } else if (cq == atomic_load(&queues[1])) {
        between = 0;
    }
    return n;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec* time) {
    static int (*real)(clockid_t, struct timespec*);
    if (!real) real = (int (*)(clockid_t, struct timespec*))next("clock_gettime");
    if (clock == CLOCK_MONOTONIC) act();
    return real(clock, time);
}

/* ibv_post_send() and ibv_poll_cq() are inline: they call functions in the context, which are replaced here. */
EXPORTED struct ibv_context* ibv_open_device(struct ibv_device* device) {
    struct ibv_context* context = ((struct ibv_context * (*)(struct ibv_device*)) next("ibv_open_device"))(device);
    if (context && context->ops.post_send != post) {
        real_post = context->ops.post_send;
        real_poll = context->ops.poll_cq;
        context->ops.post_send = post;
        context->ops.poll_cq = poll;
    }
    return context;
}

/* Ignores queue pairs that are made only to find out what the device supports. */
EXPORTED struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr) {
    const char* name = ibv_get_device_name(pd->context->device);
    if (attr->qp_type == IBV_QPT_RC && attr->send_cq->cqe > 64 && strncmp(name, "coop", 4) == 0 &&
        (name[4] == '0' || name[4] == '1'))
        atomic_store(&queues[name[4] - '0'], attr->send_cq);
    return ((struct ibv_qp * (*)(struct ibv_pd*, struct ibv_qp_init_attr*)) next("ibv_create_qp"))(pd, attr);
}

__attribute__((destructor)) static void say(void) {
    if (atomic_load(&found) == 0) return;
    fprintf(stderr,
            "sweeps: %ld found something on coop0; of these %ld left coop1 out, %ld read the clock or posted before "
            "coop1 was polled\n",
            atomic_load(&found), atomic_load(&left_out), atomic_load(&too_early));
}

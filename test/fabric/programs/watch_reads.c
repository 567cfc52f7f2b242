/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: records the largest number of RDMA reads and atomic operations outstanding on a queue pair, between
 * posting and polling the completion, and the depths given to ibv_modify_qp. If any was posted, prints at the end of
 * the process
 *
 *     reads: at most 4 at once; given 4 to begin, 4 to answer
 *
 * The first read of a queue pair does not count if it has 8 bytes: it is btl/coopib's probe, which completes before
 * anything else is posted, although its completion is polled later. Each read must be signalled, and all sends of a
 * queue pair must use one completion queue. Reads followed by a fenced send count as usual, although the device
 * executes those one by one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

enum { HCAS = 8, QPS = 1 << 10 };

static struct ibv_context* _Atomic contexts[HCAS]; /* the open ones */
static _Atomic int under_way[HCAS]
                            [QPS]; /* indexed by the lower bits of the queue pair's number, which two HCAs may share */
static _Atomic unsigned long probes[HCAS][QPS]; /* wr_id of the first read; 0: none */
static _Atomic int most, given_to_begin, given_to_answer;
static int (*real_post)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);
static int (*real_poll)(struct ibv_cq*, int, struct ibv_wc*);

static void* next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "watch_reads: there is no %s\n", name);
        abort();
    }
    return found;
}

static void raise_to(_Atomic int* highest, int value) {
    int now = atomic_load(highest);
    while (now < value && !atomic_compare_exchange_weak(highest, &now, value)) {
    }
}

static int hca_of(struct ibv_context* context) {
    int i = 0;
    while (i < HCAS - 1 && atomic_load(&contexts[i]) != context) ++i;
    return i;
}

static _Atomic int* count_of(struct ibv_context* context, unsigned qp_num) {
    return &under_way[hca_of(context)][qp_num % QPS];
}

static int is_probe(struct ibv_qp* qp, const struct ibv_send_wr* wr) {
    unsigned long none = 0;
    if (wr->opcode != IBV_WR_RDMA_READ || wr->num_sge != 1 || wr->sg_list->length != 8) return 0;
    return atomic_compare_exchange_strong(&probes[hca_of(qp->context)][qp->qp_num % QPS], &none, wr->wr_id);
}

static int was_probe(struct ibv_context* context, const struct ibv_wc* wc) {
    unsigned long id = wc->wr_id;
    return wc->opcode == IBV_WC_RDMA_READ &&
           atomic_compare_exchange_strong(&probes[hca_of(context)][wc->qp_num % QPS], &id, ~0ul);
}

static int counts(enum ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int post(struct ibv_qp* qp, struct ibv_send_wr* first, struct ibv_send_wr** bad) {
    for (const struct ibv_send_wr* wr = first; wr; wr = wr->next) {
        if (counts(wr->opcode) && !is_probe(qp, wr))
            raise_to(&most, 1 + atomic_fetch_add(count_of(qp->context, qp->qp_num), 1));
    }
    return real_post(qp, first, bad);
}

static int poll(struct ibv_cq* cq, int room, struct ibv_wc* wc) {
    const int n = real_poll(cq, room, wc);
    for (int i = 0; i < n; ++i) {
        const int read = wc[i].opcode == IBV_WC_RDMA_READ || wc[i].opcode == IBV_WC_COMP_SWAP ||
                         wc[i].opcode == IBV_WC_FETCH_ADD;
        if (wc[i].status == IBV_WC_SUCCESS && read && !was_probe(cq->context, &wc[i]))
            atomic_fetch_sub(count_of(cq->context, wc[i].qp_num), 1);
    }
    return n;
}

/* ibv_post_send() and ibv_poll_cq() are inline: they call functions in the context, which are replaced here. */
EXPORTED struct ibv_context* ibv_open_device(struct ibv_device* device) {
    struct ibv_context* context = ((struct ibv_context * (*)(struct ibv_device*)) next("ibv_open_device"))(device);
    if (context && context->ops.post_send != post) {
        real_post = context->ops.post_send;
        real_poll = context->ops.poll_cq;
        context->ops.post_send = post;
        context->ops.poll_cq = poll;
        for (int i = 0; i < HCAS; ++i) {
            struct ibv_context* nobody = NULL;
            if (atomic_compare_exchange_strong(&contexts[i], &nobody, context)) break;
        }
    }
    return context;
}

EXPORTED int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask) {
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) raise_to(&given_to_begin, attr->max_rd_atomic);
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) raise_to(&given_to_answer, attr->max_dest_rd_atomic);
    return ((int (*)(struct ibv_qp*, struct ibv_qp_attr*, int))next("ibv_modify_qp"))(qp, attr, mask);
}

__attribute__((destructor)) static void say(void) {
    if (atomic_load(&most) == 0) return;
    fprintf(stderr, "reads: at most %d at once; given %d to begin, %d to answer\n", atomic_load(&most),
            atomic_load(&given_to_begin), atomic_load(&given_to_answer));
}

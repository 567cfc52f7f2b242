/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What automatic path migration (APM) costs, with plain verbs and without a component: the figures 9.4 to 9.11 of the
 * dissertation. Two processes on two hosts connect 1, 2, 4, ... queue pairs over the first HCA that has path migration and a
 * second path: port 2 at both ends, otherwise the second LID of port 1.
 *
 *     coop_apm [-q QPS] [-n REPEATS]        defaults: 256 queue pairs, the median of 5
 *
 * Columns, for all queue pairs together where nothing else is said:
 *     connect_us, loaded_us   INIT to RTS, without and with an alternate path that is loaded with RTR to RTS
 *     arm_us                  from the request to load until each is ARMED; each exchanges one message, because packets arm
 *     move_us                 from the request to move until the peer's thread has counted an event PATH_MIG for each
 *     quiet_us                one way of a 128-byte ping-pong over the queue pairs in turn
 *     arming_us, moving_us    the same while they are armed, and moved, one request before each round trip
 *     compute_ms, armed_ms, moved_ms   a fixed computation of rank 1: alone; while rank 0 arms; while it moves all of them
 *
 * Threading: one thread more, which counts events. Errors: a message, and exit code 1; 2 for wrong arguments.
 */
#include <infiniband/verbs.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostQps = 4096, kMostRepeats = 101, kBytes = 128, kRounds = 200, kColumns = 10 };

struct end {
    uint16_t lid[2]; /* of the two paths */
    uint32_t qpn[kMostQps];
};

static int rank, most_qps = 256, repeats = 5;
static struct ibv_context* device;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static struct ibv_qp* qps[kMostQps];
static unsigned char buffer[2 * kBytes];
static struct end own, peer;
static int own_port[2] = {1, 1}, own_bits[2] = {0, 0};
static _Atomic int migrated; /* events PATH_MIG so far */

static void fail(const char* what) {
    fprintf(stderr, "coop_apm: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void* count_events(void* unused) {
    struct ibv_async_event event;
    (void)unused;
    while (ibv_get_async_event(device, &event) == 0) {
        if (event.event_type == IBV_EVENT_PATH_MIG) atomic_fetch_add(&migrated, 1);
        ibv_ack_async_event(&event);
    }
    return NULL;
}

/* --- connecting --------------------------------------------------------------------------------------------------- */

static bool is_active(int number, struct ibv_port_attr* port) {
    return ibv_query_port(device, (uint8_t)number, port) == 0 && port->state == IBV_PORT_ACTIVE &&
           port->link_layer != IBV_LINK_LAYER_ETHERNET;
}

/* Opens the first HCA that can migrate and has a second path. */
static bool open_device(struct ibv_device* candidate) {
    struct ibv_device_attr attr;
    struct ibv_port_attr first, second;
    device = ibv_open_device(candidate);
    if (device == NULL) return false;
    if (ibv_query_device(device, &attr) == 0 && (attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) != 0 &&
        is_active(1, &first)) {
        own.lid[0] = first.lid;
        if (attr.phys_port_cnt > 1 && is_active(2, &second)) {
            own.lid[1] = second.lid;
            own_port[1] = 2;
            return true;
        }
        own.lid[1] = (uint16_t)(first.lid + 1);
        own_bits[1] = 1;
        if (first.lmc > 0) return true;
    }
    ibv_close_device(device);
    return false;
}

static void open_everything(void) {
    int count = 0;
    struct ibv_device** list = ibv_get_device_list(&count);
    bool found = false;
    for (int i = 0; i < count && !found; ++i) found = open_device(list[i]);
    if (!found) fail("no HCA has path migration and a second path");
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(device);
    cq = ibv_create_cq(device, 8 * kMostQps, NULL, NULL, 0);
    if (pd == NULL || cq == NULL) fail("no protection domain or completion queue");
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    if (mr == NULL) fail("cannot register memory");
    pthread_t thread;
    if (pthread_create(&thread, NULL, count_events, NULL) != 0) fail("no thread");
    pthread_detach(thread);
}

static void receive(int i) {
    struct ibv_sge sge = {(uintptr_t)(buffer + kBytes), kBytes, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(qps[i], &wr, &bad) != 0) fail("cannot post a receive");
}

static void make(int count) {
    for (int i = 0; i < count; ++i) {
        struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
        qps[i] = ibv_create_qp(pd, &wanted);
        if (qps[i] == NULL) fail("cannot create a queue pair");
        if (ibv_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
            fail("cannot initialize a queue pair");
        own.qpn[i] = qps[i]->qp_num;
        receive(i);
    }
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, 1 - rank, 1, &peer, sizeof peer, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static struct ibv_ah_attr way(int path) {
    return (struct ibv_ah_attr){
        .dlid = peer.lid[path], .src_path_bits = (uint8_t)own_bits[path], .port_num = (uint8_t)own_port[path]};
}

static void set_alternate(struct ibv_qp_attr* attr, int path) {
    attr->alt_ah_attr = way(path);
    attr->alt_port_num = (uint8_t)own_port[path];
    attr->alt_timeout = 14;
    attr->path_mig_state = IBV_MIG_REARM;
}

static void connect(int i, bool load) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer.qpn[i],
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 6,
                               .ah_attr = way(0)};
    int mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    if (ibv_modify_qp(qps[i], &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
        fail("cannot bring a queue pair to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    if (load) {
        set_alternate(&attr, 1);
        mask |= IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
    }
    if (ibv_modify_qp(qps[i], &attr, mask) != 0) fail("cannot bring a queue pair to RTS");
}

/* Returns the time in seconds. */
static double connect_all(int count, bool load) {
    make(count);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) connect(i, load);
    const double took = MPI_Wtime() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    return took;
}

static void destroy_all(int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i)
        if (ibv_destroy_qp(qps[i]) != 0) fail("cannot destroy a queue pair");
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static int sends_open;
static bool arrived[kMostQps]; /* a message over each queue pair that nobody has waited for yet */

static void send(int i) {
    struct ibv_sge sge = {(uintptr_t)buffer, kBytes, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = kMostQps,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (ibv_post_send(qps[i], &wr, &bad) != 0) fail("cannot post a send");
    ++sends_open;
}

static void take_completion(void) {
    struct ibv_wc wc;
    if (ibv_poll_cq(cq, 1, &wc) <= 0) return;
    if (wc.status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(wc.status));
    if (wc.wr_id == kMostQps) --sends_open;
    else arrived[wc.wr_id] = true;
}

/* The peer may answer before the own send completes, and the next message may arrive before that, too. */
static void wait_for_sends(void) {
    while (sends_open > 0) take_completion();
}

static void wait_for_message(int i) {
    while (!arrived[i]) take_completion();
    arrived[i] = false;
    receive(i);
}

/* Returns the round trip in seconds at rank 0. */
static double ping_pong(int i) {
    const double begin = MPI_Wtime();
    if (rank == 1) wait_for_message(i);
    send(i);
    if (rank == 0) wait_for_message(i);
    wait_for_sends();
    return MPI_Wtime() - begin;
}

/* --- migration ---------------------------------------------------------------------------------------------------- */

static int path_of[kMostQps]; /* on which each queue pair is, at both sides */

static void load(int i) {
    struct ibv_qp_attr attr = {0};
    set_alternate(&attr, 1 - path_of[i]);
    if (ibv_modify_qp(qps[i], &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) != 0) fail("cannot load a path");
}

static bool is_armed(int i) {
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (ibv_query_qp(qps[i], &attr, IBV_QP_PATH_MIG_STATE, &init) != 0) fail("cannot query a queue pair");
    return attr.path_mig_state == IBV_MIG_ARMED;
}

/* The state may change a little after the message that changes it has arrived. */
static bool gets_armed(int i) {
    const double end = MPI_Wtime() + 1;
    while (!is_armed(i))
        if (MPI_Wtime() > end) return false;
    return true;
}

static void move(int i) {
    struct ibv_qp_attr attr = {.path_mig_state = IBV_MIG_MIGRATED};
    if (ibv_modify_qp(qps[i], &attr, IBV_QP_PATH_MIG_STATE) != 0) fail("cannot move a queue pair");
}

static double arm_all(int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) load(i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) ping_pong(i);
    for (int i = 0; i < count; ++i)
        if (!gets_armed(i)) fail("a queue pair is not armed after a message both ways");
    return MPI_Wtime() - begin;
}

/* Rank 0 moves them; a message over each lets the peer follow. */
static double move_all(int count) {
    const int before = atomic_load(&migrated);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
        if (rank == 0) move(i);
        ping_pong(i);
        path_of[i] = 1 - path_of[i];
    }
    while (rank == 1 && atomic_load(&migrated) - before < count) usleep(1);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

/* --- meanwhile ---------------------------------------------------------------------------------------------------- */

enum meanwhile { kNothing, kArm, kMove };

/* One way in seconds. Each round trip is preceded by a request for its queue pair. */
static double latency(int count, enum meanwhile what) {
    double sum = 0;
    const int rounds = what == kNothing ? kRounds : count;
    for (int n = 0; n < rounds; ++n) {
        const int i = n % count;
        const double begin = MPI_Wtime();
        if (what == kArm) load(i);
        if (what == kMove && rank == 0) move(i);
        ping_pong(i);
        sum += MPI_Wtime() - begin;
        if (what == kMove) path_of[i] = 1 - path_of[i];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return sum / rounds / 2;
}

static volatile double sink;

static double compute(void) {
    const double begin = MPI_Wtime();
    double value = 1;
    for (int i = 0; i < 20000000; ++i) value = value * 1.0000001 + 1e-9;
    sink = value;
    return MPI_Wtime() - begin;
}

/* Rank 1 computes while rank 0 loads or moves all queue pairs. */
static double compute_beside(int count, enum meanwhile what) {
    MPI_Barrier(MPI_COMM_WORLD);
    double took = 0;
    if (rank == 1 && what == kArm)
        for (int i = 0; i < count; ++i) load(i);
    if (rank == 1) took = compute();
    for (int i = 0; rank == 0 && i < count; ++i) {
        if (what == kArm) load(i);
        if (what == kMove) move(i);
        if (what != kNothing) send(i);
    }
    for (int i = 0; i < count && what != kNothing; ++i) {
        if (rank == 1) wait_for_message(i);
        if (what == kMove) path_of[i] = 1 - path_of[i];
    }
    wait_for_sends();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&took, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    return took;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static void measure(int count, double* column) {
    memset(path_of, 0, sizeof path_of);
    column[0] = 1e6 * connect_all(count, false);
    destroy_all(count);
    column[1] = 1e6 * connect_all(count, true);
    destroy_all(count);
    connect_all(count, false);
    for (int i = 0; i < count; ++i) ping_pong(i);
    column[2] = 1e6 * arm_all(count);
    column[3] = 1e6 * move_all(count);
    column[4] = 1e6 * latency(count, kNothing);
    column[5] = 1e6 * latency(count, kArm);
    arm_all(count);
    column[6] = 1e6 * latency(count, kMove);
    column[7] = 1e3 * compute_beside(count, kNothing);
    column[8] = 1e3 * compute_beside(count, kArm);
    arm_all(count);
    column[9] = 1e3 * compute_beside(count, kMove);
    destroy_all(count);
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void read_arguments(int argc, char** argv) {
    for (int option; (option = getopt(argc, argv, "q:n:")) != -1;) {
        char* end = NULL;
        const long value = option == '?' ? 0 : strtol(optarg, &end, 10);
        const long most = option == 'q' ? kMostQps : kMostRepeats;
        if (option == '?' || *end != '\0' || value < 1 || value > most) {
            if (rank == 0) fprintf(stderr, "usage: coop_apm [-q 1..%d] [-n 1..%d]\n", kMostQps, kMostRepeats);
            MPI_Finalize();
            exit(2);
        }
        *(option == 'q' ? &most_qps : &repeats) = (int)value;
    }
}

int main(int argc, char** argv) {
    static double all[kColumns][kMostRepeats];
    int ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_arguments(argc, argv);
    if (ranks != 2) fail("needs two processes");
    open_everything();
    if (rank == 0)
        printf("# coop_apm: alternate path: %s; median of %d\n#%7s %10s %10s %10s %10s %9s %9s %9s %10s %10s %10s\n",
               own_port[1] == 2 ? "port 2" : "second LID", repeats, "qps", "connect_us", "loaded_us", "arm_us",
               "move_us", "quiet_us", "arming_us", "moving_us", "compute_ms", "armed_ms", "moved_ms");
    for (int count = 1; count <= most_qps; count *= 2) {
        for (int n = 0; n < repeats; ++n) {
            double column[kColumns];
            measure(count, column);
            for (int i = 0; i < kColumns; ++i) all[i][n] = column[i];
        }
        for (int i = 0; i < kColumns; ++i) qsort(all[i], (size_t)repeats, sizeof(double), compare);
        if (rank != 0) continue;
        printf("%8d", count);
        for (int i = 0; i < kColumns; ++i) printf(" %*.2f", i >= 4 && i <= 6 ? 9 : 10, all[i][repeats / 2]);
        printf("\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

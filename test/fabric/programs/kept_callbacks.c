/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests in which thread callbacks of users other than the PML run when a long message wakes the thread of
 * pml_coop_async. Two ranks over btl/coopib with MPI_THREAD_SINGLE: Open MPI takes no locks, so these callbacks must
 * run in the thread that calls MPI. Exit code 1 if one ran elsewhere, if data is wrong, or if none was ever due while
 * the application computed.
 *
 * One-sided communication (osc/rdma): the transport's put and get are wrapped to record the thread of each callback.
 * The PML does not call these two functions; it has its own in coop/extension/btl_extension.h. Messages: in each round,
 * each rank sends one directly through the transport, with a separate tag; the threads that run the callbacks of its
 * arrival and completion are recorded.
 * Argument: the number of rounds (default 30). */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal_config.h"

#include "opal/mca/btl/base/base.h"

#include "counter.h"

enum { LONG = 1 << 18, SHORT = 1 << 16, LIMIT = 20, TAG = MCA_BTL_TAG_USR + 3 };

struct noted {
    mca_btl_base_rdma_completion_fn_t callback;
    void* context;
};

static int rank, here, elsewhere, arrived, completed;
static pthread_t application;
static mca_btl_base_module_t* coopib;
static struct mca_btl_base_endpoint_t* peer; /* valid after the first put */
static mca_btl_base_module_put_fn_t real_put;
static mca_btl_base_module_get_fn_t real_get;
static MPI_T_pvar_handle handled, kept;

static void note_thread(void) { ++*(pthread_equal(pthread_self(), application) ? &here : &elsewhere); }

static void note(mca_btl_base_module_t* btl, struct mca_btl_base_endpoint_t* endpoint, void* local,
                 mca_btl_base_registration_handle_t* handle, void* context, void* data, int status) {
    struct noted* noted = context;
    note_thread();
    noted->callback(btl, endpoint, local, handle, noted->context, data, status);
    free(noted);
}

static void* note_of(mca_btl_base_rdma_completion_fn_t callback, void* context) {
    struct noted* noted = malloc(sizeof *noted);
    *noted = (struct noted){callback, context};
    return noted;
}

static int put(mca_btl_base_module_t* btl, struct mca_btl_base_endpoint_t* endpoint, void* local, uint64_t remote,
               mca_btl_base_registration_handle_t* local_handle, mca_btl_base_registration_handle_t* remote_handle,
               size_t bytes, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void* context,
               void* data) {
    const int noted = callback != NULL;
    peer = endpoint;
    return real_put(btl, endpoint, local, remote, local_handle, remote_handle, bytes, flags, order,
                    noted ? note : callback, noted ? note_of(callback, context) : context, data);
}

static int get(mca_btl_base_module_t* btl, struct mca_btl_base_endpoint_t* endpoint, void* local, uint64_t remote,
               mca_btl_base_registration_handle_t* local_handle, mca_btl_base_registration_handle_t* remote_handle,
               size_t bytes, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void* context,
               void* data) {
    const int noted = callback != NULL;
    return real_get(btl, endpoint, local, remote, local_handle, remote_handle, bytes, flags, order,
                    noted ? note : callback, noted ? note_of(callback, context) : context, data);
}

static void wrap_coopib(void) {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        mca_btl_base_module_t* btl = selected->btl_module;
        if (strcmp(selected->btl_component->btl_version.mca_component_name, "coopib") != 0) continue;
        coopib = btl;
        real_put = btl->btl_put;
        real_get = btl->btl_get;
        btl->btl_put = put;
        btl->btl_get = get;
        return;
    }
    printf("btl/coopib is not in use\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void on_arrival(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* descriptor,
                       void* data) {
    (void)btl, (void)data;
    note_thread();
    if (tag != TAG || descriptor->des_segments->seg_len != sizeof arrived ||
        *(int*)descriptor->des_segments->seg_addr.pval != arrived) {
        printf("message %d, sent without the PML, is wrong\n", arrived);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ++arrived;
}

static void on_completion(mca_btl_base_module_t* btl, struct mca_btl_base_endpoint_t* endpoint,
                          mca_btl_base_descriptor_t* descriptor, int status) {
    (void)btl, (void)endpoint, (void)descriptor, (void)status;
    note_thread();
    ++completed;
}

static void send_past_the_pml(int number) {
    mca_btl_base_descriptor_t* descriptor = coopib->btl_alloc(
        coopib, peer, MCA_BTL_NO_ORDER, sizeof number,
        MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    memcpy(descriptor->des_segments->seg_addr.pval, &number, sizeof number);
    descriptor->des_cbfunc = on_completion;
    if (coopib->btl_send(coopib, peer, descriptor, TAG) < 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(int round, int at) { return (unsigned char)(round * 31 + at % 251); }

static void check(const char* what, int round, const unsigned char* buffer, int bytes) {
    for (int i = 0; i < bytes; ++i)
        if (buffer[i] != byte_of(round, i)) {
            printf("round %d, %s: byte %d is wrong\n", round, what, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* Computes, without calling the library, until the thread has handled something. */
static void compute_until_handled(unsigned long long before) {
    for (const double end = MPI_Wtime() + LIMIT; value_of(handled) == before;)
        if (MPI_Wtime() > end) {
            printf("the thread has not run while the application computed\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static void sender(int round, unsigned char* buffer) {
    char go;
    for (int i = 0; i < LONG; ++i) buffer[i] = byte_of(round, i);
    MPI_Recv(&go, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(2000); /* until the operations of rank 1 are complete */
    send_past_the_pml(round);
    MPI_Send(buffer, LONG, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
}

static void receiver(int round, unsigned char* buffer, unsigned char* put_from, unsigned char* got, MPI_Win win) {
    char go = 0;
    int done;
    MPI_Request receive, puts, gets;
    MPI_Irecv(buffer, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &receive);
    for (int i = 0; i < SHORT; ++i) put_from[i] = byte_of(round, i);
    MPI_Rput(put_from, SHORT, MPI_BYTE, 0, 0, SHORT, MPI_BYTE, win, &puts);
    MPI_Wait(&puts, MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    memset(got, 0, SHORT);
    MPI_Send(&go, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    const unsigned long long before = value_of(handled);
    MPI_Rput(put_from, SHORT, MPI_BYTE, 0, SHORT, SHORT, MPI_BYTE, win, &puts);
    MPI_Rget(got, SHORT, MPI_BYTE, 0, 0, SHORT, MPI_BYTE, win, &gets);
    send_past_the_pml(round);
    MPI_Test(&puts, &done, MPI_STATUS_IGNORE);
    compute_until_handled(before);
    MPI_Wait(&puts, MPI_STATUS_IGNORE);
    MPI_Wait(&gets, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    check("got", round, got, SHORT);
    check("received", round, buffer, LONG);
}

int main(int argc, char** argv) {
    int provided, failed = 0;
    const int rounds = argc > 1 ? atoi(argv[1]) : 30;
    void* memory;
    MPI_Win win;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    handled = handle_of("pml_coop_events_handled");
    kept = handle_of("pml_coop_callbacks_left");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    application = pthread_self();
    wrap_coopib();
    unsigned char *buffer = calloc(1, LONG), *put_from = calloc(1, SHORT), *got = calloc(1, SHORT);
    MPI_Win_allocate(2 * SHORT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    mca_btl_base_active_message_trigger[TAG].cbfunc = on_arrival;
    MPI_Win_lock_all(0, win);
    MPI_Put(put_from, 1, MPI_BYTE, 1 - rank, 0, 1, MPI_BYTE, win);
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; ++round) {
        if (rank == 0) sender(round, buffer);
        else receiver(round, buffer, put_from, got, win);
    }
    MPI_Win_unlock_all(win);
    for (int any; arrived < rounds || completed < rounds;)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        printf("callbacks: %d in the application, %d elsewhere; %llu were kept\n", here, elsewhere, value_of(kept));
        failed = elsewhere != 0 || here == 0 || value_of(kept) == 0;
    }
    MPI_Win_free(&win);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return failed;
}

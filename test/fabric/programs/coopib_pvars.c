/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks, 4 MiB from each to the other: what do the variables of btl/coopib say? Arguments: HCAs, rails. Exit code 1
 * if one is not as expected. The handles are made before MPI_Init, when no HCA is open yet. MPI_T_finalize
 * comes first: behind MPI_Finalize it ends in a segmentation fault in Open MPI 4.1.4, with stock components alone too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 4 << 20, MOST = 8 };

static MPI_T_pvar_session session;
static int failed;

static void expect(int good, const char *what)
{
    if (!good) {
        printf("not so: %s\n", what);
        failed = 1;
    }
}

static MPI_T_pvar_handle handle_of(const char *name, int wanted_count)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int index, count = 0;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS) {
        printf("no variable %s\n", name);
        exit(1);
    }
    expect(count == wanted_count, name);
    return handle;
}

static void read_all(MPI_T_pvar_handle handle, const char *name, unsigned long long *values)
{
    expect(MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS, name);
}

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    unsigned long long bytes[MOST] = {0}, stripes[MOST] = {0}, sends[MOST] = {0}, waits[MOST] = {0}, early = 0, connections = 0;
    unsigned long long all_bytes = 0, all_stripes = 0, all_sends = 0;
    int provided, rank, hcas = argc > 1 ? atoi(argv[1]) : 1, rails = argc > 2 ? atoi(argv[2]) : 1;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle of_bytes = handle_of("btl_coopib_bytes", MOST), of_stripes = handle_of("btl_coopib_stripes", MOST),
                      of_sends = handle_of("btl_coopib_sends", MOST), of_waits = handle_of("btl_coopib_waits", MOST),
                      of_early = handle_of("btl_coopib_out_of_order", 1), of_connections = handle_of("btl_coopib_connections", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(out, BYTES, MPI_CHAR, 1 - rank, 0, in, BYTES, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    read_all(of_bytes, "bytes", bytes);
    read_all(of_stripes, "stripes", stripes);
    read_all(of_sends, "sends", sends);
    read_all(of_waits, "waits", waits);
    read_all(of_early, "out_of_order", &early);
    read_all(of_connections, "connections", &connections);
    for (int i = 0; i < MOST; ++i) {
        expect((bytes[i] > 0) == (i < hcas), "each HCA in use has carried bytes, and no other");
        all_bytes += bytes[i];
        all_stripes += stripes[i];
        all_sends += sends[i];
    }
    expect(all_bytes >= BYTES && all_bytes < 2 * BYTES, "bytes are those of the message, and few more");
    expect(all_stripes >= (unsigned)rails, "each rail has had a stripe");
    expect(all_sends >= 1, "fragments were sent");
    expect(connections == 1, "one peer is connected");
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return failed;
}

// SPDX-License-Identifier: BSD-3-Clause
// A message adds to the loads of its processes: bytes to copy, kept on their boards (coop/rndv/board.h). When the
// message ends, they are subtracted, even if a transfer was refused: load PROTOCOL. Run it with --mca
// pml_coop_protocol coop_load and with the first get and put, or only the first get, refused (pml_coop_fault). The
// first messages use PROTOCOL. Two ranks. Only for pml/coop.
#include "mpi_test.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

void message(MPI_Comm comm, int rank, int from, std::size_t bytes) {
    Bytes data(bytes);
    if (rank == from) {
        pattern::fill(bytes, 0, data.data(), bytes);
        MPI_Send(data.data(), static_cast<int>(bytes), MPI_BYTE, 1 - from, 0, comm);
    } else {
        MPI_Recv(data.data(), static_cast<int>(bytes), MPI_BYTE, from, 0, comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(bytes, data.data(), bytes);
    }
    MPI_Barrier(comm);
}

MPI_Comm with_protocol(MPI_Comm comm, const std::string& protocol) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "coop_protocol", protocol.c_str());
    MPI_Comm other;
    MPI_Comm_dup_with_info(comm, info, &other);
    MPI_Info_free(&info);
    return other;
}

}  // namespace

CASE(a_refused_message_leaves_no_load_behind) {
    const Variable refused_gets("retries_get"), refused_puts("retries_put"), rget("messages_rget"),
        rput("messages_rput");
    MPI_Comm other = with_protocol(env.comm, mpitest::settings().arguments.at(0));
    message(other, env.rank, 0, 200000);
    message(other, env.rank, 1, 100000);  // now both had refusals; loads left behind would be unequal
    MPI_Comm_free(&other);
    unsigned long long mine = refused_gets.read() + refused_puts.read(), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, env.comm);
    CHECK(all > 0);  // something was refused
    // No rank has anything else to copy, so the ranks take turns after balancing these messages. A rank with a
    // remaining load of three such messages would never copy.
    const auto read = rget.read(), written = rput.read();
    for (int i = 0; i < 60; ++i) message(env.comm, env.rank, 0, 10000);
    if (env.rank != 0) return;  // the sender counts rows
    const auto by_receiver = rget.read() - read, by_sender = rput.read() - written;
    CHECK_EQ(by_receiver + by_sender, 60);
    CHECK(by_receiver >= 20);
    CHECK(by_sender >= 20);
}

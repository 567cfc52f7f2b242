// SPDX-License-Identifier: BSD-3-Clause
// Probe, Iprobe, Mprobe, Improbe, Mrecv, Imrecv.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

void send(const mpitest::Env& env, int to, int tag, std::uint64_t key, std::size_t n) {
    Bytes data(n);
    pattern::fill(key, 0, data.data(), n);
    MPI_Send(data.data(), as_int(n), MPI_BYTE, to, tag, env.comm);
}

void check_status(const MPI_Status& status, int source, int tag, std::size_t n) {
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(status.MPI_SOURCE, source);
    CHECK_EQ(status.MPI_TAG, tag);
    CHECK_EQ(count, n);
}

}  // namespace

CASE(probe_tells_source_tag_and_size_and_leaves_the_message) {
    for (std::size_t n : sizes::few()) {
        if (env.rank == 0) send(env, 1, 17, n, n);
        if (env.rank != 1) continue;
        for (int twice = 0; twice < 2; ++twice) {
            MPI_Status status;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
            check_status(status, 0, 17, n);
        }
        Bytes data(n);
        MPI_Status status;
        MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 17, env.comm, &status);
        check_status(status, 0, 17, n);
        CHECK_PATTERN(n, data.data(), n);
    }
}

CASE(iprobe_finds_only_what_matches) {
    if (env.rank == 0) {
        send(env, 1, 17, 1, 100);
        send(env, 1, 18, 2, 200);
    }
    if (env.rank != 1) return;
    int flag = 0;
    MPI_Status status;
    while (!flag) MPI_Iprobe(0, 18, env.comm, &flag, &status);
    check_status(status, 0, 18, 200);
    MPI_Iprobe(0, 19, env.comm, &flag, &status);
    CHECK_EQ(flag, 0);
    MPI_Iprobe(1, MPI_ANY_TAG, env.comm, &flag, &status);
    CHECK_EQ(flag, 0);
    MPI_Iprobe(0, MPI_ANY_TAG, env.comm, &flag, &status);
    CHECK(flag != 0);
    check_status(status, 0, 17, 100);  // the first one sent
    Bytes data(200);
    MPI_Recv(data.data(), 200, MPI_BYTE, 0, 18, env.comm, MPI_STATUS_IGNORE);
    CHECK_PATTERN(2, data.data(), 200);
    MPI_Recv(data.data(), 100, MPI_BYTE, 0, 17, env.comm, MPI_STATUS_IGNORE);
    CHECK_PATTERN(1, data.data(), 100);
}

CASE(matched_probe_takes_the_message_out_of_matching) {
    for (std::size_t n : {sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 0) {
            std::vector<MPI_Request> requests(3);
            std::vector<Bytes> data(3, Bytes(n));
            for (std::size_t i = 0; i < 3; ++i) {
                pattern::fill(i, 0, data[i].data(), n);
                MPI_Isend(data[i].data(), as_int(n), MPI_BYTE, 1, 4, env.comm, &requests[i]);
            }
            MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
        }
        if (env.rank != 1) continue;
        Bytes data(n);
        MPI_Message first, second;
        MPI_Status status;
        int flag = 0;
        MPI_Mprobe(0, 4, env.comm, &first, &status);
        check_status(status, 0, 4, n);
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &flag, &second, &status);
        check_status(status, 0, 4, n);
        // A plain receive gets the third message, although the first two have not been received.
        MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 4, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(2, data.data(), n);
        MPI_Mrecv(data.data(), as_int(n), MPI_BYTE, &second, &status);
        CHECK(second == MPI_MESSAGE_NULL);
        check_status(status, 0, 4, n);
        CHECK_PATTERN(1, data.data(), n);
        MPI_Request request;
        MPI_Imrecv(data.data(), as_int(n), MPI_BYTE, &first, &request);
        CHECK(first == MPI_MESSAGE_NULL);
        MPI_Wait(&request, &status);
        check_status(status, 0, 4, n);
        CHECK_PATTERN(0, data.data(), n);
    }
}

CASE(matched_receive_works_at_every_edge_size) {
    for (std::size_t n : sizes::edges()) {
        if (env.rank == 0) send(env, 1, 4, n, n);
        if (env.rank != 1) continue;
        Bytes data(n + 8, 0x77);
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(0, MPI_ANY_TAG, env.comm, &message, &status);
        check_status(status, 0, 4, n);
        MPI_Mrecv(data.data(), as_int(n + 8), MPI_BYTE, &message, &status);
        check_status(status, 0, 4, n);
        CHECK_PATTERN(n, data.data(), n);
        CHECK_UNTOUCHED(0x77, data.data() + n, 8);
    }
}

CASE(improbe_without_a_message_finds_nothing) {
    int flag = 1;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Improbe(MPI_ANY_SOURCE, 5, env.comm, &flag, &message, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    MPI_Barrier(env.comm);
}

CASE(probing_null_processes_gives_null_results) {
    MPI_Status status;
    int flag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Probe(MPI_PROC_NULL, 5, env.comm, &status);
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Iprobe(MPI_PROC_NULL, 5, env.comm, &flag, &status);
    CHECK(flag != 0);
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Mprobe(MPI_PROC_NULL, 5, env.comm, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL);
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

CASE(probe_with_wildcards_serves_everyone_in_order) {
    constexpr int kEach = 30;
    if (env.rank == 0) {
        std::vector<int> next(static_cast<std::size_t>(env.size), 0);
        for (int i = 0; i < kEach * (env.size - 1); ++i) {
            MPI_Status probed, status;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &probed);
            int count = 0;
            MPI_Get_count(&probed, MPI_BYTE, &count);
            const int k = next[static_cast<std::size_t>(probed.MPI_SOURCE)]++;
            CHECK_EQ(probed.MPI_TAG, k % 3);
            const std::size_t n = static_cast<std::size_t>(k) * 700;
            CHECK_EQ(count, n);
            Bytes data(n);
            MPI_Recv(data.data(), count, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, env.comm, &status);
            check_status(status, probed.MPI_SOURCE, probed.MPI_TAG, n);
            CHECK_PATTERN(static_cast<std::uint64_t>(probed.MPI_SOURCE * 1000 + k), data.data(), n);
        }
    } else {
        for (int k = 0; k < kEach; ++k)
            send(env, 0, k % 3, static_cast<std::uint64_t>(env.rank * 1000 + k), static_cast<std::size_t>(k) * 700);
    }
}

CASE(matched_message_can_wait_while_others_pass) {
    // Many matched probes, then their receives in reverse order.
    constexpr std::size_t kMessages = 40;
    const auto size_of = [](std::size_t i) { return i % 4 == 3 ? 100000 + i : 10 * i; };
    if (env.rank == 0)
        for (std::size_t i = 0; i < kMessages; ++i) {
            MPI_Request request;
            Bytes* data = new Bytes(size_of(i));
            pattern::fill(i, 0, data->data(), data->size());
            MPI_Isend(data->data(), as_int(data->size()), MPI_BYTE, 1, 4, env.comm, &request);
            MPI_Request_free(&request);  // the buffers live until the end of the process
        }
    if (env.rank != 1) return;
    std::vector<MPI_Message> messages(kMessages);
    for (MPI_Message& m : messages) MPI_Mprobe(0, 4, env.comm, &m, MPI_STATUS_IGNORE);
    for (std::size_t i = kMessages; i-- > 0;) {
        Bytes data(size_of(i));
        MPI_Status status;
        MPI_Mrecv(data.data(), as_int(data.size()), MPI_BYTE, &messages[i], &status);
        check_status(status, 0, 4, size_of(i));
        CHECK_PATTERN(i, data.data(), data.size());
    }
}

// SPDX-License-Identifier: BSD-3-Clause
// Persistent requests: started many times, all at once, freed while active.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

using Init = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

int as_int(std::size_t n) { return static_cast<int>(n); }

// Starts the same two requests `times` times, with new contents each time.
void ping(const mpitest::Env& env, Init init, std::size_t n, int times) {
    Bytes data(n);
    MPI_Request request;
    if (env.rank == 0) init(data.data(), as_int(n), MPI_BYTE, 1, 3, env.comm, &request);
    else MPI_Recv_init(data.data(), as_int(n), MPI_BYTE, 0, 3, env.comm, &request);
    for (int i = 0; i < times; ++i) {
        const std::uint64_t key = pattern::key({n, static_cast<std::uint64_t>(i)});
        if (env.rank == 0) pattern::fill(key, 0, data.data(), n);
        MPI_Status status;
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        CHECK(request != MPI_REQUEST_NULL);
        if (env.rank == 1) {
            CHECK_EQ(status.MPI_TAG, 3);
            CHECK_PATTERN(key, data.data(), n);
        }
    }
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
}

}  // namespace

CASE(started_a_thousand_times) {
    if (env.rank > 1) return;
    ping(env, MPI_Send_init, 100, 1000);
    ping(env, MPI_Send_init, sizes::kRendezvous, 50);
}

CASE(synchronous_started_many_times) {
    if (env.rank > 1) return;
    ping(env, MPI_Ssend_init, 100, 300);
    ping(env, MPI_Ssend_init, sizes::kRendezvous, 30);
}

CASE(buffered_started_many_times) {
    if (env.rank > 1) return;
    Bytes buffer(8 * (sizes::kRendezvous + MPI_BSEND_OVERHEAD));
    for (std::size_t n : {std::size_t{100}, sizes::kRendezvous}) {
        // A round of 5 fits, even with a slow receiver; detaching waits.
        for (int round = 0; round < 4; ++round) {
            if (env.rank == 0) MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
            ping(env, MPI_Bsend_init, n, 5);
            void* address = nullptr;
            int size = 0;
            if (env.rank == 0) MPI_Buffer_detach(&address, &size);
        }
    }
}

CASE(ready_started_many_times) {
    constexpr std::size_t n = 3000;
    if (env.rank > 1) return;
    Bytes data(n);
    MPI_Request request;
    if (env.rank == 0) MPI_Rsend_init(data.data(), n, MPI_BYTE, 1, 3, env.comm, &request);
    else MPI_Recv_init(data.data(), n, MPI_BYTE, 0, 3, env.comm, &request);
    for (std::uint64_t i = 0; i < 200; ++i) {
        if (env.rank == 1) {
            MPI_Start(&request);
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, env.comm);
        } else {
            pattern::fill(i, 0, data.data(), n);
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, env.comm, MPI_STATUS_IGNORE);
            MPI_Start(&request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (env.rank == 1) CHECK_PATTERN(i, data.data(), n);
    }
    MPI_Request_free(&request);
}

CASE(startall_starts_sends_and_receives_together) {
    const auto peers = static_cast<std::size_t>(env.size);
    const std::size_t n = 20000;
    std::vector<Bytes> in(peers, Bytes(n)), out(peers, Bytes(n));
    std::vector<MPI_Request> requests(2 * peers);
    for (std::size_t p = 0; p < peers; ++p) {
        MPI_Recv_init(in[p].data(), as_int(n), MPI_BYTE, as_int(p), 7, env.comm, &requests[p]);
        MPI_Send_init(out[p].data(), as_int(n), MPI_BYTE, as_int(p), 7, env.comm, &requests[peers + p]);
    }
    for (std::uint64_t round = 0; round < 20; ++round) {
        for (std::size_t p = 0; p < peers; ++p)
            pattern::fill(pattern::key({round, static_cast<std::uint64_t>(env.rank), p}), 0, out[p].data(), n);
        MPI_Startall(as_int(requests.size()), requests.data());
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (std::size_t p = 0; p < peers; ++p)
            CHECK_PATTERN(pattern::key({round, p, static_cast<std::uint64_t>(env.rank)}), in[p].data(), n);
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
}

CASE(inactive_request_is_complete_and_empty) {
    int dummy = 0;
    MPI_Request request;
    MPI_Recv_init(&dummy, 1, MPI_INT, 0, 0, env.comm, &request);
    MPI_Status status;
    int flag = 0, count = -1;
    MPI_Test(&request, &flag, &status);
    CHECK(flag != 0);
    CHECK_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 0);
    MPI_Wait(&request, &status);
    int index = 0;
    MPI_Waitany(1, &request, &index, &status);
    CHECK_EQ(index, MPI_UNDEFINED);
    CHECK(request != MPI_REQUEST_NULL);
    MPI_Request_free(&request);
}

CASE(send_freed_while_active_is_still_delivered) {
    for (std::size_t n : {std::size_t{64}, sizes::kRendezvous}) {
        Bytes data(n);
        MPI_Request request;
        if (env.rank == 0) {
            pattern::fill(n, 0, data.data(), n);
            MPI_Send_init(data.data(), as_int(n), MPI_BYTE, 1, 1, env.comm, &request);
            MPI_Start(&request);
            MPI_Request_free(&request);
            CHECK(request == MPI_REQUEST_NULL);
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, env.comm, MPI_STATUS_IGNORE);  // then the buffer may be reused
        } else if (env.rank == 1) {
            MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, data.data(), n);
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, env.comm);
        }
    }
}

CASE(receive_freed_while_active_still_receives) {
    for (std::size_t n : {std::size_t{64}, sizes::kRendezvous}) {
        Bytes data(n);
        MPI_Request request;
        if (env.rank == 1) {
            MPI_Recv_init(data.data(), as_int(n), MPI_BYTE, 0, 1, env.comm, &request);
            MPI_Start(&request);
            MPI_Request_free(&request);
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, env.comm);
            // MPI_Ssend returns when this receive has started and the send buffer may be reused; only then is the
            // message with tag 3 sent. At rendezvous size data may still arrive after it, so poll for the last byte.
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 3, env.comm, MPI_STATUS_IGNORE);
            const volatile unsigned char* last = &data[n - 1];
            while (*last != pattern::byte(n, n - 1)) {
                int flag = 0;
                MPI_Iprobe(MPI_ANY_SOURCE, 12321, env.comm, &flag, MPI_STATUS_IGNORE);
            }
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 4, env.comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, data.data(), n);
        } else if (env.rank == 0) {
            pattern::fill(n, 0, data.data(), n);
            if (data[n - 1] == 0) mpitest::fail(__FILE__, __LINE__, "choose another key: the last byte is 0");
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, env.comm, MPI_STATUS_IGNORE);
            MPI_Ssend(data.data(), as_int(n), MPI_BYTE, 1, 1, env.comm);
            MPI_Send(nullptr, 0, MPI_BYTE, 1, 3, env.comm);
            MPI_Send(nullptr, 0, MPI_BYTE, 1, 4, env.comm);
        }
    }
}

CASE(nonpersistent_send_freed_while_active_is_still_delivered) {
    for (std::size_t n : {std::size_t{64}, sizes::kRendezvous}) {
        Bytes data(n);
        if (env.rank == 0) {
            MPI_Request request;
            pattern::fill(n, 0, data.data(), n);
            MPI_Isend(data.data(), as_int(n), MPI_BYTE, 1, 1, env.comm, &request);
            MPI_Request_free(&request);
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, env.comm, MPI_STATUS_IGNORE);
        } else if (env.rank == 1) {
            MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, data.data(), n);
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, env.comm);
        }
    }
}

CASE(persistent_receive_with_wildcards_takes_messages_from_any_source) {
    if (env.rank == 0) {
        int value = 0;
        MPI_Request request;
        MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &request);
        std::vector<int> next(static_cast<std::size_t>(env.size), 0);
        for (int i = 0; i < 20 * (env.size - 1); ++i) {
            MPI_Status status;
            MPI_Start(&request);
            MPI_Wait(&request, &status);
            int& expected = next[static_cast<std::size_t>(status.MPI_SOURCE)];
            CHECK_EQ(value, status.MPI_SOURCE * 1000 + expected);
            CHECK_EQ(status.MPI_TAG, expected);
            ++expected;
        }
        MPI_Request_free(&request);
    } else {
        for (int i = 0; i < 20; ++i) {
            const int value = env.rank * 1000 + i;
            MPI_Send(&value, 1, MPI_INT, 0, i, env.comm);
        }
    }
}

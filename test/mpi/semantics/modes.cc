// SPDX-License-Identifier: BSD-3-Clause
// The send modes: standard, synchronous, buffered, ready; blocking and nonblocking.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

Bytes message(std::uint64_t key, std::size_t n) {
    Bytes data(n);
    pattern::fill(key, 0, data.data(), n);
    return data;
}

void receive(const mpitest::Env& env, int source, int tag, std::uint64_t key, std::size_t n) {
    Bytes data(n);
    MPI_Status status;
    MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, source, tag, env.comm, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, n);
    CHECK_EQ(status.MPI_SOURCE, source);
    CHECK_EQ(status.MPI_TAG, tag);
    CHECK_PATTERN(key, data.data(), n);
}

int as_int(std::size_t n) { return static_cast<int>(n); }

bool is_done(MPI_Request& request) {
    int flag = 0;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
}

// Gives MPI time for an error that it must not make.
void let_time_pass(const mpitest::Env& env) {
    for (int i = 0; i < 200; ++i) {
        int flag = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, 12321, env.comm, &flag, MPI_STATUS_IGNORE);
        if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void signal_to(const mpitest::Env& env, int rank) { MPI_Send(nullptr, 0, MPI_BYTE, rank, 999, env.comm); }
void wait_signal(const mpitest::Env& env, int rank) {
    MPI_Recv(nullptr, 0, MPI_BYTE, rank, 999, env.comm, MPI_STATUS_IGNORE);
}

}  // namespace

CASE(standard_send_delivers_at_every_size) {
    for (std::size_t n : sizes::few()) {
        if (env.rank == 0) {
            const Bytes data = message(n, n);
            MPI_Send(data.data(), as_int(n), MPI_BYTE, 1, 5, env.comm);
        } else if (env.rank == 1) {
            receive(env, 0, 5, n, n);
        }
    }
}

CASE(synchronous_send_delivers_at_every_size) {
    for (std::size_t n : sizes::few()) {
        if (env.rank == 0) {
            const Bytes data = message(n, n);
            MPI_Ssend(data.data(), as_int(n), MPI_BYTE, 1, 5, env.comm);
        } else if (env.rank == 1) {
            receive(env, 0, 5, n, n);
        }
    }
}

CASE(synchronous_send_is_complete_only_after_the_receive_started) {
    for (std::size_t n : {std::size_t{0}, std::size_t{8}, sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 0) {
            const Bytes data = message(n, n);
            MPI_Request request;
            MPI_Issend(data.data(), as_int(n), MPI_BYTE, 1, 5, env.comm, &request);
            let_time_pass(env);
            CHECK(!is_done(request));
            signal_to(env, 1);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (env.rank == 1) {
            wait_signal(env, 0);  // on another tag: by now the message itself is unexpected
            receive(env, 0, 5, n, n);
        }
    }
}

CASE(buffered_send_is_complete_before_the_receive) {
    for (std::size_t n : {std::size_t{0}, sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 0) {
            Bytes buffer(2 * (n + MPI_BSEND_OVERHEAD + 64));
            MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
            Bytes data = message(n, n);
            MPI_Bsend(data.data(), as_int(n), MPI_BYTE, 1, 5, env.comm);
            data.assign(n, 0xee);  // the buffer may be reused
            data = message(n + 1, n);
            MPI_Request request;
            MPI_Ibsend(data.data(), as_int(n), MPI_BYTE, 1, 6, env.comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            data.assign(n, 0xee);
            signal_to(env, 1);
            void* address = nullptr;
            int size = 0;
            MPI_Buffer_detach(&address, &size);  // waits until both have left the buffer
            CHECK(address == buffer.data());
            CHECK_EQ(size, buffer.size());
            buffer.assign(buffer.size(), 0xdd);
        } else if (env.rank == 1) {
            wait_signal(env, 0);
            receive(env, 0, 5, n, n);
            receive(env, 0, 6, n + 1, n);
        }
    }
}

// Attaches a buffer, fails to send messages on `failing` that are longer than it, then sends one on `comm` that fits.
static void overfill(const mpitest::Env& env, MPI_Comm failing, MPI_Comm comm) {
    MPI_Comm_set_errhandler(failing, MPI_ERRORS_RETURN);
    constexpr std::size_t n = sizes::kRendezvous;  // an eager message might not need the buffer
    if (env.rank == 0) {
        Bytes buffer(n + n / 2 + MPI_BSEND_OVERHEAD);
        MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
        const Bytes data = message(1, 2 * n);
        CHECK_ERROR(MPI_Bsend(data.data(), as_int(2 * n), MPI_BYTE, 1, 5, failing), MPI_ERR_BUFFER);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_ERROR(MPI_Ibsend(data.data(), as_int(2 * n), MPI_BYTE, 1, 5, failing, &request), MPI_ERR_BUFFER);
        CHECK_MPI(MPI_Bsend(data.data(), as_int(n), MPI_BYTE, 1, 6, comm));
        void* address = nullptr;
        int size = 0;
        MPI_Buffer_detach(&address, &size);
    } else if (env.rank == 1) {
        Bytes data(n);
        MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 6, comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(1, data.data(), n);
    }
}

CASE(buffered_send_beyond_the_buffer_is_an_error) {
    MPI_Comm failing;
    MPI_Comm_dup(env.comm, &failing);
    overfill(env, failing, env.comm);
    MPI_Comm_free(&failing);
}

CASE(failed_buffered_send_does_not_block_those_after_it) {
    if (mpitest::skipped_on_ob1("it has used up a sequence number by then, and the receiver waits for that message"))
        return;
    overfill(env, env.comm, env.comm);
}

CASE(buffer_is_free_again_when_its_message_is_gone) {
    constexpr std::size_t n = 3000;
    if (env.rank == 0) {
        Bytes buffer(n + MPI_BSEND_OVERHEAD + 128);
        MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
        for (int i = 0; i < 50; ++i) {
            const Bytes data = message(static_cast<std::uint64_t>(i), n);
            MPI_Bsend(data.data(), as_int(n), MPI_BYTE, 1, i, env.comm);
            wait_signal(env, 1);
        }
        void* address = nullptr;
        int size = 0;
        MPI_Buffer_detach(&address, &size);
    } else if (env.rank == 1) {
        for (int i = 0; i < 50; ++i) {
            receive(env, 0, i, static_cast<std::uint64_t>(i), n);
            signal_to(env, 0);
        }
    }
}

// Rank 1 makes no call for this time. More messages are sent to it than shared memory has room for.
constexpr std::chrono::milliseconds kPause(500);
constexpr int kMany = 12000;

// The kernel and HCAs may have room for all of them.
static bool shared_memory_carries_all() {
    const char* const transports = std::getenv("OMPI_MCA_btl");
    return transports && std::string(transports) == "vader,self" && !mpitest::on_ob1();
}

// Rank 1 pauses. Returns a time on this rank that is kPause or more before the first receive of rank 1.
static std::chrono::steady_clock::time_point begin_pause(const mpitest::Env& env) {
    const auto start = std::chrono::steady_clock::now();
    MPI_Barrier(env.comm);
    if (env.rank == 1) std::this_thread::sleep_for(kPause);
    return start;
}

static int bsend(const Bytes& data, const mpitest::Env& env) {
    return MPI_Bsend(data.data(), as_int(data.size()), MPI_BYTE, 1, 5, env.comm);
}
static int ibsend(const Bytes& data, const mpitest::Env& env) {
    MPI_Request request;
    MPI_Ibsend(data.data(), as_int(data.size()), MPI_BYTE, 1, 5, env.comm, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static int persistent_bsend(const Bytes& data, const mpitest::Env& env) {
    MPI_Request request;
    MPI_Bsend_init(data.data(), as_int(data.size()), MPI_BYTE, 1, 5, env.comm, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Request_free(&request);
}

CASE(detach_returns_when_short_messages_have_left) {
    constexpr std::size_t n = 1024;
    for (const auto send : {bsend, ibsend, persistent_bsend}) {
        const auto start = begin_pause(env);
        if (env.rank == 0) {
            Bytes buffer(kMany * (n + MPI_BSEND_OVERHEAD));
            MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
            for (std::uint64_t i = 0; i < kMany; ++i) CHECK_MPI(send(message(i, n), env));
            void* address = nullptr;
            int size = 0;
            MPI_Buffer_detach(&address, &size);
            if (shared_memory_carries_all()) CHECK(std::chrono::steady_clock::now() - start >= kPause);
            buffer.assign(buffer.size(), 0xdd);
        } else if (env.rank == 1) {
            for (std::uint64_t i = 0; i < kMany; ++i) receive(env, 0, 5, i, n);
        }
    }
}

CASE(short_buffered_send_without_a_buffer_is_an_error_unless_it_leaves_at_once) {
    if (mpitest::skipped_on_ob1("it keeps short messages in memory of its own")) return;
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    constexpr std::size_t n = 1024;
    const auto start = begin_pause(env);
    int sent = 0;
    if (env.rank == 0) {
        int status = MPI_SUCCESS;
        while (sent < kMany && (status = bsend(message(static_cast<std::uint64_t>(sent), n), env)) == MPI_SUCCESS)
            ++sent;
        if (shared_memory_carries_all() && std::chrono::steady_clock::now() - start < kPause)
            CHECK_ERROR(status, MPI_ERR_BUFFER);
        MPI_Send(&sent, 1, MPI_INT, 1, 6, env.comm);
    } else if (env.rank == 1) {
        MPI_Recv(&sent, 1, MPI_INT, 0, 6, env.comm, MPI_STATUS_IGNORE);
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(sent); ++i) receive(env, 0, 5, i, n);
    }
}

CASE(ready_send_finds_the_posted_receive) {
    for (std::size_t n : sizes::few()) {
        if (env.rank == 0) {
            const Bytes data = message(n, n);
            wait_signal(env, 1);
            MPI_Request request;
            MPI_Rsend(data.data(), as_int(n), MPI_BYTE, 1, 5, env.comm);
            MPI_Irsend(data.data(), as_int(n), MPI_BYTE, 1, 6, env.comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (env.rank == 1) {
            Bytes a(n), b(n);
            MPI_Request requests[2];
            MPI_Irecv(a.data(), as_int(n), MPI_BYTE, 0, 5, env.comm, &requests[0]);
            MPI_Irecv(b.data(), as_int(n), MPI_BYTE, 0, 6, env.comm, &requests[1]);
            signal_to(env, 0);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            CHECK_PATTERN(n, a.data(), n);
            CHECK_PATTERN(n, b.data(), n);
        }
    }
}

CASE(all_ranks_exchange_with_all_in_all_nonblocking_modes) {
    using Call = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    constexpr Call modes[] = {MPI_Isend, MPI_Issend, MPI_Irsend};
    for (std::size_t n : {std::size_t{0}, sizes::kEager, sizes::kRendezvous}) {
        std::vector<Bytes> in, out;
        std::vector<MPI_Request> requests;
        for (int mode = 0; mode < 3; ++mode)
            for (int peer = 0; peer < env.size; ++peer) {
                in.emplace_back(n);
                requests.emplace_back();
                MPI_Irecv(in.back().data(), as_int(n), MPI_BYTE, peer, mode, env.comm, &requests.back());
            }
        MPI_Barrier(env.comm);  // for the ready sends
        for (int mode = 0; mode < 3; ++mode)
            for (int peer = 0; peer < env.size; ++peer) {
                out.push_back(
                    message(pattern::key({n, static_cast<std::uint64_t>(mode), static_cast<std::uint64_t>(env.rank),
                                          static_cast<std::uint64_t>(peer)}),
                            n));
                requests.emplace_back();
                modes[mode](out.back().data(), as_int(n), MPI_BYTE, peer, mode, env.comm, &requests.back());
            }
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (std::size_t i = 0; i < in.size(); ++i) {
            const std::uint64_t mode = i / static_cast<std::size_t>(env.size),
                                peer = i % static_cast<std::size_t>(env.size);
            CHECK_PATTERN(pattern::key({n, mode, peer, static_cast<std::uint64_t>(env.rank)}), in[i].data(), n);
        }
    }
}

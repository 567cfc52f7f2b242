// SPDX-License-Identifier: BSD-3-Clause
// Communicators that are created and freed, and parameters that are written, while other threads or late messages still
// use them. Two ranks; the cases with threads need --multiple. A sanitizer detects more errors than these checks do.
#include <atomic>
#include <thread>
#include <unistd.h>

#include "control.h"
#include "mpi_test.h"

namespace {

constexpr int kShort = 64;  // bytes; many of them fill the transport

// Calls MPI until told to end, so that messages of another thread make progress.
class Poller {
public:
    Poller() {
        int level = MPI_THREAD_SINGLE;
        MPI_Query_thread(&level);
        CHECK_EQ(level, MPI_THREAD_MULTIPLE);
        MPI_Comm_dup(MPI_COMM_SELF, &comm_);
        thread_ = std::thread([this] {
            while (!end_.load(std::memory_order_relaxed)) {
                int flag = 0;
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
            }
        });
    }
    ~Poller() {
        end_.store(true, std::memory_order_relaxed);
        thread_.join();
        MPI_Comm_free(&comm_);
    }
    Poller(const Poller&) = delete;

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    std::atomic<bool> end_{false};
    std::thread thread_;
};

// `count` short messages from rank 0 to rank 1, which receives late: the transport has no room for all of them.
struct Burst {
    explicit Burst(int count)
        : data(static_cast<std::size_t>(count) * kShort), requests(static_cast<std::size_t>(count)) {}

    void send(MPI_Comm comm) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            pattern::fill(i, 0, &data[i * kShort], kShort);
            MPI_Isend(&data[i * kShort], kShort, MPI_BYTE, 1, 5, comm, &requests[i]);
        }
    }
    void receive(MPI_Comm comm) const {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            unsigned char in[kShort];
            MPI_Recv(in, kShort, MPI_BYTE, 0, 5, comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(i, in, kShort);
        }
    }

    std::vector<unsigned char> data;
    std::vector<MPI_Request> requests;
};

// Long messages both ways, from two threads of each rank.
void exchange(const mpitest::Env& env, int count) {
    const auto run = [&](int tag) {
        std::vector<unsigned char> out(100000), in(out.size());
        for (int i = 0; i < count; ++i) {
            pattern::fill(pattern::key({static_cast<std::uint64_t>(env.rank), static_cast<std::uint64_t>(i)}), 0,
                          out.data(), out.size());
            MPI_Sendrecv(out.data(), static_cast<int>(out.size()), MPI_BYTE, 1 - env.rank, tag, in.data(),
                         static_cast<int>(in.size()), MPI_BYTE, 1 - env.rank, tag, env.comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(pattern::key({static_cast<std::uint64_t>(1 - env.rank), static_cast<std::uint64_t>(i)}),
                          in.data(), in.size());
        }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
}

}  // namespace

// Requests and communicator are freed at once: the last message to leave releases the communicator.
CASE(the_last_send_takes_its_communicator_with_it) {
    for (int round = 0; round < 5; ++round) {
        MPI_Comm comm;
        MPI_Comm_dup(env.comm, &comm);
        Burst burst(3000);
        if (env.rank == 0) {
            burst.send(comm);
            for (MPI_Request& request : burst.requests)
                if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        } else {
            usleep(50000);
            burst.receive(comm);
        }
        MPI_Comm_free(&comm);
        MPI_Barrier(env.comm);
    }
}

// The thread that sends the last message is still at it when the other one, which has waited for that message, frees
// the communicator.
CASE(a_communicator_is_freed_while_a_thread_sends_what_waited) {
    std::vector<MPI_Comm> comms(300);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(env.comm, &comm);
    const Poller pollers[3];
    for (MPI_Comm& comm : comms) {
        Burst burst(50);
        if (env.rank == 0) {
            burst.send(comm);
            MPI_Waitall(static_cast<int>(burst.requests.size()), burst.requests.data(), MPI_STATUSES_IGNORE);
        } else {
            usleep(200);
            burst.receive(comm);
        }
        MPI_Comm_free(&comm);
    }
}

// One thread calls MPI_T_cvar_write while messages of others read the parameter.
CASE(a_parameter_is_written_while_messages_start) {
    int provided = 0;
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    std::atomic<bool> end{false};
    std::thread writer([&] {
        for (int i = 0; !end.load(std::memory_order_relaxed); ++i) {
            const std::int64_t chunk = (i % 2 == 0 ? 512 : 64) * 1024;
            CHECK_EQ(write_word("pml_coop_protocol", i % 2 == 0 ? "rget" : "hybrid"), MPI_SUCCESS);
            CHECK_EQ(write_control("pml_coop_copy_chunk", &chunk), MPI_SUCCESS);
            usleep(100);
        }
    });
    exchange(env, 300);
    end.store(true, std::memory_order_relaxed);
    writer.join();
    CHECK_EQ(write_word("pml_coop_protocol", "hybrid"), MPI_SUCCESS);
    MPI_T_finalize();
}

// Rank 0 sends as soon as it has the new communicator. On rank 1, one thread handles the message while another creates
// the communicator.
CASE(a_message_comes_right_after_its_communicator) {
    std::vector<MPI_Comm> comms(200);
    {
        const Poller pollers[2];
        for (MPI_Comm& comm : comms) {
            MPI_Comm_dup(env.comm, &comm);
            int number = env.rank;
            if (env.rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 0, comm);
            else MPI_Recv(&number, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
            CHECK_EQ(number, 0);
        }
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Rank 1 creates communicators while interrupts make another thread handle messages for it (pml_coop_async, over
// btl/coopib).
CASE(communicators_are_made_while_messages_interrupt) {
    constexpr int kMessages = 300, kBytes = 70000;
    std::vector<unsigned char> data(static_cast<std::size_t>(kMessages) * kBytes);
    const auto message = [&](int i) { return &data[static_cast<std::size_t>(i) * kBytes]; };
    if (env.rank == 0) {
        for (int i = 0; i < kMessages; ++i) {
            pattern::fill(static_cast<std::uint64_t>(i), 0, message(i), kBytes);
            MPI_Send(message(i), kBytes, MPI_BYTE, 1, i, env.comm);
            usleep(300);
        }
    } else {
        std::vector<MPI_Request> requests(kMessages);
        for (int i = 0; i < kMessages; ++i)
            MPI_Irecv(message(i), kBytes, MPI_BYTE, 0, i, env.comm, &requests[static_cast<std::size_t>(i)]);
        std::vector<MPI_Comm> comms(250);  // the library's table of communicators grows several times
        for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMessages; ++i) CHECK_PATTERN(static_cast<std::uint64_t>(i), message(i), kBytes);
        for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    }
}

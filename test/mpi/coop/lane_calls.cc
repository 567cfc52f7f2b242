// SPDX-License-Identifier: BSD-3-Clause
// What a call does beside the message that it finds in the lane: lane_calls. Two ranks, or three, a core for each. Only
// for pml/coop, with pml_coop_lane 1, pml_coop_lane_after 0 and lane_max of at least 64 KiB.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "lane_message.h"
#include "mpi_test.h"

namespace {

mpitest::Configure configure([](mpitest::Settings& s) { s.hang_seconds = 40; });

using Clock = std::chrono::steady_clock;
enum Tag : int { kGo, kStop };

Clock::time_point in_seconds(int n) { return Clock::now() + std::chrono::seconds(n * mpitest::hang_scale()); }

// Computes for about a microsecond, so that the sender is always ahead.
void compute() {
    for (const auto end = Clock::now() + std::chrono::microseconds(1); Clock::now() < end;) {
    }
}

// Begins a collective call of which rank 0 has to take a step by its progress functions before rank 1 can end.
// Meanwhile rank 0 is only in receive(), which takes `window` messages that are always there. Rank 1 sends them until
// the call has ended.
template <class Receive>
void a_collective_call_ends_during(const mpitest::Env& env, int window, Receive&& receive) {
    if (env.size != 2) return;
    constexpr int kAhead = 2048, kRound = 64;
    MPI_Comm other;
    MPI_Comm_dup(env.comm, &other);
    int mine = env.rank + 1, sum = 0, is_over = 0;
    MPI_Request call;
    if (env.rank == 0) {
        CHECK_MPI(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other, &call));
        while (receive() != kStop) compute();
    } else {
        const auto too_late = in_seconds(20);
        const auto send = [&](int value, int messages) {
            for (int i = 0; i < messages; ++i) CHECK_MPI(MPI_Send(&value, 1, MPI_INT, 0, 0, env.comm));
        };
        send(kGo, kAhead);
        CHECK_MPI(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other, &call));
        while (!is_over && Clock::now() < too_late) {
            send(kGo, kRound);
            CHECK_MPI(MPI_Test(&call, &is_over, MPI_STATUS_IGNORE));
        }
        send(kStop, window);
        CHECK(is_over);
    }
    CHECK_MPI(MPI_Wait(&call, MPI_STATUS_IGNORE));
    CHECK_EQ(sum, 3);
    MPI_Comm_free(&other);
}

// A buffer whose second half cannot be read for a while: who copies it is held up there until the first byte of `gate`
// is set, which the other process does.
class SlowBuffer {
public:
    static constexpr std::size_t kBytes = 65536;
    explicit SlowBuffer(volatile char* gate) {
        memory_ = static_cast<unsigned char*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        CHECK(memory_ != MAP_FAILED);
        gate_ = gate;
    }
    ~SlowBuffer() { munmap(memory_, kBytes); }
    unsigned char* data() { return memory_; }
    void close() {
        half_ = memory_ + kBytes / 2;
        struct sigaction action = {};
        action.sa_handler = wait_for_gate;
        sigaction(SIGSEGV, &action, &before_);
        CHECK_EQ(mprotect(half_, kBytes / 2, PROT_NONE), 0);
    }
    void open() {
        sigaction(SIGSEGV, &before_, nullptr);
        CHECK_EQ(mprotect(half_, kBytes / 2, PROT_READ | PROT_WRITE), 0);
    }

private:
    static void wait_for_gate(int) {
        while (*gate_ == 0) usleep(1000);
        mprotect(half_, kBytes / 2, PROT_READ | PROT_WRITE);
    }
    unsigned char* memory_;
    struct sigaction before_ = {};
    static inline volatile char* gate_ = nullptr;
    static inline unsigned char* half_ = nullptr;
};

// Rank 0 sends a message in the middle of which it is held up. Meanwhile rank 1 calls look() for a second, whose calls
// have to return, and then lets rank 0 go on and calls receive(). Rank 2, if there is one, exchanges messages with rank
// 1 meanwhile.
template <class Look, class Receive>
void calls_return_while_a_sender_is_held_up(const mpitest::Env& env, std::uint64_t key, Look&& look,
                                            Receive&& receive) {
    MPI_Win window;
    char* mine = nullptr;
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, env.comm, &mine, &window);
    MPI_Aint bytes = 0;
    int unit = 0;
    char* gate = nullptr;
    MPI_Win_shared_query(window, 0, &bytes, &unit, &gate);
    mine[0] = 0;
    MPI_Barrier(env.comm);
    if (env.rank == 0) {
        SlowBuffer buffer(gate);
        pattern::fill(key, 0, buffer.data(), SlowBuffer::kBytes);
        buffer.close();
        CHECK_MPI(MPI_Send(buffer.data(), as_int(SlowBuffer::kBytes), MPI_BYTE, 1, 5, env.comm));
        buffer.open();
    } else if (env.rank == 1) {
        int others = 0, value = 0;
        for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
            look();
            if (env.size == 2) continue;
            CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, 2, 6, env.comm, MPI_STATUS_IGNORE));
            CHECK_EQ(value, others++);
            CHECK_MPI(MPI_Send(&value, 1, MPI_INT, 2, 6, env.comm));
        }
        *static_cast<volatile char*>(gate) = 1;
        receive();
        value = -1;
        if (env.size > 2) {
            CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, 2, 6, env.comm, MPI_STATUS_IGNORE));
            CHECK_MPI(MPI_Send(MPI_BOTTOM, 0, MPI_INT, 2, 6, env.comm));
        }
    } else if (env.rank == 2) {
        int count = 1;
        for (int i = 0; count > 0; ++i) {
            MPI_Status status;
            int back = -1;
            CHECK_MPI(MPI_Send(&i, 1, MPI_INT, 1, 6, env.comm));
            CHECK_MPI(MPI_Recv(&back, 1, MPI_INT, 1, 6, env.comm, &status));
            MPI_Get_count(&status, MPI_INT, &count);
            if (count > 0) CHECK_EQ(back, i);
        }
    }
    MPI_Win_free(&window);
}

}  // namespace

CASE(a_collective_call_ends_while_blocking_receives_find_their_messages) {
    int value = kGo;
    a_collective_call_ends_during(env, 1, [&] {
        CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, 1, 0, env.comm, MPI_STATUS_IGNORE));
        return value;
    });
}

CASE(a_collective_call_ends_while_waits_find_their_messages) {
    int value = kGo;
    a_collective_call_ends_during(env, 1, [&] {
        MPI_Request request;
        CHECK_MPI(MPI_Irecv(&value, 1, MPI_INT, 1, 0, env.comm, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return value;
    });
}

CASE(a_collective_call_ends_while_waits_for_several_find_their_messages) {
    constexpr int kWindow = 16;
    int values[kWindow];
    a_collective_call_ends_during(env, kWindow, [&] {
        MPI_Request requests[kWindow];
        for (int i = 0; i < kWindow; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 1, 0, env.comm, &requests[i]);
        CHECK_MPI(MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE));
        return values[kWindow - 1];
    });
}

CASE(a_probe_returns_while_the_sender_of_a_message_is_held_up) {
    const std::uint64_t key = key_of(0, 1, 1);
    Message m(SlowBuffer::kBytes, key);
    calls_return_while_a_sender_is_held_up(
        env, key,
        [&] {
            int is_there = 1;
            CHECK_MPI(MPI_Iprobe(0, 5, env.comm, &is_there, MPI_STATUS_IGNORE));
            CHECK(!is_there);
        },
        [&] {
            MPI_Status status;
            int bytes = 0;
            CHECK_MPI(MPI_Probe(0, 5, env.comm, &status));
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            CHECK_EQ(bytes, as_int(SlowBuffer::kBytes));
            CHECK_MPI(MPI_Recv(m.data.data(), bytes, MPI_BYTE, 0, 5, env.comm, MPI_STATUS_IGNORE));
            m.check();
        });
}

CASE(a_test_returns_while_the_sender_of_its_message_is_held_up) {
    for (const int ints_between : {0, 1}) {  // where the message is received without and with gaps
        const std::uint64_t key = key_of(0, 1, 2 + ints_between);
        MPI_Datatype type;
        MPI_Type_create_resized(MPI_INT, 0, 4 * (1 + ints_between), &type);
        MPI_Type_commit(&type);
        constexpr std::size_t kInts = SlowBuffer::kBytes / 4;
        std::vector<int> in(2 * kInts, -1);
        Message m(SlowBuffer::kBytes, key);
        MPI_Request request = MPI_REQUEST_NULL;
        if (env.rank == 1) CHECK_MPI(MPI_Irecv(in.data(), as_int(kInts), type, 0, 5, env.comm, &request));
        calls_return_while_a_sender_is_held_up(
            env, key,
            [&] {
                int is_over = 1;
                CHECK_MPI(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE));
                CHECK(!is_over);
            },
            [&] {
                MPI_Status status;
                int bytes = 0;
                CHECK_MPI(MPI_Wait(&request, &status));
                MPI_Get_count(&status, MPI_BYTE, &bytes);
                CHECK_EQ(bytes, as_int(SlowBuffer::kBytes));
                for (std::size_t i = 0; i < kInts; ++i)
                    std::memcpy(m.data.data() + 4 * i, &in[i * static_cast<std::size_t>(1 + ints_between)], 4);
                m.check();
            });
        MPI_Type_free(&type);
    }
}

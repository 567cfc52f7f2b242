// SPDX-License-Identifier: BSD-3-Clause
// Long messages that both sides wait for: the receiver times them, and tries whether they are quicker through the lane
// (coop/rndv/long_way.h). Which way is quicker is not tested, but that the lane is tried where both wait, and only there; that a
// process without a CPU of its own, or with threads, keeps to the kernel; and the data. Two ranks. Only for pml/coop, with
// pml_coop_lane_after 0: long_way [never], where "never" means that messages do not try the lane here.
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "mpi_test.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

constexpr int kMessages = 40;  // of which the last ones are a trial, if no other one has been before
constexpr int kMost = 400;     // messages until a trial, after several in vain
constexpr int kTag = 5, kTokenTag = 6;
constexpr unsigned char kGuard = 0x5a;
// Each range of lengths from one power of two to the next has a way of its own. Shorter ones can use the lane anyhow.
constexpr std::size_t kLengths[] = {200'000, 1'000'003, 3 << 20, 5'000'001};

bool never() { return !mpitest::settings().arguments.empty(); }
int as_int(std::size_t n) { return static_cast<int>(n); }
void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

struct Message {
    Bytes data;
    std::uint64_t key;
    Message(std::size_t bytes, std::uint64_t of) : data(bytes + 8, kGuard), key(of) {}
    int bytes() const { return as_int(data.size() - 8); }
    void fill() { pattern::fill(key, 0, data.data(), data.size() - 8); }
    void check() const {
        CHECK_PATTERN(key, data.data(), data.size() - 8);
        CHECK_UNTOUCHED(kGuard, data.data() + data.size() - 8, 8);
    }
};

// The receive is posted before the message comes.
void await_receive(const mpitest::Env& env) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, kTokenTag, env.comm, MPI_STATUS_IGNORE);
}

using Send = void (*)(const Message&, const mpitest::Env&);
using Receive = void (*)(Message&, const mpitest::Env&);

void send(const Message& m, const mpitest::Env& env) {
    MPI_Send(m.data.data(), m.bytes(), MPI_BYTE, 1, kTag, env.comm);
}
void send_and_wait(const Message& m, const mpitest::Env& env) {
    MPI_Request request;
    await_receive(env);
    MPI_Isend(m.data.data(), m.bytes(), MPI_BYTE, 1, kTag, env.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void send_and_compute(const Message& m, const mpitest::Env& env) {
    MPI_Request request;
    await_receive(env);
    MPI_Isend(m.data.data(), m.bytes(), MPI_BYTE, 1, kTag, env.comm, &request);
    nap();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void receive(Message& m, const mpitest::Env& env) {
    MPI_Recv(m.data.data(), m.bytes(), MPI_BYTE, 0, kTag, env.comm, MPI_STATUS_IGNORE);
}
void receive_and_wait(Message& m, const mpitest::Env& env) {
    MPI_Request request;
    MPI_Irecv(m.data.data(), m.bytes(), MPI_BYTE, 0, kTag, env.comm, &request);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, kTokenTag, env.comm);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}
void receive_and_test(Message& m, const mpitest::Env& env) {
    MPI_Request request;
    MPI_Irecv(m.data.data(), m.bytes(), MPI_BYTE, 0, kTag, env.comm, &request);
    for (int done = 0; !done; nap()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

void exchange_one(const mpitest::Env& env, Send send, Receive receive, std::size_t bytes, int i) {
    Message m(bytes, pattern::key({static_cast<std::uint64_t>(i), bytes}));
    if (env.rank == 0) {
        m.fill();
        send(m, env);
    } else {
        receive(m, env);
        m.check();
    }
}

// Rank 0 says whether another message follows.
bool goes_on(const mpitest::Env& env, bool wish) {
    char more = wish;
    MPI_Bcast(&more, 1, MPI_CHAR, 0, env.comm);
    return more != 0;
}

// Bytes of this process that took the lane, without those of short messages.
class LongByLane {
public:
    explicit LongByLane() : bytes_("bytes_lane"), before_(bytes_.read()) {}
    bool any() const { return bytes() >= kLengths[0]; }
    unsigned long long bytes() const { return bytes_.read() - before_; }

private:
    Variable bytes_;
    unsigned long long before_;
};

// Until a message has taken the lane.
void expect_trials(const mpitest::Env& env, Send send, Receive receive) {
    for (const std::size_t bytes : kLengths) {
        const LongByLane lane;
        int i = 0;
        while (goes_on(env, !lane.any() && i < (never() ? kMessages : kMost)))
            exchange_one(env, send, receive, bytes, i++);
        if (env.rank == 0) CHECK_EQ(lane.any(), !never());
    }
}

// A sender that loses its CPU may find that the receiver, too, waits by now: then the lane is right.
void expect_no_trial(const mpitest::Env& env, Send send, Receive receive) {
    constexpr unsigned kByChance = 3;  // messages
    for (const std::size_t bytes : kLengths) {
        const LongByLane lane;
        for (int i = 0; i < kMessages; ++i) exchange_one(env, send, receive, bytes, i);
        CHECK(lane.bytes() < (kByChance + 1) * bytes);
    }
}

}  // namespace

CASE(messages_that_both_sides_wait_for_try_the_lane) { expect_trials(env, send, receive); }

CASE(messages_of_nonblocking_calls_that_are_waited_for_try_the_lane) {
    expect_trials(env, send_and_wait, receive_and_wait);
}

CASE(windows_that_are_waited_for_try_the_lane) {
    constexpr int kWindow = 8;
    const LongByLane lane;
    int round = 0;
    while (goes_on(env, !lane.any() && round < (never() ? kMessages : kMost) / kWindow)) {
        std::vector<Message> window;
        std::array<MPI_Request, kWindow> requests{};
        for (int i = 0; i < kWindow; ++i)
            window.emplace_back(kLengths[0],
                                pattern::key({static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(i)}));
        for (Message& m : window)
            if (env.rank == 0) m.fill();
        if (env.rank == 0) await_receive(env);
        for (std::size_t i = 0; i < kWindow; ++i) {
            Message& m = window[i];
            if (env.rank == 0) MPI_Isend(m.data.data(), m.bytes(), MPI_BYTE, 1, kTag, env.comm, &requests[i]);
            else MPI_Irecv(m.data.data(), m.bytes(), MPI_BYTE, 0, kTag, env.comm, &requests[i]);
        }
        if (env.rank == 1) MPI_Send(nullptr, 0, MPI_BYTE, 0, kTokenTag, env.comm);
        CHECK_MPI(MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE));
        for (const Message& m : window)
            if (env.rank == 1) m.check();
        ++round;
    }
    if (env.rank == 0) CHECK_EQ(lane.any(), !never());
}

CASE(a_receiver_that_computes_keeps_to_the_kernel) { expect_no_trial(env, send, receive_and_test); }

CASE(a_sender_that_computes_keeps_to_the_kernel) { expect_no_trial(env, send_and_compute, receive_and_wait); }

CASE(messages_both_ways_at_once_arrive_whole) {
    const int peer = 1 - env.rank;
    for (const std::size_t bytes : kLengths)
        for (int i = 0; i < kMessages; ++i) {
            const auto key = [&](int from) {
                return pattern::key({static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(i), bytes});
            };
            Message out(bytes, key(env.rank)), in(bytes, key(peer));
            out.fill();
            MPI_Sendrecv(out.data.data(), out.bytes(), MPI_BYTE, peer, kTag, in.data.data(), in.bytes(), MPI_BYTE, peer,
                         kTag, env.comm, MPI_STATUS_IGNORE);
            in.check();
        }
}

// Short messages, receives that are too short, and synchronous sends between those that are timed.
CASE(mixed_messages_arrive_whole_and_in_order) {
    const std::size_t room = 300'000;
    const LongByLane lane;
    for (int i = 0; i < 5 * kMessages; ++i) {
        const std::size_t bytes = i % 5 == 3 ? 1000 : i % 7 == 4 ? 2 * room : room - static_cast<std::size_t>(i);
        Message m(bytes, pattern::key({static_cast<std::uint64_t>(i)}));
        if (env.rank == 0) {
            m.fill();
            if (i % 2) MPI_Send(m.data.data(), m.bytes(), MPI_BYTE, 1, i, env.comm);
            else MPI_Ssend(m.data.data(), m.bytes(), MPI_BYTE, 1, i, env.comm);
            continue;
        }
        Bytes in(room + 8, kGuard);
        MPI_Status status;
        MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
        const int rc = MPI_Recv(in.data(), as_int(room), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
        CHECK_EQ(rc == MPI_SUCCESS, bytes <= room);
        CHECK_EQ(status.MPI_TAG, i);
        CHECK_PATTERN(m.key, in.data(), std::min(bytes, room));
        CHECK_UNTOUCHED(kGuard, in.data() + std::min(bytes, room), in.size() - std::min(bytes, room));
    }
    if (never()) CHECK(!lane.any());
}

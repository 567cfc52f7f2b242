// SPDX-License-Identifier: BSD-3-Clause
// One side of a message completes it alone while the other one computes (MPI 3.1, section 3.7.4): alone WISH [few],
// where WISH is the value of pml_coop_protocol. The computing side stays outside of MPI until the other side signals in
// shared memory that it is done. A side that needs the other one never completes, and the hang guard fails the test.
// "few" leaves out the case that needs many messages. Three ranks: 0 and 1 exchange a message, 2 keeps 0 busy. Only for
// pml/coop.
#include <sched.h>

#include <atomic>
#include <functional>

#include "bsend_buffer.h"
#include "mpi_test.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

constexpr int kTag = 3, kReady = 4, kOther = 5;

const mpitest::Configure configure([](mpitest::Settings& settings) { settings.hang_seconds = 25; });

const std::string& wish() { return mpitest::settings().arguments.at(0); }
int as_int(std::size_t n) { return static_cast<int>(n); }

// A counter that all ranks see without MPI.
class Signal {
public:
    explicit Signal(const mpitest::Env& env) {
        void* memory = nullptr;
        MPI_Win_allocate_shared(env.rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, env.comm, &memory, &window_);
        MPI_Aint bytes;
        int unit;
        MPI_Win_shared_query(window_, 0, &bytes, &unit, &memory);
        count_ = static_cast<std::atomic<int>*>(memory);
        if (env.rank == 0) *count_ = 0;
        MPI_Barrier(env.comm);
    }
    ~Signal() { MPI_Win_free(&window_); }
    void raise_to(int count) { count_->store(count); }
    // Computes, from MPI's point of view: makes no call.
    void compute_until(int count) const {
        while (count_->load() < count) sched_yield();
    }

private:
    MPI_Win window_;
    std::atomic<int>* count_;
};

enum class Send { kIsend, kIssend, kIbsend, kPersistent, kIrsend };
enum class Recv { kRecv, kWait, kTest };
enum class Order { kReceiveFirst, kSendFirst };
constexpr Send kSends[] = {Send::kIsend, Send::kIssend, Send::kIbsend, Send::kPersistent, Send::kIrsend};
constexpr Recv kRecvs[] = {Recv::kRecv, Recv::kWait, Recv::kTest};
constexpr Order kOrders[] = {Order::kReceiveFirst, Order::kSendFirst};
constexpr std::size_t kSizes[] = {5000, 40000, 200001, 1 << 20, (4 << 20) + 5};

void token(const mpitest::Env& env, int to) { MPI_Send(nullptr, 0, MPI_BYTE, to, kReady, env.comm); }
void await_token(const mpitest::Env& env, int from) {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, kReady, env.comm, MPI_STATUS_IGNORE);
}

MPI_Request start_send(Send call, const void* data, int count, MPI_Datatype type, int to, const mpitest::Env& env) {
    MPI_Request request;
    switch (call) {
    case Send::kIsend: MPI_Isend(data, count, type, to, kTag, env.comm, &request); break;
    case Send::kIssend: MPI_Issend(data, count, type, to, kTag, env.comm, &request); break;
    case Send::kIbsend: MPI_Ibsend(data, count, type, to, kTag, env.comm, &request); break;
    case Send::kIrsend: MPI_Irsend(data, count, type, to, kTag, env.comm, &request); break;
    case Send::kPersistent:
        MPI_Send_init(data, count, type, to, kTag, env.comm, &request);
        MPI_Start(&request);
        break;
    }
    return request;
}

void end_send(MPI_Request& request) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

void end_receive(Recv call, MPI_Request& request) {
    if (call == Recv::kWait) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int done = 0; call == Recv::kTest && !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// Rank 1 sends and computes; rank 0 receives.
void one_message(const mpitest::Env& env, Signal& received, int number, Send send, Recv recv, Order order,
                 std::size_t bytes) {
    Bytes data(bytes);
    if (env.rank == 1) {
        pattern::fill(static_cast<std::uint64_t>(number), 0, data.data(), bytes);
        if (order == Order::kReceiveFirst) await_token(env, 0);
        const BsendBuffer buffer(send == Send::kIbsend ? bytes : 0);
        MPI_Request request = start_send(send, data.data(), as_int(bytes), MPI_BYTE, 0, env);
        if (order == Order::kSendFirst) token(env, 0);
        received.compute_until(number);
        end_send(request);
    } else if (env.rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (order == Order::kSendFirst) await_token(env, 1);
        if (order == Order::kReceiveFirst && recv == Recv::kRecv) token(env, 1);
        if (recv == Recv::kRecv) MPI_Recv(data.data(), as_int(bytes), MPI_BYTE, 1, kTag, env.comm, MPI_STATUS_IGNORE);
        else MPI_Irecv(data.data(), as_int(bytes), MPI_BYTE, 1, kTag, env.comm, &request);
        if (order == Order::kReceiveFirst && recv != Recv::kRecv) token(env, 1);
        end_receive(recv, request);
        received.raise_to(number);
        CHECK_PATTERN(static_cast<std::uint64_t>(number), data.data(), bytes);
    }
}

}  // namespace

CASE(a_receive_ends_while_its_sender_computes) {
    const Variable takeovers("takeovers");
    Signal received(env);
    int number = 0;
    for (std::size_t bytes : kSizes)
        for (Send send : kSends)
            for (Recv recv : kRecvs)
                for (Order order : kOrders) {
                    if (send == Send::kIrsend && (order == Order::kSendFirst || recv == Recv::kRecv)) continue;
                    one_message(env, received, ++number, send, recv, order, bytes);
                }
    if (env.rank == 0 && (wish() == "rput" || wish() == "coop_fixed")) CHECK(takeovers.read() > 0);
}

// The receiver has other messages to copy and send, and so leaves these to their senders.
CASE(a_receive_ends_while_its_sender_computes_though_the_receiver_is_busy) {
    constexpr std::size_t kBytes = 2 << 20, kLong = 16 << 20;
    constexpr int kMessages = 4;
    Signal received(env);
    for (int round = 1; round <= 6; ++round) {
        Bytes data(kMessages * kBytes), own(env.rank == 0 || env.rank == 2 ? kLong : 0);
        std::vector<MPI_Request> requests(kMessages, MPI_REQUEST_NULL);
        MPI_Request long_one = MPI_REQUEST_NULL;
        if (env.rank == 0) {
            MPI_Isend(own.data(), as_int(kLong), MPI_BYTE, 2, kOther, env.comm, &long_one);
            await_token(env, 1);
            await_token(env, 2);
            for (std::size_t i = 0; i < kMessages; ++i)
                MPI_Irecv(&data[i * kBytes], as_int(kBytes), MPI_BYTE, i % 2 ? 1 : 2, kTag, env.comm, &requests[i]);
            MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
            received.raise_to(round);
            for (std::size_t i = 0; i < kMessages; ++i) CHECK_PATTERN(i % 2 ? 1 : 2, &data[i * kBytes], kBytes);
            MPI_Wait(&long_one, MPI_STATUS_IGNORE);
        } else {
            pattern::fill(static_cast<std::uint64_t>(env.rank), 0, data.data(), kBytes);
            for (std::size_t i = 0; i < kMessages / 2; ++i)
                MPI_Isend(data.data(), as_int(kBytes), MPI_BYTE, 0, kTag, env.comm, &requests[i]);
            token(env, 0);
            if (env.rank == 1) received.compute_until(round);
            MPI_Waitall(kMessages / 2, requests.data(), MPI_STATUSES_IGNORE);
            if (env.rank == 2) MPI_Recv(own.data(), as_int(kLong), MPI_BYTE, 0, kOther, env.comm, MPI_STATUS_IGNORE);
        }
    }
}

// Buffers in pieces that are copied one by one.
CASE(a_receive_of_pieces_ends_while_its_sender_computes) {
    constexpr int kPieces = 40, kInts = 10000;
    MPI_Datatype pieces;
    MPI_Type_vector(kPieces, kInts, kInts + 7, MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    Signal received(env);
    int number = 0;
    for (int mix = 1; mix < 4; ++mix)
        for (Order order : kOrders) {
            ++number;
            const bool in_pieces = mix & (env.rank == 0 ? 1 : 2);
            const std::size_t step = kInts + (in_pieces ? 7 : 0);
            std::vector<int> data(kPieces * (kInts + 7), -1);
            const MPI_Datatype type = in_pieces ? pieces : MPI_INT;
            const int count = in_pieces ? 1 : kPieces * kInts;
            if (env.rank == 1) {
                for (std::size_t i = 0; i < kPieces * kInts; ++i)
                    data[i / kInts * step + i % kInts] = number + as_int(i);
                if (order == Order::kReceiveFirst) await_token(env, 0);
                MPI_Request request = start_send(Send::kIsend, data.data(), count, type, 0, env);
                if (order == Order::kSendFirst) token(env, 0);
                received.compute_until(number);
                end_send(request);
            } else if (env.rank == 0) {
                MPI_Request request;
                if (order == Order::kSendFirst) await_token(env, 1);
                MPI_Irecv(data.data(), count, type, 1, kTag, env.comm, &request);
                if (order == Order::kReceiveFirst) token(env, 1);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                received.raise_to(number);
                for (std::size_t i = 0; i < kPieces * kInts; ++i)
                    CHECK_EQ(data[i / kInts * step + i % kInts], number + as_int(i));
            }
        }
    MPI_Type_free(&pieces);
}

// All of each message comes with its RTS. Only the sender waits for an answer, which it does not read.
CASE(synchronous_receives_end_though_their_answers_find_no_room) {
    if (wish() != "hybrid") return;  // the wish makes no difference: the RTS carries all data
    constexpr int kMessages = 4000;
    Signal received(env);
    int value = 0;
    if (env.rank == 1) {
        std::vector<MPI_Request> requests(kMessages);
        for (MPI_Request& request : requests) MPI_Issend(&kMessages, 1, MPI_INT, 0, kTag, env.comm, &request);
        token(env, 0);
        received.compute_until(1);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    } else if (env.rank == 0) {
        await_token(env, 1);
        for (int i = 0; i < kMessages; ++i) {
            MPI_Recv(&value, 1, MPI_INT, 1, kTag, env.comm, MPI_STATUS_IGNORE);
            CHECK_EQ(value, kMessages);
        }
        received.raise_to(1);
    }
}

// So many messages that the transport has no room left for the receiver's answers to a sender that does not read.
CASE(receives_end_though_their_answers_find_no_room) {
    const bool few = mpitest::settings().arguments.size() > 1;
    if (few || (wish() != "coop" && wish() != "rput")) return;  // the others answer in the same ways
    constexpr std::size_t kBytes = 33000;
    constexpr int kMessages = 12000, kAhead = 20;
    const Variable refused("retries_send_busy"), no_descriptor("retries_no_descriptor");
    Bytes data(kBytes);
    Signal received(env);
    if (env.rank == 1) {
        pattern::fill(9, 0, data.data(), kBytes);
        std::vector<MPI_Request> requests(kMessages);
        for (int i = 0; i < kMessages; ++i) {
            MPI_Isend(data.data(), as_int(kBytes), MPI_BYTE, 0, kTag, env.comm, &requests[static_cast<std::size_t>(i)]);
            received.compute_until(i - kAhead);  // leaves room for the next one
        }
        received.compute_until(kMessages);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    } else if (env.rank == 0) {
        for (int i = 1; i <= kMessages; ++i) {
            MPI_Recv(data.data(), as_int(kBytes), MPI_BYTE, 1, kTag, env.comm, MPI_STATUS_IGNORE);
            received.raise_to(i);
        }
        CHECK_PATTERN(9, data.data(), kBytes);
        CHECK(refused.read() + no_descriptor.read() > 0);  // there was none at some time
    }
}

// Where both sides copy, the sender can also complete alone. (Not where only the receiver copies: it copies a long
// message in several calls of MPI.)
CASE(a_send_ends_while_its_receiver_computes) {
    if (wish() == "rget" || wish() == "coop_load") return;
    constexpr std::size_t kBytes = 4 << 20;
    Signal sent(env);
    Bytes data(kBytes);
    for (int round = 1; round <= 10; ++round) {
        MPI_Request request;
        if (env.rank == 1) {
            pattern::fill(static_cast<std::uint64_t>(round), 0, data.data(), kBytes);
            MPI_Isend(data.data(), as_int(kBytes), MPI_BYTE, 0, kTag, env.comm, &request);
            token(env, 0);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            sent.raise_to(round);
        } else if (env.rank == 0) {
            await_token(env, 1);
            MPI_Irecv(data.data(), as_int(kBytes), MPI_BYTE, 1, kTag, env.comm, &request);
            sent.compute_until(round);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_PATTERN(static_cast<std::uint64_t>(round), data.data(), kBytes);
        }
        MPI_Barrier(env.comm);
    }
}

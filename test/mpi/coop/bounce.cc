// SPDX-License-Identifier: BSD-3-Clause
// Consecutive blocking sends are put into bounce buffers until they are received: bounce [refused]. With "refused" the
// transport refuses operations (pml_coop_fault), and only the data is checked. Two ranks. Only for pml/coop.
#include <algorithm>

#include "mpi_test.h"
#include "sizes.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

constexpr std::size_t kBounceBytes = 32768;
constexpr int kBuffers = 32;

int as_int(std::size_t n) { return static_cast<int>(n); }
bool refused() { return !mpitest::settings().arguments.empty(); }

// Message i of a series: i gives its length and contents.
std::size_t length_of(int i) {
    constexpr std::size_t kLengths[] = {4025, 5000, 8192, 12345, 16384, 20001, 32767, kBounceBytes};
    return kLengths[static_cast<std::size_t>(i) % std::size(kLengths)];
}

void send(const mpitest::Env& env, int to, int tag, std::size_t bytes, std::uint64_t key) {
    Bytes data(bytes);
    pattern::fill(key, 0, data.data(), bytes);
    CHECK_MPI(MPI_Send(data.data(), as_int(bytes), MPI_BYTE, to, tag, env.comm));
    std::fill(data.begin(), data.end(), 0xee);  // the buffer may be reused
}

void receive(const mpitest::Env& env, int from, int tag, std::size_t bytes, std::uint64_t key) {
    Bytes data(bytes);
    MPI_Status status;
    CHECK_MPI(MPI_Recv(data.data(), as_int(bytes), MPI_BYTE, from, tag, env.comm, &status));
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, bytes);
    CHECK_PATTERN(key, data.data(), bytes);
}

void send_row(const mpitest::Env& env, int messages, int tag) {
    for (int i = 0; i < messages; ++i) send(env, 1, tag, length_of(i), static_cast<std::uint64_t>(i));
}

// A short message that the other side waits for.
void signal(const mpitest::Env& env, int to) { MPI_Send(nullptr, 0, MPI_BYTE, to, 99, env.comm); }
void await(const mpitest::Env& env, int from) { MPI_Recv(nullptr, 0, MPI_BYTE, from, 99, env.comm, MPI_STATUS_IGNORE); }

}  // namespace

CASE(consecutive_blocking_sends_take_bounce_buffers) {
    constexpr int kMessages = 1000;
    const Variable bounced("messages_bounce");
    const auto before = bounced.read();
    if (env.rank == 0) send_row(env, kMessages, 1);
    if (env.rank == 1)
        for (int i = 0; i < kMessages; ++i) receive(env, 0, 1, length_of(i), static_cast<std::uint64_t>(i));
    if (env.rank == 0 && !refused()) CHECK(bounced.read() - before > kMessages / 2);
    if (env.rank == 1) CHECK_EQ(bounced.read(), before);
}

CASE(a_message_and_its_answer_take_no_bounce_buffer) {
    const Variable bounced("messages_bounce");
    const auto before = bounced.read();
    for (int i = 0; i < 100; ++i) {
        if (env.rank == 0) send(env, 1, 1, length_of(i), 5);
        receive(env, 1 - env.rank, 1, length_of(i), 5);
        if (env.rank == 1) send(env, 0, 1, length_of(i), 5);
    }
    CHECK_EQ(bounced.read(), before);
}

CASE(longer_ready_synchronous_and_nonblocking_sends_take_none) {
    constexpr int kMessages = 20;
    constexpr std::size_t kBytes = 10000;
    const Variable bounced("messages_bounce");
    std::vector<Bytes> in(kMessages, Bytes(kBytes));
    std::vector<MPI_Request> requests(kMessages);
    if (env.rank == 1) {
        for (int i = 0; i < kMessages; ++i)
            MPI_Irecv(in[static_cast<std::size_t>(i)].data(), as_int(kBytes), MPI_BYTE, 0, 1, env.comm,
                      &requests[static_cast<std::size_t>(i)]);
        signal(env, 0);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMessages; ++i) receive(env, 0, 2, kBytes, 6);
        for (int i = 0; i < kMessages; ++i) receive(env, 0, 3, kBounceBytes + 1, 6);
        for (int i = 0; i < kMessages; ++i) receive(env, 0, 4, kBytes, 6);
        return;
    }
    await(env, 1);
    const auto before = bounced.read();
    Bytes data(kBytes);
    pattern::fill(6, 0, data.data(), kBytes);
    for (int i = 0; i < kMessages; ++i) MPI_Rsend(data.data(), as_int(kBytes), MPI_BYTE, 1, 1, env.comm);
    for (int i = 0; i < kMessages; ++i) MPI_Ssend(data.data(), as_int(kBytes), MPI_BYTE, 1, 2, env.comm);
    for (int i = 0; i < kMessages; ++i) send(env, 1, 3, kBounceBytes + 1, 6);
    for (MPI_Request& request : requests) MPI_Isend(data.data(), as_int(kBytes), MPI_BYTE, 1, 4, env.comm, &request);
    MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    CHECK_EQ(bounced.read(), before);
}

// The receives have another order than the messages, and there are only as many messages as buffers: a sender without a
// free buffer would wait in its call.
CASE(messages_wait_in_bounce_buffers_for_their_receives) {
    if (refused()) return;
    const Variable bounced("messages_bounce");
    if (env.rank == 0) {
        const auto before = bounced.read();
        send(env, 1, 0, 5000, 0);  // the first of a series takes no bounce buffer
        for (int i = 1; i <= kBuffers; ++i) send(env, 1, i, length_of(i), static_cast<std::uint64_t>(i));
        CHECK_EQ(bounced.read() - before, kBuffers);
        signal(env, 1);
        send(env, 1, kBuffers + 1, 5000, 1);  // no buffer is left
        CHECK_EQ(bounced.read() - before, kBuffers);
    } else {
        receive(env, 0, 0, 5000, 0);
        await(env, 0);
        receive(env, 0, kBuffers + 1, 5000, 1);
        for (int i = kBuffers; i > 0; --i) receive(env, 0, i, length_of(i), static_cast<std::uint64_t>(i));
    }
}

// The last message in each communicator is not received before the communicator is freed.
CASE(messages_that_nobody_receives_free_their_bounce_buffers) {
    if (refused()) return;
    constexpr int kComms = 2 * kBuffers;
    const Variable bounced("messages_bounce");
    const auto before = bounced.read();
    for (int i = 0; i < kComms; ++i) {
        mpitest::Env own = env;
        CHECK_MPI(MPI_Comm_dup(env.comm, &own.comm));
        if (env.rank == 0) {
            send(own, 1, 0, 5000, 0);  // the first of a series takes no bounce buffer
            send(own, 1, 1, 8192, 1);
        } else {
            receive(own, 0, 0, 5000, 0);
            MPI_Probe(0, 1, own.comm, MPI_STATUS_IGNORE);
        }
        CHECK_MPI(MPI_Comm_free(&own.comm));
    }
    if (env.rank == 0) CHECK_EQ(bounced.read() - before, kComms);
}

CASE(short_and_long_messages_keep_their_order) {
    constexpr std::size_t kLengths[] = {8, 16384, 4024, 100000, 32768, 0, 5000, 40000, 9000, 1 << 20};
    constexpr int kMessages = 300;
    for (int i = 0; i < kMessages; ++i) {
        const std::size_t bytes = kLengths[static_cast<std::size_t>(i) % std::size(kLengths)];
        if (env.rank == 0) send(env, 1, 7, bytes, static_cast<std::uint64_t>(i));
        else if (i % 3 == 0) receive(env, MPI_ANY_SOURCE, MPI_ANY_TAG, bytes, static_cast<std::uint64_t>(i));
        else receive(env, 0, 7, bytes, static_cast<std::uint64_t>(i));
    }
}

CASE(a_receive_that_is_too_short_gets_what_fits) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 100; ++i) {
        const std::size_t bytes = length_of(i), room = static_cast<std::size_t>(i) * 137 % bytes;
        if (env.rank == 0) {
            send(env, 1, 1, bytes, 3);
            continue;
        }
        Bytes data(bytes, 0x5a);
        MPI_Status status;
        CHECK_ERROR(MPI_Recv(data.data(), as_int(room), MPI_BYTE, 0, 1, env.comm, &status), MPI_ERR_TRUNCATE);
        CHECK_PATTERN(3, data.data(), room);
        CHECK_UNTOUCHED(0x5a, data.data() + room, bytes - room);
    }
    if (env.rank == 0) send_row(env, 100, 2);  // and the buffers are free again
    else
        for (int i = 0; i < 100; ++i) receive(env, 0, 2, length_of(i), static_cast<std::uint64_t>(i));
}

CASE(probes_see_bounced_messages) {
    for (int i = 0; i < 100; ++i) {
        if (env.rank == 0) {
            send(env, 1, i, length_of(i), 4);
            continue;
        }
        MPI_Status status;
        int count = -1;
        if (i % 2) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, length_of(i));
            CHECK_EQ(status.MPI_TAG, i);
            receive(env, 0, i, length_of(i), 4);
        } else {
            MPI_Message message;
            MPI_Mprobe(0, i, env.comm, &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, length_of(i));
            Bytes data(length_of(i));
            CHECK_MPI(MPI_Mrecv(data.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE));
            CHECK_PATTERN(4, data.data(), data.size());
        }
    }
}

// Every other int on one side, or both.
CASE(buffers_in_pieces_are_packed_and_unpacked) {
    constexpr int kInts = 4000;
    MPI_Datatype every_other;
    MPI_Type_vector(kInts, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < 60; ++i) {
        const bool from_pieces = i % 3 != 0, to_pieces = i % 3 != 1;
        std::vector<int> data(2 * kInts, -1);
        const std::size_t step = (env.rank == 0 ? from_pieces : to_pieces) ? 2 : 1;
        const MPI_Datatype type = step == 2 ? every_other : MPI_INT;
        const int count = step == 2 ? 1 : kInts;
        if (env.rank == 0) {
            for (std::size_t n = 0; n < kInts; ++n) data[n * step] = i + static_cast<int>(n);
            CHECK_MPI(MPI_Send(data.data(), count, type, 1, 1, env.comm));
        } else {
            CHECK_MPI(MPI_Recv(data.data(), count, type, 0, 1, env.comm, MPI_STATUS_IGNORE));
            for (std::size_t n = 0; n < kInts; ++n) CHECK_EQ(data[n * step], i + static_cast<int>(n));
            if (step == 2) CHECK_EQ(data[1], -1);
        }
    }
    MPI_Type_free(&every_other);
}

CASE(receives_that_were_posted_long_ago_get_bounced_messages) {
    constexpr int kMessages = 200;
    if (env.rank == 0) {
        await(env, 1);
        send_row(env, kMessages, 1);
        return;
    }
    std::vector<Bytes> in;
    std::vector<MPI_Request> requests(kMessages);
    for (int i = 0; i < kMessages; ++i) in.emplace_back(kBounceBytes);
    for (int i = 0; i < kMessages; ++i)
        MPI_Irecv(in[static_cast<std::size_t>(i)].data(), as_int(kBounceBytes), MPI_BYTE, 0, 1, env.comm,
                  &requests[static_cast<std::size_t>(i)]);
    signal(env, 0);
    MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMessages; ++i)
        CHECK_PATTERN(static_cast<std::uint64_t>(i), in[static_cast<std::size_t>(i)].data(), length_of(i));
}

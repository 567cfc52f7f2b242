// SPDX-License-Identifier: BSD-3-Clause
// A message longer than its receive: MPI_ERR_TRUNCATE, memory after the buffer unchanged, and communication still
// works.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

struct Sizes {
    std::size_t sent, room;
};

// Eager and rendezvous on every transport; a receive that is itself of eager size; a buffer of 0 bytes; one byte too
// short; a buffer shorter than the data that travels with the RTS.
constexpr Sizes kSizes[] = {{100, 99},      {100, 0},         {4000, 1000},  {5000, 4999}, {40000, 10},
                            {70000, 69999}, {400000, 399999}, {400000, 100}, {400000, 0},  {2000000, 1000000}};

// Memory for a receive with room for s.room bytes. Stock ob1 reads all of a long
// message into it, so it must be large enough for that.
Bytes memory(const Sizes& s) { return Bytes(s.sent + 64, 0x5c); }

// For ob1, checked only for eager messages.
void check_behind(const Bytes& data, const Sizes& s) {
    if (mpitest::on_ob1() && s.sent > 1000) return;
    CHECK_UNTOUCHED(0x5c, data.data() + s.room, data.size() - s.room);
}

void send(const mpitest::Env& env, int tag, std::uint64_t key, std::size_t n) {
    Bytes data(n);
    pattern::fill(key, 0, data.data(), n);
    MPI_Send(data.data(), as_int(n), MPI_BYTE, 1, tag, env.comm);
}

// The communicator still works.
void check_alive(const mpitest::Env& env) {
    for (std::size_t n : {sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 0) send(env, 8, n + 1, n);
        if (env.rank != 1) continue;
        Bytes data(n);
        CHECK_MPI(MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, 8, env.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(n + 1, data.data(), n);
    }
}

}  // namespace

CASE(blocking_receive_of_a_longer_message_is_an_error) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (const Sizes& s : kSizes) {
        if (env.rank == 0) {
            send(env, 7, s.sent, s.sent);
        } else if (env.rank == 1) {
            Bytes data = memory(s);
            MPI_Status status;
            CHECK_ERROR(MPI_Recv(data.data(), as_int(s.room), MPI_BYTE, 0, 7, env.comm, &status), MPI_ERR_TRUNCATE);
            CHECK_EQ(status.MPI_SOURCE, 0);
            CHECK_EQ(status.MPI_TAG, 7);
            check_behind(data, s);
        }
        check_alive(env);
    }
}

CASE(posted_receive_of_a_longer_message_is_an_error) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (const Sizes& s : kSizes) {
        if (env.rank == 0) {
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 6, env.comm, MPI_STATUS_IGNORE);
            send(env, 7, s.sent, s.sent);
        } else if (env.rank == 1) {
            Bytes data = memory(s);
            MPI_Request request;
            MPI_Status status;
            MPI_Irecv(data.data(), as_int(s.room), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &request);
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 6, env.comm);
            CHECK_ERROR(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
            CHECK_EQ(status.MPI_SOURCE, 0);
            CHECK_EQ(status.MPI_TAG, 7);
            check_behind(data, s);
        }
        check_alive(env);
    }
}

CASE(one_bad_receive_does_not_spoil_the_others_of_waitall) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (std::size_t n : {sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 0) {
            for (int i = 0; i < 3; ++i) send(env, i, static_cast<std::uint64_t>(i), n);
        } else if (env.rank == 1) {
            std::vector<Bytes> data(3, Bytes(n));
            MPI_Request requests[3];
            MPI_Status statuses[3];
            for (int i = 0; i < 3; ++i)
                MPI_Irecv(data[static_cast<std::size_t>(i)].data(), as_int(i == 1 ? n - 1 : n), MPI_BYTE, 0, i,
                          env.comm, &requests[i]);
            CHECK_ERROR(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
            for (int i = 0; i < 3; ++i) {
                // MPI_ERR_PENDING: not complete when the error was found.
                if (statuses[i].MPI_ERROR == MPI_ERR_PENDING) CHECK_MPI(MPI_Wait(&requests[i], &statuses[i]));
                else CHECK_ERROR(statuses[i].MPI_ERROR, i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
                if (i != 1) CHECK_PATTERN(static_cast<std::uint64_t>(i), data[static_cast<std::size_t>(i)].data(), n);
            }
        }
        check_alive(env);
    }
}

CASE(matched_receive_of_a_longer_message_is_an_error) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (const Sizes& s : kSizes) {
        if (env.rank == 0) {
            send(env, 7, s.sent, s.sent);
        } else if (env.rank == 1) {
            Bytes data = memory(s);
            MPI_Message message;
            MPI_Status status;
            MPI_Mprobe(0, 7, env.comm, &message, &status);
            // The world's error handler may be called, because in some MPIs a matched message has no communicator.
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            CHECK_ERROR(MPI_Mrecv(data.data(), as_int(s.room), MPI_BYTE, &message, &status), MPI_ERR_TRUNCATE);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
            check_behind(data, s);
        }
        check_alive(env);
    }
}

CASE(noncontiguous_receive_leaves_its_gaps_alone_when_the_message_is_longer) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (std::size_t n : {std::size_t{600}, std::size_t{60000}, std::size_t{600000}}) {
        // Room for n bytes in blocks of 6 with gaps of 2; the message has n + 6.
        if (env.rank == 0) {
            send(env, 7, n, n + 6);
        } else if (env.rank == 1) {
            MPI_Datatype type;
            MPI_Type_vector(as_int(n / 6), 6, 8, MPI_BYTE, &type);
            MPI_Type_commit(&type);
            Bytes data(n / 6 * 8 + 64, 0x5c);
            CHECK_ERROR(MPI_Recv(data.data(), 1, type, 0, 7, env.comm, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
            for (std::size_t i = 0; i < n / 6; ++i) CHECK_UNTOUCHED(0x5c, &data[i * 8 + 6], 2);
            CHECK_UNTOUCHED(0x5c, &data[n / 6 * 8], 64);
            MPI_Type_free(&type);
        }
        check_alive(env);
    }
}

CASE(truncated_message_to_oneself_is_an_error) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (const Sizes& s : kSizes) {
        Bytes out(s.sent, 0x22), in = memory(s);
        MPI_Request request;
        MPI_Isend(out.data(), as_int(s.sent), MPI_BYTE, env.rank, 7, env.comm, &request);
        CHECK_ERROR(MPI_Recv(in.data(), as_int(s.room), MPI_BYTE, env.rank, 7, env.comm, MPI_STATUS_IGNORE),
                    MPI_ERR_TRUNCATE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_behind(in, s);
    }
}

namespace {

MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

MPI_Datatype every_second(int count, MPI_Datatype element) {
    MPI_Datatype type;
    MPI_Type_vector(count, 1, 2, element, &type);
    return committed(type);
}

// Contiguous elements, each of which ends in a gap.
MPI_Datatype padded(int count) {
    MPI_Datatype element, type;
    MPI_Type_create_resized(MPI_DOUBLE, 0, 24, &element);
    MPI_Type_contiguous(count, element, &type);
    MPI_Type_free(&element);
    return committed(type);
}

// Two long blocks, so that the receiver may copy them one by one.
MPI_Datatype two_blocks(int count) {
    MPI_Datatype type;
    MPI_Type_vector(2, count / 2, count / 2 + 1, MPI_DOUBLE, &type);
    return committed(type);
}

// A buffer with gaps, and the bytes of its message.
struct Gaps {
    MPI_Datatype type;
    Bytes buffer, packed;

    explicit Gaps(MPI_Datatype made) : type(made) {
        MPI_Aint lb, extent;
        MPI_Type_get_true_extent(type, &lb, &extent);
        int size = 0, end = 0;
        MPI_Type_size(type, &size);
        buffer.resize(static_cast<std::size_t>(extent));
        packed.resize(static_cast<std::size_t>(size));
        pattern::fill(packed.size(), 0, packed.data(), packed.size());
        MPI_Unpack(packed.data(), size, &end, buffer.data(), 1, type, MPI_COMM_SELF);
    }
    Gaps(const Gaps&) = delete;
    Gaps& operator=(const Gaps&) = delete;
    ~Gaps() { MPI_Type_free(&type); }
};

void send_with_gaps(const Gaps& message, bool waits, const mpitest::Env& env) {
    if (waits) {
        MPI_Send(message.buffer.data(), 1, message.type, 1, 7, env.comm);
        return;
    }
    MPI_Request request;
    MPI_Isend(message.buffer.data(), 1, message.type, 1, 7, env.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void receive_front(const Gaps& message, std::size_t room, bool waits, const mpitest::Env& env) {
    Bytes data(room + 64, 0x5c);
    if (waits) {
        CHECK_ERROR(MPI_Recv(data.data(), as_int(room), MPI_PACKED, 0, 7, env.comm, MPI_STATUS_IGNORE),
                    MPI_ERR_TRUNCATE);
    } else {
        MPI_Request request;
        MPI_Irecv(data.data(), as_int(room), MPI_PACKED, 0, 7, env.comm, &request);
        CHECK_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    }
    CHECK_PATTERN(message.packed.size(), data.data(), room);
    CHECK_UNTOUCHED(0x5c, data.data() + room, 64);
}

}  // namespace

// The sender can pack whole elements only, and the receive ends inside of one.
CASE(send_buffer_with_gaps_fills_a_receive_that_ends_inside_of_an_element) {
    if (mpitest::skipped_on_ob1("it writes past the end of the receive buffer")) return;
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (int n : {20, 500, 2000, 20000, 200000}) {
        for (int layout = 0; layout < 4; ++layout) {
            const Gaps message(layout == 0   ? every_second(n, MPI_DOUBLE)
                               : layout == 1 ? every_second(n, MPI_C_LONG_DOUBLE_COMPLEX)
                               : layout == 2 ? padded(n)
                                             : two_blocks(n));
            const std::size_t bytes = message.packed.size();
            for (std::size_t room : {std::size_t{3}, bytes / 2 + 1, bytes * 5 / 8 + 1, bytes - 1}) {
                for (bool waits : {true, false}) {
                    if (env.rank == 0) send_with_gaps(message, waits, env);
                    else if (env.rank == 1) receive_front(message, room, waits, env);
                    check_alive(env);
                }
            }
        }
    }
}

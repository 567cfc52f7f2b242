// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes: every layout to every layout, at sizes around the thresholds; gaps must stay unchanged.
#include <functional>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

// A layout of `n` ints: the type (for count 1), and the position of int i in memory, in ints from the start of the
// buffer.
struct Shape {
    const char* name;
    std::function<MPI_Datatype(int n)> make;
    std::function<std::size_t(std::size_t i, std::size_t n)> place;
    std::function<std::size_t(std::size_t n)> room;
    std::function<std::size_t(std::size_t n)> origin;  // of the address for MPI, in ints
};

MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

std::size_t none(std::size_t) { return 0; }

std::vector<Shape> shapes() {
    std::vector<Shape> all;
    all.push_back({"contiguous",
                   [](int n) {
                       MPI_Datatype t;
                       MPI_Type_contiguous(n, MPI_INT, &t);
                       return committed(t);
                   },
                   [](std::size_t i, std::size_t) { return i; }, [](std::size_t n) { return n; }, none});
    all.push_back({"vector",
                   [](int n) {
                       MPI_Datatype t;
                       MPI_Type_vector(n, 1, 3, MPI_INT, &t);
                       return committed(t);
                   },
                   [](std::size_t i, std::size_t) { return 3 * i; }, [](std::size_t n) { return 3 * n; }, none});
    // Blocks of 1, 2, 3, 1, 2, 3, … ints with one int between them.
    const auto irregular = [](std::size_t i) { return i + i / 6 * 3 + (i % 6 >= 1) + (i % 6 >= 3); };
    all.push_back({"indexed",
                   [=](int n) {
                       std::vector<int> lengths, at;
                       for (int i = 0, b = 0; i < n; ++b) {
                           lengths.push_back(std::min(n - i, b % 3 + 1));
                           at.push_back(static_cast<int>(irregular(static_cast<std::size_t>(i))));
                           i += lengths.back();
                       }
                       MPI_Datatype t;
                       MPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), MPI_INT, &t);
                       return committed(t);
                   },
                   [=](std::size_t i, std::size_t) { return irregular(i); }, [](std::size_t n) { return 2 * n + 3; },
                   none});
    // From high to low addresses: all displacements but the first are negative.
    all.push_back({"negative lower bound",
                   [](int n) {
                       MPI_Datatype t;
                       MPI_Type_vector(n, 1, -2, MPI_INT, &t);
                       return committed(t);
                   },
                   [](std::size_t i, std::size_t n) { return 2 * (n - 1 - i); }, [](std::size_t n) { return 2 * n; },
                   [](std::size_t n) { return n == 0 ? 0 : 2 * (n - 1); }});
    // Two ints of each four, in a struct with padded extent.
    all.push_back({"struct with gaps",
                   [](int n) {
                       int lengths[2] = {1, 1};
                       MPI_Aint at[2] = {0, 8};
                       MPI_Datatype types[2] = {MPI_INT, MPI_INT}, bare, padded, t;
                       MPI_Type_create_struct(2, lengths, at, types, &bare);
                       MPI_Type_create_resized(bare, 0, 16, &padded);
                       MPI_Datatype parts[2] = {padded, MPI_INT};
                       int counts[2] = {n / 2, n % 2};
                       MPI_Aint places[2] = {0, static_cast<MPI_Aint>(n / 2) * 16};
                       MPI_Type_create_struct(2, counts, places, parts, &t);
                       MPI_Type_free(&bare);
                       MPI_Type_free(&padded);
                       return committed(t);
                   },
                   [](std::size_t i, std::size_t) { return 2 * i; }, [](std::size_t n) { return 2 * n + 2; }, none});
    // Two halves of a buffer with a hole in the middle.
    all.push_back({"two far blocks",
                   [](int n) {
                       int lengths[2] = {n / 2, n - n / 2}, at[2] = {0, n / 2 + 5000};
                       MPI_Datatype t;
                       MPI_Type_indexed(2, lengths, at, MPI_INT, &t);
                       return committed(t);
                   },
                   [](std::size_t i, std::size_t n) { return i < n / 2 ? i : i + 5000; },
                   [](std::size_t n) { return n + 5000; }, none});
    return all;
}

constexpr int kGap = 0x5d5d5d5d;

int value(std::size_t i, std::size_t n) { return static_cast<int>(pattern::word(n, i)); }

std::vector<int> memory(const Shape& shape, std::size_t n, bool filled) {
    std::vector<int> data(shape.room(n) + 1, kGap);
    for (std::size_t i = 0; filled && i < n; ++i) data[shape.place(i, n)] = value(i, n);
    return data;
}

void exchange(const mpitest::Env& env, const Shape& from, const Shape& to, std::size_t n) {
    const Shape& mine = env.rank == 0 ? from : to;
    MPI_Datatype type = mine.make(static_cast<int>(n));
    std::vector<int> data = memory(mine, n, env.rank == 0);
    int* address = data.data() + mine.origin(n);
    if (env.rank == 0) {
        MPI_Send(address, 1, type, 1, 1, env.comm);
    } else {
        MPI_Status status;
        MPI_Recv(address, 1, type, 0, 1, env.comm, &status);
        int count = -1;
        MPI_Get_elements(&status, MPI_INT, &count);
        CHECK_EQ(count, n);
        if (data != memory(to, n, true))
            mpitest::fail(__FILE__, __LINE__,
                          std::string(from.name) + " to " + to.name + ", " + std::to_string(n) +
                              " ints: wrong contents or a gap was written");
    }
    MPI_Type_free(&type);
}

}  // namespace

CASE(every_layout_to_every_layout) {
    if (env.rank > 1) return;
    const std::vector<Shape> all = shapes();
    for (const Shape& from : all)
        for (const Shape& to : all)
            for (std::size_t n : {1, 2, 7, 256, 1000, 1010, 1024, 1025, 8192, 16384, 16385, 32769, 100000})
                exchange(env, from, to, n);
}

CASE(layouts_around_the_thresholds) {
    if (env.rank > 1) return;
    const std::vector<Shape> all = shapes();
    for (std::size_t bytes : sizes::around({4096, 32768, 65536}))
        for (std::size_t from = 0; from < all.size(); ++from)
            if (bytes % 4 == 0) exchange(env, all[from], all[(from + bytes / 4) % all.size()], bytes / 4);
}

CASE(large_noncontiguous_messages) {
    if (env.rank > 1) return;
    const std::vector<Shape> all = shapes();
    exchange(env, all[1], all[0], 2u << 20);
    exchange(env, all[0], all[4], 2u << 20);
    exchange(env, all[2], all[3], 2u << 20);
}

CASE(many_elements_of_a_padded_type) {
    // count > 1 with an extent larger than the data: each element is contiguous, the sequence is not.
    if (env.rank > 1) return;
    MPI_Datatype padded;
    MPI_Type_create_resized(MPI_INT, 0, 12, &padded);
    MPI_Type_commit(&padded);
    for (std::size_t n : {3, 1000, 1024, 20000, 300000}) {
        std::vector<int> data(3 * n, kGap), dense(n);
        for (std::size_t i = 0; i < n; ++i) dense[i] = value(i, n);
        if (env.rank == 0) {
            MPI_Send(dense.data(), static_cast<int>(n), MPI_INT, 1, 1, env.comm);
            MPI_Recv(data.data(), static_cast<int>(n), padded, 1, 2, env.comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data.data(), static_cast<int>(n), padded, 0, 1, env.comm, MPI_STATUS_IGNORE);
            MPI_Send(data.data(), static_cast<int>(n), padded, 0, 2, env.comm);
        }
        for (std::size_t i = 0; i < n; ++i) {
            CHECK_EQ(data[3 * i], value(i, n));
            CHECK_EQ(data[3 * i + 1], kGap);
            CHECK_EQ(data[3 * i + 2], kGap);
        }
    }
    MPI_Type_free(&padded);
}

CASE(types_of_size_zero) {
    if (env.rank > 1) return;
    MPI_Datatype empty, hollow;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_create_resized(empty, 0, 64, &hollow);  // no data, but an extent
    MPI_Type_commit(&empty);
    MPI_Type_commit(&hollow);
    int untouched = kGap, count = -1;
    MPI_Status status;
    for (MPI_Datatype type : {empty, hollow}) {
        if (env.rank == 0) {
            MPI_Send(&untouched, 1000, type, 1, 1, env.comm);
            MPI_Ssend(&untouched, 1, type, 1, 2, env.comm);
        } else {
            MPI_Recv(&untouched, 1, MPI_INT, 0, 1, env.comm, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK_EQ(count, 0);
            MPI_Recv(&untouched, 5, type, 0, 2, env.comm, &status);
            MPI_Get_elements(&status, MPI_INT, &count);
            CHECK_EQ(count, 0);
            CHECK_EQ(untouched, kGap);
        }
    }
    MPI_Type_free(&hollow);
    MPI_Type_free(&empty);
}

CASE(shorter_message_fills_the_front_of_the_type_map) {
    if (env.rank > 1) return;
    for (std::size_t n : {1000, 20000, 200000}) {
        const Shape shape = shapes()[3];
        MPI_Datatype type = shape.make(static_cast<int>(n));
        std::vector<int> data = memory(shape, n, false), dense(n / 3);
        for (std::size_t i = 0; i < n / 3; ++i) dense[i] = value(i, n);
        if (env.rank == 0) {
            MPI_Send(dense.data(), static_cast<int>(n / 3), MPI_INT, 1, 1, env.comm);
        } else {
            MPI_Recv(data.data() + shape.origin(n), 1, type, 0, 1, env.comm, MPI_STATUS_IGNORE);
            for (std::size_t i = 0; i < n; ++i) CHECK_EQ(data[shape.place(i, n)], i < n / 3 ? value(i, n) : kGap);
        }
        MPI_Type_free(&type);
    }
}

CASE(type_may_be_freed_while_its_message_is_under_way) {
    if (env.rank > 1) return;
    constexpr std::size_t n = 100000;
    const Shape shape = shapes()[1];
    MPI_Datatype type = shape.make(n);
    std::vector<int> data = memory(shape, n, env.rank == 0);
    MPI_Request request;
    if (env.rank == 0) MPI_Isend(data.data(), 1, type, 1, 1, env.comm, &request);
    else MPI_Irecv(data.data(), 1, type, 0, 1, env.comm, &request);
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(data == memory(shape, n, true));
}

CASE(packed_data_is_received_as_what_it_was) {
    if (env.rank > 1) return;
    for (std::size_t n : {10, 30000, 200000}) {
        const Shape shape = shapes()[4];
        MPI_Datatype type = shape.make(static_cast<int>(n));
        std::vector<int> data = memory(shape, n, env.rank == 0);
        if (env.rank == 0) {
            int size = 0, position = 0;
            MPI_Pack_size(1, type, env.comm, &size);
            Bytes packed(static_cast<std::size_t>(size));
            MPI_Pack(data.data(), 1, type, packed.data(), size, &position, env.comm);
            MPI_Send(packed.data(), position, MPI_PACKED, 1, 1, env.comm);
        } else {
            MPI_Recv(data.data(), 1, type, 0, 1, env.comm, MPI_STATUS_IGNORE);
            CHECK(data == memory(shape, n, true));
        }
        MPI_Type_free(&type);
    }
}

// Blocks of both buffers are long enough to be copied one by one. If a copy is refused (pml_coop_fault), packets carry the rest, which
// begins inside of an element.
CASE(blocks_that_end_inside_of_the_senders_elements) {
    if (env.rank > 1) return;
    constexpr int kBlocks = 6, kBytes = 100001, kDoubles = kBlocks * kBytes / 24;
    constexpr std::size_t kAll = std::size_t{3} * kDoubles * sizeof(double);
    MPI_Datatype sent, received;
    MPI_Type_vector(3, kDoubles, kDoubles + 1, MPI_DOUBLE, &sent);
    MPI_Type_vector(kBlocks, kBytes, kBytes + 15, MPI_PACKED, &received);
    MPI_Datatype type = committed(env.rank == 0 ? sent : received);
    MPI_Type_free(env.rank == 0 ? &received : &sent);
    for (std::uint64_t key = 0; key < 20; ++key) {
        Bytes packed(std::size_t{kBlocks} * kBytes), buffer(kBlocks * (kBytes + 15), 0x5c);
        int position = 0;
        if (env.rank == 0) {
            pattern::fill(key, 0, packed.data(), kAll);
            MPI_Unpack(packed.data(), static_cast<int>(kAll), &position, buffer.data(), 1, type, env.comm);
            MPI_Send(buffer.data(), 1, type, 1, 1, env.comm);
        } else {
            MPI_Recv(buffer.data(), 1, type, 0, 1, env.comm, MPI_STATUS_IGNORE);
            MPI_Pack(buffer.data(), 1, type, packed.data(), static_cast<int>(packed.size()), &position, env.comm);
            CHECK_PATTERN(key, packed.data(), kAll);
            for (std::size_t i = 1; i < kBlocks; ++i) CHECK_UNTOUCHED(0x5c, &buffer[i * (kBytes + 15) - 15], 15);
        }
    }
    MPI_Type_free(&type);
}

CASE(absolute_addresses_with_mpi_bottom) {
    if (env.rank > 1) return;
    for (std::size_t n : {10, 5000, 200000}) {
        std::vector<int> a(n, kGap), b(n, kGap);
        if (env.rank == 0)
            for (std::size_t i = 0; i < n; ++i) a[i] = value(i, n), b[i] = value(i, n + 1);
        MPI_Aint at[2];
        MPI_Get_address(a.data(), &at[0]);
        MPI_Get_address(b.data(), &at[1]);
        int lengths[2] = {static_cast<int>(n), static_cast<int>(n)};
        MPI_Datatype type;
        MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &type);
        MPI_Type_commit(&type);
        if (env.rank == 0) MPI_Send(MPI_BOTTOM, 1, type, 1, 1, env.comm);
        else MPI_Recv(MPI_BOTTOM, 1, type, 0, 1, env.comm, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
        for (std::size_t i = 0; i < n; ++i) {
            CHECK_EQ(a[i], value(i, n));
            CHECK_EQ(b[i], value(i, n + 1));
        }
    }
}

// SPDX-License-Identifier: BSD-3-Clause
// MPI_Iallgather and MPI_Iallgatherv by coll/rdmaag (pending.h): several calls outstanding, which complete in various
// orders, next to blocking calls and messages, with unequal blocks and gaps, on several communicators.
#include <unistd.h>

#include "pending.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

// An element of six ints with gaps.
class Gappy {
public:
    Gappy() {
        MPI_Datatype vector;
        const auto bytes = static_cast<MPI_Aint>(sizeof(int));
        MPI_Type_vector(3, 2, 3, MPI_INT, &vector);
        MPI_Type_create_resized(vector, 0, 11 * bytes, &shape.type);
        MPI_Type_free(&vector);
        MPI_Type_commit(&shape.type);
        shape.extent = 11 * bytes;
        shape.part_bytes = sizeof(int);
        shape.parts = {0, bytes, 3 * bytes, 4 * bytes, 6 * bytes, 7 * bytes};
    }
    void free() { MPI_Type_free(&shape.type); }
    Shape shape;
};

}  // namespace

CASE(calls_before_the_preparation_are_left_to_others) {
    Variable left_alone("left_not_prepared", "coll_rdmaag");
    const auto before = counters().read();
    MPI_Comm comm = duplicate(env.comm);
    for (std::uint64_t call = 0; call < 3; ++call) Pending(comm, call, equal_blocks(env.size, 100), call == 1).wait();
    check_calls(before, 0);
    CHECK_EQ(left_alone.read(), 3);
    MPI_Comm_free(&comm);
}

CASE(one_to_eight_calls_complete_in_every_way) {
    with_each_number(env, [](Gathering& some) {
        some.equal(8);
        std::uint64_t number = 100;
        for (std::size_t outstanding = 1; outstanding <= 8; ++outstanding)
            for (int way = 0; way < kWays; ++way) {
                const auto before = counters().read();
                Several several;
                for (std::size_t i = 0; i < outstanding; ++i, ++number)
                    start(several, some, number, size_of(i + static_cast<std::size_t>(way)));
                // Ranks complete them in different ways.
                complete(several, static_cast<Way>((way + some.rank()) % kWays));
                check_calls(before, outstanding);
            }
    });
}

CASE(blocks_of_every_kind) {
    Gappy gappy;
    with_each_number(env, [&gappy](Gathering& some) {
        some.equal(8);
        pattern::Random random(static_cast<std::uint64_t>(some.size()));
        std::uint64_t number = 1000;
        for (int round = 0; round < 12; ++round) {
            Several several;
            for (int i = 0; i < 6; ++i, ++number) {
                const bool gaps = random.one_in(2), in_place = random.one_in(3);
                const Shape& shape = random.one_in(3) ? gappy.shape : Shape{};
                const std::size_t most = random.one_in(3) ? 30000 : 300;
                std::vector<Block> blocks;
                int at = 0;
                for (int rank = 0; rank < some.size(); ++rank) {
                    const int count = random.one_in(4) ? 0 : 1 + static_cast<int>(random.below(most) / shape.bytes());
                    if (gaps) at += static_cast<int>(random.below(20));
                    blocks.push_back({count, at});
                    at += count;
                }
                if (gaps) std::swap(blocks.front(), blocks.back());
                several.emplace_back(some.comm(), number, std::move(blocks), true, shape, in_place);
            }
            several.emplace_back(some.comm(), ++number, equal_blocks(some.size(), 200), false, gappy.shape, true);
            complete(several, static_cast<Way>(round % kWays));
        }
    });
    gappy.free();
}

CASE(results_without_bytes_are_left_to_others) {
    Gathering all(duplicate(env.comm));
    all.equal(8);
    const auto before = counters().read();
    Several several;
    start(several, all, 1, 0);
    start(several, all, 2, 5000);
    several.emplace_back(all.comm(), 3, equal_blocks(env.size, 0), true);
    complete(several, kWaitall);
    check_calls(before, 1);
}

// Blocking calls and messages between the non-blocking calls, and many calls in flight.
CASE(blocking_calls_and_messages_go_on_meanwhile) {
    constexpr int kTag = 7;
    with_each_number(env, [](Gathering& some) {
        some.equal(8);
        const int next = (some.rank() + 1) % some.size(), before = (some.rank() + some.size() - 1) % some.size();
        std::vector<unsigned char> sent(30000), received(30000);
        for (std::uint64_t round = 0; round < 6; ++round) {
            Several several;
            std::vector<MPI_Request> messages(2);
            const auto key = [&](int rank) { return pattern::key({round, static_cast<std::uint64_t>(rank)}); };
            pattern::fill(key(some.rank()), 0, sent.data(), sent.size());
            MPI_Irecv(received.data(), 30000, MPI_BYTE, before, kTag, some.comm(), &messages[0]);
            start(several, some, 10 * round, size_of(round));
            MPI_Isend(sent.data(), 30000, MPI_BYTE, next, kTag, some.comm(), &messages[1]);
            some.unequal(equal_blocks(some.size(), 8));
            for (std::uint64_t i = 1; i < 5; ++i) start(several, some, 10 * round + i, size_of(round + i));
            some.unequal(equal_blocks(some.size(), static_cast<int>(size_of(round + 1))));
            if (round % 2 == 0) MPI_Barrier(some.comm());
            complete(several, round % 2 == 0 ? kWaitBackward : kTestany);
            MPI_Waitall(2, messages.data(), MPI_STATUSES_IGNORE);
            CHECK_PATTERN(key(before), received.data(), received.size());
        }
    });
}

CASE(two_communicators_have_calls_outstanding) {
    Gathering first(duplicate(env.comm));
    MPI_Comm turned;
    MPI_Comm_split(env.comm, 0, env.size - env.rank, &turned);
    Gathering second(turned);
    first.equal(8);
    second.equal(8);
    for (std::uint64_t round = 0; round < 8; ++round) {
        Several several;
        for (std::uint64_t i = 0; i < 5; ++i) {
            start(several, first, 10 * round + i, size_of(round + i));
            start(several, second, 10 * round + i, size_of(round + 2 * i));
        }
        complete(several, static_cast<Way>((static_cast<int>(round) + env.rank) % kWays));
    }
}

// The others are up to a window of calls ahead.
CASE(one_rank_is_late) {
    with_each_number(env, [](Gathering& some) {
        some.equal(8);
        std::uint64_t number = 0;
        for (int late = 0; late < some.size(); ++late) {
            Several several;
            for (std::size_t i = 0; i < 12; ++i, ++number) {
                if (some.rank() == late && i % 3 == 0) usleep(500);
                start(several, some, number, size_of(i));
                if (i % 4 == 3) several.front().wait(), several.pop_front();
            }
            complete(several, late % 2 == 0 ? kWaitForward : kWaitany);
        }
    });
}

CASE(requests_are_collective_requests) {
    Gathering all(duplicate(env.comm));
    all.equal(8);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Several several;
    start(several, all, 1, 70000);
    MPI_Request request = several.front().request;
    int flag = 1;
    MPI_Status status;
    if (env.rank == 0) {
        // The others have not begun, so it cannot be complete.
        CHECK_MPI(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
        usleep(1000);
    }
    MPI_Barrier(env.comm);
    for (flag = 0; !flag;) CHECK_MPI(MPI_Request_get_status(request, &flag, &status));
    several.front().wait();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

CASE(communicators_are_duplicated_and_freed_with_calls_outstanding) {
    const int rounds = 30;
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm comm = duplicate(env.comm), twin;
        int mine = env.rank;
        std::vector<int> ranks(static_cast<std::size_t>(env.size));
        for (int i = 0; i < 2; ++i) MPI_Allgather(&mine, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm);
        Several several;
        for (std::uint64_t i = 0; i < 3; ++i)
            several.emplace_back(comm, i, equal_blocks(env.size, static_cast<int>(size_of(i))), false);
        MPI_Comm_dup(comm, &twin);
        MPI_Comm_free(&comm);
        several.emplace_back(twin, 9, equal_blocks(env.size, 10), false);
        MPI_Comm_free(&twin);
        complete(several, static_cast<Way>(round % kWays));
    }
}

// A datatype may be freed while it is in use.
CASE(types_are_freed_with_calls_outstanding) {
    Gathering all(duplicate(env.comm));
    all.equal(8);
    for (std::uint64_t round = 0; round < 10; ++round) {
        Several several;
        Gappy gappy;
        for (std::uint64_t i = 0; i < 3; ++i)
            several.emplace_back(all.comm(), 3 * round + i, equal_blocks(env.size, i == 1 ? 3000 : 4), false,
                                 gappy.shape);
        gappy.free();
        complete(several, static_cast<Way>(round % kWays));
    }
}

// An error of the caller, which the request reports.
CASE(a_block_that_is_too_long_is_cut) {
    if (!left().empty()) return;
    Gathering all(duplicate(env.comm));
    all.equal(8);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const std::size_t bytes = 100;
    Buffer sent(bytes + 10), result(bytes * static_cast<std::size_t>(env.size)), expected = result;
    const std::size_t too_many = env.rank == 0 ? 10 : 0;
    place(Shape{}, sent.data(), bytes + too_many, static_cast<std::uint64_t>(env.rank));
    for (int rank = 0; rank < env.size; ++rank)
        place(Shape{}, expected.data() + static_cast<std::size_t>(rank) * bytes, bytes,
              static_cast<std::uint64_t>(rank));
    MPI_Request request;
    CHECK_MPI(MPI_Iallgather(sent.data(), static_cast<int>(bytes + too_many), MPI_BYTE, result.data(),
                             static_cast<int>(bytes), MPI_BYTE, all.comm(), &request));
    CHECK_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), env.rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    result.check_equals(expected, "block that is too long");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

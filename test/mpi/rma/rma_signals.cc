// SPDX-License-Identifier: BSD-3-Clause
// The end of active epochs, byte for byte: what targets see as soon as their call returns, and what origins may do as soon as
// theirs does. Blocks of many lengths, so that they take different rails, and stripes of them all; the rails may be late.
#include <unistd.h>

#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 90; });

// Of the puts of one origin in an epoch, in a row, and their sum.
constexpr std::size_t kLengths[] = {8, 60'000, 4096, 3, 20'000, 100'000, 5000, 1, 4095, 70'000};
const std::size_t kPart = std::accumulate(std::begin(kLengths), std::end(kLengths), std::size_t{0});

class Group {
public:
    Group(MPI_Comm comm, const std::vector<int>& ranks) {
        MPI_Group all;
        MPI_Comm_group(comm, &all);
        MPI_Group_incl(all, as_int(ranks.size()), ranks.data(), &group_);
        MPI_Group_free(&all);
    }
    ~Group() { MPI_Group_free(&group_); }
    Group(const Group&) = delete;
    MPI_Group get() const { return group_; }

private:
    MPI_Group group_;
};

std::vector<int> all_but(int rank, int processes) {
    std::vector<int> ranks;
    for (int i = 0; i < processes; ++i)
        if (i != rank) ranks.push_back(i);
    return ranks;
}

std::uint64_t key_of_round(int origin, int target, int round) {
    return key_of("signals", static_cast<std::uint64_t>(origin), static_cast<std::uint64_t>(target),
                  static_cast<std::uint64_t>(round));
}

// Each origin has a part of the memory of each target.
std::size_t place_of(int origin) { return as_size(origin) * kPart; }

void put_part(const Window& window, int target, const Bytes& data) {
    std::size_t at = 0;
    for (const std::size_t length : kLengths) {
        CHECK_MPI(MPI_Put(data.data() + at, as_int(length), MPI_BYTE, target,
                          window.at(target, place_of(window.rank) + at), as_int(length), MPI_BYTE, window.win));
        at += length;
    }
}

void check_part(const unsigned char* memory, int origin, int target, int round) {
    check_bytes(memory + place_of(origin), message(key_of_round(origin, target, round), kPart),
                "round " + std::to_string(round) + ", of " + std::to_string(origin));
}

}  // namespace

// All others write to one process, which looks at its memory and exposes it again at once.
CASE(a_target_sees_what_all_origins_put) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const int rounds = rounds_of(60);
    for (int round = 0; round < rounds; ++round) {
        const int target = round / 4 % env.size;
        const std::vector<int> origins = all_but(target, env.size);
        if (env.rank == target) {
            const Group group(env.comm, origins);
            if (round % 3 == 0) usleep(2000);
            CHECK_MPI(MPI_Win_post(group.get(), 0, window.win));
            if (round % 3 == 1) usleep(2000);
            int flag = 0;
            if (round % 2 == 0) CHECK_MPI(MPI_Win_wait(window.win));
            else
                while (flag == 0) CHECK_MPI(MPI_Win_test(window.win, &flag));
            for (const int origin : origins) check_part(window.memory, origin, target, round);
        } else {
            const Group group(env.comm, {target});
            Bytes data = message(key_of_round(env.rank, target, round), kPart);
            CHECK_MPI(MPI_Win_start(group.get(), 0, window.win));
            put_part(window, target, data);
            CHECK_MPI(MPI_Win_complete(window.win));
            std::fill(data.begin(), data.end(), 0xee);  // it is the program's again
        }
    }
    MPI_Barrier(env.comm);
}

// Origins know by a message of the program that the target has posted, so that their signals may come at any time.
CASE(signals_may_come_while_the_target_is_elsewhere) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const int rounds = rounds_of(40);
    for (int round = 0; round < rounds; ++round) {
        const int target = round % env.size;
        const std::vector<int> origins = all_but(target, env.size);
        if (env.rank == target) {
            const Group group(env.comm, origins);
            CHECK_MPI(MPI_Win_post(group.get(), MPI_MODE_NOCHECK, window.win));
            for (const int origin : origins) MPI_Send(nullptr, 0, MPI_BYTE, origin, 3, env.comm);
            usleep(3000);
            CHECK_MPI(MPI_Win_wait(window.win));
            for (const int origin : origins) check_part(window.memory, origin, target, round);
        } else {
            const Group group(env.comm, {target});
            MPI_Recv(nullptr, 0, MPI_BYTE, target, 3, env.comm, MPI_STATUS_IGNORE);
            Bytes data = message(key_of_round(env.rank, target, round), kPart);
            CHECK_MPI(MPI_Win_start(group.get(), MPI_MODE_NOCHECK, window.win));
            put_part(window, target, data);
            CHECK_MPI(MPI_Win_complete(window.win));
            std::fill(data.begin(), data.end(), 0xee);
        }
    }
    MPI_Barrier(env.comm);
}

// The target changes its memory as soon as the epoch is over: an origin must have read it before.
CASE(an_epoch_of_reads_is_over_when_the_origins_have_the_data) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const int rounds = rounds_of(60);
    for (int round = 0; round < rounds; ++round) {
        const int target = round / 3 % env.size;
        const std::vector<int> origins = all_but(target, env.size);
        if (env.rank == target) {
            const Group group(env.comm, origins);
            for (const int origin : origins)
                pattern::fill(key_of_round(origin, target, round), 0, window.memory + place_of(origin), kPart);
            CHECK_MPI(MPI_Win_post(group.get(), 0, window.win));
            CHECK_MPI(MPI_Win_wait(window.win));
            std::memset(window.memory, 0xdd, window.bytes);
        } else {
            const Group group(env.comm, {target});
            Bytes data(kPart);
            CHECK_MPI(MPI_Win_start(group.get(), 0, window.win));
            std::size_t at = 0;
            for (const std::size_t length : kLengths) {
                CHECK_MPI(MPI_Get(data.data() + at, as_int(length), MPI_BYTE, target,
                                  window.at(target, place_of(env.rank) + at), as_int(length), MPI_BYTE, window.win));
                at += length;
            }
            CHECK_MPI(MPI_Win_complete(window.win));
            check_bytes(data.data(), message(key_of_round(env.rank, target, round), kPart), "read");
        }
    }
    MPI_Barrier(env.comm);
}

CASE(puts_reads_and_sums_of_one_epoch) {
    constexpr std::size_t kSums = 500, kRead = 90'000;
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart + kRead + kSums * sizeof(std::int64_t));
    const std::size_t at_read = as_size(env.size) * kPart, at_sums = at_read + kRead;
    const int rounds = rounds_of(40);
    for (int round = 0; round < rounds; ++round) {
        const int target = round % env.size;
        const std::vector<int> origins = all_but(target, env.size);
        if (env.rank == target) {
            const Group group(env.comm, origins);
            pattern::fill(key_of_round(target, target, round), 0, window.memory + at_read, kRead);
            std::memset(window.memory + at_sums, 0, kSums * sizeof(std::int64_t));
            CHECK_MPI(MPI_Win_post(group.get(), 0, window.win));
            CHECK_MPI(MPI_Win_wait(window.win));
            for (const int origin : origins) check_part(window.memory, origin, target, round);
            for (std::size_t i = 0; i < kSums; ++i) {
                std::int64_t sum;
                std::memcpy(&sum, window.memory + at_sums + i * sizeof sum, sizeof sum);
                CHECK_EQ(sum, as_int(i) * (env.size - 1));
            }
            std::memset(window.memory + at_read, 0xdd, kRead);
        } else {
            const Group group(env.comm, {target});
            Bytes data = message(key_of_round(env.rank, target, round), kPart), read(kRead);
            std::vector<std::int64_t> numbers(kSums);
            std::iota(numbers.begin(), numbers.end(), 0);
            CHECK_MPI(MPI_Win_start(group.get(), 0, window.win));
            CHECK_MPI(MPI_Get(read.data(), as_int(kRead), MPI_BYTE, target, window.at(target, at_read), as_int(kRead),
                              MPI_BYTE, window.win));
            put_part(window, target, data);
            CHECK_MPI(MPI_Accumulate(numbers.data(), as_int(kSums), MPI_INT64_T, target, window.at(target, at_sums),
                                     as_int(kSums), MPI_INT64_T, MPI_SUM, window.win));
            CHECK_MPI(MPI_Win_complete(window.win));
            check_bytes(read.data(), message(key_of_round(target, target, round), kRead), "read");
        }
    }
    MPI_Barrier(env.comm);
}

CASE(after_a_fence_each_process_sees_what_the_others_put) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const std::vector<int> others = all_but(env.rank, env.size);
    std::vector<Bytes> data(as_size(env.size));
    const int rounds = rounds_of(40);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (int round = 0; round < rounds; ++round) {
        if (round % 3 == env.rank % 3) usleep(1500);
        for (const int target : others) {
            data[as_size(target)] = message(key_of_round(env.rank, target, round), kPart);
            put_part(window, target, data[as_size(target)]);
        }
        CHECK_MPI(MPI_Win_fence(0, window.win));
        for (Bytes& each : data) std::fill(each.begin(), each.end(), 0xee);
        for (const int origin : others) check_part(window.memory, origin, env.rank, round);
        CHECK_MPI(MPI_Win_fence(0, window.win));
    }
}

// An epoch begins for a process as soon as its fence returns. What it reads then at a process that has not returned yet, a
// third one may have put there over a rail that is late.
CASE(after_a_fence_each_process_reads_at_one_what_another_has_put_there) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const int rounds = rounds_of(40);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (int round = 0; round < rounds; ++round) {
        // To the next one; then each reads at the one before it what the one before that has put there.
        const Bytes data = message(key_of_round(env.rank, next, round), kPart);
        put_part(window, next, data);
        CHECK_MPI(MPI_Win_fence(0, window.win));
        const int writer = (before + env.size - 1) % env.size;
        Bytes read(kPart);
        CHECK_MPI(MPI_Get(read.data(), as_int(kPart), MPI_BYTE, before, window.at(before, place_of(writer)),
                          as_int(kPart), MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_fence(0, window.win));
        check_bytes(read.data(), message(key_of_round(writer, before, round), kPart), "read at a neighbour");
    }
}

// Fences with and without operations, and epochs of other kinds in between, whose ends are numbered together.
CASE(fences_and_other_epochs_take_turns) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPart);
    const int target = 0;
    const std::vector<int> origins = all_but(target, env.size);
    const int rounds = rounds_of(30);
    for (int round = 0; round < rounds; ++round) {
        Bytes data = message(key_of_round(env.rank, target, round), kPart);
        for (int i = 0; i < round % 3; ++i) CHECK_MPI(MPI_Win_fence(0, window.win));
        switch (round % 3) {
        case 0: {
            const Group group(env.comm, env.rank == target ? origins : std::vector<int>{target});
            if (env.rank == target) {
                CHECK_MPI(MPI_Win_post(group.get(), 0, window.win));
                CHECK_MPI(MPI_Win_wait(window.win));
            } else {
                CHECK_MPI(MPI_Win_start(group.get(), 0, window.win));
                put_part(window, target, data);
                CHECK_MPI(MPI_Win_complete(window.win));
            }
            break;
        }
        case 1:
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win));
            if (env.rank != target) put_part(window, target, data);
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
            break;
        default:
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
            if (env.rank != target) put_part(window, target, data);
            CHECK_MPI(MPI_Win_unlock(target, window.win));
            MPI_Barrier(env.comm);
        }
        if (env.rank == target) {
            window.locally([&](const unsigned char* memory) {
                for (const int origin : origins) check_part(memory, origin, target, round);
            });
        }
        MPI_Barrier(env.comm);
    }
}

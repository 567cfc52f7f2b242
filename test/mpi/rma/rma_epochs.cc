// SPDX-License-Identifier: BSD-3-Clause
// What epochs promise: groups of any form between post and wait, exclusion by locks, visibility after flush, several windows
// at a time.
#include <unistd.h>

#include "flushed.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;
Word as_word(int n) { return static_cast<Word>(n); }

Word word_at(const unsigned char* memory, std::size_t i) {
    Word value;
    std::memcpy(&value, memory + i * sizeof(Word), sizeof value);
    return value;
}

void put_word(const Window& window, int target, std::size_t i, const Word& value) {
    CHECK_MPI(
        MPI_Put(&value, 1, MPI_UINT64_T, target, window.at(target, i * sizeof(Word)), 1, MPI_UINT64_T, window.win));
}

MPI_Group group_of(MPI_Comm comm, const std::vector<int>& ranks) {
    MPI_Group all, some;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, as_int(ranks.size()), ranks.data(), &some);
    MPI_Group_free(&all);
    return some;
}

// Who accesses whom in a round; the same in all processes.
class Graph {
public:
    Graph(std::uint64_t seed, int processes) : edges_(as_size(processes), std::vector<bool>(as_size(processes))) {
        pattern::Random random(seed);
        const std::uint64_t density = random.below(5);  // of 4: none, few … all
        for (auto& row : edges_)
            for (std::size_t i = 0; i < row.size(); ++i) row[i] = random.below(4) < density;
        backwards_ = random.one_in(2);
    }
    std::vector<int> targets(int origin) const {
        return ordered([&](std::size_t i) { return edges_[as_size(origin)][i]; });
    }
    std::vector<int> origins(int target) const {
        return ordered([&](std::size_t i) { return edges_[i][as_size(target)]; });
    }

private:
    template <class F>
    std::vector<int> ordered(F wanted) const {
        std::vector<int> all;
        for (std::size_t i = 0; i < edges_.size(); ++i)
            if (wanted(i)) all.push_back(as_int(i));
        if (backwards_) std::reverse(all.begin(), all.end());
        return all;
    }
    std::vector<std::vector<bool>> edges_;
    bool backwards_;
};

}  // namespace

// Rounds follow each other without any other synchronization. Groups may be empty, hold the process itself, and list the
// members in another order.
CASE(post_and_start_for_any_groups) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        const auto n = as_size(size_of(members.comm));
        Window window(flavor, members.comm, n * sizeof(Word));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        std::vector<Word> expected(n, 0);
        for (std::uint64_t round = 1; round <= 60; ++round) {
            const Graph graph(round, window.processes);
            const auto targets = graph.targets(window.rank), origins = graph.origins(window.rank);
            MPI_Group from = group_of(window.comm, origins), to = group_of(window.comm, targets);
            const Word value = round * 100 + as_word(window.rank);
            if ((round + as_word(window.rank)) % 7 == 0) usleep(500);
            CHECK_MPI(MPI_Win_post(from, 0, window.win));
            CHECK_MPI(MPI_Win_start(to, 0, window.win));
            MPI_Group_free(&to);
            for (const int target : targets) put_word(window, target, as_size(window.rank), value);
            CHECK_MPI(MPI_Win_complete(window.win));
            int flag = 0;
            if (round % 2 == 0) CHECK_MPI(MPI_Win_wait(window.win));
            else
                while (flag == 0) CHECK_MPI(MPI_Win_test(window.win, &flag));
            MPI_Group_free(&from);
            for (const int origin : origins) expected[as_size(origin)] = round * 100 + as_word(origin);
            for (std::size_t i = 0; i < n; ++i) CHECK_EQ(word_at(window.memory, i), expected[i]);
        }
        MPI_Barrier(window.comm);
    }
}

// The even ranks only expose, the odd ones only access, then the other way round.
CASE(processes_that_only_post_and_processes_that_only_start) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * sizeof(Word));
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    for (int round = 0; round < 40; ++round) {
        std::vector<int> exposed, others;
        for (int i = 0; i < env.size; ++i) (i % 2 == round % 2 ? exposed : others).push_back(i);
        const bool target = env.rank % 2 == round % 2;
        MPI_Group group = group_of(env.comm, target ? others : exposed);
        const Word value = as_word(round * 100 + env.rank);
        if (target) {
            CHECK_MPI(MPI_Win_post(group, 0, window.win));
            CHECK_MPI(MPI_Win_wait(window.win));
            for (const int origin : others)
                CHECK_EQ(word_at(window.memory, as_size(origin)), as_word(round * 100 + origin));
        } else {
            CHECK_MPI(MPI_Win_start(group, 0, window.win));
            for (const int t : exposed) put_word(window, t, as_size(env.rank), value);
            CHECK_MPI(MPI_Win_complete(window.win));
        }
        MPI_Group_free(&group);
    }
}

CASE(test_is_false_until_the_origin_completes) {
    Window window(Flavor::kCreate, env.comm, sizeof(Word));
    window.reset([](unsigned char* memory) { std::memset(memory, 0, sizeof(Word)); });
    const Word value = 4711;
    for (int round = 0; round < 10; ++round) {
        int flag = 0;
        if (env.rank == 0) {
            MPI_Group one = group_of(env.comm, {1});
            CHECK_MPI(MPI_Win_post(one, 0, window.win));
            for (int i = 0; i < 20; ++i) {
                CHECK_MPI(MPI_Win_test(window.win, &flag));
                CHECK_EQ(flag, 0);
            }
            MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, env.comm);
            while (flag == 0) CHECK_MPI(MPI_Win_test(window.win, &flag));
            CHECK_EQ(word_at(window.memory, 0), value);
            MPI_Group_free(&one);
        } else if (env.rank == 1) {
            MPI_Group zero = group_of(env.comm, {0});
            CHECK_MPI(MPI_Win_start(zero, 0, window.win));
            put_word(window, 0, 0, value);
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE);
            CHECK_MPI(MPI_Win_complete(window.win));
            MPI_Group_free(&zero);
        }
    }
    MPI_Barrier(env.comm);
}

// Each fence makes all of the former epoch visible. The second one keeps the next puts away from those that look.
CASE(fences_follow_each_other) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * sizeof(Word));
    CHECK_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win));
    for (int round = 0; round < 100; ++round) {
        const Word value = as_word(round * 1000 + env.rank);
        for (int t = 0; t < env.size; ++t)
            if ((round + t) % 3 != 0) put_word(window, t, as_size(env.rank), value);
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOPUT, window.win));
        if ((round + env.rank) % 3 != 0)
            for (int i = 0; i < env.size; ++i) CHECK_EQ(word_at(window.memory, as_size(i)), as_word(round * 1000 + i));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPRECEDE, window.win));
    }
    CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
}

namespace {

enum class Flush { kEach, kAll };

// All put to all and flush; the targets look while all locks are still held.
void look_after_flush(const mpitest::Env& env, Flavor flavor, bool lock_all, Flush flush) {
    const Members members(flavor, env.comm);
    constexpr std::size_t kWords = 5000;
    const auto n = as_size(size_of(members.comm));
    Window window(flavor, members.comm, n * kWords * sizeof(Word));
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    if (lock_all) CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int t = 0; t < window.processes && !lock_all; ++t) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, window.win));
    for (std::uint64_t round = 1; round <= 10; ++round) {
        const auto key = [&](int origin) { return key_of("flushed", as_word(origin), round); };
        const Bytes sent = message(key(window.rank), kWords * sizeof(Word));
        for (int t = 0; t < window.processes; ++t) {
            const std::size_t at = as_size(window.rank) * kWords * sizeof(Word);
            CHECK_MPI(MPI_Put(sent.data(), as_int(sent.size()), MPI_BYTE, t, window.at(t, at), as_int(sent.size()),
                              MPI_BYTE, window.win));
            if (flush == Flush::kEach) CHECK_MPI(MPI_Win_flush(t, window.win));
        }
        if (flush == Flush::kAll) CHECK_MPI(MPI_Win_flush_all(window.win));
        MPI_Barrier(window.comm);
        CHECK_MPI(MPI_Win_sync(window.win));
        for (std::size_t i = 0; i < n; ++i)
            CHECK_PATTERN(key(as_int(i)), window.memory + i * kWords * sizeof(Word), kWords * sizeof(Word));
        CHECK_MPI(MPI_Win_sync(window.win));
        MPI_Barrier(window.comm);
    }
    if (lock_all) CHECK_MPI(MPI_Win_unlock_all(window.win));
    for (int t = 0; t < window.processes && !lock_all; ++t) CHECK_MPI(MPI_Win_unlock(t, window.win));
}

}  // namespace

CASE(flush_all_covers_locks_of_single_targets) {
    for (const Flavor flavor : kFlavors) look_after_flush(env, flavor, false, Flush::kAll);
}
CASE(flush_covers_its_target) {
    for (const Flavor flavor : kFlavors) look_after_flush(env, flavor, false, Flush::kEach);
}
CASE(flush_and_flush_all_within_lock_all) {
    for (const Flavor flavor : kFlavors) {
        look_after_flush(env, flavor, true, Flush::kEach);
        look_after_flush(env, flavor, true, Flush::kAll);
    }
}

namespace {

void look_after_messages(const mpitest::Env& env, Flavor flavor, flushed::How how) {
    Window window(flavor, env.comm, flushed::Rounds::bytes(env.size, 1));
    window.reset([&](unsigned char* memory) { std::memset(memory, flushed::kGap, window.bytes); });
    if (how != flushed::How::kUnlock) CHECK_MPI(MPI_Win_lock_all(0, window.win));
    flushed::Rounds(window, env.comm, how, 0, 1).run(2 * rounds_of(10));
    if (how != flushed::How::kUnlock) CHECK_MPI(MPI_Win_unlock_all(window.win));
}

}  // namespace

CASE(targets_find_what_was_flushed_before_a_message) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kDynamic})
        for (const flushed::How how : {flushed::How::kFlush, flushed::How::kFlushAll, flushed::How::kUnlock})
            look_after_messages(env, flavor, how);
}

// Read, add and write are three steps, so that a lost update would be seen.
CASE(exclusive_locks_exclude_each_other) {
    const int rounds = rounds_of(60);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, sizeof(Word));
        window.reset([](unsigned char* memory) { std::memset(memory, 0, sizeof(Word)); });
        for (int i = 0; i < rounds; ++i)
            for (int t = 0; t < window.processes; ++t) {
                Word value = 0;
                CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, window.win));
                CHECK_MPI(MPI_Get(&value, 1, MPI_UINT64_T, t, window.at(t, 0), 1, MPI_UINT64_T, window.win));
                CHECK_MPI(MPI_Win_flush(t, window.win));
                ++value;
                put_word(window, t, 0, value);
                CHECK_MPI(MPI_Win_unlock(t, window.win));
            }
        window.inspect(
            [&](const unsigned char* memory) { CHECK_EQ(word_at(memory, 0), as_word(rounds * window.processes)); });
    }
}

// Writers replace the whole memory; readers, under shared locks of either kind, must never see a mixture.
CASE(shared_locks_exclude_exclusive_ones) {
    constexpr std::size_t kWords = 3000;
    const int rounds = rounds_of(60);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kWords * sizeof(Word));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        pattern::Random random(as_word(window.rank));
        for (int i = 0; i < rounds; ++i) {
            const int t = static_cast<int>(random.below(as_word(window.processes)));
            std::vector<Word> data(kWords, random.next());
            if (random.one_in(3)) {
                CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, window.win));
                CHECK_MPI(
                    MPI_Put(data.data(), kWords, MPI_UINT64_T, t, window.at(t, 0), kWords, MPI_UINT64_T, window.win));
                CHECK_MPI(MPI_Win_unlock(t, window.win));
                continue;
            }
            const bool all = random.one_in(3);
            CHECK_MPI(all ? MPI_Win_lock_all(0, window.win) : MPI_Win_lock(MPI_LOCK_SHARED, t, 0, window.win));
            CHECK_MPI(MPI_Get(data.data(), kWords, MPI_UINT64_T, t, window.at(t, 0), kWords, MPI_UINT64_T, window.win));
            CHECK_MPI(all ? MPI_Win_unlock_all(window.win) : MPI_Win_unlock(t, window.win));
            for (const Word each : data) CHECK_EQ(each, data[0]);
        }
        MPI_Barrier(window.comm);
    }
}

// Some locks at a time, shared so that no order can block, given back in another order.
CASE(locks_of_several_targets_are_taken_and_given_back_in_any_order) {
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * sizeof(Word));
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    pattern::Random random(as_word(env.rank) + 7);
    std::vector<Word> count(as_size(env.size), 0), values(as_size(env.size));
    for (int round = 0; round < 100; ++round) {
        std::vector<int> some;
        for (int t = 0; t < env.size; ++t)
            if (random.one_in(2))
                some.insert(some.begin() + static_cast<std::ptrdiff_t>(random.below(some.size() + 1)), t);
        for (const int t : some) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, window.win));
        for (const int t : some) {
            values[as_size(t)] = ++count[as_size(t)];
            put_word(window, t, as_size(env.rank), values[as_size(t)]);
        }
        std::rotate(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2), some.end());
        for (const int t : some) CHECK_MPI(MPI_Win_unlock(t, window.win));
    }
    std::vector<Word> expected(as_size(env.size));
    MPI_Alltoall(count.data(), 1, MPI_UINT64_T, expected.data(), 1, MPI_UINT64_T, env.comm);
    window.inspect([&](const unsigned char* memory) {
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK_EQ(word_at(memory, i), expected[i]);
    });
}

// Everybody locks two targets in the same order, so that nobody waits for a lock while it holds one that the holder of the
// other one wants. The locks count in the order of the calls, not in that of their first use.
CASE(exclusive_locks_of_several_targets_are_taken_in_the_order_of_the_calls) {
    const int rounds = rounds_of(60);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, sizeof(Word));
        if (window.processes < 2) continue;
        window.reset([](unsigned char* memory) { std::memset(memory, 0, sizeof(Word)); });
        const int locked[] = {0, window.processes - 1};
        for (int i = 0; i < rounds; ++i) {
            const bool last_is_shared = (i + window.rank) % 3 == 0;
            const int type = last_is_shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, locked[0], 0, window.win));
            CHECK_MPI(MPI_Win_lock(type, locked[1], 0, window.win));
            Word values[2];
            for (const int turn : {0, 1}) {
                const std::size_t n = as_size((turn + window.rank) % 2);
                const int t = locked[n];
                CHECK_MPI(MPI_Get(&values[n], 1, MPI_UINT64_T, t, window.at(t, 0), 1, MPI_UINT64_T, window.win));
                CHECK_MPI(MPI_Win_flush(t, window.win));
                ++values[n];
                if (n == 0 || !last_is_shared) put_word(window, t, 0, values[n]);
            }
            for (const int t : locked) CHECK_MPI(MPI_Win_unlock(t, window.win));
        }
        window.inspect([&](const unsigned char* memory) {
            if (window.rank == 0) CHECK_EQ(word_at(memory, 0), as_word(rounds * window.processes));
        });
    }
}

// An epoch of each kind is open at the same time, each in its window.
CASE(epochs_of_several_windows_are_open_at_once) {
    const auto n = as_size(env.size);
    Window fenced(Flavor::kCreate, env.comm, n * sizeof(Word)), posted(Flavor::kAllocate, env.comm, n * sizeof(Word)),
        locked(Flavor::kDynamic, env.comm, n * sizeof(Word)), all(Flavor::kCreate, env.comm, n * sizeof(Word));
    MPI_Group everybody;
    MPI_Comm_group(env.comm, &everybody);
    for (int round = 0; round < 20; ++round) {
        const int next = (env.rank + 1 + round) % env.size;
        const Word value = as_word(round * 1000 + env.rank);
        CHECK_MPI(MPI_Win_fence(0, fenced.win));
        CHECK_MPI(MPI_Win_post(everybody, 0, posted.win));
        CHECK_MPI(MPI_Win_lock_all(0, all.win));
        CHECK_MPI(MPI_Win_start(everybody, 0, posted.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, locked.win));
        put_word(locked, next, as_size(env.rank), value);
        for (int t = 0; t < env.size; ++t)
            for (Window* window : {&fenced, &posted, &all}) put_word(*window, t, as_size(env.rank), value);
        CHECK_MPI(MPI_Win_unlock(next, locked.win));
        CHECK_MPI(MPI_Win_complete(posted.win));
        CHECK_MPI(MPI_Win_unlock_all(all.win));
        CHECK_MPI(MPI_Win_wait(posted.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced.win));
        for (Window* window : {&fenced, &posted, &all})
            window->inspect([&](const unsigned char* memory) {
                for (std::size_t i = 0; i < n; ++i) CHECK_EQ(word_at(memory, i), as_word(round * 1000 + as_int(i)));
            });
        locked.inspect([&](const unsigned char* memory) {
            const int origin = (env.rank + 2 * env.size * 20 - 1 - round) % env.size;
            CHECK_EQ(word_at(memory, as_size(origin)), as_word(round * 1000 + origin));
        });
    }
    MPI_Group_free(&everybody);
}

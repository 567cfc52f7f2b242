// SPDX-License-Identifier: BSD-3-Clause
// Accumulates of all processes to the same memory at a time: no update is lost, each value is fetched once, calls of one
// process to one place keep their order. Locks and lists made of them.
#include <algorithm>

#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;
Word as_word(int n) { return static_cast<Word>(n); }
constexpr auto kWord = sizeof(Word);

bool no_compare_and_swap() {
    return mpitest::skipped_on_ob1("compare_and_swap of osc/rdma over btl/vader sends to an endpoint that is null");
}

Word word_at(const unsigned char* memory, std::size_t i) {
    Word value;
    std::memcpy(&value, memory + i * kWord, kWord);
    return value;
}
void clear(Window& window) {
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
}

// Reads or replaces a word atomically, and returns the old one.
Word fetch(const Window& window, int target, std::size_t i, MPI_Op op, Word value = 0) {
    Word old = 0;
    CHECK_MPI(MPI_Fetch_and_op(&value, &old, MPI_UINT64_T, target, window.at(target, i * kWord), op, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    return old;
}
Word swap_if(const Window& window, int target, std::size_t i, Word compared, Word value) {
    Word old = 0;
    CHECK_MPI(
        MPI_Compare_and_swap(&value, &compared, &old, MPI_UINT64_T, target, window.at(target, i * kWord), window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    return old;
}

// Each number from 0 must have been fetched exactly once, by any process.
void check_each_number_once(MPI_Comm comm, const std::vector<Word>& mine) {
    std::vector<Word> all(mine.size() * as_size(size_of(comm)));
    MPI_Allgather(mine.data(), as_int(mine.size()), MPI_UINT64_T, all.data(), as_int(mine.size()), MPI_UINT64_T, comm);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQ(all[i], i);
}

}  // namespace

CASE(counters_give_each_number_once) {
    const int rounds = rounds_of(200);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 2 * kWord);
        for (int target = 0; target < window.processes; ++target) {
            clear(window);
            std::vector<Word> numbers;
            CHECK_MPI(MPI_Win_lock_all(0, window.win));
            for (int i = 0; i < rounds; ++i) numbers.push_back(fetch(window, target, 1, MPI_SUM, 1));
            CHECK_MPI(MPI_Win_unlock_all(window.win));
            check_each_number_once(window.comm, numbers);
        }
    }
}

// Many outstanding at a time, flushed together.
CASE(counters_with_many_calls_outstanding) {
    const std::size_t rounds = as_size(rounds_of(1000));
    Window window(Flavor::kCreate, env.comm, kWord);
    for (const bool exclusive : {false, true}) {
        clear(window);
        const Word one = 1;
        std::vector<Word> numbers(rounds, ~Word{0});
        CHECK_MPI(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window.win));
        for (Word& number : numbers)
            CHECK_MPI(MPI_Fetch_and_op(&one, &number, MPI_UINT64_T, 0, window.at(0, 0), MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_unlock(0, window.win));
        CHECK(std::is_sorted(numbers.begin(), numbers.end()));
        if (exclusive) CHECK_EQ(numbers.back() - numbers.front(), rounds - 1);
        check_each_number_once(env.comm, numbers);
    }
}

// Calls and counts of every kind work on the same memory: none may bypass the others.
namespace {

template <class T>
void mix(const mpitest::Env& env, Flavor flavor, MPI_Datatype type) {
    constexpr int kNumber = 200;
    const Members members(flavor, env.comm);
    Window window(flavor, members.comm, kNumber * sizeof(T));
    clear(window);
    const std::vector<T> ones(kNumber, 1);
    std::vector<T> got(kNumber), last(kNumber, 0);
    std::vector<int> added(kNumber, 0);
    pattern::Random random(as_word(window.rank) + 3);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int i = 0; i < rounds_of(300); ++i) {
        constexpr int kCounts[] = {1, 2, 8, 33, kNumber};
        const int count = kCounts[random.below(std::size(kCounts))];
        const int at = static_cast<int>(random.below(as_word(kNumber - count + 1)));
        const MPI_Aint place = window.at(0, as_size(at) * sizeof(T));
        const auto kind = random.below(3);
        const int n = kind == 2 ? 1 : count;
        for (int k = at; k < at + n; ++k) ++added[as_size(k)];
        if (kind == 0) {
            CHECK_MPI(MPI_Accumulate(ones.data(), n, type, 0, place, n, type, MPI_SUM, window.win));
            continue;
        }
        if (kind == 1)
            CHECK_MPI(
                MPI_Get_accumulate(ones.data(), n, type, got.data(), n, type, 0, place, n, type, MPI_SUM, window.win));
        else CHECK_MPI(MPI_Fetch_and_op(ones.data(), got.data(), type, 0, place, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_flush(0, window.win));
        // Values only grow, and hold all that this process has added before.
        for (int k = 0; k < n; ++k) {
            CHECK(got[as_size(k)] >= last[as_size(at + k)]);
            CHECK(got[as_size(k)] >= static_cast<T>(added[as_size(at + k)] - 1));
            last[as_size(at + k)] = got[as_size(k)];
        }
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    std::vector<int> sums(kNumber);
    MPI_Allreduce(added.data(), sums.data(), kNumber, MPI_INT, MPI_SUM, window.comm);
    window.inspect([&](const unsigned char* memory) {
        for (int k = 0; k < kNumber && window.rank == 0; ++k) {
            T value;
            std::memcpy(&value, memory + as_size(k) * sizeof(T), sizeof value);
            CHECK_EQ(value, sums[as_size(k)]);
        }
    });
}

}  // namespace

CASE(calls_of_every_kind_and_count_update_the_same_memory) {
    for (const Flavor flavor : kFlavors) {
        mix<std::int64_t>(env, flavor, MPI_INT64_T);
        mix<std::int32_t>(env, flavor, MPI_INT32_T);
        mix<std::int16_t>(env, flavor, MPI_INT16_T);
        mix<double>(env, flavor, MPI_DOUBLE);
        mix<float>(env, flavor, MPI_FLOAT);
    }
}

// In active epochs, and in one epoch from all processes.
CASE(calls_in_active_epochs_update_the_same_memory) {
    constexpr int kNumber = 300;
    const std::vector<Word> ones(kNumber, 1);
    std::vector<std::vector<Word>> got(20, std::vector<Word>(kNumber));
    for (const Sync sync : {Sync::kFence, Sync::kPscw}) {
        Window window(Flavor::kCreate, env.comm, kNumber * kWord);
        clear(window);
        Epoch epoch(sync, window, false);
        epoch.run(
            [&](int target) {
                if (target != 0) return;
                for (std::size_t i = 0; i < 20; ++i) {
                    const int n = i % 3 == 0 ? kNumber : 1;
                    if (i % 2 == 0)
                        CHECK_MPI(MPI_Get_accumulate(ones.data(), n, MPI_UINT64_T, got[i].data(), n, MPI_UINT64_T, 0,
                                                     window.at(0, 0), n, MPI_UINT64_T, MPI_SUM, window.win));
                    else
                        CHECK_MPI(MPI_Accumulate(ones.data(), n, MPI_UINT64_T, 0, window.at(0, 0), n, MPI_UINT64_T,
                                                 MPI_SUM, window.win));
                }
            },
            [](int) {});
        // The calls of a process are in order: the first element grows with each.
        for (std::size_t i = 2; i < 20; i += 2) CHECK(got[i][0] >= got[i - 2][0] + 2);
        window.inspect([&](const unsigned char* memory) {
            for (std::size_t i = 0; i < kNumber && env.rank == 0; ++i)
                CHECK_EQ(word_at(memory, i), as_word(env.size) * (i == 0 ? 20 : 7));
        });
    }
}

// Without a flush between them: each sees and overwrites what the calls before it have made.
CASE(calls_to_the_same_place_keep_their_order) {
    constexpr std::size_t kNumber = 4000;
    const int next = (env.rank + 1) % env.size;
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, kNumber * kWord);
        for (const Sync sync : {Sync::kLockShared, Sync::kFence, Sync::kPscw}) {
            clear(window);
            constexpr int kRounds = 12;
            std::vector<std::vector<Word>> all, seen;
            for (Word i = 0; i < kRounds; ++i) {
                all.emplace_back(kNumber, 10 * i + 10);
                seen.emplace_back(kNumber, 0);
            }
            std::vector<Word> single(kRounds, 0), replaced(kRounds, 0), values(kRounds, 0);
            Epoch epoch(sync, window, false);
            epoch.run(
                [&](int target) {
                    if (target != next) return;
                    const int n = kNumber;
                    const MPI_Aint first = window.at(next, 0), other = window.at(next, 777 * kWord);
                    for (std::size_t i = 0; i < kRounds; ++i) {
                        const MPI_Win win = window.win;
                        const MPI_Datatype type = MPI_UINT64_T;
                        values[i] = 10 * i + 15;
                        // Write; read one; add to one, which is a read and a write; replace one; read all.
                        CHECK_MPI(MPI_Accumulate(all[i].data(), n, type, next, first, n, type, MPI_REPLACE, win));
                        CHECK_MPI(MPI_Fetch_and_op(nullptr, &single[i], type, next, other, MPI_NO_OP, win));
                        CHECK_MPI(MPI_Accumulate(&values[i], 1, type, next, other, 1, type, MPI_SUM, win));
                        CHECK_MPI(MPI_Fetch_and_op(&values[i], &replaced[i], type, next, other, MPI_REPLACE, win));
                        CHECK_MPI(MPI_Get_accumulate(nullptr, 0, type, seen[i].data(), n, type, next, first, n, type,
                                                     MPI_NO_OP, win));
                    }
                },
                [](int) {});
            for (std::size_t i = 0; i < kRounds; ++i) {
                CHECK_EQ(single[i], all[i][0]);
                CHECK_EQ(replaced[i], all[i][0] + values[i]);
                for (std::size_t k = 0; k < kNumber; ++k) CHECK_EQ(seen[i][k], k == 777 ? values[i] : all[i][0]);
            }
            window.inspect([&](const unsigned char* memory) {
                for (std::size_t k = 0; k < kNumber; ++k)
                    CHECK_EQ(word_at(memory, k), k == 777 ? values.back() : all.back()[0]);
            });
        }
    }
}

// The hints change nothing in the result of programs that keep to them.
CASE(hints_on_accumulates) {
    for (const char* ordering : {"none", "rar,war", "rar,raw,war,waw"})
        for (const char* ops : {"same_op", "same_op_no_op"}) {
            MPI_Info info;
            MPI_Info_create(&info);
            MPI_Info_set(info, "accumulate_ordering", ordering);
            MPI_Info_set(info, "accumulate_ops", ops);
            Window window(Flavor::kCreate, env.comm, 3 * kWord, 8, info);
            MPI_Info_free(&info);
            clear(window);
            const Word values[] = {1, 2, 3};
            for (int i = 0; i < rounds_of(100); ++i)
                for (int t = 0; t < env.size; ++t) {
                    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, window.win));
                    CHECK_MPI(MPI_Accumulate(values, 3, MPI_UINT64_T, t, 0, 3, MPI_UINT64_T, MPI_SUM, window.win));
                    CHECK_MPI(MPI_Accumulate(values, 1, MPI_UINT64_T, t, 2, 1, MPI_UINT64_T, MPI_SUM, window.win));
                    CHECK_MPI(MPI_Win_unlock(t, window.win));
                }
            window.inspect([&](const unsigned char* memory) {
                const Word times = as_word(rounds_of(100) * env.size);
                CHECK_EQ(word_at(memory, 0), times);
                CHECK_EQ(word_at(memory, 1), 2 * times);
                CHECK_EQ(word_at(memory, 2), 4 * times);
            });
        }
}

CASE(counters_by_compare_and_swap) {
    if (no_compare_and_swap()) return;
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kWord);
        clear(window);
        std::vector<Word> numbers;
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (int i = 0; i < rounds_of(100); ++i) {
            Word seen = fetch(window, 0, 0, MPI_NO_OP), old;
            while ((old = swap_if(window, 0, 0, seen, seen + 1)) != seen) seen = old;
            numbers.push_back(seen);
        }
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        check_each_number_once(window.comm, numbers);
    }
}

// The queue lock of MPI's own example: word 0 of rank 0 is the tail, the others are `next` and `blocked` of each process.
CASE(a_queue_lock_protects_what_is_not_atomic) {
    if (no_compare_and_swap()) return;
    constexpr std::size_t kTail = 0, kNext = 1, kBlocked = 2, kCounter = 3;
    Window lock(Flavor::kAllocate, env.comm, 4 * kWord);
    clear(lock);
    const Word me = as_word(env.rank) + 1;
    const int rounds = rounds_of(40);
    CHECK_MPI(MPI_Win_lock_all(0, lock.win));
    for (int i = 0; i < rounds; ++i) {
        fetch(lock, env.rank, kBlocked, MPI_REPLACE, 1);
        fetch(lock, env.rank, kNext, MPI_REPLACE, 0);
        const Word before = fetch(lock, 0, kTail, MPI_REPLACE, me);
        if (before != 0) {
            fetch(lock, static_cast<int>(before) - 1, kNext, MPI_REPLACE, me);
            while (fetch(lock, env.rank, kBlocked, MPI_NO_OP) != 0) continue;
        }
        Word counter = 0;
        CHECK_MPI(MPI_Get(&counter, 1, MPI_UINT64_T, 0, lock.at(0, kCounter * kWord), 1, MPI_UINT64_T, lock.win));
        CHECK_MPI(MPI_Win_flush(0, lock.win));
        ++counter;
        CHECK_MPI(MPI_Put(&counter, 1, MPI_UINT64_T, 0, lock.at(0, kCounter * kWord), 1, MPI_UINT64_T, lock.win));
        CHECK_MPI(MPI_Win_flush(0, lock.win));
        Word after = fetch(lock, env.rank, kNext, MPI_NO_OP);
        if (after == 0) {
            if (swap_if(lock, 0, kTail, me, 0) == me) continue;
            while ((after = fetch(lock, env.rank, kNext, MPI_NO_OP)) == 0) continue;
        }
        fetch(lock, static_cast<int>(after) - 1, kBlocked, MPI_REPLACE, 0);
    }
    CHECK_MPI(MPI_Win_unlock_all(lock.win));
    lock.inspect([&](const unsigned char* memory) {
        if (env.rank == 0) CHECK_EQ(word_at(memory, kCounter), as_word(rounds * env.size));
    });
}

// Every process puts elements of its own, attached one by one, at the head of a list that begins at rank 0. A pointer is
// an address with the rank in its highest bits.
CASE(a_list_of_attached_elements_loses_none) {
    if (no_compare_and_swap()) return;
    struct Element {
        Word next, value;
    };
    const int elements = rounds_of(30);
    Window list(Flavor::kDynamic, env.comm, kWord);
    clear(list);
    std::vector<Element> mine(as_size(elements));
    CHECK_MPI(MPI_Win_lock_all(0, list.win));
    for (int i = 0; i < elements; ++i) {
        Element& one = mine[as_size(i)];
        one = {0, as_word(env.rank * elements + i)};
        CHECK_MPI(MPI_Win_attach(list.win, &one, sizeof one));
        MPI_Aint address;
        MPI_Get_address(&one, &address);
        const Word pointer = (as_word(env.rank) + 1) << 48 | static_cast<Word>(address);
        CHECK_EQ(static_cast<Word>(address) >> 48, 0);
        for (Word head = fetch(list, 0, 0, MPI_NO_OP);;) {
            Word ignored;
            CHECK_MPI(MPI_Fetch_and_op(&head, &ignored, MPI_UINT64_T, env.rank, address, MPI_REPLACE, list.win));
            CHECK_MPI(MPI_Win_flush(env.rank, list.win));
            const Word seen = swap_if(list, 0, 0, head, pointer);
            if (seen == head) break;
            head = seen;
        }
    }
    MPI_Barrier(env.comm);
    std::vector<int> found(as_size(elements * env.size), 0);
    for (Word at = fetch(list, 0, 0, MPI_NO_OP); at != 0;) {
        Element one;
        const int owner = static_cast<int>(at >> 48) - 1;
        CHECK(owner >= 0 && owner < env.size);
        CHECK_MPI(
            MPI_Get(&one, 2, MPI_UINT64_T, owner, static_cast<MPI_Aint>(at << 16 >> 16), 2, MPI_UINT64_T, list.win));
        CHECK_MPI(MPI_Win_flush(owner, list.win));
        CHECK(one.value < found.size());
        CHECK_EQ(++found[one.value], 1);
        at = one.next;
    }
    CHECK_EQ(std::count(found.begin(), found.end(), 1), elements * env.size);
    CHECK_MPI(MPI_Win_unlock_all(list.win));
    MPI_Barrier(env.comm);
    for (Element& one : mine) CHECK_MPI(MPI_Win_detach(list.win, &one));
}

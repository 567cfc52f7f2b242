// SPDX-License-Identifier: BSD-3-Clause
// Many short accumulates in one passive epoch, which a component may collect: each takes effect once, in the order of the
// calls, no later than the flush or unlock, whatever comes between them.
#include <cstdio>
#include <memory>

#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;
constexpr auto kWord = sizeof(Word);
constexpr Sync kSyncs[] = {Sync::kLockExclusive,  Sync::kLockShared, Sync::kLockNoCheck, Sync::kLockFlush,
                           Sync::kLockFlushLocal, Sync::kLocks,      Sync::kLockAll,     Sync::kLockAllNoCheck,
                           Sync::kFlush,          Sync::kFlushLocal, Sync::kFlushAll,    Sync::kFlushLocalAll};
constexpr Flavor kQueueing[] = {Flavor::kCreate, Flavor::kAllocate, Flavor::kDynamic};

// The words of each process that belong to this one, and the operations on them.
class Words {
public:
    Words(const Window& window, std::size_t words, std::uint64_t seed)
        : window_(window), words_(words), random_(seed + as_size(window.rank)),
          contents_(as_size(window.processes), std::vector<Word>(words, 0)) {}

    // An accumulate of a few words that may overlap with those before it. The origin's memory is overwritten at once.
    void accumulate(int target, std::size_t most) {
        const std::size_t n = 1 + random_.below(most), at = random_.below(words_ - n + 1);
        accumulate(target, at, n, random_.below(std::size(kOps)));
    }
    void accumulate(int target, std::size_t at, std::size_t n, std::size_t op) {
        std::vector<Word> sent(n);
        for (Word& each : sent) each = random_.next();
        MPI_Request request;
        const int count = as_int(n);
        const MPI_Aint there = place(target, at);
        // The origin's buffer may be reused when the request is complete.
        CHECK_MPI(MPI_Raccumulate(sent.data(), count, MPI_UINT64_T, target, there, count, MPI_UINT64_T, kOps[op],
                                  window_.win, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (std::size_t i = 0; i < n; ++i) change(contents_[as_size(target)][at + i], sent[i], op);
    }
    // Without a flush: it must find what the accumulates before it have made.
    void fetch(int target) {
        const std::size_t at = random_.below(words_);
        const Word sent = random_.next();
        Word found = 0, &word = contents_[as_size(target)][at], before = word;
        switch (random_.below(3)) {
        case 0:
            CHECK_MPI(MPI_Fetch_and_op(&sent, &found, MPI_UINT64_T, target, place(target, at), MPI_SUM, window_.win));
            word += sent;
            break;
        case 1:
            CHECK_MPI(MPI_Get_accumulate(&sent, 1, MPI_UINT64_T, &found, 1, MPI_UINT64_T, target, place(target, at), 1,
                                         MPI_UINT64_T, MPI_BXOR, window_.win));
            word ^= sent;
            break;
        default:
            CHECK_MPI(
                MPI_Compare_and_swap(&sent, &before, &found, MPI_UINT64_T, target, place(target, at), window_.win));
            word = sent;
        }
        CHECK_MPI(MPI_Win_flush_local(target, window_.win));
        CHECK_EQ(found, before);
    }
    void compare_after_flush(int target) {
        std::vector<Word> found(words_);
        CHECK_MPI(MPI_Win_flush(target, window_.win));
        CHECK_MPI(MPI_Get(found.data(), as_int(words_), MPI_UINT64_T, target, place(target, 0), as_int(words_),
                          MPI_UINT64_T, window_.win));
        CHECK_MPI(MPI_Win_flush(target, window_.win));
        for (std::size_t i = 0; i < words_; ++i) CHECK_EQ(found[i], contents_[as_size(target)][i]);
    }
    // Collective, outside of epochs: the owners compare their memory.
    void compare(Window& window) const {
        std::vector<Word> sent, expected(words_ * as_size(window.processes));
        for (const auto& each : contents_) sent.insert(sent.end(), each.begin(), each.end());
        MPI_Alltoall(sent.data(), as_int(words_), MPI_UINT64_T, expected.data(), as_int(words_), MPI_UINT64_T,
                     window.comm);
        window.inspect([&](const unsigned char* memory) {
            for (std::size_t i = 0; i < expected.size(); ++i) {
                Word word;
                std::memcpy(&word, memory + i * kWord, kWord);
                CHECK_EQ(word, expected[i]);
            }
        });
    }

private:
    static inline const MPI_Op kOps[] = {MPI_SUM, MPI_PROD, MPI_BXOR, MPI_MAX, MPI_REPLACE};
    static void change(Word& word, Word by, std::size_t op) {
        switch (op) {
        case 0: word += by; break;
        case 1: word *= by; break;
        case 2: word ^= by; break;
        case 3: word = std::max(word, by); break;
        default: word = by;
        }
    }
    MPI_Aint place(int target, std::size_t word) const {
        return window_.at(target, (as_size(window_.rank) * words_ + word) * kWord);
    }

    const Window& window_;
    const std::size_t words_;
    pattern::Random random_;
    std::vector<std::vector<Word>> contents_;  // by process
};

void clear(Window& window) {
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
}

Word word_at(const unsigned char* memory, std::size_t i) {
    Word word;
    std::memcpy(&word, memory + i * kWord, kWord);
    return word;
}

bool has_argument(const char* wanted) {
    const auto& arguments = mpitest::settings().arguments;
    return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
}

// With `slow`: each message takes very long, so that the time of an operation is that of its round trips.
bool is_slow() { return has_argument("slow"); }

// The least time of some rounds of start(), from rank 0 to one or more others, and a flush of all.
template <class F>
double time_of(const Window& window, F start) {
    double least = 1e9;
    for (int round = 0; round < 4; ++round) {
        start();
        const double begin = MPI_Wtime();
        CHECK_MPI(MPI_Win_flush_all(window.win));
        // The first round connects.
        if (round > 0) least = std::min(least, MPI_Wtime() - begin);
    }
    return least;
}

}  // namespace

CASE(overlapping_ones_take_effect_in_the_order_of_the_calls) {
    constexpr std::size_t kWords = 60;
    for (const Flavor flavor : kQueueing)
        for (const Sync sync : kSyncs) {
            Window window(flavor, env.comm, kWords * kWord * as_size(env.size));
            clear(window);
            Words words(window, kWords, 5);
            Epoch epoch(sync, window, false);
            epoch.run(
                [&](int target) {
                    for (int i = 0; i < 64; ++i) words.accumulate(target, 12);
                },
                [](int) {});
            words.compare(window);
        }
}

CASE(fetching_ones_find_those_that_wait) {
    constexpr std::size_t kWords = 30;
    for (const Flavor flavor : kQueueing) {
        Window window(flavor, env.comm, kWords * kWord * as_size(env.size));
        clear(window);
        Words words(window, kWords, 6);
        pattern::Random random(static_cast<Word>(env.rank) + 9);
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (int i = 0; i < rounds_of(400); ++i) {
            const int target = static_cast<int>(random.below(static_cast<Word>(env.size)));
            for (Word n = random.below(6); n > 0; --n) words.accumulate(target, 6);
            if (random.one_in(3)) words.compare_after_flush(target);
            else words.fetch(target);
        }
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        words.compare(window);
    }
}

// Their results are there when MPI promises that, also if they have waited for each other.
CASE(many_fetching_ones_have_their_results) {
    constexpr std::size_t kFetches = 300, kWords = 4;
    for (const Flavor flavor : kQueueing)
        for (const Sync sync : kSyncs) {
            Window window(flavor, env.comm, kWords * kWord * as_size(env.size));
            clear(window);
            std::vector<std::vector<Word>> found(as_size(env.size), std::vector<Word>(kFetches * 2, 77));
            const auto place = [&](int target, std::size_t word) {
                return window.at(target, (as_size(env.rank) * kWords + word) * kWord);
            };
            const auto start = [&](int target) {
                std::vector<Word>& results = found[as_size(target)];
                for (std::size_t i = 0; i < kFetches; ++i) {
                    Word* const to = &results[2 * i];
                    const Word by[2] = {1, i};
                    if (i % 3 == 0)
                        CHECK_MPI(
                            MPI_Fetch_and_op(by, to, MPI_UINT64_T, target, place(target, 0), MPI_SUM, window.win));
                    else if (i % 3 == 1)
                        CHECK_MPI(MPI_Get_accumulate(by, 2, MPI_UINT64_T, to, 2, MPI_UINT64_T, target, place(target, 0),
                                                     2, MPI_UINT64_T, MPI_SUM, window.win));
                    else
                        CHECK_MPI(MPI_Fetch_and_op(&by[1], to, MPI_UINT64_T, target, place(target, 1), MPI_REPLACE,
                                                   window.win));
                }
            };
            const auto check = [&](int target) {
                std::vector<Word>& results = found[as_size(target)];
                Word first = 0, second = 0;
                for (std::size_t i = 0; i < kFetches; ++i) {
                    CHECK_EQ(results[2 * i], i % 3 == 2 ? second : first);
                    CHECK_EQ(results[2 * i + 1], i % 3 == 1 ? second : 77);
                    if (i % 3 != 2) ++first;
                    if (i % 3 == 1) second += i;
                    if (i % 3 == 2) second = i;
                }
            };
            Epoch(sync, window, false).run(start, check);
            window.inspect([&](const unsigned char* memory) {
                for (std::size_t i = 0; i < as_size(env.size); ++i)
                    CHECK_EQ(word_at(memory, i * kWords), kFetches * 2 / 3);
            });
        }
}

// Single words far from each other, and too many bytes, before any flush; long ones between them.
CASE(more_than_any_queue_holds) {
    constexpr std::size_t kWords = 6000;
    Window window(Flavor::kAllocate, env.comm, kWords * kWord * as_size(env.size));
    clear(window);
    Words words(window, kWords, 7);
    const int next = (env.rank + 1) % env.size;
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int i = 0; i < rounds_of(3000); ++i) words.accumulate(next, 1);
    words.compare_after_flush(next);
    for (int i = 0; i < rounds_of(1000); ++i) words.accumulate(next, i % 10 == 0 ? 5000 : 512);
    words.compare_after_flush(next);
    for (std::size_t i = 0; i < kWords; i += 100) words.accumulate(next, i, 1, i % 5);
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    words.compare(window);
}

CASE(all_add_to_the_same_elements) {
    constexpr int kNumber = 16;
    const int rounds = rounds_of(300);
    const std::vector<double> ones(kNumber, 1);
    for (const Flavor flavor : kQueueing)
        for (const int apart : {1, 3, 40}) {
            MPI_Datatype spread;
            MPI_Type_vector(kNumber, 1, apart, MPI_DOUBLE, &spread);
            MPI_Type_commit(&spread);
            Window window(flavor, env.comm, static_cast<std::size_t>(kNumber * apart) * sizeof(double));
            clear(window);
            const double last = ones[0];
            CHECK_MPI(MPI_Win_lock_all(0, window.win));
            for (int i = 0; i < rounds; ++i) {
                CHECK_MPI(MPI_Accumulate(ones.data(), kNumber, MPI_DOUBLE, 0, window.at(0, 0), 1, spread, MPI_SUM,
                                         window.win));
                CHECK_MPI(MPI_Accumulate(&last, 1, MPI_DOUBLE, 0, window.at(0, 0), 1, MPI_DOUBLE, MPI_SUM, window.win));
                if (i % 7 == env.rank) CHECK_MPI(MPI_Win_flush(0, window.win));
            }
            MPI_Type_free(&spread);
            CHECK_MPI(MPI_Win_unlock_all(window.win));
            window.inspect([&](const unsigned char* memory) {
                if (env.rank != 0) return;
                for (int i = 0; i < kNumber * apart; ++i) {
                    double found;
                    std::memcpy(&found, memory + as_size(i) * sizeof found, sizeof found);
                    const int each = i % apart == 0 ? rounds * env.size : 0;
                    CHECK_EQ(found, i == 0 ? 2 * each : each);
                }
            });
        }
}

// Elements of several types in one queue, pairs with gaps among them. What lies between them stays.
CASE(elements_of_several_types_leave_gaps_alone) {
    struct Mixed {
        std::int8_t small;
        char gap1[3];
        std::int32_t number;
        struct {
            short value;
            int index;
        } least;
        char gap2[8];
        struct {
            double value;
            int index;
        } most;
        float real;
        char gap3[12];
    };
    const int next = (env.rank + 1) % env.size;
    for (const Flavor flavor : kQueueing) {
        Window window(flavor, env.comm, 8 * sizeof(Mixed));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0x11, window.bytes); });
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        const auto add = [&](auto value, MPI_Datatype type, std::size_t at, MPI_Op op) {
            CHECK_MPI(MPI_Accumulate(&value, 1, type, next, window.at(next, at), 1, type, op, window.win));
        };
        struct {
            short value;
            int index;
        } least{};
        struct {
            double value;
            int index;
        } most{};
        for (std::size_t i = 0; i < 8; ++i) {
            const std::size_t at = i * sizeof(Mixed);
            for (const int n : {5, 2, 7}) {
                add(static_cast<std::int8_t>(n), MPI_INT8_T, at + offsetof(Mixed, small), MPI_SUM);
                add(std::int32_t{n}, MPI_INT32_T, at + offsetof(Mixed, number), n == 5 ? MPI_REPLACE : MPI_PROD);
                least.value = static_cast<short>(-n), least.index = n;
                add(least, MPI_SHORT_INT, at + offsetof(Mixed, least), MPI_MINLOC);
                most.value = 1000.0 * n, most.index = n;
                add(most, MPI_DOUBLE_INT, at + offsetof(Mixed, most), MPI_MAXLOC);
                add(static_cast<float>(n), MPI_FLOAT, at + offsetof(Mixed, real), n == 5 ? MPI_REPLACE : MPI_SUM);
            }
        }
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        Bytes expected(window.bytes, 0x11);
        const auto store = [&](auto value, std::size_t at) { std::memcpy(&expected[at], &value, sizeof value); };
        for (std::size_t i = 0; i < 8; ++i) {
            const std::size_t at = i * sizeof(Mixed);
            store(static_cast<std::int8_t>(0x11 + 14), at + offsetof(Mixed, small));
            store(std::int32_t{70}, at + offsetof(Mixed, number));
            store(short{-7}, at + offsetof(Mixed, least.value));
            store(7, at + offsetof(Mixed, least.index));
            store(7000.0, at + offsetof(Mixed, most.value));
            store(7, at + offsetof(Mixed, most.index));
            store(14.0f, at + offsetof(Mixed, real));
        }
        window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, "elements and gaps"); });
    }
}

// To all processes by turns, and only the last call of the epoch completes them.
CASE(many_targets_wait_for_one_call) {
    const int rounds = rounds_of(100);
    Window window(Flavor::kAllocate, env.comm, kWord * as_size(env.size + 1));
    for (const bool flush : {false, true}) {
        clear(window);
        const Word one = 1;
        CHECK_MPI(MPI_Win_lock_all(flush ? MPI_MODE_NOCHECK : 0, window.win));
        for (int i = 0; i < rounds; ++i)
            for (int target = 0; target < env.size; ++target)
                for (const int word : {env.rank, env.size})
                    CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, target, window.at(target, as_size(word) * kWord), 1,
                                             MPI_UINT64_T, MPI_SUM, window.win));
        if (flush) CHECK_MPI(MPI_Win_flush_all(window.win));
        if (flush) MPI_Barrier(env.comm);
        Word found = 0;
        if (flush) {
            CHECK_MPI(MPI_Fetch_and_op(nullptr, &found, MPI_UINT64_T, 0, window.at(0, as_size(env.size) * kWord),
                                       MPI_NO_OP, window.win));
            CHECK_MPI(MPI_Win_flush(0, window.win));
            CHECK_EQ(found, static_cast<Word>(rounds * env.size));
        }
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        window.inspect([&](const unsigned char* memory) {
            for (std::size_t i = 0; i < as_size(env.size); ++i) CHECK_EQ(word_at(memory, i), static_cast<Word>(rounds));
            CHECK_EQ(word_at(memory, as_size(env.size)), static_cast<Word>(rounds * env.size));
        });
    }
}

// With `starved`: osc/multirail registers only 64 blocks of staging memory. Where reads follow flushed puts, each of the other
// windows keeps one of them, so that a single one is left for accumulates on several targets.
CASE(accumulates_on_several_targets_need_no_more_than_one_block) {
    if (!has_argument("starved")) return;
    constexpr std::size_t kOthers = 63;
    const Word one = 1;
    const int next = (env.rank + 1) % env.size;
    std::vector<std::unique_ptr<Window>> others;
    for (std::size_t i = 0; i < kOthers; ++i) {
        others.push_back(std::make_unique<Window>(Flavor::kAllocate, env.comm, kWord));
        const Window& other = *others.back();
        CHECK_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, other.win));
        CHECK_MPI(MPI_Put(&one, 1, MPI_UINT64_T, next, other.at(next, 0), 1, MPI_UINT64_T, other.win));
        CHECK_MPI(MPI_Win_flush(next, other.win));
        CHECK_MPI(MPI_Win_unlock_all(other.win));
    }
    Window window(Flavor::kAllocate, env.comm, kWord);
    clear(window);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int target = 0; target < env.size; ++target)
        CHECK_MPI(
            MPI_Accumulate(&one, 1, MPI_UINT64_T, target, window.at(target, 0), 1, MPI_UINT64_T, MPI_SUM, window.win));
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    window.inspect([&](const unsigned char* memory) { CHECK_EQ(word_at(memory, 0), static_cast<Word>(env.size)); });
}

CASE(a_flush_of_several_targets_takes_as_long_as_one) {
    if (!is_slow()) return;
    Window window(Flavor::kAllocate, env.comm, kWord);
    clear(window);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    if (env.rank == 0) {
        const Word value = 1;
        const auto add = [&](int targets) {
            for (int target = 1; target <= targets; ++target)
                CHECK_MPI(MPI_Accumulate(&value, 1, MPI_UINT64_T, target, window.at(target, 0), 1, MPI_UINT64_T,
                                         MPI_SUM, window.win));
        };
        const double one = time_of(window, [&] { add(1); }), all = time_of(window, [&] { add(env.size - 1); });
        std::printf("a flush of one target: %.1f ms, of %d targets: %.1f ms\n", 1e3 * one, env.size - 1, 1e3 * all);
        CHECK(all < 1.75 * one);
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
}

CASE(a_long_accumulate_takes_as_long_as_a_short_one) {
    if (!is_slow()) return;
    constexpr std::size_t kWords = 4000;
    Window window(Flavor::kAllocate, env.comm, kWords * kWord);
    clear(window);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    if (env.rank == 0) {
        const std::vector<Word> values(kWords, 1);
        // All of it is in the time.
        const auto add = [&](std::size_t words) {
            const double begin = MPI_Wtime();
            CHECK_MPI(MPI_Accumulate(values.data(), as_int(words), MPI_UINT64_T, 1, window.at(1, 0), as_int(words),
                                     MPI_UINT64_T, MPI_SUM, window.win));
            CHECK_MPI(MPI_Win_flush_all(window.win));
            return MPI_Wtime() - begin;
        };
        add(1);
        add(kWords);
        const double one = std::min(add(1), add(1)), all = std::min(add(kWords), add(kWords));
        std::printf("an accumulate of one word: %.1f ms, of %zu words: %.1f ms\n", 1e3 * one, kWords, 1e3 * all);
        CHECK(all < 1.75 * one);
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
}

// SPDX-License-Identifier: BSD-3-Clause
// Processes of a node that read and write each other's memory: layouts of both sides, attached memory that changes meanwhile,
// accumulates of all processes with the owner among them, more long blocks than may be under way, more short operations than a
// component may collect.
//
// Arguments: `killed`: only for the case of that name, which ends the job; `denied`: only for the case in which the kernel
// refuses copies by one process from then on.
#include <csignal>
#include <map>
#include <numeric>

#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/deny.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;

bool has_argument(const char* word) {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), word) != all.end();
}

class Vector {
public:
    Vector(std::size_t blocks, std::size_t bytes, std::size_t stride) {
        MPI_Type_vector(as_int(blocks), as_int(bytes), as_int(stride), MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    ~Vector() { MPI_Type_free(&type); }
    Vector(const Vector&) = delete;
    MPI_Datatype type = MPI_DATATYPE_NULL;
};

// `data` in blocks with gaps, which keep `gap`.
Bytes spread(const Bytes& data, std::size_t bytes, std::size_t stride, std::size_t size, unsigned char gap) {
    Bytes all(size, gap);
    for (std::size_t i = 0; i < data.size(); ++i) all[i / bytes * stride + i % bytes] = data[i];
    return all;
}

struct Shape {
    std::size_t bytes, stride;
};
// Short and long blocks, dense and not, and one block.
constexpr Shape kShapes[] = {{1, 2}, {8, 24}, {8, 200}, {40, 41}, {600, 1000}, {5000, 9000}, {30000, 30000}};
constexpr std::size_t kData = 30000;
constexpr std::size_t size_of(const Shape& shape) { return (kData / shape.bytes + 1) * shape.stride; }

void put_and_get(const Window& window, const Shape& here, const Shape& there, std::uint64_t key, int target) {
    const std::size_t own = size_of(here), its = size_of(there);
    const Vector mine(kData / here.bytes, here.bytes, here.stride),
        their(kData / there.bytes, there.bytes, there.stride);
    const Bytes data = message(key, kData), from = spread(data, here.bytes, here.stride, own, 1);
    CHECK_MPI(MPI_Put(from.data(), 1, mine.type, target, window.at(target, 0), 1, their.type, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    Bytes to(own, 2), all(its);
    CHECK_MPI(MPI_Get(to.data(), 1, mine.type, target, window.at(target, 0), 1, their.type, window.win));
    CHECK_MPI(
        MPI_Get(all.data(), as_int(its), MPI_BYTE, target, window.at(target, 0), as_int(its), MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    check_bytes(to.data(), spread(data, here.bytes, here.stride, own, 2), "got");
    check_bytes(all.data(), spread(data, there.bytes, there.stride, its, 3), "window");
}

void fetch_and_add(const Window& window, int target, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        const Word one = 1;
        Word before;
        CHECK_MPI(MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, window.at(target, 0), MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_flush(target, window.win));
        CHECK(before >= static_cast<Word>(i));
    }
}

// Short operations of one process on its part of the target's memory: more than a component may collect, some next to each other.
class Burst {
public:
    static constexpr std::size_t kNumber = 600, kSlot = 40, kBytes = kNumber * kSlot + sizeof(Word);

    Burst(const Window& window, std::uint64_t round) : window_(window), round_(round) {}

    void put(int target) {
        Bytes& from = memory_[target] = message(key(window_.rank, target), kBytes);
        for (std::size_t i = 0; i < kNumber; ++i) {
            unsigned char* const slot = &from[i * kSlot];
            if (i % 7 == 0) put_with_request(target, i, slot);
            else if (i % 5 == 0) put_with_type(target, i, slot);
            else CHECK_MPI(MPI_Put(slot, length(i), MPI_BYTE, target, at(target, i), length(i), MPI_BYTE, window_.win));
            if (i % 9 == 0)
                CHECK_MPI(MPI_Accumulate(&one_, 1, MPI_UINT64_T, target, at(target, kNumber), 1, MPI_UINT64_T, MPI_SUM,
                                         window_.win));
        }
    }
    // The puts to the target are complete at this process, which may change the memory.
    void overwrite(int target) { std::fill(memory_[target].begin(), memory_[target].end(), 0xee); }
    void get(int target) {
        Bytes& to = memory_[target] = Bytes(kBytes, 3);
        for (std::size_t i = 0; i < kNumber; ++i)
            CHECK_MPI(
                MPI_Get(&to[i * kSlot], length(i), MPI_BYTE, target, at(target, i), length(i), MPI_BYTE, window_.win));
    }
    void check_got(int target) {
        Bytes wanted = expected(window_.rank, target);
        std::fill(wanted.end() - sizeof(Word), wanted.end(), 3);
        check_bytes(memory_[target].data(), wanted, "got");
    }
    void check_memory(const unsigned char* memory) const {
        for (int origin = 0; origin < window_.processes; ++origin)
            check_bytes(memory + as_size(origin) * kBytes, expected(origin, window_.rank), "put");
    }

private:
    static int length(std::size_t i) { return i % 3 == 0 ? as_int(kSlot) : as_int(1 + i * 7 % kSlot); }
    MPI_Aint at(int target, std::size_t i) const {
        return window_.at(target, as_size(window_.rank) * kBytes + i * kSlot);
    }
    std::uint64_t key(int origin, int target) const {
        return key_of("burst", as_size(origin), as_size(target), round_);
    }
    // The memory of the target, which held 3 in each byte, and 0 in the word.
    Bytes expected(int origin, int target) const {
        const Bytes sent = message(key(origin, target), kBytes);
        Bytes all(kBytes, 3);
        for (std::size_t i = 0; i < kNumber; ++i) std::memcpy(&all[i * kSlot], &sent[i * kSlot], as_size(length(i)));
        const Word sum = (kNumber + 8) / 9;
        std::memcpy(&all[kNumber * kSlot], &sum, sizeof sum);
        return all;
    }
    void put_with_request(int target, std::size_t i, unsigned char* slot) const {
        MPI_Request request;
        CHECK_MPI(
            MPI_Rput(slot, length(i), MPI_BYTE, target, at(target, i), length(i), MPI_BYTE, window_.win, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        std::fill(slot, slot + length(i), 0xdd);
    }
    void put_with_type(int target, std::size_t i, unsigned char* slot) const {
        MPI_Datatype type;
        MPI_Type_contiguous(length(i), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        CHECK_MPI(MPI_Put(slot, 1, type, target, at(target, i), 1, type, window_.win));
        MPI_Type_free(&type);
    }

    const Window& window_;
    const std::uint64_t round_;
    const Word one_ = 1;
    std::map<int, Bytes> memory_;  // of the origin, by target
};

Word first_word(const unsigned char* memory) {
    Word word;
    std::memcpy(&word, memory, sizeof word);
    return word;
}

// A window of three pages of each process. The kernel refuses copies from or to the second one of rank 0, but that process can
// use it: its first access makes it accessible.
class Guarded {
public:
    static constexpr std::size_t kWords = 3 * 4096 / sizeof(Word);

    explicit Guarded(MPI_Comm comm) {
        void* const all = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(all != MAP_FAILED);
        memory_ = static_cast<unsigned char*>(all);
        MPI_Comm_rank(comm, &rank_);
        CHECK_MPI(MPI_Win_create(memory_, kBytes, 1, MPI_INFO_NULL, comm, &win));
        page_ = memory_ + kPage;
        struct sigaction action {};
        action.sa_sigaction = open_page;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &before_);
    }
    ~Guarded() {
        CHECK_MPI(MPI_Win_free(&win));
        sigaction(SIGSEGV, &before_, nullptr);
        munmap(memory_, kBytes);
    }
    Guarded(const Guarded&) = delete;

    // Rank 1 executes change() on rank 0, whose words are 0, 1, 2, … before, and the process expects that they are after(i) then.
    template <class F, class G>
    void run(int protection, F change, G after) {
        if (rank_ == 0) {
            for (std::size_t i = 0; i < kWords; ++i) words()[i] = i;
            CHECK_EQ(mprotect(page_, kPage, protection), 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == 1) {
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
            change();
            CHECK_MPI(MPI_Win_unlock(0, win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ != 0) return;
        CHECK_EQ(mprotect(page_, kPage, PROT_READ | PROT_WRITE), 0);
        for (std::size_t i = 0; i < kWords; ++i) CHECK_EQ(words()[i], after(i));
    }

    MPI_Win win = MPI_WIN_NULL;

private:
    static constexpr std::size_t kPage = 4096, kBytes = kWords * sizeof(Word);
    static inline unsigned char* page_ = nullptr;
    static void open_page(int, siginfo_t* info, void*) {
        const auto* const at = static_cast<const unsigned char*>(info->si_addr);
        if (at >= page_ && at < page_ + kPage) mprotect(page_, kPage, PROT_READ | PROT_WRITE);
        else std::signal(SIGSEGV, SIG_DFL);
    }
    Word* words() const { return reinterpret_cast<Word*>(memory_); }

    int rank_ = 0;
    unsigned char* memory_ = nullptr;
    struct sigaction before_ {};
};

}  // namespace

CASE(every_layout_of_both_sides) {
    const std::size_t bytes = size_of(kShapes[2]);
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, bytes);
        const int target = (window.rank + 1) % window.processes;
        std::uint64_t round = 0;
        for (const Shape& here : kShapes)
            for (const Shape& there : kShapes) {
                window.reset([&](unsigned char* memory) { std::memset(memory, 3, bytes); });
                CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
                put_and_get(window, here, there, key_of("layout", as_size(window.rank), ++round), target);
                CHECK_MPI(MPI_Win_unlock(target, window.win));
                MPI_Barrier(window.comm);
            }
    }
}

CASE(bursts_of_short_operations_are_complete_when_they_have_to_be) {
    constexpr Sync kSyncs[] = {Sync::kLockExclusive, Sync::kLockNoCheck,  Sync::kLockFlush, Sync::kLockFlushLocal,
                               Sync::kLocks,         Sync::kLockAll,      Sync::kFlush,     Sync::kFlushLocal,
                               Sync::kFlushAll,      Sync::kFlushLocalAll};
    std::uint64_t round = 0;
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic})
        for (const Sync sync : kSyncs) {
            Window window(flavor, env.comm, as_size(env.size) * Burst::kBytes);
            window.reset([&](unsigned char* memory) {
                std::memset(memory, 3, window.bytes);
                for (std::size_t i = 1; i <= as_size(window.processes); ++i)
                    std::memset(memory + i * Burst::kBytes - sizeof(Word), 0, sizeof(Word));
            });
            Burst burst(window, ++round);
            Epoch(sync, window, false).run([&](int to) { burst.put(to); }, [&](int to) { burst.overwrite(to); });
            window.inspect([&](const unsigned char* memory) { burst.check_memory(memory); });
            Epoch(sync, window, true).run([&](int to) { burst.get(to); }, [&](int to) { burst.check_got(to); });
            MPI_Barrier(window.comm);
        }
}

CASE(accumulates_of_all_and_of_the_owner_exclude_each_other) {
    const int rounds = rounds_of(3000);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 64);
        window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        fetch_and_add(window, 0, rounds);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        window.inspect([&](const unsigned char* memory) {
            if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(rounds * window.processes));
        });
    }
}

// Some may be executed here and others by the target.
CASE(accumulates_keep_their_order) {
    const int rounds = rounds_of(100);
    constexpr Word kSteps = 7;
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, as_size(env.size) * sizeof(Word));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        const int target = (window.rank + 1) % window.processes;
        const MPI_Aint at = window.at(target, as_size(window.rank) * sizeof(Word));
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (Word round = 1; round <= static_cast<Word>(rounds); ++round) {
            Word values[kSteps], found = 0;
            for (Word i = 0; i < kSteps; ++i) {
                values[i] = round * kSteps + i;
                CHECK_MPI(
                    MPI_Accumulate(&values[i], 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, MPI_REPLACE, window.win));
            }
            CHECK_MPI(MPI_Fetch_and_op(nullptr, &found, MPI_UINT64_T, target, at, MPI_NO_OP, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
            CHECK_EQ(found, values[kSteps - 1]);
        }
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        MPI_Barrier(window.comm);
    }
}

// Locks and accumulates in alternating kinds of epochs: those that the target executes, and those that the origin does.
CASE(active_and_passive_epochs_alternate) {
    const int rounds = rounds_of(50);
    Window window(Flavor::kCreate, env.comm, 64);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    const Word one = 1;
    for (int i = 0; i < rounds; ++i) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        for (int k = 0; k < 5; ++k)
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
        for (int k = 0; k < 5; ++k)
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_unlock(0, window.win));
        MPI_Barrier(window.comm);
    }
    window.inspect([&](const unsigned char* memory) {
        if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(10 * rounds * window.processes));
    });
}

// Rank 0 attaches and detaches other memory all the time; the others find what they need.
CASE(attached_memory_is_found_while_other_memory_comes_and_goes) {
    const int rounds = rounds_of(2000);
    Window window(Flavor::kDynamic, env.comm, 64);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    static unsigned char others[200][32];
    if (window.rank == 0) {
        for (int i = 0; i < rounds / 10; ++i) {
            for (auto& each : others) CHECK_MPI(MPI_Win_attach(window.win, each, sizeof each));
            for (auto& each : others) CHECK_MPI(MPI_Win_detach(window.win, each));
        }
    } else {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        fetch_and_add(window, 0, rounds);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    }
    window.inspect([&](const unsigned char* memory) {
        if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(rounds * (window.processes - 1)));
    });
}

// With a small osc_multirail_rendezvous_min, they travel as messages of the PML.
CASE(many_long_blocks_in_an_epoch) {
    constexpr std::size_t kBlocks = 300, kBytes = 4000;
    Window window(Flavor::kCreate, env.comm, kBlocks * kBytes);
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const Bytes data = message(key_of("blocks", as_size(window.rank)), kBlocks * kBytes),
                expected = message(key_of("blocks", as_size(before)), kBlocks * kBytes);
    Bytes found(kBlocks * kBytes);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (std::size_t i = 0; i < kBlocks; ++i)
        CHECK_MPI(MPI_Put(&data[i * kBytes], kBytes, MPI_BYTE, next, window.at(next, i * kBytes), kBytes, MPI_BYTE,
                          window.win));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    check_bytes(window.memory, expected, "put");
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (std::size_t i = 0; i < kBlocks; ++i)
        CHECK_MPI(MPI_Get(&found[i * kBytes], kBytes, MPI_BYTE, next, window.at(next, i * kBytes), kBytes, MPI_BYTE,
                          window.win));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    check_bytes(found.data(), data, "got");
}

// The kernel refuses rank 1 further copies, so that its accumulates are executed by the target. They stay atomic with those
// of the others.
CASE(the_kernel_refuses_one_process_later) {
    if (!has_argument("denied")) return;
    const int rounds = rounds_of(3000);
    Window created(Flavor::kCreate, env.comm, 64), dynamic(Flavor::kDynamic, env.comm, 64);
    for (Window* const each : {&created, &dynamic})
        each->reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    if (env.rank == 1) CHECK_EQ(deny(SYS_process_vm_readv, SYS_process_vm_writev), 0);
    // Others have to ask again what is attached.
    Bytes more(64);
    CHECK_MPI(MPI_Win_attach(dynamic.win, more.data(), 64));
    MPI_Barrier(env.comm);
    for (Window* const each : {&dynamic, &created}) {
        CHECK_MPI(MPI_Win_lock_all(0, each->win));
        const Word one = 1, mine = static_cast<Word>(env.rank) + 1;
        for (int i = 0; i < 20; ++i)
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, each->at(0, 16), 1, MPI_UINT64_T, MPI_SUM, each->win));
        const std::size_t place = 24 + as_size(env.rank) * 8;
        if (env.rank < 5) CHECK_MPI(MPI_Put(&mine, 1, MPI_UINT64_T, 0, each->at(0, place), 1, MPI_UINT64_T, each->win));
        fetch_and_add(*each, 0, rounds);
        for (Word seen = 0; env.rank != 0;) {
            const Word next = seen + 1, expected = seen;
            CHECK_MPI(MPI_Compare_and_swap(&next, &expected, &seen, MPI_UINT64_T, 0, each->at(0, 8), each->win));
            CHECK_MPI(MPI_Win_flush(0, each->win));
            if (seen == expected) break;
        }
        CHECK_MPI(MPI_Win_unlock_all(each->win));
        each->inspect([&](const unsigned char* memory) {
            if (each->rank != 0) return;
            CHECK_EQ(first_word(memory), static_cast<Word>(rounds * each->processes));
            CHECK_EQ(first_word(memory + 8), static_cast<Word>(each->processes - 1));
            CHECK_EQ(first_word(memory + 16), static_cast<Word>(20 * each->processes));
            for (int i = 0; i < std::min(5, each->processes); ++i)
                CHECK_EQ(first_word(memory + 24 + as_size(i) * 8), static_cast<Word>(i + 1));
        });
    }
    CHECK_MPI(MPI_Win_detach(dynamic.win, more.data()));
}

// Nothing is lost, and nothing is done twice, if the kernel copies only a part.
CASE(accumulates_on_memory_that_cannot_be_copied) {
    if (env.size < 2) return;
    static constexpr std::size_t kAll = Guarded::kWords;
    constexpr int kCount = static_cast<int>(kAll);
    Guarded guarded(env.comm);
    std::vector<Word> ones(kAll, 1), found(kAll);
    const auto check_found = [&](std::size_t n, auto before) {
        for (std::size_t i = 0; i < n; ++i) CHECK_EQ(found[i], before(i));
        std::fill(found.begin(), found.end(), Word{77});
    };
    const auto more = [](std::size_t i) { return i + 1; };
    for (const int protection : {PROT_READ, PROT_NONE}) {
        const auto add = [&](std::size_t first, int count, MPI_Datatype type) {
            CHECK_MPI(MPI_Accumulate(ones.data(), count, type, 0, static_cast<MPI_Aint>(first * sizeof(Word)), count,
                                     type, MPI_SUM, guarded.win));
        };
        // Short ones, neighbours or not, which wait for each other.
        guarded.run(
            protection,
            [&] {
                for (std::size_t i = 0; i < kAll; i += 8) add(i, 8, MPI_UINT64_T);
            },
            more);
        guarded.run(
            protection,
            [&] {
                for (const int round : {0, 1, 2})
                    for (std::size_t i = kAll; i-- > 0;)
                        if (i % 3 == 0) add(i, 1, round == 1 ? MPI_INT32_T : MPI_UINT64_T);
            },
            [](std::size_t i) { return i % 3 == 0 ? i + 3 : i; });
        guarded.run(
            protection, [&] { add(0, kCount, MPI_UINT64_T); }, more);
        // With results, of one block, of several, and of a few words on both sides of the end of a page.
        guarded.run(
            protection,
            [&] {
                CHECK_MPI(MPI_Get_accumulate(ones.data(), kCount, MPI_UINT64_T, found.data(), kCount, MPI_UINT64_T, 0,
                                             0, kCount, MPI_UINT64_T, MPI_SUM, guarded.win));
                CHECK_MPI(MPI_Win_flush_local(0, guarded.win));
                check_found(kAll, [](std::size_t i) { return i; });
            },
            more);
        guarded.run(
            protection,
            [&] {
                MPI_Request request;
                MPI_Datatype words;
                MPI_Type_vector(kCount / 2, 1, 2, MPI_UINT64_T, &words);
                MPI_Type_commit(&words);
                CHECK_MPI(MPI_Rget_accumulate(ones.data(), 1, words, found.data(), 1, words, 0, 0, 1, words, MPI_SUM,
                                              guarded.win, &request));
                MPI_Type_free(&words);
                CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
                check_found(kAll, [](std::size_t i) { return i % 2 == 0 ? i : 77; });
            },
            [](std::size_t i) { return i % 2 == 0 ? i + 1 : i; });
        guarded.run(
            protection,
            [&] {
                constexpr std::size_t kFirst = kAll / 3 - 4;
                CHECK_MPI(MPI_Get_accumulate(ones.data(), 8, MPI_UINT64_T, found.data(), 8, MPI_UINT64_T, 0,
                                             kFirst * sizeof(Word), 8, MPI_UINT64_T, MPI_SUM, guarded.win));
                CHECK_MPI(MPI_Win_flush(0, guarded.win));
                check_found(8, [](std::size_t i) { return kFirst + i; });
            },
            [](std::size_t i) { return i >= kAll / 3 - 4 && i < kAll / 3 + 4 ? i + 1 : i; });
        guarded.run(
            protection,
            [&] {
                const Word swapped = kAll / 2, by = 5000;
                CHECK_MPI(MPI_Compare_and_swap(&by, &swapped, found.data(), MPI_UINT64_T, 0, kAll / 2 * sizeof(Word),
                                               guarded.win));
                CHECK_MPI(MPI_Win_flush(0, guarded.win));
                check_found(1, [](std::size_t) { return kAll / 2; });
            },
            [](std::size_t i) { return i == kAll / 2 ? 5000 : i; });
    }
}

// Blocks on both sides of memory that cannot be read are not read with what lies between them.
CASE(gaps_that_cannot_be_copied) {
    if (env.size < 2) return;
    static constexpr std::size_t kAll = Guarded::kWords, kThird = kAll / 3;
    constexpr int kCount = static_cast<int>(kAll / 6);
    Guarded guarded(env.comm);
    const std::vector<Word> ones(kAll, 1);
    std::vector<Word> found(kAll, 77);
    const auto is_added = [](std::size_t i) {
        return i < kThird ? i >= kThird / 2 : i >= 2 * kThird && i < 5 * kThird / 2;
    };
    MPI_Datatype sides;
    MPI_Type_vector(2, kCount, 3 * kCount, MPI_UINT64_T, &sides);
    MPI_Type_commit(&sides);
    const auto at = [](std::size_t word) { return static_cast<MPI_Aint>(word * sizeof(Word)); };
    const auto after = [&](std::size_t i) { return is_added(i) ? i + 1 : i; };
    guarded.run(
        PROT_NONE,
        [&] {
            for (const std::size_t first : {kThird / 2, 2 * kThird})
                for (std::size_t i = 0; i < kThird / 2; i += 8)
                    CHECK_MPI(MPI_Accumulate(ones.data(), 8, MPI_UINT64_T, 0, at(first + i), 8, MPI_UINT64_T, MPI_SUM,
                                             guarded.win));
        },
        after);
    guarded.run(
        PROT_NONE,
        [&] {
            CHECK_MPI(MPI_Get_accumulate(ones.data(), 2 * kCount, MPI_UINT64_T, found.data(), 2 * kCount, MPI_UINT64_T,
                                         0, at(kThird / 2), 1, sides, MPI_SUM, guarded.win));
            CHECK_MPI(MPI_Win_flush(0, guarded.win));
            for (std::size_t i = 0; i < kThird; ++i)
                CHECK_EQ(found[i], i + (i < kThird / 2 ? kThird / 2 : 3 * kThird / 2));
        },
        after);
    guarded.run(
        PROT_NONE,
        [&] {
            MPI_Datatype words;
            MPI_Type_vector(2 * kCount, 1, 2, MPI_UINT64_T, &words);
            MPI_Type_commit(&words);
            CHECK_MPI(MPI_Get(found.data(), 1, words, 0, at(kThird / 2), 1, sides, guarded.win));
            MPI_Type_free(&words);
            CHECK_MPI(MPI_Win_flush(0, guarded.win));
            for (std::size_t i = 0; i < kThird; ++i)
                CHECK_EQ(found[2 * i], i + (i < kThird / 2 ? kThird / 2 : 3 * kThird / 2));
        },
        [](std::size_t i) { return i; });
    MPI_Type_free(&sides);
}

// The job must end by itself. Locks, copies and accumulates are under way when the target dies.
CASE(a_target_is_killed) {
    if (!has_argument("killed")) return;
    Window window(Flavor::kCreate, env.comm, 100'000);
    MPI_Barrier(window.comm);
    if (window.rank == 0) {
        usleep(200'000);
        raise(SIGKILL);
    }
    const Bytes data(100'000, 7);
    for (;;) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
        CHECK_MPI(MPI_Put(data.data(), 100'000, MPI_BYTE, 0, 0, 100'000, MPI_BYTE, window.win));
        fetch_and_add(window, 0, 0);
        CHECK_MPI(MPI_Win_unlock(0, window.win));
    }
}

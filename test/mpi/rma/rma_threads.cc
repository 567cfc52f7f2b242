// SPDX-License-Identifier: BSD-3-Clause
// Several threads of each process use one window, windows of their own, and messages, at the same time.
#include <atomic>
#include <thread>

#include "flushed.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) {
    s.thread_level = MPI_THREAD_MULTIPLE;
    s.hang_seconds = 100;
});

constexpr int kThreads = 4;

std::uint64_t as_number(int n) { return static_cast<std::uint64_t>(n); }

template <class F>
void in_threads(F f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, i);
    for (std::thread& thread : threads) thread.join();
}

// The part of every process's memory that belongs to one thread of one process, and what must be there.
class Region {
public:
    Region(const Window& window, int thread, std::size_t bytes)
        : window_(window), bytes_(bytes), start_(as_size(window.rank * kThreads + thread) * bytes),
          random_(as_number(window.rank * kThreads + thread) + 17),
          contents_(as_size(window.processes), Bytes(bytes, 0)) {}

    // One call on a random part, and a flush.
    void step() {
        const int target = static_cast<int>(random_.below(as_number(window_.processes)));
        const std::size_t n = 1 + random_.below(random_.one_in(8) ? bytes_ : 200), at = random_.below(bytes_ - n + 1);
        unsigned char* now = &contents_[as_size(target)][at];
        const Bytes sent = message(random_.next(), n);
        Bytes got(n);
        const int count = as_int(n);
        const MPI_Aint place = window_.at(target, start_ + at);
        const MPI_Win win = window_.win;
        MPI_Request request;
        switch (random_.below(6)) {
        case 0:
            CHECK_MPI(MPI_Put(sent.data(), count, MPI_BYTE, target, place, count, MPI_BYTE, win));
            std::copy(sent.begin(), sent.end(), now);
            break;
        case 1:
            CHECK_MPI(MPI_Get(got.data(), count, MPI_BYTE, target, place, count, MPI_BYTE, win));
            CHECK_MPI(random_.one_in(2) ? MPI_Win_flush_local(target, win) : MPI_Win_flush_local_all(win));
            compare(got.data(), now, n);
            return;
        case 2:
            CHECK_MPI(
                MPI_Accumulate(sent.data(), count, MPI_UINT8_T, target, place, count, MPI_UINT8_T, MPI_BXOR, win));
            add(sent, now);
            break;
        case 3:
            CHECK_MPI(MPI_Get_accumulate(sent.data(), count, MPI_UINT8_T, got.data(), count, MPI_UINT8_T, target, place,
                                         count, MPI_UINT8_T, MPI_BXOR, win));
            CHECK_MPI(MPI_Win_flush(target, win));
            compare(got.data(), now, n);
            add(sent, now);
            return;
        case 4:
            CHECK_MPI(MPI_Rput(sent.data(), count, MPI_BYTE, target, place, count, MPI_BYTE, win, &request));
            CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
            std::copy(sent.begin(), sent.end(), now);
            break;
        case 5:
            CHECK_MPI(MPI_Rget(got.data(), count, MPI_BYTE, target, place, count, MPI_BYTE, win, &request));
            CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
            compare(got.data(), now, n);
            return;
        }
        CHECK_MPI(random_.one_in(4) ? MPI_Win_flush_all(win) : MPI_Win_flush(target, win));
    }

    const Bytes& contents(int target) const { return contents_[as_size(target)]; }

private:
    static void add(const Bytes& sent, unsigned char* now) {
        for (std::size_t i = 0; i < sent.size(); ++i) now[i] ^= sent[i];
    }
    static void compare(const unsigned char* got, const unsigned char* expected, std::size_t n) {
        check_bytes(got, Bytes(expected, expected + n), "read by a thread");
    }

    const Window& window_;
    std::size_t bytes_, start_;
    pattern::Random random_;
    std::vector<Bytes> contents_;
};

void share_a_window(const mpitest::Env& env, Flavor flavor) {
    constexpr std::size_t kBytes = 30000;
    const Members members(flavor, env.comm);
    const int processes = size_of(members.comm);
    Window window(flavor, members.comm, kBytes * kThreads * as_size(processes));
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    std::vector<Region> regions;
    for (int i = 0; i < kThreads; ++i) regions.emplace_back(window, i, kBytes);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    in_threads([&](int thread) {
        for (int i = 0; i < rounds_of(600); ++i) regions[as_size(thread)].step();
    });
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    // The owner of the memory compares it with what the others believe to have written.
    Bytes believed, expected(window.bytes);
    for (int target = 0; target < processes; ++target)
        for (const Region& region : regions) {
            const Bytes& part = region.contents(target);
            believed.insert(believed.end(), part.begin(), part.end());
        }
    const int each = static_cast<int>(kBytes) * kThreads;
    MPI_Alltoall(believed.data(), each, MPI_BYTE, expected.data(), each, MPI_BYTE, window.comm);
    window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, "memory"); });
}

}  // namespace

CASE(threads_share_a_created_window) { share_a_window(env, Flavor::kCreate); }
CASE(threads_share_an_allocated_window) { share_a_window(env, Flavor::kAllocate); }
CASE(threads_share_a_dynamic_window) { share_a_window(env, Flavor::kDynamic); }
CASE(threads_share_a_shared_window) { share_a_window(env, Flavor::kShared); }

// Each thread of each process adds to the same elements of all, and flushes at another time than the others.
CASE(threads_add_to_the_same_elements) {
    constexpr int kNumber = 20;
    const int rounds = rounds_of(400);
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate}) {
        Window window(flavor, env.comm, kNumber * sizeof(double));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        const std::vector<double> ones(kNumber, 1);
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        in_threads([&](int thread) {
            std::vector<double> added(as_size(window.processes), 0);
            for (int i = 0; i < rounds; ++i) {
                const int target = i % window.processes;
                CHECK_MPI(MPI_Accumulate(ones.data(), kNumber, MPI_DOUBLE, target, window.at(target, 0), kNumber,
                                         MPI_DOUBLE, MPI_SUM, window.win));
                ++added[as_size(target)];
                if (i % (7 * (thread + 1)) == 0) CHECK_MPI(MPI_Win_flush(target, window.win));
                if (i % (11 * (thread + 1)) != 0) continue;
                // Accumulates of this thread come before the fetching one.
                double found = 0;
                CHECK_MPI(
                    MPI_Fetch_and_op(nullptr, &found, MPI_DOUBLE, target, window.at(target, 0), MPI_NO_OP, window.win));
                CHECK_MPI(MPI_Win_flush_local(target, window.win));
                CHECK(found >= added[as_size(target)]);
            }
            if (thread != 0) CHECK_MPI(MPI_Win_flush_all(window.win));
        });
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        window.inspect([&](const unsigned char* memory) {
            int all = 0;  // rounds that went to this process, of each thread
            for (int i = 0; i < rounds; ++i) all += i % window.processes == window.rank;
            for (std::size_t i = 0; i < kNumber; ++i) {
                double value;
                std::memcpy(&value, memory + i * sizeof value, sizeof value);
                CHECK_EQ(value, all * kThreads * window.processes);
            }
        });
    }
}

// Scattered short puts of one thread, while the others only flush: each put must arrive where it belongs.
CASE(others_flush_while_one_thread_puts) {
    using Word = std::uint64_t;
    constexpr std::size_t kPuts = 4, kApart = 800;
    Window window(Flavor::kCreate, env.comm, as_size(env.size) * kPuts * kApart);
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    const int target = (window.rank + 1) % window.processes;
    const auto place = [&](std::size_t put) {
        return window.at(target, (as_size(window.rank) * kPuts + put) * kApart);
    };
    std::atomic<bool> done{false};
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    in_threads([&](int thread) {
        while (thread != 0 && !done) CHECK_MPI(MPI_Win_flush_all(window.win));
        if (thread != 0) return;
        for (Word round = 1; round <= as_number(rounds_of(3000)); ++round) {
            Word sent[kPuts], found[kPuts];
            for (std::size_t i = 0; i < kPuts; ++i) {
                sent[i] = round * kPuts + i;
                CHECK_MPI(MPI_Put(&sent[i], 1, MPI_UINT64_T, target, place(i), 1, MPI_UINT64_T, window.win));
            }
            CHECK_MPI(MPI_Win_flush_all(window.win));
            for (std::size_t i = 0; i < kPuts; ++i)
                CHECK_MPI(MPI_Get(&found[i], 1, MPI_UINT64_T, target, place(i), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
            for (std::size_t i = 0; i < kPuts; ++i) CHECK_EQ(found[i], sent[i]);
        }
        done = true;
    });
    CHECK_MPI(MPI_Win_unlock_all(window.win));
}

// Each thread flushes its own puts, but the operations of all are in the same lists.
CASE(targets_find_what_each_thread_flushed_before_its_message) {
    using flushed::How;
    constexpr int kOrigins = 2;
    constexpr How kHows[][kOrigins] = {{How::kFlush, How::kFlush}, {How::kFlush, How::kFlushAll}};
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, flushed::Rounds::bytes(env.size, kOrigins));
        window.reset([&](unsigned char* memory) { std::memset(memory, flushed::kGap, window.bytes); });
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (const auto& how : kHows)
            in_threads([&](int thread) {
                if (thread < kOrigins)
                    flushed::Rounds(window, env.comm, how[thread], thread, kOrigins).run(2 * rounds_of(5));
            });
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    }
}

// Each thread has a window and a communicator, and epochs of all kinds.
CASE(threads_have_windows_of_their_own) {
    MPI_Comm comms[kThreads];
    for (MPI_Comm& comm : comms) MPI_Comm_dup(env.comm, &comm);
    in_threads([&](int thread) {
        constexpr std::size_t kBytes = 5000;
        constexpr Sync kSyncs[] = {Sync::kFence,   Sync::kPscw,  Sync::kLockShared,
                                   Sync::kLockAll, Sync::kFlush, Sync::kPscwTest};
        Window window(thread % 2 == 0 ? Flavor::kCreate : Flavor::kAllocate, comms[thread], kBytes * as_size(env.size));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        for (int round = 0; round < rounds_of(60); ++round) {
            const auto key = [&](int from, int to) {
                return pattern::key({as_number(thread), as_number(round), as_number(from), as_number(to)});
            };
            std::vector<Bytes> sent;
            for (int t = 0; t < env.size; ++t) sent.push_back(message(key(env.rank, t), kBytes));
            Epoch epoch(kSyncs[(round + thread) % 6], window, false);
            epoch.run(
                [&](int t) {
                    CHECK_MPI(MPI_Put(sent[as_size(t)].data(), as_int(kBytes), MPI_BYTE, t,
                                      window.at(t, as_size(env.rank) * kBytes), as_int(kBytes), MPI_BYTE, window.win));
                },
                [](int) {});
            window.inspect([&](const unsigned char* memory) {
                for (int from = 0; from < env.size; ++from)
                    CHECK_PATTERN(key(from, env.rank), memory + as_size(from) * kBytes, kBytes);
            });
        }
    });
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

CASE(threads_count_together) {
    const int rounds = rounds_of(300);
    Window window(Flavor::kCreate, env.comm, 8);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 8); });
    std::vector<std::uint64_t> numbers(as_size(rounds * kThreads));
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    in_threads([&](int thread) {
        const std::uint64_t one = 1;
        for (int i = 0; i < rounds; ++i) {
            CHECK_MPI(MPI_Fetch_and_op(&one, &numbers[as_size(thread * rounds + i)], MPI_UINT64_T, 0, window.at(0, 0),
                                       MPI_SUM, window.win));
            CHECK_MPI(MPI_Win_flush(0, window.win));
        }
    });
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    std::vector<std::uint64_t> all(numbers.size() * as_size(env.size));
    MPI_Allgather(numbers.data(), as_int(numbers.size()), MPI_UINT64_T, all.data(), as_int(numbers.size()),
                  MPI_UINT64_T, env.comm);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQ(all[i], i);
}

// Each thread locks the target of its number, while the other threads lock theirs: read, add, write.
CASE(threads_lock_targets_of_their_own) {
    const int rounds = rounds_of(100);
    Window window(Flavor::kCreate, env.comm, 8);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 8); });
    in_threads([&](int target) {
        for (int i = 0; i < rounds && target < env.size; ++i) {
            std::uint64_t value = 0;
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
            CHECK_MPI(MPI_Get(&value, 1, MPI_UINT64_T, target, window.at(target, 0), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
            ++value;
            CHECK_MPI(MPI_Put(&value, 1, MPI_UINT64_T, target, window.at(target, 0), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_unlock(target, window.win));
        }
    });
    window.inspect([&](const unsigned char* memory) {
        std::uint64_t value;
        std::memcpy(&value, memory, sizeof value);
        CHECK_EQ(value, env.rank < kThreads ? rounds * env.size : 0);
    });
}

CASE(threads_use_windows_while_others_exchange_messages_and_make_windows) {
    MPI_Comm messages, windows;
    MPI_Comm_dup(env.comm, &messages);
    MPI_Comm_dup(env.comm, &windows);
    Window window(Flavor::kCreate, env.comm, 3000 * kThreads * as_size(env.size));
    window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    in_threads([&](int thread) {
        if (thread == 0) {
            for (int i = 0; i < rounds_of(200); ++i) {
                const std::size_t n = i % 2 == 0 ? 10 : 30000;
                const Bytes sent = message(key_of("exchanged", as_number(env.rank), as_number(i)), n);
                Bytes received(n);
                MPI_Sendrecv(sent.data(), as_int(n), MPI_BYTE, next, 4, received.data(), as_int(n), MPI_BYTE, before, 4,
                             messages, MPI_STATUS_IGNORE);
                CHECK_PATTERN(key_of("exchanged", as_number(before), as_number(i)), received.data(), n);
            }
        } else if (thread == 1) {
            for (int i = 0; i < rounds_of(50); ++i) {
                Window other(Flavor::kCreate, windows, 64);
                const int value = i;
                CHECK_MPI(MPI_Win_fence(0, other.win));
                CHECK_MPI(MPI_Put(&value, 1, MPI_INT, next, other.at(next, 4), 1, MPI_INT, other.win));
                CHECK_MPI(MPI_Win_fence(0, other.win));
                CHECK_EQ(reinterpret_cast<int*>(other.memory)[1], i);
            }
        } else {
            Region region(window, thread, 3000);
            for (int i = 0; i < rounds_of(300); ++i) region.step();
        }
    });
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    MPI_Comm_free(&messages);
    MPI_Comm_free(&windows);
}

// One thread starts calls, another one waits for them.
CASE(another_thread_waits_for_the_requests) {
    constexpr std::size_t kNumber = 100;
    Window window(Flavor::kCreate, env.comm, 2 * kNumber * 1000);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto there = [](int rank) { return key_of("there", as_number(rank)); };
    window.reset([&](unsigned char* memory) { pattern::fill(there(env.rank), 0, memory, window.bytes); });
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
    std::vector<MPI_Request> requests[2];
    std::vector<Bytes> sent, got(kNumber, Bytes(1000));
    for (std::size_t i = 0; i < kNumber; ++i) sent.push_back(message(key_of("here", as_number(env.rank), i), 1000));
    const auto start = [&](std::size_t from, std::vector<MPI_Request>& some) {
        for (std::size_t i = from; i < from + kNumber / 2; ++i) {
            CHECK_MPI(MPI_Rput(sent[i].data(), 1000, MPI_BYTE, next, window.at(next, i * 1000), 1000, MPI_BYTE,
                               window.win, &some.emplace_back()));
            CHECK_MPI(MPI_Rget(got[i].data(), 1000, MPI_BYTE, next, window.at(next, (kNumber + i) * 1000), 1000,
                               MPI_BYTE, window.win, &some.emplace_back()));
        }
    };
    start(0, requests[0]);
    std::thread waiter([&] { CHECK_MPI(MPI_Waitall(as_int(kNumber), requests[0].data(), MPI_STATUSES_IGNORE)); });
    start(kNumber / 2, requests[1]);
    waiter.join();
    CHECK_MPI(MPI_Waitall(as_int(kNumber), requests[1].data(), MPI_STATUSES_IGNORE));
    CHECK_MPI(MPI_Win_unlock(next, window.win));
    for (std::size_t i = 0; i < kNumber; ++i)
        CHECK_EQ(pattern::mismatch(there(next), (kNumber + i) * 1000, got[i].data(), 1000), pattern::kNone);
    window.inspect([&](const unsigned char* memory) {
        for (std::size_t i = 0; i < kNumber; ++i)
            CHECK_PATTERN(key_of("here", as_number(before), i), memory + i * 1000, 1000);
    });
}

namespace {

// Called when a datatype ends: puts a byte into the window that is the attribute.
int put_a_byte(MPI_Datatype, int, void* attribute, void*) {
    static const unsigned char byte = 42;
    const Window& window = *static_cast<const Window*>(attribute);
    const int next = (window.rank + 1) % window.processes;
    CHECK_MPI(MPI_Put(&byte, 1, MPI_BYTE, next, window.at(next, window.bytes - 1), 1, MPI_BYTE, window.win));
    return MPI_SUCCESS;
}

}  // namespace

// A get keeps the last reference to its datatype, which a function of the program belongs to.
CASE(a_datatype_ends_with_its_get_and_calls_the_program) {
    constexpr int kBlocks = 500;
    int key;
    CHECK_MPI(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, put_a_byte, &key, nullptr));
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, kBlocks + 1);
        window.reset([&](unsigned char* memory) { std::memset(memory, env.rank, window.bytes); });
        const int next = (env.rank + 1) % env.size;
        Bytes got(2 * kBlocks, 99);
        MPI_Datatype type;
        MPI_Type_vector(kBlocks, 1, 2, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        CHECK_MPI(MPI_Type_set_attr(type, key, &window));
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Get(got.data(), 1, type, next, window.at(next, 0), kBlocks, MPI_BYTE, window.win));
        MPI_Type_free(&type);
        CHECK_MPI(MPI_Win_flush(next, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        for (std::size_t i = 0; i < kBlocks; ++i) CHECK_EQ(got[2 * i], next);
        window.inspect([&](const unsigned char* memory) { CHECK_EQ(memory[kBlocks], 42); });
    }
    MPI_Type_free_keyval(&key);
}

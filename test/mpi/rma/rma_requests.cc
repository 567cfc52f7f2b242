// SPDX-License-Identifier: BSD-3-Clause
// Calls that return a request: each completes by itself, in any order, with any of MPI's completion calls, also when a
// hundred thousand are open.
#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;
Word as_word(int n) { return static_cast<Word>(n); }

// A window with words, and requests of this process to the next one.
class Traffic {
public:
    Traffic(Flavor flavor, MPI_Comm comm, std::size_t words)
        : window(flavor, comm, words * sizeof(Word)), next((window.rank + 1) % window.processes),
          before((window.rank + window.processes - 1) % window.processes), sent(words), got(words, 0), requests(words) {
        window.reset([&](unsigned char* memory) {
            for (std::size_t i = 0; i < words; ++i) store(memory, i, initial(window.rank, i));
        });
    }
    static void store(unsigned char* memory, std::size_t i, Word value) {
        std::memcpy(memory + i * sizeof(Word), &value, sizeof value);
    }
    static Word initial(int rank, std::size_t i) { return 7 * i + as_word(rank) * 1000000; }
    static Word value(int rank, std::size_t i) { return 5 * i + as_word(rank) * 3000000 + 1; }

    void rput(std::size_t i) {
        sent[i] = value(window.rank, i);
        CHECK_MPI(MPI_Rput(&sent[i], 1, MPI_UINT64_T, next, at(i), 1, MPI_UINT64_T, window.win, &requests[i]));
    }
    void rget(std::size_t i) {
        CHECK_MPI(MPI_Rget(&got[i], 1, MPI_UINT64_T, next, at(i), 1, MPI_UINT64_T, window.win, &requests[i]));
    }
    void raccumulate(std::size_t i) {
        sent[i] = value(window.rank, i);
        CHECK_MPI(MPI_Raccumulate(&sent[i], 1, MPI_UINT64_T, next, at(i), 1, MPI_UINT64_T, MPI_REPLACE, window.win,
                                  &requests[i]));
    }
    void rget_accumulate(std::size_t i) {
        sent[i] = value(window.rank, i);
        CHECK_MPI(MPI_Rget_accumulate(&sent[i], 1, MPI_UINT64_T, &got[i], 1, MPI_UINT64_T, next, at(i), 1, MPI_UINT64_T,
                                      MPI_REPLACE, window.win, &requests[i]));
    }
    MPI_Aint at(std::size_t i) const { return window.at(next, i * sizeof(Word)); }

    // Of this process's memory: what the process before it has put.
    void check_memory() {
        window.inspect([&](const unsigned char* memory) {
            for (std::size_t i = 0; i < sent.size(); ++i) {
                Word now;
                std::memcpy(&now, memory + i * sizeof(Word), sizeof now);
                CHECK_EQ(now, value(before, i));
            }
        });
    }

    Window window;
    int next, before;
    std::vector<Word> sent, got;
    std::vector<MPI_Request> requests;
};

}  // namespace

CASE(a_hundred_thousand_requests_are_open) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate}) {
        const auto number = as_size(rounds_of(flavor == Flavor::kCreate ? 100000 : 10000));
        Traffic traffic(flavor, env.comm, number);
        CHECK_MPI(MPI_Win_lock_all(0, traffic.window.win));
        for (std::size_t i = 0; i < number; ++i) traffic.rget(i);
        CHECK_MPI(MPI_Waitall(as_int(number), traffic.requests.data(), MPI_STATUSES_IGNORE));
        for (std::size_t i = 0; i < number; ++i) CHECK_EQ(traffic.got[i], Traffic::initial(traffic.next, i));
        MPI_Barrier(env.comm);
        for (std::size_t i = 0; i < number; ++i) traffic.rput(i);
        CHECK_MPI(MPI_Waitall(as_int(number), traffic.requests.data(), MPI_STATUSES_IGNORE));
        std::fill(traffic.sent.begin(), traffic.sent.end(), 0);
        CHECK_MPI(MPI_Win_unlock_all(traffic.window.win));
        traffic.check_memory();
    }
}

// Ten thousand that accumulate: they must also keep their order.
CASE(ten_thousand_accumulating_requests_are_open) {
    const auto number = as_size(rounds_of(10000));
    Traffic traffic(Flavor::kCreate, env.comm, number);
    CHECK_MPI(MPI_Win_lock_all(0, traffic.window.win));
    for (std::size_t i = 0; i < number; ++i) i % 2 == 0 ? traffic.rget_accumulate(i) : traffic.raccumulate(i);
    CHECK_MPI(MPI_Waitall(as_int(number), traffic.requests.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < number; i += 2) CHECK_EQ(traffic.got[i], Traffic::initial(traffic.next, i));
    CHECK_MPI(MPI_Win_unlock_all(traffic.window.win));
    traffic.check_memory();
}

// Many calls without a request in one epoch, ended by a flush.
CASE(a_hundred_thousand_puts_in_an_epoch) {
    const auto number = as_size(rounds_of(100000));
    Traffic traffic(Flavor::kCreate, env.comm, number);
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, traffic.next, 0, traffic.window.win));
    for (std::size_t i = 0; i < number; ++i) {
        traffic.sent[i] = Traffic::value(env.rank, i);
        CHECK_MPI(MPI_Put(&traffic.sent[i], 1, MPI_UINT64_T, traffic.next, traffic.at(i), 1, MPI_UINT64_T,
                          traffic.window.win));
    }
    CHECK_MPI(MPI_Win_flush(traffic.next, traffic.window.win));
    MPI_Barrier(env.comm);
    CHECK_MPI(MPI_Win_unlock(traffic.next, traffic.window.win));
    traffic.check_memory();
}

// The data of each is there as soon as its own request is complete, whatever became of the others.
CASE(requests_complete_in_any_order) {
    constexpr std::size_t kNumber = 60;
    for (int way = 0; way < 6; ++way) {
        Traffic traffic(way % 2 == 0 ? Flavor::kCreate : Flavor::kDynamic, env.comm, kNumber);
        auto& requests = traffic.requests;
        const int n = kNumber;
        const auto arrived = [&](int i) {
            CHECK(requests[as_size(i)] == MPI_REQUEST_NULL);
            const auto at = as_size(i);
            if (at % 4 == 0 || at % 4 == 3) CHECK_EQ(traffic.got[at], Traffic::initial(traffic.next, at));
            traffic.sent[at] = 0;
        };
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, traffic.next, 0, traffic.window.win));
        for (std::size_t i = 0; i < kNumber; ++i) switch (i % 4) {
            case 0: traffic.rget(i); break;
            case 1: traffic.rput(i); break;
            case 2: traffic.raccumulate(i); break;
            case 3: traffic.rget_accumulate(i); break;
            }
        int done = 0, index, flag = 0;
        std::vector<int> which(kNumber);
        switch (way) {
        case 0:
            for (int i = n - 1; i >= 0; --i) {
                CHECK_MPI(MPI_Wait(&requests[as_size(i)], MPI_STATUS_IGNORE));
                arrived(i);
            }
            break;
        case 1:
            for (int i = 0; i < n; ++i) {
                CHECK_MPI(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
                arrived(index);
            }
            break;
        case 2:
            for (int all = 0; all < n; all += done) {
                CHECK_MPI(MPI_Waitsome(n, requests.data(), &done, which.data(), MPI_STATUSES_IGNORE));
                for (int i = 0; i < done; ++i) arrived(which[as_size(i)]);
            }
            break;
        case 3:
            for (int i = n / 2, k = 0; k < n; ++k, i = (i + 7) % n) {
                for (flag = 0; flag == 0;) CHECK_MPI(MPI_Test(&requests[as_size(i)], &flag, MPI_STATUS_IGNORE));
                arrived(i);
            }
            break;
        case 4:
            while (flag == 0) CHECK_MPI(MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE));
            for (int i = 0; i < n; ++i) arrived(i);
            break;
        case 5:
            for (int i = 0; i < n; i += flag) {
                CHECK_MPI(MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE));
                if (flag != 0) arrived(index);
            }
            break;
        }
        CHECK_MPI(MPI_Win_unlock(traffic.next, traffic.window.win));
        traffic.window.inspect([&](const unsigned char* memory) {
            for (std::size_t i = 0; i < kNumber; ++i) {
                Word now;
                std::memcpy(&now, memory + i * sizeof(Word), sizeof now);
                CHECK_EQ(now, i % 4 == 0 ? Traffic::initial(env.rank, i) : Traffic::value(traffic.before, i));
            }
        });
    }
}

// Sizes of all protocols: what was sent may be changed after the request is complete, without a flush.
CASE(long_and_short_requests_complete_by_themselves) {
    constexpr std::size_t kLengths[] = {1, 100, 4000, 70000, 1000000, 3, 2000000, 40000};
    std::size_t bytes = 0;
    for (const std::size_t n : kLengths) bytes += n;
    Window window(Flavor::kCreate, env.comm, 2 * bytes);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto key = [](const char* what, int rank, std::size_t i) { return key_of(what, as_word(rank), i); };
    window.reset([&](unsigned char* memory) {
        std::memset(memory, 1, bytes);
        for (std::size_t i = 0, at = bytes; i < std::size(kLengths); at += kLengths[i++])
            pattern::fill(key("there", env.rank, i), 0, memory + at, kLengths[i]);
    });
    std::vector<Bytes> sent, got;
    std::vector<MPI_Request> requests(2 * std::size(kLengths));
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
    for (std::size_t i = 0, at = 0; i < std::size(kLengths); at += kLengths[i++]) {
        const int n = as_int(kLengths[i]);
        sent.push_back(message(key("here", env.rank, i), kLengths[i]));
        got.emplace_back(kLengths[i]);
        CHECK_MPI(MPI_Rput(sent[i].data(), n, MPI_BYTE, next, window.at(next, at), n, MPI_BYTE, window.win,
                           &requests[2 * i]));
        CHECK_MPI(MPI_Rget(got[i].data(), n, MPI_BYTE, next, window.at(next, bytes + at), n, MPI_BYTE, window.win,
                           &requests[2 * i + 1]));
    }
    for (std::size_t k = requests.size(); k-- > 0;) {
        CHECK_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
        if (k % 2 == 1) CHECK_PATTERN(key("there", next, k / 2), got[k / 2].data(), kLengths[k / 2]);
        else std::fill(sent[k / 2].begin(), sent[k / 2].end(), static_cast<unsigned char>(0));
    }
    CHECK_MPI(MPI_Win_unlock(next, window.win));
    window.inspect([&](const unsigned char* memory) {
        for (std::size_t i = 0, at = 0; i < std::size(kLengths); at += kLengths[i++])
            CHECK_PATTERN(key("here", before, i), memory + at, kLengths[i]);
    });
}

CASE(requests_of_windows_and_messages_are_awaited_together) {
    Traffic first(Flavor::kCreate, env.comm, 200), second(Flavor::kAllocate, env.comm, 200);
    CHECK_MPI(MPI_Win_lock_all(0, first.window.win));
    CHECK_MPI(MPI_Win_lock_all(0, second.window.win));
    std::vector<MPI_Request> all;
    std::vector<int> sent(200), got(200, -1);
    for (std::size_t i = 0; i < 200; ++i) {
        first.rput(i);
        second.rget(i);
        sent[i] = env.rank * 1000 + as_int(i);
        all.push_back(first.requests[i]);
        MPI_Irecv(&got[i], 1, MPI_INT, first.before, as_int(i), env.comm, &all.emplace_back());
        all.push_back(second.requests[i]);
        MPI_Isend(&sent[i], 1, MPI_INT, first.next, as_int(i), env.comm, &all.emplace_back());
    }
    CHECK_MPI(MPI_Waitall(as_int(all.size()), all.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < 200; ++i) {
        CHECK_EQ(got[i], first.before * 1000 + as_int(i));
        CHECK_EQ(second.got[i], Traffic::initial(second.next, i));
    }
    CHECK_MPI(MPI_Win_unlock_all(second.window.win));
    CHECK_MPI(MPI_Win_unlock_all(first.window.win));
    first.check_memory();
}

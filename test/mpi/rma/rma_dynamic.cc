// SPDX-License-Identifier: BSD-3-Clause
// Dynamic windows: very many attachments, memory that is detached and attached again, other memory at the same address,
// attachments while other processes use the window.
#include <sys/mman.h>

#include <memory>

#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

std::uint64_t as_number(int n) { return static_cast<std::uint64_t>(n); }

// osc/rdma has room for 64.
int number_of_attachments() { return mpitest::on_ob1() ? 60 : rounds_of(10000); }

class Dynamic {
public:
    explicit Dynamic(MPI_Comm of) : comm(of), rank(rank_in(of)), processes(size_of(of)) {
        CHECK_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
        CHECK_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    }
    ~Dynamic() { CHECK_MPI(MPI_Win_free(&win)); }
    Dynamic(const Dynamic&) = delete;

    void attach(void* memory, std::size_t bytes) {
        CHECK_MPI(MPI_Win_attach(win, memory, static_cast<MPI_Aint>(bytes)));
    }
    void detach(void* memory) { CHECK_MPI(MPI_Win_detach(win, memory)); }

    // The addresses that each process has given, in the order of ranks.
    std::vector<MPI_Aint> tell(const std::vector<unsigned char*>& mine) const {
        std::vector<MPI_Aint> own, all(mine.size() * as_size(processes));
        for (unsigned char* one : mine) MPI_Get_address(one, &own.emplace_back());
        MPI_Allgather(own.data(), as_int(own.size()), MPI_AINT, all.data(), as_int(own.size()), MPI_AINT, comm);
        return all;
    }

    MPI_Win win = MPI_WIN_NULL;
    const MPI_Comm comm;
    const int rank, processes;
};

void* pages_of(std::size_t bytes, void* at = nullptr) {
    const int fixed = at == nullptr ? 0 : MAP_FIXED;
    void* pages = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    CHECK(pages != MAP_FAILED);
    return pages;
}

}  // namespace

// Blocks of different sizes, some in the same page, used by all other processes in a random order.
CASE(ten_thousand_attachments) {
    Dynamic window(env.comm);
    const int number = number_of_attachments();
    const auto bytes_of = [](int i) { return as_size(16 + i % 5 * 24); };
    std::vector<Bytes> blocks;
    std::vector<unsigned char*> starts;
    for (int i = 0; i < number; ++i) {
        // The gap keeps the attachments apart.
        Bytes& one = blocks.emplace_back(bytes_of(i) + 16, static_cast<unsigned char>(1));
        starts.push_back(one.data());
        window.attach(one.data(), bytes_of(i));
    }
    const std::vector<MPI_Aint> places = window.tell(starts);
    pattern::Random random(as_number(window.rank));
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const auto key = [](int origin, int i) { return key_of("attached", as_number(origin), as_number(i)); };
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    std::vector<Bytes> sent;
    const int used = std::min(number, 2000);
    const auto pick = [&](int i) { return static_cast<int>(as_number(i) * 7919 % as_number(number)); };
    for (int i = 0; i < used; ++i) {
        const int block = pick(i);
        sent.push_back(message(key(window.rank, block), bytes_of(block)));
        CHECK_MPI(MPI_Put(sent.back().data(), as_int(bytes_of(block)), MPI_BYTE, next,
                          places[as_size(next * number + block)], as_int(bytes_of(block)), MPI_BYTE, window.win));
    }
    CHECK_MPI(MPI_Win_flush_all(window.win));
    for (int i = 0; i < 200; ++i) {
        const int block = pick(static_cast<int>(random.below(as_number(used))));
        Bytes back(bytes_of(block));
        CHECK_MPI(MPI_Get(back.data(), as_int(back.size()), MPI_BYTE, next, places[as_size(next * number + block)],
                          as_int(back.size()), MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_flush(next, window.win));
        check_bytes(back.data(), message(key(window.rank, block), back.size()), "read back");
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    MPI_Barrier(env.comm);
    std::vector<bool> written(as_size(number), false);
    for (int i = 0; i < used; ++i) written[as_size(pick(i))] = true;
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window.rank, 0, window.win));
    for (int i = 0; i < number; ++i) {
        if (written[as_size(i)]) CHECK_PATTERN(key(before, i), starts[as_size(i)], bytes_of(i));
        else CHECK_UNTOUCHED(1, starts[as_size(i)], bytes_of(i));
        CHECK_UNTOUCHED(1, starts[as_size(i)] + bytes_of(i), 16);
    }
    CHECK_MPI(MPI_Win_unlock(window.rank, window.win));
    // In another order than attached.
    for (int i = 0; i < number; i += 2) window.detach(starts[as_size(i)]);
    for (int i = number - 1 - number % 2; i > 0; i -= 2) window.detach(starts[as_size(i)]);
}

// The same memory again and again, with other lengths; others must not use what they know of the time before.
CASE(memory_is_detached_and_attached_again) {
    Dynamic window(env.comm);
    Bytes memory(20000, 0);
    const std::vector<MPI_Aint> places = window.tell({memory.data()});
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    for (int round = 0; round < rounds_of(60); ++round) {
        const std::size_t shift = as_size(round % 4) * 1000, bytes = 1000 + as_size(round * 531 % 15000);
        const auto key = [&](int rank) { return key_of("again", as_number(rank), as_number(round)); };
        window.attach(memory.data() + shift, bytes);
        MPI_Barrier(env.comm);
        const Bytes sent = message(key(window.rank), bytes);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        CHECK_MPI(MPI_Put(sent.data(), as_int(bytes), MPI_BYTE, next,
                          places[as_size(next)] + static_cast<MPI_Aint>(shift), as_int(bytes), MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        MPI_Barrier(env.comm);
        window.detach(memory.data() + shift);
        CHECK_PATTERN(key(before), memory.data() + shift, bytes);
    }
}

// The pages behind an address are others after it was detached: writes must not go to the former ones.
CASE(other_memory_is_attached_at_the_same_address) {
    constexpr std::size_t kBytes = 256 * 1024;
    Dynamic window(env.comm);
    void* pages = pages_of(kBytes);
    auto* memory = static_cast<unsigned char*>(pages);
    const std::vector<MPI_Aint> places = window.tell({memory});
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    for (int round = 0; round < rounds_of(20); ++round) {
        const auto key = [&](int rank) { return key_of("other pages", as_number(rank), as_number(round)); };
        window.attach(memory, kBytes);
        MPI_Barrier(env.comm);
        const Bytes sent = message(key(window.rank), kBytes);
        Bytes back(kBytes);
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Put(sent.data(), kBytes, MPI_BYTE, next, places[as_size(next)], kBytes, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_flush(next, window.win));
        CHECK_MPI(MPI_Get(back.data(), kBytes, MPI_BYTE, next, places[as_size(next)], kBytes, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        check_bytes(back.data(), sent, "read back");
        MPI_Barrier(env.comm);
        CHECK_PATTERN(key(before), memory, kBytes);
        window.detach(memory);
        CHECK(pages_of(kBytes, pages) == pages);
    }
    munmap(pages, kBytes);
}

// Each process attaches and detaches while the others read from the parts that stay.
CASE(memory_is_attached_while_the_window_is_in_use) {
    Dynamic window(env.comm);
    Bytes stays = message(key_of("stays", as_number(window.rank)), 5000);
    window.attach(stays.data(), stays.size());
    const std::vector<MPI_Aint> places = window.tell({stays.data()});
    const int others = mpitest::on_ob1() ? 20 : 100;
    std::vector<Bytes> comes(as_size(others), Bytes(300));
    MPI_Barrier(env.comm);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int round = 0; round < rounds_of(10) + 1; ++round) {
        for (std::size_t i = 0; i < comes.size(); ++i) {
            window.attach(comes[i].data(), comes[i].size());
            const int target = (window.rank + round + as_int(i)) % window.processes;
            Bytes back(5000);
            CHECK_MPI(
                MPI_Get(back.data(), 5000, MPI_BYTE, target, places[as_size(target)], 5000, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Win_flush_local(target, window.win));
            CHECK_PATTERN(key_of("stays", as_number(target)), back.data(), 5000);
        }
        for (Bytes& one : comes) window.detach(one.data());
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    MPI_Barrier(env.comm);
    window.detach(stays.data());
}

// Three attachments side by side; the middle one is replaced by a shorter one.
CASE(attachments_that_touch_are_separate) {
    Dynamic window(env.comm);
    Bytes memory(3000, 0);
    for (std::size_t i = 0; i < 3; ++i) window.attach(memory.data() + i * 1000, 1000);
    const std::vector<MPI_Aint> places = window.tell({memory.data()});
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const Bytes sent(1000, static_cast<unsigned char>(window.rank + 1));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (const MPI_Aint i : {2, 0, 1})
        CHECK_MPI(
            MPI_Put(sent.data(), 1000, MPI_BYTE, next, places[as_size(next)] + 1000 * i, 1000, MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    CHECK_UNTOUCHED(static_cast<unsigned char>(before + 1), memory.data(), memory.size());
    MPI_Barrier(env.comm);
    window.detach(memory.data() + 1000);
    window.attach(memory.data() + 1200, 500);
    window.detach(memory.data());
    window.detach(memory.data() + 2000);
    window.detach(memory.data() + 1200);
}

// A program must not do that; but the target tells the origin, as for memory that was never attached, and goes on.
CASE(memory_is_detached_while_others_read_it) {
    if (mpitest::skipped_on_ob1("osc/rdma reads memory that is not attached")) return;
    constexpr int kBytes = 8 << 20;
    Dynamic window(env.comm);
    void* pages = pages_of(kBytes);
    std::memset(pages, 7, kBytes);
    auto* const memory = static_cast<unsigned char*>(pages);
    const std::vector<MPI_Aint> places = window.tell({memory});
    window.attach(memory, kBytes);
    MPI_Barrier(env.comm);
    if (window.rank == 0) {
        for (int i = 1; i < window.processes; ++i)
            MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 1, env.comm, MPI_STATUS_IGNORE);
    } else {
        Bytes back(kBytes, 0);
        MPI_Request request;
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Rget(back.data(), kBytes, MPI_BYTE, 0, places[0], kBytes, MPI_BYTE, window.win, &request));
        int arrived;
        MPI_Iprobe(MPI_ANY_SOURCE, 2, env.comm, &arrived, MPI_STATUS_IGNORE);  // sends the request
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, env.comm);
        const int got = MPI_Wait(&request, MPI_STATUS_IGNORE), unlocked = MPI_Win_unlock_all(window.win);
        if (got == MPI_SUCCESS) CHECK_UNTOUCHED(7, back.data(), back.size());
        else CHECK_ERROR(got, MPI_ERR_RMA_RANGE);
        CHECK_ERROR(unlocked, got == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
    }
    window.detach(memory);
    munmap(pages, kBytes);
    MPI_Barrier(env.comm);
}

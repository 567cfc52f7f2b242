// SPDX-License-Identifier: BSD-3-Clause
// A target that computes: rank 0 watches its own memory without calling MPI until all others have ended everything that
// passive target synchronization offers. Arguments: `seconds=N`: the first time, it computes for at least as long;
// `dynamic`: with windows of dynamic memory, too.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 100; });

using Word = std::uint64_t;

// The memory of rank 0: words that all change, then the parts of the others, each with the word that tells the end.
constexpr std::size_t kSum = 0, kTicket = 8, kSwapped = 16, kFloats = 24, kParts = 256;
constexpr int kDoubles = 8;
constexpr std::size_t kLong = 100'000, kPart = kLong + 4096, kEnd = kPart - 8;

std::size_t part_of(int rank) { return kParts + as_size(rank - 1) * kPart; }

std::chrono::seconds least_time() {
    for (const std::string& each : mpitest::settings().arguments)
        if (each.rfind("seconds=", 0) == 0) return std::chrono::seconds(std::stoi(each.substr(8)));
    return std::chrono::seconds(0);
}

// Loads and stores only. Another process's RDMA changes the memory.
void compute_until_all_have_ended(const Window& window) {
    const auto start = std::chrono::steady_clock::now();
    for (int rank = 1; rank < window.processes; ++rank) {
        const void* const end = window.memory + part_of(rank) + kEnd;
        while (__atomic_load_n(static_cast<const Word*>(end), __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
    }
    static bool is_first = true;
    while (is_first && std::chrono::steady_clock::now() - start < least_time()) std::this_thread::yield();
    is_first = false;
}

void transfer(const Window& window, int round) {
    const Bytes data = message(key_of("busy", as_size(window.rank), as_size(round)), kLong);
    const std::size_t at = part_of(window.rank);
    Bytes found(kLong);
    // In one piece, in short pieces that follow each other, and scattered.
    CHECK_MPI(MPI_Put(data.data(), as_int(kLong), MPI_BYTE, 0, window.at(0, at), as_int(kLong), MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_flush(0, window.win));
    CHECK_MPI(MPI_Get(found.data(), as_int(kLong), MPI_BYTE, 0, window.at(0, at), as_int(kLong), MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_flush(0, window.win));
    check_bytes(found.data(), data, "in one piece");
    Bytes other = message(key_of("pieces", as_size(window.rank), as_size(round)), 3000);
    for (std::size_t i = 0; i < other.size(); i += 100)
        CHECK_MPI(MPI_Put(other.data() + i, 100, MPI_BYTE, 0, window.at(0, at + i), 100, MPI_BYTE, window.win));
    MPI_Datatype scattered;
    MPI_Type_vector(300, 5, 10, MPI_BYTE, &scattered);
    MPI_Type_commit(&scattered);
    CHECK_MPI(MPI_Win_flush(0, window.win));
    Bytes half(1500), back(1500), expected(1500);
    CHECK_MPI(MPI_Get(half.data(), 1500, MPI_BYTE, 0, window.at(0, at), 1, scattered, window.win));
    CHECK_MPI(MPI_Win_flush(0, window.win));
    for (std::size_t i = 0; i < 1500; ++i) expected[i] = other[i / 5 * 10 + i % 5];
    check_bytes(half.data(), expected, "scattered get");
    for (std::size_t i = 0; i < 1500; ++i) half[i] = static_cast<unsigned char>(~half[i]);
    MPI_Request requests[2];
    CHECK_MPI(MPI_Rput(half.data(), 1500, MPI_BYTE, 0, window.at(0, at), 1, scattered, window.win, &requests[0]));
    CHECK_MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK_MPI(MPI_Win_flush(0, window.win));
    CHECK_MPI(MPI_Rget(back.data(), 1500, MPI_BYTE, 0, window.at(0, at), 1, scattered, window.win, &requests[0]));
    Bytes all(3000);
    CHECK_MPI(MPI_Rget(all.data(), 3000, MPI_BYTE, 0, window.at(0, at), 3000, MPI_BYTE, window.win, &requests[1]));
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    check_bytes(back.data(), half, "scattered put");
    for (std::size_t i = 0; i < 1500; ++i) other[i / 5 * 10 + i % 5] = half[i];
    check_bytes(all.data(), other, "between the scattered pieces");
    MPI_Type_free(&scattered);
}

// Each round adds 1 to the sum and 1.0 to the doubles, takes a ticket, and swaps the word behind them once.
void accumulate(const Window& window) {
    const Word one = 1;
    Word found = 0;
    double ones[kDoubles], before[kDoubles];
    std::fill(ones, ones + kDoubles, 1.0);
    CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, window.at(0, kSum), 1, MPI_UINT64_T, MPI_SUM, window.win));
    CHECK_MPI(MPI_Get_accumulate(ones, kDoubles, MPI_DOUBLE, before, kDoubles, MPI_DOUBLE, 0, window.at(0, kFloats),
                                 kDoubles, MPI_DOUBLE, MPI_SUM, window.win));
    CHECK_MPI(MPI_Fetch_and_op(&one, &found, MPI_UINT64_T, 0, window.at(0, kTicket), MPI_SUM, window.win));
    CHECK_MPI(MPI_Win_flush(0, window.win));
    for (const double each : before) CHECK_EQ(each, before[0]);
    for (Word seen = 0;;) {
        const Word next = seen + 1, expected = seen;
        CHECK_MPI(MPI_Compare_and_swap(&next, &expected, &seen, MPI_UINT64_T, 0, window.at(0, kSwapped), window.win));
        CHECK_MPI(MPI_Win_flush(0, window.win));
        if (seen == expected) break;
    }
}

void with_a_busy_target(const mpitest::Env& env, Flavor flavor, void (*use)(const Window&)) {
    const std::size_t bytes = rank_in(env.comm) == 0 ? part_of(env.size) : 64;
    const Members members(flavor, env.comm);
    Window window(flavor, members.comm, bytes);
    // The first contact of the others with rank 0 happens while it computes.
    std::memset(window.memory, 0, bytes);
    MPI_Barrier(members.comm);
    if (window.rank == 0) {
        compute_until_all_have_ended(window);
    } else {
        use(window);
        const Word end = 1;
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
        CHECK_MPI(
            MPI_Put(&end, 1, MPI_UINT64_T, 0, window.at(0, part_of(window.rank) + kEnd), 1, MPI_UINT64_T, window.win));
        CHECK_MPI(MPI_Win_unlock(0, window.win));
    }
    window.inspect([&](const unsigned char* memory) {
        if (window.rank != 0) return;
        const auto all = static_cast<Word>(rounds_of(10)) * static_cast<Word>(window.processes - 1);
        Word sum, ticket, swapped;
        double floats[kDoubles];
        std::memcpy(&sum, memory + kSum, 8);
        std::memcpy(&ticket, memory + kTicket, 8);
        std::memcpy(&swapped, memory + kSwapped, 8);
        std::memcpy(floats, memory + kFloats, sizeof floats);
        CHECK_EQ(sum, all);
        CHECK_EQ(ticket, all);
        CHECK_EQ(swapped, all);
        for (const double each : floats) CHECK_EQ(each, static_cast<double>(all));
    });
}

void by_locks(const Window& window, int type) {
    for (int round = 0; round < rounds_of(10); ++round) {
        CHECK_MPI(MPI_Win_lock(type, 0, 0, window.win));
        transfer(window, round);
        accumulate(window);
        CHECK_MPI(MPI_Win_unlock(0, window.win));
    }
}

bool with_dynamic() {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), "dynamic") != all.end();
}

void for_all_flavors(const mpitest::Env& env, void (*use)(const Window&)) {
    std::vector<Flavor> flavors = {Flavor::kCreate, Flavor::kAllocate};
    if (with_dynamic()) flavors.push_back(Flavor::kDynamic);
    for (const Flavor flavor : flavors) with_a_busy_target(env, flavor, use);
}

// A dynamic window, to which rank 0 has attached two pages. Nobody may read the page between them.
class Pages {
public:
    explicit Pages(MPI_Comm of) : comm(of), rank(rank_in(of)) {
        CHECK_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
        CHECK_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (rank == 0) {
            void* const all = mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(all != MAP_FAILED);
            memory = static_cast<unsigned char*>(all);
            CHECK_EQ(mprotect(memory + bytes, bytes, PROT_NONE), 0);
            for (unsigned char* const page : {memory, memory + 2 * bytes})
                CHECK_MPI(MPI_Win_attach(win, page, static_cast<MPI_Aint>(bytes)));
            MPI_Get_address(memory, &start);
        }
        MPI_Bcast(&start, 1, MPI_AINT, 0, comm);
    }
    ~Pages() {
        if (rank == 0) {
            for (unsigned char* const page : {memory, memory + 2 * bytes}) CHECK_MPI(MPI_Win_detach(win, page));
            munmap(memory, 3 * bytes);
        }
        CHECK_MPI(MPI_Win_free(&win));
    }
    Pages(const Pages&) = delete;

    const MPI_Comm comm;
    const int rank;
    const std::size_t bytes = as_size(static_cast<int>(sysconf(_SC_PAGESIZE)));
    MPI_Win win = MPI_WIN_NULL;
    unsigned char* memory = nullptr;
    MPI_Aint start = 0;
};

// 8 blocks before the end of the first page, and 8 from the start of the last one. Between two are 8 bytes, and once
// a page.
class InnerEnds {
public:
    static constexpr int kWords = 31, kBlocks = 16;
    explicit InnerEnds(std::size_t page) {
        for (std::size_t i = 0; i < kBlocks; ++i) {
            const std::size_t byte = i < kBlocks / 2 ? page - kBlocks / 2 * kStride + i * kStride
                                                     : 2 * page + (i - kBlocks / 2) * kStride;
            places[i] = static_cast<MPI_Aint>(byte);
        }
        MPI_Type_create_hindexed_block(kBlocks, kWords, places, MPI_UINT64_T, &type);
        MPI_Type_commit(&type);
    }
    ~InnerEnds() { MPI_Type_free(&type); }
    InnerEnds(const InnerEnds&) = delete;

    MPI_Aint places[kBlocks];
    MPI_Datatype type = MPI_DATATYPE_NULL;

private:
    static constexpr std::size_t kStride = (kWords + 1) * sizeof(Word);
};

void use_inner_ends(const Pages& pages, const InnerEnds& ends, int rounds) {
    constexpr int kAll = InnerEnds::kWords * InnerEnds::kBlocks;
    const std::vector<Word> ones(kAll, 1);
    std::vector<Word> found(kAll), before(kAll);
    for (int round = 1; round <= rounds; ++round) {
        CHECK_MPI(MPI_Accumulate(ones.data(), kAll, MPI_UINT64_T, 0, pages.start, 1, ends.type, MPI_SUM, pages.win));
        CHECK_MPI(MPI_Win_flush(0, pages.win));
        CHECK_MPI(MPI_Get(found.data(), kAll, MPI_UINT64_T, 0, pages.start, 1, ends.type, pages.win));
        CHECK_MPI(MPI_Win_flush(0, pages.win));
        CHECK_MPI(MPI_Get_accumulate(nullptr, 0, MPI_UINT64_T, before.data(), kAll, MPI_UINT64_T, 0, pages.start, 1,
                                     ends.type, MPI_NO_OP, pages.win));
        CHECK_MPI(MPI_Win_flush(0, pages.win));
        for (std::size_t i = 0; i < kAll; ++i) {
            CHECK(found[i] >= static_cast<Word>(round));
            CHECK(before[i] >= found[i]);
        }
    }
}

}  // namespace

CASE(what_lies_between_blocks_need_not_be_attached) {
    if (!with_dynamic()) return;
    const int rounds = rounds_of(50);
    const Pages pages(env.comm);
    const InnerEnds ends(pages.bytes);
    // The first words tell the end.
    if (pages.rank == 0) {
        for (int rank = 1; rank < env.size; ++rank)
            while (__atomic_load_n(reinterpret_cast<const Word*>(pages.memory) + rank, __ATOMIC_ACQUIRE) == 0)
                std::this_thread::yield();
    } else {
        const Word end = 1;
        CHECK_MPI(MPI_Win_lock_all(0, pages.win));
        use_inner_ends(pages, ends, rounds);
        CHECK_MPI(MPI_Put(&end, 1, MPI_UINT64_T, 0, pages.start + 8 * pages.rank, 1, MPI_UINT64_T, pages.win));
        CHECK_MPI(MPI_Win_unlock_all(pages.win));
    }
    MPI_Barrier(pages.comm);
    if (pages.rank != 0) return;
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, pages.win));
    for (const MPI_Aint place : ends.places)
        for (int i = 0; i <= InnerEnds::kWords; ++i) {
            Word is;
            std::memcpy(&is, pages.memory + place + 8 * i, sizeof is);
            CHECK_EQ(is, i < InnerEnds::kWords ? static_cast<Word>(rounds * (env.size - 1)) : Word{0});
        }
    CHECK_MPI(MPI_Win_unlock(0, pages.win));
}

CASE(exclusive_locks_need_nothing_of_a_busy_target) {
    for_all_flavors(env, [](const Window& window) { by_locks(window, MPI_LOCK_EXCLUSIVE); });
}

CASE(shared_locks_need_nothing_of_a_busy_target) {
    for_all_flavors(env, [](const Window& window) { by_locks(window, MPI_LOCK_SHARED); });
}

CASE(locks_of_all_need_nothing_of_a_busy_target) {
    for_all_flavors(env, [](const Window& window) {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (int round = 0; round < rounds_of(10); ++round) {
            transfer(window, round);
            accumulate(window);
        }
        CHECK_MPI(MPI_Win_flush_all(window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    });
}

CASE(readers_and_writers_need_nothing_of_a_busy_target) {
    for_all_flavors(env, [](const Window& window) {
        for (int round = 0; round < rounds_of(10); ++round) {
            const int type = (round + window.rank) % 3 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
            CHECK_MPI(MPI_Win_lock(type, 0, 0, window.win));
            accumulate(window);
            CHECK_MPI(MPI_Win_unlock(0, window.win));
        }
    });
}

// The origin computes after MPI_Win_complete until the target says that it has seen the end of the epoch, and all data.
CASE(the_end_of_an_epoch_needs_nothing_of_a_busy_origin) {
    constexpr int kBlock = 256, kBlocks = 2000;
    const Members members(Flavor::kCreate, env.comm);
    Window window(Flavor::kCreate, members.comm, kBlock * kBlocks);
    std::memset(window.memory, 0, window.bytes);
    MPI_Group all, other;
    MPI_Comm_group(members.comm, &all);
    const int origin = 0, target = 1, peer = window.rank == origin ? target : origin;
    MPI_Group_incl(all, 1, &peer, &other);
    const Bytes data = message(key_of("busy origin", 1), kBlock * kBlocks);
    for (int round = 0; round < rounds_of(20); ++round) {
        MPI_Barrier(members.comm);
        if (window.rank == origin) {
            CHECK_MPI(MPI_Win_start(other, 0, window.win));
            for (int i = 0; i < kBlocks; ++i)
                CHECK_MPI(MPI_Put(&data[as_size(i * kBlock)], kBlock, MPI_BYTE, target,
                                  window.at(target, as_size(i * kBlock)), kBlock, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Win_complete(window.win));
            const void* const end = window.memory;
            while (__atomic_load_n(static_cast<const Word*>(end), __ATOMIC_ACQUIRE) != static_cast<Word>(round + 1))
                std::this_thread::yield();
        } else if (window.rank == target) {
            CHECK_MPI(MPI_Win_post(other, 0, window.win));
            CHECK_MPI(MPI_Win_wait(window.win));
            check_bytes(window.memory, data, "after the epoch");
            const Word end = static_cast<Word>(round + 1);
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, origin, 0, window.win));
            CHECK_MPI(MPI_Put(&end, 1, MPI_UINT64_T, origin, window.at(origin, 0), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_unlock(origin, window.win));
        }
    }
    MPI_Group_free(&other);
    MPI_Group_free(&all);
}

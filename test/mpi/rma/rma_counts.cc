// SPDX-License-Identifier: BSD-3-Clause
// What osc/multirail counts of the operations on each window: ways, reasons and bytes, as MPI_T variables of the window and of
// the process. Only for osc/multirail. The last cases make windows for the report, which the script reads.
//
// Arguments: `rdma`: all processes are on different hosts, and RDMA leads to all; `hcas`: the same, and HCAs execute passive
// epochs; `no_cma`: processes of a node do not copy from each other's memory; `foreign`: another component serves the windows of MPI_Win_allocate_shared.
#include <map>
#include <memory>
#include <thread>

#include "variable.h"
#include "window.h"

namespace {

using Word = std::uint64_t;
constexpr int kLong = 64 * 1024, kShort = 40;

constexpr const char* kWays[] = {"shared_memory", "direct", "staged", "message", "cma"};
constexpr const char* kReasons[] = {"own_memory",
                                    "same_node",
                                    "long",
                                    "short",
                                    "several_blocks",
                                    "no_rdma",
                                    "not_registered",
                                    "dynamic_window",
                                    "executed_by_target",
                                    "executed_by_origin",
                                    "other_transport",
                                    "refused_by_transport",
                                    "target_helps",
                                    "not_shared",
                                    "both_copy",
                                    "collected",
                                    "cma_refused"};

bool has_argument(const char* word) {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), word) != all.end();
}

using Counts = std::map<std::string, unsigned long long>;

// What is to be counted.
void add(Counts& counts, const std::string& way, const std::string& reason, unsigned long long bytes,
         unsigned long long operations = 1) {
    counts["operations_" + way] += operations;
    counts["bytes_" + way] += bytes * operations;
    counts["reason_" + reason] += operations;
}
Counts operator+(Counts sum, const Counts& more) {
    for (const auto& [name, n] : more) sum[name] += n;
    return sum;
}

// All variables of a window, or of the process. They count from here on.
class Counters {
public:
    explicit Counters(MPI_Win* window = nullptr) {
        for (const char* way : kWays) {
            open("operations_", way, window);
            open("bytes_", way, window);
        }
        for (const char* reason : kReasons) open("reason_", reason, window);
    }
    // Everything that is not expected is 0.
    void expect(const Counts& expected, const std::string& what) const {
        for (const auto& [name, variable] : variables_) {
            const auto found = expected.find(name);
            const auto n = found == expected.end() ? 0 : found->second;
            if (const auto is = variable->read(); is != n)
                mpitest::fail(__FILE__, __LINE__,
                              what + ": " + name + " is " + std::to_string(is) + ", expected " + std::to_string(n));
        }
    }

private:
    void open(const char* family, const char* word, MPI_Win* window) {
        const std::string name = std::string(family) + word;
        auto& variable = variables_[name];
        variable = std::make_unique<Variable>((window ? "window_" : "") + name, "osc_multirail", window);
        CHECK(variable->can_be_bound());
    }
    std::map<std::string, std::unique_ptr<Variable>> variables_;
};

// Which processes of a communicator are on this node.
std::vector<bool> on_this_node(MPI_Comm comm) {
    MPI_Comm node;
    MPI_Group near, all;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_group(node, &near);
    MPI_Comm_group(comm, &all);
    std::vector<bool> is_near;
    for (int rank = 0; rank < size_of(comm); ++rank) {
        int there;
        MPI_Group_translate_ranks(all, 1, &rank, near, &there);
        is_near.push_back(there != MPI_UNDEFINED);
    }
    MPI_Group_free(&near);
    MPI_Group_free(&all);
    MPI_Comm_free(&node);
    return is_near;
}

// The memory of a process has a part for each origin: a long block, and a few words.
constexpr std::size_t kPart = kLong + 512;
std::size_t part_of(int origin) { return as_size(origin) * kPart; }

// Puts, gets and atomics to all processes, with what they must count. Every byte is checked.
class Traffic {
public:
    Traffic(Flavor flavor, MPI_Comm comm, Word seed)
        : window(flavor, comm, as_size(size_of(comm)) * kPart), allocated_(flavor == Flavor::kAllocate), seed_(seed),
          near_(on_this_node(comm)), all_near_(std::find(near_.begin(), near_.end(), false) == near_.end()) {}

    void run() {
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (int target = 0; target < window.processes; ++target) to(target);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        window.inspect([&](const unsigned char* memory) {
            for (int origin = 0; origin < window.processes; ++origin) {
                Bytes part = sent(origin, window.rank, kLong);
                const Bytes words = sent(origin, window.rank, kShort);
                part.insert(part.end(), words.begin(), words.end());
                const Word sum = 2 * as_word(origin) + 2;
                part.resize(kLong + 56);
                std::memcpy(&part[kLong + 48], &sum, sizeof sum);
                check_bytes(memory + part_of(origin), part, "memory");
            }
        });
    }

    Window window;
    Counts expected;

private:
    static Word as_word(int n) { return static_cast<Word>(n); }
    Bytes sent(int origin, int target, int bytes) const {
        return message(key_of("counts", seed_ * 1000 + as_word(origin), as_word(target), as_word(bytes)),
                       as_size(bytes));
    }

    // 3 puts of kShort bytes, one of kLong, a get of both, 2 atomics.
    void to(int target) {
        const std::size_t part = part_of(window.rank);
        const MPI_Aint block = window.at(target, part), words = window.at(target, part + kLong),
                       sum = window.at(target, part + kLong + 48);
        const Bytes many = sent(window.rank, target, kLong), few = sent(window.rank, target, kShort);
        for (int i = 0; i < 3; ++i)
            CHECK_MPI(MPI_Put(few.data(), kShort, MPI_BYTE, target, words, kShort, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Put(many.data(), kLong, MPI_BYTE, target, block, kLong, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_flush(target, window.win));
        Bytes got(as_size(kLong + kShort));
        CHECK_MPI(MPI_Get(got.data(), kLong, MPI_BYTE, target, block, kLong, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Get(got.data() + kLong, kShort, MPI_BYTE, target, words, kShort, MPI_BYTE, window.win));
        Word before[2] = {};
        const Word step = as_word(window.rank) + 1;
        for (Word& each : before) {
            CHECK_MPI(MPI_Fetch_and_op(&step, &each, MPI_UINT64_T, target, sum, MPI_SUM, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
        }
        CHECK_EQ(before[0], 0);
        CHECK_EQ(before[1], step);
        Bytes all = many;
        all.insert(all.end(), few.begin(), few.end());
        check_bytes(got.data(), all, "got");
        expect_to(target);
    }

    void expect_to(int target) {
        const bool self = target == window.rank, near = near_[as_size(target)];
        const char* const why_mapped = self ? "own_memory" : "same_node";
        const bool hcas = has_argument("hcas"), rdma = hcas || has_argument("rdma");
        const bool copies = near && !has_argument("no_cma");
        if (self || (allocated_ && near)) {
            add(expected, "shared_memory", why_mapped, kShort, 4);
            add(expected, "shared_memory", why_mapped, kLong, 2);
        } else if (copies) {
            add(expected, "cma", "not_shared", kShort, 4);
            add(expected, "cma", "not_shared", kLong, 2);
        } else {
            add(expected, hcas ? "staged" : "message", rdma ? "short" : "no_rdma", kShort, 4);
            add(expected, rdma ? "direct" : "message", rdma ? "long" : "no_rdma", kLong, 2);
        }
        if (hcas) add(expected, "staged", "executed_by_origin", sizeof(Word), 2);
        else if (self || (allocated_ && all_near_)) add(expected, "shared_memory", why_mapped, sizeof(Word), 2);
        else if (copies && all_near_) add(expected, "cma", "executed_by_origin", sizeof(Word), 2);
        else add(expected, "message", "executed_by_target", sizeof(Word), 2);
    }

    const bool allocated_;
    const Word seed_;
    const std::vector<bool> near_;
    const bool all_near_;
};

MPI_Win allocated_by(MPI_Comm comm, unsigned char** memory) {
    MPI_Win win;
    CHECK_MPI(MPI_Win_allocate(256, 1, MPI_INFO_NULL, comm, memory, &win));
    return win;
}

void put_into(MPI_Win win, int target, int bytes, MPI_Aint at = 0) {
    const Bytes data(as_size(bytes), 0x33);
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    CHECK_MPI(MPI_Put(data.data(), bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, win));
    CHECK_MPI(MPI_Win_unlock(target, win));
}

}  // namespace

CASE(each_window_counts_its_own_operations) {
    const Counters process;
    auto created = std::make_unique<Traffic>(Flavor::kCreate, env.comm, 1);
    auto allocated = std::make_unique<Traffic>(Flavor::kAllocate, env.comm, 2);
    auto of_created = std::make_unique<Counters>(&created->window.win);
    const Counters of_allocated(&allocated->window.win);
    created->run();
    of_created->expect(created->expected, "created");
    of_allocated.expect({}, "allocated, before its first operation");
    allocated->run();
    of_created->expect(created->expected, "created, after operations on the other window");
    of_allocated.expect(allocated->expected, "allocated");
    process.expect(created->expected + allocated->expected, "process");
    const Counts of_first = created->expected;
    of_created.reset();
    created.reset();
    allocated->run();
    of_allocated.expect(allocated->expected, "allocated, after the other window is freed");
    process.expect(of_first + allocated->expected, "process, after a window is freed");
}

// Between neighbours, the origin copies blocks of medium length; short ones are collected, and both copy long ones.
CASE(active_epochs_collect_short_puts) {
    constexpr int kPuts = 20, kMedium = 20'000, kVeryLong = 256 * 1024, kAll = kPuts * 16 + kMedium + kVeryLong;
    const int next = (env.rank + 1) % env.size;
    const bool copies = on_this_node(env.comm)[as_size(next)] && next != env.rank && !has_argument("no_cma");
    Window window(Flavor::kCreate, env.comm, kAll);
    const Counters counters(&window.win);
    if (!copies) return;
    for (int epoch = 1; epoch <= 2; ++epoch) {
        const Bytes data = message(key_of("collected", as_size(env.rank), as_size(epoch)), kAll);
        CHECK_MPI(MPI_Win_fence(0, window.win));
        for (int i = 0; i < kPuts; ++i)
            CHECK_MPI(MPI_Put(&data[as_size(i) * 16], 16, MPI_BYTE, next, 16 * i, 16, MPI_BYTE, window.win));
        int at = 16 * kPuts;
        for (const int bytes : {kMedium, kVeryLong}) {
            CHECK_MPI(MPI_Put(&data[as_size(at)], bytes, MPI_BYTE, next, at, bytes, MPI_BYTE, window.win));
            at += bytes;
        }
        CHECK_MPI(MPI_Win_fence(0, window.win));
        const int before = (env.rank + env.size - 1) % env.size;
        check_bytes(window.memory, message(key_of("collected", as_size(before), as_size(epoch)), kAll), "memory");
        Counts expected;
        add(expected, "cma", "not_shared", kMedium, static_cast<Word>(epoch));
        add(expected, "message", "collected", 16, static_cast<Word>(kPuts * epoch));
        add(expected, "message", "both_copy", kVeryLong, static_cast<Word>(epoch));
        counters.expect(expected, "fence");
        MPI_Barrier(env.comm);
    }
}

CASE(a_dynamic_window_counts_messages) {
    Window window(Flavor::kDynamic, env.comm, 1000);
    const Counters counters(&window.win);
    const int next = (env.rank + 1) % env.size;
    const Bytes data(500, 7);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 1000); });
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (const int target : {next, env.rank})
        CHECK_MPI(MPI_Put(data.data(), 500, MPI_BYTE, target, window.at(target, target == next ? 0 : 500), 500,
                          MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    CHECK_UNTOUCHED(7, window.memory, 1000);
    Counts expected;
    add(expected, "shared_memory", "own_memory", 500);
    if (next == env.rank) add(expected, "shared_memory", "own_memory", 500);
    else if (on_this_node(env.comm)[as_size(next)] && !has_argument("no_cma"))
        add(expected, "message", "collected", 500);
    else add(expected, "message", "dynamic_window", 500);
    counters.expect(expected, "dynamic");
}

CASE(nothing_is_counted_twice_or_without_bytes) {
    Window window(Flavor::kAllocate, env.comm, 256);
    const Counters counters(&window.win);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    CHECK_MPI(MPI_Put(nullptr, 0, MPI_BYTE, env.rank, 0, 0, MPI_BYTE, window.win));
    CHECK_MPI(MPI_Put(window.memory, 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, window.win));
    CHECK_ERROR(MPI_Put(window.memory, 8, MPI_BYTE, env.rank, 300, 8, MPI_BYTE, window.win), MPI_ERR_RMA_RANGE);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    counters.expect({}, "window");
}

CASE(a_handle_counts_from_its_creation) {
    unsigned char* memory;
    MPI_Win win = allocated_by(env.comm, &memory);
    const auto first = std::make_unique<Counters>(&win);
    put_into(win, env.rank, 10);
    const auto second = std::make_unique<Counters>(&win);
    put_into(win, env.rank, 20, 100);
    Counts later, all;
    add(later, "shared_memory", "own_memory", 20);
    add(all, "shared_memory", "own_memory", 10);
    first->expect(all + later, "first handle");
    second->expect(later, "second handle");
    CHECK_UNTOUCHED(0x33, memory, 10);
    CHECK_UNTOUCHED(0x33, memory + 100, 20);
    CHECK_MPI(MPI_Win_free(&win));
}

CASE(other_windows_cannot_be_bound) {
    const auto bind = [](MPI_Win* win) {
        return std::make_unique<Variable>("window_operations_shared_memory", "osc_multirail", win);
    };
    Window own(Flavor::kCreate, env.comm, 100);
    auto freed = std::make_unique<Window>(Flavor::kCreate, env.comm, 100);
    MPI_Win none = MPI_WIN_NULL;
    CHECK(!bind(&none)->can_be_bound());
    const auto of_freed = bind(&freed->win), of_own = bind(&own.win);
    CHECK(of_freed->can_be_read());
    freed.reset();
    CHECK(!of_freed->can_be_read());
    put_into(own.win, env.rank, 10);
    CHECK_EQ(of_own->read(), 1);
    if (!has_argument("foreign")) return;
    const Members members(Flavor::kShared, env.comm);
    Window foreign(Flavor::kShared, members.comm, 100);
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    CHECK_MPI(MPI_Win_get_name(foreign.win, name, &length));
    CHECK(std::string(name).find("multirail") == std::string::npos);
    CHECK(!bind(&foreign.win)->can_be_bound());
    const Variable process("operations_shared_memory", "osc_multirail");
    put_into(foreign.win, rank_in(members.comm), 10);
    CHECK_EQ(process.read(), 0);
    put_into(own.win, env.rank, 20);
    CHECK_UNTOUCHED(0x33, own.memory, 20);
    CHECK_EQ(process.read(), 1);
    CHECK_EQ(of_own->read(), 2);
}

// With --multiple, four threads.
CASE(threads_lose_no_count) {
    int level;
    MPI_Query_thread(&level);
    const int threads = level == MPI_THREAD_MULTIPLE ? 4 : 1, rounds = rounds_of(20000);
    Window window(Flavor::kAllocate, env.comm, 256);
    const Counters process, counters(&window.win);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            const Word value = static_cast<Word>(t) + 1;
            for (int i = 0; i < rounds; ++i)
                CHECK_MPI(MPI_Put(&value, 1, MPI_UINT64_T, env.rank, 8 * t, 1, MPI_UINT64_T, window.win));
        });
    for (std::thread& thread : all) thread.join();
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    for (int t = 0; t < threads; ++t) {
        Word value;
        std::memcpy(&value, window.memory + 8 * t, sizeof value);
        CHECK_EQ(value, t + 1);
    }
    Counts expected;
    add(expected, "shared_memory", "own_memory", 8,
        static_cast<unsigned long long>(threads) * static_cast<Word>(rounds));
    counters.expect(expected, "window");
    process.expect(expected, "process");
}

// --- for the report ---

CASE(windows_with_and_without_names) {
    const int next = (env.rank + 1) % env.size;
    unsigned char *memory, *alone;
    MPI_Win win = allocated_by(env.comm, &memory), of_one = allocated_by(MPI_COMM_SELF, &alone);
    Window named(Flavor::kCreate, env.comm, 256), unused(Flavor::kDynamic, env.comm, 256);
    CHECK_MPI(MPI_Win_set_name(named.win, "halo\nleft"));
    put_into(win, env.rank, 50, 100);
    put_into(win, next, 100);
    put_into(of_one, 0, 256);
    put_into(named.win, next, 100, named.at(next, 0));
    named.inspect([](const unsigned char* bytes) { CHECK_UNTOUCHED(0x33, bytes, 100); });
    const int ones[4] = {1, 1, 1, 1};
    CHECK_MPI(MPI_Win_fence(0, named.win));
    CHECK_MPI(MPI_Accumulate(ones, 4, MPI_INT, next, named.at(next, 200), 4, MPI_INT, MPI_REPLACE, named.win));
    CHECK_MPI(MPI_Win_fence(0, named.win));
    CHECK(std::memcmp(named.memory + 200, ones, sizeof ones) == 0);
    CHECK_UNTOUCHED(0x33, alone, 256);
    CHECK_MPI(MPI_Win_free(&of_one));
    CHECK_MPI(MPI_Win_free(&win));
}

CASE(forty_windows) {
    const Counters process;
    Counts expected;
    for (int i = 0; i < 40; ++i) {
        unsigned char* memory;
        MPI_Win win = allocated_by(env.comm, &memory);
        put_into(win, env.rank, i + 1);
        CHECK_UNTOUCHED(0x33, memory, as_size(i + 1));
        add(expected, "shared_memory", "own_memory", static_cast<Word>(i + 1));
        CHECK_MPI(MPI_Win_free(&win));
    }
    process.expect(expected, "process");
}

// MPI_Finalize frees the first one. It cannot free the second one, in which an epoch is open.
CASE(windows_are_not_freed) {
    unsigned char* memory;
    MPI_Win freed = allocated_by(env.comm, &memory), locked = allocated_by(env.comm, &memory);
    put_into(freed, env.rank, 10);
    const Bytes data(20, 0x44);
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, env.rank, MPI_MODE_NOCHECK, locked));
    CHECK_MPI(MPI_Put(data.data(), 20, MPI_BYTE, env.rank, 0, 20, MPI_BYTE, locked));
    CHECK_MPI(MPI_Win_flush(env.rank, locked));
    CHECK_UNTOUCHED(0x44, memory, 20);
}

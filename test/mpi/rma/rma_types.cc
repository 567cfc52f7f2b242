// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes at the origin, for the result and at the target: every pair, types that are freed right after the call,
// types of absolute addresses, types of many blocks. The gaps must stay as they are.
#include "layouts.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

constexpr int kSixes[] = {1, 7, 300};
constexpr std::size_t kRoom = 64 * 1024;

std::uint64_t as_number(int n) { return static_cast<std::uint64_t>(n); }

// One call from each process to the next one, with these types.
class Exchange {
public:
    Exchange(Flavor flavor, MPI_Comm comm)
        : window_(flavor, comm, kRoom), next_((window_.rank + 1) % window_.processes),
          before_((window_.rank + window_.processes - 1) % window_.processes) {}

    enum Kind { kPut, kGet, kAccumulate, kGetAccumulate, kKinds };

    void run(Kind kind, Sync sync, const Layout& origin, const Layout& result, const Layout& target, int sixes) {
        ++round_;
        const std::string what = std::to_string(kind) + ": " + origin.name + ", " + result.name + ", " + target.name +
                                 " x " + std::to_string(sixes);
        Elements sent(origin, sixes), got(result, sixes), expected(result, sixes), mine(target, sixes);
        sent.fill(key("sent", window_.rank));
        mine.fill(key("memory", window_.rank));
        window_.reset([&](unsigned char* memory) { std::copy(mine.all().begin(), mine.all().end(), memory); });
        const Bytes sent_before = sent.all();
        const MPI_Aint at = window_.at(next_, mine.before());
        Epoch epoch(sync, window_, kind == kGet);
        epoch.run(
            [&](int process) {
                if (process == next_) call(kind, sent, got, mine, at);
            },
            [](int) {});
        check_bytes(sent.all().data(), sent_before, what + ", sent");
        if (kind == kGet || kind == kGetAccumulate) expected.fill(key("memory", next_));
        check_bytes(got.all().data(), expected.all(), what + ", result");
        if (kind == kPut) mine.fill(key("sent", before_));
        if (kind == kAccumulate || kind == kGetAccumulate) mine.add(key("sent", before_));
        window_.inspect([&](const unsigned char* memory) { check_bytes(memory, mine.all(), what + ", memory"); });
    }

private:
    std::uint64_t key(const char* what, int rank) const { return key_of(what, as_number(rank), round_); }

    void call(Kind kind, Elements& sent, Elements& got, const Elements& mine, MPI_Aint at) {
        const MPI_Win win = window_.win;
        const int n = mine.count();
        switch (kind) {
        case kPut: CHECK_MPI(MPI_Put(sent.data(), sent.count(), sent.type(), next_, at, n, mine.type(), win)); break;
        case kGet: CHECK_MPI(MPI_Get(got.data(), got.count(), got.type(), next_, at, n, mine.type(), win)); break;
        case kAccumulate:
            CHECK_MPI(MPI_Accumulate(sent.data(), sent.count(), sent.type(), next_, at, n, mine.type(), MPI_SUM, win));
            break;
        case kGetAccumulate:
            CHECK_MPI(MPI_Get_accumulate(sent.data(), sent.count(), sent.type(), got.data(), got.count(), got.type(),
                                         next_, at, n, mine.type(), MPI_SUM, win));
            break;
        case kKinds: break;
        }
    }

    Window window_;
    int next_, before_;
    std::uint64_t round_ = 0;
};

// In stock Open MPI, MPI_Get_accumulate of osc/rdma returns wrong data if one of the types is derived.
bool works_here(Exchange::Kind kind, std::size_t origin, std::size_t target) {
    return !mpitest::on_ob1() || kind != Exchange::kGetAccumulate || origin + target == 0;
}

// Every pair, or one of `every`.
void every_pair(const mpitest::Env& env, Exchange::Kind kind, Flavor flavor, Sync first, Sync second,
                std::size_t every = 1) {
    const Layouts layouts;
    const Members members(flavor, env.comm);
    Exchange exchange(flavor, members.comm);
    if (is_short()) every *= 4;
    for (std::size_t i = 0; i < layouts.size(); ++i)
        for (std::size_t k = 0; k < layouts.size(); ++k) {
            const std::size_t result = (kind == Exchange::kGet ? i : i + 3 * k) % layouts.size();
            if ((i + 2 * k) % every != 0 || !works_here(kind, i, k)) continue;
            exchange.run(kind, (i + k) % 2 == 0 ? first : second, layouts[i], layouts[result], layouts[k],
                         kSixes[(2 * i + k) % std::size(kSixes)]);
        }
}

}  // namespace

CASE(put_of_every_pair_of_types) { every_pair(env, Exchange::kPut, Flavor::kCreate, Sync::kFence, Sync::kLockShared); }
CASE(get_of_every_pair_of_types) { every_pair(env, Exchange::kGet, Flavor::kCreate, Sync::kPscw, Sync::kFlush); }
CASE(accumulate_of_every_pair_of_types) {
    every_pair(env, Exchange::kAccumulate, Flavor::kCreate, Sync::kFence, Sync::kLockShared);
}
CASE(get_accumulate_of_every_pair_of_types) {
    every_pair(env, Exchange::kGetAccumulate, Flavor::kCreate, Sync::kPscw, Sync::kFlushAll);
}
CASE(types_in_windows_of_the_other_flavours) {
    for (const Flavor flavor : {Flavor::kAllocate, Flavor::kShared, Flavor::kDynamic})
        for (int kind = 0; kind < Exchange::kKinds; ++kind)
            every_pair(env, static_cast<Exchange::Kind>(kind), flavor, Sync::kFlushLocal, Sync::kFence, 5);
}

// The type, and then another one that may get its memory, before the call is complete.
CASE(types_are_freed_right_after_the_call) {
    constexpr int kBlocks = 3000;
    constexpr std::size_t kBytes = kBlocks * 3 * sizeof(int);
    Window window(Flavor::kCreate, env.comm, kBytes);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto vector = [](int stride) {
        MPI_Datatype type;
        MPI_Type_vector(kBlocks, 1, stride, MPI_INT, &type);
        MPI_Type_commit(&type);
        return type;
    };
    const auto value = [](int rank, int kind, int i) { return 1000000 * (rank + 1) + 10000 * kind + i; };
    for (int kind = 0; kind < 5; ++kind)
        for (const Sync sync : {Sync::kFence, Sync::kPscw, Sync::kLockAll}) {
            if (kind == 4 && !Epoch::is_passive(sync)) continue;
            if (kind == 3 && mpitest::on_ob1()) continue;  // see works_here(): the types are derived
            std::vector<int> sent(2 * kBlocks, -1), got(2 * kBlocks, -1);
            for (int i = 0; i < kBlocks; ++i) sent[as_size(2 * i)] = value(env.rank, kind, i);
            window.reset([&](unsigned char* memory) {
                std::memset(memory, 0xff, kBytes);
                for (int i = 0; i < kBlocks; ++i) reinterpret_cast<int*>(memory)[3 * i] = i;
            });
            Epoch epoch(sync, window, false);
            epoch.run(
                [&](int target) {
                    if (target != next) return;
                    MPI_Datatype mine = vector(2), theirs = vector(3);
                    MPI_Request request = MPI_REQUEST_NULL;
                    switch (kind) {
                    case 0: CHECK_MPI(MPI_Put(sent.data(), 1, mine, next, 0, 1, theirs, window.win)); break;
                    case 1: CHECK_MPI(MPI_Get(got.data(), 1, mine, next, 0, 1, theirs, window.win)); break;
                    case 2:
                        CHECK_MPI(MPI_Accumulate(sent.data(), 1, mine, next, 0, 1, theirs, MPI_SUM, window.win));
                        break;
                    case 3:
                        CHECK_MPI(MPI_Get_accumulate(sent.data(), 1, mine, got.data(), 1, mine, next, 0, 1, theirs,
                                                     MPI_SUM, window.win));
                        break;
                    case 4: CHECK_MPI(MPI_Rput(sent.data(), 1, mine, next, 0, 1, theirs, window.win, &request)); break;
                    }
                    MPI_Type_free(&mine);
                    MPI_Type_free(&theirs);
                    MPI_Datatype others[] = {vector(1), vector(4)};
                    if (request != MPI_REQUEST_NULL) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
                    for (MPI_Datatype& other : others) MPI_Type_free(&other);
                },
                [](int) {});
            const bool returned = kind == 1 || kind == 3, changed = kind != 1, summed = kind == 2 || kind == 3;
            for (int i = 0; i < 2 * kBlocks; ++i) CHECK_EQ(got[as_size(i)], returned && i % 2 == 0 ? i / 2 : -1);
            window.inspect([&](const unsigned char* memory) {
                const int* all = reinterpret_cast<const int*>(memory);
                for (int i = 0; i < kBlocks; ++i) {
                    CHECK_EQ(all[3 * i], (changed ? value(before, kind, i) : i) + (summed ? i : 0));
                    CHECK_EQ(all[3 * i + 1], -1);
                    CHECK_EQ(all[3 * i + 2], -1);
                }
            });
        }
}

// Addresses in the type: MPI_BOTTOM as the origin's buffer, and in dynamic windows a displacement of 0.
CASE(types_of_absolute_addresses) {
    constexpr int kParts = 4, kLengths[kParts] = {3, 5, 1, 400};
    constexpr std::size_t kInts = 3 + 5 + 1 + 400;
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto absolute = [&](const std::vector<MPI_Aint>& places) {
        MPI_Datatype type;
        MPI_Type_create_hindexed(kParts, kLengths, places.data(), MPI_INT, &type);
        MPI_Type_commit(&type);
        return type;
    };
    std::vector<int> parts[kParts], results[kParts];
    std::vector<MPI_Aint> sent(kParts), got(kParts);
    int number = 0;
    for (int i = 0; i < kParts; ++i) {
        for (int k = 0; k < kLengths[i]; ++k) parts[i].push_back(1000 * env.rank + number++);
        results[i].assign(as_size(kLengths[i]), -1);
        MPI_Get_address(parts[i].data(), &sent[as_size(i)]);
        MPI_Get_address(results[i].data(), &got[as_size(i)]);
    }
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        // osc/rdma looks for the region at the displacement alone.
        if (flavor == Flavor::kDynamic && mpitest::on_ob1()) continue;
        constexpr std::size_t kSpread = kParts * 500;  // ints
        Window window(flavor, env.comm, kSpread * sizeof(int));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0xff, window.bytes); });
        // In the order of addresses descending, to make it harder.
        std::vector<MPI_Aint> places;
        for (std::size_t i = kParts; i-- > 0;) places.push_back(window.at(next, i * 500 * sizeof(int)));
        MPI_Datatype from = absolute(sent), to = absolute(places), back = absolute(got);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        CHECK_MPI(MPI_Put(MPI_BOTTOM, 1, from, next, 0, 1, to, window.win));
        CHECK_MPI(MPI_Win_flush(next, window.win));
        CHECK_MPI(MPI_Accumulate(MPI_BOTTOM, 1, from, next, 0, 1, to, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_flush(next, window.win));
        CHECK_MPI(MPI_Get(MPI_BOTTOM, 1, back, next, 0, 1, to, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        number = 0;
        for (int i = 0; i < kParts; ++i)
            for (const int value : results[i]) CHECK_EQ(value, 2 * (1000 * env.rank + number++));
        window.inspect([&](const unsigned char* memory) {
            std::vector<int> expected(kSpread, -1);
            int n = 0;
            for (std::size_t i = 0; i < kParts; ++i)
                for (std::size_t k = 0; k < as_size(kLengths[i]); ++k)
                    expected[(kParts - 1 - i) * 500 + k] = 2 * (1000 * before + n++);
            for (std::size_t i = 0; i < kSpread; ++i) CHECK_EQ(reinterpret_cast<const int*>(memory)[i], expected[i]);
            CHECK_EQ(n, kInts);
        });
        for (MPI_Datatype* type : {&from, &to, &back}) MPI_Type_free(type);
    }
}

// 100000 blocks of a few bytes, of irregular length and distance.
CASE(types_of_many_irregular_blocks) {
    constexpr int kBlocks = 100000;
    std::vector<int> lengths, places;
    pattern::Random random(5);
    int at = 0, total = 0;
    for (int i = 0; i < kBlocks; ++i) {
        lengths.push_back(1 + static_cast<int>(random.below(5)));
        places.push_back(at);
        at += lengths.back() + static_cast<int>(random.below(4));
        total += lengths.back();
    }
    MPI_Datatype type;
    MPI_Type_indexed(kBlocks, lengths.data(), places.data(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    Window window(Flavor::kCreate, env.comm, as_size(at));
    const auto sent = [&](int rank) { return message(key_of("irregular", as_number(rank)), as_size(total)); };
    const auto scatter = [&](const Bytes& packed, unsigned char* to) {
        std::size_t from = 0;
        for (std::size_t i = 0; i < kBlocks; ++i) {
            std::memcpy(to + places[i], &packed[from], as_size(lengths[i]));
            from += as_size(lengths[i]);
        }
    };
    window.reset([&](unsigned char* memory) { std::memset(memory, 9, window.bytes); });
    const Bytes mine = sent(env.rank);
    Bytes spread(as_size(at), 3), packed(as_size(total), 4);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    CHECK_MPI(MPI_Put(mine.data(), total, MPI_BYTE, next, 0, 1, type, window.win));
    CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    Bytes expected(as_size(at), 9);
    scatter(sent(before), expected.data());
    window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, "memory"); });
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
    CHECK_MPI(MPI_Get(spread.data(), 1, type, next, 0, 1, type, window.win));
    CHECK_MPI(MPI_Get(packed.data(), total, MPI_BYTE, next, 0, 1, type, window.win));
    CHECK_MPI(MPI_Win_unlock(next, window.win));
    check_bytes(packed.data(), mine, "packed");
    Bytes expected_here(as_size(at), 3);
    scatter(mine, expected_here.data());
    check_bytes(spread.data(), expected_here, "spread");
    MPI_Type_free(&type);
}

// Long blocks with gaps at the origin, which RDMA reads and writes where they lie: of a regular type, of an irregular one,
// and so far apart that they are copied. The blocks at the target are as long as those of the origin, longer, or one block.
CASE(long_blocks_with_gaps_at_the_origin) {
    constexpr std::size_t kBlocks = 6, kBlock = 20000, kTotal = kBlocks * kBlock;
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto sent = [&](int rank) { return message(key_of("gaps", as_number(rank)), kTotal); };
    struct Layout {
        std::size_t stride,
            shift;  // each block lies `shift` bytes further than the stride says, as often as its number is odd
    };
    const auto type_of = [&](const Layout& layout, std::size_t block) {
        std::vector<int> lengths(kTotal / block, static_cast<int>(block));
        std::vector<MPI_Aint> places;
        for (std::size_t i = 0; i < lengths.size(); ++i)
            places.push_back(static_cast<MPI_Aint>(i * layout.stride + i % 2 * layout.shift));
        MPI_Datatype type;
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        return type;
    };
    const auto scattered = [&](const Layout& layout, std::size_t block, const Bytes& packed, unsigned char guard) {
        Bytes all(kTotal / block * layout.stride + layout.shift, guard);
        for (std::size_t i = 0; i < kTotal / block; ++i)
            std::memcpy(&all[i * layout.stride + i % 2 * layout.shift], &packed[i * block], block);
        return all;
    };
    constexpr std::size_t kTargetBlocks[] = {kBlock, 2 * kBlock, kTotal};
    for (const Layout& layout : {Layout{30000, 0}, Layout{33000, 777}, Layout{200000, 0}})
        for (const std::size_t block : kTargetBlocks)
            for (const bool passive : {true, false}) {
                const Layout there{block + 512, 0};
                const Bytes mine = sent(env.rank), from = scattered(layout, kBlock, mine, 3);
                const Bytes expected = scattered(there, block, sent(before), 9);
                MPI_Datatype here_type = type_of(layout, kBlock), there_type = type_of(there, block);
                Window window(Flavor::kCreate, env.comm, expected.size());
                window.reset([&](unsigned char* memory) { std::memset(memory, 9, window.bytes); });
                const auto open = [&] {
                    if (passive) CHECK_MPI(MPI_Win_lock_all(0, window.win));
                    else CHECK_MPI(MPI_Win_fence(0, window.win));
                };
                const auto close = [&] {
                    if (passive) CHECK_MPI(MPI_Win_unlock_all(window.win));
                    else CHECK_MPI(MPI_Win_fence(0, window.win));
                };
                open();
                CHECK_MPI(MPI_Put(from.data(), 1, here_type, next, 0, 1, there_type, window.win));
                close();
                window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, "memory"); });
                Bytes back(from.size(), 3);
                open();
                CHECK_MPI(MPI_Get(back.data(), 1, here_type, next, 0, 1, there_type, window.win));
                close();
                check_bytes(back.data(), from, "back");
                MPI_Type_free(&here_type);
                MPI_Type_free(&there_type);
            }
}

// More elements with gaps than a packet or a buffer has room for: these end inside of elements.
CASE(elements_with_gaps_in_many_packets) {
    constexpr int kPairs = 30000;
    constexpr std::size_t kPair = sizeof(double) + sizeof(int), kApart = 24, kSecond = 12;
    const auto type_of = [&](std::size_t second, std::size_t extent) {
        const int lengths[2] = {1, 1};
        const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(second)};
        const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
        MPI_Datatype bare, type;
        MPI_Type_create_struct(2, lengths, places, types, &bare);
        MPI_Type_create_resized(bare, 0, static_cast<MPI_Aint>(extent), &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&bare);
        return type;
    };
    MPI_Datatype apart = type_of(kSecond, kApart), dense = type_of(sizeof(double), kPair);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    const auto sent = [&](int rank) { return message(key_of("pairs", as_number(rank)), kPairs * kPair); };
    const Bytes mine = sent(env.rank), expected = sent(before);
    Bytes from(kPairs * kApart, 3);
    for (std::size_t i = 0; i < kPairs; ++i) {
        std::memcpy(&from[i * kApart], &mine[i * kPair], sizeof(double));
        std::memcpy(&from[i * kApart + kSecond], &mine[i * kPair + sizeof(double)], sizeof(int));
    }
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, kPairs * kPair);
        Bytes back(from.size(), 3);
        CHECK_MPI(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Put(from.data(), kPairs, apart, next, window.at(next, 0), kPairs, dense, window.win));
        CHECK_MPI(MPI_Win_fence(0, window.win));
        window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, "memory"); });
        CHECK_MPI(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Get(back.data(), kPairs, apart, next, window.at(next, 0), kPairs, dense, window.win));
        CHECK_MPI(MPI_Win_fence(0, window.win));
        check_bytes(back.data(), from, "back");
    }
    MPI_Type_free(&apart);
    MPI_Type_free(&dense);
}

// What lies in the gap of a pair belongs to somebody else: an accumulate leaves it alone, also where RDMA writes the pair.
CASE(gaps_of_pairs_stay) {
    struct Pair {
        short value;
        unsigned short gap;
        int index;
    };
    constexpr int kPairs = 8;
    constexpr std::size_t kBytes = kPairs * sizeof(Pair);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kBytes + 1000);
        const Pair before{1, 0x5a5a, 2}, sent{7, 0x1111, 8};
        window.reset([&](unsigned char* memory) {
            for (int i = 0; i < kPairs; ++i) std::memcpy(memory + as_size(i) * sizeof before, &before, sizeof before);
        });
        const int target = (window.rank + 1) % window.processes;
        // Other bytes pass through the memory of the component first.
        const Bytes other(1000, 0xee);
        const std::vector<Pair> pairs(kPairs, sent);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
        for (int i = 0; i < 100; ++i) {
            CHECK_MPI(
                MPI_Put(other.data(), 1000, MPI_BYTE, target, window.at(target, kBytes), 1000, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
        }
        CHECK_MPI(MPI_Accumulate(pairs.data(), kPairs, MPI_SHORT_INT, target, window.at(target, 0), kPairs,
                                 MPI_SHORT_INT, MPI_REPLACE, window.win));
        CHECK_MPI(MPI_Win_unlock(target, window.win));
        window.inspect([&](const unsigned char* memory) {
            for (int i = 0; i < kPairs; ++i) {
                Pair found;
                std::memcpy(&found, memory + as_size(i) * sizeof found, sizeof found);
                CHECK_EQ(found.value, sent.value);
                CHECK_EQ(found.index, sent.index);
                CHECK_EQ(found.gap, before.gap);
            }
        });
    }
}

// SPDX-License-Identifier: BSD-3-Clause
// Every predefined operation on every predefined type, by each call that accumulates, from all processes to the same
// memory and to memory of their own, compared with plain C++. compare_and_swap with each type that it allows.
#include <algorithm>
#include <map>

#include "reduction.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

std::uint64_t as_number(int n) { return static_cast<std::uint64_t>(n); }

// Lengths of the operations; the last one is longer than a packet of most transports.
constexpr int kLengths[] = {1, 3, 64, 700};
constexpr int kOfOneCall = 1 + 3 + 64 + 700;

enum Kind { kGetAccumulate, kFetchAndOp, kRaccumulate, kRgetAccumulate, kKinds };

// One window for all types: memory that all processes change with MPI_Accumulate, then memory for the other calls of each
// process to the next one.
class Trial {
public:
    Trial(Flavor flavor, MPI_Comm comm)
        : window_(flavor, comm, (1 + kKinds) * kOfOneCall * 32), flavor_(flavor),
          next_((window_.rank + 1) % window_.processes),
          before_((window_.rank + window_.processes - 1) % window_.processes) {}

    // `sync` must be passive for the calls that return a request.
    template <class T, Class kOf>
    void every_op(const char* name, MPI_Datatype type, Sync sync) {
        for (int op = 0; op < kOps; ++op)
            if (is_defined(static_cast<Op>(op), kOf) && works_here(static_cast<Op>(op), kOf, sizeof(T)))
                one_op<T, kOf>(name, type, static_cast<Op>(op), sync);
    }

private:
    // What stock Open MPI can do. osc/rdma asks btl/vader for logical operations on 4 and 8 bytes, which it does not have,
    // adds complex numbers of 8 bytes like integers, and allocates too little for pairs with gaps.
    bool works_here(Op op, Class of, std::size_t size) const {
        if (!mpitest::on_ob1() || flavor_ == Flavor::kShared) return true;
        if (of == Class::kPair || of == Class::kComplex) return false;
        return (op != Op::kLand && op != Op::kLor && op != Op::kLxor) || size < 4;
    }

    template <class T, Class kOf>
    void one_op(const char* name, MPI_Datatype type, Op op, Sync sync) {
        ++round_;
        const std::string what = std::string(name) + ", " + kOpNames[static_cast<int>(op)];
        const std::size_t all = (1 + kKinds) * kOfOneCall;
        const auto initial = [&](int rank) { return values<T, kOf>(op, "memory", rank, all); };
        std::vector<T> memory = initial(window_.rank);
        window_.reset([&](unsigned char* to) { std::memcpy(to, memory.data(), all * sizeof(T)); });
        // MPI_REPLACE by several processes has no certain result, and MPI_NO_OP is not for calls that return nothing.
        const bool together = op != Op::kReplace && op != Op::kNoOp;
        std::vector<T> sent = values<T, kOf>(op, "sent", window_.rank, all), got(all, T{}), expected = got;
        Epoch epoch(sync, window_, false);
        epoch.run(
            [&](int target) {
                if (together) accumulate(type, op, target, sent.data(), sizeof(T));
                if (target == next_) others(type, op, sync, sent.data(), got.data(), sizeof(T));
            },
            [](int) {});
        const std::vector<T> theirs = initial(next_);
        for (int i = 0; i < kKinds; ++i)
            if (i != kRaccumulate) copy_part(theirs, expected, i, used(op, sync, i));
        check_values(got, expected, what + ", result");
        for (int rank = 0; rank < window_.processes && together; ++rank)
            combine<T, kOf>(op, memory, values<T, kOf>(op, "sent", rank, all), 0, kOfOneCall);
        const std::vector<T> from_before = values<T, kOf>(op, "sent", before_, all);
        for (int i = 0; i < kKinds; ++i)
            combine<T, kOf>(op, memory, from_before, (1 + i) * kOfOneCall, used(op, sync, i));
        window_.inspect([&](const unsigned char* at) {
            std::vector<T> now(all);
            std::memcpy(now.data(), at, all * sizeof(T));
            check_values(now, memory, what + ", memory");
        });
    }

    // Elements that the call works on.
    static int used(Op op, Sync sync, int kind) {
        if (kind >= kRaccumulate && !Epoch::is_passive(sync)) return 0;
        if (kind == kRaccumulate && op == Op::kNoOp) return 0;
        return kind == kFetchAndOp ? 1 : kOfOneCall;
    }

    template <class T, Class kOf>
    std::vector<T> values(Op op, const char* what, int rank, std::size_t n) const {
        const std::uint64_t key = key_of(what, as_number(rank), round_);
        std::vector<T> all;
        for (std::size_t i = 0; i < n; ++i) all.push_back(value_of<T, kOf>(op, pattern::word(key, i) >> 7));
        return all;
    }
    template <class T>
    static void copy_part(const std::vector<T>& from, std::vector<T>& to, int kind, int n) {
        const auto at = as_size((1 + kind) * kOfOneCall);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), n, to.begin() + static_cast<std::ptrdiff_t>(at));
    }
    template <class T, Class kOf>
    static void combine(Op op, std::vector<T>& memory, const std::vector<T>& sent, int at, int n) {
        for (std::size_t i = as_size(at); i < as_size(at + n); ++i)
            memory[i] = combined<T, kOf>(op, memory[i], sent[i]);
    }
    template <class T>
    static void check_values(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!(got[i] == expected[i]))
                mpitest::fail(__FILE__, __LINE__, what + ": element " + std::to_string(i) + " is wrong");
    }

    // Calls f(first element, number) for each length.
    template <class F>
    static void pieces(F f) {
        int at = 0;
        for (const int n : kLengths) f(at, n), at += n;
    }

    void accumulate(MPI_Datatype type, Op op, int target, const void* sent, std::size_t size) {
        pieces([&](int at, int n) {
            const std::size_t byte = as_size(at) * size;
            CHECK_MPI(MPI_Accumulate(static_cast<const char*>(sent) + byte, n, type, target, window_.at(target, byte),
                                     n, type, handle_of(op), window_.win));
        });
    }

    void others(MPI_Datatype type, Op op, Sync sync, const void* sent, void* got, std::size_t size) {
        std::vector<MPI_Request> requests;
        const MPI_Op handle = handle_of(op);
        const auto from = [&](int kind, int at) { return (as_size((1 + kind) * kOfOneCall + at)) * size; };
        const auto request = [&] { return &requests.emplace_back(MPI_REQUEST_NULL); };
        const auto* in = static_cast<const char*>(sent);
        auto* out = static_cast<char*>(got);
        const MPI_Win win = window_.win;
        pieces([&](int at, int n) {
            const std::size_t byte = from(kGetAccumulate, at);
            CHECK_MPI(MPI_Get_accumulate(in + byte, n, type, out + byte, n, type, next_, window_.at(next_, byte), n,
                                         type, handle, win));
        });
        const std::size_t single = from(kFetchAndOp, 0);
        CHECK_MPI(MPI_Fetch_and_op(in + single, out + single, type, next_, window_.at(next_, single), handle, win));
        if (!Epoch::is_passive(sync)) return;
        pieces([&](int at, int n) {
            const std::size_t byte = from(kRaccumulate, at), second = from(kRgetAccumulate, at);
            if (op != Op::kNoOp)
                CHECK_MPI(MPI_Raccumulate(in + byte, n, type, next_, window_.at(next_, byte), n, type, handle, win,
                                          request()));
            CHECK_MPI(MPI_Rget_accumulate(in + second, n, type, out + second, n, type, next_, window_.at(next_, second),
                                          n, type, handle, win, request()));
        });
        CHECK_MPI(MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    }

    Window window_;
    Flavor flavor_;
    int next_, before_;
    std::uint64_t round_ = 0;
};

#define TRY(T, of, type) trial.every_op<T, Class::of>(#type, type, sync)

void integers(Trial& trial, Sync sync) {
    TRY(signed char, kInteger, MPI_SIGNED_CHAR);
    TRY(unsigned char, kInteger, MPI_UNSIGNED_CHAR);
    TRY(short, kInteger, MPI_SHORT);
    TRY(unsigned short, kInteger, MPI_UNSIGNED_SHORT);
    TRY(int, kInteger, MPI_INT);
    TRY(unsigned, kInteger, MPI_UNSIGNED);
    TRY(long, kInteger, MPI_LONG);
    TRY(unsigned long, kInteger, MPI_UNSIGNED_LONG);
    TRY(long long, kInteger, MPI_LONG_LONG);
    TRY(unsigned long long, kInteger, MPI_UNSIGNED_LONG_LONG);
    TRY(std::int8_t, kInteger, MPI_INT8_T);
    TRY(std::uint8_t, kInteger, MPI_UINT8_T);
    TRY(std::int16_t, kInteger, MPI_INT16_T);
    TRY(std::uint16_t, kInteger, MPI_UINT16_T);
    TRY(std::int32_t, kInteger, MPI_INT32_T);
    TRY(std::uint32_t, kInteger, MPI_UINT32_T);
    TRY(std::int64_t, kInteger, MPI_INT64_T);
    TRY(std::uint64_t, kInteger, MPI_UINT64_T);
    TRY(MPI_Aint, kMultiLanguage, MPI_AINT);
    TRY(MPI_Offset, kMultiLanguage, MPI_OFFSET);
    TRY(MPI_Count, kMultiLanguage, MPI_COUNT);
}

void other_numbers(Trial& trial, Sync sync) {
    TRY(std::uint8_t, kLogical, MPI_C_BOOL);
    TRY(float, kFloating, MPI_FLOAT);
    TRY(double, kFloating, MPI_DOUBLE);
    TRY(long double, kFloating, MPI_LONG_DOUBLE);
    TRY(std::complex<float>, kComplex, MPI_C_FLOAT_COMPLEX);
    TRY(std::complex<double>, kComplex, MPI_C_DOUBLE_COMPLEX);
    TRY(std::complex<long double>, kComplex, MPI_C_LONG_DOUBLE_COMPLEX);
    TRY(unsigned char, kByte, MPI_BYTE);
    TRY(char, kOther, MPI_CHAR);
    TRY(wchar_t, kOther, MPI_WCHAR);
}

void pairs(Trial& trial, Sync sync) {
    TRY(Pair<float>, kPair, MPI_FLOAT_INT);
    TRY(Pair<double>, kPair, MPI_DOUBLE_INT);
    TRY(Pair<long>, kPair, MPI_LONG_INT);
    TRY(Pair<int>, kPair, MPI_2INT);
    TRY(Pair<short>, kPair, MPI_SHORT_INT);
    TRY(Pair<long double>, kPair, MPI_LONG_DOUBLE_INT);
}

void every_flavor(const mpitest::Env& env, void (*types)(Trial&, Sync), Sync active, Sync passive) {
    for (const Flavor flavor : kFlavors) {
        if (is_short() && flavor != Flavor::kAllocate) continue;
        const Members members(flavor, env.comm);
        Trial trial(flavor, members.comm);
        if (flavor == Flavor::kCreate || flavor == Flavor::kShared) types(trial, active);
        if (flavor != Flavor::kShared) types(trial, passive);
    }
}

}  // namespace

CASE(operations_on_integers) { every_flavor(env, integers, Sync::kFence, Sync::kLockShared); }
CASE(operations_on_other_numbers) { every_flavor(env, other_numbers, Sync::kPscw, Sync::kLockAll); }
CASE(operations_on_pairs) { every_flavor(env, pairs, Sync::kFence, Sync::kFlush); }

// MPI leaves open what happens if the origin has less data than the target. Here it changes as many elements as it has.
CASE(the_origin_is_shorter_than_the_target) {
    if (mpitest::skipped_on_ob1("osc/rdma reads beyond the origin's memory")) return;
    constexpr int kElements = 4;
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kElements * sizeof(std::int64_t));
        const int next = (window.rank + 1) % window.processes;
        const std::int64_t one = 1;
        for (const Sync sync : {Sync::kFence, Sync::kLockShared}) {
            window.reset([](unsigned char* memory) { std::memset(memory, 0, kElements * sizeof one); });
            std::int64_t result[kElements] = {-1, -1, -1, -1};
            const MPI_Aint at = window.at(next, 0);
            const auto issue = [&](int target) {
                if (target != next) return;
                const auto accumulate = [&](int count) {
                    return MPI_Accumulate(&one, count, MPI_INT64_T, next, at, kElements, MPI_INT64_T, MPI_SUM,
                                          window.win);
                };
                CHECK_MPI(MPI_Get_accumulate(&one, 0, MPI_INT64_T, result, kElements, MPI_INT64_T, next, at, kElements,
                                             MPI_INT64_T, MPI_SUM, window.win));
                CHECK_MPI(accumulate(0));
                CHECK_MPI(accumulate(1));
            };
            Epoch(sync, window, false).run(issue, [](int) {});
            CHECK_EQ(result[0], -1);  // there was nothing to combine
            window.inspect([&](const unsigned char* memory) {
                std::int64_t found[kElements];
                std::memcpy(found, memory, sizeof found);
                CHECK_EQ(found[0], 1);
                for (int i = 1; i < kElements; ++i) CHECK_EQ(found[i], 0);
            });
        }
    }
}

// Pairs inside of a derived type, with gaps between and a gap inside.
CASE(operations_on_vectors_of_pairs) {
    using Of = Pair<double>;
    constexpr int kPairs = 200, kStride = 3;
    MPI_Datatype type;
    MPI_Type_vector(kPairs, 1, kStride, MPI_DOUBLE_INT, &type);
    MPI_Type_commit(&type);
    Window window(Flavor::kCreate, env.comm, kPairs * kStride * sizeof(Of));
    const auto value = [](int rank, int i) {
        return Of{static_cast<double>((i * 7 + rank * 5) % 11), rank * 1000 + i};
    };
    for (const Sync sync : {Sync::kFence, Sync::kLockShared}) {
        window.reset([&](unsigned char* memory) {
            std::memset(memory, 0x33, window.bytes);
            for (int i = 0; i < kPairs; ++i) {
                const Of initial{4.0, 500000};
                std::memcpy(memory + as_size(i * kStride) * sizeof(Of), &initial.value, sizeof initial.value);
                std::memcpy(memory + as_size(i * kStride) * sizeof(Of) + offsetof(Of, at), &initial.at,
                            sizeof initial.at);
            }
        });
        std::vector<Of> sent;
        for (int i = 0; i < kPairs; ++i) sent.push_back(value(env.rank, i));
        Epoch epoch(sync, window, false);
        epoch.run(
            [&](int target) {
                CHECK_MPI(
                    MPI_Accumulate(sent.data(), kPairs, MPI_DOUBLE_INT, target, 0, 1, type, MPI_MAXLOC, window.win));
            },
            [](int) {});
        window.inspect([&](const unsigned char* memory) {
            for (int i = 0; i < kPairs; ++i) {
                Of expected{4.0, 500000}, got;
                for (int rank = 0; rank < env.size; ++rank)
                    expected = combined<Of, Class::kPair>(Op::kMaxloc, expected, value(rank, i));
                const unsigned char* at = memory + as_size(i * kStride) * sizeof(Of);
                std::memcpy(&got, at, sizeof got);
                CHECK(got == expected);
                if (i + 1 < kPairs) CHECK_UNTOUCHED(0x33, at + sizeof(Of), (kStride - 1) * sizeof(Of));
            }
        });
    }
    MPI_Type_free(&type);
}

namespace {

// Equal and unequal comparisons with values of all bits, at every element of a small array.
template <class T>
void swap_values(Window& window, MPI_Datatype type, const char* name) {
    constexpr std::size_t kNumber = 9;
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const auto values = [&](const char* what, int rank) {
        std::vector<T> all;
        const std::uint64_t key = key_of(what, as_number(rank));
        for (std::size_t i = 0; i < kNumber; ++i)
            all.push_back(static_cast<T>(type == MPI_C_BOOL ? i / 2 % 2 : pattern::word(key, i)));
        return all;
    };
    std::vector<T> memory = values("memory", window.rank);
    window.reset([&](unsigned char* to) {
        for (std::size_t i = 0; i < kNumber; ++i) {
            const T one = memory[i];
            std::memcpy(to + i * sizeof(T), &one, sizeof one);
        }
    });
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
    const std::vector<T> theirs = values("memory", next), sent = values("sent", window.rank);
    for (std::size_t i = 0; i < kNumber; ++i) {
        const T old = theirs[i], other = static_cast<T>(old ^ 1), news = sent[i];
        T compared = i % 3 == 0 ? other : old, result = other;
        CHECK_MPI(
            MPI_Compare_and_swap(&news, &compared, &result, type, next, window.at(next, i * sizeof(T)), window.win));
        CHECK_MPI(MPI_Win_flush_local(next, window.win));
        if (result != old) mpitest::fail(__FILE__, __LINE__, std::string(name) + ": the result is wrong");
    }
    CHECK_MPI(MPI_Win_unlock(next, window.win));
    const std::vector<T> stored = values("sent", before);
    window.inspect([&](const unsigned char* at) {
        for (std::size_t i = 0; i < kNumber; ++i) {
            T got, expected = i % 3 == 0 ? memory[i] : stored[i];
            std::memcpy(&got, at + i * sizeof(T), sizeof got);
            if (got != expected) mpitest::fail(__FILE__, __LINE__, std::string(name) + ": the memory is wrong");
        }
    });
}
#define SWAP(T, type) swap_values<T>(window, type, #type)

}  // namespace

CASE(compare_and_swap_of_every_type) {
    for (const Flavor flavor : kFlavors) {
        // osc/rdma over btl/vader sends to an endpoint that is null.
        if (mpitest::on_ob1() && flavor != Flavor::kShared) continue;
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 256);
        SWAP(signed char, MPI_SIGNED_CHAR);
        SWAP(unsigned char, MPI_UNSIGNED_CHAR);
        SWAP(short, MPI_SHORT);
        SWAP(unsigned short, MPI_UNSIGNED_SHORT);
        SWAP(int, MPI_INT);
        SWAP(unsigned, MPI_UNSIGNED);
        SWAP(long, MPI_LONG);
        SWAP(unsigned long, MPI_UNSIGNED_LONG);
        SWAP(long long, MPI_LONG_LONG);
        SWAP(unsigned long long, MPI_UNSIGNED_LONG_LONG);
        SWAP(std::int8_t, MPI_INT8_T);
        SWAP(std::uint16_t, MPI_UINT16_T);
        SWAP(std::int32_t, MPI_INT32_T);
        SWAP(std::uint64_t, MPI_UINT64_T);
        SWAP(MPI_Aint, MPI_AINT);
        SWAP(MPI_Offset, MPI_OFFSET);
        SWAP(MPI_Count, MPI_COUNT);
        SWAP(unsigned char, MPI_BYTE);
        SWAP(std::uint8_t, MPI_C_BOOL);
    }
}

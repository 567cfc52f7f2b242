// SPDX-License-Identifier: BSD-3-Clause
//
// A window of any flavour with memory that the tests know: guard bytes on both sides where the memory is the test's own.
// Displacements are computed from bytes, because dynamic windows take addresses, and units may differ by process.
//
// Ownership: a Window frees its MPI window (collective) and checks the guard bytes. Its error handler returns, so that
// CHECK_MPI names the call. Units: bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "mpi_test.h"

namespace {

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kGuard = 0x5a;
constexpr std::size_t kGuardBytes = 64;

enum class Flavor { kCreate, kAllocate, kShared, kDynamic };
constexpr Flavor kFlavors[] = {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared, Flavor::kDynamic};
constexpr const char* kFlavorNames[] = {"create", "allocate", "allocate_shared", "dynamic"};

inline int as_int(std::size_t n) { return static_cast<int>(n); }
inline std::size_t as_size(int n) { return static_cast<std::size_t>(n); }

inline int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
inline int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

// A number of repetitions, or a tenth of it with the argument `few`: for grounds that are slow, after another one has run all.
inline bool is_short() {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), "few") != all.end();
}
inline int rounds_of(int n) { return std::max(1, n / mpitest::hang_scale() / (is_short() ? 10 : 1)); }

// A communicator on which windows of the flavour can be created: for a shared one, the processes of this node.
class Members {
public:
    Members(Flavor flavor, MPI_Comm all) {
        if (flavor == Flavor::kShared) MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
        else MPI_Comm_dup(all, &comm);
    }
    ~Members() { MPI_Comm_free(&comm); }
    Members(const Members&) = delete;

    MPI_Comm comm = MPI_COMM_NULL;
};

class Window {
public:
    // Bytes and unit may differ by process.
    Window(Flavor flavor, MPI_Comm of, std::size_t size, int unit = 1, MPI_Info info = MPI_INFO_NULL)
        : comm(of), rank(rank_in(of)), processes(size_of(of)), bytes(size), flavor_(flavor) {
        const auto as_aint = static_cast<MPI_Aint>(bytes);
        switch (flavor) {
        case Flavor::kCreate:
            guarded();
            CHECK_MPI(MPI_Win_create(memory, as_aint, unit, info, comm, &win));
            break;
        case Flavor::kAllocate: CHECK_MPI(MPI_Win_allocate(as_aint, unit, info, comm, &memory, &win)); break;
        case Flavor::kShared: CHECK_MPI(MPI_Win_allocate_shared(as_aint, unit, info, comm, &memory, &win)); break;
        case Flavor::kDynamic:
            guarded();
            CHECK_MPI(MPI_Win_create_dynamic(info, comm, &win));
            if (bytes > 0) CHECK_MPI(MPI_Win_attach(win, memory, as_aint));
            unit = 1;
            break;
        }
        CHECK_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        units_.resize(as_size(processes));
        addresses_.resize(as_size(processes));
        MPI_Aint mine = 0;
        if (flavor == Flavor::kDynamic) MPI_Get_address(memory, &mine);
        MPI_Allgather(&unit, 1, MPI_INT, units_.data(), 1, MPI_INT, comm);
        MPI_Allgather(&mine, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, comm);
    }
    ~Window() {
        if (flavor_ == Flavor::kDynamic && bytes > 0) CHECK_MPI(MPI_Win_detach(win, memory));
        CHECK_MPI(MPI_Win_free(&win));
        CHECK(win == MPI_WIN_NULL);
        if (own_.empty()) return;
        CHECK_UNTOUCHED(kGuard, own_.data(), kGuardBytes);
        CHECK_UNTOUCHED(kGuard, own_.data() + kGuardBytes + bytes, kGuardBytes);
    }
    Window(const Window&) = delete;

    // The displacement of this byte of the target's memory.
    MPI_Aint at(int target, std::size_t byte) const {
        const MPI_Aint unit = units_[as_size(target)], place = static_cast<MPI_Aint>(byte);
        CHECK_EQ(place % unit, 0);
        return addresses_[as_size(target)] + place / unit;
    }

    // Calls f(memory) while no other process has access.
    template <class F>
    void locally(F f) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
        f(memory);
        CHECK_MPI(MPI_Win_unlock(rank, win));
    }
    // All processes get new contents, and none goes on before.
    template <class F>
    void reset(F f) {
        locally(f);
        MPI_Barrier(comm);
    }
    // All accesses have been made before f looks at the memory; none goes on before all have looked.
    template <class F>
    void inspect(F f) {
        MPI_Barrier(comm);
        locally(f);
        MPI_Barrier(comm);
    }

    MPI_Win win = MPI_WIN_NULL;
    const MPI_Comm comm;
    const int rank, processes;
    const std::size_t bytes;
    unsigned char* memory = nullptr;

private:
    void guarded() {
        own_.assign(bytes + 2 * kGuardBytes, kGuard);
        memory = own_.data() + kGuardBytes;
    }

    Flavor flavor_;
    Bytes own_;
    std::vector<int> units_;
    std::vector<MPI_Aint> addresses_;
};

// Fails, and says where, unless the memory has the expected contents.
inline void check_bytes(const unsigned char* memory, const Bytes& expected, const std::string& what) {
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (memory[i] != expected[i])
            mpitest::fail(__FILE__, __LINE__,
                          what + ": byte " + std::to_string(i) + " of " + std::to_string(expected.size()) + " is " +
                              std::to_string(memory[i]) + ", expected " + std::to_string(expected[i]));
}

inline std::uint64_t key_of(const char* what, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
    std::uint64_t name = 0;
    for (; *what != '\0'; ++what) name = name * 131 + static_cast<unsigned char>(*what);
    return pattern::key({name, a, b, c});
}

inline Bytes message(std::uint64_t key, std::size_t bytes) {
    Bytes all(bytes);
    pattern::fill(key, 0, all.data(), bytes);
    return all;
}

inline void barrier_if(bool wanted, MPI_Comm comm) {
    if (wanted) MPI_Barrier(comm);
}

}  // namespace

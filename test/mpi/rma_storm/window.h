// SPDX-License-Identifier: BSD-3-Clause
//
// The window of a round, and the memory of this rank in it. Memory that the storm itself provides (created and dynamic
// windows) lies between guard bytes.
//
// Ownership: owns the window and its memory. Collective: constructor and destructor.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "model.h"
#include "plan.h"
#include "watchdog.h"

namespace rma_storm {

class Window {
public:
    // `must` fails the storm unless the code is MPI_SUCCESS.
    using Must = std::function<void(int code, const char* function)>;

    Window(const Round& round, MPI_Comm comm, const Must& must);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Win handle() const { return window_; }

    // How MPI addresses position `at` of a target: displacement × unit + shift bytes.
    MPI_Aint displacement(int target, std::size_t at) const;
    std::size_t shift(int target, std::size_t at) const;

    // Memory of this rank; of a neighbour, if the window is shared.
    unsigned char* own(std::size_t at) const { return memory(self_, at); }
    unsigned char* memory(int rank, std::size_t at) const;

    void store(std::size_t at, const unsigned char* content, std::size_t bytes) const;

    // Position of the first byte of this rank's memory that differs from `content`, or pattern::kNone.
    std::size_t mismatch(const Bytes& content) const;
    // Describes a guard byte that was written, if any.
    std::string damaged_guard() const;

private:
    static constexpr std::size_t kGuard = 128;

    MPI_Info make_info() const;
    void create(MPI_Comm comm, const Must& must);
    void find_neighbours(const Must& must);
    void attach(MPI_Comm comm, const Must& must);
    const std::vector<Segment>& segments(int rank) const {
        return round_.window.segments[static_cast<std::size_t>(rank)];
    }
    std::size_t segment_of(int rank, std::size_t at) const;

    const Round& round_;
    int self_ = 0;
    MPI_Win window_ = MPI_WIN_NULL;
    std::vector<Bytes> guarded_;                      // own segments with their guards
    std::vector<std::vector<unsigned char*>> bases_;  // by rank and segment; only those that can be loaded from
    std::vector<std::vector<MPI_Aint>> remote_;       // dynamic: address by rank and segment
};

}  // namespace rma_storm

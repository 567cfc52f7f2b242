// SPDX-License-Identifier: BSD-3-Clause
//
// One round on one rank: follows the plan and compares everything with the model.
//
// Threading: the thread that calls run() opens and closes the epochs and compares the windows; between these, each of
// `threads` threads issues its own operations (Issuer).
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "model.h"
#include "plan.h"
#include "saboteur.h"
#include "watchdog.h"
#include "window.h"

namespace rma_storm {

// The processes of a round.
struct Arena {
    MPI_Comm comm = MPI_COMM_NULL;
    int size = 0, rank = 0;
    bool one_node = false;
    std::uint64_t color = 0;  // tells apart disjoint communicators
    const char* name = "";
};

class RoundRun {
public:
    // `states`: one for each of the `threads` threads that issue operations.
    RoundRun(const Options& options, const Arena& arena, const Round& round, State* states, int threads,
             Saboteur& saboteur);
    void run();

private:
    friend class Issuer;

    // round_run.cc
    void run_phase();
    void issue();
    void must(int code, const char* function) const { rma_storm::must(options_, state(), code, function); }
    [[noreturn]] void failed(const std::string& what) const { failed(state(), what); }
    [[noreturn]] void failed(const State& state, const std::string& what) const;
    State& state() const { return states_[0]; }
    const Phase& phase() const { return round_.phases[index_]; }
    const Area& area(const Operation& o) const { return phase().areas[static_cast<std::size_t>(o.area)]; }
    MPI_Win win() const { return window_.handle(); }
    bool passive() const { return phase().kind == EpochKind::kLocks || phase().kind == EpochKind::kLockAll; }
    void barrier() const { MPI_Barrier(arena_.comm); }

    // epochs.cc
    void open();
    void close();
    void store_fresh();
    void open_fence();
    void close_fence();
    int fence_asserts(std::size_t next, bool stored) const;
    void open_pscw();
    void close_pscw();
    void open_passive();
    void close_lock_all();
    MPI_Group group(bool access) const;
    bool written_in(std::size_t index) const;
    bool stored_in(std::size_t index) const;

    // checking.cc
    void check_window();
    void compare_window();
    std::string writers(std::size_t at) const;

    // outcomes.cc
    void resolve_outcomes();
    void exchange_outcomes();
    void check_race(int area);
    void check_tickets(int area);
    void check_location(int area, std::size_t at);

    struct Outcome {
        std::size_t operation;
        std::vector<std::uint64_t> values;  // fetched, by element; empty if nothing is fetched
    };

    const Options& options_;
    const Arena& arena_;
    const Round& round_;
    State* const states_;
    const int threads_;
    Saboteur& saboteur_;
    pattern::Random random_;  // for choices that other ranks need not know
    Window window_;
    Model model_;
    std::size_t index_ = 0;       // of the phase
    std::vector<Bytes> fetched_;  // by operation: results whose value depends on timing
    std::vector<Outcome> outcomes_;
};

}  // namespace rma_storm

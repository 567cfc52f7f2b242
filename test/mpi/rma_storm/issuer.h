// SPDX-License-Identifier: BSD-3-Clause
//
// Issues the operations that one thread of this rank has in a phase, completes some of them early, and compares their
// buffers with the model as soon as they are complete.
#pragma once

#include <mpi.h>

#include <list>
#include <vector>

#include "buffer.h"
#include "round_run.h"

namespace rma_storm {

class Issuer {
public:
    Issuer(RoundRun& run, int thread, State& state);

    void run();
    // After the end of the epoch.
    void finish_all();

private:
    struct Issued {
        std::size_t index;
        const Operation& operation;
        Bytes stream;  // operand
        Buffer origin, result;
        MPI_Request request = MPI_REQUEST_NULL;
    };

    // issuer.cc
    void run_visits();
    void run_nested(const std::vector<std::size_t>& visits);
    void lock(const Visit& visit);
    void unlock(const Visit& visit);
    void issue_of_visit(int visit);
    void issue(std::size_t index);
    void complete_some(int target);
    void flush(int target, bool local);
    void flush_all(bool local);
    void flush_before(int target);
    void finish_completed(int target);
    void finish(Issued& issued);
    void wait(Issued& issued);
    void check(const Issued& issued);

    // calls.cc
    void start(Issued& issued);
    void call(Issued& issued, std::size_t at);
    void call_mpi(Issued& issued, std::size_t at);
    void call_single(Issued& issued, std::size_t at);
    void update(Issued& issued, std::size_t at);
    void load_or_store(Issued& issued, std::size_t at);

    bool mine(const Operation& o) const { return o.origin == run_.arena_.rank && o.thread == thread_; }
    void must(int code, const char* function) const { rma_storm::must(run_.options_, state_, code, function); }

    RoundRun& run_;
    const Phase& phase_;
    const int thread_;
    State& state_;
    pattern::Random random_;
    std::list<Issued> pending_;
};

}  // namespace rma_storm

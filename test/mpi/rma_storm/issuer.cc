// SPDX-License-Identifier: BSD-3-Clause
#include "issuer.h"

#include <algorithm>

namespace rma_storm {

Issuer::Issuer(RoundRun& run, int thread, State& state)
    : run_(run), phase_(run.phase()), thread_(thread), state_(state),
      random_(pattern::key({run.round_.key, run.index_, static_cast<std::uint64_t>(run.arena_.rank),
                            static_cast<std::uint64_t>(thread)})) {}

void Issuer::run() {
    if (phase_.kind == EpochKind::kLocks) return run_visits();
    for (std::size_t i = 0; i < phase_.operations.size(); ++i)
        if (mine(phase_.operations[i])) issue(i);
    if (run_.options_.has(Feature::kLate)) return;
    for (Issued& issued : pending_) wait(issued);
}

void Issuer::run_visits() {
    std::vector<std::size_t> visits;
    for (std::size_t v = 0; v < phase_.visits.size(); ++v)
        if (phase_.visits[v].origin == run_.arena_.rank && phase_.visits[v].thread == thread_) visits.push_back(v);
    std::sort(visits.begin(), visits.end(),
              [&](std::size_t a, std::size_t b) { return phase_.visits[a].place < phase_.visits[b].place; });
    if (phase_.nested) return run_nested(visits);
    for (std::size_t v : visits) {
        lock(phase_.visits[v]);
        issue_of_visit(static_cast<int>(v));
        unlock(phase_.visits[v]);
    }
}

void Issuer::run_nested(const std::vector<std::size_t>& visits) {
    for (std::size_t v : visits) lock(phase_.visits[v]);
    for (std::size_t i = 0; i < phase_.operations.size(); ++i)
        if (mine(phase_.operations[i])) issue(i);
    // Not in the order in which they were locked.
    for (std::size_t i = 0; i < visits.size(); ++i)
        unlock(phase_.visits[visits[(i + visits.size() / 2) % visits.size()]]);
}

void Issuer::issue_of_visit(int visit) {
    for (std::size_t i = 0; i < phase_.operations.size(); ++i)
        if (phase_.operations[i].visit == visit) issue(i);
}

void Issuer::lock(const Visit& visit) {
    state_.target = visit.target;
    const int assert = visit.no_check ? MPI_MODE_NOCHECK : 0;
    if (visit.lock == LockKind::kAll) {
        state_.now("in MPI_Win_lock_all beside exclusive locks of others");
        must(MPI_Win_lock_all(assert, run_.win()), "MPI_Win_lock_all");
        return;
    }
    const bool exclusive = visit.lock == LockKind::kExclusive;
    state_.now(exclusive ? "in MPI_Win_lock, exclusive" : "in MPI_Win_lock, shared");
    must(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, visit.target, assert, run_.win()),
         "MPI_Win_lock");
}

void Issuer::unlock(const Visit& visit) {
    state_.target = visit.target;
    if (!run_.options_.has(Feature::kLate))
        for (Issued& issued : pending_) wait(issued);
    // Loads and stores in shared memory.
    if (run_.round_.window.kind == WindowKind::kShared) must(MPI_Win_sync(run_.win()), "MPI_Win_sync");
    if (visit.lock == LockKind::kAll) {
        state_.now("in MPI_Win_unlock_all");
        must(MPI_Win_unlock_all(run_.win()), "MPI_Win_unlock_all");
        return finish_completed(-1);
    }
    state_.now("in MPI_Win_unlock");
    must(MPI_Win_unlock(visit.target, run_.win()), "MPI_Win_unlock");
    finish_completed(visit.target);
}

void Issuer::issue(std::size_t index) {
    const Operation& o = phase_.operations[index];
    if (o.flush) flush_before(o.target);
    state_.target = o.target;
    state_.doing = "starting an operation";
    pending_.push_back({index, o, o.has_operand() ? operand(o) : Bytes{}, Buffer{}, Buffer{}});
    Issued& issued = pending_.back();
    if (o.has_operand()) issued.origin = Buffer(o.at_origin, issued.stream);
    if (o.has_result()) issued.result = Buffer(o.at_result);
    start(issued);
    ++state_.operations;
    if (issued.request != MPI_REQUEST_NULL && random_.one_in(4)) {
        wait(issued);
        finish(issued);
        pending_.pop_back();
    }
    if (run_.passive() && random_.one_in(6)) complete_some(o.target);
}

void Issuer::complete_some(int target) {
    const bool local = run_.options_.has(Feature::kFlushLocal) && random_.one_in(2);
    if (random_.one_in(4)) flush_all(local);
    else flush(target, local);
}

void Issuer::flush(int target, bool local) {
    state_.target = target;
    state_.now(local ? "in MPI_Win_flush_local" : "in MPI_Win_flush");
    if (local) must(MPI_Win_flush_local(target, run_.win()), "MPI_Win_flush_local");
    else must(MPI_Win_flush(target, run_.win()), "MPI_Win_flush");
    finish_completed(target);
}

void Issuer::flush_all(bool local) {
    state_.now(local ? "in MPI_Win_flush_local_all" : "in MPI_Win_flush_all");
    if (local) must(MPI_Win_flush_local_all(run_.win()), "MPI_Win_flush_local_all");
    else must(MPI_Win_flush_all(run_.win()), "MPI_Win_flush_all");
    finish_completed(-1);
}

// What follows uses the same memory of the target.
void Issuer::flush_before(int target) {
    if (random_.one_in(5)) flush_all(false);
    else flush(target, false);
}

// All operations on the target (-1: on all) are complete at the origin. Some requests stay open for longer.
void Issuer::finish_completed(int target) {
    for (auto i = pending_.begin(); i != pending_.end();) {
        const bool stays = i->request != MPI_REQUEST_NULL && random_.one_in(2);
        if ((target >= 0 && i->operation.target != target) || stays) {
            ++i;
            continue;
        }
        wait(*i);
        finish(*i);
        i = pending_.erase(i);
    }
}

void Issuer::finish_all() {
    std::vector<MPI_Request> requests;
    for (Issued& issued : pending_) requests.push_back(issued.request);
    state_.now("in MPI_Waitall behind the epoch");
    must(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (Issued& issued : pending_) finish(issued);
    pending_.clear();
}

void Issuer::wait(Issued& issued) {
    if (issued.request == MPI_REQUEST_NULL) return;
    state_.target = issued.operation.target;
    state_.now("waiting for a request");
    if (random_.one_in(2)) {
        must(MPI_Wait(&issued.request, MPI_STATUS_IGNORE), "MPI_Wait");
        return;
    }
    for (int flag = 0; flag == 0;) must(MPI_Test(&issued.request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
}

// The operation is complete at the origin: its result is there, and its buffers may be used again.
void Issuer::finish(Issued& issued) {
    check(issued);
    issued.origin.spoil();
    issued.result.spoil();
}

void Issuer::check(const Issued& issued) {
    const Operation& o = issued.operation;
    std::string wrong;
    if (o.has_operand() && o.call != Call::kUpdate) {
        wrong = issued.origin.difference(issued.stream);
        if (!wrong.empty()) wrong = "the origin buffer was changed: " + wrong;
    }
    if (wrong.empty() && o.has_result()) {
        const Bytes& expected = run_.model_.expected(issued.index).result;
        wrong = issued.result.difference(expected.empty() ? issued.result.stream() : expected);
        if (!wrong.empty()) wrong = "wrong result: " + wrong;
        if (expected.empty()) run_.fetched_[issued.index] = issued.result.stream();
    }
    if (!wrong.empty()) run_.failed(state_, describe(phase_, issued.index) + ": " + wrong);
}

}  // namespace rma_storm

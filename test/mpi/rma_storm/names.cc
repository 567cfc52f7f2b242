// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

namespace rma_storm {
namespace {

const char* name_of(const Operation& o) {
    switch (o.call) {
    case Call::kPut: return o.request ? "MPI_Rput" : "MPI_Put";
    case Call::kGet: return o.request ? "MPI_Rget" : "MPI_Get";
    case Call::kAccumulate: return o.request ? "MPI_Raccumulate" : "MPI_Accumulate";
    case Call::kGetAccumulate: return o.request ? "MPI_Rget_accumulate" : "MPI_Get_accumulate";
    case Call::kFetchAndOp: return "MPI_Fetch_and_op";
    case Call::kCompareAndSwap: return "MPI_Compare_and_swap";
    case Call::kUpdate: return "MPI_Get and MPI_Put";
    case Call::kStore: return "a store";
    case Call::kLoad: return "a load";
    }
    return "";
}

const char* name_of(LockKind kind) {
    switch (kind) {
    case LockKind::kShared: return "a shared lock";
    case LockKind::kExclusive: return "an exclusive lock";
    case LockKind::kAll: return "MPI_Win_lock_all";
    }
    return "";
}

}  // namespace

const char* name_of(WindowKind kind) {
    static const char* const kNames[] = {"created", "allocated", "shared", "dynamic"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(EpochKind kind) {
    static const char* const kNames[] = {"fence", "pscw", "locks", "lock_all"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(AreaKind kind) {
    static const char* const kNames[] = {"read", "written", "sum", "sequence", "flushed", "tickets", "race", "update"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const Phase& phase, std::size_t operation) {
    const Operation& o = phase.operations[operation];
    const Area& area = phase.areas[static_cast<std::size_t>(o.area)];
    std::string text = "operation " + std::to_string(operation) + ", " + name_of(o) + " of rank " +
                       std::to_string(o.origin) + " (thread " + std::to_string(o.thread) + ") at " +
                       std::to_string(o.at) + " of rank " + std::to_string(o.target) + ": " +
                       rma_storm::name_of(o.at_target);
    if (o.has_operand()) text += " from " + rma_storm::name_of(o.at_origin);
    if (o.has_result()) text += " to " + rma_storm::name_of(o.at_result);
    if (o.call == Call::kAccumulate || o.call == Call::kGetAccumulate || o.call == Call::kFetchAndOp)
        text += std::string(" by ") + rma_storm::name_of(o.combine);
    text += std::string(", in an area of kind ") + name_of(area.kind) + " [" + std::to_string(area.at) + ", " +
            std::to_string(area.at + area.bytes) + ")";
    if (o.visit >= 0) text += std::string(", under ") + name_of(phase.visits[static_cast<std::size_t>(o.visit)].lock);
    return text;
}

std::string describe(const Round& round) {
    const WindowPlan& w = round.window;
    std::string text = std::string("window ") + name_of(w.kind);
    for (int rank = 0; rank < round.size; ++rank) {
        text += "\n  rank " + std::to_string(rank) + ": unit " +
                std::to_string(w.unit[static_cast<std::size_t>(rank)]) + ", bytes";
        for (const Segment& s : w.segments[static_cast<std::size_t>(rank)]) text += " " + std::to_string(s.bytes);
    }
    if (w.no_locks) text += "\n  no_locks";
    if (w.unordered) text += "\n  accumulate_ordering=none";
    for (std::size_t p = 0; p < round.phases.size(); ++p) {
        const Phase& phase = round.phases[p];
        text += "\nphase " + std::to_string(p) + ": " + name_of(phase.kind);
        if (phase.opens) text += ", opens";
        if (phase.closes) text += ", closes";
        if (phase.check) text += ", check";
        if (phase.barrier) text += ", barrier";
        if (phase.nested) text += ", nested";
        if (phase.no_check) text += ", no_check";
        if (phase.asserts) text += ", asserts";
        for (const Visit& v : phase.visits)
            text += "\n  rank " + std::to_string(v.origin) + " thread " + std::to_string(v.thread) + ": " +
                    name_of(v.lock) + " of " + std::to_string(v.target) + (v.no_check ? ", no_check" : "");
        for (std::size_t i = 0; i < phase.operations.size(); ++i) text += "\n  " + describe(phase, i);
    }
    return text;
}

}  // namespace rma_storm

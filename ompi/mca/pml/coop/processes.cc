// SPDX-License-Identifier: BSD-3-Clause
#include "processes.h"

#include "coop/base/shared_records.h"
#include "modex.h"

namespace coop::pml {
namespace {

// Under Module::lock. Never destroyed: a process may end without MPI_Finalize.
SharedRecords<Process>& processes() {
    static auto& all = *new SharedRecords<Process>;
    return all;
}

}  // namespace

bool is_of_our_job(const ompi_proc_t* proc) noexcept {
    return proc->super.proc_name.jobid == ompi_proc_local()->super.proc_name.jobid;
}

Process& meet(ompi_proc_t* proc) noexcept {
    const std::uint64_t name = name_of(proc);
    {
        Guard guard(module.lock);
        if (Process* known = processes().find(name)) return *known;
    }
    std::unique_ptr<Neighbour> neighbour;
    if (proc != ompi_proc_local()) {
        const auto card = card_of(proc);
        check_version(proc, card);  // does not return if there is none
        neighbour = make_neighbour(proc, *card);
    }
    auto fresh = std::make_unique<Process>(name, std::move(neighbour));

    Guard guard(module.lock);
    Process& process = *processes().add(name, fresh);
    if (fresh) return process;  // another thread has added the process
    module.counters.up(Gauge::kProcesses);
    if (is_of_our_job(proc)) processes().find(name);  // another hold, which is never released
    return process;
}

void leave(Process& process) noexcept {
    std::unique_ptr<Process> gone;  // its memory is unmapped without the lock
    {
        Guard guard(module.lock);
        gone = processes().let_go(process.name);
    }
    if (gone) module.counters.down(Gauge::kProcesses);
}

void forget_processes() noexcept { processes().clear(); }

}  // namespace coop::pml

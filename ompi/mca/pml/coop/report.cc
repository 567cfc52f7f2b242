// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "comm.h"
#include "modex.h"

namespace coop::pml {
namespace {

// Below the tags of every collective component.
constexpr int kTag = -2000000000;

using Words = std::vector<std::uint64_t>;
using PerPeer = std::map<int, std::unique_ptr<Usage>>;

PerPeer per_peer;

Usage new_usage() { return Usage(rndv::kRows, rndv::kReasons); }

UsageLabels labels() {
    static const char* rows[rndv::kRows];
    static const char* reasons[rndv::kReasons];
    for (std::size_t i = 0; i < rndv::kRows; ++i) rows[i] = rndv::name(static_cast<rndv::Row>(i));
    for (std::size_t i = 0; i < rndv::kReasons; ++i) reasons[i] = rndv::text(static_cast<rndv::Reason>(i));
    return {rows, reasons};
}

// What a process tells rank 0: its table, and with report 2 one per peer.
//     words: count, table; then per peer: rank, count, table
Words pack() {
    Words all;
    const auto add = [&](const Usage& usage) {
        const Words words = usage.to_words();
        all.push_back(words.size());
        all.insert(all.end(), words.begin(), words.end());
    };
    add(module.usage);
    for (const auto& [rank, usage] : per_peer) {
        all.push_back(static_cast<std::uint64_t>(rank));
        add(*usage);
    }
    return all;
}

// Takes one table off the front of `rest`; false: it is not one.
bool take_table(std::span<const std::uint64_t>& rest, Usage& into) {
    if (rest.empty() || rest[0] > rest.size() - 1) return false;
    const auto words = rest.subspan(1, rest[0]);
    rest = rest.subspan(1 + rest[0]);
    return !into.merge_words(words).has_value();
}

bool take_peers(std::span<const std::uint64_t>& rest, int processes, PerPeer& peers) {
    while (!rest.empty()) {
        if (rest[0] >= static_cast<std::uint64_t>(processes)) return false;
        auto& usage = peers[static_cast<int>(rest[0])];
        usage = std::make_unique<Usage>(new_usage());
        rest = rest.subspan(1);
        if (!take_table(rest, *usage)) return false;
    }
    return true;
}

void print_peers(int rank, const PerPeer& peers) {
    std::vector<PeerUsage> lines;
    for (const auto& [peer, usage] : peers) lines.push_back({peer, usage.get()});
    if (!lines.empty()) std::fputs(format_peer_table(rank, lines, labels()).c_str(), stderr);
}

Words receive_words(int from) {
    auto* world = &ompi_mpi_comm_world.comm;
    ompi_status_public_t status;
    mca_pml_coop_probe(from, kTag, world, &status);
    Words words(status._ucount / sizeof(std::uint64_t));
    mca_pml_coop_recv(words.data(), words.size() * sizeof(std::uint64_t), &ompi_mpi_byte.dt, from, kTag, world, MPI_STATUS_IGNORE);
    return words;
}

void gather_and_print(int processes) {
    auto* world = &ompi_mpi_comm_world.comm;
    Usage job = new_usage();
    static_cast<void>(job.merge(module.usage));
    std::map<int, PerPeer> senders;
    for (int rank = 1; rank < processes; ++rank) {
        if (published_report(ompi_comm_peer_lookup(world, rank)) == 0) continue;
        const Words words = receive_words(rank);
        std::span<const std::uint64_t> rest(words);
        if (!take_table(rest, job) || !take_peers(rest, processes, senders[rank]))
            std::fprintf(stderr, "pml/coop: the report of rank %d arrived damaged and is left out\n", rank);
    }
    std::fputs(format_job_table(job, labels(), processes).c_str(), stderr);
    if (!per_peer.empty()) print_peers(0, per_peer);
    for (const auto& [rank, peers] : senders) print_peers(rank, peers);
}

// A duplicate of MPI_COMM_SELF does not report.
int do_not_copy(ompi_communicator_t*, int, void*, void*, void*, int* flag, ompi_communicator_t*) {
    *flag = 0;
    return MPI_SUCCESS;
}

// Processes may differ in their parameters (a host's file, an application
// context): each sends only if rank 0 reports, and rank 0 waits only for those
// that do.
int report(ompi_communicator_t*, int, void*, void*) {
    auto* world = &ompi_mpi_comm_world.comm;
    const int processes = ompi_comm_size(world);
    if (ompi_comm_rank(world) == 0) {
        gather_and_print(processes);
    } else if (published_report(ompi_comm_peer_lookup(world, 0)) > 0) {
        const Words words = pack();
        mca_pml_coop_send(words.data(), words.size() * sizeof(std::uint64_t), &ompi_mpi_byte.dt, 0, kTag,
                          MCA_PML_BASE_SEND_STANDARD, world);
    }
    return MPI_SUCCESS;
}

}  // namespace

Usage* usage_of_peer(ompi_proc_t* proc) noexcept {
    if (module.config.report < 2 || proc->super.proc_name.jobid != ompi_proc_local()->super.proc_name.jobid) return nullptr;
    auto& usage = per_peer[static_cast<int>(proc->super.proc_name.vpid)];
    if (!usage) {
        usage = std::make_unique<Usage>(new_usage());
        usage->set_threads(module.threads);
    }
    return usage.get();
}

void report_at_finalize() noexcept {
    if (module.config.report == 0) return;
    ompi_attribute_fn_ptr_union_t on_copy{}, on_delete{};
    on_copy.attr_communicator_copy_fn = do_not_copy;
    on_delete.attr_communicator_delete_fn = report;
    int key = MPI_KEYVAL_INVALID;
    if (ompi_attr_create_keyval(COMM_ATTR, on_copy, on_delete, &key, nullptr, 0, nullptr) != OMPI_SUCCESS) return;
    auto* self = &ompi_mpi_comm_self.comm;
    ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, key, nullptr, false);
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdio>
#include <map>
#include <span>
#include <vector>

#include "comm.h"
#include "lane_costs.h"
#include "modex.h"

namespace coop::pml {
namespace {

// Below the tags of every collective component.
constexpr int kTag = -2000000000;

using Words = std::vector<std::uint64_t>;
using PerPeer = std::map<int, SparseUsage>;

// Never destroyed: a process may end without MPI_Finalize.
PerPeer& per_peer() {
    static auto& all = *new PerPeer;
    return all;
}

constexpr UsageShape kShape{rndv::kRows, rndv::kReasons};

UsageLabels labels() {
    static const char* rows[rndv::kRows];
    static const char* reasons[rndv::kReasons];
    for (std::size_t i = 0; i < rndv::kRows; ++i) rows[i] = rndv::name(static_cast<rndv::Row>(i));
    for (std::size_t i = 0; i < rndv::kReasons; ++i) reasons[i] = rndv::text(static_cast<rndv::Reason>(i));
    return {rows, reasons};
}

// The data that a process sends to rank 0: its own table, and with pml_coop_report 2 one table per peer.
//     words: count, table; then per peer: rank, count, table
Words pack() {
    Words all;
    const auto add = [&](const Words& words) {
        all.push_back(words.size());
        all.insert(all.end(), words.begin(), words.end());
    };
    add(module.usage.to_words());
    for (const auto& [rank, usage] : per_peer()) {
        all.push_back(static_cast<std::uint64_t>(rank));
        add(usage.to_words());
    }
    return all;
}

// Removes the words of one table from the front of `rest` and returns them; empty if the table is incomplete.
std::span<const std::uint64_t> take_words(std::span<const std::uint64_t>& rest) {
    if (rest.empty() || rest[0] > rest.size() - 1) return {};
    const auto words = rest.subspan(1, rest[0]);
    rest = rest.subspan(1 + rest[0]);
    return words;
}

// Returns false if the words are not valid tables of peers.
bool take_peers(std::span<const std::uint64_t> rest, int processes, std::vector<PeerUsage>& peers) {
    while (!rest.empty()) {
        const std::uint64_t rank = rest[0];
        rest = rest.subspan(1);
        const auto words = take_words(rest);
        if (rank >= static_cast<std::uint64_t>(processes) || kShape.find_defect(words)) return false;
        peers.push_back({static_cast<int>(rank), kShape.counts_of(words)});
    }
    return true;
}

void print_peers(int rank, const std::vector<PeerUsage>& peers) {
    if (!peers.empty()) std::fputs(format_peer_table(rank, peers, kShape, labels()).c_str(), stderr);
}

// Adds the table of a process to that of the job and prints its tables of peers, so that rank 0 holds those of only one
// process at a time.
void take_in(int rank, int processes, std::span<const std::uint64_t> words, Usage& job) {
    std::vector<PeerUsage> peers;
    const auto own = take_words(words);
    if (!take_peers(words, processes, peers) || job.merge_words(own).has_value()) {
        std::fprintf(stderr, "pml/coop: the report of rank %d arrived damaged and is left out\n", rank);
        return;
    }
    print_peers(rank, peers);
}

// Rank 0 asks one process after the other, because otherwise it would have to store the tables of all processes at
// once.
void ask(int rank) {
    mca_pml_coop_send(nullptr, 0, &ompi_mpi_byte.dt, rank, kTag, MCA_PML_BASE_SEND_STANDARD, &ompi_mpi_comm_world.comm);
}
void wait_until_asked() {
    mca_pml_coop_recv(nullptr, 0, &ompi_mpi_byte.dt, 0, kTag, &ompi_mpi_comm_world.comm, MPI_STATUS_IGNORE);
}

Words receive_words(int from) {
    auto* world = &ompi_mpi_comm_world.comm;
    ompi_status_public_t status;
    mca_pml_coop_probe(from, kTag, world, &status);
    Words words(status._ucount / sizeof(std::uint64_t));
    mca_pml_coop_recv(words.data(), words.size() * sizeof(std::uint64_t), &ompi_mpi_byte.dt, from, kTag, world,
                      MPI_STATUS_IGNORE);
    return words;
}

void print_lane_limit() {
    const std::string words = lane_limit_words();
    if (!words.empty()) std::fprintf(stderr, "pml/coop: lane of rank 0: %s\n", words.c_str());
}

void gather_and_print(int processes) {
    auto* world = &ompi_mpi_comm_world.comm;
    Usage job(rndv::kRows, rndv::kReasons);
    take_in(0, processes, pack(), job);
    for (int rank = 1; rank < processes; ++rank) {
        if (published_report(ompi_comm_peer_lookup(world, rank)) == 0) continue;
        ask(rank);
        take_in(rank, processes, receive_words(rank), job);
    }
    print_lane_limit();
    std::fputs(format_job_table(job, labels(), processes).c_str(), stderr);
}

// A duplicate of MPI_COMM_SELF does not report.
int do_not_copy(ompi_communicator_t*, int, void*, void*, void*, int* flag, ompi_communicator_t*) {
    *flag = 0;
    return MPI_SUCCESS;
}

// Processes may have different parameters (from a file on a host or an application context): each sends only if rank 0
// reports, and rank 0 waits only for processes that report.
int report(ompi_communicator_t*, int, void*, void*) {
    auto* world = &ompi_mpi_comm_world.comm;
    const int processes = ompi_comm_size(world);
    if (ompi_comm_rank(world) == 0) {
        gather_and_print(processes);
    } else if (published_report(ompi_comm_peer_lookup(world, 0)) > 0) {
        wait_until_asked();
        const Words words = pack();
        mca_pml_coop_send(words.data(), words.size() * sizeof(std::uint64_t), &ompi_mpi_byte.dt, 0, kTag,
                          MCA_PML_BASE_SEND_STANDARD, world);
    }
    return MPI_SUCCESS;
}

}  // namespace

SparseUsage* usage_of_peer(ompi_proc_t* proc) noexcept {
    if (module.config.report < 2 || !is_of_our_job(proc)) return nullptr;
    const auto [at, is_new] = per_peer().try_emplace(static_cast<int>(proc->super.proc_name.vpid), rndv::kRows,
                                                     rndv::kReasons);
    if (is_new) at->second.set_threads(module.threads);
    return &at->second;
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

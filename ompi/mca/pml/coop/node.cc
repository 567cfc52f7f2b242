// SPDX-License-Identifier: BSD-3-Clause
#include "node.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "coop/node/cpu_limit.h"
#include "diagnose.h"
#include "modex.h"
#include "processes.h"

namespace coop::pml {
namespace {

// Messages of a process of another job before it takes one of the few rings for such processes.
constexpr std::int64_t kGuestAfter = 8;

// Neighbours read it to test copies.
std::uint64_t nonce;
node::SharedMemory own_mapping;
NodeMemory* own_memory = nullptr;

// The copy mechanism of btl/vader as a word, and whether the user has set it.
struct Mechanism {
    std::string name;
    bool is_set = false;
};

Mechanism vader_mechanism() {
    const mca_base_var_t* variable = nullptr;
    const int index = mca_base_var_find("opal", "btl", "vader", "single_copy_mechanism");
    if (index < 0 || mca_base_var_get(index, &variable) != OPAL_SUCCESS || !variable->mbv_enumerator) return {};
    const mca_base_var_storage_t* value = nullptr;
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    if (mca_base_var_get_value(index, &value, &source, nullptr) != OPAL_SUCCESS || !value) return {};
    char* name = nullptr;
    int number;
    std::memcpy(&number, value, sizeof number);  // an int that may not be aligned as the union requires
    if (variable->mbv_enumerator->string_from_value(variable->mbv_enumerator, number, &name) != OPAL_SUCCESS || !name)
        return {};
    Mechanism mechanism{name, source == MCA_BASE_VAR_SOURCE_COMMAND_LINE || source == MCA_BASE_VAR_SOURCE_ENV ||
                                  source == MCA_BASE_VAR_SOURCE_FILE || source == MCA_BASE_VAR_SOURCE_OVERRIDE};
    std::free(name);
    return mechanism;
}

// True if this process reports for its node. The process with the lowest rank on the node does; but if copies are
// denied to rank 0, too, only rank 0 reports.
bool speaks_for_node() noexcept {
    return opal_process_info.my_local_rank == 0 && (ompi_proc_local()->super.proc_name.vpid == 0 || rank_0_can_copy());
}

ompi_proc_t* rank_0() noexcept {
    const opal_process_name_t name{OMPI_PROC_MY_NAME->jobid, 0};
    return reinterpret_cast<ompi_proc_t*>(ompi_proc_for_name(name));
}

// Reports once that the kernel denies copies, so that messages go through shared memory.
void announce(int error) {
    static std::atomic<bool> announced{false};
    if (announced.exchange(true) || !speaks_for_node()) return;
    no_kernel_copy(error);
}

// Returns, as an errno, why btl/vader cannot copy from and to the process although it should; 0: it can, or is not
// meant to. CMA needs the permission of the kernel for each pair of processes, so a copy is tested here; the other
// process may be denied copies although we are not. The other mechanisms need no test.
int copy_error(const BoardCard& card, bool it_copies) {
    const Mechanism mechanism = vader_mechanism();
    if (mechanism.name == "cma") {
        const int error = node::try_copy(card.pid, card.nonce_address, card.nonce);
        return error || it_copies ? error : EPERM;
    }
    // Returns 0 if vader is not in use, or its mechanism was set by the user, or needs no permission (XPMEM, KNEM).
    // Otherwise vader has found that it cannot copy: EPERM.
    return mechanism.name.empty() || (mechanism.is_set && mechanism.name != "emulated") || mechanism.name == "xpmem" ||
                   mechanism.name == "knem"
               ? 0
               : EPERM;
}

bool shares_memory(ompi_proc_t* proc) noexcept {
    const auto card = card_of(proc);
    return card && card->board.fd >= 0;
}

// The processes of our job on this node, in the order of their ranks; empty: PMIx does not list them.
std::vector<ompi_proc_t*> processes_of_node() {
    opal_process_name_t name = OPAL_PROC_MY_NAME;
    name.vpid = OPAL_VPID_WILDCARD;
    char* text = nullptr;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCAL_PEERS, &name, &text, OPAL_STRING);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    if (rc != OPAL_SUCCESS || !text) return {};
    std::vector<opal_vpid_t> ranks;
    for (char* at = text; *at;) {  // "0,1,2"
        char* end;
        ranks.push_back(static_cast<opal_vpid_t>(std::strtoul(at, &end, 10)));
        if (end == at) return {};
        at = *end ? end + 1 : end;
    }
    std::sort(ranks.begin(), ranks.end());
    std::vector<ompi_proc_t*> processes;
    for (opal_vpid_t rank : ranks) {
        name.vpid = rank;
        processes.push_back(reinterpret_cast<ompi_proc_t*>(ompi_proc_for_name(name)));
    }
    return processes;
}

ompi_proc_t* first_of_node() {
    const std::vector<ompi_proc_t*> processes = processes_of_node();
    return processes.empty() ? nullptr : processes.front();
}

// Adds the CPUs that the other processes of the node may run on, until there are enough.
void add_cpus_of_others(node::CpuSet& cpus, std::size_t enough) {
    for (ompi_proc_t* proc : processes_of_node()) {
        if (node::count(cpus) >= enough) return;
        if (!proc || proc == ompi_proc_local()) continue;
        if (const auto card = card_of(proc)) node::add(cpus, node::cpus_of(card->board.pid));
    }
}

bool counts_hca_loads() noexcept {
    const auto transports = module.extensions.all();
    return std::any_of(transports.begin(), transports.end(),
                       [](const Extended& each) { return each.extension->share_hca_loads != nullptr; });
}

void share_hca_loads(rndv::HcaLoads* loads) noexcept {
    for (const Extended& each : module.extensions.all())
        if (each.extension->share_hca_loads) each.extension->share_hca_loads(each.btl, loads);
}

}  // namespace

void Neighbour::try_to_map() noexcept {
    Guard guard(module.lock);
    const std::uint64_t now = now_ns();
    if (memory.load(std::memory_order_relaxed) || !retry.is_due(now)) return;
    node::SharedMemory mapped = node::SharedMemory::attach(card.pid, card.fd, sizeof(NodeMemory));
    auto* theirs = static_cast<NodeMemory*>(mapped.address());
    if (!theirs || theirs->board.magic != rndv::Board::kMagic || theirs->board.nonce != card.nonce)
        return retry.failed(now);
    mapping = std::move(mapped);
    memory.store(theirs, std::memory_order_release);
}

void Neighbour::open_lane_if_due(bool is_message) noexcept {
    int error = 0;
    {
        Guard guard(module.lock);
        const std::int64_t left = lane_in.load(std::memory_order_relaxed);
        if (is_message && is_guest && ++before_lane > kMostBeforeLane) {
            keep_to_transport();
            return;
        }
        if (is_message && left > 0) lane_in.store(left - 1, std::memory_order_relaxed);
        if (left != 0 || !unsent->none()) return;
        lane = LaneOut::open(
            card.pid, name, lane_card, is_guest,
            {.may_copy = !copy_error && kernel_copies_messages(), .reads = copies_by_cma && kernel_copies_messages()},
            error);
        lane_in.store(kNoLane, std::memory_order_relaxed);
        lane_out.store(lane.get(), std::memory_order_release);
        if (lane) return;
        pause_before_lane(error);
    }
    report_lane_missed(error);
}

// A descriptor, memory, or a ring may be free later, but each attempt takes some system calls.
void Neighbour::pause_before_lane(int error) noexcept {
    lane_failed.store(true, std::memory_order_relaxed);
    if (error == EBADF || next_pause > kLongestPause) return;  // another layout, or enough attempts
    lane_in.store(next_pause, std::memory_order_relaxed);
    next_pause *= 2;
}

void open_node() noexcept {
    nonce = node::random_word();
    own_mapping = node::SharedMemory::create(sizeof(NodeMemory));
    if (!own_mapping) return;
    own_memory = new (own_mapping.address()) NodeMemory;
    own_memory->board.nonce = nonce;
    make_lane_memory();
}

void report_missing_memory() noexcept {
    if (own_memory) return;
    ompi_proc_t* const me = ompi_proc_local();
    for (ompi_proc_t* speaker : {first_of_node(), rank_0()})
        if (speaker && speaker != me && !shares_memory(speaker)) return;
    no_shared_memory(own_mapping.error());
}

void count_hca_loads() noexcept {
    if (!counts_hca_loads()) return;
    ompi_proc_t* first = first_of_node();
    Neighbour* neighbour = first ? meet(first).neighbour.get() : nullptr;  // of our job, so it is kept until the end
    if (neighbour) neighbour->look_again();
    NodeMemory* const shared = first == ompi_proc_local() ? own_memory
                               : neighbour                ? neighbour->memory.load(std::memory_order_acquire)
                                                          : nullptr;
    if (shared) share_hca_loads(&shared->loads);
}

void stop_counting_hca_loads() noexcept { share_hca_loads(nullptr); }

void close_node() noexcept {
    forget_processes();
    free_lane_memory();
    own_memory = nullptr;
    own_mapping = {};
}

BoardCard board_card() noexcept {
    return {static_cast<std::int32_t>(getpid()), own_mapping.fd(), nonce, reinterpret_cast<std::uint64_t>(&nonce)};
}

rndv::Board* my_board() noexcept { return own_memory ? &own_memory->board : nullptr; }
rndv::BounceBuffers* my_bounces() noexcept { return own_memory ? &own_memory->bounces : nullptr; }

std::unique_ptr<Neighbour> make_neighbour(ompi_proc_t* proc, const Card& card) noexcept {
    if (!OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) return nullptr;
    auto fresh = std::make_unique<Neighbour>();
    fresh->card = card.board;
    fresh->name = name_of(proc);
    if (!own_memory) fresh->card.fd = -1;  // sharing needs the memory of both
    fresh->lane_card = card.lane;
    fresh->is_guest = !is_of_our_job(proc);
    if (lane_is_wanted() && fresh->lane_card.fd >= 0)
        fresh->lane_in.store(fresh->is_guest ? std::clamp<std::int64_t>(module.config.lane_after, kGuestAfter,
                                                                        Neighbour::kMostBeforeLane - 1)
                                             : std::int64_t{module.config.lane_after},
                             std::memory_order_relaxed);
    fresh->copy_error = copy_error(card.board, card.copy_works);
    fresh->copies_by_cma = fresh->copy_error == 0 && vader_mechanism().name == "cma";
    if (fresh->copy_error) announce(fresh->copy_error);
    return fresh;
}

bool is_crowded() noexcept {
    const std::size_t processes = static_cast<std::size_t>(opal_process_info.num_local_peers) + 1;
    const auto online = static_cast<std::size_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
    node::CpuSet cpus = node::own_cpus();
    if (cpus.empty()) cpus.assign(online, true);
    // If we are bound to a few CPUs, the other processes may be bound to others.
    if (node::count(cpus) < processes && processes <= online) add_cpus_of_others(cpus, processes);
    return node::is_crowded(processes, node::count(cpus), node::cpu_limit());
}

}  // namespace coop::pml

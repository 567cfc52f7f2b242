// SPDX-License-Identifier: BSD-3-Clause
#include "node.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <unistd.h>

#include "coop/node/loopback.h"
#include "diagnose.h"
#include "modex.h"

namespace coop::pml {
namespace {

// Read by neighbours that try a copy.
std::uint64_t nonce;
node::SharedMemory own_memory;
rndv::Board* own_board = nullptr;
rndv::BounceBuffers* own_bounces = nullptr;
rndv::HcaLoads* own_loads = nullptr;

std::map<std::uint64_t, std::unique_ptr<Neighbour>>& neighbours() {
    static std::map<std::uint64_t, std::unique_ptr<Neighbour>> all;
    return all;
}

// A parameter of btl/vader: its value as a word, and whether somebody set it.
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
    std::memcpy(&number, value, sizeof number);  // it is an int, wherever that lies: not aligned as the union would be
    if (variable->mbv_enumerator->string_from_value(variable->mbv_enumerator, number, &name) != OPAL_SUCCESS || !name) return {};
    Mechanism mechanism{name, source == MCA_BASE_VAR_SOURCE_COMMAND_LINE || source == MCA_BASE_VAR_SOURCE_ENV || source == MCA_BASE_VAR_SOURCE_FILE || source == MCA_BASE_VAR_SOURCE_OVERRIDE};
    std::free(name);
    return mechanism;
}

// The lowest process of the node speaks, and only rank 0 where what it sees is
// the same everywhere.
bool speaks_for_node() noexcept {
    return opal_process_info.my_local_rank == 0 && (ompi_proc_local()->super.proc_name.vpid == 0 || rank_0_can_copy());
}

// Says once that copies have to go through shared memory, unless that was asked for.
void announce(int error) {
    static std::atomic<bool> announced{false};
    if (announced.exchange(true) || !speaks_for_node()) return;
    no_kernel_copy(error);
}

// CMA needs the permission of the kernel for each pair of processes: tried
// here; the other one may have been denied it alone. The other mechanisms have
// no such surprise.
int copy_error(const BoardCard& card, bool it_copies) {
    const Mechanism mechanism = vader_mechanism();
    if (mechanism.name == "cma") {
        const int error = node::try_copy(card.pid, card.nonce_address, card.nonce);
        return error || it_copies ? error : EPERM;
    }
    // vader is not there, does without as it was told, or has found out by itself
    return mechanism.name.empty() || mechanism.is_set || mechanism.name == "xpmem" || mechanism.name == "knem" ? 0 : EPERM;
}

void attach(Neighbour& neighbour, const BoardCard& card) noexcept {
    if (!own_board || card.fd < 0) return;
    neighbour.memory = node::SharedMemory::attach(card.pid, card.fd, sizeof(NodeMemory));
    auto* theirs = static_cast<NodeMemory*>(neighbour.memory.address());
    if (!theirs || theirs->board.magic != rndv::Board::kMagic || theirs->board.nonce != card.nonce) return;
    neighbour.board = &theirs->board;
    neighbour.bounces = &theirs->bounces;
    neighbour.loads = &theirs->loads;
}

// The first process of our job on this node; null: nobody says.
ompi_proc_t* first_of_node() {
    opal_process_name_t name = OPAL_PROC_MY_NAME;
    name.vpid = OPAL_VPID_WILDCARD;
    char* text = nullptr;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCAL_PEERS, &name, &text, OPAL_STRING);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    if (rc != OPAL_SUCCESS || !text || !*text) return nullptr;
    name.vpid = OPAL_PROC_MY_NAME.vpid;
    for (char* at = text; *at;) {  // "0,1,2"
        char* end;
        name.vpid = std::min<opal_vpid_t>(name.vpid, static_cast<opal_vpid_t>(std::strtoul(at, &end, 10)));
        if (end == at) return nullptr;
        at = *end ? end + 1 : end;
    }
    return reinterpret_cast<ompi_proc_t*>(ompi_proc_for_name(name));
}

}  // namespace

void open_node() noexcept {
    nonce = node::random_word();
    own_memory = node::SharedMemory::create(sizeof(NodeMemory));
    if (!own_memory) return;
    auto* mine = new (own_memory.address()) NodeMemory;
    own_board = &mine->board;
    own_bounces = &mine->bounces;
    own_loads = &mine->loads;
    own_board->nonce = nonce;
}

void count_hca_loads() noexcept {
    if (!node::loopback) return;
    ompi_proc_t* first = first_of_node();
    const Neighbour* neighbour = first ? neighbour_of(first) : nullptr;
    node::hca_loads.store(first == ompi_proc_local() ? own_loads : neighbour ? neighbour->loads : nullptr, std::memory_order_release);
}

void close_node() noexcept {
    node::hca_loads.store(nullptr, std::memory_order_release);
    neighbours().clear();
    own_board = nullptr;
    own_bounces = nullptr;
    own_loads = nullptr;
    own_memory = {};
}

BoardCard board_card() noexcept {
    return {static_cast<std::int32_t>(getpid()), own_memory.fd(), nonce, reinterpret_cast<std::uint64_t>(&nonce)};
}

rndv::Board* my_board() noexcept { return own_board; }
rndv::BounceBuffers* my_bounces() noexcept { return own_bounces; }

Neighbour* neighbour_of(ompi_proc_t* proc) noexcept {
    if (proc == ompi_proc_local() || !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) return nullptr;
    {
        Guard guard(module.lock);
        if (auto known = neighbours().find(name_of(proc)); known != neighbours().end()) return known->second.get();
    }
    BoardCard card{};
    bool it_copies = false;
    if (!published_board(proc, card, it_copies)) return nullptr;
    auto fresh = std::make_unique<Neighbour>();
    fresh->pid = card.pid;
    attach(*fresh, card);
    fresh->copy_error = copy_error(card, it_copies);
    if (fresh->copy_error) announce(fresh->copy_error);

    Guard guard(module.lock);
    return neighbours().try_emplace(name_of(proc), std::move(fresh)).first->second.get();
}

bool is_crowded() noexcept {
    return static_cast<long>(opal_process_info.num_local_peers) + 1 > sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace coop::pml

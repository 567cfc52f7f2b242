// SPDX-License-Identifier: BSD-3-Clause
//
// Which HCAs this process would rather use: near ones before far ones, and of
// equally near ones another than the processes beside it.
#include <cstdlib>
#include <memory>
#include <sstream>

#include "component.h"
#include "coop/node/numa.h"

namespace coop::ib {
namespace {

bool all_equal(const std::vector<std::uint32_t>& distances) { return std::equal(distances.begin() + 1, distances.end(), distances.begin()); }

// What Open MPI knows of where a process of this node is; nothing: it is not bound.
bool shares_our_memory(opal_process_name_t name) {
    std::uint16_t locality = 0, *place = &locality;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCALITY, &name, reinterpret_cast<void**>(&place), OPAL_UINT16);
    return rc == OPAL_SUCCESS && OPAL_PROC_ON_LOCAL_NUMA(locality);
}

// "0,1,2": the processes of the job on this node.
std::string local_peers() {
    opal_process_name_t all = OPAL_PROC_MY_NAME;
    all.vpid = OPAL_VPID_WILDCARD;
    char* text = nullptr;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCAL_PEERS, &all, &text, OPAL_STRING);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    return rc == OPAL_SUCCESS && text != nullptr ? text : "";
}

// Our number among the processes that have the same HCAs near.
std::uint32_t rank_among_neighbours() {
    std::uint32_t before = 0;
    std::istringstream words(local_peers());
    for (std::string word; std::getline(words, word, ',');) {
        opal_process_name_t peer = OPAL_PROC_MY_NAME;
        peer.vpid = static_cast<opal_vpid_t>(std::strtoul(word.c_str(), nullptr, 10));
        if (peer.vpid < OPAL_PROC_MY_NAME.vpid && shares_our_memory(peer)) ++before;
    }
    return before;
}

}  // namespace

void order_ports(Module& m) {
    std::vector<std::string> folders;
    for (const rail::Hca& hca : m.hcas) folders.push_back(hca.sysfs_folder());
    const std::vector<std::uint32_t> distances = node::distances(folders, node::own_cpus());
    const std::uint32_t rank = all_equal(distances) ? local_rank() : rank_among_neighbours();
    m.own.ports = path::by_preference(rail::ports_of(m.hcas), distances, rank);
    m.sched.first_rail = static_cast<sched::RailIndex>(path::first_rail(m.own.ports, distances, rank) % sched::kMaxRails);
}

}  // namespace coop::ib

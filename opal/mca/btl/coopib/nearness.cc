// SPDX-License-Identifier: BSD-3-Clause
//
// Assigns the planes of the ports and the order in which this process prefers its HCAs:
// near before far. Of equally near HCAs, neighbouring processes prefer different ones.
#include "nearness.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "coop/node/numa.h"
#include "coop/path/planes.h"
#include "diagnose.h"
#include "module.h"

namespace coop::ib {
namespace {

bool all_equal(const std::vector<std::uint32_t>& distances) {
    return std::equal(distances.begin() + 1, distances.end(), distances.begin());
}

std::vector<std::uint32_t> distances_of(const std::vector<rail::Hca>& hcas) {
    std::vector<std::string> folders;
    for (const rail::Hca& hca : hcas) folders.push_back(hca.sysfs_folder());
    return node::distances(folders, node::own_cpus());
}

// Whether a process of this node is bound to our NUMA node, as far as Open MPI knows.
bool shares_our_memory(opal_process_name_t name) {
    std::uint16_t locality = 0, *place = &locality;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCALITY, &name, reinterpret_cast<void**>(&place), OPAL_UINT16);
    return rc == OPAL_SUCCESS && OPAL_PROC_ON_LOCAL_NUMA(locality);
}

// The ranks of the job's processes on this node, such as "0,1,2".
std::string local_peers() {
    opal_process_name_t all = OPAL_PROC_MY_NAME;
    all.vpid = OPAL_VPID_WILDCARD;
    char* text = nullptr;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_LOCAL_PEERS, &all, &text, OPAL_STRING);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    return rc == OPAL_SUCCESS && text != nullptr ? text : "";
}

// Our rank among the processes on our NUMA node, which are near the same HCAs.
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

// The list may name HCAs that this process does not use, but not HCAs that the node does not have.
std::optional<ParamError> name_that_is_not_there(const Module& m, const path::Planes& planes) {
    const std::vector<std::string> names = rail::hca_names();
    for (const path::Planes::Entry& entry : planes.entries) {
        if (std::find(names.begin(), names.end(), entry.hca) != names.end()) continue;
        std::string all;
        for (const std::string& name : names) all.append(all.empty() ? "" : ", ").append(name);
        return ParamError{"pairing", m.given.pairing, "the HCAs of this host: " + all};
    }
    return std::nullopt;
}

}  // namespace

void keep_near_hcas(Module& m) {
    const std::vector<std::size_t> near = node::nearest(distances_of(m.hcas), kMaxHcas);
    std::string used, left_out;
    std::vector<rail::Hca> kept;
    for (std::size_t i = 0; i < m.hcas.size(); ++i) {
        const bool is_near = std::binary_search(near.begin(), near.end(), i);
        std::string& names = is_near ? used : left_out;
        names.append(names.empty() ? "" : ", ").append(m.hcas[i].name());
        if (!is_near) continue;
        m.hcas[i].set_index(static_cast<std::uint8_t>(kept.size()));
        kept.push_back(std::move(m.hcas[i]));
    }
    too_many_hcas(m.hcas.size(), used, left_out);
    m.hcas = std::move(kept);
}

std::optional<ParamError> order_ports(Module& m) {
    m.nearness.distances = distances_of(m.hcas);
    m.nearness.rank = all_equal(m.nearness.distances) ? local_rank() : rank_among_neighbours();
    const path::Planes planes = std::get<path::Planes>(path::parse_planes(m.given.pairing));
    if (auto wrong = name_that_is_not_there(m, planes)) return wrong;
    m.own.ports = path::by_preference(rail::ports_of(m.hcas), m.nearness);
    for (path::PortRecord& port : m.own.ports) port.plane = planes.of(m.hcas[port.hca].name(), port);
    return std::nullopt;
}

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/pairing.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "coop/path/datagram.h"

namespace coop::path {
namespace {

struct PortPair {
    std::size_t local, remote;  // indices of the lists
    unsigned paths;             // that LMC gives
};

// The strictest of two, of which 0 means any number.
std::uint16_t stricter(std::uint16_t a, std::uint16_t b) noexcept { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// The indices of the ports of each network, in order.
using Positions = std::map<Network, std::vector<std::size_t>>;
Positions by_network(std::span<const PortRecord> ports, Reach reach) {
    Positions positions;
    for (std::size_t i = 0; i < std::min(ports.size(), kMaxPorts); ++i) positions[network_of(ports[i], reach)].push_back(i);
    return positions;
}

bool is_same(const PortRecord& a, const PortRecord& b) { return a.gid == b.gid && a.hca == b.hca && a.port == b.port; }

// The ports of both are the same ones: two processes of a node, or one process and itself.
bool are_same(std::span<const PortRecord> a, std::span<const PortRecord> b) { return std::is_permutation(a.begin(), a.end(), b.begin(), b.end(), is_same); }

// Each port with itself: what goes from one HCA to another leaves the node, and comes back over two links. In the order of the
// nearer one of both wishes.
std::vector<PortPair> pair_with_themselves(std::span<const PortRecord> local, std::span<const PortRecord> remote) {
    std::vector<std::tuple<std::size_t, Gid, PortPair>> ranked;
    for (std::size_t l = 0; l < std::min(local.size(), kMaxPorts); ++l)
        for (std::size_t r = 0; r < std::min(remote.size(), kMaxPorts); ++r)
            if (is_same(local[l], remote[r]))
                ranked.emplace_back(l + r, local[l].gid, PortPair{l, r, 1u << std::min({local[l].lmc + 0u, remote[r].lmc + 0u, kMaxLmc})});
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
        return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<PortPair> pairs;
    for (const auto& entry : ranked) pairs.push_back(std::get<2>(entry));
    return pairs;
}

// The pairs, best first, in an order that is the same seen from either side:
// round of the pairing, then wishes of both owners taken together, then network.
std::vector<PortPair> pair_ports(std::span<const PortRecord> local, std::span<const PortRecord> remote) {
    const Reach reach = reach_between(local, remote);
    const Positions theirs = by_network(remote, reach);
    std::vector<std::tuple<std::size_t, std::size_t, Network, PortPair>> ranked;
    for (const auto& [network, here] : by_network(local, reach)) {
        const auto found = theirs.find(network);
        if (found == theirs.end()) continue;
        const auto& there = found->second;
        for (std::size_t k = 0; k < std::max(here.size(), there.size()); ++k) {
            const std::size_t l = here[k % here.size()], r = there[k % there.size()];
            const unsigned paths = 1u << std::min({local[l].lmc + 0u, remote[r].lmc + 0u, kMaxLmc});
            ranked.emplace_back(k, l + r, network, PortPair{l, r, paths});
        }
    }
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
        return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) < std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
    });
    std::vector<PortPair> pairs;
    for (const auto& entry : ranked) pairs.push_back(std::get<3>(entry));
    return pairs;
}

// A datagram goes over any of the ports: the smallest MTU bounds it.
std::size_t room_for_rails(std::span<const PortRecord> local, std::span<const PortRecord> remote) noexcept {
    std::size_t most = kMaxRails;
    for (const auto& ports : {local, remote})
        for (const PortRecord& port : ports) most = std::min(most, most_rails(port.mtu));
    return most;
}

std::uint32_t distance_of(const PortRecord& port, std::span<const std::uint32_t> distances) {
    if (distances.empty()) return 0;
    return port.hca < distances.size() ? distances[port.hca] : *std::max_element(distances.begin(), distances.end());
}

}  // namespace

Limits agreed(Limits a, Limits b) noexcept {
    return {stricter(a.num_rails, b.num_rails), stricter(a.qps_per_port, b.qps_per_port), stricter(a.max_paths, b.max_paths)};
}

std::vector<PathChoice> choose_paths(std::span<const PortRecord> local, std::span<const PortRecord> remote, Limits limits) {
    // Where not all pairs are used, it is the owner's first ports that are, as for everybody else: a region's atomics meet at
    // one HCA.
    const bool takes_all = limits.num_rails == 0 || limits.num_rails >= local.size();
    const std::vector<PortPair> pairs = takes_all && are_same(local, remote) ? pair_with_themselves(local, remote) : pair_ports(local, remote);
    const std::size_t room = room_for_rails(local, remote);
    const std::size_t most = limits.num_rails == 0 ? room : std::min<std::size_t>(limits.num_rails, room);
    const unsigned most_paths = limits.max_paths == 0 ? 1u << kMaxLmc : limits.max_paths;
    std::vector<PathChoice> rails;
    if (pairs.empty()) return rails;
    for (std::uint16_t qp = 0; qp < std::max<std::uint16_t>(limits.qps_per_port, 1) && rails.size() < most; ++qp)
        for (unsigned bits = 0; bits < std::min(most_paths, 1u << kMaxLmc); ++bits)
            for (const PortPair& pair : pairs) {
                if (bits >= pair.paths || rails.size() == most) continue;
                const auto path_bits = static_cast<std::uint8_t>(bits);
                rails.push_back({static_cast<std::uint8_t>(pair.local), static_cast<std::uint8_t>(pair.remote), path_bits, path_bits, qp});
            }
    return rails;
}

std::vector<PathChoice> choose_paths(const PortList& local, const PortList& remote) {
    return choose_paths(local.ports, remote.ports, agreed(local.limits, remote.limits));
}

std::vector<PortRecord> by_preference(std::vector<PortRecord> ports, std::span<const std::uint32_t> distances, std::uint32_t local_rank) {
    const auto distance = [&](const PortRecord& p) { return distance_of(p, distances); };

    std::map<std::uint32_t, std::vector<std::uint8_t>> hcas_at;  // by distance, in order of number
    std::map<std::uint8_t, std::vector<std::uint8_t>> ports_of;  // their numbers, in order
    for (const PortRecord& p : ports) {
        if (ports_of[p.hca].empty()) hcas_at[distance(p)].push_back(p.hca);
        ports_of[p.hca].push_back(p.port);
    }
    for (auto& [at, hcas] : hcas_at) std::sort(hcas.begin(), hcas.end());
    for (auto& [hca, numbers] : ports_of) std::sort(numbers.begin(), numbers.end());

    const auto index_in = [](const std::vector<std::uint8_t>& list, std::uint8_t value) {
        return static_cast<std::size_t>(std::find(list.begin(), list.end(), value) - list.begin());
    };
    const auto key = [&](const PortRecord& p) {
        const auto& hcas = hcas_at[distance(p)];
        const std::size_t turn = (index_in(hcas, p.hca) + hcas.size() - local_rank % hcas.size()) % hcas.size();
        return std::tuple(distance(p), index_in(ports_of[p.hca], p.port), turn);
    };
    std::stable_sort(ports.begin(), ports.end(), [&](const PortRecord& a, const PortRecord& b) { return key(a) < key(b); });
    return ports;
}

std::size_t first_rail(std::span<const PortRecord> ports, std::span<const std::uint32_t> distances, std::uint32_t local_rank) {
    if (ports.empty()) return 0;
    std::set<std::uint8_t> near_hcas;
    std::size_t near_ports = 0;
    for (const PortRecord& p : ports) {
        if (distance_of(p, distances) != distance_of(ports[0], distances)) continue;
        near_hcas.insert(p.hca);
        ++near_ports;
    }
    const std::size_t path = local_rank / near_ports;  // its rails come behind those of the path before
    const std::size_t port = local_rank % near_ports / near_hcas.size() * near_hcas.size();
    return path * ports.size() + port;
}

}  // namespace coop::path

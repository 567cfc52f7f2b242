// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/pairing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "coop/path/datagram.h"
#include "coop/path/port_pairs.h"

namespace coop::path {
namespace {

// The stricter of two limits; 0 means no limit.
std::uint16_t stricter(std::uint16_t a, std::uint16_t b) noexcept { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// A datagram may use any of the ports, so the smallest MTU limits its size.
std::size_t room_for_rails(std::span<const PortRecord> local, std::span<const PortRecord> remote) noexcept {
    std::size_t most = kMaxConnectionRails;
    for (const auto& ports : {local, remote})
        for (const PortRecord& port : ports) most = std::min(most, most_rails(port.mtu));
    return most;
}

// The number of paths that the LMCs of both ports permit.
unsigned paths_between(const PortRecord& local, const PortRecord& remote) noexcept {
    return 1u << std::min({local.lmc + 0u, remote.lmc + 0u, kMaxLmc});
}

std::uint32_t distance_of(const PortRecord& port, const Nearness& nearness) {
    const auto& distances = nearness.distances;
    if (distances.empty()) return 0;
    return port.hca < distances.size() ? distances[port.hca] : *std::max_element(distances.begin(), distances.end());
}

// The rail with which the process begins, for std::rotate(). `order` is sorted, and the rails up to `end` are
// on near ports.
std::vector<std::size_t>::iterator beginning(std::vector<std::size_t>& order, std::vector<std::size_t>::iterator end,
                                             std::span<const PathChoice> rails, std::span<const PortRecord> ports,
                                             std::uint32_t rank) {
    std::map<std::uint8_t, std::vector<std::vector<std::size_t>::iterator>>
        rails_of;  // by port; each list in the sorted order
    std::set<std::uint8_t> hcas;
    for (auto rail = order.begin(); rail != end; ++rail) {
        rails_of[rails[*rail].local_port].push_back(rail);
        hcas.insert(ports[rails[*rail].local_port].hca);
    }
    const std::size_t turn = rank % rails_of.size() / hcas.size() * hcas.size();
    const auto& of_port = std::next(rails_of.begin(), static_cast<std::ptrdiff_t>(turn))->second;
    return of_port[rank / rails_of.size() % of_port.size()];
}

}  // namespace

Limits agreed(Limits a, Limits b) noexcept {
    return {.num_rails = stricter(a.num_rails, b.num_rails),
            .qps_per_port = std::min(a.qps_per_port, b.qps_per_port),
            .reads_apart = std::min(a.reads_apart, b.reads_apart),
            .max_paths = stricter(a.max_paths, b.max_paths)};
}

std::vector<PathChoice> choose_paths(std::span<const PortRecord> local, std::span<const PortRecord> remote,
                                     Limits limits) {
    const std::size_t room = room_for_rails(local, remote);
    const std::size_t most = limits.num_rails == 0 ? room : std::min<std::size_t>(limits.num_rails, room);
    const unsigned most_paths = limits.max_paths == 0 ? 1u << kMaxLmc : limits.max_paths;
    std::vector<PathChoice> rails;
    const std::vector<PortPair> pairs = pair_ports(local, remote, most);
    if (pairs.empty()) return rails;
    for (std::uint16_t qp = 0; qp < std::max<unsigned>(limits.qps_per_port, 1) && rails.size() < most; ++qp)
        for (unsigned bits = 0; bits < std::min(most_paths, 1u << kMaxLmc); ++bits)
            for (const PortPair& pair : pairs) {
                if (bits >= paths_between(local[pair.local], remote[pair.remote]) || rails.size() == most) continue;
                const auto path_bits = static_cast<std::uint8_t>(bits);
                rails.push_back({static_cast<std::uint8_t>(pair.local), static_cast<std::uint8_t>(pair.remote),
                                 path_bits, path_bits, qp});
            }
    if (limits.reads_apart == 0 || 2 * rails.size() > room) return rails;
    for (std::size_t i = 0, all = rails.size(); i < all; ++i) {
        PathChoice reads = rails[i];
        reads.qp |= kForReads;
        rails.push_back(reads);
    }
    return rails;
}

std::vector<PathChoice> choose_paths(const PortList& local, const PortList& remote) {
    return choose_paths(local.ports, remote.ports, agreed(local.limits, remote.limits));
}

namespace {

PortList of_one_partition(PortList list) {
    for (PortRecord& port : list.ports) port.pkey = kDefaultPkey;
    return list;
}

std::string member_text(std::uint16_t pkey) {
    return pkey_text(pkey) + (is_full_member(pkey) ? " (full member)" : " (limited member)");
}

}  // namespace

std::optional<std::string> partition_trouble(const PortList& local, const PortList& remote) {
    if (!choose_paths(local, remote).empty()) return std::nullopt;
    const std::vector<PathChoice> paths = choose_paths(of_one_partition(local), of_one_partition(remote));
    if (paths.empty()) return std::nullopt;
    const std::uint16_t here = local.ports[paths[0].local_port].pkey, there = remote.ports[paths[0].remote_port].pkey;
    const bool limited = partition_of(here) == partition_of(there);
    return "the P_Key here is " + member_text(here) + ", there " + member_text(there) +
           (limited ? ": two limited members of a partition cannot communicate" : ": these are different partitions");
}

std::vector<PortRecord> by_preference(std::vector<PortRecord> ports, const Nearness& nearness) {
    const auto distance = [&](const PortRecord& p) { return distance_of(p, nearness); };

    std::map<std::uint32_t, std::vector<std::uint8_t>> hcas_at;  // by distance, in ascending order
    std::map<std::uint8_t, std::vector<std::uint8_t>> ports_of;  // port numbers by HCA, in ascending order
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
        const std::size_t turn = (index_in(hcas, p.hca) + hcas.size() - nearness.rank % hcas.size()) % hcas.size();
        return std::tuple(distance(p), index_in(ports_of[p.hca], p.port), turn);
    };
    std::stable_sort(ports.begin(), ports.end(),
                     [&](const PortRecord& a, const PortRecord& b) { return key(a) < key(b); });
    return ports;
}

std::vector<std::size_t> order_of_use(std::span<const PathChoice> rails, std::span<const PortRecord> ports,
                                      const Nearness& nearness) {
    std::vector<std::size_t> order(rails.size());
    if (rails.empty()) return order;
    std::iota(order.begin(), order.end(), 0);
    const auto distance = [&](std::size_t rail) { return distance_of(ports[rails[rail].local_port], nearness); };
    const auto key = [&](std::size_t rail) {
        return std::tuple(distance(rail), rails[rail].qp, rails[rail].local_bits, rails[rail].local_port);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    const auto far = std::find_if(order.begin(), order.end(),
                                  [&](std::size_t rail) { return distance(rail) != distance(order.front()); });
    std::rotate(order.begin(), beginning(order, far, rails, ports, nearness.rank), far);
    return order;
}

}  // namespace coop::path

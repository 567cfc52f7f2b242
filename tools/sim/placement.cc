// SPDX-License-Identifier: BSD-3-Clause
#include "sim/placement.h"

#include "sim/random.h"

namespace coop::sim {

std::variant<std::vector<NodeIndex>, std::string> place(Mapping mapping, std::uint32_t ranks,
                                                        const std::vector<NodeIndex>& free, std::uint64_t seed,
                                                        std::uint32_t per_host) {
    if (ranks < 2) return std::to_string(ranks) + " ranks: a job has at least 2";
    const std::uint32_t needed = (ranks + per_host - 1) / per_host;
    if (needed > free.size())
        return std::to_string(ranks) + " ranks do not fit: " + std::to_string(free.size()) +
               " hosts are free, and each takes " + (per_host == 1 ? "one" : std::to_string(per_host));
    std::vector<NodeIndex> hosts = free;
    if (mapping == Mapping::kRandom) Random(seed).shuffle(hosts, needed);
    std::vector<NodeIndex> of_ranks(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) of_ranks[rank] = hosts[rank / per_host];
    return of_ranks;
}

}  // namespace coop::sim

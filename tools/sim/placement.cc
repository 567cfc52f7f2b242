// SPDX-License-Identifier: BSD-3-Clause
#include "sim/placement.h"

#include "sim/random.h"

namespace coop::sim {

std::variant<std::vector<NodeIndex>, std::string> place(Mapping mapping, std::uint32_t ranks,
                                                        const std::vector<NodeIndex>& free, std::uint64_t seed) {
    if (ranks < 2) return std::to_string(ranks) + " ranks: a job has at least 2";
    if (ranks > free.size())
        return std::to_string(ranks) + " ranks do not fit: " + std::to_string(free.size()) +
               " hosts are free, and each takes one";
    std::vector<NodeIndex> hosts = free;
    if (mapping == Mapping::kRandom) Random(seed).shuffle(hosts, ranks);
    hosts.resize(ranks);
    return hosts;
}

}  // namespace coop::sim

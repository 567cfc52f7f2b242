// SPDX-License-Identifier: BSD-3-Clause
// coll/nodes.h: ranks that share a node, and their order.
#include "coop/coll/nodes.h"

#include <gtest/gtest.h>

namespace coop::coll {
namespace {

using Ranks = std::vector<std::uint32_t>;

Ranks members(const Nodes& nodes, std::uint32_t node) {
    const auto some = nodes.members(node);
    return {some.begin(), some.end()};
}
Ranks order(const Nodes& nodes) {
    Ranks ranks;
    for (std::uint32_t i = 0; i < nodes.processes(); ++i) ranks.push_back(nodes.rank_at(i));
    return ranks;
}

TEST(CollNodes, consecutive_ranks_are_in_order) {
    const Nodes nodes(Ranks{0, 0, 0, 3, 4, 4});
    ASSERT_TRUE(nodes.is_valid());
    EXPECT_TRUE(nodes.is_in_order());
    EXPECT_EQ(nodes.count(), 3u);
    EXPECT_EQ(members(nodes, 0), (Ranks{0, 1, 2}));
    EXPECT_EQ(members(nodes, 1), (Ranks{3}));
    EXPECT_EQ(members(nodes, 2), (Ranks{4, 5}));
    EXPECT_EQ(nodes.begin_of(2), 4u);
    EXPECT_EQ(nodes.begin_of(3), 6u);
}

TEST(CollNodes, scattered_ranks_are_sorted_by_node) {
    const Nodes nodes(Ranks{0, 1, 0, 1, 4, 0});
    ASSERT_TRUE(nodes.is_valid());
    EXPECT_FALSE(nodes.is_in_order());
    EXPECT_EQ(order(nodes), (Ranks{0, 2, 5, 1, 3, 4}));
    EXPECT_EQ(nodes.node_of(3), 1u);
    EXPECT_EQ(nodes.leader(1), 1u);
    EXPECT_EQ(nodes.leader(2), 4u);
}

TEST(CollNodes, a_ring_goes_node_by_node) {
    const Nodes nodes(Ranks{0, 1, 0, 1, 4, 0});
    for (const std::uint32_t rank : order(nodes)) {
        const RingOrder ring = nodes.ring_order(rank);
        EXPECT_EQ(Ranks(ring.rank_at.begin(), ring.rank_at.end()), order(nodes));
        EXPECT_EQ(ring.rank_at[ring.position], rank);
    }
}

TEST(CollNodes, one_node_and_one_process_on_each_node) {
    EXPECT_EQ(Nodes(Ranks{0, 0, 0}).count(), 1u);
    EXPECT_TRUE(Nodes(Ranks{0, 0, 0}).is_in_order());
    EXPECT_EQ(Nodes(Ranks{0, 1, 2}).count(), 3u);
    EXPECT_TRUE(Nodes(Ranks{0, 1, 2}).is_in_order());
}

TEST(CollNodes, contradictions_are_found) {
    EXPECT_FALSE(Nodes(Ranks{0, 0, 1}).is_valid());  // 1 is no leader
    EXPECT_FALSE(Nodes(Ranks{1, 1}).is_valid());     // the leader is the first
    EXPECT_FALSE(Nodes(Ranks{0, 7}).is_valid());     // no such rank
}

}  // namespace
}  // namespace coop::coll

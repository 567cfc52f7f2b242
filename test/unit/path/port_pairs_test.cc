// SPDX-License-Identifier: BSD-3-Clause
//
// path/port_pairs.h: the pairs of ports of two processes.
#include "coop/path/port_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "coop/path/pairing.h"
#include "ports.h"

namespace coop::path {

// For gtest's messages.
static void PrintTo(const PortPair& pair, std::ostream* out) { *out << '{' << pair.local << '-' << pair.remote << '}'; }

namespace {

using test::ib_port;
using test::ipv4;
using test::roce_port;

constexpr unsigned kRandomSeed = 1123;

using Pairs = std::vector<PortPair>;
using Ports = std::vector<PortRecord>;

PortRecord with_rate(PortRecord port, std::uint32_t mbytes_per_s) {
    port.rate_mbytes_per_s = mbytes_per_s;
    return port;
}

// A node whose HCAs have these rates. `node` makes its addresses unique.
Ports node_of(const std::vector<std::uint32_t>& rates, std::uint16_t node = 1) {
    Ports ports;
    for (const std::uint32_t rate : rates)
        ports.push_back(with_rate(
            ib_port(static_cast<std::uint8_t>(ports.size()), static_cast<std::uint16_t>(100 * node + ports.size())),
            rate));
    return ports;
}

TEST(Site03Pairing, hcas_of_the_same_place_are_paired) {
    EXPECT_EQ(pair_ports(node_of({100, 100, 100}), node_of({100, 100, 100}, 2)), (Pairs{{0, 0}, {1, 1}, {2, 2}}));
}

TEST(Site03Pairing, equal_rates_meet_wherever_they_are) {
    EXPECT_EQ(pair_ports(node_of({250, 100}), node_of({100, 250}, 2)), (Pairs{{0, 1}, {1, 0}}));
    EXPECT_EQ(pair_ports(node_of({250, 250, 100}), node_of({250, 100, 250}, 2)), (Pairs{{0, 0}, {1, 2}, {2, 1}}));
}

TEST(Site03Pairing, three_rates_that_differ_on_each_side_fit_as_well_as_they_can) {
    // 400 has no partner of its own rate: it gets the highest one left.
    EXPECT_EQ(pair_ports(node_of({400, 100, 50}), node_of({50, 200, 100}, 2)), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
}

TEST(Site03Pairing, remaining_ports_go_to_the_ports_with_most_spare_rate) {
    EXPECT_EQ(pair_ports(node_of({100, 250}), node_of({100, 100, 100}, 2)), (Pairs{{0, 0}, {1, 1}, {1, 2}}));
    EXPECT_EQ(pair_ports(node_of({100, 100}), node_of({100, 100, 100, 100, 100}, 2)),
              (Pairs{{0, 0}, {1, 1}, {0, 2}, {1, 3}, {0, 4}}))
        << "in turns";
    EXPECT_EQ(pair_ports(node_of({100, 100, 100}), node_of({100, 100}, 2)), (Pairs{{0, 0}, {1, 1}, {2, 0}}));
}

TEST(Site03Pairing, only_ports_that_reach_each_other_are_paired) {
    const Ports a = {ib_port(0, 1, 0, 1), ib_port(1, 2, 0, 2)}, b = {ib_port(0, 3, 0, 2), ib_port(1, 4, 0, 3)};
    EXPECT_EQ(pair_ports(a, b), (Pairs{{1, 0}}));
    EXPECT_EQ(pair_ports(Ports{a[0]}, Ports{b[1]}), Pairs{});
    EXPECT_EQ(pair_ports({}, b), Pairs{});
}

// Numbers, positions and rates of the HCAs suggest another pairing than the networks.
TEST(Site03Pairing, networks_of_roce_are_kept_apart_whatever_the_rates) {
    const Ports a = {with_rate(roce_port(0, ipv4(10, 1, 0, 1)), 250), with_rate(roce_port(1, ipv4(10, 2, 0, 1)), 100)};
    const Ports b = {with_rate(roce_port(0, ipv4(10, 2, 0, 2)), 250), with_rate(roce_port(1, ipv4(10, 1, 0, 2)), 100)};
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 1}, {1, 0}}));
}

TEST(Site03Pairing, ports_of_an_hca_meet_their_own_numbers) {
    Ports a, b;
    for (Ports* node : {&a, &b})
        for (std::uint8_t hca : {0, 1})
            for (std::uint8_t number : {1, 2}) {
                node->push_back(ib_port(hca, static_cast<std::uint16_t>((node == &a ? 100 : 200) + 2 * hca + number)));
                node->back().port = number;
            }
    std::reverse(b.begin(), b.end());
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 3}, {1, 2}, {2, 1}, {3, 0}}));
}

// A process may open only some HCAs of its node: `hca` counts these, `position` counts all.
TEST(Site03Pairing, the_position_on_the_node_counts_and_not_among_the_opened_hcas) {
    Ports a = node_of({100, 100}), b = node_of({100, 100}, 2);
    b[0].position = 1;
    b[1].position = 2;
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 1}, {1, 0}}));
}

TEST(Site03Pairing, ports_of_one_node_are_paired_with_themselves) {
    const Ports ports = node_of({100, 250, 100});
    const Ports other = by_preference(ports, {{}, 1});
    ASSERT_NE(ports, other);
    const Pairs pairs = pair_ports(ports, other);
    ASSERT_EQ(pairs.size(), 3u);
    for (const PortPair& pair : pairs) EXPECT_EQ(ports[pair.local], other[pair.remote]);
}

TEST(Site03Pairing, planes_go_before_rates_and_places) {
    Ports a = node_of({250, 100}), b = node_of({250, 100}, 2);
    a[0].plane = b[1].plane = 7;
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 1}, {1, 0}}));
    b[1].plane = 8;
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 0}, {1, 1}})) << "no port there has plane 7";
    a[0].plane = a[1].plane = b[0].plane = b[1].plane = 3;
    EXPECT_EQ(pair_ports(a, b), (Pairs{{0, 0}, {1, 1}})) << "a single plane changes nothing";
}

// --- ranks and distances do not matter -----------------------------------------------------------------------------

// The pairs as GIDs.
std::vector<std::pair<Gid, Gid>> ends_of(const Ports& a, const Ports& b, std::size_t most = 0) {
    std::vector<std::pair<Gid, Gid>> ends;
    for (const PortPair& pair : pair_ports(a, b, most)) ends.emplace_back(a[pair.local].gid, b[pair.remote].gid);
    return ends;
}

TEST(Site03Pairing, local_ranks_and_distances_change_nothing) {
    const Ports a = node_of({250, 100, 100, 250}), b = node_of({100, 250, 50}, 2);
    const auto expected = ends_of(a, b);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        for (std::uint32_t other = 0; other < 4; ++other)
            for (const std::vector<std::uint32_t>& distances :
                 {std::vector<std::uint32_t>{}, {21, 10, 21, 10}, {10, 21, 32, 12}})
                EXPECT_EQ(ends_of(by_preference(a, {distances, rank}), by_preference(b, {distances, other})), expected)
                    << rank << ' ' << other;
}

// num_rails keeps the HCAs that a process would use first. They are the same for all its peers, so that the atomic
// operations of all peers on a region meet at one HCA.
TEST(Site03Pairing, where_pairs_are_left_out_each_process_keeps_its_near_hcas) {
    const Ports a = node_of({100, 100, 100, 100}), b = node_of({100, 100, 100, 100}, 2);
    for (const std::vector<std::uint32_t>& ours : {std::vector<std::uint32_t>{10, 10, 21, 21}, {21, 21, 10, 10}})
        for (const std::vector<std::uint32_t>& theirs : {std::vector<std::uint32_t>{10, 10, 21, 21}, {21, 21, 10, 10}})
            for (std::size_t most : {1u, 2u}) {
                const Ports here = by_preference(a, {ours, 1}), there = by_preference(b, {theirs, 0});
                const Pairs pairs = pair_ports(here, there, most);
                ASSERT_EQ(pairs.size(), most);
                for (const PortPair& pair : pairs) {
                    EXPECT_EQ(ours[here[pair.local].hca], 10u);
                    EXPECT_EQ(theirs[there[pair.remote].hca], 10u);
                    EXPECT_TRUE(ours != theirs || most != 2 || here[pair.local].hca == there[pair.remote].hca);
                }
            }
}

TEST(Site03Pairing, among_the_kept_ports_equal_rates_are_paired) {
    const Ports a = node_of({250, 100, 50}), b = node_of({100, 250, 50}, 2);
    EXPECT_EQ(pair_ports(a, b, 2), (Pairs{{0, 1}, {1, 0}}));
}

TEST(Site03Pairing, networks_that_the_first_ports_do_not_share_are_still_found) {
    const Ports a = {ib_port(0, 1, 0, 1), ib_port(1, 2, 0, 2)}, b = {ib_port(0, 3, 0, 2), ib_port(1, 4, 0, 1)};
    const Pairs one = pair_ports(a, b, 1), all = pair_ports(a, b);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(all.size(), 2u);
    EXPECT_NE(std::find(all.begin(), all.end(), one[0]), all.end());
}

// --- properties, for random nodes ----------------------------------------------------------------------------------

constexpr std::uint32_t kRates[] = {50, 100, 250, 400};

// In one network or several.
Ports random_node(std::mt19937& random, std::uint16_t node, unsigned networks) {
    Ports ports;
    for (std::uint8_t hca = 0; hca < random() % 6; ++hca)
        for (std::uint8_t number = 1; number <= 1 + random() % 2; ++number) {
            const auto lid = static_cast<std::uint16_t>(1000 * node + 8 * hca + number);
            ports.push_back(
                with_rate(ib_port(hca, lid, 0, static_cast<std::uint8_t>(random() % networks)), kRates[random() % 4]));
            ports.back().port = number;
            ports.back().position = static_cast<std::uint16_t>(hca + random() % 2);
            if (random() % 4 == 0) ports.back().plane = static_cast<std::uint16_t>(random() % 3);
            ports.back().ud_qpn = static_cast<std::uint32_t>(random() % 1000);
        }
    return ports;
}

Nearness random_nearness(std::mt19937& random) {
    Nearness nearness;
    for (unsigned i = 0; i < random() % 6; ++i) nearness.distances.push_back(10 + random() % 3);
    nearness.rank = static_cast<std::uint32_t>(random() % 9);
    return nearness;
}

class RandomNodes : public ::testing::Test {
protected:
    template <class Body>
    void each(unsigned networks, Body body) {
        std::mt19937 random(kRandomSeed);
        for (int round = 0; round < 3000; ++round) {
            SCOPED_TRACE("seed " + std::to_string(kRandomSeed) + " round " + std::to_string(round));
            const Ports a = random_node(random, 1, networks);
            const Ports b = random() % 8 == 0 ? a : random_node(random, random() % 4 == 0 ? 1 : 2, networks);
            body(random, a, b);
            if (HasFailure()) return;
        }
    }
};

using Site03RandomNodes = RandomNodes;

TEST_F(Site03RandomNodes, both_sides_pair_the_same_ports_in_the_same_order) {
    each(2, [](std::mt19937& random, const Ports& a, const Ports& b) {
        const Ports here = by_preference(a, random_nearness(random)), there = by_preference(b, random_nearness(random));
        const std::size_t most = random() % 5;
        Pairs theirs = pair_ports(there, here, most);
        for (PortPair& pair : theirs) std::swap(pair.local, pair.remote);
        EXPECT_EQ(pair_ports(here, there, most), theirs);
    });
}

TEST_F(Site03RandomNodes, ranks_and_distances_change_nothing) {
    each(2, [](std::mt19937& random, const Ports& a, const Ports& b) {
        EXPECT_EQ(ends_of(by_preference(a, random_nearness(random)), by_preference(b, random_nearness(random))),
                  ends_of(a, b));
    });
}

TEST_F(Site03RandomNodes, every_port_that_reaches_one_has_a_pair_and_no_pair_is_there_twice) {
    each(3, [](std::mt19937&, const Ports& a, const Ports& b) {
        const Pairs pairs = pair_ports(a, b);
        const auto reaches = [](const PortRecord& port, const Ports& others) {
            return std::any_of(others.begin(), others.end(),
                               [&](const PortRecord& other) { return reach_each_other(port, other); });
        };
        std::set<std::size_t> here, there;
        std::set<std::pair<std::size_t, std::size_t>> both;
        for (const PortPair& pair : pairs) {
            EXPECT_TRUE(reach_each_other(a[pair.local], b[pair.remote]));
            EXPECT_TRUE(both.emplace(pair.local, pair.remote).second);
            here.insert(pair.local);
            there.insert(pair.remote);
        }
        for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(here.count(i) == 1, reaches(a[i], b));
        for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(there.count(i) == 1, reaches(b[i], a));
    });
}

// The highest sum of the rates of pairs, over all ways to pair ports once.
std::uint64_t best_sum(const Ports& a, const Ports& b) {
    std::vector<std::size_t> to(std::max(a.size(), b.size()));
    std::iota(to.begin(), to.end(), 0);
    std::uint64_t best = 0;
    do {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (to[i] < b.size()) sum += std::min(a[i].rate_mbytes_per_s, b[to[i]].rate_mbytes_per_s);
        best = std::max(best, sum);
    } while (std::next_permutation(to.begin(), to.end()));
    return best;
}

TEST_F(Site03RandomNodes, no_way_to_pair_them_carries_more) {
    int rounds = 0;
    each(1, [&](std::mt19937&, Ports a, Ports b) {
        if (a.size() > 6 || b.size() > 6 || ++rounds > 300) return;
        for (Ports* node : {&a, &b})
            for (PortRecord& port : *node) port.plane = 0;
        std::uint64_t sum = 0;
        const Pairs pairs = pair_ports(a, b);
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
            sum += std::min(a[pairs[i].local].rate_mbytes_per_s, b[pairs[i].remote].rate_mbytes_per_s);
        EXPECT_EQ(sum, best_sum(a, b));
    });
    EXPECT_GT(rounds, 100);
}

}  // namespace
}  // namespace coop::path

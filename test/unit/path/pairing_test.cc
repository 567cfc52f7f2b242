// SPDX-License-Identifier: BSD-3-Clause
//
// path/pairing.h: the rails between two processes, and the order of ports. The pairs of ports are tested in
// port_pairs_test.cc.
#include "coop/path/pairing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "coop/path/datagram.h"
#include "ports.h"

namespace coop::path {

// For gtest's messages.
static void PrintTo(const PathChoice& p, std::ostream* out) {
    *out << '{' << +p.local_port << '-' << +p.remote_port << " bits " << +p.local_bits << '-' << +p.remote_bits
         << " qp " << p.qp << '}';
}

namespace {

using test::ib_port;
using test::ipv4;
using test::roce_port;

constexpr unsigned kRandomSeed = 2718;

using Rails = std::vector<PathChoice>;

// Two rails in separate networks, each with its own switch. The second process starts with its other rail.
TEST(Pairing, narrow_networks_of_roce_are_kept_apart_and_routed_only_if_none_is_in_common) {
    const auto port = [](std::uint8_t hca, const Gid& gid) {
        PortRecord made = roce_port(hca, gid);
        made.prefix_bits = 24;
        return made;
    };
    const std::vector<PortRecord> a = {port(0, ipv4(10, 1, 0, 1)), port(1, ipv4(10, 1, 1, 1))};
    const std::vector<PortRecord> b = {port(1, ipv4(10, 1, 1, 2)), port(0, ipv4(10, 1, 0, 2))};
    EXPECT_EQ(choose_paths(a, b, {}), (Rails{{0, 1, 0, 0, 0}, {1, 0, 0, 0, 0}}));
    const std::vector<PortRecord> far = {port(0, ipv4(10, 1, 8, 1)), port(1, ipv4(10, 1, 9, 1))};
    EXPECT_EQ(choose_paths(a, far, {}), (Rails{{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}}));
}

TEST(Pairing, paths_of_lmc_come_after_the_ports_and_queue_pairs_after_the_paths) {
    const std::vector<PortRecord> two = {ib_port(0, 2, 1), ib_port(1, 4, 1)};
    const Rails expected = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {0, 0, 1, 1, 0}, {1, 1, 1, 1, 0},
                            {0, 0, 0, 0, 1}, {1, 1, 0, 0, 1}, {0, 0, 1, 1, 1}, {1, 1, 1, 1, 1}};
    EXPECT_EQ(choose_paths(two, two, {.qps_per_port = 2}), expected);
}

TEST(Pairing, queue_pairs_for_reads_come_last_if_all_of_them_fit) {
    const std::vector<PortRecord> two = {ib_port(0, 2, 0), ib_port(1, 4, 0)};
    const Rails expected = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {0, 0, 0, 0, kForReads}, {1, 1, 0, 0, kForReads}};
    EXPECT_EQ(choose_paths(two, two, {.reads_apart = 1}), expected);
    EXPECT_TRUE(expected[3].is_for_reads());
    EXPECT_FALSE(expected[1].is_for_reads());
    const std::vector<PortRecord> many = {ib_port(0, 128, 5), ib_port(1, 256, 5)};
    EXPECT_EQ(choose_paths(many, many, {.num_rails = 20, .reads_apart = 1}).size(), 40u);
    EXPECT_EQ(choose_paths(many, many, {.num_rails = 33, .reads_apart = 1}).size(), 33u);
}

TEST(Pairing, smaller_lmc_bounds_the_paths) {
    EXPECT_EQ(choose_paths(std::vector{ib_port(0, 4, 2)}, std::vector{ib_port(0, 8, 1)}, {}).size(), 2u);
    EXPECT_EQ(choose_paths(std::vector{ib_port(0, 4, 2)}, std::vector{ib_port(0, 8, 0)}, {}).size(), 1u);
}

TEST(Pairing, limits_bound_rails_and_paths) {
    const std::vector<PortRecord> two = {ib_port(0, 4, 2), ib_port(1, 8, 2)};
    EXPECT_EQ(choose_paths(two, two, {}).size(), 8u);
    EXPECT_EQ(choose_paths(two, two, {.max_paths = 1}).size(), 2u);
    EXPECT_EQ(choose_paths(two, two, {.max_paths = 3}).size(), 6u);
    EXPECT_EQ(choose_paths(two, two, {.num_rails = 2}), (Rails{{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}}));
    EXPECT_EQ(choose_paths(two, two, {.num_rails = 3, .max_paths = 3}).size(), 3u);
}

TEST(Pairing, stricter_limit_of_two_processes_holds) {
    EXPECT_EQ(agreed({0, 2, 0, 0}, {3, 1, 1, 4}), (Limits{3, 1, 0, 4}));
    EXPECT_EQ(agreed({5, 2, 1, 1}, {3, 4, 1, 4}), (Limits{3, 2, 1, 1}));
    EXPECT_EQ(agreed({0, 1, 1, 0}, {0, 1, 0, 0}), (Limits{0, 1, 0, 0}));
    const PortList a{{.num_rails = 1}, {ib_port(0, 4, 2)}}, b{{.qps_per_port = 3}, {ib_port(0, 8, 2)}};
    EXPECT_EQ(choose_paths(a, b).size(), 1u);
    EXPECT_EQ(choose_paths(b, a).size(), 1u);
}

TEST(Pairing, rails_fit_into_a_datagram) {
    PortRecord small = ib_port(0, 128, 7);
    EXPECT_EQ(choose_paths(std::vector{small}, std::vector{small}, {}).size(), kMaxConnectionRails);
    small.mtu = 1;
    EXPECT_EQ(choose_paths(std::vector{small}, std::vector{ib_port(0, 256, 7)}, {}).size(), most_rails(1));
}

// --- properties, for random sets of ports ---------------------------------------------------------------------------

std::vector<PortRecord> random_ports(std::mt19937& random) {
    std::vector<PortRecord> ports;
    const std::size_t count = random() % 9;
    for (std::size_t i = 0; i < count; ++i) {
        const auto hca = static_cast<std::uint8_t>(random() % 5);
        const auto where = static_cast<std::uint8_t>(random() % 3);
        if (random() % 4 == 0) {
            ports.push_back(roce_port(hca, ipv4(10, 0, where, 1), static_cast<std::uint8_t>(1 + random() % 2)));
            ports.back().prefix_bits = static_cast<std::uint8_t>(random() % 4 * 8);  // 0: unknown
        } else ports.push_back(ib_port(hca, 128, static_cast<std::uint8_t>(random() % 4), where));
        constexpr std::uint16_t kKeys[] = {kDefaultPkey, kDefaultPkey, 0x8001, 0x0001};
        ports.back().pkey = kKeys[random() % 4];
        ports.back().crosses_subnets = static_cast<std::uint8_t>(random() % 2);
        ports.back().mtu = static_cast<std::uint8_t>(random() % 8 == 0 ? 1 : 3 + random() % 3);
    }
    return ports;
}

Limits random_limits(std::mt19937& random) {
    return {static_cast<std::uint16_t>(random() % 7), static_cast<std::uint8_t>(1 + random() % 3),
            static_cast<std::uint8_t>(random() % 2), static_cast<std::uint16_t>(random() % 5)};
}

class RandomPorts : public ::testing::Test {
protected:
    template <class Body>
    void each(Body body) {
        std::mt19937 random(kRandomSeed);
        for (int round = 0; round < 3000; ++round) {
            SCOPED_TRACE("seed " + std::to_string(kRandomSeed) + " round " + std::to_string(round));
            const PortList a{random_limits(random), random_ports(random)},
                b{random_limits(random), random_ports(random)};
            body(a, b);
            if (HasFailure()) return;
        }
    }
};

TEST_F(RandomPorts, both_sides_compute_mirrored_lists) {
    each([](const PortList& a, const PortList& b) {
        Rails theirs = choose_paths(b, a);
        std::transform(theirs.begin(), theirs.end(), theirs.begin(), mirrored);
        EXPECT_EQ(choose_paths(a, b), theirs);
    });
}

TEST_F(RandomPorts, every_rail_is_possible_and_there_once) {
    each([](const PortList& a, const PortList& b) {
        std::set<std::tuple<int, int, int, int>> seen;
        for (const PathChoice& rail : choose_paths(a, b)) {
            ASSERT_LT(rail.local_port, a.ports.size());
            ASSERT_LT(rail.remote_port, b.ports.size());
            const PortRecord &here = a.ports[rail.local_port], &there = b.ports[rail.remote_port];
            EXPECT_TRUE(reach_each_other(here, there, reach_between(a.ports, b.ports)));
            EXPECT_LT(rail.local_bits, 1 << here.lmc);
            EXPECT_LT(rail.remote_bits, 1 << there.lmc);
            EXPECT_TRUE(seen.emplace(rail.local_port, rail.remote_port, rail.local_bits, rail.qp).second);
        }
    });
}

TEST_F(RandomPorts, every_port_that_reaches_one_is_used_unless_rails_are_limited) {
    each([](const PortList& a, const PortList& b) {
        const Rails rails = choose_paths(a.ports, b.ports, {.qps_per_port = 1, .max_paths = 1});
        for (std::size_t i = 0; i < a.ports.size(); ++i) {
            const auto reached = [&](const PortRecord& p) {
                return reach_each_other(a.ports[i], p, reach_between(a.ports, b.ports));
            };
            const bool used = std::any_of(rails.begin(), rails.end(),
                                          [&](const PathChoice& rail) { return rail.local_port == i; });
            // A limited member yields to a full one if the other side has limited members.
            if (!used && !is_full_member(a.ports[i].pkey)) continue;
            EXPECT_EQ(used, std::any_of(b.ports.begin(), b.ports.end(), reached)) << "port " << i;
        }
    });
}

TEST_F(RandomPorts, the_rails_are_as_many_as_allowed) {
    each([](const PortList& a, const PortList& b) {
        Limits limits = agreed(a.limits, b.limits);
        const auto rails = [&] {
            return std::ranges::count(choose_paths(a.ports, b.ports, limits), false, &PathChoice::is_for_reads);
        };
        const std::ptrdiff_t some = rails(), most = std::exchange(limits.num_rails, std::uint16_t{0}), all = rails();
        EXPECT_EQ(some, most == 0 ? all : std::min(most, all));
    });
}

// --- the order of ports --------------------------------------------------------------------------------------------

PortRecord port_of(std::uint8_t hca, std::uint8_t number) {
    PortRecord port = ib_port(hca, static_cast<std::uint16_t>(1 + 2 * hca + number));
    port.port = number;
    return port;
}

std::vector<std::pair<int, int>> order(const std::vector<PortRecord>& ports, std::vector<std::uint32_t> distances,
                                       std::uint32_t local_rank) {
    std::vector<std::pair<int, int>> names;
    for (const PortRecord& p : by_preference(ports, {distances, local_rank})) names.emplace_back(p.hca, p.port);
    return names;
}

using Names = std::vector<std::pair<int, int>>;

TEST(Preference, nearest_hca_comes_first) {
    const std::vector<PortRecord> ports = {port_of(0, 1), port_of(1, 1), port_of(2, 1)};
    EXPECT_EQ(order(ports, {30, 10, 20}, 0), (Names{{1, 1}, {2, 1}, {0, 1}}));
    EXPECT_EQ(order(ports, {30, 10, 20}, 5), (Names{{1, 1}, {2, 1}, {0, 1}}));
}

TEST(Preference, processes_of_a_node_start_with_different_ones_of_equally_near_hcas) {
    const std::vector<PortRecord> ports = {port_of(0, 1), port_of(1, 1), port_of(2, 1)};
    EXPECT_EQ(order(ports, {10, 10, 20}, 0), (Names{{0, 1}, {1, 1}, {2, 1}}));
    EXPECT_EQ(order(ports, {10, 10, 20}, 1), (Names{{1, 1}, {0, 1}, {2, 1}}));
    EXPECT_EQ(order(ports, {10, 10, 20}, 2), (Names{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(Preference, first_ports_of_equally_near_hcas_come_before_second_ports) {
    const std::vector<PortRecord> ports = {port_of(0, 1), port_of(0, 2), port_of(1, 1), port_of(1, 2)};
    EXPECT_EQ(order(ports, {1, 1}, 0), (Names{{0, 1}, {1, 1}, {0, 2}, {1, 2}}));
    EXPECT_EQ(order(ports, {1, 1}, 1), (Names{{1, 1}, {0, 1}, {1, 2}, {0, 2}}));
    EXPECT_EQ(order(ports, {1, 2}, 0), (Names{{0, 1}, {0, 2}, {1, 1}, {1, 2}}));
}

TEST(Preference, hca_without_a_distance_is_as_far_as_the_farthest) {
    const std::vector<PortRecord> ports = {port_of(2, 1), port_of(0, 1), port_of(1, 1)};
    EXPECT_EQ(order(ports, {9, 3}, 0), (Names{{1, 1}, {0, 1}, {2, 1}}));
    EXPECT_EQ(order(ports, {}, 0), (Names{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(Preference, nothing_is_lost) {
    std::mt19937 random(kRandomSeed);
    for (int round = 0; round < 500; ++round) {
        const auto ports = random_ports(random);
        const std::vector<std::uint32_t> distances = {round % 2u, round / 2 % 3u, round / 6 % 2u};
        const auto sorted = by_preference(ports, {distances, static_cast<std::uint32_t>(round)});
        EXPECT_TRUE(std::is_permutation(ports.begin(), ports.end(), sorted.begin(), sorted.end()))
            << "seed " << kRandomSeed << " round " << round;
    }
}

// HCA, port and path bits of a rail.
std::tuple<int, int, int> end_of(const PathChoice& rail, const std::vector<PortRecord>& ports) {
    return {ports[rail.local_port].hca, ports[rail.local_port].port, rail.local_bits};
}

// The first rails of the processes of a node, to a peer on another node with the same ports.
std::set<std::tuple<int, int, int>> first_rails(const std::vector<PortRecord>& ports,
                                                const std::vector<std::uint32_t>& distances, std::uint32_t processes) {
    std::vector<PortRecord> theirs = ports;
    for (PortRecord& port : theirs) port.gid[14] ^= 0x80;
    std::set<std::tuple<int, int, int>> used;
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        const Nearness nearness{distances, rank};
        const auto own = by_preference(ports, nearness);
        const auto rails = choose_paths(own, theirs, {});
        used.insert(end_of(rails[order_of_use(rails, own, nearness).front()], own));
    }
    return used;
}

TEST(FirstRail, processes_of_a_node_have_different_ones_as_long_as_there_are_rails) {
    const std::vector<PortRecord> two_hcas = {ib_port(0, 1), ib_port(1, 2)};
    EXPECT_EQ(first_rails(two_hcas, {}, 2).size(), 2u);
    const std::vector<PortRecord> with_lmc = {ib_port(0, 4, 1), ib_port(1, 8, 1)};
    EXPECT_EQ(first_rails(with_lmc, {}, 2).size(), 2u);
    EXPECT_EQ(first_rails(with_lmc, {}, 4).size(), 4u);
    const std::vector<PortRecord> one_hca_with_paths = {ib_port(0, 4, 2)};
    EXPECT_EQ(first_rails(one_hca_with_paths, {}, 4).size(), 4u);
}

TEST(FirstRail, is_on_an_hca_that_is_near) {
    const std::vector<PortRecord> ports = {ib_port(0, 4, 1), ib_port(1, 8, 1), ib_port(2, 12, 1), ib_port(3, 16, 1)};
    const std::vector<std::uint32_t> distances = {21, 10, 21, 10};
    const auto used = first_rails(ports, distances, 4);
    EXPECT_EQ(used, (std::set<std::tuple<int, int, int>>{{1, 1, 0}, {3, 1, 0}, {1, 1, 1}, {3, 1, 1}}));
}

TEST(FirstRail, second_ports_follow_the_first_ones) {
    std::vector<PortRecord> ports = {ib_port(0, 1), ib_port(0, 2), ib_port(1, 3), ib_port(1, 4)};
    ports[1].port = ports[3].port = 2;
    EXPECT_EQ(first_rails(ports, {}, 4).size(), 4u);
    EXPECT_TRUE(order_of_use({}, {}, {}).empty());
}

TEST(OrderOfUse, near_hcas_come_before_far_ones) {
    const std::vector<PortRecord> ports = {ib_port(0, 4), ib_port(1, 8), ib_port(2, 12), ib_port(3, 16)};
    const Nearness nearness{{21, 10, 21, 10}, 1};
    const auto own = by_preference(ports, nearness);
    const auto rails = choose_paths(own, ports, {});
    std::vector<int> hcas;
    for (const std::size_t rail : order_of_use(rails, own, nearness)) hcas.push_back(own[rails[rail].local_port].hca);
    EXPECT_EQ(hcas, (std::vector<int>{3, 1, 2, 0}));
}

TEST_F(RandomPorts, every_rail_has_its_place_in_the_order_of_use) {
    std::uint32_t rank = 0;
    each([&](const PortList& a, const PortList& b) {
        const Nearness nearness{{rank % 3, rank / 3 % 2, 1}, rank};
        ++rank;
        const auto own = by_preference(a.ports, nearness);
        const auto rails = choose_paths(own, b.ports, agreed(a.limits, b.limits));
        std::vector<std::size_t> order = order_of_use(rails, own, nearness);
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
        EXPECT_EQ(order.size(), rails.size());
    });
}

}  // namespace
}  // namespace coop::path

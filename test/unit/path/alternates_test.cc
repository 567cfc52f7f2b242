// SPDX-License-Identifier: BSD-3-Clause
//
// path/alternates.h: which alternate paths a rail has, and that both sides find the same ones.
#include "coop/path/alternates.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "ports.h"

namespace coop::path {
namespace {

using Ports = std::vector<PortRecord>;

PortRecord port_of(std::uint8_t hca, std::uint8_t number, std::uint8_t lmc = 0, Apm apm = Apm::kAuto) {
    PortRecord port = test::ib_port(hca, static_cast<std::uint16_t>(256 * (hca + 1) + 128 * (number - 1)), lmc);
    port.port = number;
    port.apm = static_cast<std::uint8_t>(apm);
    port.migrates = 1;
    return port;
}

void want(Ports& ports, Apm apm) {
    for (PortRecord& port : ports) port.apm = static_cast<std::uint8_t>(apm);
}

std::vector<unsigned> bits_of(const Ring& ring) {
    std::vector<unsigned> bits;
    for (const PathChoice& path : ring.paths) {
        EXPECT_EQ(path.local_bits, path.remote_bits);
        bits.push_back(path.local_bits);
    }
    return bits;
}

TEST(Alternates, are_the_other_lids_of_the_ports) {
    const Ports ports = {port_of(0, 1, 2, Apm::kLmc)};
    EXPECT_EQ(bits_of(ring_of({0, 0, 0, 0, 0}, ports, ports)), (std::vector{0u, 1u, 2u, 3u}));
    EXPECT_EQ(bits_of(ring_of({0, 0, 2, 2, 0}, ports, ports)), (std::vector{2u, 3u, 0u, 1u}));
}

TEST(Alternates, use_only_as_many_lids_as_both_ports_have) {
    const Ports many = {port_of(0, 1, 3, Apm::kLmc)}, few = {port_of(0, 1, 1, Apm::kLmc)};
    EXPECT_EQ(bits_of(ring_of({0, 0, 1, 1, 0}, many, few)), (std::vector{1u, 0u}));
}

TEST(Alternates, are_other_ports_of_the_same_hcas) {
    const Ports local = {port_of(0, 1), port_of(1, 1), port_of(1, 2), port_of(0, 2)};
    const Ports remote = {port_of(0, 2), port_of(0, 1)};
    const Ring ring = ring_of({0, 1, 0, 0, 0}, local, remote);
    EXPECT_EQ(ring.paths, (std::vector<PathChoice>{{0, 1, 0, 0, 0}, {3, 0, 0, 0, 0}}));
    EXPECT_EQ(ring.why, NoAlternate::kNone);
}

TEST(Alternates, keep_the_kind_of_queue_pair) {
    const Ports ports = {port_of(0, 1), port_of(0, 2)};
    for (const PathChoice& path : ring_of({0, 0, 0, 0, kForReads | 1}, ports, ports).paths)
        EXPECT_EQ(path.qp, kForReads | 1);
}

TEST(Alternates, are_another_port_rather_than_another_lid_if_both_are_possible) {
    Ports ports = {port_of(0, 1, 1), port_of(0, 2, 1)};
    EXPECT_EQ(ring_of({0, 0, 1, 1, 0}, ports, ports).paths,
              (std::vector<PathChoice>{{0, 0, 1, 1, 0}, {1, 1, 1, 1, 0}}));
    want(ports, Apm::kLmc);
    EXPECT_EQ(ring_of({0, 0, 1, 1, 0}, ports, ports).paths,
              (std::vector<PathChoice>{{0, 0, 1, 1, 0}, {0, 0, 0, 0, 0}}));
}

TEST(Alternates, are_another_lid_if_one_side_has_no_other_port) {
    Ports two = {port_of(0, 1, 1), port_of(0, 2, 1)}, one = {port_of(0, 1, 1)};
    EXPECT_EQ(bits_of(ring_of({0, 0, 0, 0, 0}, two, one)), (std::vector{0u, 1u}));
    EXPECT_EQ(bits_of(ring_of({0, 0, 0, 0, 0}, one, two)), (std::vector{0u, 1u}));
    want(two, Apm::kPort);
    EXPECT_EQ(ring_of({0, 0, 0, 0, 0}, two, one).why, NoAlternate::kNoPort);
}

TEST(Alternates, are_no_ports_that_do_not_reach_each_other) {
    Ports local = {port_of(0, 1), port_of(0, 2)}, remote = local;
    local[1].gid[7] = 9;  // another subnet
    EXPECT_EQ(ring_of({0, 0, 0, 0, 0}, local, remote).why, NoAlternate::kNoPath);
    local = remote;
    local[1].pkey = remote[1].pkey = 0x7fff;  // two limited members
    EXPECT_EQ(ring_of({0, 0, 0, 0, 0}, local, remote).why, NoAlternate::kNoPath);
}

TEST(Alternates, have_the_mtu_of_the_rail) {
    Ports local = {port_of(0, 1), port_of(0, 2)}, remote = local;
    remote[1].mtu = 4;
    EXPECT_EQ(ring_of({0, 0, 0, 0, 0}, local, remote).why, NoAlternate::kNoPath);
    remote[0].mtu = 4;
    EXPECT_TRUE(ring_of({0, 0, 0, 0, 0}, local, remote).has_alternate());
}

TEST(Alternates, say_why_there_are_none) {
    const auto why = [](auto change) {
        Ports local = {port_of(0, 1, 1)}, remote = local;
        change(local[0], remote[0]);
        const Ring ring = ring_of({0, 0, 0, 0, 0}, local, remote);
        EXPECT_EQ(ring.paths.size(), ring.why == NoAlternate::kNone ? 2u : 1u);
        return ring.why;
    };
    const auto set = [](PortRecord& port, Apm apm) { port.apm = static_cast<std::uint8_t>(apm); };
    EXPECT_EQ(why([](auto&, auto&) {}), NoAlternate::kNone);
    EXPECT_EQ(why([&](auto& here, auto&) { set(here, Apm::kOff); }), NoAlternate::kOff);
    EXPECT_EQ(why([&](auto&, auto& there) { set(there, Apm::kOff); }), NoAlternate::kPeerOff);
    EXPECT_EQ(why([&](auto& here, auto& there) { set(here, Apm::kLmc), set(there, Apm::kPort); }),
              NoAlternate::kPeerDiffers);
    EXPECT_EQ(why([](auto& here, auto&) { here.migrates = 0; }), NoAlternate::kHcaCannot);
    EXPECT_EQ(why([](auto&, auto& there) { there.migrates = 0; }), NoAlternate::kPeerCannot);
    EXPECT_EQ(why([](auto& here, auto& there) { here.link_layer = there.link_layer = LinkLayer::kEthernet; }),
              NoAlternate::kRoce);
    EXPECT_EQ(why([](auto& here, auto&) { here.lmc = 0; }), NoAlternate::kNoPath);
    EXPECT_EQ(why([&](auto& here, auto&) { here.lmc = 0, set(here, Apm::kLmc); }), NoAlternate::kNoLid);
    EXPECT_EQ(why([&](auto& here, auto&) { set(here, Apm::kPort); }), NoAlternate::kNoPort);
}

TEST(Alternates, have_a_different_text_for_each_reason) {
    std::set<std::string> texts;
    for (std::size_t i = 0; i < kNoAlternates; ++i) texts.insert(describe(static_cast<NoAlternate>(i)));
    EXPECT_EQ(texts.size(), kNoAlternates);
    EXPECT_EQ(texts.count("?"), 0u);
}

TEST(Alternates, of_different_wishes_are_what_both_want) {
    for (const Apm a : {Apm::kOff, Apm::kLmc, Apm::kPort, Apm::kAuto})
        for (const Apm b : {Apm::kOff, Apm::kLmc, Apm::kPort, Apm::kAuto}) {
            EXPECT_EQ(agreed(a, b).mode, agreed(b, a).mode);
            const bool fit = a != Apm::kOff && b != Apm::kOff && (a == b || a == Apm::kAuto || b == Apm::kAuto);
            EXPECT_EQ(agreed(a, b).mode != Apm::kOff, fit);
            EXPECT_EQ(agreed(a, b).why == NoAlternate::kNone, fit);
            EXPECT_EQ(agreed(a, Apm::kAuto).mode, a);
        }
}

TEST(Alternates, are_the_same_at_both_sides) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        Ports sides[2];
        for (Ports& ports : sides)
            for (std::uint8_t hca = 0; hca < 1 + random() % 2; ++hca)
                for (std::uint8_t number = 1; number <= 4; ++number) {
                    if (number > 1 && random() % 3 == 0) continue;
                    ports.push_back(port_of(hca, number, static_cast<std::uint8_t>(random() % 3),
                                            static_cast<Apm>(1 + random() % 3)));
                    ports.back().gid[7] = static_cast<std::uint8_t>(random() % 8 == 0);
                    ports.back().mtu = static_cast<std::uint8_t>(4 + random() % 2);
                }
        for (Ports& ports : sides) std::shuffle(ports.begin(), ports.end(), random);
        for (const PathChoice& rail : choose_paths(sides[0], sides[1], {})) {
            const Ring ours = ring_of(rail, sides[0], sides[1]), theirs = ring_of(mirrored(rail), sides[1], sides[0]);
            ASSERT_EQ(ours.paths.size(), theirs.paths.size());
            EXPECT_EQ(ours.paths.front(), rail);
            for (std::size_t i = 0; i < ours.paths.size(); ++i) {
                EXPECT_EQ(ours.paths[i], mirrored(theirs.paths[i]));
                for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(ours.paths[i] == ours.paths[j]);
            }
        }
    }
}

}  // namespace
}  // namespace coop::path

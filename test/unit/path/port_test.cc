// SPDX-License-Identifier: BSD-3-Clause
//
// path/port.h: the wire form of a list of ports, the detection of damage, and which ports reach each other.
#include "coop/path/port.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ports.h"

namespace coop::path {
namespace {

using test::ib_port;
using test::ipv4;
using test::roce_port;

constexpr unsigned kRandomSeed = 1618;

PortList two_ports() {
    return {{.num_rails = 4, .qps_per_port = 2, .reads_apart = 1, .max_paths = 0},
            {ib_port(0, 8, 2), roce_port(1, ipv4(10, 1, 0, 3))}};
}

std::string wrong(const std::vector<std::byte>& bytes) {
    const Unpacked result = unpack(bytes);
    return std::holds_alternative<std::string>(result) ? std::get<std::string>(result) : "";
}

// Packs a changed list with a correct check word. Returns the complaint of unpack(), or "".
template <class Change>
std::string wrong_with(Change change) {
    PortList list = two_ports();
    change(list);
    return wrong(pack(list));
}

TEST(Port, list_arrives_as_it_was_packed) {
    const Unpacked result = unpack(pack(two_ports()));
    ASSERT_TRUE(std::holds_alternative<PortList>(result));
    EXPECT_EQ(std::get<PortList>(result), two_ports());
}

TEST(Port, empty_list_arrives) { EXPECT_EQ(wrong(pack({})), ""); }

TEST(Port, no_more_than_the_most_ports_are_packed) {
    const PortList list{{}, std::vector<PortRecord>(kMaxPorts + 3, ib_port(0, 8))};
    const Unpacked result = unpack(pack(list));
    ASSERT_TRUE(std::holds_alternative<PortList>(result));
    EXPECT_EQ(std::get<PortList>(result).ports.size(), kMaxPorts);
}

TEST(Port, other_length_or_version_or_magic_is_named) {
    auto bytes = pack(two_ports());
    bytes.pop_back();
    EXPECT_EQ(wrong(bytes), "list of ports: length in bytes is 119, expected 120");
    bytes = pack(two_ports());
    bytes[4] = std::byte{9};
    EXPECT_EQ(wrong(bytes), "list of ports: version is 9, expected 5");
    bytes[0] = std::byte{0};
    EXPECT_NE(wrong(bytes).find("magic number"), std::string::npos);
    EXPECT_NE(wrong({}).find("length"), std::string::npos);
}

// A transport has as many keys of each region of memory as it can handle HCAs.
TEST(Port, an_hca_beyond_the_most_of_the_transport_is_named) {
    PortList list = two_ports();
    list.ports[1].hca = 8;
    EXPECT_EQ(wrong(pack(list)), "");
    EXPECT_EQ(std::get<std::string>(unpack(pack(list), 8)), "list of ports: HCA is 8, expected 0..7");
    list.ports[1].hca = 7;
    EXPECT_TRUE(std::holds_alternative<PortList>(unpack(pack(list), 8)));
}

TEST(Port, each_field_out_of_bounds_is_named) {
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].mtu = 6; }).find("MTU code is 6, expected 1..5"),
              std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].mtu = 0; }).find("MTU"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].lmc = 8; }).find("LMC"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].lid = 0; }).find("LID"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].lid = 9; }).find("part that the LMC takes"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].lid = 0xC000; }).find("LID"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].roce = 1; }).find("RoCE"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].apm = 4; }).find("alternate paths is 4"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].migrates = 2; }).find("path migration"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].roce = 0; }).find("RoCE"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].lmc = 1; }).find("LMC"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].link_layer = LinkLayer{3}; }).find("link layer"),
              std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].port = 0; }).find("port number"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].hca = 200; }).find("HCA"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].has_srq = 2; }).find("SRQ"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].ud_qpn = 1u << 24; }).find("UD queue pair"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].prefix_bits = 1; }).find("prefix"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[1].prefix_bits = 33; }).find("prefix"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) {
                  l.ports[0].pkey = 0x8000;
              }).find("partition of the P_Key is 0, expected 1..32767"),
              std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].needs_grh = 2; }).find("needs a global routing header"),
              std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.ports[0].crosses_subnets = 2; }).find("crosses subnets"),
              std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.limits.qps_per_port = 0; }).find("queue pairs"), std::string::npos);
    EXPECT_NE(wrong_with([](PortList& l) { l.limits.reads_apart = 2; }).find("queue pairs for reads"),
              std::string::npos);
}

TEST(Port, every_flipped_bit_is_seen) {
    const auto whole = pack(two_ports());
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        auto bytes = whole;
        bytes[bit / 8] ^= std::byte{static_cast<unsigned char>(1u << bit % 8)};
        EXPECT_NE(wrong(bytes), "") << "bit " << bit;
    }
}

TEST(Port, noise_is_refused) {
    std::mt19937 random(kRandomSeed);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> bytes(random() % 1400);
        for (auto& b : bytes) b = std::byte{static_cast<unsigned char>(random())};
        if (bytes.size() >= 6 && round % 2 == 0) {
            const std::uint32_t magic = kListMagic;
            const std::uint16_t version = kPortVersion;
            std::memcpy(bytes.data(), &magic, 4);
            std::memcpy(bytes.data() + 4, &version, 2);
        }
        EXPECT_NE(wrong(bytes), "") << "seed " << kRandomSeed << " round " << round;
    }
}

TEST(Port, of_one_subnet_reach_each_other) {
    EXPECT_TRUE(reach_each_other(ib_port(0, 8), ib_port(1, 9)));
    EXPECT_FALSE(reach_each_other(ib_port(0, 8, 0, 1), ib_port(0, 9, 0, 2)));
    EXPECT_FALSE(reach_each_other(ib_port(0, 8), roce_port(0, ib_port(0, 8).gid)));
}

TEST(Port, of_one_network_and_version_of_roce_reach_each_other) {
    const Gid link_local = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 2, 3, 4, 5, 6, 7, 8};
    const Gid other_link_local = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 2, 3, 4, 5, 6, 7, 9};
    const Gid global = {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const Gid other_global = {0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    EXPECT_TRUE(reach_each_other(roce_port(0, ipv4(10, 1, 0, 1)), roce_port(1, ipv4(10, 1, 7, 2))));
    EXPECT_FALSE(reach_each_other(roce_port(0, ipv4(10, 1, 0, 1)), roce_port(0, ipv4(10, 2, 0, 1))));
    EXPECT_FALSE(reach_each_other(roce_port(0, ipv4(10, 1, 0, 1), 1), roce_port(0, ipv4(10, 1, 0, 2), 2)));
    EXPECT_TRUE(reach_each_other(roce_port(0, link_local), roce_port(0, other_link_local)));
    EXPECT_FALSE(reach_each_other(roce_port(0, link_local), roce_port(0, global)));
    EXPECT_FALSE(reach_each_other(roce_port(0, global), roce_port(0, other_global)));
}

PortRecord in_network(const Gid& gid, std::uint8_t prefix_bits, std::uint8_t version = 2) {
    PortRecord port = roce_port(0, gid, version);
    port.prefix_bits = prefix_bits;
    return port;
}

TEST(Port, network_of_roce_is_as_its_interface_is_configured) {
    EXPECT_TRUE(reach_each_other(in_network(ipv4(10, 1, 0, 1), 24), in_network(ipv4(10, 1, 0, 2), 24)));
    EXPECT_FALSE(reach_each_other(in_network(ipv4(10, 1, 0, 1), 24), in_network(ipv4(10, 1, 1, 2), 24)));
    EXPECT_TRUE(reach_each_other(in_network(ipv4(10, 1, 0, 1), 8), in_network(ipv4(10, 7, 1, 2), 8)));
    EXPECT_TRUE(reach_each_other(in_network(ipv4(10, 1, 0, 130), 25), in_network(ipv4(10, 1, 0, 131), 25)));
    EXPECT_FALSE(reach_each_other(in_network(ipv4(10, 1, 0, 130), 25), in_network(ipv4(10, 1, 0, 120), 25)));
    const Gid global = {0x20, 1, 0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1},
              of_same_56 = {0x20, 1, 0, 1, 0, 0, 0x10, 9, 0, 0, 0, 0, 0, 0, 0, 1};
    EXPECT_FALSE(reach_each_other(in_network(global, 64), in_network(of_same_56, 64)));
    EXPECT_TRUE(reach_each_other(in_network(global, 56), in_network(of_same_56, 56)));
}

TEST(Port, without_a_network_in_common_version_2_of_roce_may_be_routed) {
    const PortRecord here[] = {in_network(ipv4(10, 1, 0, 1), 24)},
                     there[] = {in_network(ipv4(10, 1, 1, 1), 24), in_network(ipv4(10, 1, 0, 9), 24)};
    EXPECT_EQ(reach_between(here, there), Reach::kNetwork);
    EXPECT_EQ(reach_between(here, std::span(there, 1)), Reach::kRouted);
    EXPECT_TRUE(reach_each_other(here[0], there[0], Reach::kRouted));
    EXPECT_FALSE(
        reach_each_other(in_network(ipv4(10, 1, 0, 1), 24, 1), in_network(ipv4(10, 1, 1, 1), 24, 1), Reach::kRouted));
    EXPECT_FALSE(reach_each_other(ib_port(0, 8, 0, 1), ib_port(0, 9, 0, 2), Reach::kRouted));
}

TEST(Port, is_described_by_its_address) {
    EXPECT_EQ(describe(ib_port(1, 8, 2)), "hca 1 port 1, LID 8, LMC 2");
    EXPECT_EQ(describe(roce_port(0, ipv4(10, 1, 0, 3))),
              "hca 0 port 1, RoCE v2 GID 0000:0000:0000:0000:0000:ffff:0a01:0003");
}

}  // namespace
}  // namespace coop::path

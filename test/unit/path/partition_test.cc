// SPDX-License-Identifier: BSD-3-Clause
//
// path/partition.h, and the treatment of P_Keys, global routing headers and subnets in port.h and pairing.h.
#include "coop/path/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "coop/path/pairing.h"
#include "ports.h"

namespace coop::path {
namespace {

using test::ib_port;
using Table = std::vector<std::uint16_t>;

constexpr std::uint16_t kFull1 = 0x8001, kLimited1 = 0x0001, kFull2 = 0x8002;

PkeyChoice chosen(const Table& table, std::uint16_t wanted) {
    return choose_pkey(table, wanted).value_or(PkeyChoice{0, 999});
}

PortRecord with_key(std::uint8_t hca, std::uint16_t pkey, std::uint8_t subnet = 0) {
    PortRecord port = ib_port(hca, static_cast<std::uint16_t>(hca + 1), 0, subnet);
    port.pkey = pkey;
    return port;
}

PortList process(std::vector<PortRecord> ports) { return {{}, std::move(ports)}; }

TEST(Site19Partition, members_of_one_talk_unless_both_are_limited) {
    EXPECT_TRUE(may_talk(kFull1, kFull1));
    EXPECT_TRUE(may_talk(kFull1, kLimited1));
    EXPECT_TRUE(may_talk(kLimited1, kFull1));
    EXPECT_FALSE(may_talk(kLimited1, kLimited1));
    EXPECT_FALSE(may_talk(kFull1, kFull2));
    EXPECT_FALSE(may_talk(0x8000, 0x8000));  // partition 0 does not exist
}

TEST(Site19Partition, wanted_key_is_found_by_the_partition_that_it_names) {
    const Table table = {kDefaultPkey, 0, kLimited1, kFull2, kFull1};
    EXPECT_EQ(chosen(table, kFull2), (PkeyChoice{kFull2, 3}));
    EXPECT_EQ(chosen(table, 0x0002), (PkeyChoice{kFull2, 3}));
    EXPECT_EQ(chosen(table, kLimited1), (PkeyChoice{kFull1, 4}));  // as a full member, if it is both
    EXPECT_EQ(chosen({kDefaultPkey, kLimited1}, kFull1), (PkeyChoice{kLimited1, 1}));
    EXPECT_EQ(chosen(table, 0x7fff), (PkeyChoice{kDefaultPkey, 0}));
    EXPECT_FALSE(choose_pkey(table, 0x8003));
    EXPECT_FALSE(choose_pkey(table, 0x8000));
    EXPECT_FALSE(choose_pkey({}, kFull1));
}

TEST(Site19Partition, first_key_of_a_full_member_is_taken_unless_one_is_wanted) {
    EXPECT_EQ(chosen({kDefaultPkey, kFull1}, 0), (PkeyChoice{kDefaultPkey, 0}));
    EXPECT_EQ(chosen({0, kFull1, kDefaultPkey}, 0), (PkeyChoice{kFull1, 1}));
    EXPECT_EQ(chosen({0x7fff, kFull2, kFull1}, 0),
              (PkeyChoice{kFull2, 1}));  // a limited member would not hear others like it
    EXPECT_EQ(chosen({0, 0x7fff, kLimited1}, 0), (PkeyChoice{0x7fff, 1}));
    EXPECT_FALSE(choose_pkey(Table{0, 0x8000}, 0));
}

TEST(Site19Partition, keys_are_shown_in_hexadecimal) {
    EXPECT_EQ(pkey_text(0x8001), "0x8001");
    EXPECT_EQ(pkey_text(0x7f), "0x007f");
    EXPECT_EQ(pkeys_text(Table{0xffff, 0, 1}), "0xffff, 0x0001");
    EXPECT_EQ(pkeys_text(Table{0, 0x8000}), "none");
    EXPECT_EQ(describe(with_key(0, kFull1)), "hca 0 port 1, LID 1, LMC 0, P_Key 0x8001");
}

TEST(Site19Pairing, only_ports_of_one_partition_are_paired) {
    const std::vector<PortRecord> a = {with_key(0, kFull1), with_key(1, kFull2)},
                                  b = {with_key(2, kFull2), with_key(3, kFull1)};
    EXPECT_EQ(choose_paths(a, b, {}), (std::vector<PathChoice>{{0, 1, 0, 0, 0}, {1, 0, 0, 0, 0}}));
    EXPECT_TRUE(choose_paths(std::vector{a[0]}, std::vector{b[0]}, {}).empty());
    EXPECT_FALSE(reach_each_other(a[0], b[0]));
    EXPECT_TRUE(reach_each_other(a[0], b[1]));
}

TEST(Site19Pairing, full_and_limited_members_are_paired_and_two_limited_are_not) {
    const std::vector<PortRecord> full = {with_key(0, kFull1), with_key(1, kFull1)},
                                  limited = {with_key(2, kLimited1), with_key(3, kLimited1)};
    EXPECT_EQ(choose_paths(full, limited, {}).size(), 2u);
    EXPECT_EQ(choose_paths(limited, full, {}).size(), 2u);
    EXPECT_TRUE(choose_paths(limited, limited, {}).empty());  // the same port, too: a limited HCA does not hear itself
    EXPECT_TRUE(choose_paths(std::vector{limited[0]}, std::vector{limited[1]}, {}).empty());
}

TEST(Site19Pairing, limited_members_are_paired_with_full_ones) {
    const std::vector<PortRecord> a = {with_key(0, kLimited1), with_key(1, kFull1)},
                                  b = {with_key(2, kLimited1), with_key(3, kFull1)};
    EXPECT_EQ(choose_paths(a, b, {}), (std::vector<PathChoice>{{0, 1, 0, 0, 0}, {1, 0, 0, 0, 0}}));
    const std::vector<PortRecord> only_limited = {with_key(2, kLimited1), with_key(3, kLimited1)};
    EXPECT_EQ(choose_paths(a, only_limited, {}), (std::vector<PathChoice>{{1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}}));
    const std::vector<PortRecord> only_full = {with_key(2, kFull1), with_key(3, kFull1)};
    EXPECT_EQ(choose_paths(a, only_full, {}).size(), 2u);
}

TEST(Site19Pairing, says_which_keys_do_not_match) {
    const auto trouble = [](std::uint16_t a, std::uint16_t b) {
        return partition_trouble(process({with_key(0, a)}), process({with_key(1, b)})).value_or("");
    };
    EXPECT_EQ(trouble(kFull1, kFull2),
              "the P_Key here is 0x8001 (full member), there 0x8002 (full member): these are different partitions");
    EXPECT_EQ(trouble(kLimited1, kLimited1),
              "the P_Key here is 0x0001 (limited member), there 0x0001 (limited member): two limited members of a "
              "partition cannot communicate");
    EXPECT_EQ(trouble(kLimited1, kFull1), "");
    EXPECT_FALSE(partition_trouble(process({with_key(0, kFull1)}),
                                   process({with_key(1, kFull2, 7)})));  // different subnets: P_Keys are not the reason
    EXPECT_FALSE(partition_trouble({}, {}));
}

TEST(Site19Pairing, subnets_are_crossed_where_both_processes_allow_it) {
    PortRecord a = with_key(0, kDefaultPkey, 1), b = with_key(1, kDefaultPkey, 2);
    const auto rails = [&] { return choose_paths(std::vector{a}, std::vector{b}, {}).size(); };
    EXPECT_EQ(rails(), 0u);
    a.crosses_subnets = 1;
    EXPECT_EQ(rails(), 0u);
    b.crosses_subnets = 1;
    EXPECT_EQ(rails(), 1u);
    b.pkey = kFull1;
    EXPECT_EQ(rails(), 0u);
}

TEST(Site19Pairing, subnet_in_common_goes_before_those_across_routers) {
    std::vector<PortRecord> a = {with_key(0, kDefaultPkey, 1), with_key(1, kDefaultPkey, 2)},
                            b = {with_key(2, kDefaultPkey, 3), with_key(3, kDefaultPkey, 2)};
    for (PortRecord& port : a) port.crosses_subnets = 1;
    for (PortRecord& port : b) port.crosses_subnets = 1;
    EXPECT_EQ(choose_paths(a, b, {}), (std::vector<PathChoice>{{1, 1, 0, 0, 0}}));
}

}  // namespace
}  // namespace coop::path

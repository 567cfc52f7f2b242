// SPDX-License-Identifier: BSD-3-Clause
//
// extension/registry.h: who finds which table.
#include "coop/extension/registry.h"

#include <gtest/gtest.h>

// A BTL module is an address here.
struct mca_btl_base_module_t {};

namespace coop {
namespace {

class BtlExtensionTest : public testing::Test {
protected:
    ~BtlExtensionTest() override {
        withdraw_extension(&first);
        withdraw_extension(&second);
    }

    // Of a module whose table has this head.
    ExtensionLookup lookup_of(const BtlExtensionHead& head) {
        publish_extension(&first, head);
        return find_extension(&first);
    }

    mca_btl_base_module_t first, second;
    BtlExtension table;
};

TEST_F(BtlExtensionTest, a_stock_transport_has_none) {
    const ExtensionLookup found = find_extension(&first);
    EXPECT_EQ(found.extension, nullptr);
    EXPECT_EQ(found.unusable, nullptr);
}

TEST_F(BtlExtensionTest, a_table_of_this_version_is_found) {
    const ExtensionLookup found = lookup_of(table.head);
    EXPECT_EQ(found.extension, &table);
    EXPECT_EQ(found.unusable, nullptr);
}

TEST_F(BtlExtensionTest, another_version_is_absent_and_names_itself) {
    for (const std::uint32_t abi : {0u, kBtlExtensionAbi - 1, kBtlExtensionAbi + 1, ~0u}) {
        const BtlExtensionHead head{abi, sizeof(BtlExtension)};
        const ExtensionLookup found = lookup_of(head);
        EXPECT_EQ(found.extension, nullptr) << abi;
        ASSERT_EQ(found.unusable, &head) << abi;
    }
}

TEST_F(BtlExtensionTest, another_size_is_absent_whatever_the_version) {
    for (const std::size_t bytes :
         {std::size_t{0}, sizeof(BtlExtensionHead), sizeof(BtlExtension) - 8, sizeof(BtlExtension) + 8}) {
        const BtlExtensionHead head{kBtlExtensionAbi, static_cast<std::uint32_t>(bytes)};
        const ExtensionLookup found = lookup_of(head);
        EXPECT_EQ(found.extension, nullptr) << bytes;
        ASSERT_EQ(found.unusable, &head) << bytes;
    }
}

TEST_F(BtlExtensionTest, each_module_has_its_own) {
    BtlExtension other;
    publish_extension(&first, table.head);
    publish_extension(&second, other.head);
    EXPECT_EQ(find_extension(&first).extension, &table);
    EXPECT_EQ(find_extension(&second).extension, &other);
}

TEST_F(BtlExtensionTest, modules_may_share_a_table) {
    publish_extension(&first, table.head);
    publish_extension(&second, table.head);
    withdraw_extension(&first);
    EXPECT_EQ(find_extension(&first).extension, nullptr);
    EXPECT_EQ(find_extension(&second).extension, &table);
}

TEST_F(BtlExtensionTest, a_withdrawn_one_is_absent_and_may_come_back) {
    publish_extension(&first, table.head);
    withdraw_extension(&first);
    EXPECT_EQ(find_extension(&first).extension, nullptr);
    withdraw_extension(&first);
    publish_extension(&first, table.head);
    EXPECT_EQ(find_extension(&first).extension, &table);
}

TEST_F(BtlExtensionTest, publishing_again_replaces_the_table) {
    BtlExtension other;
    publish_extension(&first, table.head);
    publish_extension(&first, other.head);
    EXPECT_EQ(find_extension(&first).extension, &other);
    withdraw_extension(&first);
    EXPECT_EQ(find_extension(&first).extension, nullptr);
}

TEST_F(BtlExtensionTest, without_options_an_operation_has_no_marker_and_no_rider_and_may_be_striped) {
    const RdmaOptions options;
    EXPECT_EQ(options.marker, sched::Marker::kNone);
    EXPECT_EQ(options.rider, nullptr);
    EXPECT_FALSE(options.whole);
    EXPECT_EQ(options.lane, sched::kNoLane);
}

}  // namespace
}  // namespace coop

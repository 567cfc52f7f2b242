// SPDX-License-Identifier: BSD-3-Clause
//
// base/shared_records.h: a record lives as long as it is in use.
#include "coop/base/shared_records.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace coop {
namespace {

// Counts its instances.
struct Record {
    explicit Record(std::set<Record*>& all) : living(all) { living.insert(this); }
    ~Record() { living.erase(this); }
    std::set<Record*>& living;
};

class Site07SharedRecords : public ::testing::Test {
protected:
    Record* add(std::uint64_t name) {
        auto fresh = std::make_unique<Record>(living_);
        return records_.add(name, fresh);
    }
    std::set<Record*> living_;
    SharedRecords<Record> records_;
};

TEST_F(Site07SharedRecords, a_record_is_found_until_its_last_user_lets_go) {
    EXPECT_EQ(records_.find(7), nullptr);
    Record* const record = add(7);
    EXPECT_EQ(records_.find(7), record);
    EXPECT_EQ(records_.let_go(7), nullptr);
    EXPECT_EQ(records_.find(7), record);
    EXPECT_EQ(records_.let_go(7), nullptr);
    EXPECT_EQ(living_.size(), 1u);
    EXPECT_EQ(records_.let_go(7).get(), record);
    EXPECT_TRUE(living_.empty());
    EXPECT_EQ(records_.find(7), nullptr);
    EXPECT_EQ(records_.size(), 0u);
}

TEST_F(Site07SharedRecords, of_two_that_add_one_at_the_same_time_the_first_counts) {
    Record* const first = add(7);
    auto second = std::make_unique<Record>(living_);
    EXPECT_EQ(records_.add(7, second), first);
    EXPECT_NE(second, nullptr) << "the caller still owns it";
    EXPECT_EQ(records_.let_go(7), nullptr);
    EXPECT_EQ(records_.let_go(7).get(), first);
}

TEST_F(Site07SharedRecords, letting_go_of_what_is_not_there_is_harmless) {
    EXPECT_EQ(records_.let_go(7), nullptr);
    add(8);
    EXPECT_EQ(records_.let_go(7), nullptr);
    EXPECT_EQ(records_.size(), 1u);
}

// 10,000 processes that are spawned and end, some of them at the same time.
TEST_F(Site07SharedRecords, ten_thousand_names_that_come_and_go_leave_nothing) {
    constexpr std::uint64_t kNames = 10000, kTogether = 16;
    add(UINT64_MAX);  // one that remains
    for (std::uint64_t name = 0; name < kNames + kTogether; ++name) {
        if (name < kNames) add(name);
        ASSERT_LE(records_.size(), kTogether + 2);
        if (name < kTogether) continue;
        ASSERT_NE(records_.let_go(name - kTogether), nullptr);
    }
    EXPECT_EQ(records_.size(), 1u);
    EXPECT_EQ(living_.size(), 1u);
}

TEST_F(Site07SharedRecords, clearing_deletes_what_is_in_use) {
    add(1);
    add(2);
    records_.clear();
    EXPECT_TRUE(living_.empty());
}

}  // namespace
}  // namespace coop

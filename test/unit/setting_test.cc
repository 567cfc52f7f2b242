// SPDX-License-Identifier: BSD-3-Clause
//
// base/setting.h: a value that one thread writes while others read it.
#include "coop/base/setting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace coop {
namespace {

TEST(Site09Setting, reads_as_a_number) {
    enum class Mode { kOff, kOn };
    Setting setting = 7;
    EXPECT_EQ(setting, 7);
    setting = 1;
    const Setting copy = setting;
    setting = INT64_MIN;
    EXPECT_EQ(copy, 1);
    EXPECT_EQ(static_cast<Mode>(copy), Mode::kOn);
    EXPECT_EQ(static_cast<std::size_t>(copy), 1u);
}

// ThreadSanitizer reports an error here if the value is a plain number.
TEST(Site09Setting, readers_see_whole_values_while_it_is_written) {
    constexpr std::int64_t kLow = 0x0101010101010101, kHigh = 0x7070707070707070;
    Setting setting = kLow;
    std::atomic<bool> end{false};
    std::atomic<int> wrong{0};
    std::thread reader([&] {
        while (!end.load(std::memory_order_relaxed)) {
            const std::int64_t seen = setting;
            if (seen != kLow && seen != kHigh) ++wrong;
        }
    });
    for (int i = 0; i < 100000; ++i) setting = i % 2 == 0 ? kHigh : kLow;
    end.store(true, std::memory_order_relaxed);
    reader.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coop

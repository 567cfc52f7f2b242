// SPDX-License-Identifier: BSD-3-Clause
//
// match/contexts.h: a thread that finds a communicator finds all of it.
#include "coop/match/contexts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace coop::match {
namespace {

struct Communicator {
    int size = 0;
    std::vector<int> peers;
};
using Table = Contexts<Communicator>;

TEST(Site12Contexts, an_id_finds_what_was_published_until_it_is_withdrawn) {
    const auto table = std::make_unique<Table>();
    Communicator first, last;
    for (std::uint32_t id = 0; id < Table::kIds; id += 4095)
        EXPECT_EQ(table->find(static_cast<std::uint16_t>(id)), nullptr);
    table->publish(0, &first);
    table->publish(UINT16_MAX, &last);
    EXPECT_EQ(table->find(0), &first);
    EXPECT_EQ(table->find(UINT16_MAX), &last);
    EXPECT_EQ(table->find(1), nullptr);
    table->withdraw(0);
    EXPECT_EQ(table->find(0), nullptr);
    EXPECT_EQ(table->find(UINT16_MAX), &last);
}

// ThreadSanitizer reports an error here if the table does not order the object before its address.
TEST(Site12Contexts, a_thread_that_finds_an_object_sees_all_of_it) {
    constexpr std::uint16_t kRounds = 2000;
    const auto table = std::make_unique<Table>();
    std::vector<Communicator> all(kRounds);
    std::atomic<int> wrong{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < 2; ++t)
        readers.emplace_back([&] {
            for (std::uint16_t id = 0; id < kRounds; ++id) {
                const Communicator* found = table->find(id);
                while (!found) {
                    std::this_thread::yield();
                    found = table->find(id);
                }
                if (found->size != id || found->peers.size() != 3) ++wrong;
            }
        });
    for (std::uint16_t id = 0; id < kRounds; ++id) {
        all[id].size = id;
        all[id].peers.assign(3, id);
        table->publish(id, &all[id]);
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coop::match

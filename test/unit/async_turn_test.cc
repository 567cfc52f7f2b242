// SPDX-License-Identifier: BSD-3-Clause
//
// async/turn.h: application and handler are never inside at once.
#include "coop/async/turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace coop::async {
namespace {

class TurnTest : public testing::Test {
protected:
    void SetUp() override { turn.switch_on(); }
    void TearDown() override { turn.switch_off(); }

    // A handler that tries to get its turn `times` times and does `work` in it. Returns how often it got one.
    template <class Work>
    int handle(int times, Work work) {
        int taken = 0;
        std::thread([&] {
            turn.this_is_the_handler();
            for (int i = 0; i < times; ++i) {
                if (!turn.try_take()) continue;
                ++taken;
                work();
                turn.give_back();
            }
        }).join();
        return taken;
    }

    Turn turn;
};

TEST_F(TurnTest, handler_has_its_turn_while_the_application_is_outside) {
    EXPECT_EQ(handle(3, [] {}), 3);
}

TEST_F(TurnTest, handler_has_none_while_the_application_is_inside) {
    turn.enter();
    EXPECT_EQ(handle(3, [] {}), 0);
    turn.leave();
    EXPECT_EQ(handle(1, [] {}), 1);
}

TEST_F(TurnTest, application_is_inside_until_its_outermost_leave) {
    EXPECT_TRUE(turn.enter());
    EXPECT_FALSE(turn.enter());
    EXPECT_FALSE(turn.is_outermost());
    turn.leave();
    EXPECT_TRUE(turn.is_outermost());
    EXPECT_EQ(handle(1, [] {}), 0);
    turn.leave();
    EXPECT_EQ(handle(1, [] {}), 1);
}

TEST_F(TurnTest, handler_passes_its_own_entries) {
    EXPECT_EQ(handle(1,
                     [this] {
                         EXPECT_TRUE(turn.is_handler());
                         EXPECT_FALSE(turn.enter());
                         EXPECT_FALSE(turn.is_outermost());
                         turn.leave();
                     }),
              1);
    EXPECT_FALSE(turn.is_handler());
}

TEST_F(TurnTest, application_waits_for_the_end_of_the_handlers_turn) {
    std::atomic<bool> taken{false}, over{false};
    std::thread handler([&] {
        turn.this_is_the_handler();
        ASSERT_TRUE(turn.try_take());
        taken.store(true);
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        over.store(true);
        turn.give_back();
    });
    while (!taken.load()) std::this_thread::yield();
    turn.enter();
    EXPECT_TRUE(over.load());
    turn.leave();
    handler.join();
}

// Both sides change plain memory in their turns: if both were inside, an update would be lost (and ThreadSanitizer
// reports it).
TEST_F(TurnTest, what_both_change_in_turns_is_never_lost) {
    constexpr long kTimes = 200'000;
    volatile long shared = 0;
    long handled = 0;
    std::atomic<bool> stop{false};
    std::thread handler([&] {
        turn.this_is_the_handler();
        while (!stop.load(std::memory_order_relaxed)) {
            if (!turn.try_take()) continue;
            shared = shared + 1;
            ++handled;
            turn.give_back();
        }
    });
    for (long i = 0; i < kTimes; ++i) {
        turn.enter();
        shared = shared + 1;
        turn.leave();
    }
    stop.store(true);
    handler.join();
    EXPECT_EQ(shared, kTimes + handled);
}

}  // namespace
}  // namespace coop::async

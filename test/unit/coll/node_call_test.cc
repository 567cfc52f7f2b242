// SPDX-License-Identifier: BSD-3-Clause
// Allgathers through shared memory: every number of processes up to 9, blocks below and above the slot, reads of other
// processes' memory that are refused. Processes run in a random order.
#include <gtest/gtest.h>

#include "node_world.h"

namespace coop::coll {
namespace {

// In one thread. False: nothing moves any more.
bool run_in_random_order(World& world, std::uint32_t seed, std::uint64_t laps) {
    std::minstd_rand random(seed + 7);
    const auto p = static_cast<std::uint32_t>(world.processes.size());
    for (std::uint32_t idle = 0; idle < 100000; ++idle) {
        bool all_done = true;
        for (const auto& process : world.processes) all_done &= process->lap() == laps && !process->busy();
        if (all_done) return true;
        // One process runs several times in a row, so that it gets as far ahead as it can.
        Process& process = *world.processes[random() / 16 % p];
        for (std::uint32_t times = random() / 16 % 6; times > 0; --times) {
            if (!process.busy()) {
                if (process.lap() < laps) process.start(), idle = 0;
            } else if (process.advance()) {
                idle = 0;
            }
            if (process.calls().wrong()) {
                ADD_FAILURE() << process.calls().wrong() << " of " << process.calls().wrong_process();
                return false;
            }
        }
    }
    return false;
}

TEST(CollNodeCall, gathers_blocks_of_every_length_in_any_order) {
    for (const std::uint32_t refuse_one_in : {0u, 1u, 2u, 5u})
        for (std::uint32_t p = 1; p <= 9; ++p)
            for (std::uint32_t seed = 1; seed <= 12; ++seed) {
                World world(p, seed, refuse_one_in);
                ASSERT_TRUE(run_in_random_order(world, seed, 40))
                    << "p " << p << " seed " << seed << " refused 1 in " << refuse_one_in;
            }
}

TEST(CollNodeCall, reads_long_blocks_directly_unless_that_is_refused) {
    World direct(4, 3, 0), chunks(4, 3, 1);
    ASSERT_TRUE(run_in_random_order(direct, 1, 40));
    ASSERT_TRUE(run_in_random_order(chunks, 1, 40));
    EXPECT_GT(direct.processes[0]->reader().reads, 10u);
    EXPECT_EQ(direct.processes[0]->reader().refused, 0u);
    EXPECT_EQ(chunks.processes[0]->reader().reads, 0u);
    EXPECT_EQ(chunks.processes[0]->reader().refused, direct.processes[0]->reader().reads);
}

// Two processes: rank 0 is played by the test, which writes its words.
class CollNodeCallWrong : public testing::Test {
protected:
    static constexpr std::uint64_t kLong = 1000;
    CollNodeCallWrong() : memory(NodeArea::bytes_for(2, kSlot)), area(memory.at, 2, kSlot), blocks(2 * kLong) {}

    void start(std::uint64_t bytes, bool refuse = false) {
        reader.refuse_one_in = refuse ? 1 : 0;
        calls.start(blocks.data() + bytes, blocks.data(), Blocks(2, bytes));
    }
    void post(std::uint64_t lap, std::uint64_t bytes) {
        NodeArea::Post& theirs = area.post(0, lap);
        theirs.bytes = bytes;
        theirs.address = reinterpret_cast<std::uintptr_t>(source.data());
        theirs.lap.store(lap);
    }
    void expect_wrong(const char* word) {
        for (int i = 0; i < 5; ++i) ASSERT_FALSE(calls.advance());
        ASSERT_NE(calls.wrong(), nullptr);
        EXPECT_STREQ(calls.wrong(), word);
        EXPECT_EQ(calls.wrong_process(), 0u);
    }

    Memory memory;
    NodeArea area;
    Memcpy reader;
    NodeCalls<Memcpy> calls{reader, area, 1};
    std::vector<std::byte> blocks, source = std::vector<std::byte>(kLong);
};

TEST_F(CollNodeCallWrong, number_of_the_call) {
    start(8);
    area.post(0, 1).lap.store(77);
    expect_wrong("number of the call");
}

TEST_F(CollNodeCallWrong, length_of_the_block) {
    start(8);
    post(1, 9);
    expect_wrong("length of the block");
    EXPECT_TRUE(calls.length_differs());
}

TEST_F(CollNodeCallWrong, answer) {
    start(kLong);
    post(1, kLong);
    area.answered(0).store(9 << 1);
    expect_wrong("answer");
}

TEST_F(CollNodeCallWrong, number_of_chunks) {
    start(kLong, true);
    post(1, kLong);
    area.chunks(0).store(3);
    expect_wrong("number of chunks");
}

TEST_F(CollNodeCallWrong, number_of_chunks_taken) {
    start(kLong);
    post(1, kLong);
    area.need(0, 1).lap.store(1);
    area.need(0, 1).taken.store(3);
    area.answered(0).store(1 << 1 | 1);
    expect_wrong("number of chunks taken");
}

TEST_F(CollNodeCallWrong, a_process_a_lap_ahead_is_right) {
    start(kLong);
    post(1, kLong);
    area.answered(0).store(2 << 1 | 1);
    area.need(0, 1).lap.store(2);
    EXPECT_TRUE(calls.advance());
    EXPECT_EQ(calls.wrong(), nullptr);
}

}  // namespace
}  // namespace coop::coll

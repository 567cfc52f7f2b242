// SPDX-License-Identifier: BSD-3-Clause
// Allgathers through shared memory by threads, each of which plays a process.
#include <gtest/gtest.h>

#include <thread>

#include "node_world.h"

namespace coop::coll {
namespace {

TEST(CollNodeCallThreads, gather_at_the_same_time) {
    for (const std::uint32_t refuse_one_in : {0u, 1u, 3u})
        for (std::uint32_t p = 2; p <= 9; ++p) {
            World world(p, p, refuse_one_in);
            std::vector<std::thread> threads;
            for (auto& process : world.processes)
                threads.emplace_back([&process] {
                    while (process->lap() < 60) {
                        process->start();
                        while (!process->advance()) {
                            if (process->calls().wrong()) return;
                            std::this_thread::yield();
                        }
                    }
                });
            for (std::thread& thread : threads) thread.join();
            for (auto& process : world.processes) ASSERT_EQ(process->calls().wrong(), nullptr);
        }
}

}  // namespace
}  // namespace coop::coll

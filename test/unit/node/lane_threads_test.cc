// SPDX-License-Identifier: BSD-3-Clause
// node/lane_area.h, node/lane_inbox.h between threads: nothing is lost, doubled or torn, whoever is how fast.
#include "coop/node/lane_inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace coop::node {
namespace {

struct Free {
    void operator()(void* p) const { std::free(p); }
};

constexpr std::uint32_t kSenders = 3, kRecords = 4000, kRounds = 3;

std::uint32_t length_of(std::uint32_t sender, std::uint32_t n) {
    return 8 + (n * 7919u + sender * 104729u) % (longest_lane_record(kMinLaneRing) - 8);
}

// Sends its records through rings that it claims, closes and claims again.
void send_all(LaneArea area, std::uint32_t sender) {
    for (std::uint32_t round = 0, n = 0; round < kRounds; ++round) {
        std::optional<std::uint32_t> ring;
        while (!(ring = area.claim(static_cast<std::int32_t>(1 + sender), sender))) std::this_thread::yield();
        LaneWriter<LaneMemory> writer(area.memory_of(*ring), area.shape().ring_bytes);
        for (const std::uint32_t end = (round + 1) * kRecords / kRounds; n < end; ++n) {
            const std::uint32_t bytes = n % 4 ? 8 + n % 50 : length_of(sender, n);
            LanePlace at;
            while (!(at = writer.reserve(bytes))) std::this_thread::yield();
            std::memset(area.ring(*ring) + *at, static_cast<int>(n & 0xff), bytes);
            const std::uint32_t head[2] = {sender, n};
            std::memcpy(area.ring(*ring) + *at, head, sizeof head);
            writer.publish(1, bytes);
            area.wake(*ring);
        }
        area.close(*ring, static_cast<std::int32_t>(1 + sender));
    }
}

// Two rings for three senders: they take turns.
TEST(LaneThreads, every_record_arrives_once_whole_and_in_order) {
    const LaneShape shape{2, kMinLaneRing};
    const std::size_t size = LaneArea::bytes_for(shape);
    std::unique_ptr<std::byte, Free> memory(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) & ~4095ul)));
    std::memset(memory.get(), 0, size);
    const LaneArea area(memory.get(), shape);
    area.prepare();
    LaneInbox inbox(area);

    std::vector<std::thread> senders;
    for (std::uint32_t i = 0; i < kSenders; ++i) senders.emplace_back(send_all, area, i);
    std::vector<std::uint32_t> next(kSenders, 0);
    std::uint64_t total = 0, wrong = 0;
    const auto take = [&](std::uint8_t, const std::byte* body, std::uint32_t bytes) {
        std::uint32_t head[2];
        std::memcpy(head, body, sizeof head);
        if (head[0] >= kSenders || next[head[0]]++ != head[1]) ++wrong;
        for (std::uint32_t i = sizeof head; i < bytes; ++i)
            if (body[i] != static_cast<std::byte>(head[1] & 0xff)) ++wrong;
        ++total;
        return true;
    };
    const auto never = [](std::uint32_t) { return false; };
    while (total < kSenders * kRecords && wrong == 0)
        if (inbox.poll(
                take, [&](std::uint32_t) { ++wrong; }, never) == 0)
            std::this_thread::yield();
    if (wrong > 0) GTEST_FAIL() << "stopped after " << total << " records";  // the senders wait for ever
    for (std::thread& each : senders) each.join();
    for (std::uint32_t i = 0; i < 2 * LaneInbox::kPatience; ++i)
        EXPECT_EQ(inbox.poll(
                      take, [](std::uint32_t) {}, never),
                  0);
    EXPECT_TRUE(area.is_free(0));
    EXPECT_TRUE(area.is_free(1));
}

}  // namespace
}  // namespace coop::node

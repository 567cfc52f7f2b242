// SPDX-License-Identifier: BSD-3-Clause
// node/lane_area.h, node/lane_inbox.h between threads: nothing is lost, doubled or torn, whoever is how fast.
#include "coop/node/lane_inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "coop/node/lane_offer.h"
#include "coop/node/lane_parts.h"

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
        area.open(*ring, static_cast<std::int32_t>(1 + sender));
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
        return LaneTake::kNext;
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

// One of two processes that send each other records of which many go through the slots.
struct Partner {
    static constexpr LaneShape kShape{1, kMinLaneRing};
    static constexpr std::uint32_t kExchanges = 20'000;

    Partner() : memory(static_cast<std::byte*>(std::aligned_alloc(4096, kBytes))) {
        std::memset(memory.get(), 0, kBytes);
        area = LaneArea(memory.get(), kShape);
        area.prepare();
        inbox = LaneInbox(area);
    }
    void meet(const Partner& other) {
        to = other.area;
        to.open(to.claim(1, 0).value(), 1);
        writer = LaneWriter<LaneMemory>(to.memory_of(0), kShape.ring_bytes);
        writer.use_slot();
    }
    static std::uint32_t length_of(std::uint32_t n) { return n % 7 == 0 ? 8 : 200 + n * 7919 % 1800; }

    void send(std::uint32_t n) {
        const std::uint32_t bytes = length_of(n);
        const bool taken = inbox.turns(0).taken.load(std::memory_order_acquire);
        std::byte* at = nullptr;
        if (writer.takes_slot(bytes, inbox.turns(0).confirmed.load(std::memory_order_acquire)))
            at = to.slot(0) + kLaneWord;
        const bool is_in_slot = at != nullptr;
        LanePlace place;
        while (!at) {
            if (wrong > 0) return;
            if ((place = writer.reserve(bytes))) at = to.ring(0) + *place;
            else std::this_thread::yield();
        }
        std::memset(at, static_cast<int>(n & 0xff), bytes);
        std::memcpy(at, &n, sizeof n);
        if (is_in_slot) {
            writer.publish_slot(1, bytes, taken);
            inbox.turns(0).slot.store(to.slot(0), std::memory_order_relaxed);
            inbox.turns(0).used.store(lane_record_bytes(bytes), std::memory_order_relaxed);
            ++in_slot;
        } else {
            writer.publish(1, bytes, true, taken);
        }
        to.wake(0);
    }
    // Returns when `until` records have arrived.
    void receive(std::uint32_t until) {
        const auto take = [this](std::uint8_t, const std::byte* body, std::uint32_t bytes) {
            std::uint32_t n;
            std::memcpy(&n, body, sizeof n);
            if (n != received++ || bytes != length_of(n)) ++wrong;
            for (std::uint32_t i = sizeof n; i < bytes; ++i)
                if (body[i] != static_cast<std::byte>(n & 0xff)) ++wrong;
            return LaneTake::kNext;
        };
        while (received < until && wrong == 0)
            if (inbox.poll(
                    take, [](std::uint32_t) { ++wrong; }, [](std::uint32_t) { return false; }) == 0)
                std::this_thread::yield();
    }

    static constexpr std::size_t kBytes = (LaneArea::bytes_for(kShape) + 4095) & ~std::size_t{4095};
    std::unique_ptr<std::byte, Free> memory;
    LaneArea area, to;
    LaneInbox inbox;
    LaneWriter<LaneMemory> writer;
    std::uint32_t received = 0, in_slot = 0;
    inline static std::atomic<int> wrong{0};  // of both: neither waits for the other then
};

// Now and then one of them sends several records.
TEST(LaneThreads, records_in_slots_keep_their_order_and_contents) {
    Partner first, second;
    first.meet(second);
    second.meet(first);
    const auto run = [](Partner& one, bool begins) {
        std::uint32_t sent = 0, expected = 0;
        for (std::uint32_t n = 0; n < Partner::kExchanges && Partner::wrong == 0; ++n) {
            const std::uint32_t records = n % 11 == 0 ? 3 : 1;
            if (!begins) one.receive(expected += records);
            for (std::uint32_t i = 0; i < records; ++i) one.send(sent++);
            if (begins) one.receive(expected += records);
        }
    };
    std::thread other(run, std::ref(second), false);
    run(first, true);
    other.join();
    EXPECT_EQ(Partner::wrong, 0);
    for (const Partner* each : {&first, &second}) {
        EXPECT_GT(each->in_slot, Partner::kExchanges / 4);
    }
}

// The reader is first with one offer in four, the writer with another one; with the others both begin at about the same
// moment.
TEST(LaneThreads, an_offer_is_read_or_taken_back_but_not_both) {
    constexpr std::uint64_t kOffers = 20'000;
    alignas(kLaneLine) std::byte ring[256]{};
    alignas(kLaneLine) std::atomic<std::uint64_t> reading{0}, begun{0}, decided{0}, ended{0};
    const auto await = [](const std::atomic<std::uint64_t>& word, std::uint64_t n) {
        while (word.load(std::memory_order_acquire) < n) std::this_thread::yield();
    };
    std::uint64_t read = 0, taken_back = 0, both = 0;
    bool is_read = false;
    const auto wait = [](std::uint64_t steps) {
        for (std::uint64_t i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    };
    std::thread reader([&] {
        for (std::uint64_t n = 1; n <= kOffers; ++n) {
            LaneParts<LaneMemory> parts({ring}, 64);
            await(n % 4 == 1 ? decided : begun, n);
            wait(n * 7 % 32);
            is_read = LaneOffer{0, n}.begins_reading(parts, reading);
            read += is_read ? 1 : 0;
            ended.store(n, std::memory_order_release);
        }
    });
    for (std::uint64_t n = 1; n <= kOffers; ++n) {
        LaneParts<LaneMemory> parts({ring}, 64);
        parts.begin();
        begun.store(n, std::memory_order_release);
        if (n % 4 == 0) await(ended, n);
        wait(n % 512);
        const bool is_taken_back = LaneOffer{0, n}.take_back(parts, reading);
        decided.store(n, std::memory_order_release);
        await(ended, n);
        taken_back += is_taken_back ? 1 : 0;
        both += is_taken_back && is_read ? 1 : 0;
    }
    reader.join();
    EXPECT_EQ(both, 0u);
    EXPECT_GE(taken_back, kOffers / 4);
    EXPECT_GE(read, kOffers / 4);
}

}  // namespace
}  // namespace coop::node

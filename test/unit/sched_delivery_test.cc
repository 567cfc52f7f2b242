// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/delivery.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "coop/sched/sequence.h"

namespace coop::sched {
namespace {

struct Packet {
    ListNode node;
    SequenceNumber psn = 0;
};
using Packets = Delivery<Packet, &Packet::node>;

TEST(Site25Delivery, packets_that_another_thread_brings_are_left_to_the_one_that_delivers) {
    Packets delivery;
    Packet a, b;
    delivery.due(a);
    ASSERT_TRUE(delivery.begin(1));
    EXPECT_EQ(delivery.next(), &a);
    delivery.due(b);
    EXPECT_FALSE(delivery.begin(2));
    EXPECT_EQ(delivery.next(), &b);
    EXPECT_EQ(delivery.next(), nullptr);
    EXPECT_TRUE(delivery.begin(2));
}

TEST(Site25Delivery, a_thread_that_comes_again_from_within_delivers_itself) {
    Packets delivery;
    Packet a, b;
    delivery.due(a);
    ASSERT_TRUE(delivery.begin(1));
    EXPECT_EQ(delivery.next(), &a);
    delivery.due(b);
    ASSERT_TRUE(delivery.begin(1)) << "from within the receiver of the first";
    EXPECT_EQ(delivery.next(), &b);
    EXPECT_EQ(delivery.next(), nullptr);
    EXPECT_EQ(delivery.next(), nullptr) << "the outer call ends, too";
}

TEST(Site25Delivery, a_packet_goes_at_once_unless_others_are_before_it) {
    Packets delivery;
    Packet a;
    ASSERT_TRUE(delivery.begin_at_once(1));
    EXPECT_FALSE(delivery.begin_at_once(2)) << "another thread delivers";
    delivery.due(a);
    EXPECT_FALSE(delivery.begin_at_once(1)) << "from within the receiver of the first, behind a";
    EXPECT_EQ(delivery.next(), &a);
    EXPECT_TRUE(delivery.begin_at_once(1));
    EXPECT_EQ(delivery.next(), nullptr);
    EXPECT_TRUE(delivery.begin_at_once(2));
}

// Threads take packets off two wires in batches, as from completion queues. The receiver is slow sometimes.
class Receiver {
public:
    explicit Receiver(unsigned seed) : packets_(20'000) {
        std::mt19937 random(seed);
        for (SequenceNumber psn = 0; psn < packets_.size(); ++psn) {
            packets_[psn].psn = psn;
            wires_[random() % 2].push_back(&packets_[psn]);
        }
    }

    void poll(std::uint64_t self) {
        std::mt19937 random(static_cast<unsigned>(self));
        while (true) {
            std::vector<Packet*> batch = take_batch(random() % 2, 1 + random() % 8);
            if (batch.empty() && all_taken()) return;
            for (Packet* packet : batch) arrive(*packet, self);
        }
    }
    bool in_order() const { return in_order_; }
    SequenceNumber received() const { return received_; }

private:
    std::vector<Packet*> take_batch(std::size_t wire, std::size_t most) {
        const std::lock_guard guard(wires_lock_);
        std::vector<Packet*> batch;
        while (batch.size() < most && at_[wire] < wires_[wire].size()) batch.push_back(wires_[wire][at_[wire]++]);
        return batch;
    }
    bool all_taken() {
        const std::lock_guard guard(wires_lock_);
        return at_[0] == wires_[0].size() && at_[1] == wires_[1].size();
    }
    void arrive(Packet& packet, std::uint64_t self) {
        {
            const std::lock_guard guard(lock_);
            if (window_.on_arrival(packet.psn, &packet) != Arrival::kInOrder) return;
            delivery_.due(packet);
            while (Packet* early = window_.pop_next()) delivery_.due(*early);
            if (!delivery_.begin(self)) return;
        }
        while (Packet* next = next_due()) {
            if (next->psn % 64 == 0) std::this_thread::yield();
            in_order_ = in_order_ && next->psn == received_;
            ++received_;
        }
    }
    Packet* next_due() {
        const std::lock_guard guard(lock_);
        return delivery_.next();
    }

    std::vector<Packet> packets_;
    std::mutex wires_lock_, lock_;
    std::vector<Packet*> wires_[2];
    std::size_t at_[2] = {};
    ReorderWindow<Packet> window_{1 << 16};
    Packets delivery_;
    SequenceNumber received_ =
        0;  // neither lock nor atomic: one thread at a time delivers, which ThreadSanitizer checks
    bool in_order_ = true;
};

TEST(Site25Delivery, threads_deliver_every_packet_once_and_in_order) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        Receiver receiver(seed);
        std::vector<std::thread> threads;
        for (std::uint64_t t = 1; t <= 4; ++t) threads.emplace_back([&receiver, t] { receiver.poll(t); });
        for (std::thread& thread : threads) thread.join();
        EXPECT_TRUE(receiver.in_order()) << "seed " << seed;
        EXPECT_EQ(receiver.received(), 20'000u) << "seed " << seed;
    }
}

}  // namespace
}  // namespace coop::sched

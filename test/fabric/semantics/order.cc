// SPDX-License-Identifier: BSD-3-Clause
// The order in which the bytes of an RDMA write become visible at the responder. IBTA (9.5) promises none before the
// completion; programs that poll memory call ibv_query_qp_data_in_order.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "end.h"

using namespace verbstest;

namespace {

constexpr ibv_mtu kMtu = IBV_MTU_1024;
constexpr std::size_t kPacket = 1024;
constexpr int kWrites = 200;

bool unordered() { return ground() == "unordered"; }

Pair::Options options() {
    Pair::Options options;
    options.from_a.mtu = options.from_b.mtu = kMtu;
    return options;
}

std::uint64_t look(const Memory& memory, std::size_t at) {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory.data() + at), __ATOMIC_ACQUIRE);
}

// Writes the numbers 1, 2, … into each word of the first `bytes`; returns how often a thread that polls the last word
// saw it before the others had arrived.
int early_ends(std::size_t bytes) {
    Two two(options());
    std::fill_n(two.b.memory.data(), bytes, 0);
    std::atomic<int> damaged{0}, seen{0};
    std::thread poller([&] {
        for (int number = 1; number <= kWrites; ++number) {
            while (look(two.b.memory, bytes - 8) != static_cast<std::uint64_t>(number)) std::this_thread::yield();
            bool whole = true;
            for (std::size_t at = 0; at < bytes; at += 8)
                whole &= look(two.b.memory, at) == static_cast<std::uint64_t>(number);
            damaged += whole ? 0 : 1;
            seen = number;
        }
    });
    for (int number = 1; number <= kWrites; ++number) {
        for (std::size_t at = 0; at < bytes; at += 8) two.a.memory.set_word(at, static_cast<std::uint64_t>(number));
        two.a.qp.post(write(1, two.a.memory.sge(0, bytes), two.b.memory.remote()));
        two.a.scq.expect(1);
        while (seen != number) std::this_thread::yield();
    }
    poller.join();
    return damaged;
}

}  // namespace

// A driver that implements the query answers only for a queue pair in RTS, because the answer depends on the
// connection.
CASE(query_answers_for_writes_into_a_connected_queue_pair) {
    Node a, b;
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 0), 0);
    a.connect(b.address());
    b.connect(a.address(), reversed({}));
    const int expected = unordered() ? 0 : 1;
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 0), expected);
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE_WITH_IMM, 0), expected);
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_READ, 0), 0);
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 1),
             expected * 3);  // as capabilities: whole, and aligned blocks
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 1u << 31), 0);  // an unknown flag
    CHECK_OK(a.qp.to(IBV_QPS_ERR));
    CHECK_EQ(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 0), 0);
}

CASE(end_of_a_write_of_one_packet_is_never_early) { CHECK_EQ(early_ends(kPacket), 0); }

CASE(end_of_a_write_of_many_packets_is_early_where_the_query_says_so) {
    const int early = early_ends(12 * kPacket);
    if (unordered()) CHECK(early > kWrites / 10);
    else CHECK_EQ(early, 0);
}

CASE(all_of_a_write_is_there_when_it_completes) {
    Pair pair(options());
    for (const std::size_t bytes : {kPacket + 1, 3 * kPacket, 17 * kPacket - 3, 60 * kPacket}) {
        pair.a.memory.fill(bytes, 0, bytes);
        pair.a.qp.post(write(1, pair.a.memory.sge(0, bytes), pair.at_b.remote(64)));
        pair.a.scq.expect(1);
        pair.b->check(bytes, 64, bytes);
        pair.exchange(bytes + 1, bytes, 128);
    }
}

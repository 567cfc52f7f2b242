// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather with and without handshakes, compared with times computed by hand.
#include <gtest/gtest.h>

#include "simulated.h"

namespace coop::sim {
namespace {

constexpr std::uint64_t kBytes = 65536;

// Hosts of one switch; processes that do the same at the same time.
Options options(std::uint64_t ranks, const char* algorithm) {
    Options o;
    o.fat_tree = "8";
    o.lmc = 0;
    o.pattern = "allgather";
    o.algorithm = algorithm;
    o.ranks = ranks;
    o.bytes = kBytes;
    o.iterations = 1;
    o.policy = "original";
    o.slice_ns = 0;
    o.costs.register_ns = o.costs.register_page_ns = 0;
    return o;
}

struct Parts {
    const Costs& c;
    double way = c.wire_ns + c.hop_ns;
    double look = c.poll_ns + c.completion_ns;
    double wire = kBytes / 1.4;  // a block at the rate of a host
    double handshake = c.post_ns + way + look + c.post_ns + way + look;
};

double ended_ns(const Options& o) { return Simulated(o).result().ended_ns; }

TEST(SimAllgather, a_step_has_its_own_handshake) {
    const Options o = options(2, "doubling");
    const Parts t{o.costs};
    EXPECT_NEAR(ended_ns(o), t.c.start_ns + t.handshake + t.c.post_ns + t.wire + 2 * t.way + t.look, 1);
}

// The address is on its way while the message starts. Only the end of the call waits for the completion.
TEST(SimAllgather, one_announcement_per_call_replaces_the_handshakes) {
    Options o = options(2, "doubling");
    o.announce = "call";
    const Parts t{o.costs};
    EXPECT_NEAR(ended_ns(o), t.c.post_ns + t.way + t.look + t.c.post_ns + t.wire + 2 * t.way + t.look, 1);

    o = options(8, "ring");
    o.announce = "call";
    const double step = t.c.start_ns + t.c.post_ns + t.wire + t.way + t.look;  // until the next block arrived
    const double first = t.c.post_ns + t.way + t.look - t.c.start_ns;          // the address, less the first start
    // Each completion is handled during the next step.
    EXPECT_NEAR(ended_ns(o), first + 7 * step + t.way, 20);
    o.await_sends = "step";
    EXPECT_NEAR(ended_ns(o), first + 7 * (step + t.way), 20);
    o.announce = "step";
    EXPECT_NEAR(ended_ns(o), 7 * (t.c.start_ns + t.handshake + t.c.post_ns + t.wire + 2 * t.way + t.look), 20);
}

TEST(SimAllgather, a_copied_step_has_no_handshake_and_does_not_wait_for_its_completion) {
    Options o = options(2, "doubling");
    o.copy_below = kBytes;
    const Parts t{o.costs};
    const double copy = kBytes;  // 1 GB/s
    EXPECT_NEAR(ended_ns(o), t.c.start_ns + copy + t.c.post_ns + t.wire + t.way + t.look + copy, 1);
    o.costs.copy_bytes_per_s = 2e9;
    EXPECT_NEAR(ended_ns(o), t.c.start_ns + copy + t.c.post_ns + t.wire + t.way + t.look, 1);
}

// The sender copies to the other process of its host.
TEST(SimAllgather, processes_of_a_host_copy) {
    Options o = options(2, "doubling");
    o.per_host = 2;
    const Parts t{o.costs};
    const double handshake = t.c.post_ns + t.c.node_ns + t.look + t.c.post_ns + t.c.node_ns + t.look;
    const double copy = kBytes / 5.0;
    EXPECT_NEAR(ended_ns(o), t.c.start_ns + handshake + t.c.post_ns + copy + 2 * t.c.node_ns + t.look, t.look);
}

// In the second step, both processes of a host send two blocks each over its cable.
TEST(SimAllgather, processes_of_a_host_share_its_cable) {
    Options o = options(4, "doubling");
    o.announce = "call";
    const Parts t{o.costs};
    const double apart = ended_ns(o);
    o.per_host = 2;
    EXPECT_NEAR(ended_ns(o) - apart, t.wire + kBytes / 5.0, t.wire / 20);
}

// Point-to-point messages copy at both ends in each step. The buffer of RDMA holds what earlier steps received.
TEST(SimAllgather, only_the_first_step_of_rdma_copies_at_the_sender) {
    Options o = options(8, "doubling");
    o.copy_below = 4 * kBytes;
    const double both_ends = ended_ns(o);
    o.announce = "call";
    EXPECT_NEAR(both_ends - ended_ns(o), (2 + 4) * double{kBytes}, 20);
}

TEST(SimAllgather, steps_above_the_threshold_are_not_copied) {
    Options o = options(8, "doubling");
    o.announce = "call";
    o.copy_below = kBytes;
    const double slow = ended_ns(o);
    o.costs.copy_bytes_per_s = 1e12;
    EXPECT_NEAR(slow - ended_ns(o), 2 * double{kBytes}, 0.01 * kBytes);
}

TEST(SimAllgather, new_buffers_are_registered_per_step_or_per_call) {
    const double base = 90'000, page = 250;
    for (const char* announce : {"step", "call"}) {
        Options o = options(8, "ring");
        o.announce = announce;
        const double reused = ended_ns(o);
        o.costs.new_buffer_ns = base;
        o.costs.new_buffer_page_ns = page;
        const bool each_step = o.announce == "step";
        // Seven received blocks and the own one, or all blocks at once.
        const double expected = each_step ? 8 * (base + 16 * page) : base + 8 * 16 * page;
        EXPECT_NEAR(ended_ns(o) - reused, expected, 100) << announce;
    }
}

// The first rendezvous registers what the copied steps received.
TEST(SimAllgather, copied_steps_register_nothing) {
    Options o = options(8, "doubling");
    o.copy_below = kBytes;
    const double reused = ended_ns(o);
    o.costs.new_buffer_ns = 90'000;
    EXPECT_NEAR(ended_ns(o) - reused, 3 * 90'000, 100);  // sent blocks, and those received in two steps
}

// Ranks that are ahead or late, on routes that share cables.
TEST(SimAllgather, every_algorithm_and_exchange_moves_all_bytes) {
    for (const char* algorithm : {"doubling", "bruck", "ring", "neighbour"})
        for (const char* announce : {"step", "call"})
            for (const std::uint64_t copy_below : {std::uint64_t{0}, kBytes, 16 * kBytes}) {
                Options o = options(16, algorithm);
                o.fat_tree = "4,4:2";
                o.mapping = "random";
                o.iterations = 5;
                o.messages = 2;
                o.announce = announce;
                o.copy_below = copy_below;
                EXPECT_NEAR(Simulated(o).carried(), 5.0 * 2 * 16 * 15 * kBytes, 1)
                    << algorithm << " " << announce << " " << copy_below;
            }
}

// The channels of direct messages keep the addresses that arrived.
TEST(SimAllgather, little_memory_for_channels_changes_nothing) {
    Options o = options(128, "doubling");
    o.fat_tree = "16,8:16";
    o.announce = "call";
    o.iterations = 3;
    const Simulated all(o);
    o.memory_mbytes = 1;
    const Simulated few(o);
    EXPECT_TRUE(few.result().keeps_weights_only);
    EXPECT_EQ(few.result().iteration_end_ns, all.result().iteration_end_ns);
}

TEST(SimAllgather, its_options_are_checked) {
    Options o = options(8, "tree");
    EXPECT_EQ(flaw(o), "--algorithm 'tree' is not one of doubling, bruck, ring, neighbour");
    o = options(6, "doubling");
    EXPECT_EQ(flaw(o), "--algorithm doubling needs a power of two of ranks, not 6");
    o = options(7, "neighbour");
    EXPECT_EQ(flaw(o), "--algorithm neighbour needs an even number of ranks, not 7");
    o = options(8, "ring");
    o.announce = "once";
    EXPECT_EQ(flaw(o), "--announce 'once' is not one of step, call");
    o.announce = "call";
    o.await_sends = "never";
    EXPECT_EQ(flaw(o), "--await-sends 'never' is not one of step, call");
    EXPECT_EQ(*read_options({"--register-cost", "90us"}, o), "--register-cost '90us' is not BASE,PER_PAGE");
    EXPECT_EQ(*read_options({"--register-cost", "90us,fast"}, o),
              "--register-cost 'fast' is not allowed (0ns to 1000000000ns)");
    EXPECT_FALSE(read_options({"--register-cost=90us,250ns", "--copy-below", "4KiB"}, o));
    EXPECT_EQ(o.costs.new_buffer_ns, 90'000);
    EXPECT_EQ(o.costs.new_buffer_page_ns, 250);
    EXPECT_EQ(o.copy_below, 4096u);
}

TEST(SimAllgather, other_patterns_do_not_have_its_options) {
    Options o = options(8, "bruck");
    o.pattern = "alltoall";
    EXPECT_EQ(flaw(o), "--algorithm: only --pattern allgather has the option");
    o.algorithm = "ring";
    o.announce = "call";
    EXPECT_EQ(flaw(o), "--announce: only --pattern allgather has the option");
    o.announce = "step";
    o.await_sends = "step";
    EXPECT_EQ(flaw(o), "--await-sends: only --pattern allgather has the option");
    o.await_sends = "call";
    o.copy_below = 1;
    EXPECT_EQ(flaw(o), "--copy-below: only --pattern allgather has the option");
    o.copy_below = 0;
    o.costs.new_buffer_ns = 1;
    EXPECT_EQ(flaw(o), "--register-cost: only --pattern allgather has the option");
}

}  // namespace
}  // namespace coop::sim

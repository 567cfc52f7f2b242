// SPDX-License-Identifier: BSD-3-Clause
//
// Whole runs with the product's schedulers, compared with results computed by hand, or with each other.
#include "sim/world.h"

#include <gtest/gtest.h>

#include "simulated.h"

namespace coop::sim {
namespace {

Options options(const std::string& policy) {
    Options o;
    o.fat_tree = "4,2:4";
    o.lmc = 2;
    o.ranks = 8;
    o.iterations = 3;
    o.policy = policy;
    o.slice_ns = 0;
    return o;
}

// A rendezvous of two idle processes: start and RTS, CTS, the bytes, the FIN, with
// every cost on its own.
TEST(SimWorld, the_time_of_a_message_is_the_sum_of_its_parts) {
    Options o = options("original");
    o.pattern = "allreduce";
    o.fat_tree = "2";
    o.lmc = 0;
    o.ranks = 2;
    o.iterations = 1;
    o.costs.reduce_bytes_per_s = 1e12;
    o.costs.register_ns = o.costs.register_page_ns = 0;
    const Simulated run(o);
    const Costs& c = o.costs;
    const double way = c.wire_ns + c.hop_ns, look = c.poll_ns + c.completion_ns, half = 131072 / 1.4;
    // Twice (reduce-scatter, allgather): both sides do the same at the same time, and
    // the completion, two latencies after the last byte, is later than the FIN.
    const double step = c.start_ns + c.post_ns + way + look + c.post_ns + way + look + c.post_ns + half + 2 * way;
    EXPECT_NEAR(run.result().ended_ns, 2 * (step + look) + 0.131072 * 1e3, 20);
}

TEST(SimWorld, every_byte_goes_over_the_cables_whatever_the_policy) {
    for (const char* policy :
         {"original", "hsam:4", "even:4", "bss:4,2", "round_robin:4", "epc:4", "weighted_striping:3"}) {
        const Simulated run(options(policy));
        EXPECT_NEAR(run.carried(), 3.0 * 8 * 7 * 262144, 1) << policy;
        EXPECT_EQ(run.result().messages, 3u * 8 * 7);
        EXPECT_EQ(run.result().replayed, 0u);
    }
}

TEST(SimWorld, the_same_seed_gives_the_same_run) {
    Options o = options("bss:4,2");
    o.mapping = "random";
    o.neighbours = 0;
    const Simulated a(o), b(o);
    EXPECT_EQ(a.result().iteration_end_ns, b.result().iteration_end_ns);
    o.seed = 2;
    EXPECT_NE(Simulated(o).result().iteration_end_ns, a.result().iteration_end_ns);
}

TEST(SimWorld, no_job_is_faster_than_its_cables) {
    for (const char* policy : {"original", "hsam:4", "even:4", "bss:4,2"}) {
        const Simulated run(options(policy));
        EXPECT_GT(run.last_us(), 7 * 262144 / 1.4e3) << policy;
    }
}

TEST(SimWorld, slices_change_little) {
    for (const char* policy : {"original", "hsam:4"}) {
        Options o = options(policy);
        o.fat_tree = "12,4:12";
        o.ranks = 48;
        const double exact = Simulated(o).last_us();
        o.slice_ns = -1;
        EXPECT_NEAR(Simulated(o).last_us() / exact, 1, 0.03) << policy;
    }
}

// With a queue for each outgoing cable, buffers only add latency, so packets and
// flows must agree (within 6 %, as docs/simulation.rst says). With one queue, waiting packets block others.
TEST(SimWorld, packets_take_as_long_as_flows_unless_they_hold_each_other_up) {
    for (const char* policy : {"original", "hsam:4", "bss:4,2"}) {
        Options o = options(policy);
        o.fat_tree = "12,4:12";
        o.ranks = 48;
        const double flows = Simulated(o).last_us();
        o.packets = true;
        o.queues = "output";
        o.buffer_bytes = 65536;
        const Simulated packets(o);
        EXPECT_NEAR(packets.last_us() / flows, 1, 0.06) << policy;
        EXPECT_EQ(packets.carried(), 3.0 * 48 * 47 * 262144) << policy;
        o.queues = "input";
        EXPECT_GT(Simulated(o).last_us(), packets.last_us()) << policy;
    }
}

TEST(SimWorld, every_allgather_moves_all_blocks_in_its_number_of_messages) {
    const std::pair<const char*, std::uint64_t> algorithms[] = {
        {"doubling", 3}, {"bruck", 3}, {"ring", 7}, {"neighbour", 4}};
    for (const auto& [algorithm, steps] : algorithms) {
        Options o = options("original");
        o.pattern = "allgather";
        o.algorithm = algorithm;
        const Simulated run(o);
        EXPECT_EQ(run.result().messages, 3 * 8 * steps) << algorithm;
        EXPECT_NEAR(run.carried(), 3.0 * 8 * 7 * 262144, 1) << algorithm;
    }
}

TEST(SimWorld, a_sample_of_the_steps_has_that_many_messages) {
    Options o = options("original");
    o.every = 3;
    EXPECT_EQ(Simulated(o).result().messages, 3u * 8 * 3);  // steps 1, 4 and 7
    for (const char* pattern : {"ring", "allgather"}) {
        o.pattern = pattern;
        EXPECT_EQ(Simulated(o).result().messages, 3u * 8 * 3) << pattern;
    }
}

// Figure 3.5 of the dissertation: every message of step 12 crosses between leaves,
// and with one path some cables have several messages and others none.
TEST(SimWorld, a_step_of_the_ring_crowds_some_cables_between_the_leaves) {
    Options o;
    o.fat_tree = "12,2:12";
    o.pattern = "ring";
    o.ranks = 24;
    o.iterations = 1;
    o.only_step = 12;
    o.policy = "original";
    const Simulated run(o);
    const Topology& t = run.world.topology();
    double most = 0, all = 0;
    for (const LinkIndex link : t.ports[t.find("leaf0")]) {
        if (t.is_host(t.links[link].to)) continue;
        const double messages = run.world.network().bytes_over(link) / static_cast<double>(o.bytes);
        most = std::max(most, messages);
        all += messages;
    }
    EXPECT_NEAR(all, 12, 1e-6);
    EXPECT_GE(most, 2);
}

TEST(SimWorld, adaptive_stripes_avoid_the_hot_spots) {
    Options o;
    o.fat_tree = "12,2:12";
    o.pattern = "ring";
    o.ranks = 24;
    o.iterations = 4;
    o.slice_ns = -1;
    o.policy = "original";
    const double original = Simulated(o).last_us();
    o.policy = "hsam:4";
    const double hsam = Simulated(o).last_us();
    EXPECT_LT(hsam, 0.85 * original);
}

// With weights of 16 bits and a new scheduler for each message, the times change by less than 3 %.
TEST(SimWorld, channels_that_keep_their_weights_only_do_as_well) {
    for (const char* policy : {"hsam:4", "bss:4,2"}) {
        Options o = options(policy);
        o.fat_tree = "12,4:12";
        o.ranks = 48;
        o.iterations = 6;
        o.slice_ns = -1;
        o.probe_every = 0;
        const Simulated all(o);
        o.memory_mbytes = 1;
        const Simulated few(o);
        EXPECT_FALSE(all.result().keeps_weights_only);
        EXPECT_TRUE(few.result().keeps_weights_only);
        EXPECT_NEAR(few.last_us() / all.last_us(), 1, 0.03) << policy;
    }
}

TEST(SimWorld, a_progress_engine_that_is_late_costs_time) {
    Options o = options("hsam:4");
    const double at_once = Simulated(o).last_us();
    o.costs.late_ns = 50'000;
    EXPECT_GT(Simulated(o).last_us(), at_once);
}

TEST(SimWorld, neighbours_take_bandwidth_and_the_job_still_ends) {
    Options o = options("original");
    o.fat_tree = "12,4:4";
    o.mapping = "random";
    const double alone = Simulated(o).last_us();
    o.neighbours = 2;
    EXPECT_GT(Simulated(o).last_us(), alone);
}

TEST(SimWorld, a_lost_spine_costs_replays_and_no_message) {
    for (const char* policy : {"original", "hsam:4", "bss:4,2", "round_robin:4", "packets"}) {
        Options o = options(policy == std::string("packets") ? "hsam:4" : policy);
        o.packets = policy == std::string("packets");
        o.iterations = 40;
        o.lose = "spine2";
        o.lose_ns = 5e6;
        o.costs.retry_ns = 1e6;
        o.costs.manager_ns = 10e6;
        const Simulated run(o);
        EXPECT_EQ(run.result().messages, 40u * 8 * 7);
        EXPECT_GT(run.result().replayed, 0u) << policy;
        EXPECT_GE(run.carried(), 40.0 * 8 * 7 * 262144 - 1) << policy;
    }
}

TEST(SimPlan, an_impossible_plan_gives_a_sentence) {
    Options o = options("nonsense:3");
    EXPECT_NE(flaw(o).find("--policy: there is no policy 'nonsense:3'"), std::string::npos);
    o = options("hsam:8");
    EXPECT_EQ(flaw(o), "--policy 'hsam:8' needs 8 paths; with LMC 2 there are 4");
    o = options("original");
    o.ranks = 9;
    EXPECT_EQ(flaw(o), "9 ranks do not fit: 8 hosts are free, and each takes one");
    o = options("original");
    o.lose = "leaf1";
    EXPECT_NE(flaw(o).find("--lose 'leaf1': without it the topology is not connected: h4"), std::string::npos);
    o.lose = "spine9";
    EXPECT_EQ(flaw(o), "--lose 'spine9': there is no such switch, and no such cable");
    o = options("original");
    o.topology = "/no/such/file";
    EXPECT_EQ(flaw(o), "cannot read '/no/such/file'");
    o = options("original");
    o.fat_tree = "16,16,16:16,16";
    o.lmc = 4;
    EXPECT_NE(flaw(o).find("LMC 4 does not fit"), std::string::npos);
    o = options("original");
    o.pattern = "gather";
    EXPECT_NE(flaw(o).find("--pattern 'gather' is not one of"), std::string::npos);
    o.pattern = "allreduce";
    o.every = 2;
    EXPECT_EQ(flaw(o), "--every 2: ring, alltoall and a ring allgather have steps 1 to 7, only these have the option");
    o.pattern = "alltoall";
    o.every = 8;
    EXPECT_EQ(flaw(o), "--every 8: ring, alltoall and a ring allgather have steps 1 to 7, only these have the option");
    o.every = 1;
    o.blocking = "some";
    EXPECT_EQ(flaw(o), "--blocking 'some' is not one of none, hosts, cables");
    o.blocking = "cables";
    o.packets = true;
    EXPECT_EQ(flaw(o), "--blocking cables is for flows: not with --packets");
    o.blocking = "none";
    o.queues = "many";
    EXPECT_EQ(flaw(o), "--queues 'many' is not one of input, output");
    o.queues = "input";
    o.pattern = "ring";
    o.only_step = 8;
    EXPECT_EQ(flaw(o), "--only-step 8: the ring has steps 1 to 7, only this pattern has the option");
}

TEST(SimOptions, a_bad_value_is_named_with_its_range) {
    Options o;
    EXPECT_EQ(*read_options({"--lmc", "9"}, o), "--lmc '9' is not allowed (0 to 5)");
    EXPECT_EQ(*read_options({"--host-rate", "fast"}, o), "--host-rate 'fast' is not allowed (1MB/s to 1e+06MB/s)");
    EXPECT_EQ(*read_options({"--ranks=2.5"}, o), "--ranks '2.5' is not allowed (2 to 40000)");
    EXPECT_EQ(*read_options({"--speed", "9"}, o), "there is no option '--speed' (--help lists them)");
    EXPECT_EQ(*read_options({"--seed"}, o), "--seed needs a value");
    EXPECT_FALSE(read_options({"--bytes=64KiB", "--lose-at", "3ms", "--blocking=cables", "--packets"}, o));
    EXPECT_EQ(o.bytes, 65536u);
    EXPECT_EQ(o.lose_ns, 3e6);
    EXPECT_EQ(o.blocking, "cables");
    EXPECT_TRUE(o.packets);
}

}  // namespace
}  // namespace coop::sim

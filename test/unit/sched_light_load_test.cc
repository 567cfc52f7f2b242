// SPDX-License-Identifier: BSD-3-Clause
//
// sched/feedback.h and scheduler.h on rails that are never full: one short message at a time, whose stripes take little
// longer than latency alone. Nothing can be gained there, but the weights must stay fit for a later load.
#include <gtest/gtest.h>

#include <algorithm>

#include "coop/sched/scheduler.h"
#include "sched_sim.h"

namespace coop::sched {
namespace {

using sim::Channel;
using sim::kKiB;
using sim::kMiB;

constexpr double kFast = 12'500, kSlow = 250;  // MB/s of a rail

SchedConfig adaptive() {
    SchedConfig config;
    config.large_policy = Policy::kAdaptiveStriping;
    return config;
}

void make_noisy(Channel& channel) {
    channel.latency_ns = 1500;
    channel.post_ns = 150;
    channel.jitter_ns = 800;
    channel.late_every = 50;  // the process does not run for a while
    channel.late_ns = 200'000;
}

// The largest deviation of a weight from equal weights, as a fraction, while `send(channel, i)` sends message i of
// `count`.
template <class Send>
double drift(Channel& channel, std::size_t rails, int count, Send send) {
    double most = 0;
    for (int i = 0; i < count; ++i) {
        send(channel, i);
        for (RailIndex rail = 0; rail < rails; ++rail)
            most = std::max(most, std::abs(channel.weight(rail) * static_cast<double>(rails) - 1));
    }
    return most;
}

TEST(Site31LightLoad, equal_rails_keep_equal_weights_under_noise) {
    for (std::size_t rails : {2u, 4u})
        for (double rate : {kSlow, kFast})
            for (std::uint64_t bytes : {16 * kKiB, 64 * kKiB, 256 * kKiB}) {
                Channel channel(adaptive(), std::vector<double>(rails, rate));
                make_noisy(channel);
                const double most = drift(channel, rails, 3000,
                                          [&](Channel& c, int) { c.send(1, bytes, 1), c.wait(20'000); });
                EXPECT_LT(most, 0.05) << rails << " rails of " << rate << " MB/s, messages of " << bytes;
            }
}

TEST(Site31LightLoad, messages_of_many_lengths_do_not_favour_a_rail) {
    for (std::size_t rails : {2u, 4u}) {
        Channel channel(adaptive(), std::vector<double>(rails, kFast));
        make_noisy(channel);
        const double most = drift(channel, rails, 4000,
                                  [](Channel& c, int i) { c.send(1, 16 * kKiB << (i * 7 + i / 5) % 5, 1); });
        EXPECT_LT(most, 0.05) << rails;
    }
}

// A fragment uses one rail, before or after a stripe, and gives no information about the others.
TEST(Site31LightLoad, fragments_are_no_measurement_of_bandwidth) {
    for (std::size_t rails : {2u, 4u}) {
        Channel channel(adaptive(), std::vector<double>(rails, kFast));
        make_noisy(channel);
        const double most = drift(channel, rails, 3000, [](Channel& c, int i) {
            for (int j = 0; j < i % 3; ++j) c.send_fragment(12 * kKiB);
            c.send(1, 256 * kKiB, 2);
        });
        EXPECT_LT(most, 0.08) << rails;
    }
}

// Whole operations that take turns on rails with nearly empty queues: short ones on one rail, long ones on the other.
TEST(Site31LightLoad, messages_that_take_turns_are_no_measurement_of_bandwidth) {
    SchedConfig config;
    config.large_policy = Policy::kEpc;
    Channel channel(config, {kFast, kFast});
    make_noisy(channel);
    for (int i = 0; i < 500; ++i) {
        channel.begin(16 * kKiB, Marker::kNonblocking);
        channel.send(1, 64 * kKiB, 2, Marker::kNonblocking);
    }
    EXPECT_NEAR(channel.weight(0), 0.5, 0.01);
}

// One sweep finds them all, as in a program that computes between its calls: the last one posted is not the fastest.
TEST(Site31LightLoad, stripes_found_at_the_same_time_are_equally_fast) {
    for (std::size_t rails : {2u, 4u}) {
        Channel channel(adaptive(), std::vector<double>(rails, kFast));
        channel.latency_ns = 1500;
        channel.post_ns = 500;
        channel.sweep_every_ns = 50'000;
        const double most = drift(channel, rails, 2000, [](Channel& c, int) { c.send(1, 256 * kKiB, 1); });
        EXPECT_LT(most, 0.02) << rails;
    }
}

// --- a change of the rates -----------------------------------------------------------------------------------------

// The number of messages until `rail` gets a stripe of at least `part` of a message; `most` if it never does.
int messages_until(Channel& channel, RailIndex rail, double part, std::uint64_t bytes, int most, bool with_fragments) {
    for (int i = 0; i < most; ++i) {
        if (with_fragments) channel.send_fragment(12 * kKiB), channel.send_fragment(12 * kKiB);
        channel.send(1, bytes, 4);
        for (const Stripe& stripe : channel.scheduler.last_large())
            if (stripe.rail == rail && static_cast<double>(stripe.length_bytes) >= part * static_cast<double>(bytes))
                return i;
    }
    return most;
}

TEST(Site31LightLoad, a_rail_that_becomes_slow_soon_loses_its_weight) {
    for (std::uint64_t bytes : {64 * kKiB, 256 * kKiB}) {
        Channel channel(adaptive(), {kSlow, kSlow});
        make_noisy(channel);
        channel.send(50, bytes, 1);
        channel.set_rate_at(channel.sent(), 1, 10);
        channel.send(20, bytes, 1);
        EXPECT_LT(channel.weight(1), 0.15) << bytes;
    }
}

// Probes detect it: one in 8 messages, then each message until enough measurements agree.
TEST(Site31Probes, a_rail_that_becomes_fast_again_is_soon_detected) {
    for (double rate : {kSlow, kFast})
        for (std::uint64_t bytes : {64 * kKiB, 256 * kKiB, kMiB})
            for (bool with_fragments : {false, true}) {
                Channel channel(adaptive(), {rate, rate});
                make_noisy(channel);
                channel.set_rate_at(0, 1, rate / 100);
                channel.send(60, bytes, 1);
                ASSERT_LT(channel.weight(1), 0.2) << rate << ' ' << bytes;
                channel.set_rate_at(channel.sent(), 1, rate);
                EXPECT_LE(messages_until(channel, 1, 0.3, bytes, 200, with_fragments), 40)
                    << rate << " MB/s, " << bytes << (with_fragments ? " with fragments" : "");
            }
}

// Fragments that are always queued on the rail do not prevent its measurement.
TEST(Site31Probes, do_not_starve_behind_fragments) {
    SchedConfig config = adaptive();
    config.weights = {{1'000'000, 1}, 2};
    Scheduler scheduler(config, sim::rails_of(2));
    scheduler.on_posted(1, 12 * kKiB, kNotMeasured);
    bool probed = false;
    for (std::uint32_t i = 0; i <= config.probe_every; ++i) {
        const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, i);
        probed = probed || schedule.header.probed == 1;
    }
    EXPECT_TRUE(probed);
}

}  // namespace
}  // namespace coop::sched

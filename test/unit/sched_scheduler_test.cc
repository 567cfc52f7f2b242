// SPDX-License-Identifier: BSD-3-Clause
//
// sched/scheduler.h: queued bytes, states of rails, probes, and the description of a choice.
#include "sched_rails.h"

#include <random>

namespace coop::sched {
namespace {

using namespace test;

constexpr unsigned kRandomSeed = 5021;

// Four rails, of which 0 and 2 have never opened.
RailSet with_two_open(std::size_t first) {
    RailSet rails;
    for (RailIndex rail = 0; rail < 4; ++rail)
        EXPECT_TRUE(rails.add(rails_of(1)[0].info, rail % 2 != 0 ? RailState::kUp : RailState::kDown));
    const std::vector<std::size_t> order{first, (first + 1) % 4, (first + 2) % 4, (first + 3) % 4};
    rails.set_order(order);
    return rails;
}

TEST(RailsThatNeverOpened, leave_the_others_their_numbers_and_weights) {
    SchedConfig config = large_by(Policy::kWeightedStriping);
    config.weights = {{40, 30, 20, 10}, 4};
    Scheduler scheduler(config, with_two_open(0));
    const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{1, 3}));
    EXPECT_EQ(schedule[0].weight, 30u);
    EXPECT_EQ(schedule[1].weight, 10u);
    EXPECT_DOUBLE_EQ(scheduler.rails().share(1), 0.75);
    EXPECT_DOUBLE_EQ(scheduler.rails().share(3), 0.25);
    EXPECT_EQ(scheduler.rails().share(0), 0);
}

TEST(RailsThatNeverOpened, are_skipped_in_the_order_of_use) {
    const SchedConfig config = small_by(Policy::kBinding);
    for (const auto& [first, bound] : {std::pair{0u, 1}, {1u, 1}, {2u, 3}, {3u, 3}}) {
        Scheduler scheduler(config, with_two_open(first));
        EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails(2, static_cast<RailIndex>(bound)))) << first;
    }
}

TEST(RailsThatNeverOpened, are_no_paths_of_bss) {
    for (std::uint32_t paths = 0; paths <= 4; ++paths)
        for (std::uint32_t batch = 0; batch <= (paths != 0 ? paths : 4); ++batch) {
            SchedConfig config = large_by(Policy::kBss);
            config.bss_paths = paths;
            config.bss_batch = batch;
            Scheduler scheduler(config, with_two_open(0));
            const bool both = paths != 1 && batch != 1;
            EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (both ? Rails{1, 3} : Rails{1}))
                << paths << ' ' << batch;
        }
}

TEST(RailsThatNeverOpened, are_used_once_they_come_up) {
    SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, with_two_open(0));
    scheduler.set_state(2, RailState::kUp);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0).rails(), 0b1110u);
}

TEST(Backlog, counts_as_a_part_of_the_stripe) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, 512 * kKiB, 0);
    Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    ASSERT_EQ(schedule.size(), 2u);
    EXPECT_EQ(schedule[0].length_bytes, 768 * kKiB);
    EXPECT_EQ(schedule[1].length_bytes, 256 * kKiB);
    scheduler.on_posted(1, kMiB, 0);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
}

// A long stripe gives no measurement until it completes. Its progress is estimated from the rate.
TEST(Backlog, excludes_what_a_rail_has_probably_done) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, kMiB, 0);
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_completed(rail, kMiB, 0, kMiB);  // a byte in each ns
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, kMiB, kMiB);
    const Schedule after_half = scheduler.make_schedule(kMiB, Marker::kNone, kMiB + kMiB / 2);
    EXPECT_EQ(after_half[0].length_bytes, after_half[1].length_bytes);
    const auto left = [&](std::uint64_t now_ns) {
        const Rail& rail = scheduler.rails()[0];
        return rail.in(Direction::kOut).left_bytes(now_ns, rail.rate);
    };
    EXPECT_NEAR(left(kMiB + kMiB / 2), 0.5 * kMiB, 1);
    EXPECT_EQ(left(kMiB), kMiB);
    EXPECT_EQ(left(2 * kMiB), 0);
    EXPECT_EQ(left(2 * kMiB + kMiB / 4), kMiB / 4) << "overdue";
    EXPECT_EQ(left(9 * kMiB), kMiB) << "the rate has changed";
    scheduler.on_waiting(0, kMiB);
    EXPECT_EQ(left(2 * kMiB), kMiB) << "a waiting stripe has made no progress";
}

TEST(Backlog, lets_a_message_wait_once_each_rail_has_more_than_its_share_of_two) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
    scheduler.on_posted(0, 8 * kMiB, 0);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone)) << "the other rail is idle";
    scheduler.on_posted(1, kMiB, 0);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
    scheduler.on_waiting(1, 512 * kKiB);
    EXPECT_TRUE(scheduler.may_wait(kMiB, Marker::kNone));
    EXPECT_FALSE(scheduler.may_wait(2 * kMiB, Marker::kNone));
    scheduler.on_completed(0, 8 * kMiB, 0, 1000);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
}

TEST(Backlog, lets_no_message_wait_that_is_not_cut_by_measured_weights) {
    for (Policy policy : {Policy::kEvenStriping, Policy::kWeightedStriping, Policy::kRoundRobin}) {
        const SchedConfig config = large_by(policy);
        Scheduler scheduler(config, rails_of(2));
        for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, 64 * kMiB, 0);
        EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone)) << name(policy);
    }
}

TEST(Backlog, of_unused_rails_does_not_matter) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights.count = 2;
    config.weights.of[0] = 1'000'000;
    config.weights.of[1] = 1;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(0, 64 * kMiB, 0);
    EXPECT_TRUE(scheduler.may_wait(kMiB, Marker::kNone));
    SchedConfig two = large_by(Policy::kBss);
    two.bss_batch = 2;
    Scheduler best(two, rails_of(4));
    for (RailIndex rail = 0; rail < 2; ++rail) best.on_posted(rail, 64 * kMiB, 0);
    EXPECT_TRUE(best.may_wait(kMiB, Marker::kNone));
}

TEST(Backlog, does_not_count_if_asked_so) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.count_backlog = false;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, 64 * kMiB, 0);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0)[1].length_bytes, kMiB / 2);
}

TEST(RailStates, a_suspect_rail_is_used_only_while_no_other_is_up) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    scheduler.set_state(0, RailState::kSuspect);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
    scheduler.set_state(1, RailState::kDown);
    const Schedule schedule = scheduler.make_schedule(64, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{0}));
    EXPECT_TRUE(schedule.header.suspect);
    scheduler.set_state(1, RailState::kUp);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
}

TEST(RailStates, without_a_rail_there_is_no_stripe) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.set_state(rail, RailState::kDown);
    for (std::uint64_t bytes : {std::uint64_t{64}, kMiB}) {
        EXPECT_TRUE(scheduler.make_schedule(bytes, Marker::kNone, 0).empty());
    }
    EXPECT_EQ(scheduler.describe_last_small(), "64 bytes cannot be sent: no rail is left");
    EXPECT_EQ(scheduler.describe_last_large(), "1048576 bytes cannot be sent: no rail is left");
    scheduler.set_state(1, RailState::kUp);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
}

TEST(Markers, collective_goes_before_blocking) {
    EXPECT_EQ(marker_of(true, false), Marker::kCollective);
    EXPECT_EQ(marker_of(true, true), Marker::kCollective);
    EXPECT_EQ(marker_of(false, true), Marker::kBlocking);
    EXPECT_EQ(marker_of(false, false), Marker::kNonblocking);
}

TEST(RailSet, has_room_for_32) {
    RailSet rails = rails_of(kMaxRails);
    EXPECT_EQ(rails.size(), kMaxRails);
    EXPECT_FALSE(rails.add({}));
    EXPECT_EQ(rails.all(), UINT32_MAX);
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0).size(), kMaxRails);
}

TEST(Describe, is_a_sentence_with_what_decided) {
    SchedConfig config = large_by(Policy::kWeightedStriping);
    config.weights = {{62, 38}, 2};
    Scheduler scheduler(config, rails_of(2));
    (void)scheduler.make_schedule(64, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_small(),
              "64 bytes go whole on rail 0 (shortest_queue): below the striping threshold of 16384 bytes");
    (void)scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go in 2 stripes on rails 0, 1 by fixed weight 62/38 (weighted_striping): not below the "
              "striping threshold of 16384 bytes");
    config.large_policy = Policy::kEvenStriping;
    (void)scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go in 2 stripes on rails 0, 1, evenly (even_striping): not below the striping threshold "
              "of 16384 bytes");
    config.large_policy = Policy::kEpc;
    (void)scheduler.make_schedule(kMiB, Marker::kBlocking, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go in 2 stripes on rails 0, 1 by measured weight 62/38 (epc: adaptive_striping): the call "
              "is blocking");
    scheduler.set_state(1, RailState::kDown);
    scheduler.set_state(0, RailState::kSuspect);
    (void)scheduler.make_schedule(kMiB, Marker::kNonblocking, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go whole on rail 0 (epc: adaptive_striping): the call is nonblocking, but the message is "
              "not below the limit of 131072 bytes"
              "; no rail is up, these are suspect");
}

TEST(OneRail, carries_messages_of_every_length_and_is_not_measured) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(3));
    EXPECT_FALSE(scheduler.has_one_usable());
    for (const RailIndex rail : {0, 2}) scheduler.set_state(rail, RailState::kDown);
    ASSERT_TRUE(scheduler.has_one_usable());
    EXPECT_EQ(scheduler.rail_of_any(1 << 20, Direction::kIn), 1);
    EXPECT_EQ(scheduler.describe_last_large(), "1048576 bytes go whole on rail 1 (binding): no other rail is usable");
    EXPECT_FALSE(scheduler.last_large().is_measured());
    EXPECT_EQ(scheduler.last_large().header.direction, Direction::kIn);
    EXPECT_TRUE(scheduler.last_small().empty());
    EXPECT_EQ(scheduler.rail_of_any(64, Direction::kOut), 1);
    EXPECT_EQ(scheduler.last_small().header.reason, Reason::kSmall);
    EXPECT_EQ(scheduler.last_small()[0].rail, 1);
    scheduler.set_state(1, RailState::kSuspect);
    scheduler.rail_of_any(1 << 20, Direction::kOut, Reason::kWhole);
    EXPECT_EQ(
        scheduler.describe_last_large(),
        "1048576 bytes go whole on rail 1 (binding): the caller does not permit stripes; no rail is up, these are "
        "suspect");
}

TEST(Describe, keeps_the_last_small_and_the_last_large_message_apart) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails_of(2));
    (void)scheduler.make_schedule(config.striping_threshold, Marker::kNone, 0);
    EXPECT_TRUE(scheduler.last_small().empty());
    (void)scheduler.make_schedule(config.striping_threshold - 1, Marker::kNone, 0);
    EXPECT_EQ(scheduler.last_small().header.bytes, config.striping_threshold - 1);
    EXPECT_EQ(scheduler.last_large().header.bytes, config.striping_threshold);
}

TEST(Describe, names_a_rail_that_is_only_probed) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 3;
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
    const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{0, 1}));
    EXPECT_EQ(schedule[1].length_bytes, 8 * kKiB);
    EXPECT_NE(scheduler.describe_last_large().find("; rail 1 only to measure it again"), std::string::npos);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0})) << "its turn is over";
}

TEST(Probes, do_not_queue_behind_what_is_under_way) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 1;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, kMiB, 0);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
    scheduler.on_completed(1, kMiB, 0, 1000);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 1000)), (Rails{0, 1}));
}

TEST(Probes, leave_a_message_that_is_too_short_to_be_cut_whole) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 1;
    config.min_stripe = 64 * kKiB;
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(rails_in(scheduler.make_schedule(128 * kKiB - 1, Marker::kNone, 0)), (Rails{0}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(128 * kKiB, Marker::kNone, 0)), (Rails{0, 1}));
}

TEST(Describe, every_reason_has_a_text_of_its_own) {
    std::map<std::string, int> texts;
    for (std::size_t i = 0; i < kReasons; ++i) ++texts[text(static_cast<Reason>(i))];
    EXPECT_EQ(texts.size(), kReasons);
    EXPECT_EQ(texts.count("unknown"), 0u);
    EXPECT_STREQ(text(static_cast<Reason>(kReasons)), "unknown") << "kReasons counts them all";
}

// Random policies, rails, states and sizes, with completions that may never come.
class AnyChannel {
public:
    explicit AnyChannel(std::mt19937_64& random)
        : random_(random), config_(any_config()), scheduler_(config_, rails_from(below(rails_), rails_)) {}

    void step() {
        ++now_ns_;
        if (below(20) == 0) scheduler_.set_state(rail(), static_cast<RailState>(below(3)));
        while (!under_way_.empty() && below(3) == 0) finish_one();
        const std::uint64_t bytes = random_() >> below(64);
        const RailMask usable = scheduler_.rails().usable();
        const Schedule schedule = scheduler_.make_schedule(bytes >> 2, static_cast<Marker>(below(kMarkers)), now_ns_);
        check(schedule, bytes >> 2, usable);
        if (below(8) == 0) check_whole(scheduler_.make_whole(bytes >> 2), bytes >> 2, usable);
        for (const Stripe& stripe : schedule)
            if (under_way_.size() < 40) post(stripe);
    }

private:
    struct UnderWay {
        RailIndex rail;
        std::uint64_t bytes, posted_ns;
    };

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    RailIndex rail() { return static_cast<RailIndex>(below(rails_)); }

    SchedConfig any_config() {
        rails_ = 1 + below(kMaxRails);
        SchedConfig config;
        config.small_policy = static_cast<Policy>(below(5));
        config.large_policy = static_cast<Policy>(below(kPolicies));
        config.epc_striping = static_cast<Policy>(5 + below(4));
        config.epc_multiplexing = static_cast<Policy>(below(5));
        config.striping_threshold = below(1 << below(20));
        config.min_stripe = 1 + below(1 << below(16));
        config.alignment = below(2) ? 0 : 1u << below(13);
        config.window = static_cast<std::uint32_t>(1 + below(9));
        config.alpha_percent = static_cast<std::uint32_t>(1 + below(100));
        config.probe_every = static_cast<std::uint32_t>(below(5));
        config.count_backlog = below(2);
        config.bss_paths = static_cast<std::uint32_t>(below(rails_ + 1));
        config.bss_batch = static_cast<std::uint32_t>(below(bss_paths(config, rails_) + 1));
        if (below(2)) {
            config.weights.count = rails_;
            for (std::size_t i = 0; i < rails_; ++i)
                config.weights.of[i] = static_cast<std::uint32_t>(1 + below(1 + below(kMaxWeight)));
        }
        EXPECT_EQ(defect(config, rails_), std::nullopt);
        return config;
    }

    void post(const Stripe& stripe) {
        const std::uint64_t posted_ns = below(4) == 0 ? kNotMeasured : now_ns_;
        scheduler_.on_posted(stripe.rail, stripe.length_bytes, posted_ns);
        under_way_.push_back({stripe.rail, stripe.length_bytes, posted_ns});
    }

    void finish_one() {
        const std::size_t index = below(under_way_.size());
        const UnderWay done = under_way_[index];
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
        now_ns_ += below(2) * below(1 << below(30));
        if (below(10) == 0) scheduler_.on_aborted(done.rail, done.bytes, done.posted_ns);
        else scheduler_.on_completed(done.rail, done.bytes, done.posted_ns, now_ns_);
    }

    void check_whole(const Schedule& schedule, std::uint64_t bytes, RailMask usable) {
        check(schedule, bytes, usable);
        ASSERT_LE(schedule.size(), 1u);
    }

    void check(const Schedule& schedule, std::uint64_t bytes, RailMask usable) {
        SCOPED_TRACE(describe(schedule, config_));
        ASSERT_EQ(schedule.empty(), usable == 0);
        const StripeLimits& limits = scheduler_.limits();
        std::uint64_t at = 0;
        RailMask seen = 0;
        for (const Stripe& stripe : schedule) {
            ASSERT_EQ(stripe.offset_bytes, at);
            ASSERT_TRUE(schedule.size() == 1 || (stripe.length_bytes >= limits.min && at % limits.alignment == 0));
            ASSERT_NE(usable & bit_of(stripe.rail), 0u) << "a rail that is down, or suspect although another is up";
            ASSERT_EQ(seen & bit_of(stripe.rail), 0u);
            ASSERT_GT(stripe.weight, 0u);
            seen |= bit_of(stripe.rail);
            at += stripe.length_bytes;
        }
        ASSERT_TRUE(schedule.empty() || at == bytes);
        double sum = 0;
        for (RailIndex rail : each(scheduler_.rails().all())) sum += scheduler_.rails()[rail].weight;
        ASSERT_NEAR(sum, kTotalWeight, 1);
    }

    std::mt19937_64& random_;
    std::size_t rails_ = 0;
    const SchedConfig config_;
    Scheduler scheduler_;
    std::vector<UnderWay> under_way_;
    std::uint64_t now_ns_ = 1;
};

TEST(AnySchedule, covers_its_message_exactly_on_rails_that_may_be_used) {
    for (unsigned seed = kRandomSeed; seed < kRandomSeed + 300; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        std::mt19937_64 random(seed);
        AnyChannel channel(random);
        for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) channel.step();
        if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace coop::sched

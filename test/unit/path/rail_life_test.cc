// SPDX-License-Identifier: BSD-3-Clause
//
// path/rail_life.h: every event in every state, and a model of both sides in which every datagram can cross others, be
// lost, come twice or come late.
#include "coop/path/rail_life.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace coop::path {
namespace {

using Do = LifeDo;
using On = LifeEvent;
using Is = LifeState;

constexpr std::uint64_t kStart = 1'000'000'000'000;
constexpr LifePatience kPatience;

std::vector<Do> list(const LifeActions& actions) { return {actions.begin(), actions.end()}; }

// A life in this state. The peer's CLOSED has arrived or not; generation 1.
RailLife in_state(Is state, bool peer_closed) {
    RailLife life;
    if (state == Is::kUp) return life;
    static_cast<void>(life.on(On::kTrouble, kStart));
    if (peer_closed || state == Is::kReopening || state == Is::kSuspect)
        static_cast<void>(life.on(On::kPeerClosed, kStart, 1));
    if (state == Is::kClosing) return life;
    static_cast<void>(life.on(On::kDrained, kStart));
    if (state == Is::kDown) return life;
    static_cast<void>(life.on(On::kTick, kStart + kPatience.retry));
    if (state == Is::kReopening) return life;
    static_cast<void>(life.on(On::kEstablished, kStart));
    return life;
}

struct Cell {
    Is before;
    bool peer_closed;
    On event;
    int generation;  // less that of the life
    Is after;
    std::vector<Do> actions;
    int skips = 0;  // generations
};

const Cell kCells[] = {
    {Is::kUp, false, On::kTrouble, 0, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kUp, false, On::kPortDown, 0, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kUp, false, On::kDrained, 0, Is::kUp, {}},
    {Is::kUp, false, On::kPeerDown, 0, Is::kClosing, {Do::kStop}},
    {Is::kUp, false, On::kPeerDown, 1, Is::kUp, {}},
    {Is::kUp, false, On::kPeerClosed, 0, Is::kClosing, {Do::kStop}},
    {Is::kUp, false, On::kPeerClosed, -1, Is::kUp, {}},
    {Is::kUp, false, On::kPeerAsks, 1, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kUp, false, On::kPeerAsks, 0, Is::kUp, {}},
    {Is::kUp, false, On::kEstablished, 0, Is::kUp, {}},
    {Is::kUp, false, On::kGivenUp, 0, Is::kUp, {}},
    {Is::kUp, false, On::kPortActive, 0, Is::kUp, {}},
    {Is::kUp, false, On::kTick, 0, Is::kUp, {}},

    {Is::kSuspect, false, On::kTrouble, 0, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kSuspect, false, On::kPortDown, 0, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kSuspect, false, On::kDrained, 0, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kPeerDown, 0, Is::kClosing, {Do::kStop}},
    {Is::kSuspect, false, On::kPeerDown, -1, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kPeerClosed, 0, Is::kClosing, {Do::kStop}},
    {Is::kSuspect, false, On::kPeerClosed, -1, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kPeerAsks, 1, Is::kClosing, {Do::kStop, Do::kSendDown}},
    {Is::kSuspect, false, On::kPeerAsks, 0, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kEstablished, 0, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kGivenUp, 0, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kPortActive, 0, Is::kSuspect, {}},
    {Is::kSuspect, false, On::kTick, 0, Is::kUp, {Do::kTrust}},

    {Is::kClosing, false, On::kTrouble, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kPortDown, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kDrained, 0, Is::kDown, {Do::kRepeatSafe, Do::kSendClosed}},
    {Is::kClosing, true, On::kDrained, 0, Is::kDown, {Do::kRepeatSafe, Do::kRepeatAll, Do::kSendClosed}},
    {Is::kClosing, false, On::kPeerDown, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kPeerClosed, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kPeerAsks, 1, Is::kClosing, {}},
    {Is::kClosing, false, On::kEstablished, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kGivenUp, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kPortActive, 0, Is::kClosing, {}},
    {Is::kClosing, false, On::kTick, 0, Is::kClosing, {Do::kSendDown}},
    {Is::kClosing, true, On::kTick, 0, Is::kClosing, {}},

    {Is::kDown, false, On::kTrouble, 0, Is::kDown, {}},
    {Is::kDown, false, On::kPortDown, 0, Is::kDown, {}},
    {Is::kDown, false, On::kDrained, 0, Is::kDown, {}},
    {Is::kDown, false, On::kPeerDown, 0, Is::kDown, {Do::kSendClosed}},
    {Is::kDown, true, On::kPeerDown, 0, Is::kDown, {Do::kSendClosed}},
    {Is::kDown, true, On::kPeerDown, -1, Is::kDown, {}},
    {Is::kDown, true, On::kPeerDown, 1, Is::kDown, {Do::kSendClosed}, 1},
    {Is::kDown, false, On::kPeerDown, 1, Is::kDown, {Do::kRepeatAll, Do::kSendClosed}, 1},
    {Is::kDown, false, On::kPeerClosed, 0, Is::kDown, {Do::kRepeatAll}},
    {Is::kDown, true, On::kPeerClosed, 0, Is::kDown, {}},
    {Is::kDown, false, On::kPeerClosed, 1, Is::kDown, {Do::kRepeatAll}, 1},
    {Is::kDown, false, On::kPeerClosed, -1, Is::kDown, {}},
    {Is::kDown, false, On::kPeerAsks, 1, Is::kDown, {Do::kSendClosed}},
    {Is::kDown, true, On::kPeerAsks, 1, Is::kReopening, {Do::kReopen}},
    {Is::kDown, true, On::kPeerAsks, 0, Is::kDown, {}},
    {Is::kDown, true, On::kEstablished, 0, Is::kDown, {}},
    {Is::kDown, true, On::kGivenUp, 0, Is::kDown, {}},
    {Is::kDown, false, On::kPortActive, 0, Is::kDown, {Do::kSendClosed}},
    {Is::kDown, true, On::kPortActive, 0, Is::kDown, {}},
    {Is::kDown, false, On::kTick, 0, Is::kDown, {Do::kSendClosed}},
    {Is::kDown, true, On::kTick, 0, Is::kReopening, {Do::kReopen}},

    {Is::kReopening, true, On::kTrouble, 0, Is::kReopening, {}},
    {Is::kReopening, true, On::kPortDown, 0, Is::kReopening, {}},
    {Is::kReopening, true, On::kDrained, 0, Is::kReopening, {}},
    {Is::kReopening, true, On::kPeerDown, 0, Is::kReopening, {Do::kSendClosed}},
    {Is::kReopening, true, On::kPeerDown, -1, Is::kReopening, {}},
    {Is::kReopening, true, On::kPeerDown, 1, Is::kDown, {Do::kAbandon, Do::kSendClosed}, 1},
    {Is::kReopening, true, On::kPeerClosed, 0, Is::kReopening, {}},
    {Is::kReopening, true, On::kPeerClosed, 1, Is::kDown, {Do::kAbandon}, 1},
    {Is::kReopening, true, On::kPeerAsks, 1, Is::kReopening, {}},
    {Is::kReopening, true, On::kEstablished, 0, Is::kSuspect, {Do::kUse}, 1},
    {Is::kReopening, true, On::kGivenUp, 0, Is::kDown, {}},
    {Is::kReopening, true, On::kPortActive, 0, Is::kReopening, {}},
    {Is::kReopening, true, On::kTick, 0, Is::kReopening, {}},
};

TEST(RailLife, does_this_in_every_state_at_every_event) {
    std::set<std::pair<Is, On>> seen;
    for (const Cell& cell : kCells) {
        seen.emplace(cell.before, cell.event);
        RailLife life = in_state(cell.before, cell.peer_closed);
        ASSERT_EQ(life.state(), cell.before);
        const std::uint64_t now = life.next_tick().value_or(kStart);
        const auto generation = static_cast<std::uint32_t>(static_cast<int>(life.generation()) + cell.generation);
        const std::uint32_t before = life.generation();
        const auto actions = list(life.on(cell.event, now, generation));
        EXPECT_EQ(life.state(), cell.after) << name(cell.event) << " while " << name(cell.before);
        EXPECT_EQ(actions, cell.actions) << name(cell.event) << " while " << name(cell.before);
        EXPECT_EQ(life.generation(), before + static_cast<std::uint32_t>(cell.skips))
            << name(cell.event) << " while " << name(cell.before);
    }
    EXPECT_EQ(seen.size(), kLifeStates * kLifeEvents);
}

TEST(RailLife, answers_a_peer_that_does_not_know_of_its_end) {
    for (const Is state : {Is::kDown, Is::kReopening}) {
        RailLife life = in_state(state, true);
        EXPECT_TRUE(life.on(On::kPeerClosed, kStart, life.generation(), true).has(Do::kSendClosed));
        EXPECT_FALSE(life.on(On::kPeerClosed, kStart, life.generation(), false).has(Do::kSendClosed));
    }
}

TEST(RailLife, repeats_writes_only_after_the_peer_has_closed) {
    RailLife life = in_state(Is::kClosing, false);
    EXPECT_FALSE(life.on(On::kDrained, kStart).has(Do::kRepeatAll));
    EXPECT_TRUE(life.on(On::kPeerClosed, kStart, 1).has(Do::kRepeatAll));
}

TEST(RailLife, destroys_a_queue_pair_that_does_not_drain) {
    RailLife life = in_state(Is::kClosing, false);
    std::vector<Do> all;
    for (std::uint64_t now = kStart; life.state() == Is::kClosing; now = *life.next_tick()) {
        ASSERT_LE(now, kStart + kPatience.drain);
        for (const Do each : life.on(On::kTick, now)) all.push_back(each);
    }
    EXPECT_EQ(std::vector(all.end() - 3, all.end()), (std::vector{Do::kDestroy, Do::kRepeatSafe, Do::kSendClosed}));
}

std::uint64_t pause_before_attempt(RailLife& life) {
    const std::uint64_t now = kStart;
    static_cast<void>(life.on(On::kTick, UINT64_MAX - kPatience.longest_retry));
    static_cast<void>(life.on(On::kGivenUp, now));
    return *life.next_tick() - now;
}

TEST(RailLife, waits_longer_after_each_attempt_that_fails_and_never_ends) {
    RailLife life = in_state(Is::kDown, true);
    std::uint64_t before = 0, pause = 0;
    for (int i = 0; i < 100; ++i) {
        before = pause;
        pause = pause_before_attempt(life);
        EXPECT_TRUE(pause >= 2 * before || pause == kPatience.longest_retry);
    }
    EXPECT_EQ(pause, kPatience.longest_retry);
    static_cast<void>(life.on(On::kPortActive, kStart));
    EXPECT_LE(*life.next_tick(), kStart + kPatience.retry);
}

// Returns how long the life is suspect after it came back.
std::uint64_t fails_and_returns(RailLife& life, std::uint64_t now) {
    static_cast<void>(life.on(On::kTrouble, now));
    static_cast<void>(life.on(On::kPeerClosed, now, life.generation()));
    static_cast<void>(life.on(On::kDrained, now));
    static_cast<void>(life.on(On::kTick, *life.next_tick()));
    static_cast<void>(life.on(On::kEstablished, now));
    return *life.next_tick() - now;
}

TEST(RailLife, is_suspect_for_longer_while_it_flaps) {
    RailLife life;
    std::uint64_t now = kStart;
    EXPECT_EQ(fails_and_returns(life, now), kPatience.hold);
    EXPECT_EQ(fails_and_returns(life, now + 1), 2 * kPatience.hold);
    EXPECT_EQ(fails_and_returns(life, now + 2), 4 * kPatience.hold);
    now += kPatience.calm + kPatience.hold;
    EXPECT_EQ(fails_and_returns(life, now), kPatience.hold);
}

TEST(RailLife, makes_few_attempts_while_its_port_is_down) {
    RailLife life;
    static_cast<void>(life.on(On::kPortDown, kStart));
    static_cast<void>(life.on(On::kPeerClosed, kStart, 1));
    static_cast<void>(life.on(On::kDrained, kStart));
    EXPECT_EQ(life.next_tick(), kStart + kPatience.longest_retry);
    EXPECT_EQ(list(life.on(On::kPeerAsks, kStart, 2)), std::vector<Do>());
    static_cast<void>(life.on(On::kPortActive, kStart));
    EXPECT_EQ(life.next_tick(), kStart + kPatience.retry);
    EXPECT_EQ(list(life.on(On::kPeerAsks, kStart, 2)), std::vector{Do::kReopen});
}

// Only the peer's half of the first attempt was established. This side may have no queue pair at all.
TEST(RailLife, repeats_after_an_attempt_of_a_rail_that_has_never_opened_too) {
    RailLife life = RailLife::of_unopened(kPatience.hold, kStart);
    EXPECT_EQ(list(life.on(On::kTick, *life.next_tick())), std::vector{Do::kReopen});
    EXPECT_EQ(list(life.on(On::kPeerDown, kStart, 2)), (std::vector{Do::kAbandon, Do::kSendClosed}));
    EXPECT_EQ(list(life.on(On::kPeerClosed, kStart, 2)), std::vector{Do::kRepeatAll});
    EXPECT_EQ(life.state(), Is::kDown);
}

TEST(RailLife, tries_to_open_a_rail_that_has_never_opened_less_often) {
    RailLife life = RailLife::of_unopened(kPatience.hold, kStart);
    EXPECT_EQ(life.state(), Is::kDown);
    EXPECT_EQ(*life.next_tick(), kStart + (kPatience.retry << kPatience.first_unopened));
    std::uint64_t pause = 0;
    for (int i = 0; i < 20; ++i) {
        const std::uint64_t now = *life.next_tick();
        EXPECT_EQ(list(life.on(On::kTick, now)), std::vector{Do::kReopen});
        EXPECT_EQ(list(life.on(On::kGivenUp, now)), std::vector<Do>());
        pause = *life.next_tick() - now;
    }
    EXPECT_EQ(pause, kPatience.longest_unopened);
    EXPECT_EQ(list(life.on(On::kPeerAsks, kStart, 2)), std::vector{Do::kReopen});
    EXPECT_EQ(list(life.on(On::kEstablished, kStart)), std::vector{Do::kUse});
    // From now on it is as any other.
    EXPECT_EQ(life.generation(), 2u);
    static_cast<void>(fails_and_returns(life, kStart));
    EXPECT_EQ(life.generation(), 3u);
}

// --- both sides -----------------------------------------------------------------------------------------------------

// What a side has sent: CLOSED or DOWN of a generation, or the REQUEST of one.
struct Sent {
    enum class What { kDown, kClosed, kRequest } what;
    std::uint32_t generation;
    bool wants_answer;
};

// Two lives and the network between them. A queue pair of generation g executes requests of the peer until its side has
// stopped it; `writes` are requests of a side that the network may still execute at the other one.
class Pair {
public:
    explicit Pair(std::uint32_t seed) : dice_(seed) {}

    // The rail did not open when the two connected.
    void did_not_open() {
        for (Side& side : sides_) {
            side.life = RailLife::of_unopened(kPatience.hold, now_);
            side.stopped = side.told = side.repeated = 1;
        }
    }

    // Both sides repeat writes before the peer has closed its end.
    void repeat_early() {
        for (Side& side : sides_) side.life.repeat_early_for_test();
    }
    int ghosts() const { return ghosts_; }  // repetitions of writes that might still have landed
    int untold() const { return untold_; }  // repetitions before the peer has said what it has got

    void run() {
        for (int step = 0; step < 400; ++step) {
            now_ += 1'000'000;
            happen();
        }
        network_is_good_ = true;
        for (int step = 0; step < 20'000 && !both_carry_data(); ++step) {
            now_ += 1'000'000;
            happen();
        }
        EXPECT_TRUE(both_carry_data()) << name(sides_[0].life.state()) << " " << sides_[0].life.generation() << ", "
                                       << name(sides_[1].life.state()) << " " << sides_[1].life.generation();
        EXPECT_EQ(sides_[0].life.generation(), sides_[1].life.generation());
    }

private:
    struct Side {
        RailLife life;
        std::uint32_t stopped = 0;  // all generations up to this one are stopped here
        std::optional<std::uint32_t> drains;
        std::optional<std::uint32_t> attempts;  // the generation that it tries to connect
        bool has_tried = false;                 // its half of the attempt works
        std::deque<Sent> sent;
        std::uint32_t told = 0;      // CLOSED of all generations up to this one has arrived
        std::uint32_t used = 1;      // the last generation that carried data
        std::uint32_t repeated = 0;  // its writes of all generations up to this one have been repeated
    };

    bool flip(int one_in) { return std::uniform_int_distribution<>(1, one_in)(dice_) == 1; }
    bool both_carry_data() const {
        return sides_[0].life.carries_data() && sides_[1].life.carries_data() &&
               sides_[0].life.generation() == sides_[1].life.generation();
    }

    void carry_out(int me, const LifeActions& actions, std::uint32_t generation_before) {
        Side& side = sides_[me];
        for (const Do action : actions) switch (action) {
            case Do::kStop:
                side.stopped = side.life.generation();
                side.drains = side.life.generation();
                break;
            case Do::kDestroy: side.drains.reset(); break;
            case Do::kRepeatSafe: break;
            case Do::kRepeatAll:
                // No write of this side can be executed at the peer any more.
                ghosts_ += sides_[1 - me].stopped < generation_before;
                untold_ += side.told < generation_before;
                side.repeated = generation_before;
                break;
            case Do::kSendDown:
                side.sent.push_back({Sent::What::kDown, side.life.generation(), !side.life.peer_closed()});
                break;
            case Do::kSendClosed:
                EXPECT_GE(side.stopped, side.life.generation());
                side.sent.push_back({Sent::What::kClosed, side.life.generation(), !side.life.peer_closed()});
                break;
            case Do::kReopen:
                side.attempts = side.life.generation() + 1;
                side.has_tried = false;
                side.sent.push_back({Sent::What::kRequest, *side.attempts, false});
                break;
            case Do::kAbandon:
                side.stopped = std::max(side.stopped, *side.attempts);
                side.attempts.reset();
                break;
            case Do::kUse:
                // Nothing of the generation before waits any more.
                EXPECT_GE(side.repeated, side.used);
                EXPECT_LT(side.stopped, side.life.generation());
                side.used = side.life.generation();
                break;
            case Do::kTrust: break;
            }
    }

    void on(int me, On event, std::uint32_t generation = 0, bool wants_answer = false) {
        Side& side = sides_[me];
        const std::uint32_t before = side.life.generation();
        carry_out(me, side.life.on(event, now_, generation, wants_answer), before);
    }

    void deliver(int to) {
        std::deque<Sent>& sent = sides_[1 - to].sent;
        if (sent.empty()) return;
        const std::size_t which = network_is_good_
                                      ? 0
                                      : std::uniform_int_distribution<std::size_t>(0, sent.size() - 1)(dice_);
        const Sent datagram = sent[which];
        if (network_is_good_ || !flip(4)) sent.erase(sent.begin() + static_cast<long>(which));  // else it comes again
        if (!network_is_good_ && flip(4)) return;                                               // lost
        switch (datagram.what) {
        case Sent::What::kDown: return on(to, On::kPeerDown, datagram.generation);
        case Sent::What::kClosed:
            sides_[to].told = std::max(sides_[to].told, datagram.generation);
            return on(to, On::kPeerClosed, datagram.generation, datagram.wants_answer);
        case Sent::What::kRequest: return on(to, On::kPeerAsks, datagram.generation);
        }
    }

    // An attempt that both sides make may succeed on one side first, or on one side only.
    void attempt(int me) {
        Side &side = sides_[me], &peer = sides_[1 - me];
        if (!side.attempts) return;
        if (side.life.state() != Is::kReopening) return side.attempts.reset();
        const bool peer_follows = peer.attempts == side.attempts ||
                                  (peer.life.generation() >= *side.attempts && peer.life.carries_data());
        if (peer_follows && (network_is_good_ || flip(3))) {
            side.attempts.reset();
            return on(me, On::kEstablished);
        }
        // connect.h: once a side has established, the other one does not give up.
        const bool may_give_up = peer.life.generation() < *side.attempts;
        if (may_give_up && !network_is_good_ && flip(10)) {
            side.attempts.reset();
            return on(me, On::kGivenUp);
        }
        if (flip(20)) side.sent.push_back({Sent::What::kRequest, *side.attempts, false});
    }

    void happen() {
        for (const int me : {0, 1}) {
            Side& side = sides_[me];
            if (!network_is_good_ && flip(15)) on(me, On::kTrouble);
            if (!network_is_good_ && flip(25)) on(me, On::kPortDown);
            if (flip(25)) on(me, On::kPortActive);
            if (side.drains && flip(3)) {
                side.drains.reset();
                on(me, On::kDrained);
            }
            if (flip(2)) deliver(me);
            attempt(me);
            if (side.life.next_tick() && *side.life.next_tick() <= now_) on(me, On::kTick);
        }
    }

    std::mt19937 dice_;
    std::uint64_t now_ = kStart;
    bool network_is_good_ = false;
    Side sides_[2];
    int ghosts_ = 0, untold_ = 0;
};

TEST(RailLifeOfBothSides, comes_back_and_never_repeats_a_write_that_may_still_land) {
    for (std::uint32_t seed = 1; seed <= 3000 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Pair pair(seed);
        if (seed % 4 == 0) pair.did_not_open();
        pair.run();
        EXPECT_EQ(pair.ghosts(), 0);
        EXPECT_EQ(pair.untold(), 0);
    }
}

TEST(RailLifeOfBothSides, would_repeat_such_a_write_without_the_rule) {
    int ghosts = 0;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        Pair pair(seed);
        pair.repeat_early();
        pair.run();
        ghosts += pair.ghosts();
    }
    EXPECT_GT(ghosts, 0);
}

}  // namespace
}  // namespace coop::path

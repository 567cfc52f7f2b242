// SPDX-License-Identifier: BSD-3-Clause
//
// path/migration.h: every event in every state, and a model of both sides with their HCAs, in which paths fail and come
// back and the events of the HCAs are handled late.
#include "coop/path/migration.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace coop::path {
namespace {

using Do = MigrationDo;
using On = MigrationEvent;
using Is = MigrationState;

constexpr std::uint64_t kStart = 1'000'000'000'000;
constexpr MigrationPatience kPatience;

std::vector<Do> list(const MigrationActions& actions) { return {actions.begin(), actions.end()}; }

PathSet only(std::size_t path) { return PathSet(1) << path; }

// A machine with two paths in this state, on path 0.
Migration in_state(Is state) {
    if (state == Is::kUnable) return Migration(1);
    Migration m(2, true);
    if (state == Is::kMigrated) return m;
    static_cast<void>(m.on(On::kConnected, kStart));
    static_cast<void>(m.on(On::kLoaded, kStart));
    if (state == Is::kArmed) static_cast<void>(m.on(On::kSeenArmed, kStart - kPatience.settle));
    if (state == Is::kBroken) static_cast<void>(m.on(On::kMigrationFailed, kStart));
    return m;
}

struct Cell {
    Is before;
    On event;
    std::size_t path;  // of kSeenMigrated
    Is after;
    std::vector<Do> actions;
    std::size_t current = 0;
};

const Cell kCells[] = {
    {Is::kMigrated, On::kConnected, 0, Is::kMigrated, {Do::kLoad}},
    {Is::kMigrated, On::kLoaded, 0, Is::kLoading, {Do::kSend}},
    {Is::kMigrated, On::kRefused, 0, Is::kUnable, {}},
    {Is::kMigrated, On::kForced, 0, Is::kMigrated, {}},
    {Is::kMigrated, On::kSeenMigrated, 0, Is::kMigrated, {}},
    {Is::kMigrated, On::kSeenMigrated, 1, Is::kMigrated, {Do::kTell, Do::kSend}, 1},
    {Is::kMigrated, On::kSeenMigrated, 2, Is::kMigrated, {}},
    {Is::kMigrated, On::kSeenRearm, 0, Is::kMigrated, {}},
    {Is::kMigrated, On::kSeenArmed, 0, Is::kMigrated, {}},
    {Is::kMigrated, On::kPathMigrated, 0, Is::kMigrated, {Do::kLook}},
    {Is::kMigrated, On::kMigrationFailed, 0, Is::kBroken, {}},
    {Is::kMigrated, On::kConfirmed, 0, Is::kMigrated, {Do::kLoad}},
    {Is::kMigrated, On::kAsked, 0, Is::kMigrated, {}},
    {Is::kMigrated, On::kTick, 0, Is::kMigrated, {}},

    {Is::kLoading, On::kConnected, 0, Is::kLoading, {}},
    {Is::kLoading, On::kLoaded, 0, Is::kLoading, {}},
    {Is::kLoading, On::kRefused, 0, Is::kLoading, {}},
    {Is::kLoading, On::kForced, 0, Is::kMigrated, {Do::kTell, Do::kSend}, 1},
    {Is::kLoading, On::kSeenMigrated, 0, Is::kMigrated, {Do::kSend}},
    {Is::kLoading, On::kSeenMigrated, 1, Is::kMigrated, {Do::kTell, Do::kSend}, 1},
    {Is::kLoading, On::kSeenMigrated, 2, Is::kLoading, {}},
    {Is::kLoading, On::kSeenRearm, 0, Is::kLoading, {}},
    {Is::kLoading, On::kSeenArmed, 0, Is::kArmed, {}},
    {Is::kLoading, On::kPathMigrated, 0, Is::kLoading, {Do::kLook}},
    {Is::kLoading, On::kMigrationFailed, 0, Is::kBroken, {}},
    {Is::kLoading, On::kConfirmed, 0, Is::kLoading, {Do::kLook}},
    {Is::kLoading, On::kAsked, 0, Is::kLoading, {Do::kLook}},
    {Is::kLoading, On::kTick, 0, Is::kLoading, {}},

    {Is::kArmed, On::kConnected, 0, Is::kArmed, {}},
    {Is::kArmed, On::kLoaded, 0, Is::kArmed, {}},
    {Is::kArmed, On::kRefused, 0, Is::kArmed, {}},
    {Is::kArmed, On::kForced, 0, Is::kMigrated, {Do::kTell, Do::kSend}, 1},
    {Is::kArmed, On::kSeenMigrated, 0, Is::kMigrated, {Do::kSend}},
    {Is::kArmed, On::kSeenMigrated, 1, Is::kMigrated, {Do::kTell, Do::kSend}, 1},
    {Is::kArmed, On::kSeenMigrated, 2, Is::kArmed, {}},
    {Is::kArmed, On::kSeenRearm, 0, Is::kLoading, {}},
    {Is::kArmed, On::kSeenArmed, 0, Is::kArmed, {}},
    {Is::kArmed, On::kPathMigrated, 0, Is::kArmed, {Do::kLook}},
    {Is::kArmed, On::kMigrationFailed, 0, Is::kBroken, {}},
    {Is::kArmed, On::kConfirmed, 0, Is::kArmed, {}},
    {Is::kArmed, On::kAsked, 0, Is::kArmed, {Do::kLook}},
    {Is::kArmed, On::kTick, 0, Is::kArmed, {}},
};

std::string words(const Cell& cell) { return std::string(name(cell.before)) + ", " + name(cell.event); }

TEST(Migration, reacts_to_every_event_in_every_state) {
    std::array<std::array<bool, kMigrationEvents>, kMigrationStates> seen{};
    for (const Cell& cell : kCells) {
        Migration m = in_state(cell.before);
        ASSERT_EQ(m.state(), cell.before) << words(cell);
        EXPECT_EQ(list(m.on(cell.event, kStart, cell.path)), cell.actions) << words(cell);
        EXPECT_EQ(m.state(), cell.after) << words(cell);
        EXPECT_EQ(m.current(), cell.current) << words(cell);
        seen[static_cast<std::size_t>(cell.before)][static_cast<std::size_t>(cell.event)] = true;
    }
    for (const Is state : {Is::kMigrated, Is::kLoading, Is::kArmed})
        for (std::size_t event = 0; event < kMigrationEvents; ++event)
            EXPECT_TRUE(seen[static_cast<std::size_t>(state)][event]) << name(state) << " " << event;
}

TEST(Migration, does_nothing_without_an_alternate_path_or_when_broken) {
    for (const Is state : {Is::kUnable, Is::kBroken})
        for (std::size_t event = 0; event < kMigrationEvents; ++event)
            for (const std::size_t path : {0, 1}) {
                Migration m = in_state(state);
                EXPECT_TRUE(list(m.on(static_cast<On>(event), kStart, path)).empty()) << event;
                EXPECT_EQ(m.state(), state) << event;
                EXPECT_TRUE(list(m.on_down(only(0), kStart)).empty());
                EXPECT_TRUE(list(m.on_active(only(0), kStart)).empty());
                EXPECT_EQ(m.next_tick(), std::nullopt);
            }
}

TEST(Migration, asks_whether_it_is_armed_before_it_leaves_a_port_that_is_down) {
    Migration m = in_state(Is::kLoading);
    EXPECT_EQ(list(m.on_down(only(0), kStart)), std::vector{Do::kLook});
    EXPECT_EQ(list(m.on(On::kSeenArmed, kStart)), std::vector{Do::kForce});
    EXPECT_EQ(list(m.on(On::kForced, kStart)), (std::vector{Do::kTell, Do::kSend}));
    EXPECT_EQ(m.current(), 1u);
    EXPECT_EQ(m.cause(), MoveCause::kPortDown);
    EXPECT_EQ(m.moves(), 1u);
}

TEST(Migration, stays_on_a_port_that_is_down_if_it_is_not_armed) {
    Migration m = in_state(Is::kLoading);
    static_cast<void>(m.on_down(only(0), kStart));
    EXPECT_TRUE(list(m.on(On::kSeenRearm, kStart)).empty());
    EXPECT_TRUE(list(m.on(On::kSeenArmed, kStart)).empty());  // later: the software has taken over meanwhile
    EXPECT_EQ(m.state(), Is::kArmed);
}

TEST(Migration, does_not_move_to_a_port_that_is_down) {
    Migration m = in_state(Is::kArmed);
    EXPECT_TRUE(list(m.on_down(only(1), kStart)).empty());
    EXPECT_TRUE(list(m.on_down(only(0), kStart)).empty());
    EXPECT_TRUE(list(m.on(On::kAsked, kStart)).empty());
    EXPECT_EQ(m.state(), Is::kArmed);
}

TEST(Migration, does_not_move_to_another_lid_of_a_port_that_is_down) {
    Migration m(4);
    static_cast<void>(m.on(On::kConnected, kStart));
    static_cast<void>(m.on(On::kLoaded, kStart));
    static_cast<void>(m.on(On::kSeenArmed, kStart));
    EXPECT_TRUE(list(m.on_down(PathSet(15), kStart)).empty());
}

TEST(Migration, loads_the_next_path_of_the_ring_when_the_peer_has_moved_too) {
    Migration m(3);
    for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(list(m.on(i == 0 ? On::kConnected : On::kConfirmed, kStart)), std::vector{Do::kLoad});
        EXPECT_EQ(m.next(), (i + 1) % 3);
        static_cast<void>(m.on(On::kLoaded, kStart));
        EXPECT_EQ(list(m.on(On::kConfirmed, kStart)), std::vector{Do::kLook});
        static_cast<void>(m.on(On::kSeenArmed, kStart));
        EXPECT_EQ(list(m.on(On::kPathMigrated, kStart)), std::vector{Do::kLook});
        static_cast<void>(m.on(On::kSeenMigrated, kStart, m.next()));
        EXPECT_EQ(m.current(), (i + 1) % 3);
        EXPECT_EQ(m.cause(), MoveCause::kHca);
        EXPECT_TRUE(list(m.on_active(only(m.next()), kStart)).empty()) << "before the peer has moved";
    }
    EXPECT_EQ(m.moves(), 7u);
}

TEST(Migration, counts_a_forced_move_once_though_the_hca_reports_it) {
    Migration m = in_state(Is::kArmed);
    static_cast<void>(m.on(On::kAsked, kStart));
    static_cast<void>(m.on(On::kSeenArmed, kStart));
    static_cast<void>(m.on(On::kForced, kStart));
    static_cast<void>(m.on(On::kPathMigrated, kStart));
    EXPECT_TRUE(list(m.on(On::kSeenMigrated, kStart, 1)).empty());
    EXPECT_EQ(m.moves(), 1u);
    EXPECT_EQ(m.cause(), MoveCause::kAsked);
}

TEST(Migration, moves_on_request_only_if_it_has_been_armed_for_a_while) {
    Migration m = in_state(Is::kLoading);
    EXPECT_EQ(list(m.on(On::kAsked, kStart)), std::vector{Do::kLook});
    EXPECT_TRUE(list(m.on(On::kSeenArmed, kStart)).empty());
    const std::uint64_t later = kStart + kPatience.settle;
    EXPECT_TRUE(list(m.on(On::kAsked, later - 1)).empty());
    EXPECT_EQ(list(m.on(On::kAsked, later)), std::vector{Do::kLook});
    EXPECT_EQ(list(m.on(On::kSeenArmed, later)), std::vector{Do::kForce});
}

// On path 1 after path 0 has failed at this side, and confirmed.
Migration moved_away(bool returns) {
    Migration m(2, returns);
    static_cast<void>(m.on(On::kConnected, kStart));
    static_cast<void>(m.on(On::kLoaded, kStart));
    static_cast<void>(m.on_down(only(0), kStart));
    static_cast<void>(m.on(On::kSeenArmed, kStart));
    static_cast<void>(m.on(On::kForced, kStart));
    return m;
}

TEST(Migration, loads_a_path_only_when_its_port_works) {
    Migration m = moved_away(false);
    EXPECT_TRUE(list(m.on(On::kConfirmed, kStart)).empty());
    EXPECT_EQ(m.state(), Is::kMigrated);
    EXPECT_EQ(list(m.on_active(only(0), kStart)), std::vector{Do::kLoad});
    EXPECT_EQ(m.next_tick(), std::nullopt);
}

// Brings its first path back at `now`, and the queue pair to it when the hold is over, which it returns.
std::uint64_t come_back(Migration& m, std::uint64_t now) {
    static_cast<void>(m.on(On::kConfirmed, now));
    EXPECT_EQ(list(m.on_active(only(0), now)), std::vector{Do::kLoad});
    static_cast<void>(m.on(On::kLoaded, now));
    static_cast<void>(m.on(On::kSeenArmed, now));
    if (!m.next_tick()) return 0;
    const std::uint64_t at = *m.next_tick();
    EXPECT_TRUE(list(m.on(On::kTick, at - 1)).empty());
    EXPECT_EQ(list(m.on(On::kTick, at)), std::vector{Do::kLook});
    EXPECT_EQ(list(m.on(On::kSeenArmed, at)), std::vector{Do::kForce});
    static_cast<void>(m.on(On::kForced, at));
    EXPECT_EQ(m.current(), 0u);
    EXPECT_EQ(m.cause(), MoveCause::kReturn);
    return at - now;
}

TEST(Migration, returns_to_the_first_path_after_a_while) {
    Migration m = moved_away(true);
    EXPECT_EQ(come_back(m, kStart), kPatience.hold);
    EXPECT_EQ(m.next_tick(), std::nullopt);
    EXPECT_EQ(list(m.on(On::kConfirmed, kStart)), std::vector{Do::kLoad});
}

TEST(Migration, returns_as_soon_as_it_is_armed_if_that_takes_longer) {
    Migration m = moved_away(true);
    static_cast<void>(m.on(On::kConfirmed, kStart));
    static_cast<void>(m.on_active(only(0), kStart));
    static_cast<void>(m.on(On::kLoaded, kStart));
    const std::uint64_t later = kStart + kPatience.hold;
    EXPECT_EQ(list(m.on(On::kTick, later)), std::vector{Do::kLook});
    EXPECT_TRUE(list(m.on(On::kSeenRearm, later)).empty());
    EXPECT_EQ(list(m.on(On::kConfirmed, later)), std::vector{Do::kLook});
    EXPECT_EQ(list(m.on(On::kSeenArmed, later)), std::vector{Do::kForce});
}

TEST(Migration, waits_longer_each_time_the_first_path_fails_soon_after_the_return) {
    Migration m = moved_away(true);
    std::uint64_t now = kStart, hold = come_back(m, now);
    for (int i = 0; i < 12; ++i) {
        now += hold + 1'000;
        static_cast<void>(m.on(On::kConfirmed, now));
        static_cast<void>(m.on(On::kLoaded, now));
        static_cast<void>(m.on_down(only(0), now));
        static_cast<void>(m.on(On::kSeenArmed, now));
        static_cast<void>(m.on(On::kForced, now));
        const std::uint64_t next = come_back(m, now);
        EXPECT_EQ(next, std::min(2 * hold, kPatience.longest_hold)) << i;
        hold = next;
    }
    EXPECT_EQ(hold, kPatience.longest_hold);
}

TEST(Migration, gives_up_the_return_if_the_port_fails_again) {
    Migration m = moved_away(true);
    static_cast<void>(m.on(On::kConfirmed, kStart));
    static_cast<void>(m.on_active(only(0), kStart));
    static_cast<void>(m.on(On::kLoaded, kStart));
    EXPECT_TRUE(list(m.on_down(only(0), kStart)).empty());
    EXPECT_EQ(m.next_tick(), std::nullopt);
    EXPECT_TRUE(list(m.on(On::kTick, kStart + kPatience.hold)).empty());
    EXPECT_TRUE(list(m.on(On::kSeenArmed, kStart)).empty());
}

// --- both sides ------------------------------------------------------------------------------------------------------

// Two queue pairs as InfiniBand 17.2.8 describes them. A request travels to the peer, and its acknowledgement back.
class Network {
public:
    enum class Hw { kMigrated, kRearm, kArmed };
    struct Side {
        Migration machine;
        Hw state = Hw::kMigrated;
        std::size_t primary = 0, alternate = 0;
        std::deque<On> events;  // of the HCA, not handled yet
        int pulses = 0;         // empty writes that wait to be sent
        std::deque<bool> sent;  // completions that were not handled yet; false: older than the last kSend
        bool repeats = false;   // a request waits to be sent again
        bool again = false;     // the same, because its acknowledgement was lost
        bool dead = false;
    };

    // `waits`: loads are confirmed by an empty write. `settle`: as in MigrationPatience.
    Network(std::size_t paths, unsigned seed, bool waits = true, std::uint64_t settle = 1)
        : waits_(waits), random_(seed) {
        MigrationPatience patience;
        patience.settle = settle;
        for (Side& side : sides) side.machine = Migration(paths, false, patience);
        for (std::size_t i : {0, 1}) carry_out(i, sides[i].machine.on(On::kConnected, 0));
        for (std::size_t i : {0, 1}) request(i);  // as probes of rails do
    }

    std::array<Side, 2> sides;
    PathSet cut;
    std::uint64_t now = 0;
    bool loses_acks = false;  // some; a request whose acknowledgement was lost goes again later

    // A request of this side. If it is lost and the HCA moves, the HCA sends it again later.
    void request(std::size_t from) {
        Side& side = sides[from];
        if (side.dead || side.repeats || arrives(from)) return;
        if (side.state == Hw::kArmed) {
            move(side);
            side.repeats = true;
        } else {
            side.dead = true;
        }
    }

    // Handles one event, completion or empty write of some side. Returns false if there is none.
    bool step() {
        for (const std::size_t first : {random_() % 2, random_() % 2, std::size_t{0}, std::size_t{1}})
            if (step_of(first)) return true;
        return false;
    }
    void settle() {
        while (step()) {
        }
    }
    // The owner of this side wants another path.
    void ask(std::size_t i) {
        if (!sides[i].dead) carry_out(i, sides[i].machine.on(On::kAsked, now));
    }
    bool armed() const { return sides[0].state == Hw::kArmed && sides[1].state == Hw::kArmed; }
    std::size_t random(std::size_t below) { return random_() % below; }

private:
    bool arrives(std::size_t from) {
        Side &side = sides[from], &peer = sides[1 - from];
        const std::size_t path = side.primary;
        if (cut[path] || peer.dead) return false;
        if (peer.primary != path) {
            if (peer.state != Hw::kArmed || side.state != Hw::kMigrated || peer.alternate != path) return false;
            move(peer);
        }
        // The request arms the peer, and its acknowledgement this side.
        const bool both = side.state != Hw::kMigrated && peer.state != Hw::kMigrated;
        if (both) peer.state = Hw::kArmed;
        if (both && loses_acks && random_() % 4 == 0) side.again = true;
        else if (both) side.state = Hw::kArmed;
        return true;
    }
    static void move(Side& side) {
        std::swap(side.primary, side.alternate);
        side.state = Hw::kMigrated;
        side.events.push_back(On::kPathMigrated);
    }
    bool step_of(std::size_t i) {
        Side& side = sides[i];
        if (side.dead) return false;
        if (!side.events.empty() && random_() % 2 == 0) return handle_event(i);
        if (side.repeats && random_() % 2 == 0) return request_again(i);
        if (side.again && !side.repeats && random_() % 4 == 0) {
            side.again = false;
            request(i);
            return true;
        }
        if (side.pulses > 0 && !side.repeats) {
            --side.pulses;
            request(i);
            if (side.repeats) ++side.pulses;  // it was this write
            else if (!side.dead) side.sent.push_back(true);
            return true;
        }
        if (!side.sent.empty()) {
            const bool counts = side.sent.front();
            side.sent.pop_front();
            if (counts) carry_out(i, side.machine.on(On::kConfirmed, 0));
            return true;
        }
        if (!side.events.empty()) return handle_event(i);
        if (side.repeats) return request_again(i);
        if (!std::exchange(side.again, false)) return false;
        request(i);
        return true;
    }
    bool request_again(std::size_t i) {
        sides[i].repeats = false;
        request(i);
        return true;
    }
    bool handle_event(std::size_t i) {
        const On event = sides[i].events.front();
        sides[i].events.pop_front();
        carry_out(i, sides[i].machine.on(event, 0));
        return true;
    }
    void carry_out(std::size_t i, const MigrationActions& actions) {
        for (const Do action : actions) carry_out(i, action);
    }
    void carry_out(std::size_t i, Do action) {
        Side& side = sides[i];
        switch (action) {
        case Do::kLoad:
            side.alternate = side.machine.next();
            side.state = Hw::kRearm;
            return carry_out(i, side.machine.on(On::kLoaded, 0));
        case Do::kLook: {
            const On seen = side.state == Hw::kArmed   ? On::kSeenArmed
                            : side.state == Hw::kRearm ? On::kSeenRearm
                                                       : On::kSeenMigrated;
            return carry_out(i, side.machine.on(seen, now, side.primary));
        }
        case Do::kForce:
            std::swap(side.primary, side.alternate);
            side.state = Hw::kMigrated;
            return carry_out(i, side.machine.on(On::kForced, 0));
        case Do::kSend:
            if (!waits_) return carry_out(i, side.machine.on(On::kConfirmed, 0));
            for (auto&& counts : side.sent) counts = false;
            side.pulses = 1;
            return;
        case Do::kTell: return;
        }
    }

    bool waits_;
    std::mt19937 random_;
};

// The path that both sides are on fails, while they do this and that. Both must be armed.
void lose_one_path(Network& net) {
    net.cut.reset();
    net.cut.set(net.sides[0].primary);
    for (int i = 0; i < 12; ++i) net.random(3) == 0 ? net.request(net.random(2)) : static_cast<void>(net.step());
    net.request(net.random(2));
    net.settle();
}

// Whatever the order in which the events are handled: as long as only one path at a time fails, and only when both sides
// are armed, no queue pair fails, and both sides agree on the path.
TEST(MigrationModel, survives_the_loss_of_one_path_after_the_other) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        Network net(2 + seed % 3, seed);
        net.settle();
        for (int round = 0; round < 20; ++round) {
            ASSERT_TRUE(net.armed()) << "seed " << seed << ", round " << round;
            lose_one_path(net);
            for (const auto& side : net.sides) {
                ASSERT_FALSE(side.dead) << "seed " << seed << ", round " << round;
                EXPECT_EQ(side.machine.current(), side.primary);
            }
            EXPECT_EQ(net.sides[0].primary, net.sides[1].primary);
        }
    }
}

// Both sides ask for another path at any time, acknowledgements are lost, and a path may fail. Returns the number of moves, or
// nothing if a queue pair was lost.
std::optional<std::uint64_t> ask_and_lose(Network& net) {
    net.loses_acks = true;
    net.settle();
    std::uint64_t moves = 0;
    for (int round = 0; round < 20; ++round) {
        ++net.now;  // all that was under way has ended
        for (int i = 0; i < 20; ++i) {
            const std::size_t side = net.random(2), what = net.random(4);
            if (what == 0) net.ask(side);
            else if (what == 1) net.request(side);
            else static_cast<void>(net.step());
        }
        net.settle();
        for (const std::size_t i : {0, 1}) net.request(i);
        net.settle();
        if (net.armed() && net.random(4) == 0) lose_one_path(net);
        for (const auto& side : net.sides) {
            if (side.dead) return std::nullopt;
            EXPECT_EQ(side.machine.current(), side.primary);
        }
        EXPECT_EQ(net.sides[0].primary, net.sides[1].primary);
        net.cut.reset();
        moves = net.sides[0].machine.moves();
    }
    return moves;
}

TEST(MigrationModel, survives_requests_of_both_sides) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        Network net(2 + seed % 3, seed);
        const auto moves = ask_and_lose(net);
        ASSERT_TRUE(moves) << "seed " << seed;
        EXPECT_GT(*moves, 5u);
    }
}

// The rule that it must have been armed for a while switched off.
TEST(MigrationModel, loses_queue_pairs_if_a_side_moves_on_request_as_soon_as_it_is_armed) {
    std::size_t lost = 0;
    for (unsigned seed = 0; seed < 500; ++seed) {
        Network net(2 + seed % 3, seed, true, 0);
        lost += !ask_and_lose(net);
    }
    EXPECT_GT(lost, 0u);
}

// The rule about the confirmation switched off: some queue pair fails.
TEST(MigrationModel, loses_queue_pairs_if_a_side_loads_before_its_peer_has_moved) {
    std::size_t lost = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        Network net(2, seed, false);
        lose_one_path(net);
        lost += net.sides[0].dead || net.sides[1].dead;
    }
    EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace coop::path

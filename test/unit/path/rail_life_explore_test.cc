// SPDX-License-Identifier: BSD-3-Clause
//
// path/rail_life.h: every sequence of a few events of both sides, from several moments of a repair. A datagram may be
// delivered at any later time, in any order, again, or never. rail_life_test.cc has long random sequences.
#include "coop/path/rail_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coop::path {
namespace {

using Do = LifeDo;
using On = LifeEvent;
using Is = LifeState;

struct Sent {
    enum class What : std::uint8_t { kDown, kClosed, kRequest } what;
    int to;
    std::uint32_t generation;
    bool wants_answer;

    bool operator==(const Sent&) const = default;
};

struct Side {
    RailLife life;
    std::uint32_t stopped = 0;  // all generations up to this one are stopped here
    bool drains = false;
    std::optional<std::uint32_t> attempts;  // the generation that it tries to connect
    std::uint32_t told = 0;                 // CLOSED of all generations up to this one has arrived
    std::uint32_t used = 1;                 // the last generation that carried data
    std::uint32_t repeated = 0;             // its writes of all generations up to this one have been repeated
};

struct Choice {
    enum class What : std::uint8_t {
        kTrouble,
        kDrained,
        kTick,
        kEstablished,
        kGivenUp,
        kPortDown,
        kPortActive,
        kDeliver,  // and the datagram comes again
        kDeliverLast,
    } what;
    int side = 0;
    std::size_t datagram = 0;
};

// Two lives and the datagrams that may still arrive.
class World {
public:
    std::string wrong;  // empty: no rule was violated

    void repeat_early() {
        for (Side& side : sides_) side.life.repeat_early_for_test();
    }

    std::vector<Choice> choices() const {
        using What = Choice::What;
        std::vector<Choice> all;
        for (const int me : {0, 1}) {
            const Side& side = sides_[me];
            if (side.life.carries_data()) all.push_back({What::kTrouble, me});
            if (side.drains) all.push_back({What::kDrained, me});
            if (side.life.next_tick()) all.push_back({What::kTick, me});
            if (!side.attempts || side.life.state() != Is::kReopening) continue;
            if (peer_follows(me)) all.push_back({What::kEstablished, me});
            // connect.h: once a side has established, the other one does not give up.
            if (sides_[1 - me].life.generation() < *side.attempts) all.push_back({What::kGivenUp, me});
        }
        for (std::size_t i = 0; i < network_.size(); ++i) {
            all.push_back({What::kDeliver, network_[i].to, i});
            all.push_back({What::kDeliverLast, network_[i].to, i});
        }
        return all;
    }

    void happen(const Choice& choice) {
        using What = Choice::What;
        const int me = choice.side;
        Side& side = sides_[me];
        switch (choice.what) {
        case What::kTrouble: return on(me, On::kTrouble);
        case What::kDrained: side.drains = false; return on(me, On::kDrained);
        case What::kTick: now_ = std::max(now_, *side.life.next_tick()); return on(me, On::kTick);
        case What::kEstablished: side.attempts.reset(); return on(me, On::kEstablished);
        case What::kGivenUp: side.attempts.reset(); return on(me, On::kGivenUp);
        case What::kPortDown: return on(me, On::kPortDown);
        case What::kPortActive: return on(me, On::kPortActive);
        case What::kDeliver: return deliver(choice.datagram, true);
        case What::kDeliverLast: return deliver(choice.datagram, false);
        }
    }

    // From now on nothing fails and nothing is lost. Returns whether both sides carry data in the end.
    bool recovers() {
        for (int round = 0; round < 200 && !both_carry_data(); ++round) {
            for (int left = 40; left > 0 && !network_.empty(); --left) deliver(0, false);
            for (const int me : {0, 1}) {
                Side& side = sides_[me];
                if (side.drains) happen({Choice::What::kDrained, me});
                const bool tries = side.attempts && side.life.state() == Is::kReopening;
                if (tries && peer_follows(me)) happen({Choice::What::kEstablished, me});
                // A request is repeated until the peer answers.
                else if (tries) send({Sent::What::kRequest, 1 - me, *side.attempts, false});
                if (!side.attempts && side.life.state() == Is::kReopening) wrong = "an attempt was lost";
                if (side.life.next_tick() && !side.life.carries_data()) happen({Choice::What::kTick, me});
            }
        }
        return both_carry_data();
    }
    std::string describe() const {
        std::string text;
        for (const Side& side : sides_)
            text += std::string(name(side.life.state())) + " " + std::to_string(side.life.generation()) + "; ";
        return text;
    }

private:
    bool both_carry_data() const {
        return sides_[0].life.carries_data() && sides_[1].life.carries_data() &&
               sides_[0].life.generation() == sides_[1].life.generation();
    }
    bool peer_follows(int me) const {
        const Side &side = sides_[me], &peer = sides_[1 - me];
        return peer.attempts == side.attempts || (peer.life.generation() >= *side.attempts && peer.life.carries_data());
    }
    void expect(bool what, const char* otherwise) {
        if (!what && wrong.empty()) wrong = otherwise;
    }

    // Equal datagrams may all be lost but one, so that one is enough.
    void send(const Sent& sent) {
        if (std::find(network_.begin(), network_.end(), sent) == network_.end()) network_.push_back(sent);
    }

    void deliver(std::size_t which, bool again) {
        const Sent sent = network_[which];
        if (!again) network_.erase(network_.begin() + static_cast<long>(which));
        switch (sent.what) {
        case Sent::What::kDown: return on(sent.to, On::kPeerDown, sent.generation);
        case Sent::What::kClosed:
            sides_[sent.to].told = std::max(sides_[sent.to].told, sent.generation);
            return on(sent.to, On::kPeerClosed, sent.generation, sent.wants_answer);
        case Sent::What::kRequest: return on(sent.to, On::kPeerAsks, sent.generation);
        }
    }

    void on(int me, On event, std::uint32_t generation = 0, bool wants_answer = false) {
        Side& side = sides_[me];
        const std::uint32_t before = side.life.generation();
        for (const Do action : side.life.on(event, now_, generation, wants_answer)) carry_out(me, action, before);
    }

    void carry_out(int me, Do action, std::uint32_t before) {
        Side& side = sides_[me];
        switch (action) {
        case Do::kStop:
            side.stopped = side.life.generation();
            side.drains = true;
            break;
        case Do::kDestroy: side.drains = false; break;
        case Do::kRepeatSafe: expect(!side.drains, "repeated before it was drained"); break;
        case Do::kRepeatAll:
            expect(sides_[1 - me].stopped >= before, "repeated a write that may still land");
            expect(side.told >= before, "repeated before the peer has said what it has got");
            side.repeated = before;
            break;
        case Do::kSendDown: send({Sent::What::kDown, 1 - me, side.life.generation(), !side.life.peer_closed()}); break;
        case Do::kSendClosed:
            expect(side.stopped >= side.life.generation() && !side.drains, "said that it was closed before it was");
            send({Sent::What::kClosed, 1 - me, side.life.generation(), !side.life.peer_closed()});
            break;
        case Do::kReopen:
            expect(!side.attempts, "two attempts at once");
            side.attempts = side.life.generation() + 1;
            send({Sent::What::kRequest, 1 - me, *side.attempts, false});
            break;
        case Do::kAbandon:
            side.stopped = std::max(side.stopped, *side.attempts);
            side.attempts.reset();
            break;
        case Do::kUse:
            expect(side.repeated >= side.used, "used before everything was repeated");
            expect(side.stopped < side.life.generation(), "used a queue pair that is stopped");
            side.used = side.life.generation();
            break;
        case Do::kTrust: break;
        }
    }

    std::uint64_t now_ = 1'000'000'000'000;
    Side sides_[2];
    std::vector<Sent> network_;
};

struct Found {
    std::uint64_t worlds = 0;
    std::string wrong;
};

void explore(const World& from, int depth, Found& found) {
    ++found.worlds;
    if (!from.wrong.empty()) {
        found.wrong = from.wrong + ": " + from.describe();
        return;
    }
    if (depth == 0) {
        World end = from;
        if (!end.recovers()) found.wrong = "does not recover: " + from.describe() + "then " + end.describe();
        if (!end.wrong.empty()) found.wrong = end.wrong + " later: " + from.describe();
        return;
    }
    for (const Choice& choice : from.choices()) {
        World next = from;
        next.happen(choice);
        explore(next, depth - 1, found);
        if (!found.wrong.empty()) return;
    }
}

using What = Choice::What;

// Moments of a repair. Each list of events leads to one.
const std::vector<std::vector<Choice>> kMoments = {
    {},
    {{What::kTrouble, 0}, {What::kDrained, 0}},
    {{What::kTrouble, 0}, {What::kTrouble, 1}, {What::kDrained, 0}, {What::kDrained, 1}},
    {{What::kTrouble, 0}, {What::kDeliverLast, 1, 0}, {What::kDrained, 0}, {What::kDrained, 1}},
};

World at(const std::vector<Choice>& moment, bool early = false) {
    World world;
    if (early) world.repeat_early();
    for (const Choice& choice : moment) world.happen(choice);
    return world;
}

TEST(RailLifeOfBothSides, violates_no_rule_in_any_short_sequence_of_events) {
    for (const auto& moment : kMoments) {
        Found found;
        explore(at(moment), 6, found);
        EXPECT_EQ(found.wrong, "");
        EXPECT_GT(found.worlds, 1000u);
    }
}

TEST(RailLifeOfBothSides, violates_a_rule_in_a_short_sequence_if_writes_are_repeated_early) {
    Found found;
    explore(at({}, true), 4, found);
    EXPECT_NE(found.wrong.find("repeated a write that may still land"), std::string::npos) << found.wrong;
}

}  // namespace
}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/copy_side.h with the engines of both sides: every interleaving of a small cooperative copy.
//
// The model has two processes. At each point one of them takes a turn, in which its transport may refuse a chunk for
// the moment or for good, or a process stops for ever (it died, or computes without another MPI call). Time passes with
// each turn. The test visits every state that such choices reach, by replaying each sequence of choices from the start
// and dropping sequences that lead to a state seen before.
//
// It checks in every state that no chunk is counted that was not copied whole, and that a side sees the end only when
// all bytes are in place. It then lets the remaining processes run, and checks that the message is complete (in
// fragments if both sides are refused), or that the survivor has noticed the death of the other process, or that it
// waits for a process that computes and that holds a chunk or is the only one that can copy.
#include "coop/rndv/copy_side.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "coop/rndv/receiver.h"
#include "coop/rndv/sender.h"

namespace coop::rndv {
namespace {

constexpr std::uint64_t kChunk = 4096;
constexpr std::uint64_t kPatience = 1000;  // ns

struct Setting {
    friend std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }
    const char* name;
    Choice choice;
    std::uint32_t chunks;
    bool offered;  // rtr: both begin at once; otherwise the sender begins when the grant arrives
};

// One process: what it does is decided by the test, one turn at a time.
struct Process {
    CopySide side;
    bool has_begun = false;
    bool is_stopped = false;  // makes no call any more
    bool has_died = false;    // … and the other side can find out
    bool refuses = false;     // its transport refuses every chunk from now on
    bool is_over = false;
    bool is_stuck = false;
    bool saw_death = false;
};

struct World {
    explicit World(const Setting& which) : setting(which), copied(which.chunks, 0) {
        generation = arm(slot);
        sender.start();
        receiver.start();
        Situation situation;
        situation.bytes = bytes();
        situation.can_get = situation.can_put = situation.can_share = situation.same_node = true;
        situation.wish = Wish::kCoop;
        sender.rts_out({setting.offered ? Row::kRtr : Row::kCoop, Reason::kForced});
        receiver.on_rts({setting.offered ? Row::kRtr : Row::kCoop, Reason::kForced}, situation, bytes(), 0);
        begin(r, Side::kReceiver);
        if (setting.offered) {
            begin(s, Side::kSender);
        } else {
            receiver.prepared();
            receiver.granting();
        }
    }

    std::uint64_t bytes() const { return setting.chunks * kChunk; }

    void begin(Process& p, Side side) {
        p.side.start(slot, side, generation, 0, bytes(), kChunk, setting.choice);
        p.has_begun = true;
    }

    Process& of(Side side) { return side == Side::kReceiver ? r : s; }

    Setting setting;
    Slot slot;
    std::uint32_t generation = 0;
    std::uint64_t now = 1;
    Process r, s;
    Sender sender;
    Receiver receiver;
    bool second_grant_is_under_way = false;
    std::vector<int> copied;  // by chunk: how many times it was copied whole
};

// What a side asks of its process.
struct Hands {
    World& w;
    Process& p;
    Process& other;
    bool transport_is_busy() const { return false; }
    void feed_hcas() {}
    bool hcas_are_busy() const { return false; }
    std::optional<std::uint32_t> chunk_left_by_hcas() { return std::nullopt; }
    std::uint64_t quantum() const { return kChunk; }
    bool is_idle() const { return false; }
    std::uint64_t now_ns() const { return w.now; }
    std::uint64_t patience_ns() const { return kPatience; }
    void took_over() {}
    bool peer_is_alive() const { return !other.has_died; }
};

enum class Act { kCopy, kNoRoom, kRefuse, kStop, kDie };
struct Move {
    Side side;
    Act act;
};
constexpr Move kMoves[] = {{Side::kReceiver, Act::kCopy},   {Side::kReceiver, Act::kNoRoom},
                           {Side::kReceiver, Act::kRefuse}, {Side::kReceiver, Act::kStop},
                           {Side::kReceiver, Act::kDie},    {Side::kSender, Act::kCopy},
                           {Side::kSender, Act::kNoRoom},   {Side::kSender, Act::kRefuse},
                           {Side::kSender, Act::kStop},     {Side::kSender, Act::kDie}};

// One call of the process into the library. Each turn ends at the latest after one chunk: the quantum is one chunk.
void take_turn(World& w, Side side, Act act) {
    Process& p = w.of(side);
    Hands hands{w, p, w.of(other(side))};
    if (side == Side::kSender && !p.has_begun) {  // the grant arrives
        EXPECT_TRUE(w.sender.on_grant({w.setting.choice, 0, w.bytes()}));
        EXPECT_EQ(w.sender.next(false), SendDo::kCopy);
        w.begin(p, side);
    }
    p.side.begin_turn();
    for (;;) switch (p.side.next(hands)) {
        case CopyDo::kCopy:
            if (p.refuses || act == Act::kRefuse) {
                p.refuses = true;
                p.side.fail();
            } else if (act == Act::kNoRoom) {
                if (p.side.no_room(false)) return;
            } else {
                EXPECT_LE(p.side.at() + kChunk, p.side.end());
                ++w.copied[*p.side.chunk()];
                p.side.issued(kChunk);
            }
            break;
        case CopyDo::kOver:
            p.is_over = true;
            EXPECT_TRUE(side == Side::kReceiver ? w.receiver.copied() : w.sender.copied());
            return;
        case CopyDo::kStuck:
            p.is_stuck = true;
            if (side == Side::kReceiver) {
                EXPECT_TRUE(w.receiver.stuck(0));
                EXPECT_TRUE(w.receiver.granting());
                w.second_grant_is_under_way = true;
            }
            return;
        case CopyDo::kPeerDied: p.saw_death = true; return;
        case CopyDo::kBusy:
        case CopyDo::kNoRoom:
        case CopyDo::kYield:
        case CopyDo::kStandBy: return;
        }
}

bool has_ended(const Process& p) { return p.is_over || p.is_stuck || p.saw_death || p.is_stopped; }

bool apply(World& w, const Move& move) {
    Process& p = w.of(move.side);
    if (has_ended(p) || (p.refuses && (move.act == Act::kRefuse || move.act == Act::kNoRoom))) return false;
    switch (move.act) {
    case Act::kStop:
    case Act::kDie:
        if (w.of(other(move.side)).is_stopped) return false;  // one of the two stays
        p.is_stopped = true;
        p.has_died = move.act == Act::kDie;
        return true;
    case Act::kCopy:
    case Act::kNoRoom:
    case Act::kRefuse: break;
    }
    w.now += kPatience;  // a turn is late enough for a takeover at the second look
    take_turn(w, move.side, move.act);
    return true;
}

std::string key(World& w) {
    std::string text;
    const auto add = [&](auto value) { text += std::to_string(value) + ' '; };
    add(w.slot.tickets.load());
    for (auto& word : w.slot.returned) add(word.load());
    add(w.slot.done.load());
    add(w.slot.refused.load());
    for (Process* p : {&w.r, &w.s}) {
        add(p->has_begun + 2 * p->is_stopped + 4 * p->has_died + 8 * p->refuses + 16 * p->is_over + 32 * p->is_stuck +
            64 * p->saw_death);
        add(p->side.chunk() ? static_cast<int>(*p->side.chunk()) : -1);
        add(p->has_begun ? p->side.claims().is_refused() : 0);
        add(p->has_begun && p->side.takeover().may_claim_all());
        add(p->has_begun ? p->side.takeover().moves_seen() : 0);
    }
    for (int n : w.copied) add(n > 0);
    return text;
}

void check_state(World& w) {
    const std::uint32_t done = w.slot.done.load();
    std::uint32_t whole = 0;
    for (int n : w.copied) whole += n > 0;
    EXPECT_LE(done, whole) << "a chunk counts that nobody has copied";
    for (int n : w.copied) EXPECT_LE(n, 1) << "a chunk was copied twice";
    for (const Side side : {Side::kReceiver, Side::kSender})
        EXPECT_TRUE(!w.of(side).is_over || whole == w.setting.chunks) << "a side sees the end before all is copied";
    EXPECT_TRUE(!w.r.is_stuck || (w.r.refuses && w.s.refuses)) << "stuck although a side can copy";
}

// Lets whoever is left take turns until nothing changes.
void run_to_end(World& w) {
    for (int i = 0; i < 400; ++i) {
        for (const Side side : {Side::kReceiver, Side::kSender}) {
            Process& p = w.of(side);
            if (has_ended(p)) continue;
            w.now += 250'000'000;
            take_turn(w, side, Act::kCopy);
        }
        if (has_ended(w.r) && has_ended(w.s)) return;
    }
}

// Checks how each side ended, runs the fallback of a stuck copy, and checks that the engines of both sides then end.
void check_end(World& w, const std::string& history) {
    const bool holds_chunk = (w.r.is_stopped && w.r.side.chunk()) ||
                             (w.s.is_stopped && w.s.has_begun && w.s.side.chunk());
    for (const Side side : {Side::kReceiver, Side::kSender}) {
        Process& p = w.of(side);
        const Process& peer = w.of(other(side));
        if (p.is_stopped || p.is_over) continue;
        if (p.saw_death) {
            EXPECT_TRUE(peer.has_died) << history;
        } else if (p.is_stuck || (side == Side::kSender && p.has_begun && p.side.claims().stuck())) {
            EXPECT_TRUE(w.r.refuses && w.s.refuses) << history;
        } else {
            // Waits for ever: only for a process that computes, and that holds a chunk or is the only one that can
            // copy.
            EXPECT_TRUE(peer.is_stopped && !peer.has_died && (holds_chunk || p.refuses)) << history;
        }
    }
    if (w.second_grant_is_under_way && !w.s.is_stopped) {
        EXPECT_TRUE(w.sender.takes_grant(Row::kSend, w.s.side.claims().stuck())) << history;
        EXPECT_TRUE(w.sender.on_grant({{Row::kSend, Reason::kRdmaRefused}, 0, w.bytes()})) << history;
        EXPECT_EQ(w.sender.next(false), SendDo::kSendFragments) << history;
        EXPECT_TRUE(w.sender.fragment_out(w.bytes())) << history;
        EXPECT_TRUE(w.receiver.on_bytes(w.bytes())) << history;
        EXPECT_EQ(w.receiver.next(), RecvDo::kEnd) << history;
        EXPECT_EQ(w.sender.next(false), SendDo::kEnd) << history;
    }
    EXPECT_TRUE(!w.r.is_over || w.receiver.next() == RecvDo::kEnd) << history;
    EXPECT_TRUE(!w.s.is_over || w.sender.next(false) == SendDo::kEnd) << history;
}

std::string words(const std::vector<std::size_t>& history) {
    static constexpr const char* kActs[] = {"copies", "no room", "refused", "stops", "dies"};
    std::string text;
    for (const std::size_t i : history)
        text += std::string(kMoves[i].side == Side::kReceiver ? "receiver " : "sender ") +
                kActs[static_cast<int>(kMoves[i].act)] + ", ";
    return text;
}

bool replay(World& w, const std::vector<std::size_t>& history) {
    for (const std::size_t i : history)
        if (!apply(w, kMoves[i])) return false;
    return true;
}

std::size_t explore(const Setting& setting) {
    std::set<std::string> seen;
    std::deque<std::vector<std::size_t>> open{{}};
    while (!open.empty() && !::testing::Test::HasFailure()) {
        const std::vector<std::size_t> history = open.front();
        open.pop_front();
        {
            World end(setting);
            replay(end, history);
            run_to_end(end);
            check_state(end);
            check_end(end, words(history));
        }
        for (std::size_t i = 0; i < std::size(kMoves); ++i) {
            World w(setting);
            std::vector<std::size_t> longer = history;
            longer.push_back(i);
            if (!replay(w, longer)) continue;
            check_state(w);
            if (seen.insert(key(w)).second) open.push_back(std::move(longer));
        }
    }
    return seen.size();
}

const Setting kSettings[] = {
    {"both", {Row::kCoop, Reason::kForced, Split::kBoth}, 3, false},
    {"both_offered", {Row::kRtr, Reason::kOffered, Split::kBoth}, 3, true},
    {"halves", {Row::kCoop, Reason::kForced, Split::kHalves}, 2, false},
    {"receiver_leads", {Row::kCoop, Reason::kReceiverWaits, Split::kReceiverLeads}, 2, false},
    {"sender_leads", {Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}, 2, false},
    {"sender_leads_offered", {Row::kRtr, Reason::kOffered, Split::kSenderLeads}, 2, true},
    {"rput", {Row::kRput, Reason::kForced, Split::kSenderLeads}, 2, false},
    {"one_chunk", {Row::kCoop, Reason::kForced, Split::kBoth}, 1, false},
};

class RndvCopyModel : public ::testing::TestWithParam<Setting> {};

TEST_P(RndvCopyModel, ends_whole_in_every_interleaving) {
    const std::size_t states = explore(GetParam());
    EXPECT_GT(states, 20u);
    RecordProperty("states", static_cast<int>(states));  // in the XML report
}

INSTANTIATE_TEST_SUITE_P(Splits, RndvCopyModel, ::testing::ValuesIn(kSettings),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace coop::rndv

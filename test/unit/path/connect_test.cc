// SPDX-License-Identifier: BSD-3-Clause
//
// path/connect.h: every event in every state; then two machines and a network that loses, doubles, delays and reorders.
#include "coop/path/connect.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>

namespace coop::path {
namespace {

constexpr std::uint64_t kSelf = 0x100000001, kPeer = 0x100000002;
constexpr std::uint32_t kOurs = 11, kTheirs = 22;  // generations
constexpr Nanoseconds kMs = 1'000'000;
constexpr Patience kPatience = {.first = 10 * kMs, .longest = 40 * kMs, .limit = 1000 * kMs};

const std::vector<PathChoice> kPaths = {{0, 0, 0, 0, 0}, {1, 2, 1, 1, 0}};

std::vector<PathChoice> of_peer(std::vector<PathChoice> paths) {
    for (PathChoice& p : paths) p = mirrored(p);
    return paths;
}

std::string text(const Actions& actions) {
    std::string words;
    for (const Action& a : actions) {
        words += words.empty() ? "" : ", ";
        switch (a.what) {
            case Do::kMakeQueuePairs: words += "make"; break;
            case Do::kConnectQueuePairs: words += "connect"; break;
            case Do::kSend: words += std::string("send ") + name(a.kind); break;
            case Do::kEstablished: words += "established"; break;
            case Do::kGiveUp: words += std::string("give up: ") + describe(a.reason); break;
        }
    }
    return words;
}

Datagram from_peer(Kind kind, std::uint32_t echo = kOurs, std::uint32_t generation = kTheirs) {
    return {kind, kPeer, kSelf, generation, echo, {{70, 1, 0, 0, 0, 0}, {71, 2, 2, 1, 1, 1}}};
}

Datagram refusal() {
    Datagram d = from_peer(Kind::kReply);
    d.rails.clear();
    return d;
}

Datagram of_other_paths() {
    Datagram d = from_peer(Kind::kRequest, 0);
    d.rails.pop_back();
    return d;
}

constexpr std::uint32_t kNumbers[] = {50, 51};

Connection fresh() { return Connection(kSelf, kPeer, kOurs, kPaths, kPatience); }

// A machine brought into a state, at time 0, by the shortest way.
Connection in_state(State state) {
    Connection c = fresh();
    switch (state) {
        case State::kIdle: break;
        case State::kMaking: (void)c.on_want(0); break;
        case State::kAnswering: (void)c.on_datagram(from_peer(Kind::kRequest, 0), 0); break;
        case State::kRequested:
            c = in_state(State::kMaking);
            (void)c.on_qps_ready(kNumbers, 0);
            break;
        case State::kJoining:
            c = in_state(State::kAnswering);
            (void)c.on_qps_ready(kNumbers, 0);
            break;
        case State::kReplied:
            c = in_state(State::kJoining);
            (void)c.on_connected(0, 0);
            break;
        case State::kConfirming:
            c = in_state(State::kRequested);
            (void)c.on_datagram(from_peer(Kind::kReply), 0);
            break;
        case State::kEstablished:
            c = in_state(State::kConfirming);
            (void)c.on_connected(0, 0);
            break;
        case State::kGivenUp:
            c = in_state(State::kReplied);
            (void)c.on_failed(Reason::kNoQueuePairs);
            break;
    }
    EXPECT_EQ(c.state(), state);
    return c;
}

// --- every event in every state ---------------------------------------------------------------------------------------

enum class Event { kWant, kRequest, kReply, kReady, kRefusal, kMismatch, kQpsReady, kNoQps, kConnected, kNoneConnected, kFailed, kEarlyTick, kTick, kLastTick };

const std::map<Event, std::pair<const char*, std::function<Actions(Connection&)>>> kEvents = {
    {Event::kWant, {"want", [](Connection& c) { return c.on_want(0); }}},
    {Event::kRequest, {"request", [](Connection& c) { return c.on_datagram(from_peer(Kind::kRequest, 0), 0); }}},
    {Event::kReply, {"reply", [](Connection& c) { return c.on_datagram(from_peer(Kind::kReply), 0); }}},
    {Event::kReady, {"ready", [](Connection& c) { return c.on_datagram(from_peer(Kind::kReady), 0); }}},
    {Event::kRefusal, {"refusal", [](Connection& c) { return c.on_datagram(refusal(), 0); }}},
    {Event::kMismatch, {"request of other paths", [](Connection& c) { return c.on_datagram(of_other_paths(), 0); }}},
    {Event::kQpsReady, {"queue pairs ready", [](Connection& c) { return c.on_qps_ready(kNumbers, 0); }}},
    {Event::kNoQps, {"no queue pairs", [](Connection& c) { return c.on_qps_ready({}, 0); }}},
    {Event::kConnected, {"connected", [](Connection& c) { return c.on_connected(0, 0); }}},
    {Event::kNoneConnected, {"none connected", [](Connection& c) { return c.on_connected(3, 0); }}},
    {Event::kFailed, {"failed", [](Connection& c) { return c.on_failed(Reason::kNoQueuePairs); }}},
    {Event::kEarlyTick, {"early tick", [](Connection& c) { return c.on_tick(kPatience.first - 1); }}},
    {Event::kTick, {"tick", [](Connection& c) { return c.on_tick(kPatience.first); }}},
    {Event::kLastTick, {"last tick", [](Connection& c) { return c.on_tick(kPatience.limit); }}},
};

struct Cell {
    State state;
    Event event;
    const char* actions;
    State then;
};

// Cells that are not here change nothing and do nothing.
const char* const kNoPairs = "give up: no queue pair could be made";
const char* const kNoPairsSaid = "send reply, give up: no queue pair could be made";
const char* const kNoRailSaid = "send reply, give up: there is no rail that both processes could open";
const char* const kDifferSaid = "send reply, give up: the peer computed other paths than this process";
const char* const kRefused = "give up: the peer could not connect, and said so";

const Cell kCells[] = {
    {State::kIdle, Event::kWant, "make", State::kMaking},
    {State::kIdle, Event::kRequest, "make", State::kAnswering},
    {State::kIdle, Event::kMismatch, kDifferSaid, State::kGivenUp},
    {State::kIdle, Event::kFailed, kNoPairs, State::kGivenUp},

    {State::kMaking, Event::kRequest, "", State::kAnswering},
    {State::kMaking, Event::kMismatch, kDifferSaid, State::kGivenUp},
    {State::kMaking, Event::kQpsReady, "send request", State::kRequested},
    {State::kMaking, Event::kNoQps, kNoPairs, State::kGivenUp},
    {State::kMaking, Event::kFailed, kNoPairs, State::kGivenUp},

    {State::kAnswering, Event::kQpsReady, "connect", State::kJoining},
    {State::kAnswering, Event::kNoQps, kNoPairsSaid, State::kGivenUp},
    {State::kAnswering, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kRequested, Event::kRequest, "connect", State::kJoining},
    {State::kRequested, Event::kReply, "connect", State::kConfirming},
    {State::kRequested, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kRequested, Event::kMismatch, kDifferSaid, State::kGivenUp},
    {State::kRequested, Event::kFailed, kNoPairs, State::kGivenUp},
    {State::kRequested, Event::kTick, "send request", State::kRequested},
    {State::kRequested, Event::kLastTick, "give up: the peer did not answer", State::kGivenUp},

    {State::kJoining, Event::kConnected, "send reply", State::kReplied},
    {State::kJoining, Event::kNoneConnected, kNoRailSaid, State::kGivenUp},
    {State::kJoining, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kReplied, Event::kRequest, "send reply", State::kReplied},
    {State::kReplied, Event::kReply, "send ready, established", State::kEstablished},
    {State::kReplied, Event::kReady, "established", State::kEstablished},
    {State::kReplied, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kReplied, Event::kFailed, kNoPairsSaid, State::kGivenUp},
    {State::kReplied, Event::kTick, "send reply", State::kReplied},
    {State::kReplied, Event::kLastTick, "send reply, give up: the peer did not answer", State::kGivenUp},

    {State::kConfirming, Event::kConnected, "send ready, established", State::kEstablished},
    {State::kConfirming, Event::kNoneConnected, kNoRailSaid, State::kGivenUp},
    {State::kConfirming, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kEstablished, Event::kReply, "send ready", State::kEstablished},
    {State::kEstablished, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kEstablished, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kGivenUp, Event::kRequest, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kReply, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kReady, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kMismatch, "send reply", State::kGivenUp},
};

const Cell* find_cell(State state, Event event) {
    for (const Cell& cell : kCells)
        if (cell.state == state && cell.event == event) return &cell;
    return nullptr;
}

TEST(Connection, every_event_in_every_state) {
    for (std::size_t s = 0; s < kStates; ++s)
        for (const auto& [event, named] : kEvents) {
            const auto state = static_cast<State>(s);
            SCOPED_TRACE(std::string(named.first) + " in state " + name(state));
            Connection c = in_state(state);
            const Cell* cell = find_cell(state, event);
            EXPECT_EQ(text(named.second(c)), cell ? cell->actions : "");
            EXPECT_EQ(c.state(), cell ? cell->then : state);
        }
}

TEST(Connection, every_state_and_reason_has_words) {
    for (std::size_t s = 0; s < kStates; ++s) EXPECT_STRNE(name(static_cast<State>(s)), "?");
    for (int r = 0; r <= static_cast<int>(Reason::kNoAnswer); ++r) EXPECT_STRNE(describe(static_cast<Reason>(r)), "?");
}

// --- what is not for this connection ------------------------------------------------------------------------------------

TEST(Connection, datagrams_of_others_change_nothing) {
    for (std::size_t s = 0; s < kStates; ++s)
        for (Kind kind : {Kind::kRequest, Kind::kReply, Kind::kReady}) {
            const auto state = static_cast<State>(s);
            Connection c = in_state(state);
            const auto ignored = c.counts().ignored;
            Datagram d = from_peer(kind);
            d.sender = kPeer + 1;
            EXPECT_EQ(text(c.on_datagram(d, 0)), "");
            d = from_peer(kind);
            d.receiver = kSelf + 1;
            EXPECT_EQ(text(c.on_datagram(d, 0)), "");
            EXPECT_EQ(text(c.on_datagram(from_peer(kind, kOurs + 1), 0)), "") << "an answer to an earlier connection";
            EXPECT_EQ(c.state(), state);
            EXPECT_EQ(c.counts().ignored, ignored + 3);
        }
}

TEST(Connection, another_generation_of_a_known_peer_changes_nothing) {
    for (State state : {State::kAnswering, State::kJoining, State::kReplied, State::kConfirming, State::kEstablished})
        for (Kind kind : {Kind::kRequest, Kind::kReply, Kind::kReady}) {
            Connection c = in_state(state);
            EXPECT_EQ(text(c.on_datagram(from_peer(kind, kOurs, kTheirs + 1), 0)), "");
            EXPECT_EQ(c.state(), state);
        }
}

TEST(Connection, answer_without_our_generation_is_none) {
    Connection c = in_state(State::kRequested);
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kReply, 0), 0)), "");
}

// --- what it carries ----------------------------------------------------------------------------------------------------

TEST(Connection, knows_both_ends_of_each_rail) {
    const Connection c = in_state(State::kEstablished);
    EXPECT_EQ(c.live(), 3u);
    EXPECT_EQ(c.rail(1).local_qpn, 51u);
    EXPECT_EQ(c.rail(1).remote_qpn, 71u);
    EXPECT_EQ(c.rail(1).remote_psn, 2u);
    EXPECT_LT(c.rail(1).local_psn, 1u << 24);
    EXPECT_NE(c.rail(0).local_psn, c.rail(1).local_psn);
}

TEST(Connection, tells_its_end_of_each_rail) {
    const Connection c = in_state(State::kReplied);
    const Datagram d = c.datagram(Kind::kReply);
    EXPECT_EQ(d.sender, kSelf);
    EXPECT_EQ(d.receiver, kPeer);
    EXPECT_EQ(d.generation, kOurs);
    EXPECT_EQ(d.echo, kTheirs);
    ASSERT_EQ(d.rails.size(), 2u);
    EXPECT_EQ(d.rails[1], (RailEntry{51, c.rail(1).local_psn, 1, 2, 1, 1}));
    EXPECT_EQ(std::get<Datagram>(decode(encode(d))), d);
}

TEST(Connection, refusal_has_no_rails) { EXPECT_TRUE(in_state(State::kGivenUp).datagram(Kind::kReply).rails.empty()); }

TEST(Connection, without_a_path_gives_up_at_once) {
    Connection asks(kSelf, kPeer, kOurs, {});
    EXPECT_EQ(text(asks.on_want(0)), "give up: no port of this process reaches a port of the peer");
    Connection asked(kSelf, kPeer, kOurs, {});
    EXPECT_EQ(text(asked.on_datagram(from_peer(Kind::kRequest, 0), 0)),
              "send reply, give up: no port of this process reaches a port of the peer");
    EXPECT_EQ(asked.reason(), Reason::kNoPath);
}

TEST(Connection, rail_that_could_not_be_made_is_closed_and_the_others_serve) {
    Connection c = in_state(State::kAnswering);
    const std::uint32_t one[] = {0, 51};
    EXPECT_EQ(text(c.on_qps_ready(one, 0)), "connect");
    EXPECT_EQ(c.live(), 2u);
    EXPECT_EQ(text(c.on_connected(0, 0)), "send reply");
    EXPECT_EQ(c.datagram(Kind::kReply).rails[0].qpn, 0u);
}

TEST(Connection, rail_that_the_peer_closed_last_is_closed) {
    Connection c = in_state(State::kReplied);
    Datagram ready = from_peer(Kind::kReady);
    ready.rails[0].qpn = 0;
    EXPECT_EQ(text(c.on_datagram(ready, 0)), "established");
    EXPECT_EQ(c.live(), 2u);
}

TEST(Connection, no_rail_that_both_have_is_no_connection) {
    Connection c = in_state(State::kAnswering);  // the peer has only rail 0
    Datagram request = from_peer(Kind::kRequest, 0);
    request.rails[1].qpn = 0;
    c = fresh();
    (void)c.on_datagram(request, 0);
    const std::uint32_t other[] = {0, 51};
    EXPECT_EQ(text(c.on_qps_ready(other, 0)), kNoRailSaid);
}

TEST(Connection, pauses_double_up_to_the_longest) {
    Connection c = in_state(State::kRequested);
    std::vector<Nanoseconds> pauses;
    for (Nanoseconds last = 0; pauses.size() < 4;) {
        const Nanoseconds next = *c.next_tick();
        pauses.push_back((next - last) / kMs);
        EXPECT_EQ(text(c.on_tick(next)), "send request");
        last = next;
    }
    EXPECT_EQ(pauses, (std::vector<Nanoseconds>{10, 20, 40, 40}));
    EXPECT_EQ(c.attempt(), 4u);
}

TEST(Connection, has_nothing_to_do_later_unless_it_waits) {
    for (std::size_t s = 0; s < kStates; ++s) {
        const auto state = static_cast<State>(s);
        EXPECT_EQ(in_state(state).next_tick().has_value(), state == State::kRequested || state == State::kReplied) << name(state);
    }
}

TEST(Connection, without_a_limit_it_waits_for_ever) {
    Patience patience = kPatience;
    patience.limit = 0;
    Connection c(kSelf, kPeer, kOurs, kPaths, patience);
    (void)c.on_want(0);
    (void)c.on_qps_ready(kNumbers, 0);
    EXPECT_EQ(text(c.on_tick(1'000'000 * kPatience.limit)), "send request");
}

// --- datagrams ----------------------------------------------------------------------------------------------------------

TEST(Datagram, every_flipped_bit_is_seen) {
    const auto whole = encode(from_peer(Kind::kReply));
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        auto bytes = whole;
        bytes[bit / 8] ^= std::byte{static_cast<unsigned char>(1u << bit % 8)};
        EXPECT_TRUE(std::holds_alternative<std::string>(decode(bytes))) << "bit " << bit;
    }
}

TEST(Datagram, field_out_of_bounds_or_other_length_is_named) {
    const auto wrong = [](const std::vector<std::byte>& bytes) {
        const Decoded d = decode(bytes);
        return std::holds_alternative<std::string>(d) ? std::get<std::string>(d) : "";
    };
    Datagram d = from_peer(Kind::kReply);
    d.rails[0].qpn = 1u << 24;
    EXPECT_EQ(wrong(encode(d)), "connection datagram: number of a queue pair is 16777216, expected 0..16777215");
    d = from_peer(Kind::kReply);
    d.rails[1].receiver_port = kMaxPorts;
    EXPECT_NE(wrong(encode(d)).find("receiver's port"), std::string::npos);
    d = from_peer(Kind::kReply);
    d.rails[1].sender_bits = 128;
    EXPECT_NE(wrong(encode(d)).find("sender's path bits"), std::string::npos);
    d = from_peer(Kind::kReply);
    d.generation = 0;
    EXPECT_NE(wrong(encode(d)).find("generation"), std::string::npos);
    d = from_peer(Kind{4});
    EXPECT_NE(wrong(encode(d)).find("kind is 4"), std::string::npos);
    auto bytes = encode(from_peer(Kind::kReply));
    bytes.push_back(std::byte{0});
    EXPECT_NE(wrong(bytes).find("length"), std::string::npos);
    EXPECT_NE(wrong({}).find("length"), std::string::npos);
}

TEST(Datagram, noise_is_refused) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        auto bytes = encode(from_peer(Kind::kRequest));
        bytes.resize(random() % (kMaxDatagramBytes + 1));
        for (std::size_t at = round % 2 == 0 ? 0 : 8; at < bytes.size(); ++at) bytes[at] = std::byte{static_cast<unsigned char>(random())};
        EXPECT_TRUE(std::holds_alternative<std::string>(decode(bytes))) << "round " << round;
    }
}

// --- two machines and a network -----------------------------------------------------------------------------------------

struct Weather {
    unsigned loss = 0, doubling = 0;  // percent
    unsigned most_delay_ms = 1;
};

// Both sides carry out their actions; the network delivers bytes, in any order that the delays give.
class Network2 {
public:
    Network2(unsigned seed, Weather weather) : random_(seed), weather_(weather) {}

    struct Side {
        Connection connection;
        RailMask cannot_make = 0, cannot_connect = 0;
        int made = 0, connected = 0, established = 0, given_up = 0;
        bool up = false;  // queue pairs are in RTS
    };
    Side sides[2] = {{Connection(kSelf, kPeer, kOurs, kPaths, patience())}, {Connection(kPeer, kSelf, kTheirs, of_peer(kPaths), patience())}};

    static Patience patience() { return {.first = 10 * kMs, .longest = 80 * kMs, .limit = 30'000 * kMs}; }

    void want(int side) { carry_out(side, sides[side].connection.on_want(now_)); }

    // Until nothing is under way and nobody waits.
    void run() {
        while (step()) {}
    }

    unsigned percent() { return static_cast<unsigned>(random_() % 100); }
    Nanoseconds now() const { return now_; }

private:
    bool step() {
        Nanoseconds next = under_way_.empty() ? UINT64_MAX : under_way_.begin()->first;
        for (Side& side : sides)
            if (const auto tick = side.connection.next_tick()) next = std::min(next, *tick);
        if (next == UINT64_MAX) return false;
        now_ = next;
        deliver();
        for (int i = 0; i < 2; ++i) carry_out(i, sides[i].connection.on_tick(now_));
        return true;
    }

    void deliver() {
        while (!under_way_.empty() && under_way_.begin()->first <= now_) {
            const auto [to, bytes] = under_way_.begin()->second;
            under_way_.erase(under_way_.begin());
            const Decoded decoded = decode(bytes);
            ASSERT_TRUE(std::holds_alternative<Datagram>(decoded)) << std::get<std::string>(decoded);
            carry_out(to, sides[to].connection.on_datagram(std::get<Datagram>(decoded), now_));
        }
    }

    void send(int from, Kind kind) {
        const auto bytes = encode(sides[from].connection.datagram(kind));
        if (percent() < weather_.loss) return;
        for (int copies = percent() < weather_.doubling ? 2 : 1; copies > 0; --copies)
            under_way_.emplace(now_ + 1000 + random_() % (weather_.most_delay_ms * kMs), std::pair(1 - from, bytes));
    }

    void carry_out(int i, const Actions& actions) {
        Side& side = sides[i];
        for (const Action& action : actions) switch (action.what) {
            case Do::kMakeQueuePairs: {
                ++side.made;
                std::vector<std::uint32_t> numbers;
                for (std::size_t r = 0; r < kPaths.size(); ++r)
                    numbers.push_back(side.cannot_make >> r & 1 ? 0 : static_cast<std::uint32_t>(100 * (i + 1) + r));
                carry_out(i, side.connection.on_qps_ready(numbers, now_));
                break;
            }
            case Do::kConnectQueuePairs:
                ++side.connected;
                side.up = true;
                carry_out(i, side.connection.on_connected(side.cannot_connect, now_));
                break;
            case Do::kSend: send(i, action.kind); break;
            case Do::kEstablished:
                ++side.established;
                EXPECT_TRUE(sides[1 - i].up) << "established before the other side can receive";
                break;
            case Do::kGiveUp: ++side.given_up; break;
        }
    }

    std::mt19937 random_;
    Weather weather_;
    Nanoseconds now_ = 0;
    std::multimap<Nanoseconds, std::pair<int, std::vector<std::byte>>> under_way_;
};

class Networks : public ::testing::TestWithParam<Weather> {};

void expect_connected(const Network2& net) {
    for (const auto& side : net.sides) {
        EXPECT_EQ(side.connection.state(), State::kEstablished) << describe(side.connection.reason());
        EXPECT_EQ(side.made, 1);
        EXPECT_EQ(side.connected, 1);
        EXPECT_EQ(side.established, 1);
    }
    const Connection &a = net.sides[0].connection, &b = net.sides[1].connection;
    EXPECT_EQ(a.live(), b.live());
    for (std::size_t i = 0; i < a.rails(); ++i) {
        if (!(a.live() >> i & 1)) continue;
        EXPECT_EQ(a.rail(i).local_qpn, b.rail(i).remote_qpn);
        EXPECT_EQ(a.rail(i).remote_qpn, b.rail(i).local_qpn);
        EXPECT_EQ(a.rail(i).local_psn, b.rail(i).remote_psn);
        EXPECT_EQ(a.rail(i).remote_psn, b.rail(i).local_psn);
    }
}

TEST_P(Networks, one_asks_and_both_are_established) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Network2 net(seed, GetParam());
        net.want(0);
        net.run();
        expect_connected(net);
        EXPECT_EQ(net.sides[0].connection.live(), 3u);
        if (HasFailure()) return;
    }
}

TEST_P(Networks, both_ask_and_both_are_established) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Network2 net(seed, GetParam());
        net.want(0);
        net.want(1);
        net.run();
        expect_connected(net);
        if (HasFailure()) return;
    }
}

TEST_P(Networks, both_sides_agree_on_the_rails_that_opened) {
    for (unsigned seed = 0; seed < 800; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Network2 net(seed, GetParam());
        RailMask closed = 0;
        for (auto& side : net.sides) {
            side.cannot_make = net.percent() < 20 ? 1u << net.percent() % 2 : 0;
            side.cannot_connect = net.percent() < 20 ? 1u << net.percent() % 2 : 0;
            closed |= side.cannot_make | side.cannot_connect;
        }
        net.want(0);
        if (seed % 2 != 0) net.want(1);
        net.run();
        if (closed != 3) {
            expect_connected(net);
            EXPECT_EQ(net.sides[0].connection.live(), 3u & ~closed);
        } else {
            for (const auto& side : net.sides) {
                EXPECT_EQ(side.connection.state(), State::kGivenUp);
                EXPECT_EQ(side.given_up, 1);
            }
        }
        if (HasFailure()) return;
    }
}

TEST_P(Networks, refusal_reaches_the_one_who_asks) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Network2 net(seed, GetParam());
        net.sides[1].cannot_make = 3;
        net.want(0);
        net.run();
        EXPECT_EQ(net.sides[0].connection.reason(), Reason::kRefused);
        EXPECT_EQ(net.sides[1].connection.reason(), Reason::kNoQueuePairs);
        EXPECT_LT(net.now(), Network2::patience().limit);
        if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Weather, Networks,
                         ::testing::Values(Weather{}, Weather{.loss = 30}, Weather{.doubling = 50, .most_delay_ms = 200},
                                           Weather{.loss = 60, .doubling = 30, .most_delay_ms = 300}));

TEST(Connection, over_a_dead_network_gives_up_at_its_limit) {
    Network2 net(0, {.loss = 100});
    net.want(0);
    net.run();
    EXPECT_EQ(net.sides[0].connection.reason(), Reason::kNoAnswer);
    EXPECT_GE(net.now(), Network2::patience().limit);
    EXPECT_EQ(net.sides[1].connection.state(), State::kIdle);
}

TEST(Connection, at_rest_takes_three_datagrams) {
    Network2 net(0, {});
    net.want(0);
    net.run();
    EXPECT_EQ(net.sides[0].connection.counts().sent, 2u);
    EXPECT_EQ(net.sides[1].connection.counts().sent, 1u);
}

}  // namespace
}  // namespace coop::path

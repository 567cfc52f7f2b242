// SPDX-License-Identifier: BSD-3-Clause
//
// path/connect.h: every event in every state; then two machines and a network that loses, duplicates, delays and reorders.
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
constexpr std::uint64_t kOurWord = 0x1000, kTheirWord = 0x2000;  // addresses
constexpr Nanoseconds kMs = 1'000'000;
constexpr Patience kPatience = {.first = 10 * kMs, .longest = 40 * kMs, .first_look = kMs, .probe = 100 * kMs, .notice = 1000 * kMs};

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
            case Do::kProbe: words += "probe"; break;
            case Do::kLook: words += "look"; break;
            case Do::kTellLate: words += "tell late"; break;
            case Do::kSend: words += std::string("send ") + name(a.kind); break;
            case Do::kEstablished: words += "established"; break;
            case Do::kGiveUp: words += std::string("give up: ") + describe(a.reason); break;
        }
    }
    return words;
}

Datagram from_peer(Kind kind, std::uint32_t echo = kOurs, std::uint32_t generation = kTheirs) {
    return {kind, kPeer, kSelf, kTheirWord, generation, echo, {{70, 1, 700, 0, 0, 0, 0}, {71, 2, 701, 2, 1, 1, 1}}};
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

constexpr OwnEnd kNumbers[] = {{50, 500}, {51, 501}};
constexpr RailMask kBoth = 3;

Connection fresh() { return Connection(kSelf, kPeer, kOurs, kPaths, kPatience, kOurWord); }

// A machine brought into a state at time 0, on the shortest way.
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
        case State::kProbing:
            c = in_state(State::kConfirming);
            (void)c.on_connected(0, 0);
            break;
        case State::kProbed:
            c = in_state(State::kProbing);
            (void)c.on_probed(kBoth, 0, 0);
            break;
        case State::kEstablished:
            c = in_state(State::kProbed);
            (void)c.on_datagram(from_peer(Kind::kProbed), 0);
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

enum class Event { kWant, kRequest, kReply, kReady, kProbed, kDone, kRefusal, kMismatch, kQpsReady, kNoQps, kConnected, kNoneConnected,
                   kAnswers, kNothingYet, kOneAnswers, kAllBroken, kFailed, kEarlyTick, kTick, kLateTick };

const std::map<Event, std::pair<const char*, std::function<Actions(Connection&)>>> kEvents = {
    {Event::kWant, {"want", [](Connection& c) { return c.on_want(0); }}},
    {Event::kRequest, {"request", [](Connection& c) { return c.on_datagram(from_peer(Kind::kRequest, 0), 0); }}},
    {Event::kReply, {"reply", [](Connection& c) { return c.on_datagram(from_peer(Kind::kReply), 0); }}},
    {Event::kReady, {"ready", [](Connection& c) { return c.on_datagram(from_peer(Kind::kReady), 0); }}},
    {Event::kProbed, {"probed", [](Connection& c) { return c.on_datagram(from_peer(Kind::kProbed), 0); }}},
    {Event::kDone, {"done", [](Connection& c) { return c.on_datagram(from_peer(Kind::kDone), 0); }}},
    {Event::kRefusal, {"refusal", [](Connection& c) { return c.on_datagram(refusal(), 0); }}},
    {Event::kMismatch, {"request of other paths", [](Connection& c) { return c.on_datagram(of_other_paths(), 0); }}},
    {Event::kQpsReady, {"queue pairs ready", [](Connection& c) { return c.on_qps_ready(kNumbers, 0); }}},
    {Event::kNoQps, {"no queue pairs", [](Connection& c) { return c.on_qps_ready({}, 0); }}},
    {Event::kConnected, {"connected", [](Connection& c) { return c.on_connected(0, 0); }}},
    {Event::kNoneConnected, {"none connected", [](Connection& c) { return c.on_connected(3, 0); }}},
    {Event::kAnswers, {"all rails answer", [](Connection& c) { return c.on_probed(kBoth, 0, 0); }}},
    {Event::kNothingYet, {"no rail answers yet", [](Connection& c) { return c.on_probed(0, 0, kPatience.notice); }}},
    {Event::kOneAnswers, {"one rail answers", [](Connection& c) { return c.on_probed(1, 0, 0); }}},
    {Event::kAllBroken, {"all rails are in error", [](Connection& c) { return c.on_probed(0, kBoth, 0); }}},
    {Event::kFailed, {"failed", [](Connection& c) { return c.on_failed(Reason::kNoQueuePairs); }}},
    {Event::kEarlyTick, {"early tick", [](Connection& c) { return c.on_tick(kPatience.first_look - 1); }}},
    {Event::kTick, {"tick", [](Connection& c) { return c.on_tick(kPatience.first); }}},
    {Event::kLateTick, {"late tick", [](Connection& c) { return c.on_tick(kPatience.notice); }}},
};

struct Cell {
    State state;
    Event event;
    const char* actions;
    State then;
};

// Cells that are not listed change nothing and cause no action.
const char* const kNoPairs = "give up: no queue pair could be made";
const char* const kNoPairsSaid = "send reply, give up: no queue pair could be made";
const char* const kNoRailSaid = "send reply, give up: there is no rail that both processes could open";
const char* const kSilentSaid = "send reply, give up: no rail between the two processes carries data";
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

    {State::kRequested, Event::kRequest, "", State::kRequested},  // our number is lower
    {State::kRequested, Event::kReply, "connect", State::kConfirming},
    {State::kRequested, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kRequested, Event::kMismatch, kDifferSaid, State::kGivenUp},
    {State::kRequested, Event::kFailed, kNoPairs, State::kGivenUp},
    {State::kRequested, Event::kTick, "send request", State::kRequested},
    {State::kRequested, Event::kLateTick, "tell late, send request", State::kRequested},

    {State::kJoining, Event::kConnected, "send reply", State::kReplied},
    {State::kJoining, Event::kNoneConnected, kNoRailSaid, State::kGivenUp},
    {State::kJoining, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kReplied, Event::kRequest, "send reply", State::kReplied},
    {State::kReplied, Event::kReady, "probe", State::kProbing},
    {State::kReplied, Event::kProbed, "probe", State::kProbing},
    {State::kReplied, Event::kDone, "probe", State::kProbing},
    {State::kReplied, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kReplied, Event::kFailed, kNoPairsSaid, State::kGivenUp},
    {State::kReplied, Event::kTick, "send reply", State::kReplied},
    {State::kReplied, Event::kLateTick, "tell late, send reply", State::kReplied},

    {State::kConfirming, Event::kConnected, "send ready, probe", State::kProbing},
    {State::kConfirming, Event::kNoneConnected, kNoRailSaid, State::kGivenUp},
    {State::kConfirming, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kProbing, Event::kReply, "send ready", State::kProbing},
    {State::kProbing, Event::kAnswers, "send probed", State::kProbed},
    {State::kProbing, Event::kAllBroken, kSilentSaid, State::kGivenUp},
    {State::kProbing, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kProbing, Event::kFailed, kNoPairsSaid, State::kGivenUp},
    {State::kProbing, Event::kTick, "look", State::kProbing},
    {State::kProbing, Event::kLateTick, "tell late, look", State::kProbing},

    {State::kProbed, Event::kReply, "send ready", State::kProbed},
    {State::kProbed, Event::kProbed, "send done, established", State::kEstablished},
    {State::kProbed, Event::kDone, "established", State::kEstablished},
    {State::kProbed, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kProbed, Event::kFailed, kNoPairsSaid, State::kGivenUp},
    {State::kProbed, Event::kTick, "send probed", State::kProbed},
    {State::kProbed, Event::kLateTick, "tell late, send probed", State::kProbed},

    {State::kEstablished, Event::kProbed, "send done", State::kEstablished},
    {State::kEstablished, Event::kRefusal, kRefused, State::kGivenUp},
    {State::kEstablished, Event::kFailed, kNoPairsSaid, State::kGivenUp},

    {State::kGivenUp, Event::kRequest, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kReply, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kReady, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kProbed, "send reply", State::kGivenUp},
    {State::kGivenUp, Event::kDone, "send reply", State::kGivenUp},
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
    for (int r = 0; r <= static_cast<int>(Reason::kRefused); ++r) EXPECT_STRNE(describe(static_cast<Reason>(r)), "?");
}

// --- datagrams for other connections -------------------------------------------------------------------------------------

TEST(Connection, datagrams_of_others_change_nothing) {
    for (std::size_t s = 0; s < kStates; ++s)
        for (Kind kind : {Kind::kRequest, Kind::kReply, Kind::kReady, Kind::kProbed, Kind::kDone}) {
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
    for (State state : {State::kAnswering, State::kJoining, State::kReplied, State::kConfirming, State::kProbing, State::kProbed, State::kEstablished})
        for (Kind kind : {Kind::kRequest, Kind::kReply, Kind::kReady, Kind::kProbed, Kind::kDone}) {
            Connection c = in_state(state);
            EXPECT_EQ(text(c.on_datagram(from_peer(kind, kOurs, kTheirs + 1), 0)), "");
            EXPECT_EQ(c.state(), state);
        }
}

TEST(Connection, answer_without_our_generation_is_none) {
    Connection c = in_state(State::kRequested);
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kReply, 0), 0)), "");
}

// --- its contents ------------------------------------------------------------------------------------------------------

TEST(Connection, knows_both_ends_of_each_rail) {
    const Connection c = in_state(State::kEstablished);
    EXPECT_EQ(c.live(), 3u);
    EXPECT_EQ(c.rail(1).local_qpn, 51u);
    EXPECT_EQ(c.rail(1).remote_qpn, 71u);
    EXPECT_EQ(c.rail(1).remote_psn, 2u);
    EXPECT_EQ(c.rail(1).remote_rkey, 701u);
    EXPECT_EQ(c.peer_word(), kTheirWord);
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
    EXPECT_EQ(d.word, kOurWord);
    ASSERT_EQ(d.rails.size(), 2u);
    EXPECT_EQ(d.rails[1], (RailEntry{51, c.rail(1).local_psn, 501, 1, 2, 1, 1}));
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
    const OwnEnd one[] = {{}, {51, 501}};
    EXPECT_EQ(text(c.on_qps_ready(one, 0)), "connect");
    EXPECT_EQ(c.live(), 2u);
    EXPECT_EQ(text(c.on_connected(0, 0)), "send reply");
    EXPECT_EQ(c.datagram(Kind::kReply).rails[0].qpn, 0u);
}

TEST(Connection, rail_that_the_peer_closed_last_is_closed) {
    Connection c = in_state(State::kProbed);
    Datagram probed = from_peer(Kind::kProbed);
    probed.rails[0].qpn = 0;
    EXPECT_EQ(text(c.on_datagram(probed, 0)), "send done, established");
    EXPECT_EQ(c.live(), 2u);
}

TEST(Connection, peer_that_has_probed_first_spares_a_wait) {
    Connection c = in_state(State::kProbing);
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kProbed), 0)), "");
    EXPECT_EQ(text(c.on_probed(kBoth, 0, 0)), "send done, established");
}

TEST(Connection, rail_that_each_side_found_silent_in_one_direction_leaves_none) {
    Connection c = in_state(State::kProbing);
    (void)c.on_probed(2, 1, 0);
    ASSERT_EQ(c.state(), State::kProbed);
    Datagram probed = from_peer(Kind::kProbed);
    probed.rails[1].qpn = 0;
    EXPECT_EQ(text(c.on_datagram(probed, 0)), kSilentSaid);
}

TEST(Connection, no_rail_that_both_have_is_no_connection) {
    Connection c = in_state(State::kAnswering);  // the peer has only rail 0
    Datagram request = from_peer(Kind::kRequest, 0);
    request.rails[1].qpn = 0;
    c = fresh();
    (void)c.on_datagram(request, 0);
    const OwnEnd other[] = {{}, {51, 501}};
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
        const bool waits = state == State::kRequested || state == State::kReplied || state == State::kProbing || state == State::kProbed;
        EXPECT_EQ(in_state(state).next_tick().has_value(), waits) << name(state);
    }
}

TEST(Site01Connection, time_alone_never_gives_up) {
    for (State state : {State::kRequested, State::kReplied, State::kProbing, State::kProbed}) {
        Connection c = in_state(state);
        for (Nanoseconds day = 0; day < 100; ++day) (void)c.on_tick(day * 86'400'000 * kMs);
        EXPECT_EQ(c.state(), state);
    }
}

TEST(Site01Connection, a_late_answer_is_told_once) {
    Connection c = in_state(State::kRequested);
    EXPECT_EQ(text(c.on_tick(kPatience.notice)), "tell late, send request");
    EXPECT_EQ(text(c.on_tick(2 * kPatience.notice)), "send request");
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kReply), 0)), "connect") << "it is as good as an early one";
}

// --- probes -------------------------------------------------------------------------------------------------------------

TEST(Site16Connection, rail_that_stays_silent_is_closed_on_both_sides) {
    Connection c = in_state(State::kProbing);
    EXPECT_EQ(text(c.on_probed(2, 0, 5 * kMs)), "") << "rail 0 has time left";
    EXPECT_EQ(text(c.on_probed(2, 0, 5 * kMs + kPatience.probe - 1)), "");
    EXPECT_EQ(text(c.on_probed(2, 0, 5 * kMs + kPatience.probe)), "send probed");
    EXPECT_EQ(c.live(), 2u);
    EXPECT_EQ(c.datagram(Kind::kProbed).rails[0].qpn, 0u) << "this informs the peer";
}

TEST(Site16Connection, rail_in_error_is_closed_without_waiting) {
    Connection c = in_state(State::kProbing);
    EXPECT_EQ(text(c.on_probed(0, 1, 0)), "");
    EXPECT_EQ(text(c.on_probed(2, 0, kMs)), "send probed");
    EXPECT_EQ(c.live(), 2u);
}

TEST(Site16Connection, a_look_comes_at_the_end_of_the_probe) {
    Connection c = in_state(State::kProbing);
    for (Nanoseconds now = 0; now < 100 * kMs; now = *c.next_tick()) (void)c.on_tick(now);
    const Nanoseconds first = *c.next_tick();
    (void)c.on_tick(first);
    (void)c.on_probed(1, 0, first);
    EXPECT_LE(*c.next_tick(), first + kPatience.probe);
}

TEST(Site16Connection, looks_become_rare_while_nothing_answers) {
    Connection c = in_state(State::kProbing);
    std::vector<Nanoseconds> pauses;
    for (Nanoseconds last = 0; pauses.size() < 8;) {
        const Nanoseconds next = *c.next_tick();
        pauses.push_back((next - last) / kMs);
        (void)c.on_tick(next);
        last = next;
    }
    EXPECT_EQ(pauses, (std::vector<Nanoseconds>{1, 2, 4, 8, 16, 32, 40, 40}));
}

// --- crossing requests --------------------------------------------------------------------------------------------------

TEST(Connection, the_request_of_the_lower_number_counts) {
    Connection c(kPeer, kSelf, kTheirs, of_peer(kPaths), kPatience, kTheirWord);
    (void)c.on_want(0);
    (void)c.on_qps_ready(kNumbers, 0);
    const Datagram request{Kind::kRequest, kSelf, kPeer, kOurWord, kOurs, 0, {{50, 1, 500, 0, 0, 0, 0}, {51, 2, 501, 1, 2, 1, 1}}};
    EXPECT_EQ(text(c.on_datagram(request, 0)), "connect");
    EXPECT_EQ(c.state(), State::kJoining);
}

TEST(Connection, process_connects_to_itself) {
    const std::vector<PathChoice> own = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}};
    Connection c(kSelf, kSelf, kOurs, own, kPatience, kOurWord);
    (void)c.on_want(0);
    EXPECT_EQ(text(c.on_qps_ready(kNumbers, 0)), "send request");
    EXPECT_EQ(text(c.on_datagram(c.datagram(Kind::kRequest), 0)), "connect");
    EXPECT_EQ(c.rail(1).remote_qpn, 51u);
    EXPECT_EQ(text(c.on_connected(0, 0)), "send ready, probe");
    EXPECT_EQ(text(c.on_datagram(c.datagram(Kind::kReady), 0)), "");
    EXPECT_EQ(text(c.on_probed(kBoth, 0, 0)), "send probed");
    EXPECT_EQ(text(c.on_datagram(c.datagram(Kind::kProbed), 0)), "send done, established");
    EXPECT_EQ(text(c.on_datagram(c.datagram(Kind::kDone), 0)), "");
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
    d = from_peer(Kind{6});
    EXPECT_NE(wrong(encode(d)).find("kind is 6"), std::string::npos);
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

// Both sides carry out their actions. The network delivers bytes, in any order that results from the delays.
class Network2 {
public:
    Network2(unsigned seed, Weather weather) : random_(seed), weather_(weather) {}

    struct Side {
        Connection connection;
        RailMask cannot_make = 0, cannot_connect = 0, cannot_answer = 0;
        int made = 0, connected = 0, established = 0, given_up = 0;
        bool up = false;  // queue pairs are in RTS
    };
    Side sides[2] = {{Connection(kSelf, kPeer, kOurs, kPaths, patience(), kOurWord)}, {Connection(kPeer, kSelf, kTheirs, of_peer(kPaths), patience(), kTheirWord)}};

    static Patience patience() { return {.first = 10 * kMs, .longest = 80 * kMs, .first_look = kMs, .probe = 50 * kMs, .notice = 0}; }

    void want(int side) { carry_out(side, sides[side].connection.on_want(now_)); }

    // Runs until nothing is in flight and no side waits, or until `end`.
    void run(Nanoseconds end = 100'000 * kMs) {
        while (now_ < end && step()) {}
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
                std::vector<OwnEnd> numbers;
                for (std::size_t r = 0; r < kPaths.size(); ++r)
                    numbers.push_back({side.cannot_make >> r & 1 ? 0 : static_cast<std::uint32_t>(100 * (i + 1) + r), 1});
                carry_out(i, side.connection.on_qps_ready(numbers, now_));
                break;
            }
            case Do::kConnectQueuePairs:
                ++side.connected;
                side.up = true;
                carry_out(i, side.connection.on_connected(side.cannot_connect, now_));
                break;
            case Do::kProbe: EXPECT_TRUE(sides[1 - i].up) << "probes before the other side can answer a probe"; break;
            case Do::kLook: {
                carry_out(i, side.connection.on_probed(side.connection.live() & ~sides[1 - i].cannot_answer, 0, now_));
                break;
            }
            case Do::kTellLate: break;
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
            side.cannot_answer = net.percent() < 10 ? 1u << net.percent() % 2 : 0;
            closed |= side.cannot_make | side.cannot_connect | side.cannot_answer;
        }
        net.want(0);
        if (seed % 2 != 0) net.want(1);
        net.run();
        if (closed != 3) {
            expect_connected(net);
            EXPECT_EQ(net.sides[0].connection.live(), 3u & ~closed);
        } else {
            for (const auto& side : net.sides) {
                EXPECT_TRUE(side.connection.state() == State::kGivenUp || side.connection.live() != 0) << "waits for a rail that may yet answer";
                EXPECT_LE(side.given_up, 1);
            }
        }
        if (HasFailure()) return;
    }
}

TEST_P(Networks, refusal_reaches_the_requester) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Network2 net(seed, GetParam());
        net.sides[1].cannot_make = 3;
        net.want(0);
        net.run();
        EXPECT_EQ(net.sides[0].connection.reason(), Reason::kRefused);
        EXPECT_EQ(net.sides[1].connection.reason(), Reason::kNoQueuePairs);
        if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Weather, Networks,
                         ::testing::Values(Weather{}, Weather{.loss = 30}, Weather{.doubling = 50, .most_delay_ms = 200},
                                           Weather{.loss = 60, .doubling = 30, .most_delay_ms = 300}));

TEST(Site01Connection, over_a_dead_network_keeps_asking) {
    Network2 net(0, {.loss = 100});
    net.want(0);
    net.run(60'000 * kMs);
    EXPECT_EQ(net.sides[0].connection.state(), State::kRequested);
    EXPECT_GE(net.sides[0].connection.counts().repeated, 60'000 / 80);
    EXPECT_EQ(net.sides[1].connection.state(), State::kIdle);
}

TEST(Connection, at_rest_takes_few_datagrams) {
    Network2 net(0, {});
    net.want(0);
    net.run();
    const auto &asks = net.sides[0].connection.counts(), &answers = net.sides[1].connection.counts();
    EXPECT_LE(asks.sent + answers.sent, 7u) << "request, reply, ready; probed from both sides, and done from both where these cross";
}

}  // namespace
}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
// path/connect.h: every event in every state, and the contents of datagrams.
#include "connections.h"

#include <functional>
#include <map>
#include <random>

namespace coop::path {
namespace {

using namespace test;

// --- every event in every state ------------------------------------------------------------------------------------

enum class Event {
    kWant,
    kRequest,
    kReply,
    kReady,
    kProbed,
    kDone,
    kRefusal,
    kMismatch,
    kQpsReady,
    kNoQps,
    kConnected,
    kNoneConnected,
    kAnswers,
    kNothingYet,
    kOneAnswers,
    kAllBroken,
    kFailed,
    kEarlyTick,
    kTick,
    kLateTick
};

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

const char* const kNoPairs = "give up: no queue pair could be made";
const char* const kNoPairsSaid = "send reply, give up: no queue pair could be made";
const char* const kNoRailSaid = "send reply, give up: there is no rail that both processes could open";
const char* const kSilentSaid = "send reply, give up: no rail between the two processes carries data";
const char* const kDifferSaid = "send reply, give up: the peer computed different paths";
const char* const kRefused = "give up: the peer refused the connection";

// Cells that are not listed change nothing and cause no action.
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

// --- datagrams for other connections -------------------------------------------------------------------------------

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
    for (State state : {State::kAnswering, State::kJoining, State::kReplied, State::kConfirming, State::kProbing,
                        State::kProbed, State::kEstablished})
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

// --- contents of a connection --------------------------------------------------------------------------------------

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

TEST(Datagram, tells_what_has_arrived_over_a_rail_that_is_closed) {
    Datagram closed{Kind::kClosed, kSelf, kPeer, 0, kOurs, 0, {}, 3, true, 2, 100, 20, std::nullopt};
    EXPECT_EQ(std::get<Datagram>(decode(encode(closed))), closed);
    closed.follower = 0;
    EXPECT_EQ(std::get<Datagram>(decode(encode(closed))), closed);
    closed.follower = 19;
    EXPECT_EQ(std::get<Datagram>(decode(encode(closed))), closed);
}

TEST(Connection, ignores_datagrams_about_something_else) {
    for (const Kind kind : {Kind::kDown, Kind::kClosed, Kind::kBusy, Kind::kLeft}) {
        Connection c = in_state(State::kReplied);
        EXPECT_EQ(text(c.on_datagram(from_peer(kind), 0)), "") << name(kind);
        EXPECT_EQ(c.state(), State::kReplied);
    }
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

// A connection of one rail and its queue pair for reads, after the peer has replied.
Connection with_reader() {
    Connection c(kSelf, kPeer, kOurs, {{0, 0, 0, 0, 0}, {0, 0, 0, 0, kForReads}}, kPatience, kOurWord);
    (void)c.on_want(0);
    const OwnEnd ends[] = {{50, 500}, {51, 501}};
    (void)c.on_qps_ready(ends, 0);
    Datagram reply = from_peer(Kind::kReply);
    reply.rails[1] = {71, 2, 701, 0, 0, 0, 0};
    EXPECT_EQ(text(c.on_datagram(reply, 0)), "connect");
    return c;
}

TEST(Connection, rail_serves_without_its_queue_pair_for_reads) {
    Connection c = with_reader();
    EXPECT_EQ(c.live(), 3u);
    EXPECT_EQ(text(c.on_connected(2, 0)), "send ready, probe");
    EXPECT_EQ(c.live(), 1u);
    EXPECT_EQ(text(c.on_probed(1, 0, 0)), "send probed");
}

TEST(Connection, queue_pair_for_reads_is_no_rail) {
    Connection closed = with_reader();
    EXPECT_EQ(text(closed.on_connected(1, 0)), std::string("send reply, give up: ") + describe(Reason::kNoRailOpened));
    Connection silent = with_reader();
    (void)silent.on_connected(0, 0);
    EXPECT_EQ(text(silent.on_probed(2, 0, 0)), "") << "the rail has not answered";
    EXPECT_EQ(text(silent.on_probed(0, 1, 0)), std::string("send reply, give up: ") + describe(Reason::kNoRailAnswers));
}

TEST(Connection, peer_that_has_probed_first_spares_a_wait) {
    Connection c = in_state(State::kProbing);
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kProbed), 0)), "");
    EXPECT_EQ(text(c.on_probed(kBoth, 0, 0)), "send done, established");
}

TEST(Connection, no_rail_is_left_if_each_side_closes_another_one) {
    Connection c = in_state(State::kProbing);
    (void)c.on_probed(2, 1, 0);
    ASSERT_EQ(c.state(), State::kProbed);
    Datagram probed = from_peer(Kind::kProbed);
    probed.rails[1].qpn = 0;
    EXPECT_EQ(text(c.on_datagram(probed, 0)), kSilentSaid);
}

TEST(Connection, no_rail_that_both_have_is_no_connection) {
    Connection c = fresh();
    Datagram request = from_peer(Kind::kRequest, 0);
    request.rails[1].qpn = 0;  // the peer has only rail 0
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
        const bool waits = state == State::kRequested || state == State::kReplied || state == State::kProbing ||
                           state == State::kProbed;
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

// --- probes --------------------------------------------------------------------------------------------------------

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

// --- crossing requests ---------------------------------------------------------------------------------------------

TEST(Connection, the_request_of_the_lower_number_counts) {
    Connection c(kPeer, kSelf, kTheirs, of_peer(kPaths), kPatience, kTheirWord);
    (void)c.on_want(0);
    (void)c.on_qps_ready(kNumbers, 0);
    const Datagram request{
        Kind::kRequest, kSelf, kPeer, kOurWord, kOurs, 0, {{50, 1, 500, 0, 0, 0, 0}, {51, 2, 501, 1, 2, 1, 1}}};
    EXPECT_EQ(text(c.on_datagram(request, 0)), "connect");
    EXPECT_EQ(c.state(), State::kJoining);
}

// A peer that asks now has not got our request: it could not be reached, as long as its port was down.
TEST(Connection, request_that_was_repeated_in_vain_goes_again_when_the_peer_asks) {
    Connection c = in_state(State::kRequested);
    Nanoseconds now = 0;
    for (int i = 0; i < 3; ++i) {
        now = *c.next_tick();
        EXPECT_EQ(text(c.on_tick(now)), "send request");
    }
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kRequest, 0), now)), "send request");
    EXPECT_EQ(*c.next_tick(), now + kPatience.first);
    EXPECT_EQ(text(c.on_datagram(from_peer(Kind::kRequest, 0), now)), "");
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

// --- datagrams -----------------------------------------------------------------------------------------------------

TEST(Datagram, carries_the_address_that_a_port_has_now) {
    Datagram d = from_peer(Kind::kRequest);
    d.rail = 1;
    d.life = 2;
    EXPECT_EQ(std::get<Datagram>(decode(encode(d))).address, std::nullopt);
    d.address = PortAddress{3, 0xbfff, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}};
    EXPECT_EQ(std::get<Datagram>(decode(encode(d))), d);
}

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
    d = from_peer(Kind{10});
    EXPECT_NE(wrong(encode(d)).find("kind is 10"), std::string::npos);
    d = from_peer(Kind::kRequest);
    d.life = 2;
    EXPECT_NE(wrong(encode(d)).find("generation of the rail"), std::string::npos);
    d.rail = kMaxConnectionRails;
    EXPECT_NE(wrong(encode(d)).find("rail is"), std::string::npos);
    d.rail = 3;
    EXPECT_EQ(wrong(encode(d)), "");
    d.life = 0;
    EXPECT_NE(wrong(encode(d)).find("generation of the rail"), std::string::npos);
    for (const Kind about_a_rail : {Kind::kDown, Kind::kClosed, Kind::kBusy})
        EXPECT_NE(wrong(encode(from_peer(about_a_rail))).find("rail is 255"), std::string::npos);
    EXPECT_EQ(wrong(encode(from_peer(Kind::kLeft))), "");
    d = from_peer(Kind::kRequest);
    d.address = PortAddress{kMaxPorts, 5, {}};
    EXPECT_NE(wrong(encode(d)).find("port with an address"), std::string::npos);
    d.address = PortAddress{1, 0xc000, {}};  // of a multicast group
    EXPECT_NE(wrong(encode(d)).find("LID of a port"), std::string::npos);
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
        for (std::size_t at = round % 2 == 0 ? 0 : 8; at < bytes.size(); ++at)
            bytes[at] = std::byte{static_cast<unsigned char>(random())};
        EXPECT_TRUE(std::holds_alternative<std::string>(decode(bytes))) << "round " << round;
    }
}

}  // namespace
}  // namespace coop::path

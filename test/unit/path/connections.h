// SPDX-License-Identifier: BSD-3-Clause
//
// Connections, datagrams and actions for the tests of path/connect.h.
#pragma once

#include "coop/path/connect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coop::path::test {

constexpr std::uint64_t kSelf = 0x100000001, kPeer = 0x100000002;
constexpr std::uint32_t kOurs = 11, kTheirs = 22;                // generations
constexpr std::uint64_t kOurWord = 0x1000, kTheirWord = 0x2000;  // addresses
constexpr Nanoseconds kMs = 1'000'000;
constexpr Patience kPatience = {
    .first = 10 * kMs, .longest = 40 * kMs, .first_look = kMs, .probe = 100 * kMs, .notice = 1000 * kMs};

inline const std::vector<PathChoice> kPaths = {{0, 0, 0, 0, 0}, {1, 2, 1, 1, 0}};

inline std::vector<PathChoice> of_peer(std::vector<PathChoice> paths) {
    for (PathChoice& p : paths) p = mirrored(p);
    return paths;
}

inline std::string text(const Actions& actions) {
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

inline Datagram from_peer(Kind kind, std::uint32_t echo = kOurs, std::uint32_t generation = kTheirs) {
    return {kind, kPeer, kSelf, kTheirWord, generation, echo, {{70, 1, 700, 0, 0, 0, 0}, {71, 2, 701, 2, 1, 1, 1}}};
}

inline Datagram refusal() {
    Datagram d = from_peer(Kind::kReply);
    d.rails.clear();
    return d;
}

inline Datagram of_other_paths() {
    Datagram d = from_peer(Kind::kRequest, 0);
    d.rails.pop_back();
    return d;
}

constexpr OwnEnd kNumbers[] = {{50, 500}, {51, 501}};
constexpr RailMask kBoth = 3;

inline Connection fresh() { return Connection(kSelf, kPeer, kOurs, kPaths, kPatience, kOurWord); }

// A connection brought into this state at time 0 by the fewest events.
inline Connection in_state(State state) {
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

}  // namespace coop::path::test

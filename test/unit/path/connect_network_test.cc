// SPDX-License-Identifier: BSD-3-Clause
//
// path/connect.h: the state machines of both sides, and a network that loses, duplicates, delays and reorders.
#include "connections.h"

#include <map>
#include <random>

namespace coop::path {
namespace {

using namespace test;

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
    Side sides[2] = {{Connection(kSelf, kPeer, kOurs, kPaths, patience(), kOurWord)},
                     {Connection(kPeer, kSelf, kTheirs, of_peer(kPaths), patience(), kTheirWord)}};

    static Patience patience() {
        return {.first = 10 * kMs, .longest = 80 * kMs, .first_look = kMs, .probe = 50 * kMs, .notice = 0};
    }

    void want(int side) { carry_out(side, sides[side].connection.on_want(now_)); }

    // Runs until nothing is in flight and no side waits, or until `end`.
    void run(Nanoseconds end = 100'000 * kMs) {
        while (now_ < end && step()) {
        }
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
                    numbers.push_back(
                        {side.cannot_make >> r & 1 ? 0 : static_cast<std::uint32_t>(100 * (i + 1) + r), 1});
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
                EXPECT_TRUE(side.connection.state() == State::kGivenUp || side.connection.live() != 0)
                    << "waits for a rail that may yet answer";
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
                         ::testing::Values(Weather{}, Weather{.loss = 30},
                                           Weather{.doubling = 50, .most_delay_ms = 200},
                                           Weather{.loss = 60, .doubling = 30, .most_delay_ms = 300}));

TEST(Site01Connection, over_a_dead_network_keeps_asking) {
    Network2 net(0, {.loss = 100});
    net.want(0);
    net.run(60'000 * kMs);
    EXPECT_EQ(net.sides[0].connection.state(), State::kRequested);
    EXPECT_GE(net.sides[0].connection.counts().repeated, 60'000 / 80);
    EXPECT_EQ(net.sides[1].connection.state(), State::kIdle);
}

TEST(Connection, over_a_calm_network_takes_few_datagrams) {
    Network2 net(0, {});
    net.want(0);
    net.run();
    const auto &asks = net.sides[0].connection.counts(), &answers = net.sides[1].connection.counts();
    EXPECT_LE(asks.sent + answers.sent, 7u)
        << "request, reply, ready; probed from both sides, and done from both where these cross";
}

}  // namespace
}  // namespace coop::path

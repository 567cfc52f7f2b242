// SPDX-License-Identifier: BSD-3-Clause
//
// match/engine.h: MPI matching at random, compared with a model that keeps all
// messages and receives in two plain vectors.
#include "match_communicator.h"

#include <algorithm>
#include <optional>
#include <random>

namespace coop::match {
namespace {

using namespace test;

// MPI matching as in the standard: two lists, searched from the front.
class Model {
public:
    struct Msg {
        int id, source, tag;
        std::uint16_t sequence;
    };
    struct Rcv {
        int id, source, tag;
    };

    explicit Model(const std::vector<std::uint16_t>& first) : expected_(first) {}

    // Returns false if this number has arrived before.
    bool arrive(const Msg& m) {
        std::uint16_t& expected = expected_[static_cast<std::size_t>(m.source)];
        if (static_cast<std::uint16_t>(m.sequence - expected) >= 0x8000) return false;
        for (const Msg& held : held_)
            if (held.source == m.source && held.sequence == m.sequence) return false;
        held_.push_back(m);
        for (;;) {
            const auto next = std::find_if(held_.begin(), held_.end(), [&](const Msg& h) {
                return h.source == m.source && h.sequence == expected;
            });
            if (next == held_.end()) return true;
            const Msg turn = *next;
            held_.erase(next);
            ++expected;
            take(turn);
        }
    }

    void post(const Rcv& r) {
        const auto found = find(r.source, r.tag);
        if (!found) return posted_.push_back(r);
        pairs.push_back({*found, r.id});
        extract(*found);
    }

    std::optional<int> find(int source, int tag) const {
        for (const Msg& m : unexpected_)
            if (match(source, tag, m)) return m.id;
        return std::nullopt;
    }

    void extract(int id) {
        std::erase_if(unexpected_, [&](const Msg& m) { return m.id == id; });
    }
    bool cancel(int id) {
        return std::erase_if(posted_, [&](const Rcv& r) { return r.id == id; }) > 0;
    }
    std::size_t unexpected() const { return unexpected_.size(); }

    std::vector<Pair> pairs;

private:
    static bool match(int source, int tag, const Msg& m) {
        return (source == kAnySource || source == m.source) && (tag == kAnyTag ? m.tag >= 0 : tag == m.tag);
    }

    void take(const Msg& m) {
        for (auto r = posted_.begin(); r != posted_.end(); ++r)
            if (match(r->source, r->tag, m)) {
                pairs.push_back({m.id, r->id});
                posted_.erase(r);
                return;
            }
        unexpected_.push_back(m);
    }

    std::vector<std::uint16_t> expected_;
    std::vector<Msg> held_;
    std::vector<Msg> unexpected_;
    std::vector<Rcv> posted_;
};

// Senders, a network that reorders and repeats, and receivers with wildcards:
// every step is done with the engine and with the model.
class Storm {
public:
    Storm(unsigned seed, int sources, std::size_t window, int tags, int eagerness)
        : random_(seed), sources_(sources), window_(window), tags_(tags), eagerness_(eagerness), comm_(sources),
          flight_(static_cast<std::size_t>(sources)), next_(static_cast<std::size_t>(sources)),
          model_(first_numbers()) {}

    void step() {
        switch (below(20)) {
        case 0: return cancel();
        case 1: return probe(false);
        case 2: return probe(true);
        case 3: return repeat();
        case 4:
        case 5:
        case 6:
        case 7:
        case 8: return send();
        case 9:
        case 10:
        case 11:
        case 12:
        case 13: return deliver();
        default: return below(10) < eagerness_ ? post() : deliver();
        }
    }

    // Delivers all remaining messages and receives them.
    void finish() {
        for (int source = 0; source < sources_; ++source)
            while (!flight_[static_cast<std::size_t>(source)].empty()) deliver_of(source);
        for (Message& m : messages_) post(m.source, m.tag);
    }

    void compare() const {
        ASSERT_EQ(comm_.engine.unexpected(), model_.unexpected());
        ASSERT_EQ(comm_.pairs, model_.pairs);
    }

    std::size_t pairs() const { return model_.pairs.size(); }
    std::size_t messages() const { return messages_.size(); }

private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

    std::vector<std::uint16_t> first_numbers() {
        std::vector<std::uint16_t> first;
        for (int source = 0; source < sources_; ++source) {
            first.push_back(static_cast<std::uint16_t>(65536 - below(300)));  // close to the wrap
            comm_.source(source).expected = first.back();
            next_[static_cast<std::size_t>(source)] = first.back();
        }
        return first;
    }

    int any_tag_of_a_message() { return below(6) == 0 ? -20 - below(2) : below(tags_); }

    void send() {
        const int source = below(sources_);
        Message& m = messages_.emplace_back();
        m.source = source;
        m.tag = any_tag_of_a_message();
        m.sequence = next_[static_cast<std::size_t>(source)]++;
        m.id = static_cast<int>(messages_.size()) - 1;
        flight_[static_cast<std::size_t>(source)].push_back(&m);
    }

    void deliver() { deliver_of(below(sources_)); }

    void deliver_of(int source) {
        auto& flight = flight_[static_cast<std::size_t>(source)];
        if (flight.empty()) return;
        const std::size_t at = random_() % std::min(flight.size(), window_);
        Message& m = *flight[at];
        flight.erase(flight.begin() + static_cast<std::ptrdiff_t>(at));
        arrived_.push_back(&m);
        ASSERT_TRUE(model_.arrive({m.id, m.source, m.tag, m.sequence}));
        ASSERT_NE(comm_.arrive(m), ArrivalOrder::kRepeated);
    }

    // The network delivers a second copy of a recent message.
    void repeat() {
        if (arrived_.empty()) return;
        const std::size_t back = random_() % std::min<std::size_t>(arrived_.size(), 50);
        const Message& original = *arrived_[arrived_.size() - 1 - back];
        Message copy;
        copy.source = original.source;
        copy.tag = original.tag;
        copy.sequence = original.sequence;
        ASSERT_FALSE(model_.arrive({-1, copy.source, copy.tag, copy.sequence}));
        ASSERT_EQ(comm_.arrive(copy), ArrivalOrder::kRepeated);
        ASSERT_FALSE(copy.node.linked() || copy.any_node.linked());
    }

    void post() {
        const int source = below(4) == 0 ? kAnySource : below(sources_);
        const int tag = below(4) == 0 ? kAnyTag : any_tag_of_a_message();
        post(source, tag);
    }

    void post(int source, int tag) {
        Receive& r = receives_.emplace_back();
        r.source = source;
        r.tag = tag;
        r.id = static_cast<int>(receives_.size()) - 1;
        comm_.post(r);
        model_.post({r.id, source, tag});
    }

    void cancel() {
        if (receives_.empty()) return;
        const std::size_t back = random_() % std::min<std::size_t>(receives_.size(), 30);
        Receive& r = receives_[receives_.size() - 1 - back];
        const bool waiting = r.node.linked();
        if (waiting) Engine::cancel(&r);
        ASSERT_EQ(waiting, model_.cancel(r.id));
    }

    void probe(bool extract) {
        const int source = below(3) == 0 ? kAnySource : below(sources_);
        const int tag = below(3) == 0 ? kAnyTag : any_tag_of_a_message();
        Message* found = comm_.find(source, tag);
        const auto expected = model_.find(source, tag);
        ASSERT_EQ(found ? std::optional<int>(found->id) : std::nullopt, expected);
        if (!found || !extract) return;
        comm_.engine.remove_unexpected(found);
        model_.extract(*expected);
    }

    std::mt19937 random_;
    int sources_;
    std::size_t window_;
    int tags_;
    int eagerness_;
    Communicator comm_;
    std::vector<std::deque<Message*>> flight_;
    std::vector<std::uint16_t> next_;
    Model model_;
    std::deque<Message> messages_;
    std::deque<Receive> receives_;
    std::vector<Message*> arrived_;
};

struct Weather {
    const char* name;
    int sources;
    std::size_t window;  // how far the network reorders
    int tags;
    int eagerness;  // how early receivers post, 0..10
};

class RandomStorm : public ::testing::TestWithParam<Weather> {};

INSTANTIATE_TEST_SUITE_P(Matching, RandomStorm,
                         ::testing::Values(Weather{"in_order", 3, 1, 3, 6}, Weather{"reordered", 3, 8, 3, 6},
                                           Weather{"far_reordered", 2, 60, 4, 6}, Weather{"one_source", 1, 10, 2, 6},
                                           Weather{"many_sources", 16, 4, 2, 6}, Weather{"posted_ahead", 3, 6, 3, 10},
                                           Weather{"mostly_unexpected", 4, 6, 5, 2},
                                           Weather{"long_posted_queues", 2, 4, 300, 10},
                                           Weather{"long_unexpected_queues", 2, 4, 300, 1},
                                           Weather{"long_queues_of_few_tags", 2, 4, 40, 10}),
                         [](const auto& weather) { return weather.param.name; });

TEST_P(RandomStorm, matches_as_the_model_does) {
    const Weather& w = GetParam();
    for (unsigned seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        Storm storm(seed, w.sources, w.window, w.tags, w.eagerness);
        for (int step = 0; step < 4000; ++step) {
            ASSERT_NO_FATAL_FAILURE(storm.step()) << "step " << step;
            if (step % 100) continue;
            ASSERT_NO_FATAL_FAILURE(storm.compare()) << "step " << step;
        }
        ASSERT_NO_FATAL_FAILURE(storm.finish());
        ASSERT_NO_FATAL_FAILURE(storm.compare());
        EXPECT_GT(storm.pairs(), storm.messages() / 2) << "the storm was a storm";
    }
}

// If is_next_for() holds for a receive, the next message of its source with its tag must match it.
TEST(NextForAtRandom, the_next_receive_gets_the_message) {
    constexpr unsigned kSeed = 12;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    int offers = 0;
    for (int round = 0; round < 3000; ++round) {
        Communicator comm(2);
        std::deque<Receive> receives;
        std::deque<Message> messages;
        int next[2] = {};
        const auto post = [&](int source, int tag) -> Receive& {
            Receive& r = receives.emplace_back();
            r.source = source, r.tag = tag, r.id = static_cast<int>(receives.size());
            comm.post(r);
            return r;
        };
        const auto send = [&](int source, int tag) -> Message& {
            Message& m = messages.emplace_back();
            m.source = source, m.tag = tag, m.id = static_cast<int>(messages.size());
            m.sequence = static_cast<std::uint16_t>(next[source]++);
            comm.arrive(m);
            return m;
        };
        const auto any = [&](int what, int n) {
            return random() % 5 == 0 ? what : static_cast<int>(random() % static_cast<unsigned>(n));
        };
        for (std::uint32_t n = random() % 4; n > 0; --n) post(any(kAnySource, 2), any(kAnyTag, 6));
        for (std::uint32_t n = random() % 3; n > 0; --n)
            send(static_cast<int>(random() % 2), static_cast<int>(random() % 6));
        const std::size_t met = comm.pairs.size();
        Receive& r = post(static_cast<int>(random() % 2), static_cast<int>(random() % 6));
        if (comm.pairs.size() > met || !comm.engine.is_next_for(comm.source(r.source), &r)) continue;
        ++offers;
        post(any(kAnySource, 2), any(kAnyTag, 6));  // too late to interfere
        for (int other = 0; other < 3; ++other)
            if (const int tag = static_cast<int>(random() % 6); tag != r.tag) send(r.source, tag);
        const Message& m = send(r.source, r.tag);
        ASSERT_EQ(comm.pairs.back(), (Pair{m.id, r.id})) << "round " << round;
    }
    EXPECT_GT(offers, 1000);
}

// One source, with far more messages than there are numbers.
TEST(LongRun, numbers_wrap_several_times_under_reordering) {
    constexpr unsigned kSeed = 31;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    Communicator comm(1);
    std::vector<Message> window(16);
    std::size_t received = 0;
    for (std::uint32_t first = 0; first < 200'000; first += 16) {
        for (std::uint32_t i = 0; i < 16; ++i) {
            window[i] = {};
            window[i].id = static_cast<int>(first + i);
            window[i].sequence = static_cast<std::uint16_t>(first + i);
        }
        std::vector<std::size_t> order(16);
        for (std::size_t i = 0; i < 16; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i : order) ASSERT_NE(comm.arrive(window[i]), ArrivalOrder::kRepeated);
        for (int i = 0; i < 16; ++i) {
            Message* next = comm.find(0, kAnyTag);
            ASSERT_NE(next, nullptr);
            ASSERT_EQ(static_cast<std::size_t>(next->id), received++);
            comm.engine.remove_unexpected(next);
        }
    }
    EXPECT_EQ(comm.engine.unexpected(), 0u);
}

}  // namespace
}  // namespace coop::match

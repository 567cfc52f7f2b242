// SPDX-License-Identifier: BSD-3-Clause
//
// match/engine.h: MPI matching, first rule by rule, then at random against a
// model that keeps all messages and receives in two plain vectors.
#include "coop/match/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace coop::match {
namespace {

struct Message : Arrival {
    int id = 0;
};
struct Receive : Posted {
    int id = 0;
};

// The ids of a message and a receive that matched.
struct Pair {
    int message;
    int receive;
    bool operator==(const Pair&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Pair& pair) {
    return out << "message " << pair.message << " with receive " << pair.receive;
}

// The engine, driven as a communicator does.
class Communicator {
public:
    explicit Communicator(int sources) : sources_(static_cast<std::size_t>(sources)) {}

    Source& source(int rank) { return sources_[static_cast<std::size_t>(rank)]; }

    // The engine's verdict on this arrival. kNow includes the early messages that
    // were waiting for it.
    Turn arrive(Message& message) {
        Source& from = source(message.source);
        const Turn turn = Engine::turn(from, message.sequence);
        if (turn == Turn::kRepeated) return turn;
        if (turn == Turn::kEarly) return Engine::keep_early(from, &message) ? turn : Turn::kRepeated;
        for (Arrival* next = &message; next; next = Engine::next_early(from)) take(from, static_cast<Message&>(*next));
        return turn;
    }

    void post(Receive& receive) {
        if (Arrival* found = find(receive.source, receive.tag)) {
            engine.remove_unexpected(found);
            pairs.push_back({static_cast<Message*>(found)->id, receive.id});
            return;
        }
        engine.post(receive.source == kAnySource ? nullptr : &source(receive.source), &receive);
    }

    Message* find(std::int32_t rank, std::int32_t tag) {
        return static_cast<Message*>(engine.find_unexpected(rank == kAnySource ? nullptr : &source(rank), tag));
    }

    Engine engine;
    std::vector<Pair> pairs;  // in the order in which they matched

private:
    void take(Source& from, Message& message) {
        if (Posted* posted = engine.take_posted(from, message.tag))
            pairs.push_back({message.id, static_cast<Receive*>(posted)->id});
        else
            engine.keep_unexpected(from, &message);
    }

    std::deque<Source> sources_;
};

// --- rule by rule ----------------------------------------------------------------

class Matching : public ::testing::Test {
protected:
    // Sends one message of `source`, next in its sequence.
    Message& send(int source, int tag) {
        Message& m = message(source, tag, next_[static_cast<std::size_t>(source)]++);
        turns.push_back(comm.arrive(m));
        return m;
    }

    // A message with a sequence number, which has not arrived yet.
    Message& message(int source, int tag, int sequence) {
        Message& m = messages_.emplace_back();
        m.source = source;
        m.tag = tag;
        m.sequence = static_cast<std::uint16_t>(sequence);
        m.id = static_cast<int>(messages_.size()) - 1;
        return m;
    }

    Receive& receive(int source, int tag) {
        Receive& r = receives_.emplace_back();
        r.source = source;
        r.tag = tag;
        r.id = static_cast<int>(receives_.size()) - 1;
        comm.post(r);
        return r;
    }

    using Pairs = std::vector<Pair>;
    Communicator comm{4};
    std::vector<Turn> turns;

private:
    std::deque<Message> messages_;
    std::deque<Receive> receives_;
    std::vector<int> next_ = std::vector<int>(4, 0);
};

TEST_F(Matching, a_message_meets_the_receive_that_was_posted_first) {
    receive(1, 7);
    receive(1, 7);
    send(1, 7);
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Matching, a_receive_meets_the_message_that_came_first) {
    send(1, 7);
    send(1, 7);
    EXPECT_EQ(comm.engine.unexpected(), 2u);
    receive(1, 7);
    receive(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
    EXPECT_EQ(comm.engine.unexpected(), 0u);
}

TEST_F(Matching, tags_select) {
    receive(1, 8);
    receive(1, 7);
    send(1, 7);
    send(1, 9);
    receive(1, 9);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 1}, {1, 2}}));
}

TEST_F(Matching, sources_are_apart) {
    receive(2, 7);
    send(1, 7);
    EXPECT_TRUE(comm.pairs.empty());
    send(2, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{1, 0}}));
}

TEST_F(Matching, any_tag_takes_any_user_tag) {
    receive(1, kAnyTag);
    send(1, 12345);
    send(1, 0);
    receive(1, kAnyTag);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Matching, any_tag_leaves_the_librarys_own_messages_alone) {
    receive(1, kAnyTag);
    send(1, -20);
    EXPECT_TRUE(comm.pairs.empty());
    EXPECT_EQ(comm.find(1, kAnyTag), nullptr);
    EXPECT_EQ(comm.find(kAnySource, kAnyTag), nullptr);
    receive(1, -20);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 1}}));
}

TEST_F(Matching, any_source_takes_the_oldest_of_all_sources) {
    send(2, 7);
    send(1, 7);
    receive(kAnySource, 7);
    receive(kAnySource, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Matching, an_any_source_receive_posted_earlier_wins_over_a_specific_one) {
    receive(kAnySource, 7);
    receive(1, 7);
    send(1, 7);
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Matching, a_specific_receive_posted_earlier_wins_over_an_any_source_one) {
    receive(1, 7);
    receive(kAnySource, 7);
    send(1, 7);
    send(2, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}}));
}

TEST_F(Matching, an_earlier_any_source_receive_of_another_tag_does_not_interfere) {
    receive(kAnySource, 8);
    receive(1, 7);
    receive(kAnySource, 7);
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 1}}));
}

TEST_F(Matching, a_cancelled_receive_takes_nothing) {
    Receive& specific = receive(1, 7);
    Receive& any = receive(kAnySource, 7);
    receive(1, 7);
    Engine::cancel(&specific);
    Engine::cancel(&any);
    EXPECT_FALSE(specific.node.linked());
    EXPECT_FALSE(any.node.linked());
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 2}}));
}

TEST_F(Matching, a_matched_receive_is_on_no_list) {
    Receive& r = receive(1, 7);
    EXPECT_TRUE(r.node.linked());
    send(1, 7);
    EXPECT_FALSE(r.node.linked());
}

TEST_F(Matching, probe_shows_the_message_that_a_receive_would_take_and_leaves_it) {
    Message& first = send(2, 7);
    Message& second = send(1, 7);
    EXPECT_EQ(comm.find(kAnySource, 7), &first);
    EXPECT_EQ(comm.find(kAnySource, kAnyTag), &first);
    EXPECT_EQ(comm.find(1, kAnyTag), &second);
    EXPECT_EQ(comm.find(1, 8), nullptr);
    EXPECT_EQ(comm.find(3, kAnyTag), nullptr);
    EXPECT_EQ(comm.engine.unexpected(), 2u);
    receive(kAnySource, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}}));
}

TEST_F(Matching, a_message_that_mprobe_took_is_out_of_reach) {
    Message& taken = send(1, 7);
    Message& left = send(1, 7);
    comm.engine.remove_unexpected(&taken);
    EXPECT_EQ(comm.engine.unexpected(), 1u);
    EXPECT_EQ(comm.find(1, 7), &left);
    EXPECT_EQ(comm.find(kAnySource, 7), &left);
    receive(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{left.id, 0}}));
    EXPECT_EQ(comm.engine.first_unexpected(), nullptr);
}

TEST_F(Matching, the_oldest_unexpected_message_can_be_had_for_clearing_up) {
    EXPECT_EQ(comm.engine.first_unexpected(), nullptr);
    Message& a = send(2, 1);
    Message& b = send(1, -5);
    EXPECT_EQ(comm.engine.first_unexpected(), &a);
    comm.engine.remove_unexpected(&a);
    EXPECT_EQ(comm.engine.first_unexpected(), &b);
}

TEST_F(Matching, an_early_message_waits_for_the_one_before_it) {
    receive(1, kAnyTag);
    receive(1, kAnyTag);
    Message& second = message(1, 2, 1);
    Message& first = message(1, 1, 0);
    EXPECT_EQ(comm.arrive(second), Turn::kEarly);
    EXPECT_TRUE(comm.pairs.empty());
    EXPECT_EQ(comm.find(1, 2), nullptr) << "a probe must not see it either";
    EXPECT_EQ(comm.engine.unexpected(), 0u);
    EXPECT_EQ(comm.arrive(first), Turn::kNow);
    EXPECT_EQ(comm.pairs, (Pairs{{first.id, 0}, {second.id, 1}}));
}

TEST_F(Matching, an_early_message_does_not_hold_up_other_sources) {
    comm.arrive(message(1, 7, 1));
    receive(kAnySource, 7);
    Message& other = send(2, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{other.id, 0}}));
}

TEST_F(Matching, messages_in_any_order_are_matched_in_sequence) {
    std::vector<Message*> all;
    for (int i = 0; i < 6; ++i) all.push_back(&message(1, i, i));
    for (int i : {5, 3, 4, 1, 2}) EXPECT_EQ(comm.arrive(*all[static_cast<std::size_t>(i)]), Turn::kEarly);
    EXPECT_EQ(comm.arrive(*all[0]), Turn::kNow);
    for (int i = 0; i < 6; ++i) receive(1, kAnyTag);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}));
}

TEST_F(Matching, sequence_numbers_wrap) {
    comm.source(1).expected = 65534;
    Message* m[4];
    for (int i = 0; i < 4; ++i) m[i] = &message(1, i, 65534 + i);
    EXPECT_EQ(comm.arrive(*m[3]), Turn::kEarly);  // number 1
    EXPECT_EQ(comm.arrive(*m[1]), Turn::kEarly);  // number 65535
    EXPECT_EQ(comm.arrive(*m[2]), Turn::kEarly);  // number 0
    EXPECT_EQ(comm.arrive(*m[0]), Turn::kNow);
    for (int i = 0; i < 4; ++i) receive(1, kAnyTag);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
    EXPECT_EQ(comm.source(1).expected, 2);
}

TEST_F(Matching, a_repeated_number_is_told) {
    send(1, 7);
    send(1, 7);
    EXPECT_EQ(comm.arrive(message(1, 7, 0)), Turn::kRepeated);
    EXPECT_EQ(comm.arrive(message(1, 7, 1)), Turn::kRepeated);
    EXPECT_EQ(comm.arrive(message(1, 7, 3)), Turn::kEarly);
    EXPECT_EQ(comm.arrive(message(1, 7, 3)), Turn::kRepeated);
    EXPECT_EQ(comm.engine.unexpected(), 2u);
}

TEST_F(Matching, numbers_are_early_up_to_half_way_round) {
    for (int expected : {0, 40000, 65535}) {
        Source source;
        source.expected = static_cast<std::uint16_t>(expected);
        const auto ahead = [&](int n) { return Engine::turn(source, static_cast<std::uint16_t>(expected + n)); };
        EXPECT_EQ(ahead(0x7fff), Turn::kEarly);
        EXPECT_EQ(ahead(0x8000), Turn::kRepeated);
        EXPECT_EQ(ahead(-1), Turn::kRepeated);
        EXPECT_EQ(ahead(1), Turn::kEarly);
        EXPECT_EQ(source.expected, expected);
    }
}

TEST_F(Matching, as_many_as_can_be_early_are_sorted) {
    std::vector<Message*> all;
    comm.source(1).expected = 50000;
    for (int i = 0; i < 0x8000; ++i) all.push_back(&message(1, 1, 50000 + i));
    for (std::size_t i = 2; i < all.size(); i += 2) ASSERT_EQ(comm.arrive(*all[i]), Turn::kEarly);
    for (std::size_t i = 1; i < 200; i += 2) ASSERT_EQ(comm.arrive(*all[i]), Turn::kEarly);
    ASSERT_EQ(comm.arrive(*all[0]), Turn::kNow);
    EXPECT_EQ(comm.engine.unexpected(), 201u);
    for (int i = 0; i < 201; ++i) receive(1, 1);
    for (int i = 0; i < 201; ++i) ASSERT_EQ(comm.pairs[static_cast<std::size_t>(i)], (Pair{i, i}));
}

TEST_F(Matching, thousands_of_unexpected_messages_keep_their_order) {
    constexpr int kMessages = 5000;
    for (int i = 0; i < kMessages; ++i) send(i % 4, i % 3);
    EXPECT_EQ(comm.engine.unexpected(), static_cast<std::size_t>(kMessages));
    for (int i = 0; i < kMessages; ++i) receive(kAnySource, kAnyTag);
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(comm.pairs[static_cast<std::size_t>(i)], (Pair{i, i}));
    EXPECT_EQ(comm.engine.unexpected(), 0u);
}

// --- at random, against a model ------------------------------------------------------

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

    void extract(int id) { std::erase_if(unexpected_, [&](const Msg& m) { return m.id == id; }); }
    bool cancel(int id) { return std::erase_if(posted_, [&](const Rcv& r) { return r.id == id; }) > 0; }
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
            case 4: case 5: case 6: case 7: case 8: return send();
            case 9: case 10: case 11: case 12: case 13: return deliver();
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
        ASSERT_NE(comm_.arrive(m), Turn::kRepeated);
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
        ASSERT_EQ(comm_.arrive(copy), Turn::kRepeated);
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
                                           Weather{"mostly_unexpected", 4, 6, 5, 2}),
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

// --- receives that may be offered ----------------------------------------------------

class NextFor : public Matching {
protected:
    bool is_next(Receive& r) { return comm.engine.is_next_for(comm.source(r.source), &r); }
};

TEST_F(NextFor, a_lone_receive_is_next) { EXPECT_TRUE(is_next(receive(1, 7))); }

TEST_F(NextFor, a_receive_for_any_tag_never_is) { EXPECT_FALSE(is_next(receive(1, kAnyTag))); }

TEST_F(NextFor, a_receive_after_one_of_the_same_tag_is_not) {
    receive(1, 7);
    EXPECT_FALSE(is_next(receive(1, 7)));
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}})) << "indeed";
}

TEST_F(NextFor, a_receive_after_a_wildcard_is_not) {
    receive(1, kAnyTag);
    EXPECT_FALSE(is_next(receive(1, 7)));
    EXPECT_TRUE(is_next(receive(2, 7))) << "a wildcard for another source";
    receive(kAnySource, 7);
    EXPECT_FALSE(is_next(receive(3, 7)));
    EXPECT_TRUE(is_next(receive(3, 8)));
    receive(kAnySource, kAnyTag);
    EXPECT_FALSE(is_next(receive(3, 9)));
}

TEST_F(NextFor, wildcards_do_not_take_the_librarys_own_messages) {
    receive(kAnySource, kAnyTag);
    receive(1, kAnyTag);
    EXPECT_TRUE(is_next(receive(1, -7)));
}

TEST_F(NextFor, other_tags_and_other_sources_do_not_matter) {
    receive(1, 6);
    receive(1, 8);
    receive(2, 7);
    EXPECT_TRUE(is_next(receive(1, 7)));
}

TEST_F(NextFor, what_is_posted_later_does_not_matter) {
    Receive& first = receive(1, 7);
    ASSERT_TRUE(is_next(first));
    receive(1, 7);
    receive(1, kAnyTag);
    send(1, 7);
    EXPECT_EQ(comm.pairs, (Pairs{{0, first.id}}));
}

TEST_F(NextFor, a_receive_is_next_once_the_one_before_is_gone) {
    Receive& before = receive(1, 7);
    Receive& after = receive(1, 7);
    ASSERT_FALSE(is_next(after));
    Engine::cancel(&before);
    EXPECT_TRUE(is_next(after));
}

TEST_F(NextFor, long_queues_are_not_searched) {
    for (int i = 0; i < 15; ++i) receive(1, 100 + i);
    EXPECT_TRUE(is_next(receive(1, 7)));
    for (int i = 0; i < 8; ++i) receive(kAnySource, 200 + i);
    EXPECT_FALSE(is_next(receive(1, 8))) << "both queues count";
}

// If a receive is called the next one, the next message of that source and tag must find it.
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
        const auto any = [&](int what, int n) { return random() % 5 == 0 ? what : static_cast<int>(random() % static_cast<unsigned>(n)); };
        for (std::uint32_t n = random() % 4; n > 0; --n) post(any(kAnySource, 2), any(kAnyTag, 6));
        for (std::uint32_t n = random() % 3; n > 0; --n) send(static_cast<int>(random() % 2), static_cast<int>(random() % 6));
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
        for (std::size_t i : order) ASSERT_NE(comm.arrive(window[i]), Turn::kRepeated);
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

// SPDX-License-Identifier: BSD-3-Clause
//
// match/engine.h: MPI matching, rule by rule.
#include "match_communicator.h"

namespace coop::match {
namespace {

using namespace test;

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
    EXPECT_EQ(comm.arrive(second), ArrivalOrder::kEarly);
    EXPECT_TRUE(comm.pairs.empty());
    EXPECT_EQ(comm.find(1, 2), nullptr) << "a probe must not see it either";
    EXPECT_EQ(comm.engine.unexpected(), 0u);
    EXPECT_EQ(comm.arrive(first), ArrivalOrder::kInOrder);
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
    for (int i : {5, 3, 4, 1, 2}) EXPECT_EQ(comm.arrive(*all[static_cast<std::size_t>(i)]), ArrivalOrder::kEarly);
    EXPECT_EQ(comm.arrive(*all[0]), ArrivalOrder::kInOrder);
    for (int i = 0; i < 6; ++i) receive(1, kAnyTag);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}));
}

TEST_F(Matching, sequence_numbers_wrap) {
    comm.source(1).expected = 65534;
    Message* m[4];
    for (int i = 0; i < 4; ++i) m[i] = &message(1, i, 65534 + i);
    EXPECT_EQ(comm.arrive(*m[3]), ArrivalOrder::kEarly);  // number 1
    EXPECT_EQ(comm.arrive(*m[1]), ArrivalOrder::kEarly);  // number 65535
    EXPECT_EQ(comm.arrive(*m[2]), ArrivalOrder::kEarly);  // number 0
    EXPECT_EQ(comm.arrive(*m[0]), ArrivalOrder::kInOrder);
    for (int i = 0; i < 4; ++i) receive(1, kAnyTag);
    EXPECT_EQ(comm.pairs, (Pairs{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
    EXPECT_EQ(comm.source(1).expected, 2);
}

TEST_F(Matching, a_repeated_number_is_told) {
    send(1, 7);
    send(1, 7);
    EXPECT_EQ(comm.arrive(message(1, 7, 0)), ArrivalOrder::kRepeated);
    EXPECT_EQ(comm.arrive(message(1, 7, 1)), ArrivalOrder::kRepeated);
    EXPECT_EQ(comm.arrive(message(1, 7, 3)), ArrivalOrder::kEarly);
    EXPECT_EQ(comm.arrive(message(1, 7, 3)), ArrivalOrder::kRepeated);
    EXPECT_EQ(comm.engine.unexpected(), 2u);
}

TEST_F(Matching, numbers_are_early_up_to_half_way_round) {
    for (int expected : {0, 40000, 65535}) {
        Source source;
        source.expected = static_cast<std::uint16_t>(expected);
        const auto ahead = [&](int n) {
            return Engine::take_sequence(source, static_cast<std::uint16_t>(expected + n));
        };
        EXPECT_EQ(ahead(0x7fff), ArrivalOrder::kEarly);
        EXPECT_EQ(ahead(0x8000), ArrivalOrder::kRepeated);
        EXPECT_EQ(ahead(-1), ArrivalOrder::kRepeated);
        EXPECT_EQ(ahead(1), ArrivalOrder::kEarly);
        EXPECT_EQ(source.expected, expected);
    }
}

TEST_F(Matching, thousands_of_early_messages_are_sorted) {
    std::vector<Message*> all;
    comm.source(1).expected = 50000;
    for (int i = 0; i < 0x8000; ++i) all.push_back(&message(1, 1, 50000 + i));
    for (std::size_t i = 2; i < all.size(); i += 2) ASSERT_EQ(comm.arrive(*all[i]), ArrivalOrder::kEarly);
    for (std::size_t i = 1; i < 200; i += 2) ASSERT_EQ(comm.arrive(*all[i]), ArrivalOrder::kEarly);
    ASSERT_EQ(comm.arrive(*all[0]), ArrivalOrder::kInOrder);
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

}  // namespace
}  // namespace coop::match

// SPDX-License-Identifier: BSD-3-Clause
//
// match/tag_queue.h: a long queue is sorted by tag, and answers as it did before.
#include "match_communicator.h"

#include <algorithm>

namespace coop::match {
namespace {

using namespace test;

class LongQueue : public ::testing::Test {
protected:
    using Queue = TagQueue<Posted, &Posted::node, &Posted::tag_node>;

    Posted* push(std::int32_t tag) {
        Posted& element = elements_.emplace_back();
        element.tag = tag;
        element.post_number = elements_.size();
        queue.push_back(&element);
        return &element;
    }
    void push_others(int from, int count, int step = 1) {
        for (int i = 0; i < count; ++i) push(from + i * step);
    }
    // The elements in the bucket of `element`, and the head of the bucket.
    static std::size_t neighbours(const Posted* element) {
        std::size_t count = 1;
        for (const ListNode* node = element->tag_node.next; node != &element->tag_node; node = node->next) ++count;
        return count;
    }
    void drain() {
        while (Posted* element = queue.front()) element->leave();
    }

    Queue queue;

private:
    std::deque<Posted> elements_;  // never shrinks: a queue does not own its elements
};

TEST_F(LongQueue, gets_buckets_in_the_first_search_that_goes_far) {
    push_others(100, Queue::kFar - 1);
    Posted* last = push(7);
    EXPECT_EQ(queue.first(7), last);
    EXPECT_EQ(queue.first(8), nullptr);
    EXPECT_EQ(queue.buckets(), 0u) << "nothing is behind the last that the search passed";
    Posted* beyond = push(8);
    EXPECT_EQ(queue.first(8), beyond);
    EXPECT_GT(queue.buckets(), 0u);
}

TEST_F(LongQueue, finds_the_first_of_equal_tags) {
    push_others(100, 50);
    Posted* first = push(7);
    Posted* second = push(7);
    EXPECT_EQ(queue.first(7), first);
    first->leave();
    EXPECT_EQ(queue.first(7), second);
    Posted* third = push(7);
    EXPECT_EQ(queue.first(7), second);
    second->leave();
    EXPECT_EQ(queue.first(7), third);
    third->leave();
    EXPECT_EQ(queue.first(7), nullptr);
    EXPECT_GT(queue.buckets(), 0u);
}

TEST_F(LongQueue, keeps_the_order_of_receives_with_and_without_a_tag) {
    push_others(100, 50);
    Posted* any = push(kAnyTag);
    Posted* seven = push(7);
    EXPECT_EQ(queue.first(7), any);
    EXPECT_EQ(queue.first(149)->tag, 149) << "posted before the receive for any tag";
    EXPECT_EQ(queue.first(99), any);
    any->leave();
    EXPECT_EQ(queue.first(7), seven);
    Posted* later = push(kAnyTag);
    EXPECT_EQ(queue.first(7), seven);
    EXPECT_EQ(queue.first(6), later);
}

TEST_F(LongQueue, gives_no_internal_message_to_a_receive_for_any_tag) {
    push_others(100, 50);
    push(kAnyTag);
    EXPECT_EQ(queue.first(-17), nullptr);
    Posted* internal = push(-17);
    EXPECT_EQ(queue.first(-17), internal);
}

TEST_F(LongQueue, has_as_many_buckets_as_it_needs) {
    push_others(0, 20);
    EXPECT_EQ(queue.first(1 << 20), nullptr);
    EXPECT_EQ(queue.buckets(), 64u);
    push_others(20, 5000);
    EXPECT_GE(queue.buckets(), 4096u);
    EXPECT_LE(queue.buckets(), 8192u);
    for (int tag = 5019; tag >= 0; tag -= 13) ASSERT_EQ(queue.first(tag)->tag, tag);
    EXPECT_EQ(queue.first(1 << 20), nullptr);

    while (queue.front()->tag < 4990) queue.front()->leave();
    for (int round = 0; round < 10000; ++round) {
        queue.front()->leave();
        Posted* const last = push(6000 + round);
        ASSERT_EQ(queue.first(6000 + round), last);
    }
    EXPECT_EQ(queue.buckets(), 64u) << "30 elements";
    while (queue.front()->tag < 6000 + 10000 - 5) queue.front()->leave();
    for (int round = 0; round < 100; ++round) {
        queue.front()->leave();
        Posted* const last = push(20000 + round);
        ASSERT_EQ(queue.first(20000 + round), last);
    }
    EXPECT_EQ(queue.buckets(), 0u) << "5 elements";
    EXPECT_FALSE(queue.front()->tag_node.linked());
}

// The tags of an application often have a common step. Counted: the elements in the bucket of the tag.
TEST_F(LongQueue, spreads_tags_of_any_step) {
    for (int step : {1, 2, 3, 10, 100, 421, 1000, 1024, 5473, 10946, 65536, 1 << 20}) {
        push_others(0, 1000, step);
        EXPECT_EQ(queue.first(-5), nullptr);
        ASSERT_GE(queue.buckets(), 1000u);
        std::size_t longest = 0;
        for (int i = 0; i < 1000; ++i) longest = std::max(longest, neighbours(queue.first(i * step)));
        EXPECT_LE(longest, 10u) << "step " << step;
        drain();
    }
}

TEST_F(LongQueue, finds_no_element_that_has_left) {
    push_others(0, 100);
    EXPECT_EQ(queue.first(1000), nullptr);
    Posted* const forty = queue.first(40);
    forty->leave();
    EXPECT_EQ(queue.first(40), nullptr);
    EXPECT_EQ(queue.first(41)->tag, 41);
}

// The queue of one source and the queue over all sources are sorted each by its own searches.
TEST_F(Matching, unexpected_messages_are_found_by_source_and_by_tag_alone) {
    for (int tag = 0; tag < 200; ++tag) send(tag % 2, tag);
    EXPECT_EQ(comm.find(1, 151)->tag, 151);
    EXPECT_EQ(comm.find(0, 151), nullptr);
    EXPECT_EQ(comm.find(kAnySource, 150)->tag, 150);
    for (int tag = 199; tag >= 0; --tag) receive(tag % 3 == 0 ? kAnySource : tag % 2, tag);
    EXPECT_EQ(comm.pairs.size(), 200u);
    EXPECT_EQ(comm.engine.unexpected(), 0u);
    EXPECT_EQ(comm.engine.first_unexpected(), nullptr);
}

// 3.5: of two receives that match, the one posted first gets the message, also between a queue of one source and the
// queue for any source when both are long.
TEST_F(Matching, long_queues_of_receives_keep_their_order_with_each_other) {
    for (int tag = 0; tag < 100; ++tag) receive(0, 1000 + tag), receive(kAnySource, 2000 + tag);
    const int wild = receive(kAnySource, 7).id, narrow = receive(0, 7).id;
    const int narrow_8 = receive(0, 8).id, wild_8 = receive(kAnySource, 8).id;
    const int a = send(0, 7).id, b = send(0, 7).id, c = send(0, 8).id, d = send(0, 8).id;
    EXPECT_EQ(comm.pairs, (Pairs{{a, wild}, {b, narrow}, {c, narrow_8}, {d, wild_8}}));
}

}  // namespace
}  // namespace coop::match

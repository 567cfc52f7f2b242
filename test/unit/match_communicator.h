// SPDX-License-Identifier: BSD-3-Clause
//
// For the tests of match/engine.h: a driver of the engine, and a test fixture.
#pragma once

#include "coop/match/engine.h"

#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <vector>

namespace coop::match::test {

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

inline std::ostream& operator<<(std::ostream& out, const Pair& pair) {
    return out << "message " << pair.message << " with receive " << pair.receive;
}

// Drives the engine as a communicator does.
class Communicator {
public:
    explicit Communicator(int sources) : sources_(static_cast<std::size_t>(sources)) {}

    Source& source(int rank) { return sources_[static_cast<std::size_t>(rank)]; }

    // Returns the engine's verdict on this arrival. After kInOrder, the early messages that waited for this one have
    // been matched or kept as unexpected, too.
    ArrivalOrder arrive(Message& message) {
        Source& from = source(message.source);
        const ArrivalOrder order = Engine::take_sequence(from, message.sequence);
        if (order == ArrivalOrder::kRepeated) return order;
        if (order == ArrivalOrder::kEarly) return Engine::keep_early(from, &message) ? order : ArrivalOrder::kRepeated;
        for (Arrival* next = &message; next; next = Engine::next_early(from)) take(from, static_cast<Message&>(*next));
        return order;
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
        const bool has_posted = engine.has_posted(from, message.tag);
        Posted* const posted = engine.take_posted(from, message.tag);
        EXPECT_EQ(has_posted, posted != nullptr);
        if (posted) pairs.push_back({message.id, static_cast<Receive*>(posted)->id});
        else engine.keep_unexpected(from, &message);
    }

    std::deque<Source> sources_;
};

class Matching : public ::testing::Test {
protected:
    // Sends one message of `source`, next in its sequence.
    Message& send(int source, int tag) {
        Message& m = message(source, tag, next_[static_cast<std::size_t>(source)]++);
        orders.push_back(comm.arrive(m));
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
    std::vector<ArrivalOrder> orders;

private:
    std::deque<Message> messages_;
    std::deque<Receive> receives_;
    std::vector<int> next_ = std::vector<int>(4, 0);
};

}  // namespace coop::match::test

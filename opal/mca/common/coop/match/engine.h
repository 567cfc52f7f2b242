// SPDX-License-Identifier: BSD-3-Clause
//
// MPI matching for one communicator (MPI 3.1, 3.5: non-overtaking order per source; 3.2.4: wildcards): matches
// posted receives and arrived messages.
//
//   posted receives   one queue per source, and one for MPI_ANY_SOURCE; a post number tells which of two candidates
//                     was posted first
//   unexpected        arrived in order, but without a matching receive: in a queue per source and, for
//                     MPI_ANY_SOURCE, in a queue over all sources in order of arrival
//   early             arrived before an earlier message of the same source (several transports, or a retried send):
//                     held back per source, sorted by sequence number
//
// Queues of posted receives and of unexpected messages that are searched far get an index by tag (tag_queue.h).
//
// Sequence numbers are 16 bits and wrap; at most 2^15 messages of one source may be early at a time.
//
// Threading: none; the caller holds the communicator's matching lock. Ownership: receives and arrivals belong
// to the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/base/list.h"
#include "coop/match/tag_queue.h"

namespace coop::match {

constexpr std::int32_t kAnySource = -1;

// A receive that waits for its message.
struct Posted {
    ListNode node;
    ListNode tag_node;
    std::int32_t source = 0;        // rank or kAnySource
    std::int32_t tag = 0;           // tag or kAnyTag
    std::uint64_t post_number = 0;  // set by post()

    void leave() noexcept {
        node.unlink();
        if (tag_node.linked()) tag_node.unlink();
    }
};

inline Posted* earlier(Posted* a, Posted* b) noexcept { return a->post_number < b->post_number ? a : b; }

// A message that waits for its receive, or for an earlier message.
struct Arrival {
    ListNode node;      // in the source's queue
    ListNode any_node;  // in the queue over all sources; unlinked while early
    ListNode tag_node, any_tag_node;
    std::int32_t source = 0;
    std::int32_t tag = 0;
    std::uint16_t sequence = 0;

    void leave() noexcept {
        node.unlink();
        any_node.unlink();
        if (tag_node.linked()) tag_node.unlink();
        if (any_tag_node.linked()) any_tag_node.unlink();
    }
};

inline Arrival* earlier(Arrival* with_tag, Arrival*) noexcept { return with_tag; }  // no message has the tag kAnyTag

// Matching state of one source, embedded in the owner's record of the peer.
struct Source {
    std::uint16_t expected = 0;  // sequence number of the next message in order
    TagQueue<Posted, &Posted::node, &Posted::tag_node> posted;
    TagQueue<Arrival, &Arrival::node, &Arrival::tag_node> unexpected;
    List<Arrival, &Arrival::node> early;
    std::atomic<Posted*> offered{
        nullptr};  // receive offered to this source (RTR), still in `posted`; other threads may read the pointer
};

enum class ArrivalOrder { kInOrder, kEarly, kRepeated };

class Engine {
public:
    // -- arrivals ---------------------------------------------------------

    // Checks the sequence number of an arrived message. kInOrder: it is the expected one, and the engine now
    // expects the next; the caller calls take_posted() and then next_early(). kRepeated: the number was seen
    // before, an error of the peer.
    static ArrivalOrder take_sequence(Source& source, std::uint16_t sequence) noexcept {
        const auto ahead = static_cast<std::uint16_t>(sequence - source.expected);
        if (ahead == 0) {
            ++source.expected;
            return ArrivalOrder::kInOrder;
        }
        return ahead < 0x8000 ? ArrivalOrder::kEarly : ArrivalOrder::kRepeated;
    }

    // Removes and returns the first-posted receive that matches, or null.
    Posted* take_posted(Source& source, std::int32_t tag) noexcept {
        Posted* chosen = source.posted.first(tag);
        if (Posted* wild = any_source_.empty() ? nullptr : any_source_.first(tag))
            chosen = chosen ? earlier(chosen, wild) : wild;
        if (chosen) chosen->leave();
        return chosen;
    }

    // Whether take_posted() would return a receive.
    bool has_posted(Source& source, std::int32_t tag) noexcept {
        return source.posted.first(tag) || (!any_source_.empty() && any_source_.first(tag));
    }

    void keep_unexpected(Source& source, Arrival* arrival) noexcept {
        source.unexpected.push_back(arrival);
        any_arrival_.push_back(arrival);
        ++unexpected_;
    }

    // Holds back an early message. Returns false if a message with this sequence number is already held back.
    static bool keep_early(Source& source, Arrival* arrival) noexcept {
        const auto distance = [&](const Arrival* a) {
            return static_cast<std::uint16_t>(a->sequence - source.expected);
        };
        Arrival* before = source.early.back();  // messages mostly arrive in ascending order, so search from the back
        while (before && distance(before) > distance(arrival)) before = source.early.prev(before);
        if (before && before->sequence == arrival->sequence) return false;
        if (before) source.early.insert_after(before, arrival);
        else source.early.push_front(arrival);
        return true;
    }

    // Removes and returns the held-back message that is now in order, if any. Advances the expected sequence
    // number.
    static Arrival* next_early(Source& source) noexcept {
        Arrival* first = source.early.front();
        if (!first || first->sequence != source.expected) return nullptr;
        first->node.unlink();
        ++source.expected;
        return first;
    }

    // -- receives ---------------------------------------------------------

    void post(Source* source, Posted* receive) noexcept {
        receive->post_number = next_post_++;
        if (receive->source == kAnySource) any_source_.push_back(receive);
        else source->posted.push_back(receive);
    }

    // Whether the source's next message with the tag of `receive`, which was just posted, is certain to match
    // it: no receive posted before can match that message. Gives up on long queues and returns false.
    bool is_next_for(Source& source, Posted* receive) noexcept {
        if (receive->tag == kAnyTag) return false;
        int patience = 16;
        for (Posted* p = source.posted.front(); p != receive; p = source.posted.next(p))
            if (tag_matches(p->tag, receive->tag) || --patience == 0) return false;
        for (Posted* p = any_source_.front(); p; p = any_source_.next(p))
            if (tag_matches(p->tag, receive->tag) || --patience == 0) return false;
        return true;
    }

    static void cancel(Posted* receive) noexcept { receive->leave(); }

    // Returns the oldest unexpected message that matches, without removing it (probe).
    Arrival* find_unexpected(Source* source, std::int32_t tag) noexcept {
        const auto find = [tag](auto& queue) { return tag == kAnyTag ? queue.first_of_user() : queue.first(tag); };
        return source ? find(source->unexpected) : find(any_arrival_);
    }

    void remove_unexpected(Arrival* arrival) noexcept {
        arrival->leave();
        --unexpected_;
    }

    std::size_t unexpected() const noexcept { return unexpected_; }
    Arrival* first_unexpected() noexcept { return any_arrival_.front(); }

private:
    TagQueue<Posted, &Posted::node, &Posted::tag_node> any_source_;
    TagQueue<Arrival, &Arrival::any_node, &Arrival::any_tag_node> any_arrival_;
    std::uint64_t next_post_ = 0;
    std::size_t unexpected_ = 0;
};

}  // namespace coop::match

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
// Sequence numbers are 16 bits and wrap; at most 2^15 messages of one source may be early at a time.
//
// Threading: none; the caller holds the communicator's matching lock. Ownership: receives and arrivals belong
// to the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/base/list.h"

namespace coop::match {

constexpr std::int32_t kAnySource = -1;
constexpr std::int32_t kAnyTag = -1;

// A receive that waits for its message.
struct Posted {
    ListNode node;
    std::int32_t source = 0;        // rank or kAnySource
    std::int32_t tag = 0;           // tag or kAnyTag
    std::uint64_t post_number = 0;  // set by post()
};

// A message that waits for its receive, or for an earlier message.
struct Arrival {
    ListNode node;      // in the source's queue
    ListNode any_node;  // in the queue over all sources; unlinked while early
    std::int32_t source = 0;
    std::int32_t tag = 0;
    std::uint16_t sequence = 0;
};

// MPI_ANY_TAG matches user tags only: negative tags are internal to the library.
constexpr bool tag_matches(std::int32_t wanted, std::int32_t tag) noexcept {
    return wanted == tag || (wanted == kAnyTag && tag >= 0);
}

// Matching state of one source, embedded in the owner's record of the peer.
struct Source {
    std::uint16_t expected = 0;  // sequence number of the next message in order
    List<Posted, &Posted::node> posted;
    List<Arrival, &Arrival::node> unexpected;
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
        Posted* specific = first_match(source.posted, tag);
        Posted* wild = any_source_.empty() ? nullptr : first_match(any_source_, tag);
        Posted* chosen = specific;
        if (wild && (!specific || wild->post_number < specific->post_number)) chosen = wild;
        if (chosen) chosen->node.unlink();
        return chosen;
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

    static void cancel(Posted* receive) noexcept { receive->node.unlink(); }

    // Returns the oldest unexpected message that matches, without removing it (probe).
    Arrival* find_unexpected(Source* source, std::int32_t tag) noexcept {
        if (source) {
            for (Arrival* a = source->unexpected.front(); a; a = source->unexpected.next(a))
                if (tag_matches(tag, a->tag)) return a;
        } else {
            for (Arrival* a = any_arrival_.front(); a; a = any_arrival_.next(a))
                if (tag_matches(tag, a->tag)) return a;
        }
        return nullptr;
    }

    void remove_unexpected(Arrival* arrival) noexcept {
        arrival->node.unlink();
        arrival->any_node.unlink();
        --unexpected_;
    }

    std::size_t unexpected() const noexcept { return unexpected_; }
    Arrival* first_unexpected() noexcept { return any_arrival_.front(); }

private:
    template <class Queue>
    static Posted* first_match(Queue& queue, std::int32_t tag) noexcept {
        for (Posted* p = queue.front(); p; p = queue.next(p))
            if (tag_matches(p->tag, tag)) return p;
        return nullptr;
    }

    List<Posted, &Posted::node> any_source_;
    List<Arrival, &Arrival::any_node> any_arrival_;
    std::uint64_t next_post_ = 0;
    std::size_t unexpected_ = 0;
};

}  // namespace coop::match

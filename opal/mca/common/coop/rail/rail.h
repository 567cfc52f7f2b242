// SPDX-License-Identifier: BSD-3-Clause
//
// A rail: one path between two processes, with its own queue pair. It counts the
// requests on the send queue and keeps those that wait for room there.
//
//     request ──► waiting (in order) ──room, and a receive credit──► send queue ──► completion
//     inline data ──────────────────────room now, or not at all────► send queue
//
// The HCA has copied inline data when the post returns, so such a send asks for no
// completion. From time to time a request that does complete (a mark) is posted. Its
// completion shows that all earlier requests have left the queue and that their
// messages have landed.
//
// The queue pair is a template parameter: verbs in production, a fake in the unit
// tests. So there are no indirect calls.
//
// Threading: none; the caller holds the lock of the channel. Ownership: requests
// belong to the caller and are linked through their own node. Errors: a queue pair
// that refuses a request returns an errno and leaves the rail unchanged.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "coop/base/list.h"
#include "coop/rail/failure.h"
#include "coop/sched/rail_set.h"
#include "coop/sched/read_tokens.h"
#include "coop/sched/receive_credits.h"
#include "coop/sched/sequence.h"

namespace coop::rail {

enum class WorkKind : std::uint8_t { kSend, kPut, kGet, kAtomic, kMark };

constexpr sched::Direction direction_of(WorkKind kind) noexcept {
    return kind == WorkKind::kGet ? sched::Direction::kIn : sched::Direction::kOut;
}

// The interface of a queue pair that a rail uses. A completion returns `id`. A request that asks for no completion
// still completes if it fails.
template <class Q>
concept QueuePair = requires(Q& qp, typename Q::Request& request, void* id, bool completes) {
    { qp.post(request, id, completes) }
    noexcept->std::same_as<int>;  // 0, or an errno if the queue pair refuses it
    { qp.post_empty_write(id) }
    noexcept->std::same_as<int>;  // a write of no bytes that asks for a completion
};

// The members that a rail and its channel use of a transport's request type.
template <class W>
concept RailWork = requires(W& work) {
    { work.node } -> std::same_as<ListNode&>;
    { work.kind } -> std::same_as<WorkKind&>;
    { work.rail } -> std::same_as<sched::RailIndex&>;      // the number of its rail
    { work.bytes } -> std::same_as<std::uint32_t&>;        // the size that the scheduler counts
    { work.posted_ns } -> std::same_as<std::uint64_t&>;    // of a stripe that is measured; else sched::kNotMeasured
    { work.psn } -> std::same_as<sched::SequenceNumber&>;  // valid if ordered
    { work.ordered } -> std::same_as<bool&>;               // a message with a place in the sequence of the channel
    { work.wants_credit } -> std::same_as<bool&>;          // a message that needs a receive buffer of the peer
    { work.has_token } -> std::same_as<bool&>;             // it holds or waits for a read token of its rail
    { work.requests } -> std::same_as<std::uint32_t&>;     // work requests that it consists of; the last one completes
    { work.waits } -> std::same_as<bool&>;                 // the scheduler counts its bytes as waiting
    { work.apart } -> std::same_as<bool&>;          // a read that takes the queue pair for reads, if there is one
    { work.follows } -> std::same_as<bool&>;        // it must not overtake the stripes before it on its rail
    { work.displaced } -> std::same_as<bool&>;      // a stripe that has to leave the rail on which it was
    { work.in_order } -> std::same_as<bool&>;       // it is executed in its turn (in_order.h)
    { work.turn } -> std::same_as<std::uint32_t&>;  // valid if in_order
};

struct RailCounts {
    std::uint64_t bytes = 0, sends = 0, stripes = 0;
    std::uint64_t waits = 0, read_waits = 0;  // waits: for the send queue or a credit; read_waits: for a read token

    RailCounts operator+(const RailCounts& other) const noexcept {
        return {bytes + other.bytes, sends + other.sends, stripes + other.stripes, waits + other.waits,
                read_waits + other.read_waits};
    }
};

template <QueuePair Qp, RailWork Work>
class Rail {
public:
    using Request = typename Qp::Request;

    Rail() { mark.kind = last.kind = pulse.kind = WorkKind::kMark; }

    Qp qp;
    RailState state = RailState::kOpening;
    std::uint32_t max_inline = 0;  // bytes
    std::uint32_t generation = 1;  // counts the queue pairs that this rail has had (path/rail_life.h)
    bool counts_credits = false;   // the peer has separate receive buffers for this rail, so messages need credits
    sched::ReceiveCredits own_receives;  // valid if this side has no shared receive queue
    sched::ReadTokens<Work, &Work::node> reads{0};
    List<Work, &Work::node> waiting;
    List<Work, &Work::node> posted;  // requests that will complete, in the order of posting
    Work mark;                       // its completion covers the inline sends before it
    Work last;   // posted when the queue pair is in error: its completion shows that nothing else will complete
    Work pulse;  // an empty write of the owner; not counted in in_flight()
    RailCounts counts;

    sched::RailIndex number() const noexcept { return mark.rail; }  // valid in a channel
    std::uint32_t in_flight() const noexcept { return in_flight_; }
    std::uint32_t depth() const noexcept { return depth_; }
    bool has_room(std::uint32_t requests = 1) const noexcept { return in_flight_ + requests <= depth_; }
    // Whether a request is posted whose completion shows something. Others: see make_room().
    bool expects_completion() noexcept { return !posted.empty() || marked_ != 0; }
    // Differs from the value before if a request has completed. A mark that is posted changes it, too.
    std::uint64_t ended() const noexcept { return counts.sends + counts.stripes - in_flight_; }
    bool is_free() noexcept { return waiting.empty() && has_room(); }

    void set_depth(std::uint32_t requests) noexcept { depth_ = requests; }
    // Called when the rail has failed: there is no room any more, so every request waits.
    void shut() noexcept { depth_ = 0; }

    // Posts the request, or the list of requests, that completes with `work`. Precondition: has_room(work.requests).
    [[nodiscard]] int post(Request& request, Work& work) noexcept {
        if (const int error = qp.post(request, &work, true); error != 0) return error;
        count_posted(work);
        return 0;
    }
    void count_posted(Work& work) noexcept {
        in_flight_ += work.requests;
        posted.push_back(&work);
        counts.bytes += work.bytes;
        (work.kind == WorkKind::kSend ? counts.sends : counts.stripes) += work.requests;
    }
    void on_completed(Work& work) noexcept {
        posted.remove(&work);
        in_flight_ -= work.requests;
    }

    // Posts the message `psn`, which is `bytes` of inline data. Precondition: is_free().
    [[nodiscard]] int post_inline(Request& request, std::uint32_t bytes, sched::SequenceNumber psn) {
        const bool marks = marked_ == 0 && unmarked_ + 1 >= depth_ / 4;
        if (const int error = qp.post(request, &mark, marks); error != 0) return error;
        ++in_flight_;
        ++unmarked_;
        unmarked_psns_.push_back(psn);
        if (marks) begin_mark(0);
        counts.bytes += bytes;
        ++counts.sends;
        return 0;
    }

    // Posts a request that is not a message and asks for no completion. The next mark covers it.
    [[nodiscard]] int post_unmarked(Request& request) noexcept {
        if (const int error = qp.post(request, &mark, false); error != 0) return error;
        ++in_flight_;
        ++unmarked_;
        return 0;
    }

    // Posts a mark for the messages after the last one, if there are any, no mark is in flight and the queue has room.
    [[nodiscard]] int post_mark() { return unmarked_psns_.empty() ? 0 : make_room(); }

    // Posts a mark for all requests that asked for no completion, under the same conditions: only its completion shows
    // that they have left the queue, and a list may need their places.
    [[nodiscard]] int make_room() {
        if (marked_ != 0 || unmarked_ == 0 || !has_room()) return 0;
        if (const int error = qp.post_empty_write(&mark); error != 0) return error;
        ++in_flight_;
        begin_mark(1);
        return 0;
    }

    // The mark has completed. Calls landed(psn) for each message before it.
    template <class Landed>
    void on_mark_completed(Landed landed) {
        in_flight_ -= std::exchange(marked_, 0);
        for (const sched::SequenceNumber psn : marked_psns_) landed(psn);
        marked_psns_.clear();
    }

private:
    void begin_mark(std::uint32_t more) noexcept {
        marked_ = std::exchange(unmarked_, 0) + more;
        marked_psns_.swap(unmarked_psns_);
    }

    std::uint32_t in_flight_ = 0;  // requests posted whose completion has not been seen
    std::uint32_t depth_ = 0;      // limit of in_flight_
    std::uint32_t unmarked_ = 0;   // requests without a completion since the last mark was posted
    std::uint32_t marked_ = 0;     // requests that the mark in flight covers; 0: no mark is in flight
    std::vector<sched::SequenceNumber> unmarked_psns_, marked_psns_;  // the messages among these requests
};

}  // namespace coop::rail

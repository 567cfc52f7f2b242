// SPDX-License-Identifier: BSD-3-Clause
//
// A rail: one path between two processes with its own queue pair. It knows what is
// on the send queue and which requests wait for room there.
//
//     request ──► waiting (in order) ──room, and a receive credit──► send queue ──► completion
//     inline data ──────────────────────room now, or not at all────► send queue
//
// Inline data are the HCA's when the post returns, so such a send asks for no
// completion. A mark now and then, a request that does complete, shows that all
// requests before it are off the queue, and that their messages have landed.
//
// The queue pair is a template parameter: verbs in production, a fake in the unit
// tests. Neither costs an indirect call.
//
// Threading: none; the caller holds the lock of the channel. Ownership: requests
// belong to the caller and are linked through their own node. Errors: a queue pair
// that refuses a request returns an errno, and the rail has not changed.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "coop/base/list.h"
#include "coop/rail/failure.h"
#include "coop/sched/read_tokens.h"
#include "coop/sched/receive_credits.h"
#include "coop/sched/sequence.h"

namespace coop::rail {

enum class WorkKind : std::uint8_t { kSend, kPut, kGet, kAtomic, kMark };

// What a rail needs of a queue pair. `id` comes back with the completion; a request without a completion of its own
// still completes when it fails.
template <class Q>
concept QueuePair = requires(Q& qp, const Q& same, typename Q::Request& request, void* id, bool completes) {
    { qp.post(request, id, completes) }
    noexcept->std::same_as<int>;  // 0, or the errno with which it was refused
    { qp.post_empty_write(id) }
    noexcept->std::same_as<int>;  // a write of no bytes, which completes
    { qp.stop() }
    noexcept->std::same_as<bool>;  // into error: nothing arrives any more, and what is posted is flushed
    { same.works() }
    noexcept->std::same_as<bool>;  // false: it is in error
};

// A request, as a rail and its channel see it. A transport derives nothing from this; its own type has these members.
template <class W>
concept RailWork = requires(W& work) {
    { work.node } -> std::same_as<ListNode&>;
    { work.kind } -> std::same_as<WorkKind&>;
    { work.rail } -> std::same_as<sched::RailIndex&>;    // the number of its rail
    { work.bytes } -> std::same_as<std::uint32_t&>;      // as the scheduler counts them
    { work.posted_ns } -> std::same_as<std::uint64_t&>;  // of a stripe whose time is measured; else sched::kNotMeasured
    { work.psn } -> std::same_as<sched::SequenceNumber&>;  // valid if ordered
    { work.ordered } -> std::same_as<bool&>;               // a message with a place in the sequence of the channel
    { work.wants_credit } -> std::same_as<bool&>;          // a message that needs a receive buffer of the peer
    { work.has_token } -> std::same_as<bool&>;             // it has a read token of its rail
    { work.waits } -> std::same_as<bool&>;                 // the scheduler counts it among the waiting bytes
};

struct RailCounts {
    std::uint64_t bytes = 0, sends = 0, stripes = 0;
    std::uint64_t waits = 0, read_waits = 0;  // for the send queue or a credit; for a read token
};

template <QueuePair Qp, RailWork Work>
class Rail {
public:
    using Request = typename Qp::Request;

    Rail() { mark.kind = WorkKind::kMark; }

    Qp qp;
    RailState state = RailState::kOpening;
    std::uint32_t max_inline = 0;        // bytes
    bool counts_credits = false;         // the peer has receive buffers for this rail alone: a message needs a credit
    sched::ReceiveCredits own_receives;  // valid without a shared receive queue here
    sched::ReadTokens<Work, &Work::node> reads{0};
    List<Work, &Work::node> waiting;
    Work mark;  // its completion stands for the inline sends before it
    RailCounts counts;

    sched::RailIndex number() const noexcept { return mark.rail; }  // valid in a channel
    std::uint32_t in_flight() const noexcept { return in_flight_; }
    bool has_room() const noexcept { return in_flight_ < depth_; }
    bool is_free() noexcept { return waiting.empty() && has_room(); }

    void set_depth(std::uint32_t requests) noexcept { depth_ = requests; }
    // The rail has failed: there is no room any more, so every request waits.
    void shut() noexcept { depth_ = 0; }

    // Posts a request that completes with `work`. Precondition: has_room().
    [[nodiscard]] int post(Request& request, Work& work) noexcept {
        if (const int error = qp.post(request, &work, true); error != 0) return error;
        ++in_flight_;
        counts.bytes += work.bytes;
        ++(work.kind == WorkKind::kSend ? counts.sends : counts.stripes);
        return 0;
    }
    void on_completed() noexcept { --in_flight_; }

    // Posts `bytes` of inline data, the message `psn`. Precondition: is_free().
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

    // Posts a request that is no message and does not complete: the next mark counts it.
    [[nodiscard]] int post_unmarked(Request& request) noexcept {
        if (const int error = qp.post(request, &mark, false); error != 0) return error;
        ++in_flight_;
        ++unmarked_;
        return 0;
    }

    // Asks for the completion of the messages after the last mark, if there are any and the queue has room.
    [[nodiscard]] int post_mark() {
        if (marked_ != 0 || unmarked_psns_.empty() || !has_room()) return 0;
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

    std::uint32_t in_flight_ = 0;  // requests on the send queue, as far as completions have shown
    std::uint32_t depth_ = 0;      // most of them
    std::uint32_t unmarked_ = 0;   // since the last mark was posted
    std::uint32_t marked_ = 0;     // complete with the mark under way; 0: none is under way
    std::vector<sched::SequenceNumber> unmarked_psns_, marked_psns_;  // of the messages among these
};

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
//
// A channel: all rails between two processes. It gives each message its place in
// the sequence and its rail, posts requests or queues them on their rail, takes
// completions and credits, and decides what the failure of a rail means.
//
//     send ──window full──► beyond ──► rail chosen ──► submit ──► posted, or waiting on the rail
//                                                        ▲
//     stripe ──no read token──► Rail::reads ─────────────┘
//
//     A rail may have a second queue pair that carries only reads, because an HCA executes the requests of a queue
//     pair in order: a read would wait for the writes before it, and hold up what follows it.
//
//     A completion, a credit or a completed mark lets waiting requests be posted.
//
// `Self` is the transport's channel, which derives from this and has
//
//     void prepare(Work& message)                  a message has its sequence number: complete its header
//     void build(Rail&, Work&, Request&)           fill the request for this rail
//     void on_refused(Rail&, Work&, int error)     the queue pair did not take the request, and no queue holds it
//
// Threading: none; the caller holds the lock of the channel. Ownership: the rails
// belong to the channel, requests to the caller. Errors: on_rail_event().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/rail/failure.h"
#include "coop/rail/rail.h"
#include "coop/rail/rails.h"
#include "coop/sched/receive_credits.h"
#include "coop/sched/scheduler.h"
#include "coop/sched/send_window.h"

namespace coop::rail {

template <class Self, class Rail, RailWork Work>
class Channel {
public:
    Rails<Rail> rails;
    std::optional<sched::Scheduler> scheduler;  // set when the rails are known
    sched::SendWindow window;
    std::array<sched::SendCredits, sched::kMaxRails>
        credits;                     // by rail number; the peer may grant some before this side is connected
    List<Work, &Work::node> beyond;  // messages that wait for room in the window, in order
    std::uint64_t window_waits = 0;

    // --- requests ---------------------------------------------------------------------------------------------------

    bool may_send() noexcept { return beyond.empty() && window.has_room(); }

    // Sends a message with a place in the sequence. Precondition of this and the other requests: some rail is up.
    void send(Work& message) {
        if (may_send()) return send_now(message);
        ++window_waits;
        beyond.push_back(&message);
        send_beyond();
    }

    // Sends a message that needs neither a place in the sequence nor a credit. It overtakes waiting messages, because
    // it returns credits that the peer may be waiting for.
    void send_first(Work& message) {
        message.rail = scheduler->rail_of_fragment(message.bytes);
        Rail& rail = rails[message.rail];
        if (rail.has_room()) return post(rail, message);
        count_waiting(message);
        rail.waiting.push_front(&message);
    }

    // Posts the request on its rail, or queues it there.
    void submit(Work& work) {
        Rail& rail = queue_of(work);
        if (rail.waiting.empty() && take_place(rail, work)) return post(rail, work);
        ++rail.counts.waits;
        count_waiting(work);
        rail.waiting.push_back(&work);
    }

    // Posts or queues a stripe of an operation. `with_token`: it needs a read token, because a queue pair can have only
    // a few reads outstanding.
    void submit_stripe(Work& stripe, bool with_token) {
        count_waiting(stripe);
        stripe.has_token = with_token;
        Rail& rail = queue_of(stripe);
        if (!with_token || rail.reads.take_or_queue(&stripe)) return submit(stripe);
        ++rail.counts.read_waits;
    }

    bool can_read() const noexcept {
        for (const Rail& rail : rails) {
            const Rail* const reader = rails.reader(rail.number());
            if ((reader != nullptr ? *reader : rail).reads.can_take()) return true;
        }
        return false;
    }

    // Whether every rail has a queue pair for reads, so that reads hold up nothing else.
    bool reads_apart() const noexcept {
        for (const Rail& rail : rails)
            if (rails.reader(rail.number()) == nullptr) return false;
        return true;
    }

    // Returns the rail for `bytes` of inline data; null if they cannot be posted at once.
    Rail* rail_for_inline(std::uint32_t bytes) noexcept {
        if (!may_send()) return nullptr;
        Rail& rail = rails[scheduler->rail_of_fragment(bytes)];
        return bytes <= rail.max_inline && rail.is_free() ? &rail : nullptr;
    }
    // Returns false if messages need credits on this rail and there is none.
    [[nodiscard]] bool take_credit(const Rail& rail) noexcept {
        return !rail.counts_credits || credits[rail.number()].take();
    }
    // Posts inline data. `psn` was taken from the window.
    void post_inline(Rail& rail, typename Rail::Request& request, std::uint32_t bytes, sched::SequenceNumber psn) {
        if (const int error = rail.post_inline(request, bytes, psn); error != 0)
            self().on_refused(rail, rail.mark, error);
    }

    // --- events -----------------------------------------------------------------------------------------------------

    // A request has completed and left the send queue.
    void on_completed(Work& work, std::uint64_t now_ns) {
        scheduler->on_completed(work.rail, work.bytes, work.posted_ns, now_ns, direction_of(work.kind));
        Rail& rail = queue_of(work);
        rail.on_completed(work);
        if (work.has_token)
            if (Work* next = rail.reads.give_back()) submit(*next);
        if (work.ordered) window.landed(work.psn);
        pump(rail);
        send_beyond();
    }

    void on_mark_completed(Rail& rail) {
        rail.on_mark_completed([this](sched::SequenceNumber psn) { window.landed(psn); });
        pump(rail);
        send_beyond();
    }

    // The peer has returned receive credits. Returns false if there are more than a queue pair can have.
    [[nodiscard]] bool on_grant(sched::Grant grant) {
        if (!credits[grant.rail].give(grant.count)) return false;
        if (Rail* rail = rails.find(grant.rail)) pump(*rail);
        return true;
    }

    // Returns the number of rails that owe half of their receive buffers or more. Each needs a message to return them.
    std::size_t rails_that_owe_half() const noexcept {
        std::size_t count = 0;
        for (const Rail& rail : rails) count += rail.own_receives.owes_half();
        return count;
    }

    // Takes the credits to return with the next message: those of the rail that owes the largest part of its buffers.
    sched::Grant take_owed_receives() noexcept {
        Rail* most = nullptr;
        for (Rail& rail : rails)
            if (most == nullptr || rail.own_receives.owes_more_than(most->own_receives)) most = &rail;
        if (most == nullptr || most->own_receives.owed() == 0) return {};
        return {most->number(), most->own_receives.take_owed()};
    }

    // Decides about an event of a rail or of its queue pair for reads; null: of a rail that is not in the channel yet. A
    // rail that fails accepts no further requests and keeps its number. The requests that wait on it or are in flight stay there; the caller,
    // which carries out the decision, handles them.
    [[nodiscard]] RailDecision on_rail_event(Rail* rail, RailEvent event) noexcept {
        if (rail == nullptr) return decide(RailState::kOpening, event);
        const RailDecision decision = decide(rail->state, event);
        if (decision == RailDecision::kIgnore || rail->state != RailState::kUp) return decision;
        if (Rail* const reader = rails.reader(rail->number())) {
            reader->shut();
            reader->state = RailState::kFailed;
        }
        rails[rail->number()].shut();
        rails.set_state(rail->number(), RailState::kFailed);
        scheduler->set_state(rail->number(), sched::RailState::kDown);
        return decision;
    }

    // A posted request has completed with an error. The scheduler does not count it as a measurement.
    [[nodiscard]] RailDecision on_failed(const Work& work, RailEvent event) noexcept {
        if (work.kind != WorkKind::kMark)
            scheduler->on_aborted(work.rail, work.bytes, work.posted_ns, direction_of(work.kind));
        Rail* const reader = rails.any_reader(work.rail);
        return on_rail_event(reader != nullptr && &work == &reader->mark ? reader : rails.find(work.rail), event);
    }

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }

    // The queue pair of the request, which has its own send queue, waiting requests and read tokens.
    Rail& queue_of(const Work& work) const noexcept {
        Rail* const reader = work.apart ? rails.reader(work.rail) : nullptr;
        return reader != nullptr ? *reader : rails[work.rail];
    }

    void send_now(Work& message) {
        // Sequence numbers follow the order in which messages are handed to the rails, even if a rail queues them.
        message.psn = window.take();
        message.ordered = true;
        self().prepare(message);
        message.rail = scheduler->rail_of_fragment(message.bytes);
        submit(message);
    }

    // Sends waiting messages while the window has room. If it stays full, posts marks: inline sends, which ask for no
    // completion, may have landed.
    void send_beyond() {
        while (!beyond.empty() && window.has_room()) send_now(*beyond.pop_front());
        if (beyond.empty()) return;
        for (Rail& rail : rails)
            if (const int error = rail.post_mark(); error != 0) self().on_refused(rail, rail.mark, error);
    }

    // Checks for room in the send queue and takes a credit if the message needs one. Returns false, and takes nothing,
    // if there is no room or no credit.
    bool take_place(Rail& rail, const Work& work) noexcept {
        if (!rail.has_room(work.requests)) return false;
        return !work.wants_credit || take_credit(rail);
    }

    void pump(Rail& rail) {
        while (Work* next = rail.waiting.front()) {
            if (!take_place(rail, *next)) return;
            rail.waiting.remove(next);
            post(rail, *next);
        }
    }

    void post(Rail& rail, Work& work) {
        typename Rail::Request request;
        self().build(rail, work, request);
        if (work.waits) scheduler->on_waited(work.rail, work.bytes, direction_of(work.kind));
        work.waits = false;
        if (const int error = rail.post(request, work); error != 0) return self().on_refused(rail, work, error);
        scheduler->on_posted(work.rail, work.bytes, work.posted_ns, direction_of(work.kind));
    }

    void count_waiting(Work& work) noexcept {
        if (work.waits) return;
        work.waits = true;
        scheduler->on_waiting(work.rail, work.bytes, direction_of(work.kind));
    }
};

}  // namespace coop::rail

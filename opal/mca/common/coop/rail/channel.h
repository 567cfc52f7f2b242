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
// If the channel `repairs`, a rail that fails is shut, and its requests go to other rails (resubmit()): those that
// were never posted at once, the others when path/rail_life.h says so. Without a usable rail they are parked.
//
// Some messages say that the stripes before them on their rail have ended. A queue pair keeps that order, several do
// not. So such a message, if its rail fails, waits until all stripes have completed that had to leave their rail:
//
//     rail fails: its stripes are displaced ─► repeated on other rails ─► all completed ─► followers go
//
// Requests that must be executed in order are on one rail at a time (in_order.h). If it fails, all of them go to another
// one when the last has left it.
//
// `Self` is the transport's channel, which derives from this and has
//
//     void prepare(Work& message)                  a message has its sequence number: complete its header
//     void build(Rail&, Work&, Request&)           fill the request for this rail
//     void on_refused(Rail&, Work&, int error)     the queue pair did not take the request, and no queue holds it
//     optional<RailIndex> rail_for(const Work&)    the rail for a request whose rail has failed; nothing: none yet
//     optional<RailIndex> rail_in_order(const Work&, optional<RailIndex> taken)
//                                                  the rail for a request that keeps its order: the one that is taken by
//                                                  others, if any, and that works; nothing: none yet
//
// Threading: none; the caller holds the lock of the channel. Ownership: the rails
// belong to the channel, requests to the caller. Errors: on_rail_event().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "coop/rail/failure.h"
#include "coop/rail/in_order.h"
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
        credits;  // by rail number; the peer may grant some before this side is connected
    std::array<std::uint32_t, sched::kMaxRails> credit_generation{};  // of the rail that `credits` are for, less 1
    List<Work, &Work::node> beyond;     // messages that wait for room in the window, in order
    List<Work, &Work::node> parked;     // requests that wait for a rail, in order
    List<Work, &Work::node> followers;  // requests that wait until no stripe is displaced
    InOrder<Work> in_order;             // used if the channel repairs
    std::uint64_t window_waits = 0;
    bool repairs = false;  // both processes can continue without a rail that has failed

    // --- requests ---------------------------------------------------------------------------------------------------

    bool may_send() const noexcept { return beyond.empty() && window.has_room(); }

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
        if (repairs && !has_usable_rail()) return parked.push_front(&message);
        message.rail = scheduler->rail_of_fragment(message.bytes);
        post_or_queue_first(message);
    }

    // Posts the request on its rail, or queues it there.
    void submit(Work& work) {
        Rail& rail = queue_of(work);
        if (rail.waiting.empty() && take_place(rail, work)) return post(rail, work);
        if (repairs && rail.state != RailState::kUp) return resubmit(work);
        ++rail.counts.waits;
        count_waiting(work);
        rail.waiting.push_back(&work);
        if (rail.waiting.front() == &work) ask_for_room(rail, work);
    }

    // Posts or queues a stripe of an operation. `with_token`: it needs a read token, because a queue pair can have only
    // a few reads outstanding.
    void submit_stripe(Work& stripe, bool with_token) {
        stripe.has_token = with_token;
        if (stripe.follows && displaced_ != 0) return followers.push_back(&stripe);
        count_waiting(stripe);
        Rail& rail = queue_of(stripe);
        if (repairs && rail.state != RailState::kUp) return resubmit(stripe);
        if (!with_token || rail.reads.take_or_queue(&stripe)) return submit(stripe);
        ++rail.counts.read_waits;
    }

    // Starts a stripe while no rail is usable: it waits for one. Precondition: the channel repairs.
    void park(Work& stripe, bool with_token) {
        stripe.has_token = with_token;
        resubmit(stripe);
    }

    // Starts a stripe, or an atomic operation, that must be executed after those that were started before. Precondition:
    // the channel repairs; otherwise such requests take one rail anyway.
    void submit_in_order(Work& work, bool with_token) {
        work.has_token = with_token;
        work.in_order = true;
        in_order.start(work);
        in_order.wait(work);
        go_on_in_order();
        if (in_order.back() == &work) displace(work);  // it will take another rail than the caller may think
    }

    // Whether a usable rail could post another read.
    bool can_read() const noexcept {
        for (const Rail& rail : rails) {
            if ((scheduler->rails().usable() & sched::bit_of(rail.number())) == 0) continue;
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
        if (work.displaced || work.in_order) [[unlikely]]
            settle(work);
        if (work.has_token)
            if (Work* next = rail.reads.give_back()) submit(*next);
        if (work.ordered && !repairs) window.landed(work.psn);
        pump(rail);
        send_beyond();
    }

    void on_mark_completed(Rail& rail) {
        // If the channel repairs, only the peer's process says what has landed.
        rail.on_mark_completed([this](sched::SequenceNumber psn) {
            if (!repairs) window.landed(psn);
        });
        pump(rail);
        send_beyond();
    }

    // The peer has returned receive credits. Returns false if there are more than a queue pair can have.
    [[nodiscard]] bool on_grant(sched::Grant grant) {
        const std::uint32_t current = credit_generation[grant.rail];
        const std::uint32_t ahead = (grant.generation - current) % sched::Grant::kGenerations;
        // For a queue pair that is gone, or for the next one, about which the peer knows earlier. That may have skipped
        // some generations (path/rail_life.h).
        if (ahead > sched::Grant::kMostAhead) return true;
        if (ahead != 0) renew_credits(grant.rail, current + ahead + 1);
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
        return {most->number(), most->own_receives.take_owed(), (most->generation - 1) % sched::Grant::kGenerations};
    }

    // Decides about an event of a rail or of its queue pair for reads; null: of a rail that is not in the channel yet. A
    // rail that fails accepts no further requests and keeps its number. The requests that wait on it or are in flight stay there; the caller,
    // which carries out the decision, handles them.
    [[nodiscard]] RailDecision on_rail_event(Rail* rail, RailEvent event) noexcept {
        if (rail == nullptr) return decide(RailState::kOpening, event);
        const RailDecision decision = decide(rail->state, event, repairs);
        if (decision != RailDecision::kIgnore && rail->state == RailState::kUp) shut(rail->number());
        return decision;
    }

    // Nothing is posted on the rail any more.
    void shut(sched::RailIndex number) noexcept {
        if (Rail* const reader = rails.reader(number)) {
            reader->shut();
            reader->state = RailState::kFailed;
        }
        rails[number].shut();
        rails.set_state(number, RailState::kFailed);
        scheduler->set_state(number, sched::RailState::kDown);
    }

    // The rail whose mark or last request this is; null: it was replaced.
    Rail* rail_of_mark(const Work& mark) const noexcept {
        for (Rail* rail : {rails.find(mark.rail), rails.any_reader(mark.rail)})
            if (rail != nullptr && (&rail->mark == &mark || &rail->last == &mark || &rail->pulse == &mark)) return rail;
        return nullptr;
    }
    // The queue pair on which a request is, or was last.
    Rail* posted_on(const Work& work) const noexcept { return &queue_of(work); }

    // --- repair: for a rail that was shut -----------------------------------------------------------------------------

    bool has_usable_rail() const noexcept { return scheduler->rails().usable() != 0; }

    // Stripes that have left their rail, or will, and have not completed.
    std::uint32_t displaced() const noexcept { return displaced_; }

    // The stripes that were posted on the rail will leave it.
    void displace_posted(Rail& rail) {
        for (Work* work = rail.posted.front(); work != nullptr; work = rail.posted.next(work)) displace(*work);
    }

    // The request has ended, or its place on the rail has been given up because the peer has it.
    void settle(Work& stripe) {
        if (std::exchange(stripe.in_order, false)) {
            in_order.leave();
            go_on_in_order();
        }
        if (!std::exchange(stripe.displaced, false) || --displaced_ != 0) return;
        Work* const last = followers.back();
        while (Work* const work = last != nullptr ? followers.pop_front() : nullptr) {
            resubmit(*work);
            if (work == last) break;
        }
    }

    // Posts or queues the request on another rail than before, or parks it.
    void resubmit(Work& work) {
        if (work.waits) scheduler->on_waited(work.rail, work.bytes, direction_of(work.kind));
        work.waits = false;
        displace(work);
        if (work.in_order) return wait_in_order(work);
        if (work.follows && displaced_ != 0) return followers.push_back(&work);
        const std::optional<sched::RailIndex> rail = self().rail_for(work);
        if (!rail) return parked.push_back(&work);
        work.rail = *rail;
        work.posted_ns = sched::kNotMeasured;
        if (work.has_token) return submit_stripe(work, true);
        const bool has_credits = work.kind == WorkKind::kSend && !work.ordered && !work.wants_credit;
        has_credits ? post_or_queue_first(work) : submit(work);
    }

    // Requests that were never posted.
    void resubmit_waiting(Rail& rail) {
        while (Work* const work = rail.waiting.pop_front()) resubmit(*work);
        while (Work* const work = rail.reads.pop_waiting()) resubmit(*work);
    }

    // Posted requests that have not completed, in the order of posting, if may(work).
    template <class May>
    void resubmit_posted(Rail& rail, May may) {
        for (Work* work = rail.posted.front(); work != nullptr;) {
            Work* const next = rail.posted.next(work);
            if (may(*work)) {
                rail.on_completed(*work);
                scheduler->on_aborted(work->rail, work->bytes, work->posted_ns, direction_of(work->kind));
                resubmit(*work);
            }
            work = next;
        }
    }

    // The rail carries data again, with new queue pairs. Requests that had no rail go on.
    void admit(sched::RailIndex number, sched::RailState state) {
        renew_credits(number, rails[number].generation);
        scheduler->set_state(number, state);
        Work* const last = parked.back();
        while (Work* const work = last != nullptr ? parked.pop_front() : nullptr) {
            resubmit(*work);
            if (work == last) break;
        }
        go_on_in_order();
        if (!has_usable_rail()) return;  // it has failed again
        window.open();
        send_beyond();
    }

    // The peer's process has all messages before `expected`. Returns false if one of them was not sent yet.
    [[nodiscard]] bool on_acknowledged(sched::SequenceNumber expected) {
        if (!window.landed_before(expected)) return false;
        send_beyond();
        return true;
    }

    // A posted request has completed with an error. The scheduler does not count it as a measurement.
    [[nodiscard]] RailDecision on_failed(const Work& work, RailEvent event) noexcept {
        if (work.kind != WorkKind::kMark && !repairs)
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

    // The request leaves its rail.
    void wait_in_order(Work& work) {
        in_order.leave();
        in_order.wait(work);
        go_on_in_order();
    }

    // While some are on a rail that has failed, the others wait. Their rail may fail during a call of submit_stripe().
    void go_on_in_order() {
        while (in_order.has_waiting()) {
            Work& work = *in_order.front();
            const std::optional<sched::RailIndex> rail = self().rail_in_order(work, in_order.rail());
            if (!rail) return;
            in_order.enter(work, *rail);
            work.rail = *rail;
            submit_stripe(work, work.has_token);
        }
    }

    void post_or_queue_first(Work& message) {
        Rail& rail = rails[message.rail];
        if (rail.has_room()) return post(rail, message);
        count_waiting(message);
        rail.waiting.push_front(&message);
    }

    // Credits for the queue pair of a generation: those that a sender has at first.
    void renew_credits(sched::RailIndex rail, std::uint32_t generation) noexcept {
        if (credit_generation[rail] + 1 == generation) return;
        credit_generation[rail] = generation - 1;
        credits[rail] = {};
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

    // A list needs several places at once, which inline sends may hold until a mark behind them has completed.
    void ask_for_room(Rail& rail, const Work& work) {
        if (work.requests == 1) return;
        if (const int error = rail.make_room(); error != 0) self().on_refused(rail, rail.mark, error);
    }

    void pump(Rail& rail) {
        while (Work* next = rail.waiting.front()) {
            if (!take_place(rail, *next)) return ask_for_room(rail, *next);
            rail.waiting.remove(next);
            post(rail, *next);
        }
    }

    void post(Rail& rail, Work& work) {
        typename Rail::Request request;
        self().build(rail, work, request);
        if (work.waits) scheduler->on_waited(work.rail, work.bytes, direction_of(work.kind));
        work.waits = false;
        const int error = rail.post(request, work);
        // A part of a list may have been posted, so all of it is treated as if it had been.
        const bool counts = error == 0 || (repairs && work.requests > 1);
        if (counts) scheduler->on_posted(work.rail, work.bytes, work.posted_ns, direction_of(work.kind));
        if (error != 0 && counts) rail.count_posted(work);
        if (error != 0) self().on_refused(rail, counts ? rail.mark : work, error);
    }

    void displace(Work& work) noexcept {
        const bool stripe = work.kind == WorkKind::kPut || work.kind == WorkKind::kGet;
        if (stripe && !work.follows && !std::exchange(work.displaced, true)) ++displaced_;
    }

    void count_waiting(Work& work) noexcept {
        if (work.waits) return;
        work.waits = true;
        scheduler->on_waiting(work.rail, work.bytes, direction_of(work.kind));
    }

    std::uint32_t displaced_ = 0;
};

}  // namespace coop::rail

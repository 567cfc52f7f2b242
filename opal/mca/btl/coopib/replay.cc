// SPDX-License-Identifier: BSD-3-Clause
#include "replay.h"

#include <cstring>
#include <utility>
#include <vector>

#include "diagnose.h"
#include "failover.h"
#include "loopback.h"
#include "message.h"
#include "module.h"
#include "operation.h"
#include "rules.h"

namespace coop::ib {
namespace {

// A message behind stripes follows them, and tells what has become of them. If it has arrived, the peer may have changed
// what a read behind which it is fenced would find. A read that keeps its order waits for the writes beside it.
bool is_safe(const Channel& channel, Work& work, bool writes_in_order) {
    if (work.follows || (work.in_order && writes_in_order && work.kind != WorkKind::kAtomic)) return false;
    switch (work.kind) {
    case WorkKind::kGet: return !static_cast<StripeWork&>(work).op->has_riders;
    case WorkKind::kSend: return Fragment::of(work).ring_address == 0;
    case WorkKind::kAtomic:
        if (!holds(Rule::kAtomics)) return true;
        atomic_in_doubt(channel.endpoint);
    case WorkKind::kPut:
    case WorkKind::kMark: break;
    }
    return false;
}

bool has_writes_in_order(Rail& rail) {
    for (Work* work = rail.posted.front(); work != nullptr; work = rail.posted.next(work))
        if (work->in_order && work->kind == WorkKind::kPut) return true;
    return false;
}

// While a slot of the ring is written once more, it must not get its next message.
void begin_repetition(Channel& channel, Fragment& fragment) noexcept {
    if (fragment.ring_address == 0 || std::exchange(fragment.repeats, true)) return;
    ++channel.outbox->repeating;
}

// Whether the peer's process has the message, so that it must not be sent again: its slot may have the next one by now.
bool has_arrived(Work& work) { return work.kind == WorkKind::kSend && !Fragment::of(work).held; }

// Reports the message as complete; the upper layer is called without the lock. Precondition: it is on no list.
void end_message(Channel& channel, Fragment& fragment) {
    if (fragment.repeats) end_repetition(channel, fragment);
    channel.module.kept.keep(channel.module, fragment);
}

void end_posted_message(Channel& channel, Rail& rail, Work& work) {
    rail.on_completed(work);
    channel.scheduler->on_aborted(work.rail, work.bytes, work.posted_ns);
    end_message(channel, Fragment::of(work));
}

// Their completions were lost with the queue pair. Before the peer has closed the rail (`all`), a message behind stripes stays:
// end_stripes_before() looks for it.
void end_those_that_have_arrived(Channel& channel, Rail& rail, bool all) {
    for (Work* work = rail.posted.front(); work != nullptr;) {
        Work* const next = rail.posted.next(work);
        if (has_arrived(*work) && (all || !work->follows)) end_posted_message(channel, rail, *work);
        work = next;
    }
}

// The request has completed, as the peer says. Its own completion was lost.
void end_stripe(Channel& channel, Rail& rail, StripeWork& stripe) {
    Module& m = channel.module;
    rail.on_completed(stripe);
    channel.scheduler->on_aborted(stripe.rail, stripe.bytes, stripe.posted_ns, rail::direction_of(stripe.kind));
    count_completed(m, stripe);
    if (stripe.op->missing.on_completed(stripe.stripe) == sched::Landed::kComplete) m.kept.keep(m, *stripe.op);
    channel.settle(stripe);
}

// A message behind stripes has arrived: the peer may use the memory of these stripes for something else now. So they must
// not be executed again. Writes before it have been executed, and reads before one that is fenced.
void end_stripes_before(Channel& channel, Rail& rail, sched::SequenceNumber follower) {
    std::vector<StripeWork*> ended, reads;
    bool found = false;
    for (Work* work = rail.posted.front(); work != nullptr && !found; work = rail.posted.next(work)) {
        const bool message = work->kind == WorkKind::kSend;
        if (work->kind == WorkKind::kPut) ended.push_back(static_cast<StripeWork*>(work));
        if (work->kind == WorkKind::kGet && !work->follows) reads.push_back(static_cast<StripeWork*>(work));
        if (message && work->follows && Fragment::of(*work).fenced) {
            ended.insert(ended.end(), reads.begin(), reads.end());
            reads.clear();
        }
        found = message && work->follows && work->psn == follower;
    }
    if (!found) return;
    for (StripeWork* const stripe : ended) end_stripe(channel, rail, *stripe);
}

}  // namespace

void repeat_posted(Channel& channel, sched::RailIndex number, bool all) {
    RailRepair& repair = channel.repair[number];
    Rail* const rail = channel.rails.find(number);
    if (all && rail != nullptr && repair.arrived && holds(Rule::kArrived))
        end_stripes_before(channel, *rail, *repair.arrived);
    channel.rails.for_both(number, [&](Rail& each) {
        end_those_that_have_arrived(channel, each, all);
        const bool writes_in_order = has_writes_in_order(each);
        channel.resubmit_posted(each, [&](Work& work) {
            if (!all && !is_safe(channel, work, writes_in_order)) return false;
            if (work.kind == WorkKind::kSend) begin_repetition(channel, Fragment::of(work));
            ++repair.repeated;
            repair.repeated_bytes += work.bytes;
            return true;
        });
    });
}

namespace {

// Makes a fragment that repeats a message: the same bytes, to the same place in the ring.
Fragment& repetition_of(Channel& channel, const void* message, std::uint64_t ring_address) {
    Fragment* const again = channel.module.fragments.take();
    if (again == nullptr) cannot_repeat(channel.endpoint);
    const Header& header = *static_cast<const Header*>(message);
    const auto length = static_cast<std::uint32_t>(sizeof(Header)) + header.bytes;
    std::memcpy(static_cast<void*>(again->header), message, ring_address != 0 ? sched::written(length) : length);
    again->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    again->base.des_cbfunc = nullptr;
    again->ring_address = ring_address;
    again->sealed = again->held = true;
    Work& work = again->work;
    work.kind = WorkKind::kSend;
    work.endpoint = &channel.endpoint;
    work.bytes = length;
    work.psn = header.psn;
    work.ordered = is_ordered(header.kind);
    work.wants_credit = ring_address == 0 && header.kind != static_cast<std::uint8_t>(Kind::kCredits);
    work.has_token = work.apart = work.waits = false;
    work.posted_ns = sched::kNotMeasured;
    return *again;
}

// Messages that have left the send queue of the rail, or whose copy was sent inline, and that the peer's process does not
// have: its HCA may have failed after it had acknowledged them.
void repeat_held(Channel& channel, sched::RailIndex number, sched::Held<Fragment>& held) {
    RailRepair& repair = channel.repair[number];
    if (!holds(Rule::kHeld)) return;
    std::vector<Fragment*> all;
    held.for_each([&](sched::SequenceNumber, sched::Held<Fragment>::Place& place) {
        Fragment* const old = place.packet;
        if (old != nullptr ? !old->landed || old->work.rail != number : place.copy == nullptr || place.rail != number)
            return;
        const bool urgent = old != nullptr && old->urgent;
        Fragment& again = old != nullptr ? repetition_of(channel, old->header, old->ring_address)
                                         : repetition_of(channel, place.copy, place.address);
        again.urgent = urgent;
        begin_repetition(channel, again);
        again.work.rail = number;
        place = {&again, nullptr, 0, 0, 0};
        if (old != nullptr) channel.module.fragments.let_go(*old);
        ++repair.repeated;
        repair.repeated_bytes += again.work.bytes;
        all.push_back(&again);
    });
    for (Fragment* again : all) channel.resubmit(again->work);
}

}  // namespace

void end_messages(Channel& channel) {
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number) {
        Rail* const rail = channel.rails.find(number);
        // Those of other rails still complete: with an error that counts as success.
        if (rail == nullptr || !rail->drained || channel.repair[number].life.carries_data()) continue;
        for (Work* work = rail->posted.front(); work != nullptr;) {
            Work* const next = rail->posted.next(work);
            if (work->kind == WorkKind::kSend) end_posted_message(channel, *rail, *work);
            work = next;
        }
    }
    for (Work* work = channel.parked.front(); work != nullptr;) {
        Work* const next = channel.parked.next(work);
        if (work->kind == WorkKind::kSend) {
            channel.parked.remove(work);
            end_message(channel, Fragment::of(*work));
        }
        work = next;
    }
}

void repeat_all(Channel& channel, sched::RailIndex number) {
    repeat_posted(channel, number, true);
    repeat_held(channel, number, channel.held);
    repeat_held(channel, number, channel.held_unordered);
}

}  // namespace coop::ib

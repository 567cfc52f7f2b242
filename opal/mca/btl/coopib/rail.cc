// SPDX-License-Identifier: BSD-3-Clause
#include "rail.h"

#include <utility>

#include "failure.h"
#include "message.h"
#include "module.h"
#include "request.h"

namespace coop::ib {
namespace {

std::uint64_t bytes_of(const Work& work) {
    return work.kind == WorkKind::kSend ? Fragment::of(const_cast<Work&>(work)).header->bytes + sizeof(Header)
                                        : static_cast<const StripeWork&>(work).bytes;
}

void post_now(Module& m, Channel& channel, Rail& rail, Work& work) {
    ibv_send_wr request{}, *bad;
    ibv_sge sge{};
    request.wr_id = reinterpret_cast<std::uint64_t>(&work);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (work.kind == WorkKind::kSend) {
        const Fragment& fragment = Fragment::of(work);
        if (fragment.header->kind != static_cast<std::uint8_t>(Kind::kUnordered)) load_credits(channel, *fragment.header);
        fill_send(fragment, rail, request, sge);
    } else {
        fill_stripe(static_cast<StripeWork&>(work), rail, request, sge);
    }
    if (sge.length == 0) request.num_sge = 0;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) return on_post_refused(m, work, error);
    ++rail.in_flight;
    const std::uint64_t bytes = bytes_of(work);
    if (work.kind != WorkKind::kSend) channel.scheduler->on_waited(work.rail, bytes);
    channel.scheduler->on_posted(work.rail, bytes, work.posted_ns);
    rail.sent_bytes += bytes;
    ++(work.kind == WorkKind::kSend ? rail.sends : rail.stripes);
}

// Credit messages have receive buffers of their own. If they needed a credit, each side could wait for the other's.
bool needs_credit(const Rail& rail, Work& work) {
    if (!rail.counts_credits || work.kind != WorkKind::kSend) return false;
    const Fragment& fragment = Fragment::of(work);
    return fragment.ring_address == 0 && fragment.header->kind != static_cast<std::uint8_t>(Kind::kCredits);
}

// Takes a place in the send queue and, where one is needed, a credit. False: one of them is missing, and nothing was taken.
bool take_place(Channel& channel, Rail& rail, Work& work) {
    if (rail.in_flight >= rail.depth) return false;
    return !needs_credit(rail, work) || channel.receive_credits[work.rail].take();
}

void wait_on(Channel& channel, Work& work) {
    if (work.kind == WorkKind::kSend) channel.scheduler->on_waiting(work.rail, bytes_of(work));
}

}  // namespace

void submit(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = channel.rails[work.rail];
    if (rail.waiting.empty() && take_place(channel, rail, work)) return post_now(m, channel, rail, work);
    ++rail.waits;
    wait_on(channel, work);
    rail.waiting.push_back(&work);
}

void submit_first(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = channel.rails[work.rail];
    if (rail.in_flight < rail.depth) return post_now(m, channel, rail, work);
    wait_on(channel, work);
    rail.waiting.push_front(&work);
}

void pump(Module& m, Channel& channel, Rail& rail) {
    while (Work* next = rail.waiting.front()) {
        if (!take_place(channel, rail, *next)) return;
        rail.waiting.remove(next);
        if (next->kind == WorkKind::kSend) channel.scheduler->on_waited(next->rail, bytes_of(*next));
        post_now(m, channel, rail, *next);
    }
}

void post_inline_now(Module& m, Rail& rail, ibv_send_wr& request, sched::SequenceNumber psn) {
    ibv_send_wr* bad;
    request.send_flags |= IBV_SEND_INLINE;
    // A request without a completion still completes when it fails. The mark's id then names the rail.
    request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    const bool marks = rail.marked == 0 && rail.unmarked + 1 >= rail.depth / 4;
    if (marks) request.send_flags |= IBV_SEND_SIGNALED;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) return on_post_refused(m, rail.mark, error);
    ++rail.in_flight;
    ++rail.unmarked;
    rail.unmarked_psns.push_back(psn);
    if (marks) {
        rail.marked = std::exchange(rail.unmarked, 0);
        rail.marked_psns.swap(rail.unmarked_psns);
    }
    rail.sent_bytes += request.sg_list->length;
    ++rail.sends;
}

// The mark is an RDMA write of no bytes: it touches no memory, and completes after the requests before it.
void mark_now(Module& m, Rail& rail) {
    if (rail.marked != 0 || rail.unmarked_psns.empty() || rail.in_flight >= rail.depth) return;
    ibv_send_wr request{}, *bad;
    request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) return on_post_refused(m, rail.mark, error);
    ++rail.in_flight;
    rail.marked = std::exchange(rail.unmarked, 0) + 1;
    rail.marked_psns.swap(rail.unmarked_psns);
}

void on_mark_done(Channel& channel, Rail& rail) {
    rail.in_flight -= std::exchange(rail.marked, 0);
    for (const sched::SequenceNumber psn : rail.marked_psns) channel.window.landed(psn);
    rail.marked_psns.clear();
}

}  // namespace coop::ib

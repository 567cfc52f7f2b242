// SPDX-License-Identifier: BSD-3-Clause
#include "round.h"

#include <algorithm>

namespace storm {

RoundRun::Receive::Receive(const ReceivePlan& p)
    : plan(p), layout(p.layout, p.capacity, p.key), memory(layout.span() + 1) {
    layout.clear(memory.data());
}

int RoundRun::source_rank(const Receive& receive) const {
    const ReceivePlan& p = receive.plan;
    return p.source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : channel(p.channel).rank_of(state_.rank, p.source);
}

void RoundRun::post(Receive& r) {
    state_.channel = r.plan.channel, state_.source = r.plan.source, state_.tag = r.plan.tag;
    r.order = next_order_++;
    r.persistent = random_.one_in(4);
    const auto call = r.persistent ? MPI_Recv_init : MPI_Irecv;
    call(address(r), r.layout.count(), r.layout.type(), source_rank(r), r.plan.tag, comm(r.plan.channel), &r.request);
    if (r.persistent) MPI_Start(&r.request);
    ++state_.receives;
}

// The cancel may be too late: then the receive completes normally.
void RoundRun::cancel_and_repost(Receive& r) {
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&r.request);
    MPI_Wait(&r.request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (r.persistent) MPI_Request_free(&r.request);
    if (cancelled) post(r);
    else received(r, status);
}

// A receive that matches no message must always be cancelled.
void RoundRun::post_and_cancel_unmatched() {
    unsigned char nothing = 0;
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(&nothing, 1, MPI_BYTE, MPI_ANY_SOURCE, kUnusedTag, comm(0), &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled) failed("a receive that matches nothing was not cancelled");
}

void RoundRun::receive_now(Receive& r) {
    switch (random_.below(7)) {
    case 0:
        state_.channel = r.plan.channel, state_.source = r.plan.source, state_.tag = r.plan.tag;
        r.order = next_order_++;
        ++state_.receives;
        MPI_Status status;
        MPI_Recv(address(r), r.layout.count(), r.layout.type(), source_rank(r), r.plan.tag, comm(r.plan.channel),
                 &status);
        received(r, status);
        break;
    case 1: receive_probed(r, false); break;
    case 2: receive_probed(r, true); break;
    case 3: receive_matched(r, random_.one_in(2), false); break;
    case 4: receive_matched(r, random_.one_in(2), true); break;
    case 5:
        post(r);
        if (r.plan.may_repost) cancel_and_repost(r);
        break;
    default: post(r); break;
    }
}

void RoundRun::receive_probed(Receive& r, bool spin) {
    MPI_Status probed, status;
    int flag = 0, probed_bytes = 0, bytes = 0;
    if (!spin) MPI_Probe(source_rank(r), r.plan.tag, comm(r.plan.channel), &probed);
    while (spin && !flag) MPI_Iprobe(source_rank(r), r.plan.tag, comm(r.plan.channel), &flag, &probed);
    r.order = next_order_++;
    ++state_.receives;
    MPI_Recv(address(r), r.layout.count(), r.layout.type(), probed.MPI_SOURCE, probed.MPI_TAG, comm(r.plan.channel),
             &status);
    MPI_Get_count(&probed, MPI_BYTE, &probed_bytes);
    MPI_Get_elements(&status, MPI_BYTE, &bytes);
    if (bytes != probed_bytes)
        failed("the probe said " + std::to_string(probed_bytes) + " bytes, " + std::to_string(bytes) + " came");
    received(r, status);
}

void RoundRun::receive_matched(Receive& r, bool spin, bool nonblocking) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0;
    if (!spin) MPI_Mprobe(source_rank(r), r.plan.tag, comm(r.plan.channel), &message, &status);
    while (spin && !flag) MPI_Improbe(source_rank(r), r.plan.tag, comm(r.plan.channel), &flag, &message, &status);
    r.order = next_order_++;
    ++state_.receives;
    if (nonblocking) {
        MPI_Imrecv(address(r), r.layout.count(), r.layout.type(), &message, &r.request);
    } else {
        MPI_Mrecv(address(r), r.layout.count(), r.layout.type(), &message, &status);
        received(r, status);
    }
}

void RoundRun::received(Receive& r, const MPI_Status& status) {
    r.status = status;
    ++state_.receives_done;
}

}  // namespace storm

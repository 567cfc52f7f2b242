// SPDX-License-Identifier: BSD-3-Clause
//
// What arrives, over any rail, by a receive queue or in a ring, is handed on in
// the order in which it was sent.
//
//     on_received, on_slot_filled ─► check ─► sequence ─► upper layer ─► release
#include <cstring>

#include "module.h"

namespace coop::ib {
namespace {

const Header& header_of(const ReceiveBuffer& buffer) { return *reinterpret_cast<const Header*>(buffer.data); }

// Length and tag that a message of this kind has to have.
void check_control(const Header& header, std::size_t bytes, const opal_proc_t* peer) {
    if (header.bytes != bytes) damaged("length of a control message", peer, header.bytes);
    if (header.tag != 0) damaged("tag of a control message", peer, header.tag);
}

void check_message(const Module& m, const Header& header, const opal_proc_t* peer) {
    if (header.bytes > m.base.btl_max_send_size) damaged("length", peer, header.bytes);
    if (header.tag >= MCA_BTL_TAG_MAX || mca_btl_base_active_message_trigger[header.tag].cbfunc == nullptr) damaged("tag", peer, header.tag);
}

void check(const Module& m, const ReceiveBuffer& buffer, std::uint32_t arrived, const opal_proc_t* peer) {
    const Header& header = header_of(buffer);
    if (arrived < sizeof(Header)) damaged("length of the message", peer, arrived);
    if (header.check != check_of(header)) damaged("check word", peer, header.check);
    if (header.bytes != arrived - sizeof(Header)) damaged("length", peer, header.bytes);
    const auto kind = static_cast<Kind>(header.kind);
    if (buffer.ring != nullptr && kind != Kind::kMessage) damaged("kind of a message in a ring", peer, header.kind);
    switch (kind) {
    case Kind::kMessage:
    case Kind::kUnordered: return check_message(m, header, peer);
    case Kind::kRingOffer: return check_control(header, sizeof(RingOffer), peer);
    case Kind::kCredits: return check_control(header, 0, peer);
    }
    damaged("kind", peer, header.kind);
}

void hand_up(Module& m, const ReceiveBuffer& buffer) {
    const Header& header = header_of(buffer);
    mca_btl_base_segment_t segment{};
    segment.seg_addr.pval = buffer.data + sizeof(Header);
    segment.seg_len = header.bytes;
    mca_btl_base_descriptor_t descriptor{};
    descriptor.des_segments = &segment;
    descriptor.des_segment_count = 1;
    const mca_btl_active_message_callback_t& trigger = mca_btl_base_active_message_trigger[header.tag];
    trigger.cbfunc(&m.base, header.tag, &descriptor, trigger.cbdata);
}

void release(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer) {
    if (buffer.ring != nullptr) return finish_slot(m, buffer);
    const bool had_credit = header_of(buffer).kind != static_cast<std::uint8_t>(Kind::kCredits);
    post_receive(m, buffer);
    if (buffer.rail == nullptr || !had_credit) return;
    buffer.rail->own_receives.on_free();
    if (buffer.rail->own_receives.owes_half() && endpoint.channel->state == ChannelState::kConnected) post_credits(m, endpoint);
}

void hand_on(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer) {
    const bool control = is_control(header_of(buffer).kind);
    if (!control) hand_up(m, buffer);
    Guard guard(m);
    if (control) take_control(endpoint, header_of(buffer));
    release(m, endpoint, buffer);
    if (!control && buffer.ring == nullptr) count_towards_ring(m, endpoint);
}

// With the lock held. What is early is held by the window. HCA and queue pair are those it came by; number 0: by the ring.
sched::Arrival take_in(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer, std::uint32_t arrived, std::uint32_t hca, std::uint32_t qp_number) {
    check(m, buffer, arrived, endpoint.proc);
    const Header& header = header_of(buffer);
    const bool ordered = header.kind != static_cast<std::uint8_t>(Kind::kUnordered);
    const sched::Arrival arrival = ordered ? endpoint.channel->arrivals.on_arrival(header.psn, &buffer) : sched::Arrival::kInOrder;
    switch (arrival) {
    case sched::Arrival::kBeyondWindow: damaged("sequence number", endpoint.proc, header.psn);
    case sched::Arrival::kDuplicate: release(m, endpoint, buffer); return arrival;
    case sched::Arrival::kHeld: count_early(*endpoint.channel, hca, qp_number); break;
    case sched::Arrival::kInOrder: break;
    }
    if (header.ring_credits != 0) take_ring_credits(endpoint, header.ring_credits);
    if (header.receive_credits != 0) take_receive_credits(m, endpoint, sched::Grant::of(header.receive_credits));
    return arrival;
}

int hand_on_all(Module& m, Endpoint& endpoint, ReceiveBuffer& first) {
    hand_on(m, endpoint, first);
    const auto next = [&] {
        Guard guard(m);
        return endpoint.channel->arrivals.pop_next();
    };
    while (ReceiveBuffer* early = next()) hand_on(m, endpoint, *early);
    return 1;
}

}  // namespace

void post_receive(Module& m, ReceiveBuffer& buffer) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer.data), static_cast<std::uint32_t>(m.buffer_bytes()), buffer.memory->lkey(0)};
    ibv_recv_wr request{}, *bad;
    request.wr_id = reinterpret_cast<std::uint64_t>(&buffer) | 1;
    request.sg_list = &sge;
    request.num_sge = 1;
    const int error = buffer.srq != nullptr ? ibv_post_srq_recv(buffer.srq, &request, &bad) : ibv_post_recv(buffer.rail->qp, &request, &bad);
    // Only a queue that is being taken down refuses what it had before.
    if (error != 0) opal_output(0, "btl/coopib: a receive buffer could not be posted again: %s", strerror(error));
}

int on_received(Module& m, const HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc) {
    Endpoint* endpoint = nullptr;
    {
        Guard guard(m);
        const auto user = use.qp_users.find(wc.qp_num);
        if (user == use.qp_users.end() || wc.status == IBV_WC_WR_FLUSH_ERR) return 0;  // of a queue pair that is gone
        endpoint = user->second;
        if (wc.status != IBV_WC_SUCCESS) rail_failed(m, *endpoint, nullptr, wc);
        if (take_in(m, *endpoint, buffer, wc.byte_len, static_cast<std::uint32_t>(&use - m.uses.data()), wc.qp_num) != sched::Arrival::kInOrder) return 1;
    }
    return hand_on_all(m, *endpoint, buffer);
}

int on_slot_filled(Module& m, Inbox& ring) {
    ReceiveBuffer* buffer = nullptr;
    {
        Guard guard(m);
        buffer = take_slot(ring);
        if (buffer == nullptr) return 0;
        if (take_in(m, ring.endpoint, *buffer, buffer->bytes, 0, 0) != sched::Arrival::kInOrder) return 1;
    }
    return hand_on_all(m, ring.endpoint, *buffer);
}

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// What arrives, over any rail, is handed on in the order in which it was sent.
#include "module.h"

namespace coop::ib {
namespace {

const Header& header_of(const ReceiveBuffer& buffer) { return *reinterpret_cast<const Header*>(buffer.data); }

void check(const Module& m, const ReceiveBuffer& buffer, std::uint32_t arrived, const opal_proc_t* peer) {
    const Header& header = header_of(buffer);
    if (arrived < sizeof(Header)) damaged("length of the message", peer, arrived);
    if (header.check != check_of(header)) damaged("check word", peer, header.check);
    if (header.kind != static_cast<std::uint8_t>(Kind::kMessage)) damaged("kind", peer, header.kind);
    if (header.bytes > m.base.btl_max_send_size || header.bytes != arrived - sizeof(Header)) damaged("length", peer, header.bytes);
    if (header.tag >= MCA_BTL_TAG_MAX || mca_btl_base_active_message_trigger[header.tag].cbfunc == nullptr) damaged("tag", peer, header.tag);
}

void hand_on(Module& m, const ReceiveBuffer& buffer) {
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

void hand_on_and_repost(Module& m, ReceiveBuffer& buffer) {
    hand_on(m, buffer);
    Guard guard(m);
    post_receive(m, buffer);
}

}  // namespace

void post_receive(Module& m, ReceiveBuffer& buffer) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer.data), static_cast<std::uint32_t>(m.buffer_bytes()), buffer.memory->lkey(0)};
    ibv_recv_wr request{}, *bad;
    request.wr_id = reinterpret_cast<std::uint64_t>(&buffer) | 1;
    request.sg_list = &sge;
    request.num_sge = 1;
    const int error = buffer.srq != nullptr ? ibv_post_srq_recv(buffer.srq, &request, &bad) : ibv_post_recv(buffer.qp, &request, &bad);
    // Only a queue that is being taken down refuses what it had before.
    if (error != 0) opal_output(0, "btl/coopib: a receive buffer could not be posted again: %s", strerror(error));
}

int on_received(Module& m, const HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc) {
    Endpoint* endpoint = nullptr;
    sched::Arrival arrival;
    {
        Guard guard(m);
        const auto user = use.qp_users.find(wc.qp_num);
        if (user == use.qp_users.end() || wc.status == IBV_WC_WR_FLUSH_ERR) return 0;  // of a queue pair that is gone
        endpoint = user->second;
        if (wc.status != IBV_WC_SUCCESS) rail_failed(m, *endpoint, nullptr, wc);
        check(m, buffer, wc.byte_len, endpoint->proc);
        arrival = endpoint->channel->arrivals.on_arrival(header_of(buffer).psn, &buffer);
        if (arrival == sched::Arrival::kHeld) ++endpoint->channel->out_of_order;
        if (arrival == sched::Arrival::kBeyondWindow) damaged("sequence number", endpoint->proc, header_of(buffer).psn);
        if (arrival == sched::Arrival::kDuplicate) post_receive(m, buffer);
    }
    if (arrival != sched::Arrival::kInOrder) return 1;
    hand_on_and_repost(m, buffer);
    const auto next = [&] {
        Guard guard(m);
        return endpoint->channel->arrivals.pop_next();
    };
    while (ReceiveBuffer* early = next()) hand_on_and_repost(m, *early);
    return 1;
}

}  // namespace coop::ib

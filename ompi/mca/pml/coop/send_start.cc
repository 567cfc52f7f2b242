// SPDX-License-Identifier: BSD-3-Clause
//
// kStart of a send: the choice of a row, and the first packet.
#include <cstring>
#include <new>

#include "send_steps.h"

namespace coop::pml {
namespace {

// Messages up to this long, in bytes, try several times to leave at once.
constexpr std::size_t kWorthWaiting = 768;

wire::MatchHeader match_header(const SendRequest& r, wire::Kind kind, std::uint8_t flags) noexcept {
    const auto& b = r.base.req_base;
    return {kind, flags, static_cast<std::uint16_t>(b.req_comm->c_contextid), b.req_comm->c_my_rank, b.req_tag, r.sequence, 0};
}

rndv::Situation situation_of(SendRequest& r) noexcept {
    rndv::Situation s;
    s.bytes = r.bytes();
    s.eager_limit = r.peer->eager_payload;
    s.rdma_min = static_cast<std::size_t>(module.config.rdma_min);
    s.wish = static_cast<rndv::Wish>(module.config.protocol);
    s.synchronous = r.base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    s.sender_contiguous = r.bytes() == 0 || !opal_convertor_need_buffers(&r.convertor());
    if (const mca_bml_base_btl_t* rdma = r.peer->rdma) {
        s.rdma_share = r.peer->rdma_share;
        s.can_get = rdma->btl_flags & MCA_BTL_FLAGS_GET;
        s.can_put = rdma->btl_flags & MCA_BTL_FLAGS_PUT;
    }
    return s;
}

// The transport was full a moment ago. Waiting for room is cheaper on both sides
// than its way for larger packets; but not for ever, it may have another reason.
bool prefers_to_wait(SendRequest& r, const mca_bml_base_btl_t& btl) noexcept {
    if (!btl.btl->btl_sendi || r.bytes() > kWorthWaiting || r.patience == 0) return false;
    --r.patience;
    return true;
}

Next eager_sent(SendRequest& r) noexcept {
    r.peer->count(rndv::Row::kEager, rndv::Reason::kFitsEager, r.bytes());
    return go(r, SendStep::kDrain);
}

Next start_eager(SendRequest& r, mca_bml_base_btl_t& btl) noexcept {
    const auto& b = r.base.req_base;
    const auto header = wire::sealed_match(static_cast<std::uint16_t>(b.req_comm->c_contextid), b.req_comm->c_my_rank, b.req_tag, r.sequence);
    if (send_immediate(btl, r.convertor(), header, r.bytes())) return eager_sent(r);
    if (prefers_to_wait(r, btl)) return wait_in_line(r);
    rewind(r, 0);  // the attempt may have moved it
    std::size_t payload = r.bytes();
    mca_btl_base_descriptor_t* descriptor =
        begin_packet(btl, r.convertor(), sizeof(wire::MatchHeader), payload, MCA_BTL_DES_FLAGS_PRIORITY);
    if (!descriptor) return wait_in_line(r);

    write_header(*descriptor, wire::Kind::kMatch, match_header(r, wire::Kind::kMatch, 0));
    if (hand_over(r, btl, descriptor, wire::Kind::kMatch) == Sent::kRefused) return wait_in_line(r);
    return eager_sent(r);
}

Next start_rendezvous(SendRequest& r, mca_bml_base_btl_t& eager, const rndv::Situation& s, rndv::Choice offer) noexcept {
    if (!r.id) {
        if (!(r.id = module.sends.acquire(&r, module.threads))) return wait_in_line(r);
        r.references.take();  // the answer's
        module.counters.up(Gauge::kRendezvous);
    }

    mca_bml_base_btl_t& btl = offer.row == rndv::Row::kRget || offer.row == rndv::Row::kRput ? *r.peer->rdma : eager;
    wire::RtsHeader header{};
    header.match = match_header(r, wire::Kind::kRts, 0);
    header.length = r.bytes();
    header.send_id = r.id;
    header.row = static_cast<std::uint8_t>(offer.row);
    header.reason = static_cast<std::uint8_t>(offer.reason);
    if (s.sender_contiguous) header.match.flags |= wire::kFlagContiguous;
    if (s.synchronous) header.match.flags |= wire::kFlagSync;
    header.match.flags |= wire::wish_flag(static_cast<std::uint8_t>(s.wish));

    std::size_t handle_bytes = 0, payload = 0;
    if (offer.row == rndv::Row::kRget) {
        void* address;
        opal_convertor_get_current_pointer(&r.convertor(), &address);
        header.match.flags |= wire::kFlagGet;
        header.address = reinterpret_cast<std::uint64_t>(address);
        if (r.registration) handle_bytes = btl.btl->btl_registration_handle_size;
    } else if (offer.row == rndv::Row::kEager) {
        payload = r.bytes();
    } else if (offer.row == rndv::Row::kSend) {
        const std::size_t limit = std::min(static_cast<std::size_t>(module.config.rndv_inline), btl.btl->btl_rndv_eager_limit);
        payload = std::min({limit, r.peer->eager_payload, r.bytes()});
    }
    header.handle_bytes = static_cast<std::uint16_t>(handle_bytes);

    r.step.store(SendStep::kAnswer, std::memory_order_release);  // before the packet is out: the answer may come from within
    if (payload == 0) {
        unsigned char packet[sizeof header + wire::kMaxHandleBytes];
        if (handle_bytes) std::memcpy(packet + sizeof header, r.registration, handle_bytes);
        auto& whole = *new (packet) wire::RtsHeader(header);
        wire::seal(whole);
        if (send_control(btl, wire::Kind::kRts, packet, sizeof header + handle_bytes) == Sent::kYes) return Next::kGoOn;
    } else if (mca_btl_base_descriptor_t* descriptor =
                   begin_packet(btl, r.convertor(), sizeof header, payload, MCA_BTL_DES_FLAGS_PRIORITY)) {
        header.inline_bytes = static_cast<std::uint32_t>(payload);
        write_header(*descriptor, wire::Kind::kRts, header);
        if (hand_over(r, btl, descriptor, wire::Kind::kRts) == Sent::kYes) return Next::kGoOn;
    }
    r.step.store(SendStep::kStart, std::memory_order_relaxed);
    return wait_in_line(r);
}

}  // namespace

Next start_step(SendRequest& r) noexcept {
    rewind(r, 0);
    mca_bml_base_btl_t& btl = *r.peer->eager();
    rndv::Situation s = situation_of(r);
    rndv::Choice offer = rndv::choose(s);
    r.rdma = r.peer->rdma;
    if (offer.row == rndv::Row::kRget && !open_memory(r, 0, r.bytes(), MCA_BTL_REG_FLAG_REMOTE_READ)) {
        s.get_refused = true;
        offer = rndv::choose(s);
    }
    if (offer.row == rndv::Row::kEager && !s.synchronous) return start_eager(r, btl);
    return start_rendezvous(r, btl, s, offer);
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of a rendezvous under way, which name a request by its id. An unknown id, or a range outside of the message,
// ends the job.
#include <algorithm>

#include "diagnose.h"
#include "on_match.h"
#include "recv_request.h"
#include "send_request.h"

namespace coop::pml {
namespace {

// The sender according to a damaged header.
template <class Header>
Sender sender_in(const Packet& packet) noexcept {
    if (packet.first_bytes() < sizeof(Header)) return {};
    return static_cast<const Header*>(packet.header())->sender;
}

template <class Header>
const Header& checked(const Packet& packet, bool (*valid)(const void*, std::size_t, wire::Damage&)) noexcept {
    wire::Damage damage{};
    if (!valid(packet.header(), packet.first_bytes(), damage)) [[unlikely]]
        diagnose_header(damage, sender_in<Header>(packet));
    return *static_cast<const Header*>(packet.header());
}

// Returns the request with this id. Ends the job if there is none, or if its peer is not the sender.
template <class Request>
Request& request_of(const HandleTable<Request>& table, wire::Kind kind, const char* what, std::uint64_t id,
                    std::uint32_t sender) noexcept {
    Request* request = table.find(id);
    if (!request || request->peer->job_rank() != sender) [[unlikely]]
        protocol_error(kind, sender,
                       "no " + std::string(what) + " with the id " + std::to_string(id) + " is under way");
    return *request;
}

[[noreturn]] void answered_already(wire::Kind kind, std::uint32_t sender, std::uint64_t id) {
    protocol_error(kind, sender, "the send with the id " + std::to_string(id) + " has been answered before");
}

// True if our cooperative copy is stuck and waits for a grant of fragments.
bool is_stuck(const SendRequest& r) noexcept {
    return r.engine.step() == rndv::SendStep::kCopy && r.copy.claims().stuck();
}

// The grant must stay within the message. If we are to write, it must contain a handle of the right size; if it names a
// slot, the chunks of its plan must be countable.
void check_grant(const SendRequest& r, const wire::CtsHeader& h) noexcept {
    if (!r.engine.takes_grant(static_cast<rndv::Row>(h.row), is_stuck(r)))
        answered_already(wire::Kind::kCts, h.sender, h.send_id);
    if (h.offset > r.bytes()) diagnose_field(wire::Kind::kCts, "offset", h.sender, h.offset, 0, r.bytes());
    if (h.length > r.bytes() - h.offset)
        diagnose_field(wire::Kind::kCts, "length", h.sender, h.length, 0, r.bytes() - h.offset);
    const rndv::Choice choice{static_cast<rndv::Row>(h.row), {}, static_cast<rndv::Split>(h.copy.split)};
    if (h.length == 0 || !rndv::sender_writes(choice)) return;
    const bool shared = rndv::is_shared(choice);
    if (!r.peer->rdma || (shared && !r.peer->can_share()))
        diagnose_field(wire::Kind::kCts, "row", h.sender, h.row, 0, static_cast<std::uint64_t>(rndv::Row::kSend));
    const mca_btl_base_module_t& btl = *r.peer->rdma->btl;
    const std::size_t handle = btl.btl_register_mem ? btl.btl_registration_handle_size : 0;
    if (h.handle_bytes != handle)
        diagnose_field(wire::Kind::kCts, "handle bytes", h.sender, h.handle_bytes, handle, handle);
    if (shared) check_chunk(wire::Kind::kCts, h.sender, h.length, h.copy.chunk);
}

}  // namespace

extern "C" void mca_pml_coop_on_cts(mca_btl_base_module_t* btl, mca_btl_base_tag_t, mca_btl_base_descriptor_t* des,
                                    void*) {
    const Callback turn;
    const Packet packet{btl, des->des_segments, des->des_segment_count};
    const auto& h = checked<wire::CtsHeader>(packet, wire::valid_cts);
    SendRequest& r = request_of(module.sends, h.kind, "send", h.send_id, h.sender);
    check_grant(r, h);
    if (h.sees) r.peer->note_that_it_sees_us();
    on_grant(r, h, &h + 1);
}

extern "C" void mca_pml_coop_on_frag(mca_btl_base_module_t* btl, mca_btl_base_tag_t, mca_btl_base_descriptor_t* des,
                                     void*) {
    const Callback turn;
    const Packet packet{btl, des->des_segments, des->des_segment_count};
    const auto& h = checked<wire::FragHeader>(packet, wire::valid_frag);
    on_fragment(request_of(module.recvs, h.kind, "receive", h.recv_id, h.sender), h, packet);
}

extern "C" void mca_pml_coop_on_fin(mca_btl_base_module_t* btl, mca_btl_base_tag_t, mca_btl_base_descriptor_t* des,
                                    void*) {
    const Callback turn;
    const Packet packet{btl, des->des_segments, des->des_segment_count};
    const auto& h = checked<wire::FinHeader>(packet, wire::valid_fin);
    if (h.what == 0) return on_put(request_of(module.recvs, h.kind, "receive", h.id, h.sender), h);

    SendRequest& r = request_of(module.sends, h.kind, "send", h.id, h.sender);
    if (!r.engine.takes_fin()) answered_already(h.kind, h.sender, h.id);
    if (wire::fin_bytes(h) > r.bytes()) diagnose_field(h.kind, "bytes", h.sender, wire::fin_bytes(h), 0, r.bytes());
    if (wire::fin_sees(h)) r.peer->note_that_it_sees_us();
    // After a read over several rails, one FIN follows the last stripe on each rail.
    const auto parts = static_cast<std::uint32_t>(std::max<std::uint64_t>(wire::fin_parts(h), 1));
    switch (r.engine.on_fin({static_cast<rndv::Row>(wire::fin_row(h)), static_cast<rndv::Reason>(wire::fin_reason(h))},
                            parts)) {
    case rndv::FinTaken::kRefused:
        diagnose_field(h.kind, "FINs", h.sender, parts, r.engine.fins_due(), r.engine.fins_due());
    case rndv::FinTaken::kAwaitsOthers: return;
    case rndv::FinTaken::kComplete: return on_read(r);
    }
}

}  // namespace coop::pml

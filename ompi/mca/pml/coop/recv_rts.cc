// SPDX-License-Identifier: BSD-3-Clause
//
// Processing of an RTS by its receive.
#include <algorithm>
#include <cstring>

#include "diagnose.h"
#include "hints.h"
#include "recv_steps.h"

namespace coop::pml {
namespace {

// Finds the pieces of both buffers. Returns false if a buffer has no large pieces, if no bytes are wanted, or if
// messages of this peer cannot be copied by pieces (takes_pieces).
bool find_pieces(RecvRequest& r, const wire::RtsHeader& h, std::size_t wanted) noexcept {
    if (!takes_pieces(*r.peer) || wanted == 0) return false;
    if (h.match.flags & wire::kFlagPieces) {
        const std::size_t count = h.inline_bytes / sizeof(wire::Piece);
        if (!r.remote_pieces.assign(wire::pieces_of(h), count, h.length))
            protocol_error(wire::Kind::kRts, r.peer->job_rank(), "the pieces are shorter than the message");
    } else if (!(h.match.flags & wire::kFlagContiguous)) {
        return false;
    }
    if (r.contiguous_base) return true;
    return r.local_pieces.collect(r.convertor(), r.capacity, static_cast<std::size_t>(module.config.piece_min));
}

}  // namespace

void read_rts(RecvRequest& r, Peer& peer, const wire::RtsHeader& h, mca_btl_base_module_t* btl) noexcept {
    r.peer = &peer;
    r.send_id = h.send_id;
    const std::size_t wanted = std::min<std::size_t>(h.length, r.capacity);
    const std::size_t payload = h.match.flags & wire::kFlagPieces ? 0 : h.inline_bytes;
    r.counted = false;
    r.remote_address = h.address;
    std::memcpy(r.remote_handle, &h + 1, h.handle_bytes);
    // A packet of the lane has no transport; the sender has chosen as if it came with the best one.
    r.rdma = btl ? mca_bml_base_btl_array_find(&peer.endpoint.load(std::memory_order_relaxed)->btl_rdma, btl)
                 : peer.rdma;
    r.extension = r.rdma == peer.rdma ? peer.rdma_extension : extension_of(*btl);

    if (h.match.flags & wire::kFlagShare) peer.note_that_it_sees_us();
    take_in_written_parameters();
    rndv::Situation s;
    s.bytes = h.length;
    s.rdma_min = static_cast<std::size_t>(module.config.rdma_min);
    s.synchronous = h.match.flags & wire::kFlagSync;
    s.sender_contiguous = h.match.flags & wire::kFlagContiguous;
    s.receiver_contiguous = wanted == 0 || r.contiguous_base;
    s.rdma_share = peer.rdma_share;
    const auto offered = static_cast<rndv::Row>(h.row);
    if (offered == rndv::Row::kLane) s.lane_max = SIZE_MAX;
    if (static_cast<rndv::Reason>(h.reason) == rndv::Reason::kFastLink) s.link = rndv::Link::kFast;
    s.wish = static_cast<rndv::Wish>(wire::wish_of(h.match.flags));
    if (s.wish == rndv::Wish::kHybrid) s.wish = wish_for(r.comm());
    s.coop_min = static_cast<std::size_t>(module.config.coop_min);
    s.send_call = static_cast<rndv::SendCall>(h.call);
    s.recv_call = call_for(r.comm(), r.call);
    s.crowded = module.crowded;
    s.receiver_sends = module.sends.in_use() > 0;
    s.kernel_copy_denied = peer.copy_denied();
    s.same_node = peer.neighbour != nullptr;
    if (r.rdma && rndv::protocol(offered).needs_rdma) {
        const std::size_t handle = r.rdma->btl->btl_register_mem ? r.rdma->btl->btl_registration_handle_size : 0;
        s.can_get = (h.match.flags & wire::kFlagGet) && (r.rdma->btl_flags & MCA_BTL_FLAGS_GET) &&
                    h.handle_bytes >= handle && !s.kernel_copy_denied;
        s.can_put = (r.rdma->btl_flags & MCA_BTL_FLAGS_PUT) && !s.kernel_copy_denied;
        s.can_share = (h.match.flags & wire::kFlagShare) && peer.can_share() && s.can_get;
        if (rndv::load_matters(s)) {
            s.receiver_load = rndv::load_of(*my_board());
            // The sender's board is in another CPU's cache: read it only if our own load does not decide.
            const bool turns = rndv::turns_matter(s);
            if (s.receiver_load > 0 || turns) s.sender_load = rndv::load_of(peer.neighbour->board());
            if (turns) s.sender_surplus = rndv::surplus_over(peer.neighbour->board(), *my_board());
        }
    }
    if (!(s.sender_contiguous && s.receiver_contiguous)) s.large_pieces = s.can_get && find_pieces(r, h, wanted);
    choose_way(r, s, rndv::protocol(offered).starts_at_once, !btl);
    r.engine.on_rts({offered, static_cast<rndv::Reason>(h.reason)}, s, wanted, std::min(payload, wanted));
}

void join_copy(RecvRequest& r, const wire::RtsHeader& h) noexcept {
    const wire::SlotWords words = wire::slot_words(h);
    const std::uint64_t taken = rndv::stamped(r.generation, rndv::Offer::kTaken);
    if (!r.has_slot || words.slot != r.slot || words.generation != r.generation || h.length > r.capacity ||
        r.engine.from() > 0 || my_board()->slots[r.slot].offer.phase.load(std::memory_order_acquire) != taken)
        protocol_error(wire::Kind::kRts, r.peer->job_rank(),
                       "slot " + std::to_string(words.slot) + " is not offered to this message");
    const std::size_t wanted = r.engine.wanted();
    check_chunk(wire::Kind::kRts, r.peer->job_rank(), wanted, words.chunk);
    r.engine.set_split(static_cast<rndv::Split>(words.split));
    const rndv::Choice& choice = r.engine.choice();
    r.copy.start(my_board()->slots[r.slot], rndv::Side::kReceiver, r.generation, 0, wanted, words.chunk, choice);
    start_hca_copies(r, may_offload(r, wanted));
    r.load = rndv::shares(choice, wanted).receiver;
}

void take_from_bounce(RecvRequest& r, Peer& peer, const wire::RtsHeader& h) noexcept {
    const std::uint32_t index = rndv::value_of(h.address), generation = rndv::generation_of(h.address);
    NodeMemory* const theirs = peer.neighbour ? peer.neighbour->memory.load(std::memory_order_acquire) : nullptr;
    // A sender may use a bounce buffer only after we have told it that its memory is mapped here.
    if (!theirs) protocol_error(wire::Kind::kRts, peer.job_rank(), "its bounce buffers are not mapped here");
    rndv::Bounce& bounce = theirs->bounces.all[index];
    const unsigned char* payload = rndv::contents(bounce, generation);
    if (!payload)
        protocol_error(wire::Kind::kRts, peer.job_rank(),
                       "bounce buffer " + std::to_string(index) + " does not contain this message");
    mca_btl_base_segment_t segment{};
    segment.seg_addr.pval = const_cast<unsigned char*>(payload);
    segment.seg_len = h.length;
    unpack(r, {nullptr, &segment, 1}, 0, 0);
    rndv::empty(bounce, generation);
    finish(r);
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
#include "recv_request.h"

#include <cstring>
#include <new>
#include <utility>

#include "diagnose.h"
#include "hints.h"
#include "packet.h"
#include "pool.h"

namespace coop::pml {
namespace {

enum class Next { kGoOn, kWait };  // kGoOn: the step has changed, take the next

// Gives back a reference that we took ourselves: never the last, our caller holds one.
void drop_ours(RecvRequest& r) noexcept { static_cast<void>(r.references.drop()); }

Next wait_for_resources(RecvRequest& r) noexcept {
    r.references.take();
    if (!defer(r.deferred)) drop_ours(r);
    return Next::kWait;
}

Next go(RecvRequest& r, RecvStep step) noexcept {
    r.step = step;
    return Next::kGoOn;
}

// The packet's payload behind `skip` bytes of header, into the user's buffer
// from `offset` of the message on. What exceeds the buffer is dropped.
void unpack(RecvRequest& r, const Packet& packet, std::size_t skip, std::size_t offset) noexcept {
    iovec pieces[MCA_BTL_DES_MAX_SEGMENTS];
    std::uint32_t count = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < packet.count; ++i) {
        const auto& s = packet.segments[i];
        const std::size_t cut = std::min<std::size_t>(skip, s.seg_len);
        skip -= cut;
        if (s.seg_len == cut) continue;
        pieces[count++] = {static_cast<char*>(s.seg_addr.pval) + cut, s.seg_len - cut};
        bytes += s.seg_len - cut;
    }
    if (bytes == 0 || offset >= r.capacity) return;
    if (count == 1 && !opal_convertor_need_buffers(&r.convertor())) {
        void* to;  // one piece to one place: the convertor would do no more, at some cost
        opal_convertor_get_offset_pointer(&r.convertor(), offset, &to);
        std::memcpy(to, pieces[0].iov_base, std::min(bytes, r.capacity - offset));
        return;
    }
    Guard guard(r.lock);
    opal_convertor_set_position(&r.convertor(), &offset);
    opal_convertor_unpack(&r.convertor(), pieces, &count, &bytes);
}

void set_status(RecvRequest& r, const wire::MatchHeader& header, std::size_t message_bytes) noexcept {
    auto& status = r.mpi()->req_status;
    status.MPI_SOURCE = header.source;
    status.MPI_TAG = header.tag;
    status._ucount = message_bytes;
    if (message_bytes > r.capacity) status.MPI_ERROR = MPI_ERR_TRUNCATE;
    r.base.req_bytes_packed = message_bytes;
}

void complete_for_user(RecvRequest& r) noexcept {
    if (r.mpi_complete) return;
    r.mpi_complete = true;
    // Nobody will ask for the status of a request that was freed while active.
    if (r.fate.is_freed() && r.mpi()->req_status.MPI_ERROR != MPI_SUCCESS)
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_REQUEST);
    hand_on(r.mpi());
    ompi_request_complete(r.mpi(), true);
}

void finish(RecvRequest& r) noexcept {
    r.base.req_base.req_pml_complete = true;
    r.fate.completing();
    complete_for_user(r);
    if (r.fate.library_done()) recycle(r);
}

// -- RTS ----------------------------------------------------------------------

// Both sides as pieces, where they are large enough and the transport needs no
// handle for them.
bool find_pieces(RecvRequest& r, const wire::RtsHeader& h) noexcept {
    if (!takes_pieces(*r.peer) || r.wanted == 0) return false;
    if (h.match.flags & wire::kFlagPieces) {
        const std::size_t count = h.inline_bytes / sizeof(wire::Piece);
        if (!r.remote_pieces.take_over(wire::pieces_of(h), count, h.length))
            diagnose_field(wire::Kind::kRts, "pieces (less than the message)", r.peer->job_rank(), count, 0, 0);
    } else if (!(h.match.flags & wire::kFlagContiguous)) {
        return false;
    }
    if (!opal_convertor_need_buffers(&r.convertor())) return true;
    return r.local_pieces.collect(r.convertor(), r.capacity, static_cast<std::size_t>(module.config.piece_min));
}

void read_rts(RecvRequest& r, Peer& peer, const wire::RtsHeader& h, mca_btl_base_module_t* btl) noexcept {
    r.peer = &peer;
    r.send_id = h.send_id;
    r.wanted = std::min<std::size_t>(h.length, r.capacity);
    const std::size_t payload = h.match.flags & wire::kFlagPieces ? 0 : h.inline_bytes;
    r.landed.store(std::min<std::size_t>(payload, r.wanted), std::memory_order_relaxed);
    r.grant_from = r.landed.load(std::memory_order_relaxed);
    r.counted = false;
    r.remote_address = h.address;
    std::memcpy(r.remote_handle, &h + 1, h.handle_bytes);
    r.rdma = mca_bml_base_btl_array_find(&peer.endpoint.load(std::memory_order_relaxed)->btl_rdma, btl);

    rndv::Situation s;
    s.bytes = h.length;
    s.rdma_min = static_cast<std::size_t>(module.config.rdma_min);
    s.synchronous = h.match.flags & wire::kFlagSync;
    s.sender_contiguous = h.match.flags & wire::kFlagContiguous;
    s.receiver_contiguous = r.wanted == 0 || !opal_convertor_need_buffers(&r.convertor());
    s.rdma_share = peer.rdma_share;
    const auto offered = static_cast<rndv::Row>(h.row);
    s.wish = static_cast<rndv::Wish>(wire::wish_of(h.match.flags));
    if (s.wish == rndv::Wish::kHybrid) s.wish = wish_for(r.comm());
    s.coop_min = static_cast<std::size_t>(module.config.coop_min);
    s.send_call = static_cast<rndv::SendCall>(h.call);
    s.recv_call = call_for(r.comm(), r.call);
    s.crowded = module.crowded;
    s.receiver_sends = module.sends.in_use() > 0;
    s.kernel_copy_denied = peer.copy_denied();
    if (r.rdma && offered != rndv::Row::kSend) {
        const std::size_t handle = r.rdma->btl->btl_register_mem ? r.rdma->btl->btl_registration_handle_size : 0;
        s.can_get = (h.match.flags & wire::kFlagGet) && (r.rdma->btl_flags & MCA_BTL_FLAGS_GET) && h.handle_bytes >= handle && !s.kernel_copy_denied;
        s.can_put = (r.rdma->btl_flags & MCA_BTL_FLAGS_PUT) && !s.kernel_copy_denied;
        s.can_share = (h.match.flags & wire::kFlagShare) && peer.can_share() && s.can_get;
        if (rndv::load_matters(s)) {
            s.receiver_load = rndv::load_of(*my_board());
            // Theirs is in another cache: looked at only where ours does not decide.
            const bool turns = rndv::turns_matter(s);
            if (s.receiver_load > 0 || turns) s.sender_load = rndv::load_of(*peer.neighbour->board);
            if (turns) s.sender_surplus = rndv::surplus_over(*peer.neighbour->board, *my_board());
        }
    }
    if (!(s.sender_contiguous && s.receiver_contiguous)) s.large_pieces = s.can_get && find_pieces(r, h);
    r.situation = s;
    // The sender's reason stands where it offered no RDMA at all.
    r.choice = {offered, static_cast<rndv::Reason>(h.reason)};
}

// -- the slot of a cooperative copy, and the load that it means ------------------

bool take_slot(RecvRequest& r) noexcept {
    if (r.has_slot) return true;
    Guard guard(module.lock);
    const auto slot = module.slots.acquire();
    if (!slot) return false;
    r.has_slot = true;
    r.slot = *slot;
    r.generation = rndv::arm(my_board()->slots[r.slot]);
    return true;
}

void free_slot(RecvRequest& r) noexcept {
    if (!std::exchange(r.has_slot, false)) return;
    Guard guard(module.lock);
    module.slots.release(r.slot);
}

void settle_load(RecvRequest& r) noexcept {
    if (r.load > 0) rndv::subtract_load(*my_board(), std::exchange(r.load, 0));
}

// Whose turn this message is, for the next one. It stays so when another protocol
// has to take over: the next messages make up for it.
void count_turn(RecvRequest& r, const rndv::Shares& share) noexcept {
    rndv::Board &mine = *my_board(), &theirs = *r.peer->neighbour->board;
    if (share.receiver > share.sender) rndv::count_turn(mine, theirs, share.receiver);
    else rndv::count_turn(theirs, mine, share.sender);
}

// Puts on both boards what each side now has to copy, in place of what an
// earlier attempt put there.
void count_load(RecvRequest& r, std::size_t bytes) noexcept {
    settle_load(r);
    r.counted = rndv::load_matters(r.situation);
    if (!r.counted) return;
    const rndv::Shares share = rndv::shares(r.choice, bytes);
    if (rndv::turns_matter(r.situation)) count_turn(r, share);
    r.load = share.receiver;
    rndv::add_load(*my_board(), share.receiver);
    if (share.sender > 0) rndv::add_load(*r.peer->neighbour->board, share.sender);
}

// False: no slot is free.
bool prepare_copy(RecvRequest& r, std::size_t from) noexcept {
    if (!take_slot(r)) return false;
    const std::size_t bytes = r.wanted - from;
    r.shared.start(my_board()->slots[r.slot], rndv::Side::kReceiver, r.generation, from, bytes, shared_chunk(*r.rdma->btl, r.choice.split, bytes), r.choice.split);
    count_load(r, bytes);
    return true;
}

// The sender has taken the offer of this receive and copies already.
void join_copy(RecvRequest& r, const wire::RtsHeader& h) noexcept {
    const wire::SlotWords words = wire::slot_words(h);
    const std::uint64_t taken = rndv::stamped(r.generation, rndv::Offer::kTaken);
    if (!r.has_slot || words.slot != r.slot || words.generation != r.generation || h.length > r.capacity || r.grant_from > 0 ||
        my_board()->slots[r.slot].offer.phase.load(std::memory_order_acquire) != taken)
        diagnose_field(wire::Kind::kRts, "slot (not offered)", r.peer->job_rank(), words.slot, 0, 0);
    check_chunk(wire::Kind::kRts, r.peer->job_rank(), r.wanted, words.chunk);
    r.choice.split = static_cast<rndv::Split>(words.split);
    r.shared.start(my_board()->slots[r.slot], rndv::Side::kReceiver, r.generation, 0, r.wanted, words.chunk, r.choice.split);
    r.load = rndv::shares(r.choice, r.wanted).receiver;
    r.step = RecvStep::kCopy;
}

// The row for what is missing from `from` on, with everything known.
Next choose(RecvRequest& r, std::size_t from) noexcept {
    r.grant_from = from;
    if (from >= r.wanted) {
        r.choice.reason = r.choice.row == rndv::Row::kEager ? r.choice.reason : rndv::Reason::kNothingLeft;
        if (r.choice.row == rndv::Row::kCoop) r.choice.row = rndv::Row::kRget;  // nothing to copy together
        return go(r, RecvStep::kGrant);
    }
    for (;;) {
        const rndv::Choice choice = rndv::choose(r.situation);
        if (choice.row != rndv::Row::kSend || r.choice.row != rndv::Row::kSend) r.choice = choice;
        if (choice.row == rndv::Row::kCoop) {
            if (open_memory(r, from, r.wanted - from, kShareAccess)) {
                if (prepare_copy(r, from)) return go(r, RecvStep::kGrant);
                r.situation.slot_free = false;
            } else {
                r.situation.put_refused = true;
            }
        } else if (choice.row == rndv::Row::kRget) {
            if (open_memory(r, from, r.wanted - from, kShareAccess)) {
                count_load(r, r.wanted - from);
                r.run.start(from, r.wanted, chunk_for(*r.peer));
                return go(r, RecvStep::kGet);
            }
            r.situation.get_refused = true;
        } else if (choice.row == rndv::Row::kRput) {
            if (open_memory(r, from, r.wanted - from, kShareAccess)) {
                count_load(r, r.wanted - from);
                return go(r, RecvStep::kGrant);
            }
            r.situation.put_refused = true;
        } else {
            return go(r, RecvStep::kGrant);
        }
    }
}

// -- kGrant, kLanding -----------------------------------------------------------

// A transport for control packets: the one that the RTS came by where that has RDMA.
mca_bml_base_btl_t& control_lane(RecvRequest& r) noexcept { return r.rdma ? *r.rdma : *r.peer->eager(); }

Next grant(RecvRequest& r) noexcept {
    if (!r.id) {
        if (!(r.id = module.recvs.acquire(&r, module.threads))) return wait_for_resources(r);
        module.counters.up(Gauge::kRendezvous);
    }
    unsigned char packet[kLongestControl];
    auto& h = *new (packet) wire::CtsHeader{};
    h.kind = wire::Kind::kCts;
    h.row = static_cast<std::uint8_t>(r.choice.row);
    h.reason = static_cast<std::uint8_t>(r.choice.reason);
    h.sender = module.my_rank;
    h.send_id = r.send_id;
    h.recv_id = r.id;
    h.offset = r.grant_from;
    h.length = r.wanted - r.grant_from;
    h.counted = r.counted;
    const bool coop = r.choice.row == rndv::Row::kCoop;
    if (coop) h.copy = {r.slot, r.generation, static_cast<std::uint32_t>(r.shared.plan.chunk), static_cast<std::uint8_t>(r.choice.split), {}};
    if ((coop || r.choice.row == rndv::Row::kRput) && h.length > 0 && r.local_pieces.any()) {
        h.pieces = static_cast<std::uint8_t>(r.local_pieces.count());
        std::memcpy(packet + sizeof h, r.local_pieces.data(), h.pieces * sizeof(wire::Piece));
    } else if ((coop || r.choice.row == rndv::Row::kRput) && h.length > 0) {
        void* address;
        opal_convertor_get_offset_pointer(&r.convertor(), r.grant_from, &address);
        h.address = reinterpret_cast<std::uint64_t>(address);
        if (r.registration) {
            h.handle_bytes = static_cast<std::uint8_t>(r.rdma->btl->btl_registration_handle_size);
            std::memcpy(packet + sizeof h, r.registration, h.handle_bytes);
        }
    }
    wire::seal(h);
    hand_on(&r);  // to the thread that gets what the sender sends in answer
    r.step = coop ? RecvStep::kCopy : RecvStep::kLanding;  // before the CTS is out: data may come from within
    if (send_control(control_lane(r), wire::Kind::kCts, packet, sizeof h + h.handle_bytes + h.pieces * sizeof(wire::Piece)) == Sent::kYes) return Next::kGoOn;
    r.step = RecvStep::kGrant;
    return wait_for_resources(r);
}

// -- kCopy -------------------------------------------------------------------------

Next wait_for_turn(RecvRequest& r, bool in_front) noexcept {
    r.references.take();
    if (!go_on_copying(r.deferred, in_front)) drop_ours(r);
    return Next::kWait;
}

// Our side of a cooperative copy. Where neither side can copy, fragments carry
// all of it again.
Next copy(RecvRequest& r) noexcept {
    switch (drive_shared(r, kGetKind)) {
    case Shared::kUnderWay: return Next::kWait;
    case Shared::kShortage: return wait_for_resources(r);
    case Shared::kChunkDone: return wait_for_turn(r, true);
    case Shared::kWait: return wait_for_turn(r, false);
    case Shared::kOver:
        r.landed.store(r.wanted, std::memory_order_relaxed);
        return go(r, RecvStep::kOver);
    case Shared::kStuck: break;
    }
    r.choice = {rndv::Row::kSend, rndv::Reason::kRdmaRefused};
    r.grant_from = r.shared.from;
    return go(r, RecvStep::kGrant);
}

// -- kGet, kFin -----------------------------------------------------------------

Next get(RecvRequest& r) noexcept {
    switch (drive_rdma(r, kGetKind)) {
    case Rdma::kUnderWay: return Next::kWait;
    case Rdma::kShortage: return wait_for_resources(r);
    case Rdma::kChunkDone: return wait_for_turn(r, true);
    case Rdma::kOver: break;
    }
    r.landed.store(r.run.done_to(), std::memory_order_relaxed);
    if (!r.run.failed()) return go(r, RecvStep::kFin);
    r.situation.get_refused = true;
    return choose(r, r.run.done_to());
}

Next send_fin(RecvRequest& r) noexcept {
    wire::FinHeader h{};
    h.kind = wire::Kind::kFin;
    h.sender = module.my_rank;
    h.id = r.send_id;
    h.bytes = r.wanted;
    h.what = wire::fin_choice(static_cast<std::uint8_t>(r.choice.row), static_cast<std::uint8_t>(r.choice.reason));
    wire::seal(h);
    if (send_control(*r.rdma, wire::Kind::kFin, &h, sizeof h) == Sent::kYes) return go(r, RecvStep::kOver);
    complete_for_user(r);  // the data is here; only the sender still waits
    return wait_for_resources(r);
}

// Takes steps until one has to wait. True, once: the protocol is over.
bool take_steps(RecvRequest& r) noexcept {
    Next next = Next::kGoOn;
    while (next == Next::kGoOn) {
        switch (r.step) {
        case RecvStep::kPosted: return false;
        case RecvStep::kGrant: next = grant(r); break;
        case RecvStep::kLanding:
            if (r.landed.load(std::memory_order_acquire) < r.wanted) return false;
            r.step = RecvStep::kOver;
            break;
        case RecvStep::kGet: next = get(r); break;
        case RecvStep::kFin: next = send_fin(r); break;
        case RecvStep::kCopy: next = copy(r); break;
        case RecvStep::kOver:
            if (std::exchange(r.over, true)) return false;
            forget(module.recvs, r);
            close_memory(r);
            settle_load(r);
            free_slot(r);
            r.local_pieces.clear();
            r.remote_pieces.clear();
            return true;
        }
    }
    return false;
}

void retry(Deferred* deferred) {
    auto& r = *reinterpret_cast<RecvRequest*>(reinterpret_cast<char*>(deferred) - offsetof(RecvRequest, deferred));
    advance(r);
    drop(r);
}

// The message lies in a bounce buffer of the sender.
void take_from_bounce(RecvRequest& r, Peer& peer, const wire::RtsHeader& h) noexcept {
    const std::uint32_t index = rndv::value_of(h.address), generation = rndv::generation_of(h.address);
    if (!peer.neighbour || !peer.neighbour->bounces) abort_job("pml/coop: a neighbour's memory, with a message in it, cannot be opened");
    rndv::Bounce& bounce = peer.neighbour->bounces->all[index];
    const unsigned char* payload = rndv::contents(bounce, generation);
    if (!payload) diagnose_field(wire::Kind::kRts, "bounce buffer (generation)", peer.job_rank(), generation, 0, 0);
    mca_btl_base_segment_t segment{};
    segment.seg_addr.pval = const_cast<unsigned char*>(payload);
    segment.seg_len = h.length;
    unpack(r, {nullptr, &segment, 1}, 0, 0);
    rndv::empty(bounce, generation);
    finish(r);
}

void receive_rts(RecvRequest& r, Peer& peer, const Packet& packet) noexcept {
    const auto& h = *static_cast<const wire::RtsHeader*>(packet.header());
    if (!reach(peer)) abort_job("pml/coop: no transport leads back to the sender of a rendezvous");
    set_status(r, h.match, h.length);
    if (h.row == static_cast<std::uint8_t>(rndv::Row::kBounce)) return take_from_bounce(r, peer, h);
    read_rts(r, peer, h, packet.btl);
    if (r.grant_from > 0) unpack(r, packet, sizeof h + h.handle_bytes, 0);
    r.over = false;
    r.run.start(0, 0, 1);
    r.references.start(2);  // the protocol's and ours
    r.baton.reset();
    if (h.row == static_cast<std::uint8_t>(rndv::Row::kRtr)) join_copy(r, h);
    else static_cast<void>(choose(r, r.grant_from));
    advance(r);
    drop(r);
}

void convertor_for(RecvRequest& r, ompi_proc_t* proc) noexcept {
    auto& b = r.base.req_base;
    b.req_proc = proc;
    r.capacity = 0;
    if (b.req_count == 0) return;
    opal_convertor_copy_and_prepare_for_recv(proc->super.proc_convertor, &b.req_datatype->super, b.req_count, b.req_addr, 0,
                                             &b.req_convertor);
    opal_convertor_get_packed_size(&b.req_convertor, &r.capacity);
}

// Whether the receive would be offered to its sender, once posted.
bool worth_offering(const Comm& c, Peer* peer, RecvRequest& r) noexcept {
    const auto least = static_cast<std::size_t>(module.config.rtr_min);
    if (least == 0 || r.capacity < least || !peer || peer->source.offered) return false;
    const rndv::Wish wish = wish_for(c.comm);
    if (wish != rndv::Wish::kHybrid && wish != rndv::Wish::kCoopColl) return false;
    return peer->may_offer() && !OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(c.comm) && !opal_convertor_need_buffers(&r.convertor());
}

// Offers the receive to its sender, which then need not ask (RTR): if its next
// message with this tag is sure to find this receive. Under Comm::lock, just
// posted. (Cooperative Rendezvous Protocols, Table II)
void offer(Comm& c, Peer& peer, RecvRequest& r) noexcept {
    if (peer.source.offered || !c.engine.is_next_for(peer.source, &r.posted) || !take_slot(r)) return;
    void* address;
    opal_convertor_get_offset_pointer(&r.convertor(), 0, &address);
    rndv::open_offer(*my_board(), r.slot, r.generation,
                     {name_of(peer.proc), static_cast<std::uint32_t>(c.comm->c_contextid), r.posted.tag, peer.source.expected, r.capacity},
                     reinterpret_cast<std::uint64_t>(address), call_for(c.comm, r.call) == rndv::RecvCall::kRecv);
    r.offered = true;
    peer.source.offered = &r.posted;
    module.counters.count(Counter::kOffers);
}

void activate(RecvRequest& r) noexcept {
    MCA_PML_BASE_RECV_START(&r.base);
    r.step = RecvStep::kPosted;
    r.mpi_complete = false;
    r.fate.start();
}

}  // namespace

void receive_eager(RecvRequest& r, const Packet& packet) noexcept {
    const auto& h = *static_cast<const wire::MatchHeader*>(packet.header());
    set_status(r, h, packet.bytes() - sizeof h);
    unpack(r, packet, sizeof h, 0);
    finish(r);
}

bool withdraw(RecvRequest& r) noexcept {
    if (!rndv::close_offer(*my_board(), r.slot, r.generation)) return false;
    r.offered = false;
    of(r.comm()).peer(r.posted.source).source.offered = nullptr;
    free_slot(r);
    return true;
}

void meet_offered(Peer& peer, const wire::MatchHeader& header, match::Posted* posted) noexcept {
    RecvRequest& r = *RecvRequest::from(peer.source.offered);
    if (posted != &r.posted) return rndv::message_passed(*my_board(), r.slot, peer.source.expected);
    peer.source.offered = nullptr;
    r.offered = false;
    const bool by_offer = header.kind == wire::Kind::kRts && reinterpret_cast<const wire::RtsHeader&>(header).row == static_cast<std::uint8_t>(rndv::Row::kRtr);
    if (by_offer) return;  // join_copy() looks whether that is so
    if (!rndv::close_offer(*my_board(), r.slot, r.generation)) diagnose_field(header.kind, "row (the offer was taken)", header.source, 0, 0, 0);
    free_slot(r);
}

void receive(RecvRequest& r, Peer& peer, const Packet& packet) noexcept {
    if (static_cast<const wire::MatchHeader*>(packet.header())->kind == wire::Kind::kMatch) receive_eager(r, packet);
    else receive_rts(r, peer, packet);
}

void advance(RecvRequest& r) noexcept { drive(r, take_steps); }

void drop(RecvRequest& r) noexcept {
    if (r.references.drop()) finish(r);
}

void on_fragment(RecvRequest& r, const wire::FragHeader& h, const Packet& packet) noexcept {
    take_over(&r);
    const std::size_t bytes = packet.bytes() - sizeof h;
    if (h.offset < r.grant_from || h.offset >= r.wanted)
        diagnose_field(wire::Kind::kFrag, "offset", h.sender, h.offset, r.grant_from, r.wanted - 1);
    if (bytes == 0 || bytes > r.wanted - h.offset)
        diagnose_field(wire::Kind::kFrag, "payload bytes", h.sender, bytes, 1, r.wanted - h.offset);
    r.references.take();  // we live: these bytes have not been counted yet
    unpack(r, packet, sizeof h, h.offset);
    if (r.landed.fetch_add(bytes, std::memory_order_acq_rel) + bytes > r.wanted)
        diagnose_field(wire::Kind::kFrag, "payload bytes (more than granted)", h.sender, bytes, 0, 0);
    advance(r);
    drop(r);
}

void on_put(RecvRequest& r, const wire::FinHeader& h) noexcept {
    take_over(&r);
    const std::size_t missing = r.wanted - r.landed.load(std::memory_order_acquire);
    if (h.bytes == 0 || h.bytes > missing) diagnose_field(wire::Kind::kFin, "bytes", h.sender, h.bytes, 1, missing);
    r.references.take();  // we live: these bytes have not been counted yet
    r.landed.fetch_add(h.bytes, std::memory_order_acq_rel);
    advance(r);
    drop(r);
}

RecvRequest* make_recv(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag, ompi_communicator_t* comm,
                       bool persistent) noexcept {
    auto* r = take<RecvRequest>(mca_pml_base_recv_requests);
    if (!r) return nullptr;
    r->base.req_base.req_type = MCA_PML_REQUEST_RECV;
    MCA_PML_BASE_RECV_REQUEST_INIT(&r->base, buf, count, datatype, src, tag, comm, persistent);
    r->posted.source = src;
    r->posted.tag = tag;
    r->call = rndv::RecvCall::kIrecv;
    r->fate.start_idle();
    return r;
}

void start_recv(RecvRequest& r) noexcept {
    activate(r);
    Comm& c = of(r.comm());
    Peer* peer = r.posted.source == match::kAnySource ? nullptr : &c.peer(r.posted.source);
    match::Source* source = peer ? &peer->source : nullptr;
    // One architecture per job: any process's convertor serves for MPI_ANY_SOURCE.
    convertor_for(r, peer ? peer->proc : ompi_proc_local());

    const bool offerable = worth_offering(c, peer, r);
    match::Arrival* arrival;
    {
        Guard guard(c.lock);
        arrival = c.engine.find_unexpected(source, r.posted.tag);
        if (arrival) c.engine.remove_unexpected(arrival);
        else c.engine.post(source, &r.posted);
        if (!arrival && offerable) offer(c, *peer, r);
    }

    if (!arrival) return;
    not_idle();
    module.counters.down(Gauge::kUnexpected);
    Arrived* arrived = Arrived::from(arrival);
    receive(r, c.peer(arrival->source), arrived->packet());
    discard(arrived);
}

void start_recv_of(RecvRequest& r, Arrived* arrived) noexcept {
    activate(r);
    Peer& peer = of(r.comm()).peer(arrived->arrival.source);
    convertor_for(r, peer.proc);
    receive(r, peer, arrived->packet());
    discard(arrived);
}

void recycle(RecvRequest& r) noexcept {
    MCA_PML_BASE_RECV_REQUEST_FINI(&r.base);
    give_back(mca_pml_base_recv_requests, &r);
}

void prepare_item(RecvRequest& r) noexcept {
    // What lies behind the base is raw memory of the free list.
    new (&r.posted) match::Posted;
    new (&r.baton) Baton;
    new (&r.references) References;
    new (&r.fate) Fate;
    new (&r.deferred) Deferred;
    new (&r.landed) std::atomic<std::size_t>(0);
    new (&r.run) RdmaRun;
    OBJ_CONSTRUCT(&r.lock, opal_mutex_t);
    new (&r.shared) SharedCopy;
    new (&r.local_pieces) Pieces;
    new (&r.remote_pieces) Pieces;
    r.id = 0;
    r.has_slot = false;
    r.offered = false;
    r.load = 0;
    r.rdma = nullptr;
    r.registration = nullptr;
    r.deferred.retry = retry;
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
#include "recv_request.h"

#include <cstring>
#include <new>
#include <utility>

#include "coop/base/short_copy.h"

#include "async.h"
#include "device_memory.h"
#include "diagnose.h"
#include "hints.h"
#include "lane_packet.h"
#include "ompi/mca/shim/complete.h"
#include "packet.h"
#include "pool.h"
#include "recv_steps.h"

namespace coop::pml {

void unpack(RecvRequest& r, const Packet& packet, std::size_t skip, std::size_t offset) noexcept {
    iovec pieces[MCA_BTL_DES_MAX_SEGMENTS];
    std::uint32_t count = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < packet.count && offset + bytes < r.capacity; ++i) {
        const auto& s = packet.segments[i];
        const std::size_t cut = std::min<std::size_t>(skip, s.seg_len);
        skip -= cut;
        if (s.seg_len == cut) continue;
        const std::size_t here = std::min<std::size_t>(s.seg_len - cut, r.capacity - offset - bytes);
        const auto from = static_cast<char*>(s.seg_addr.pval) + cut;
        if (r.contiguous_base) std::memcpy(r.contiguous_base + offset + bytes, from, here);
        else pieces[count++] = {from, here};
        bytes += here;
    }
    if (count == 0) return;
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

namespace {

// The functions below that are always inlined are steps of every eager message. Windows of short messages are bound by the
// instructions of the receiver (bench/instructions): calls of these functions made them a tenth more.
[[gnu::always_inline]] inline void complete_for_user(RecvRequest& r) noexcept {
    if (r.mpi_complete) return;
    r.mpi_complete = true;
    // A request that was freed while active has no other way to report an error.
    if (r.mpi()->req_status.MPI_ERROR != MPI_SUCCESS && r.fate.is_freed()) [[unlikely]]
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_REQUEST);
    complete_request(*r.mpi());
}

[[gnu::always_inline]] inline void finish_here(RecvRequest& r) noexcept {
    if (ends_later(*r.mpi(), r.fate.is_freed())) [[unlikely]]
        return finish_later(r);
    r.base.req_base.req_pml_complete = true;
    r.fate.completing();
    complete_for_user(r);
    if (r.fate.library_done()) [[unlikely]]
        recycle(r);
}

}  // namespace

void finish(RecvRequest& r) noexcept { finish_here(r); }

namespace {

// -- kPrepare ------------------------------------------------------------------

// Records which side copies, so that the next messages balance the turns. The record stays if another protocol has to
// take over.
void count_turn(RecvRequest& r, const rndv::Shares& share) noexcept {
    rndv::Board &mine = *my_board(), &theirs = r.peer->neighbour->board();
    if (share.receiver > share.sender) rndv::count_turn(mine, theirs, share.receiver);
    else rndv::count_turn(theirs, mine, share.sender);
}

// Adds to the loads of both boards what each side now has to copy, after removing what an earlier attempt added.
void count_load(RecvRequest& r, std::size_t bytes) noexcept {
    settle_load(r);
    const rndv::Situation& s = r.engine.situation();
    r.counted = rndv::load_matters(s);
    if (!r.counted) return;
    const rndv::Shares share = rndv::shares(r.engine.choice(), bytes);
    if (rndv::turns_matter(s)) count_turn(r, share);
    r.load = share.receiver;
    rndv::add_load(*my_board(), share.receiver);
    if (share.sender > 0) rndv::add_load(r.peer->neighbour->board(), share.sender);
}

// Returns false if no slot is free.
bool prepare_copy(RecvRequest& r, std::size_t from, std::size_t bytes) noexcept {
    if (!take_slot(r)) return false;
    const rndv::Choice& choice = r.engine.choice();
    const bool offloads = rndv::protocol(choice.row).allows_hcas && may_offload(r, bytes);
    r.copy.start(my_board()->slots[r.slot], rndv::Side::kReceiver, r.generation, from, bytes,
                 shared_chunk(*r.rdma->btl, choice.split, bytes, offloads), choice);
    start_hca_copies(r, offloads);
    return true;
}

void prepare(RecvRequest& r) noexcept {
    const std::size_t from = r.engine.from(), bytes = r.engine.wanted() - from;
    if (!open_memory(r, from, bytes, kShareAccess)) {
        r.engine.lacks(rndv::Lack::kMemory);
        return;
    }
    if (rndv::is_shared(r.engine.choice()) && !prepare_copy(r, from, bytes)) {
        r.engine.lacks(rndv::Lack::kSlot);
        return;
    }
    count_load(r, bytes);
    r.run.start(from, r.engine.wanted(), chunk_for(*r.peer));
    r.engine.prepared();
}

// -- kGrant --------------------------------------------------------------------

// The transport for control packets: the one that delivered the RTS, if it has RDMA.
mca_bml_base_btl_t& control_transport(RecvRequest& r) noexcept { return r.rdma ? *r.rdma : *r.peer->eager(); }

// The transport had no room for the CTS.
Next grant_refused(RecvRequest& r, bool shared) noexcept {
    if (shared) {
        const std::size_t left = r.engine.wanted() - r.engine.from();
        end_hca_copies(r);
        if (r.counted) rndv::subtract_load(r.peer->neighbour->board(), rndv::shares(r.engine.choice(), left).sender);
        free_slot(r);
    }
    r.engine.grant_refused();
    if (shared) return Next::kGoOn;
    const bool is_here = r.engine.from() ==
                         r.engine.wanted();  // all of it came with the RTS, and only the sender still waits
    if (is_here && !ends_later(*r.mpi(), r.fate.is_freed())) complete_for_user(r);
    return wait_for_resources(r);
}

Next grant(RecvRequest& r) noexcept {
    if (!r.id) {
        if (!(r.id = module.recvs.acquire(&r, module.threads))) {
            if (module.recvs.in_use() == 0)
                out_of_memory("the id of a receive");  // none is in use, so none will be released
            return wait_for_resources(r);
        }
        module.counters.up(Gauge::kRendezvous);
    }
    unsigned char packet[kLongestControl];
    auto& h = *new (packet) wire::CtsHeader{};
    h.kind = wire::Kind::kCts;
    const rndv::Choice choice = r.engine.choice();
    h.row = static_cast<std::uint8_t>(choice.row);
    h.reason = static_cast<std::uint8_t>(choice.reason);
    h.sender = module.my_rank;
    h.send_id = r.send_id;
    h.recv_id = r.id;
    h.offset = r.engine.from();
    h.length = r.engine.wanted() - r.engine.from();
    h.counted = r.counted;
    h.sees = r.peer->is_seen();
    const bool shared = rndv::is_shared(choice);
    h.offloads = shared && r.hca.on.load(std::memory_order_relaxed);
    if (shared)
        h.copy = {r.slot,
                  r.generation,
                  static_cast<std::uint32_t>(r.copy.plan().chunk),
                  static_cast<std::uint8_t>(choice.split),
                  {}};
    const bool writes = rndv::sender_writes(choice) && h.length > 0;
    if (writes && r.local_pieces.any()) {
        h.pieces = static_cast<std::uint8_t>(r.local_pieces.count());
        std::memcpy(packet + sizeof h, r.local_pieces.data(), h.pieces * sizeof(wire::Piece));
    } else if (writes) {
        h.address = reinterpret_cast<std::uint64_t>(address_in(r, h.offset));
        if (r.registration) {
            h.handle_bytes = static_cast<std::uint8_t>(r.rdma->btl->btl_registration_handle_size);
            std::memcpy(packet + sizeof h, r.registration, h.handle_bytes);
        }
    }
    wire::seal(h);
    tsan_release(&r);  // acquired by the thread that receives the answer of the sender
    r.engine.granting();
    if (send_control(*r.peer, control_transport(r), wire::Kind::kCts, packet,
                     sizeof h + h.handle_bytes + h.pieces * sizeof(wire::Piece)) == Sent::kYes)
        return Next::kGoOn;
    return grant_refused(r, shared);
}

// -- kCopy -------------------------------------------------------------------------

Next copy(RecvRequest& r) noexcept {
    switch (drive_copy(r, kGetKind)) {
    case rndv::CopyDo::kCopy:
    case rndv::CopyDo::kBusy: return Next::kWait;
    case rndv::CopyDo::kNoRoom: return wait_for_resources(r);
    case rndv::CopyDo::kYield: return wait_for_turn(r, true);
    case rndv::CopyDo::kStandBy: return wait_for_turn(r, false);
    case rndv::CopyDo::kPeerDied: peer_died(*r.peer);
    case rndv::CopyDo::kStuck:
        end_hca_copies(r);
        r.engine.stuck(r.copy.from());
        return Next::kGoOn;
    case rndv::CopyDo::kOver: break;
    }
    r.engine.copied();
    return Next::kGoOn;
}

// -- kGet, kFin -----------------------------------------------------------------

wire::FinHeader fin_of(const RecvRequest& r) noexcept {
    wire::FinHeader h{};
    h.kind = wire::Kind::kFin;
    h.sender = module.my_rank;
    h.id = r.send_id;
    h.bytes = r.engine.wanted() | (r.peer->is_seen() ? wire::kFinSees : 0);
    wire::set_fin_choice(h, static_cast<std::uint8_t>(r.engine.choice().row),
                         static_cast<std::uint8_t>(r.engine.choice().reason));
    wire::seal(h);
    return h;
}

void set_parts(void* packet, std::uint32_t parts) noexcept {
    auto& h = *static_cast<wire::FinHeader*>(packet);
    h.bytes |= std::uint64_t{parts} << wire::kFinPartsShift;
    wire::seal(h);
}

// Posts the FIN together with the get if one get transfers the whole message: while the application computes, this
// process could not send it afterwards.
Rdma drive_get(RecvRequest& r) noexcept {
    const bool whole = r.run.next == r.run.begin &&
                       r.run.next_bytes(r.rdma->btl->btl_get_limit) == r.run.end - r.run.begin;
    if (!whole || r.local_pieces.any() || r.remote_pieces.any() || !posts_fin_with_read())
        return drive_rdma(r, kGetKind);
    Rider rider{};
    new (rider.packet) wire::FinHeader(fin_of(r));
    rider.bytes = sizeof(wire::FinHeader);
    rider.tag = tag_of(wire::Kind::kFin);
    rider.set_parts = set_parts;
    const Rdma state = drive_rdma(r, kGetKind, &rider);
    r.fin_is_behind = rider.taken;
    return state;
}

Next get(RecvRequest& r) noexcept {
    switch (drive_get(r)) {
    case Rdma::kUnderWay: return Next::kWait;
    case Rdma::kShortage: return wait_for_resources(r);
    case Rdma::kChunkDone: return wait_for_turn(r, true);
    case Rdma::kOver: break;
    }
    r.engine.read_to(r.run.done_to(), r.fin_is_behind);
    return Next::kGoOn;
}

Next send_fin(RecvRequest& r) noexcept {
    const wire::FinHeader h = fin_of(r);
    if (send_control(*r.peer, *r.rdma, wire::Kind::kFin, &h, sizeof h) == Sent::kYes) {
        r.engine.fin_out();
        return Next::kGoOn;
    }
    if (!ends_later(*r.mpi(), r.fate.is_freed()))
        complete_for_user(r);  // the data is here; only the sender still waits
    return wait_for_resources(r);
}

void release(RecvRequest& r) noexcept {
    end_way(r);
    forget(module.recvs, r);
    close_memory(r);
    end_hca_copies(r);
    settle_load(r);
    free_slot(r);
    r.local_pieces.clear();
    r.remote_pieces.clear();
}

// Carries out the engine's actions until one has to wait. Returns true once, when the protocol is over.
bool take_steps(RecvRequest& r) noexcept {
    Next next = Next::kGoOn;
    while (next == Next::kGoOn) {
        switch (r.engine.next()) {
        case rndv::RecvDo::kWait: return false;
        case rndv::RecvDo::kPrepare: prepare(r); break;
        case rndv::RecvDo::kGrant: next = grant(r); break;
        case rndv::RecvDo::kGet: next = get(r); break;
        case rndv::RecvDo::kSendFin: next = send_fin(r); break;
        case rndv::RecvDo::kCopy: next = copy(r); break;
        case rndv::RecvDo::kEnd: release(r); return true;
        }
    }
    return false;
}

RecvRequest& request_of(Deferred* deferred) noexcept {
    return *reinterpret_cast<RecvRequest*>(reinterpret_cast<char*>(deferred) - offsetof(RecvRequest, deferred));
}

void retry(Deferred* deferred) {
    RecvRequest& r = request_of(deferred);
    advance(r);
    drop(r);
}

void finish_now(Deferred* deferred) {
    RecvRequest& r = request_of(deferred);
    r.deferred.retry = retry;
    finish(r);
}

void prepare_convertor(RecvRequest& r) noexcept {
    auto& b = r.base.req_base;
    r.uses_convertor = true;
    if (r.capacity > 0)
        opal_convertor_copy_and_prepare_for_recv(b.req_proc->super.proc_convertor, &b.req_datatype->super, b.req_count,
                                                 b.req_addr, 0, &b.req_convertor);
}

void receive_rts(RecvRequest& r, Peer& peer, const Packet& packet) noexcept {
    const auto& h = *static_cast<const wire::RtsHeader*>(packet.header());
    if (!reach(peer)) abort_job("pml/coop: no transport reaches the sender of a rendezvous");
    r.engine.start();
    set_status(r, h.match, h.length);
    const auto senders_wish = static_cast<rndv::Wish>(wire::wish_of(h.match.flags));
    peer.look_for_board(h.length, senders_wish != rndv::Wish::kHybrid ? senders_wish : wish_for(r.comm()));
    const rndv::Protocol& protocol = rndv::protocol(static_cast<rndv::Row>(h.row));
    if (protocol.uses_bounce) return take_from_bounce(r, peer, h);
    read_rts(r, peer, h, packet.btl);
    if (r.engine.landed() > 0) unpack(r, packet, sizeof h + h.handle_bytes, 0);
    r.fin_is_behind = false;
    r.run.start(0, 0, 1);
    r.references.start(2);  // the protocol's and ours
    r.baton.reset();
    if (protocol.starts_at_once) join_copy(r, h);
    advance(r);
    drop(r);
}

[[gnu::always_inline]] inline void look_at_buffer(RecvRequest& r, ompi_proc_t* proc) noexcept {
    auto& b = r.base.req_base;
    const opal_datatype_t& type = b.req_datatype->super;
    b.req_proc = proc;
    r.capacity = b.req_count * type.size;
    r.contiguous_base = is_contiguous(type, b.req_count) ? const_cast<char*>(start_of(type, b.req_addr)) : nullptr;
    if (r.contiguous_base && !device_memory_is_possible()) return;
    prepare_convertor(r);
    if (r.capacity > 0 && is_on_device(r.convertor())) r.contiguous_base = nullptr;
}

[[gnu::always_inline]] inline void activate(RecvRequest& r) noexcept {
    MCA_PML_BASE_RECV_START(&r.base);
    r.mpi_complete = false;
    r.awaited.store(false, std::memory_order_relaxed);
    r.fate.start();
    module.handler.expect(1);
}

}  // namespace

void finish_later(RecvRequest& r) noexcept {
    r.deferred.retry = finish_now;
    static_cast<void>(defer(r.deferred));
}

void receive_eager(RecvRequest& r, const Packet& packet) noexcept {
    const auto& h = *static_cast<const wire::MatchHeader*>(packet.header());
    const std::size_t bytes = packet.bytes() - sizeof h;
    set_status(r, h, bytes);
    const void* const payload = packet.payload_behind(sizeof h);
    const bool is_plain = payload && r.contiguous_base && bytes <= r.capacity;
    if (packet.parts) [[unlikely]] {
        if (is_plain ? packet.parts->copy(r.contiguous_base) : packet.parts->get_whole()) finish_parts(r, packet);
        else go_on_with_parts(r, *packet.parts);
        return;
    }
    if (!is_plain) unpack(r, packet, sizeof h, 0);
    else std::memcpy(r.contiguous_base, payload, bytes);
    finish(r);
}

void finish_parts(RecvRequest& r, const Packet& packet) noexcept {
    const std::size_t bytes = packet.bytes() - sizeof(wire::MatchHeader);
    if (!r.contiguous_base || bytes > r.capacity) unpack(r, packet, sizeof(wire::MatchHeader), 0);
    finish(r);
}

void receive(RecvRequest& r, Peer& peer, const Packet& packet) noexcept {
    module.handler.expect(-1);  // no later packet to a receive is urgent
    if (static_cast<const wire::MatchHeader*>(packet.header())->kind == wire::Kind::kMatch) receive_eager(r, packet);
    else receive_rts(r, peer, packet);
}

void receive(RecvRequest& r, Peer&, const Whole& message) noexcept {
    module.handler.expect(-1);
    set_status(r, *message.header, message.bytes);
    if (r.contiguous_base && message.bytes <= r.capacity) [[likely]] {
        auto* const to = reinterpret_cast<std::byte*>(r.contiguous_base);
        if (message.bytes <= kShortCopy) copy_short(to, message.payload, message.bytes);
        else std::memcpy(to, message.payload, message.bytes);
    } else if (message.bytes > 0) unpack(r, WholePacket(message).packet(), sizeof *message.header, 0);
    finish_here(r);
}

void advance(RecvRequest& r) noexcept { drive(r, take_steps); }

void drop(RecvRequest& r) noexcept {
    if (r.references.drop()) finish(r);
}

// Uses the tag of the message, because that of the receive may be MPI_ANY_TAG.
sched::Marker marker(RecvRequest& r) noexcept {
    const rndv::Situation& s = r.engine.situation();
    const bool somebody_waits = rndv::sender_waits(s.send_call) || waits(s.recv_call);
    return sched::marker_of(is_collective(r.mpi()->req_status.MPI_TAG), somebody_waits);
}

// The request cannot complete before these bytes are counted, so it may be touched.
void on_fragment(RecvRequest& r, const wire::FragHeader& h, const Packet& packet) noexcept {
    tsan_acquire(&r);
    const std::size_t bytes = packet.bytes() - sizeof h, wanted = r.engine.wanted();
    if (!r.engine.takes_bytes()) protocol_error(wire::Kind::kFrag, h.sender, "no fragment is due");
    if (h.offset < r.engine.from() || h.offset >= wanted)
        diagnose_field(wire::Kind::kFrag, "offset", h.sender, h.offset, r.engine.from(), wanted - 1);
    if (bytes == 0 || bytes > wanted - h.offset)
        diagnose_field(wire::Kind::kFrag, "payload bytes", h.sender, bytes, 1, wanted - h.offset);
    r.references.take();
    unpack(r, packet, sizeof h, h.offset);
    if (!r.engine.on_bytes(bytes))
        protocol_error(wire::Kind::kFrag, h.sender, "the fragments are longer than the granted range");
    advance(r);
    drop(r);
}

void on_put(RecvRequest& r, const wire::FinHeader& h) noexcept {
    tsan_acquire(&r);
    const std::size_t missing = r.engine.wanted() - r.engine.landed();
    if (h.bytes == 0 || h.bytes > missing) diagnose_field(wire::Kind::kFin, "bytes", h.sender, h.bytes, 1, missing);
    r.references.take();
    if (!r.engine.on_bytes(h.bytes)) protocol_error(wire::Kind::kFin, h.sender, "no put is due");
    advance(r);
    drop(r);
}

namespace {

[[gnu::noinline]] void take_unexpected(RecvRequest& r, Comm& c, match::Arrival* arrival) noexcept {
    not_idle();
    module.counters.down(Gauge::kUnexpected);
    Arrived* arrived = Arrived::from(arrival);
    receive(r, c.peer(arrival->source), arrived->packet());
    discard(arrived);
}

[[gnu::always_inline]] inline void describe(RecvRequest& r, void* buf, std::size_t count, ompi_datatype_t* datatype,
                                            int src, int tag, ompi_communicator_t* comm, bool persistent) noexcept {
    r.base.req_base.req_type = MCA_PML_REQUEST_RECV;
    MCA_PML_BASE_RECV_REQUEST_INIT(&r.base, buf, count, datatype, src, tag, comm, persistent);
    r.posted.source = src;
    r.posted.tag = tag;
    r.call = rndv::RecvCall::kIrecv;
    r.uses_convertor = false;
    r.fate.start_idle();
}

[[gnu::always_inline]] inline RecvRequest* make_here(void* buf, std::size_t count, ompi_datatype_t* datatype, int src,
                                                     int tag, ompi_communicator_t* comm, bool persistent) noexcept {
    auto* r = take<RecvRequest>(mca_pml_base_recv_requests);
    if (r) describe(*r, buf, count, datatype, src, tag, comm, persistent);
    return r;
}

[[gnu::always_inline]] inline void start_here(RecvRequest& r) noexcept {
    activate(r);
    Comm& c = of(r.comm());
    Peer* peer = r.posted.source == match::kAnySource ? nullptr : &c.peer(r.posted.source);
    match::Source* source = peer ? &peer->source : nullptr;
    // A job has one architecture, so for MPI_ANY_SOURCE the convertor of any process serves.
    look_at_buffer(r, peer ? peer->proc : ompi_proc_local());

    if (r.capacity > node::LaneTraffic::kLong) take_in_written_parameters();
    const auto least = static_cast<std::size_t>(module.config.rtr_min);
    const bool offerable = least > 0 && r.capacity >= least && worth_offering(c, peer, r);
    match::Arrival* arrival;
    {
        Guard guard(c.lock);
        arrival = c.engine.find_unexpected(source, r.posted.tag);
        if (arrival) c.engine.remove_unexpected(arrival);
        else c.engine.post(source, &r.posted);
        if (!arrival && offerable) offer(c, *peer, r);
    }

    if (arrival) take_unexpected(r, c, arrival);
}

}  // namespace

RecvRequest* make_recv(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                       ompi_communicator_t* comm, bool persistent) noexcept {
    return make_here(buf, count, datatype, src, tag, comm, persistent);
}

void start_recv(RecvRequest& r) noexcept { start_here(r); }

RecvRequest* begin_recv(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                        ompi_communicator_t* comm, rndv::RecvCall call) noexcept {
    RecvRequest* const r = make_here(buf, count, datatype, src, tag, comm, false);
    if (!r) return nullptr;
    r->call = call;
    start_here(*r);
    return r;
}

RecvRequest* unused_request() noexcept { return take<RecvRequest>(mca_pml_base_recv_requests); }

void use_for_matched(RecvRequest& r, void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                     ompi_communicator_t* comm) noexcept {
    describe(r, buf, count, datatype, src, tag, comm, false);
    r.call = rndv::RecvCall::kRecv;
    activate(r);
    look_at_buffer(r, src == match::kAnySource ? ompi_proc_local() : of(comm).peer(src).proc);
}

void start_recv_of(RecvRequest& r, Arrived* arrived) noexcept {
    activate(r);
    Peer& peer = of(r.comm()).peer(arrived->arrival.source);
    look_at_buffer(r, peer.proc);
    receive(r, peer, arrived->packet());
    discard(arrived);
}

void recycle(RecvRequest& r) noexcept {
    // In place of MCA_PML_BASE_RECV_REQUEST_FINI, which always cleans up the convertor: that is two more cache lines.
    auto& b = r.base.req_base;
    OMPI_REQUEST_FINI(&b.req_ompi);
    OBJ_RELEASE(b.req_comm);
    OMPI_DATATYPE_RELEASE(b.req_datatype);
    if (r.uses_convertor) opal_convertor_cleanup(&r.convertor());
    give_back(mca_pml_base_recv_requests, &r);
}

void prepare_item(RecvRequest& r) noexcept {
    // The memory after `base` is not initialized.
    new (&r.posted) match::Posted;
    new (&r.baton) Baton;
    new (&r.references) References;
    new (&r.fate) Fate;
    new (&r.deferred) Deferred;
    new (&r.awaited) std::atomic<bool>(false);
    new (&r.engine) rndv::Receiver;
    new (&r.run) RdmaRun;
    OBJ_CONSTRUCT(&r.lock, opal_mutex_t);
    new (&r.copy) rndv::CopySide;
    new (&r.hca) HcaCopies;
    new (&r.local_pieces) Pieces;
    new (&r.remote_pieces) Pieces;
    r.id = 0;
    r.has_slot = false;
    r.offered = false;
    r.load = 0;
    r.rdma = nullptr;
    r.extension = nullptr;
    r.registration = nullptr;
    r.deferred.retry = retry;
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
#include "send_request.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "async.h"
#include "diagnose.h"
#include "hints.h"
#include "lane_packet.h"
#include "ompi/mca/shim/complete.h"
#include "pool.h"
#include "send_steps.h"
#include "streams.h"

namespace coop::pml {
namespace {

SendRequest* next_in_line(Peer& peer) noexcept {
    Guard guard(module.lock);
    Waiting* head = peer.line.pop_front();
    if (!head) return nullptr;
    peer.waiting.fetch_sub(1, std::memory_order_relaxed);
    head->request->first_in_line = true;
    return head->request;
}

bool is_in_line(const SendRequest& r) noexcept {
    Guard guard(module.lock);
    return r.waiting.node.linked();
}

void on_packet_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                    int status) {
    const Callback turn;
    tsan_acquire(descriptor);
    auto& r = *static_cast<SendRequest*>(descriptor->des_cbdata);
    if (status != OMPI_SUCCESS)
        transport_failed(*static_cast<mca_bml_base_btl_t*>(descriptor->des_context), "send", status);
    end_unsent(r);
    r.in_flight.down();
    advance(r);
    drop(r);
}

void complete_for_user(SendRequest& r) noexcept {
    if (r.mpi_complete) return;
    r.mpi_complete = true;
    auto& status = r.mpi()->req_status;
    status.MPI_SOURCE = r.base.req_base.req_comm->c_my_rank;
    status.MPI_TAG = r.base.req_base.req_tag;
    status.MPI_ERROR = OMPI_SUCCESS;
    status._ucount = r.bytes();
    complete_request(*r.mpi());
}

}  // namespace

Next wait_in_line(SendRequest& r) noexcept {
    Peer& peer = *r.peer;
    begin_unsent(r);
    r.references.take();
    {
        Guard guard(module.lock);
        if (r.first_in_line) peer.line.push_front(&r.waiting);
        else peer.line.push_back(&r.waiting);
        peer.waiting.fetch_add(1, std::memory_order_relaxed);
    }
    peer.hold();
    if (!defer(peer.deferred)) peer.let_go();  // already queued; that entry holds a reference
    return Next::kWait;
}

Sent hand_over(SendRequest& r, mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor,
               wire::Kind kind) noexcept {
    if (kind != wire::Kind::kFrag) begin_unsent(r);
    r.references.take();
    r.in_flight.up();
    const Sent sent = finish_packet(btl, descriptor, kind, on_packet_sent, &r);
    if (sent == Sent::kRefused) {
        r.in_flight.down();
        drop_ours(r);
    }
    return sent;
}

namespace {

// -- the engine's actions ----------------------------------------------------

// Through the lane: writes until the ring is full, or copy_chunk bytes are written. Then the receiver reads, and others have their
// turn.
Next send_through_lane(SendRequest& r) noexcept {
    const std::size_t most = lane_fragment(*r.lane);
    const std::uint64_t turn_ends = r.engine.at() + static_cast<std::uint64_t>(module.config.copy_chunk);
    while (r.engine.at() < r.engine.end()) {
        const std::uint64_t at = r.engine.at();
        if (at >= turn_ends) return wait_for_resources(r);
        std::size_t payload = std::min<std::size_t>(r.engine.end() - at, most);
        const wire::FragHeader header{wire::Kind::kFrag, 0, 0, module.my_rank, r.recv_id, at};
        if (!send_packed(*r.lane, wire::Kind::kFrag, header, r.convertor(), at, payload, [](auto&, std::size_t) {}))
            return wait_for_resources(r);
        r.engine.fragment_out(payload);
    }
    return Next::kGoOn;
}

// Returns a packet with at most `payload` bytes of the message from byte `at` on, and sets `payload` to their number.
// Returns null if the transport has no room. The transport packs whole elements; what begins or ends inside of an element is packed here.
mca_btl_base_descriptor_t* begin_fragment(SendRequest& r, mca_bml_base_btl_t& btl, std::size_t at,
                                          std::size_t& payload) noexcept {
    if (payload >= kLongestElement && seek(r.convertor(), at) == at)
        return begin_packet(btl, r.convertor(), sizeof(wire::FragHeader), payload, 0);
    const Snippet snippet(r.convertor(), at, payload);
    std::size_t by_transport = 0;
    mca_btl_base_descriptor_t* descriptor = begin_packet(btl, r.convertor(), sizeof(wire::FragHeader) + snippet.bytes(),
                                                         by_transport, 0);
    if (!descriptor) return nullptr;
    std::memcpy(static_cast<std::byte*>(descriptor->des_segments->seg_addr.pval) + sizeof(wire::FragHeader),
                snippet.data(), snippet.bytes());
    payload = snippet.bytes();
    return descriptor;
}

Next send_fragments(SendRequest& r) noexcept {
    if (r.lane) return send_through_lane(r);
    const auto depth = static_cast<std::uint32_t>(module.config.send_depth);
    const mca_bml_base_btl_array_t& lanes = r.peer->endpoint.load(std::memory_order_relaxed)->btl_send;
    while (r.engine.at() < r.engine.end()) {
        if (r.in_flight.now() >= depth) return Next::kWait;
        const std::size_t lane = r.lanes.next(lanes.arr_size,
                                              [&](std::size_t i) { return lanes.bml_btls[i].btl_weight; });
        mca_bml_base_btl_t& btl = lanes.bml_btls[lane];
        const std::uint64_t at = r.engine.at(), left = r.engine.end() - at;
        std::size_t payload = btl.btl->btl_max_send_size
                                  ? std::min<std::size_t>(left, btl.btl->btl_max_send_size - sizeof(wire::FragHeader))
                                  : left;
        mca_btl_base_descriptor_t* descriptor = begin_fragment(r, btl, at, payload);
        if (!descriptor) return wait_for_resources(r);
        write_header(*descriptor, wire::Kind::kFrag,
                     wire::FragHeader{wire::Kind::kFrag, 0, 0, module.my_rank, r.recv_id, at});
        r.engine.fragment_out(payload);
        r.lanes.add(lane, payload);
        if (hand_over(r, btl, descriptor, wire::Kind::kFrag) == Sent::kRefused) {
            r.engine.fragment_refused(payload);
            r.lanes.take_back(lane, payload);
            return wait_for_resources(r);
        }
    }
    return Next::kGoOn;
}

Next copy(SendRequest& r) noexcept {
    switch (drive_copy(r, kPutKind)) {
    case rndv::CopyDo::kCopy:
    case rndv::CopyDo::kBusy: return Next::kWait;
    case rndv::CopyDo::kNoRoom: return wait_for_resources(r);
    case rndv::CopyDo::kYield: return wait_for_turn(r, true);
    case rndv::CopyDo::kStandBy:
    case rndv::CopyDo::kStuck: return wait_for_turn(r, false);
    case rndv::CopyDo::kPeerDied: peer_died(*r.peer);
    case rndv::CopyDo::kOver: break;
    }
    if (std::exchange(r.answer_due, false)) drop_ours(r);  // no answer will come
    r.engine.copied();
    return Next::kGoOn;
}

Next put(SendRequest& r) noexcept {
    if (!open_memory(r, r.run.begin, r.run.end - r.run.begin, 0)) r.run.fail(r.run.next);
    switch (drive_rdma(r, kPutKind)) {
    case Rdma::kUnderWay: return Next::kWait;
    case Rdma::kShortage: return wait_for_resources(r);
    case Rdma::kChunkDone: return wait_for_turn(r, true);
    case Rdma::kOver: break;
    }
    r.engine.put_done(r.run.done_to());
    return Next::kGoOn;
}

Next send_fin(SendRequest& r) noexcept {
    wire::FinHeader header{};
    header.kind = wire::Kind::kFin;
    header.sender = module.my_rank;
    header.id = r.recv_id;
    header.bytes = r.engine.put_bytes();
    wire::seal(header);
    // Not through the lane: a put of tcp has arrived when what its connection carries behind it arrives.
    if (send_control(*r.rdma, wire::Kind::kFin, &header, sizeof header) == Sent::kRefused) return wait_for_resources(r);
    r.engine.fin_out();
    return Next::kGoOn;
}

void release(SendRequest& r) noexcept {
    if (r.id) r.peer->count(r.engine.choice().row, r.engine.choice().reason, r.bytes());
    pace_ends(r);
    settle_load(r);
    close_key(r);
    forget(module.sends, r);
    r.local_pieces.clear();
    r.remote_pieces.clear();
}

// Carries out the engine's actions until one has to wait. Returns true once, when the protocol is over.
bool take_steps(SendRequest& r) noexcept {
    Next next = Next::kGoOn;
    while (next == Next::kGoOn) {
        switch (r.engine.next(r.in_flight.now() > 0)) {
        case rndv::SendDo::kWait: return false;
        case rndv::SendDo::kStart: next = start_step(r); break;
        case rndv::SendDo::kSendFragments: next = send_fragments(r); break;
        case rndv::SendDo::kPut: next = put(r); break;
        case rndv::SendDo::kSendFin: next = send_fin(r); break;
        case rndv::SendDo::kCopy: next = copy(r); break;
        case rndv::SendDo::kEnd: release(r); return true;
        }
    }
    return false;
}

void finish_later(SendRequest& r) noexcept;

void finish(SendRequest& r) noexcept {
    if (ends_later(*r.mpi(), r.store != nullptr || r.fate.is_freed())) return finish_later(r);
    close_memory(r);
    if (r.store) mca_pml_base_bsend_request_free(r.store);
    r.base.req_base.req_pml_complete = true;
    r.fate.completing();
    complete_for_user(r);
    if (r.fate.library_done()) recycle(r);
}

SendRequest& request_of(Deferred* deferred) noexcept {
    return *reinterpret_cast<SendRequest*>(reinterpret_cast<char*>(deferred) - offsetof(SendRequest, deferred));
}

void retry(Deferred* deferred) {
    SendRequest& r = request_of(deferred);
    advance(r);
    drop(r);
}

void finish_now(Deferred* deferred) {
    SendRequest& r = request_of(deferred);
    r.deferred.retry = retry;
    finish(r);
}

void finish_later(SendRequest& r) noexcept {
    r.deferred.retry = finish_now;
    static_cast<void>(defer(r.deferred));
}

}  // namespace

void advance(SendRequest& r) noexcept { drive(r, take_steps); }

void serve_line(Deferred* deferred) {
    auto& peer = *reinterpret_cast<Peer*>(reinterpret_cast<char*>(deferred) - offsetof(Peer, deferred));
    bool refused = false;
    while (SendRequest* r = refused ? nullptr : next_in_line(peer)) {
        advance(*r);
        refused = is_in_line(*r);
        drop(*r);
    }
    peer.let_go();
}

void drop(SendRequest& r) noexcept {
    if (r.references.drop()) finish(r);
}

SendRequest* make_send(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                       ompi_communicator_t* comm, mca_pml_base_send_mode_t mode, bool persistent) noexcept {
    auto* r = take<SendRequest>(mca_pml_base_send_requests);
    if (!r) return nullptr;
    r->base.req_base.req_proc = peer.proc;
    MCA_PML_BASE_SEND_REQUEST_INIT(&r->base, buf, count, datatype, dst, tag, comm, mode, persistent, 0);
    r->peer = &peer;
    r->store = nullptr;
    r->lane = nullptr;
    r->call = mode == MCA_PML_BASE_SEND_BUFFERED ? rndv::SendCall::kBsend : rndv::SendCall::kIsend;
    r->fate.start_idle();
    return r;
}

namespace {

// The limit may change while the request waits: what it needs, and whether an answer is due, follows from what was decided.
bool decide_to_fit(SendRequest& r) noexcept {
    r.whole_max = r.peer->whole_max(r.lane, rndv::sender_waits(r.call));
    return r.bytes() <= r.whole_max && r.base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS;
}

}  // namespace

bool reserve_id(SendRequest& r) noexcept {
    r.lane = r.peer->lane();
    const bool fits = decide_to_fit(r);
    if (fits || module.faults.hit(Fault::kNoId)) return fits;
    r.id = module.sends.acquire(&r, module.threads);
    show_waiting(false);  // a send that begins in a callback, while MPI_Waitall waits for others, is none of them
    return r.id != 0;
}

void leave_lane(SendRequest& r) noexcept {
    LaneOut* const lane = std::exchange(r.lane, nullptr);
    const std::size_t before = r.whole_max;
    const bool fits = decide_to_fit(r);
    // With an id, an answer may be due already: it stays a rendezvous.
    if (r.id != 0) r.whole_max = std::min(r.whole_max, before);
    if (fits || r.id != 0) return;
    r.id = module.sends.acquire(&r, module.threads);
    if (r.id != 0) return;
    r.lane = lane;  // tried again with the next attempt
    r.whole_max = before;
}

void set_blocking(SendRequest& r) noexcept {
    switch (r.base.req_send_mode) {
    case MCA_PML_BASE_SEND_SYNCHRONOUS: r.call = rndv::SendCall::kSsend; break;
    case MCA_PML_BASE_SEND_READY: r.call = rndv::SendCall::kRsend; break;
    default: r.call = rndv::SendCall::kSend; break;
    }
}

sched::Marker marker(SendRequest& r) noexcept {
    const auto& b = r.base.req_base;
    return sched::marker_of(is_collective(b.req_tag), rndv::sender_waits(call_for(b.req_comm, r.call)));
}

void start_send(SendRequest& r, std::uint16_t sequence) noexcept {
    r.base.req_base.req_pml_complete = false;
    r.mpi()->req_complete = REQUEST_PENDING;
    r.mpi()->req_state = OMPI_REQUEST_ACTIVE;
    r.mpi()->req_status._cancelled = 0;
    r.sequence = sequence;
    r.base.req_base.req_sequence = sequence;
    r.engine.start();
    r.mpi_complete = r.store != nullptr;  // a buffered send is already complete for the user
    r.in_flight.start(0);
    r.answer_due = false;
    r.offered = false;
    r.paced = false;
    r.load = 0;
    r.run.start(0, 0, 1);
    r.fate.start();
    if (r.store) static_cast<void>(r.fate.user_freed());
    r.references.start(2);  // the protocol's and ours
    r.baton.reset();
    r.first_in_line = false;
    r.patience = kSendPatience;
    if (r.peer->has_line()) wait_in_line(r);
    else advance(r);
    drop(r);
}

void on_grant(SendRequest& r, const wire::CtsHeader& header, const void* handle) noexcept {
    const rndv::Choice choice{static_cast<rndv::Row>(header.row), static_cast<rndv::Reason>(header.reason),
                              static_cast<rndv::Split>(header.copy.split)};
    r.recv_id = header.recv_id;
    r.lanes.start();
    r.remote_address = header.address - header.offset;
    if (header.handle_bytes) std::memcpy(r.remote_handle, handle, header.handle_bytes);
    const auto* list = reinterpret_cast<const wire::Piece*>(static_cast<const unsigned char*>(handle) +
                                                            header.handle_bytes);
    if (header.pieces > 0 && !r.remote_pieces.assign(list, header.pieces, header.offset + header.length))
        protocol_error(wire::Kind::kCts, header.sender, "the pieces are shorter than the grant");
    r.run.start(header.offset, header.offset + header.length, chunk_for(*r.peer));
    // If the grant replaces a stuck copy, our board already counts our share of the load.
    const bool instead = r.engine.step() == rndv::SendStep::kCopy;
    if (!instead && header.counted && my_board()) r.load = rndv::shares(choice, header.length).sender;
    const bool more = rndv::is_shared(choice) && header.length > 0;  // if it gets stuck, another grant comes
    if (more) {
        r.copy.start(r.peer->neighbour->board().slots[header.copy.slot], rndv::Side::kSender, header.copy.generation,
                     header.offset, header.length, header.copy.chunk, choice);
        if (header.offloads) open_key(r);
    }
    r.answer_due = more;
    r.references.take();  // ours; the answer's may be dropped below
    r.engine.on_grant({choice, header.offset, header.length});
    if (!more) drop_ours(r);
    advance(r);
    drop(r);
}

void on_read(SendRequest& r) noexcept {
    advance(r);
    drop(r);
}

void recycle(SendRequest& r) noexcept {
    MCA_PML_BASE_SEND_REQUEST_FINI(&r.base);
    give_back(mca_pml_base_send_requests, &r);
}

void prepare_item(SendRequest& r) noexcept {
    // The memory after `base` is not initialized.
    new (&r.baton) Baton;
    new (&r.references) References;
    new (&r.fate) Fate;
    new (&r.deferred) Deferred;
    new (&r.engine) rndv::Sender;
    new (&r.copy) rndv::CopySide;
    new (&r.local_pieces) Pieces;
    new (&r.remote_pieces) Pieces;
    new (&r.in_flight) Count;
    new (&r.waiting) Waiting{{}, &r};
    new (&r.unsent) std::atomic<Unsent*>(nullptr);
    new (&r.run) RdmaRun;
    r.id = 0;
    r.rdma = nullptr;
    r.extension = nullptr;
    r.registration = nullptr;
    r.hca_registration = nullptr;
    r.deferred.retry = retry;
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Send and related calls. Messages for which the lane or the transport has room leave in one packet, without a
// request or an allocation, and without a lock unless threads exist. Some others use a bounce buffer; the rest become a
// SendRequest. The way of a message: node_lane.h, inside a node; long_packets.h, for 16 to 64 KiB between nodes.
#include <algorithm>
#include <utility>

#include "awaited.h"
#include "bounce.h"
#include "diagnose.h"
#include "hints.h"
#include "lane_packet.h"
#include "long_packets.h"
#include "packet.h"
#include "coop/base/tsan.h"
#include "send_request.h"
#include "stack_convertor.h"

namespace coop::pml {
namespace {

// Hands over a message of `bytes` bytes in one packet that the transport copies at once.
inline bool hand_over_at_once(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                              const wire::MatchWords& header, std::size_t bytes) noexcept {
    mca_bml_base_btl_t& btl = *peer.eager();
    if (const BtlExtension* const extension = extension_of(*btl.btl))
        if (const char* const from = contiguous_base(datatype->super, count, buf))
            return send_immediate(btl, extension->send_contiguous, header, from, bytes);
    StackConvertor convertor(peer, buf, count, datatype);
    return send_immediate(btl, convertor.get(), header, bytes);
}

// The same in a descriptor of a transport.
inline bool hand_over_later(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                            const wire::MatchWords& header, std::size_t bytes) noexcept {
    StackConvertor convertor(peer, buf, count, datatype);
    return send_packet(peer, *peer.eager(), convertor.get(), header, bytes);
}

// Sends a message in one packet, without a request. Returns false if the transport cannot take it now, earlier messages
// wait, or it is too long. `waits`: the caller waits for a longer one.
template <auto hand_over, bool waits>
inline bool send_eager(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                       SequenceNumber& sequence, ompi_communicator_t* comm) noexcept {
    const std::size_t bytes = bytes_of(datatype->super, count);
    if (bytes > (waits ? peer.awaited_payload : peer.eager_payload) || peer.has_line()) return false;

    const wire::MatchWords header = match_words(comm, tag, sequence);
    if (!hand_over(peer, buf, count, datatype, header, bytes)) return false;
    peer.count(rndv::Row::kEager, rndv::Reason::kFitsEager, bytes);
    return true;
}

// Whether a message above whole_max() may go in one packet: it fits a record, the receiver does not hold too many, and
// it is below the measured limit. Room is checked when it is written.
inline bool goes_at_once(const LaneOut& lane, const Peer& peer, std::size_t bytes, bool waits,
                         ompi_communicator_t* comm) noexcept {
    if (!lane.takes_long(bytes)) return false;
    const rndv::Wish wish = wish_for(comm);
    return (wish == rndv::Wish::kHybrid || wish == rndv::Wish::kSend) &&
           bytes <= lane.at_once_max(waits, kernel_may_copy(peer, wish));
}

// Whether a message whose sender does not wait is so long that one copy of the kernel, after a handshake, takes less
// time than two copies of which the second follows the first.
[[gnu::noinline]] bool is_above_alone_max(const LaneOut& lane, const Peer& peer, std::size_t bytes,
                                          const ompi_datatype_t& datatype, std::size_t count,
                                          ompi_communicator_t* comm) noexcept {
    const bool receiver_may_read = kernel_may_copy(peer, wish_for(comm)) && is_contiguous(datatype.super, count) &&
                                   !rndv::sender_waits(call_for(comm, rndv::SendCall::kIsend));
    return bytes > lane.alone_max(receiver_may_read);
}

// Whether a message above whole_max() goes in one packet now, if there is room. A handshake and a kernel copy are
// better for one above alone_max() if the receiver has nothing else to copy meanwhile, or also sends long messages to
// us. If nothing but the limit that was found prevents the packet, this is counted, because the limit may be too short.
template <bool waits>
inline bool long_goes_now(LaneOut& lane, Peer& peer, std::size_t bytes, const ompi_datatype_t& datatype,
                          std::size_t count, bool in_parts, ompi_communicator_t* comm) noexcept {
    if (in_parts && !may_send_parts()) return false;
    bool goes = goes_at_once(lane, peer, bytes, waits, comm);
    if (!waits && goes && is_above_alone_max(lane, peer, bytes, datatype, count, comm)) {
        const bool is_first = !peer.streams.exchange(true, std::memory_order_relaxed);
        goes = !is_first && !peer.traffic.is_two_way();
    }
    if (!goes && wish_for(comm) == rndv::Wish::kHybrid && is_contiguous(datatype.super, count) &&
        lane.is_kept_out(bytes, waits))
        lane.keep_out();
    return goes;
}

// Offers a message whose sender waits, so that the receiver reads it. Not if nothing has arrived since the last offer: a
// series of messages, to one process or to several, is quicker through the rings. Returns false if the message is not sent.
template <class MakeHeader>
[[gnu::noinline]] bool send_offered(LaneOut& lane, Peer& peer, const void* buf, std::size_t count,
                                    ompi_datatype_t* datatype, MakeHeader& make_header, std::size_t bytes,
                                    ompi_communicator_t* comm) noexcept {
    const rndv::Wish wish = wish_for(comm);
    if (wish != rndv::Wish::kHybrid || !kernel_may_copy(peer, wish) ||
        module.has_offered.load(std::memory_order_relaxed) ||
        !rndv::sender_waits(call_for(comm, rndv::SendCall::kSend)) || !lane.takes_long(bytes) || peer.has_line() ||
        module.faults.hit(Fault::kSendi))
        return false;
    const char* const from = contiguous_base(datatype->super, count, buf);
    if (!from || !lane.begins_offer()) return false;
    module.has_offered.store(true, std::memory_order_relaxed);
    const LaneOut::Offered end = lane.put_offered([&] { return damaged_if_told(make_header()); }, from, bytes);
    if (end == LaneOut::Offered::kNoRoom) {
        module.has_offered.store(false, std::memory_order_relaxed);
        return false;
    }
    const bool is_read = end == LaneOut::Offered::kRead;
    peer.count(rndv::Row::kLane, is_read ? rndv::Reason::kReadFromSender : rndv::Reason::kFitsLane, bytes);
    return true;
}

[[gnu::noinline]] void count_for_lane(LaneOut& lane, std::size_t bytes, ompi_communicator_t* comm) noexcept {
    const rndv::Wish wish = wish_for(comm);
    if (wish == rndv::Wish::kHybrid || wish == rndv::Wish::kSend) lane.earn(bytes);
}

// Sends a message in one packet through the lane, without a request. Returns false if it has to go another way.
template <bool waits>
inline bool send_through(LaneOut& lane, Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                         int tag, SequenceNumber& sequence, ompi_communicator_t* comm) noexcept {
    const std::size_t bytes = bytes_of(datatype->super, count);
    // On a crowded node a message between whole_max() and one_piece_max() has to earn its ring only if it is contiguous: the
    // kernel cannot copy one with gaps instead.
    const bool is_long = bytes > lane.whole_max() &&
                         (bytes > lane.one_piece_max() || is_contiguous(datatype->super, count));
    if (bytes > node::LaneTraffic::kLong) {
        peer.traffic.sent();
        take_in_written_parameters();
    }
    if (is_long && lane.may_earn(bytes, waits)) [[unlikely]]
        count_for_lane(lane, bytes, comm);
    // On a crowded node nobody copies a part while the next one is written.
    const bool in_parts = waits && !module.crowded && bytes > lane.one_piece_max();
    const auto header = [&] { return match_words(comm, tag, sequence); };
    if (waits && bytes >= node::kShortestOffer && lane.may_be_offered(bytes) &&
        send_offered(lane, peer, buf, count, datatype, header, bytes, comm))
        return true;
    if (is_long && !long_goes_now<waits>(lane, peer, bytes, *datatype, count, in_parts, comm)) return false;
    if (peer.has_line() || module.faults.hit(Fault::kSendi)) return false;
    if (in_parts ? !send_in_parts(lane, buf, count, datatype, header, bytes)
                 : !send_whole(lane, peer, buf, count, datatype, header, bytes))
        return false;
    peer.count_in_lane(bytes);
    return true;
}

// Header and payload straight into the lane or the transport. `waits`: the caller waits for the receiver if the message is
// long. (Nearly all short messages have taken a shorter way before: goes_by_lane().)
template <bool waits>
inline bool send_at_once(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                         SequenceNumber& sequence, ompi_communicator_t* comm) noexcept {
    if (LaneOut* const lane = peer.lane())
        return send_through<waits>(*lane, peer, buf, count, datatype, tag, sequence, comm);
    const std::size_t bytes = bytes_of(datatype->super, count);
    if (waits && bytes > peer.awaited_payload)
        return bytes <= peer.long_payload && send_long_packet(peer, buf, count, datatype, tag, sequence, comm);
    return send_eager<hand_over_at_once, waits>(peer, buf, count, datatype, tag, sequence, comm);
}

// Whether the message goes in one packet as soon as there is room, without a request.
bool fits_one_packet(const Peer& peer, std::size_t bytes) noexcept {
    const LaneOut* const lane = peer.lane();
    return bytes <= (lane && lane->is_too_short_for(bytes) ? peer.eager_payload : peer.whole_max(lane, false));
}

// Sends a message that fits into one packet when there is no memory for a request: tries until the transport has room.
// Returns MPI_ERR_NO_MEM if the message does not fit any more, because its ring gets no more memory.
int send_by_waiting(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                    SequenceNumber& sequence, ompi_communicator_t* comm) noexcept {
    const std::size_t bytes = bytes_of(datatype->super, count);
    while (!send_at_once<false>(peer, buf, count, datatype, tag, sequence, comm) &&
           !send_eager<hand_over_later, false>(peer, buf, count, datatype, tag, sequence, comm)) {
        if (!sequence.is_taken() && !fits_one_packet(peer, bytes)) return MPI_ERR_NO_MEM;
        opal_progress();
    }
    return OMPI_SUCCESS;
}

// Returns the request of a message that is packed in `store`, or null if there is no memory for it.
SendRequest* request_for(void* store, Peer& peer, std::size_t bytes, int dst, int tag,
                         ompi_communicator_t* comm) noexcept {
    SendRequest* r = make_send(peer, store, bytes, &ompi_mpi_byte.dt, dst, tag, comm, MCA_PML_BASE_SEND_BUFFERED,
                               false);
    if (r && !reserve_id(*r)) recycle(*std::exchange(r, nullptr));
    return r;
}

// A buffered send completes in this call, whatever the receiver does. If the transport has no room, the message is packed
// into the buffer that the user has attached, and sent by a request for which only MPI_Buffer_detach waits. If that buffer
// has no room, the call is an error.
int send_buffered(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                  ompi_communicator_t* comm) noexcept {
    const std::size_t bytes = bytes_of(datatype->super, count);
    const bool fits = fits_one_packet(peer, bytes);
    const bool may_fit = fits || (peer.lane() && bytes <= peer.lane()->one_piece_max());
    SequenceNumber sequence(peer);
    if (may_fit && send_at_once<false>(peer, buf, count, datatype, tag, sequence, comm)) return OMPI_SUCCESS;
    // A transport without btl_sendi copies a short message into a descriptor, so that it needs no attached buffer, as under ob1.
    if (may_fit && !peer.lane() && !peer.eager()->btl->btl_sendi &&
        send_eager<hand_over_later, false>(peer, buf, count, datatype, tag, sequence, comm))
        return OMPI_SUCCESS;

    // A message without data needs the buffer, too: MPI_Buffer_detach waits for the memory.
    void* const store = mca_pml_base_bsend_request_alloc_buf(std::max<std::size_t>(bytes, 1));
    if (!store && sequence.give_back()) return OMPI_ERR_BUFFER;
    SendRequest* const r = store ? request_for(store, peer, bytes, dst, tag, comm) : nullptr;
    if (!r) {
        if (store) mca_pml_base_bsend_request_free(store);
        return fits ? send_by_waiting(peer, buf, count, datatype, tag, sequence, comm) : MPI_ERR_NO_MEM;
    }
    if (bytes > 0) pack(peer, buf, count, datatype, store, bytes);
    r->store = store;
    start_send(*r, sequence);
    return OMPI_SUCCESS;
}

void wait(SendRequest& r) noexcept {
    if (waits_on_lane(*r.peer)) wait_on_lane([&r] { return REQUEST_COMPLETE(r.mpi()); });
    else wait_among_threads(r.mpi());
    tsan_acquire(r.mpi());
}

// Sends a message with a request. A long message gets all resources before it takes its sequence number, because the
// call can no longer be refused afterwards.
int begin_request(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                  mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, bool blocking, SequenceNumber& sequence,
                  SendRequest*& request) noexcept {
    const bool fits = fits_one_packet(peer, bytes_of(datatype->super, count)) && mode != MCA_PML_BASE_SEND_SYNCHRONOUS;
    SendRequest* r = make_send(peer, buf, count, datatype, dst, tag, comm, mode, false);
    if (r && blocking) set_blocking(*r);
    if (r && !reserve_id(*r)) recycle(*std::exchange(r, nullptr));
    if (!r && fits) return send_by_waiting(peer, buf, count, datatype, tag, sequence, comm);
    if (!r && sequence.is_taken()) out_of_memory("the request of a message that the transport had no room for");
    if (!r) return MPI_ERR_NO_MEM;
    start_send(*r, sequence);
    request = r;
    return OMPI_SUCCESS;
}

// Whether a test wants short messages to be refused or damaged, which only the general way does.
[[gnu::noinline, gnu::cold]] bool faults_hit_short_messages() noexcept {
    return module.faults.has_rule(Fault::kSendi) || module.faults.has_rule(Fault::kCorruptMatch);
}

// The hot path: a short message for which the lane has room. Returns false if the message has to go another way.
[[gnu::always_inline]] inline bool goes_by_lane(Peer& peer, const void* buf, std::size_t count,
                                                const opal_datatype_t& type, int tag,
                                                ompi_communicator_t* comm) noexcept {
    LaneOut* const lane = peer.lane();
    const std::size_t bytes = bytes_of(type, count);
    if (!lane || bytes > lane->short_max() || peer.has_line()) return false;
    if (module.faults.armed() && faults_hit_short_messages()) [[unlikely]]
        return false;
    if (!is_contiguous(type, count) || device_memory_is_possible()) return false;
    const auto header = [&]() __attribute__((always_inline)) { return match_words(comm, tag, peer.take_sequence()); };
    if (!send_short(*lane, start_of(type, buf), header, bytes)) return false;
    peer.count_in_lane(bytes);
    return true;
}

// Starts a send that is not buffered. `request` is null if the send is already complete or has failed.
template <bool blocking>
inline int begin_send(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, SendRequest*& request) noexcept {
    request = nullptr;
    SequenceNumber sequence(peer);
    if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS &&
        send_at_once<blocking>(peer, buf, count, datatype, tag, sequence, comm))
        return OMPI_SUCCESS;
    if (blocking && mode == MCA_PML_BASE_SEND_STANDARD &&
        send_by_bounce(peer, buf, count, datatype, tag, sequence, comm, rndv::SendCall::kSend))
        return OMPI_SUCCESS;
    return begin_request(peer, buf, count, datatype, dst, tag, mode, comm, blocking, sequence, request);
}

[[gnu::noinline]] int send_otherwise(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst,
                                     int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) noexcept {
    peer.begin_message();
    if (mode == MCA_PML_BASE_SEND_BUFFERED) return send_buffered(peer, buf, count, datatype, dst, tag, comm);
    SendRequest* r;
    int rc = begin_send<true>(peer, buf, count, datatype, dst, tag, mode, comm, r);
    if (!r) return rc;
    wait(*r);
    rc = r->mpi()->req_status.MPI_ERROR;
    if (r->fate.user_freed()) recycle(*r);
    return rc;
}

// Sets `request` if the send is not complete.
[[gnu::noinline]] int isend_otherwise(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                                      int dst, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
                                      ompi_request_t*& request) noexcept {
    peer.begin_message();
    if (mode == MCA_PML_BASE_SEND_BUFFERED) return send_buffered(peer, buf, count, datatype, dst, tag, comm);
    SendRequest* r;
    const int rc = begin_send<false>(peer, buf, count, datatype, dst, tag, mode, comm, r);
    if (r) request = r->mpi();
    return rc;
}

int free_send(ompi_request_t** request) {
    const Inside turn;
    tsan_acquire(*request);  // the callers, such as MPI_Wait, are not instrumented
    SendRequest& r = *SendRequest::of(*request);
    r.base.req_base.req_free_called = true;
    if (r.fate.user_freed()) recycle(r);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

// MPI deprecates cancelling sends. It permits a send to continue although it was to be cancelled.
int cancel_send(ompi_request_t*, int) { return OMPI_SUCCESS; }

// A message for which the lane or the transport has room is complete in this call, as with MPI_Isend.
int start_persistent_send(SendRequest& r) noexcept {
    if (!reach(*r.peer)) return OMPI_ERR_UNREACH;
    r.peer->begin_message();
    while (!r.fate.may_start()) opal_progress();  // the last round is not finished
    r.fate.start_idle();                          // a message that is sent at once needs no more of it
    auto& b = r.base.req_base;
    if (r.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED) {
        const int rc = send_buffered(*r.peer, b.req_addr, b.req_count, b.req_datatype, b.req_peer, b.req_tag,
                                     b.req_comm);
        if (rc != OMPI_SUCCESS) return rc;
    } else {
        SequenceNumber sequence(*r.peer);
        const bool is_sent = r.base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS &&
                             send_at_once<false>(*r.peer, b.req_addr, b.req_count, b.req_datatype, b.req_tag, sequence,
                                                 b.req_comm);
        if (!is_sent && reserve_id(r)) {
            start_send(r, sequence);
            return OMPI_SUCCESS;
        }
        if (!is_sent && !sequence.is_taken()) return MPI_ERR_NO_MEM;
        const int rc = is_sent ? OMPI_SUCCESS
                               : send_by_waiting(*r.peer, b.req_addr, b.req_count, b.req_datatype, b.req_tag, sequence,
                                                 b.req_comm);
        if (rc != OMPI_SUCCESS) return rc;
    }
    r.mpi()->req_state = OMPI_REQUEST_ACTIVE;
    r.mpi()->req_status.MPI_ERROR = OMPI_SUCCESS;
    r.mpi()->req_status._cancelled = 0;
    r.mpi()->req_complete = REQUEST_PENDING;
    ompi_request_complete(r.mpi(), true);
    return OMPI_SUCCESS;
}

}  // namespace

extern "C" int mca_pml_coop_start_recv(ompi_request_t* request);  // recv.cc
extern "C" int mca_pml_coop_init_send_item(opal_free_list_item_t* item, void*);

extern "C" int mca_pml_coop_send(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                                 mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) {
    const Inside turn;
    Peer& peer = of(comm).peer(dst);
    if (!reach(peer)) return OMPI_ERR_UNREACH;
    if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS && goes_by_lane(peer, buf, count, datatype->super, tag, comm)) [[likely]]
        return OMPI_SUCCESS;
    return send_otherwise(peer, buf, count, datatype, dst, tag, mode, comm);
}

extern "C" int mca_pml_coop_isend(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                                  mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request) {
    const Inside turn;
    Peer& peer = of(comm).peer(dst);
    if (!reach(peer)) return OMPI_ERR_UNREACH;
    *request = &ompi_request_empty;  // complete at once unless there is a request: the status of a send is always empty
    if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS && goes_by_lane(peer, buf, count, datatype->super, tag, comm)) [[likely]]
        return OMPI_SUCCESS;
    return isend_otherwise(peer, buf, count, datatype, dst, tag, mode, comm, *request);
}

extern "C" int mca_pml_coop_isend_init(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                                       mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
                                       ompi_request_t** request) {
    const Inside turn;
    SendRequest* r = make_send(of(comm).peer(dst), buf, count, datatype, dst, tag, comm, mode, true);
    if (!r) return MPI_ERR_NO_MEM;
    *request = r->mpi();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_start(size_t count, ompi_request_t** requests) {
    const Inside turn;
    for (size_t i = 0; i < count; ++i) {
        if (!requests[i] || requests[i]->req_type != OMPI_REQUEST_PML) continue;
        const bool send = reinterpret_cast<mca_pml_base_request_t*>(requests[i])->req_type == MCA_PML_REQUEST_SEND;
        const int rc = send ? start_persistent_send(*SendRequest::of(requests[i]))
                            : mca_pml_coop_start_recv(requests[i]);
        if (rc != OMPI_SUCCESS) return rc;
    }
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_init_send_item(opal_free_list_item_t* item, void*) {
    auto& r = *reinterpret_cast<SendRequest*>(item);
    prepare_item(r);
    r.base.req_base.req_type = MCA_PML_REQUEST_SEND;
    r.mpi()->req_start = mca_pml_coop_start;
    r.mpi()->req_free = free_send;
    r.mpi()->req_cancel = cancel_send;
    return OMPI_SUCCESS;
}

}  // namespace coop::pml

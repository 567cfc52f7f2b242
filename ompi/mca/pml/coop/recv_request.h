// SPDX-License-Identifier: BSD-3-Clause
//
// A receive, from posting to the last byte. An eager message is copied at once; for a rendezvous coop/rndv/receiver.h
// decides what to do next, and this file translates its actions to Open MPI's transports, and their callbacks to its
// events.
//
// A step that a transport refuses for lack of resources is retried by the progress function. Threading: advance() is
// driven by whoever holds the baton; unpacking holds `lock`, because the convertor has one position. If
// `contiguous_base` is set, the convertor is not used, and in host memory not even prepared.
#pragma once

#include "coop/base/spin_lock.h"
#include "coop/rndv/receiver.h"
#include "arrived.h"
#include "lifetime.h"
#include "pieces.h"
#include "rdma.h"
#include "drive_copy.h"

namespace coop::pml {

struct RecvRequest {
    mca_pml_base_recv_request_t base;  // first: Open MPI sees this

    // An eager message needs nothing of our own but these fields, up to `engine`. With Open MPI 4.1 they are in two cache
    // lines, one of which holds the end of `base`, too.
    match::Posted posted;
    std::size_t capacity;   // size of the user's buffer, in packed bytes
    char* contiguous_base;  // address of the message's first byte in a contiguous host buffer; null: the convertor
                            // unpacks
    Fate fate;
    rndv::RecvCall call;
    bool mpi_complete;
    std::atomic<bool> awaited;  // a thread waits for it in MPI_Wait or MPI_Waitall (awaited.h)
    bool uses_convertor;        // it was prepared since the request was made, so recycle() cleans it up

    rndv::Receiver engine;  // started when an RTS has matched
    Baton baton;
    References references;
    Deferred deferred;
    opal_mutex_t lock;  // protects the convertor

    // Valid once an RTS has matched.
    Peer* peer;
    std::uint64_t id;  // in Module::recvs; 0: none
    std::uint64_t send_id;
    mca_bml_base_btl_t* rdma;       // the transport that delivered the RTS; null: it has no RDMA
    const BtlExtension* extension;  // of `rdma`; null: none
    mca_btl_base_registration_handle_t* registration;
    RdmaRun run;
    bool fin_is_behind;                  // the FIN was posted together with the get, fenced after it
    std::uint64_t remote_address;        // of the first byte of the message
    Pieces local_pieces, remote_pieces;  // of a buffer that consists of large pieces; otherwise empty
    unsigned char remote_handle[wire::kMaxHandleBytes];

    // Our slot of the board, for a cooperative copy or an offer.
    bool has_slot;
    bool offered;  // the slot holds an offer of this receive that the sender may take
    std::uint32_t slot, generation;
    rndv::CopySide copy;  // our side of a cooperative copy
    HcaCopies hca;        // the chunks of it that HCAs copy
    std::uint64_t load;   // bytes that the load of our board counts for this message
    bool counted;         // the loads of both boards count it

    bool timed;              // Neighbour::long_way counts it as under way
    bool sender_waited;      // when the RTS was read; valid if `timed`
    rndv::LongWay::Way way;  // valid if `timed`

    static RecvRequest* of(ompi_request_t* request) noexcept { return reinterpret_cast<RecvRequest*>(request); }
    static RecvRequest* from(match::Posted* p) noexcept {
        return reinterpret_cast<RecvRequest*>(reinterpret_cast<char*>(p) - offsetof(RecvRequest, posted));
    }
    ompi_request_t* mpi() noexcept { return &base.req_base.req_ompi; }
    opal_convertor_t& convertor() noexcept { return base.req_base.req_convertor; }
    ompi_communicator_t* comm() noexcept { return base.req_base.req_comm; }
};

// Returns null if there is no memory for a request.
RecvRequest* make_recv(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                       ompi_communicator_t* comm, bool persistent) noexcept;
// Makes one and starts it.
RecvRequest* begin_recv(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                        ompi_communicator_t* comm, rndv::RecvCall call) noexcept;
// A request for later, or null if there is no memory for one.
RecvRequest* unused_request() noexcept;
// Makes it the request of an MPI_Recv whose message has matched: it is active, and not posted.
void use_for_matched(RecvRequest& request, void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                     ompi_communicator_t* comm) noexcept;

// Updates the offer of one of our receives to the peer when a message of the peer has matched `posted` (null: no
// receive). Under Comm::lock.
void meet_offered(Peer& peer, const wire::MatchHeader& header, match::Posted* posted) noexcept;

// What the transport is told about the message. The RTS describes the sender's side.
sched::Marker marker(RecvRequest& request) noexcept;

// Withdraws the offer of the receive. Returns false if the sender has taken it. Under Comm::lock.
[[nodiscard]] bool withdraw(RecvRequest& request) noexcept;

// Matches an unexpected message or posts the receive.
void start_recv(RecvRequest& request) noexcept;
// Starts the receive of a message that a matched probe has taken.
void start_recv_of(RecvRequest& request, Arrived* arrived) noexcept;

// Delivers the first packet of a message to the receive that it has matched.
void receive(RecvRequest& request, Peer& peer, const Packet& packet) noexcept;
void receive(RecvRequest& request, Peer& peer, const Whole& message) noexcept;
void receive_eager(RecvRequest& request, const Packet& packet) noexcept;
// After the last part of an eager message has arrived.
void finish_parts(RecvRequest& request, const Packet& packet) noexcept;

// Later packets (on_answer.cc has validated the headers).
void on_fragment(RecvRequest& request, const wire::FragHeader& header, const Packet& packet) noexcept;
void on_put(RecvRequest& request, const wire::FinHeader& header) noexcept;

void advance(RecvRequest& request) noexcept;
void drop(RecvRequest& request) noexcept;
void recycle(RecvRequest& request) noexcept;
void prepare_item(RecvRequest& request) noexcept;  // once per free-list item

}  // namespace coop::pml

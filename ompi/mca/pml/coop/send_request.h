// SPDX-License-Identifier: BSD-3-Clause
//
// A send that one immediate packet could not carry. coop/rndv/sender.h decides what it does next; this file translates its actions to
// Open MPI's transports, and their callbacks to its events.
//
// An action that a transport refuses for want of resources is retried by the progress function. Messages that could not start wait in
// their peer's line, so that they leave in the order of their sequence numbers. Threading: advance() is driven by whoever holds the baton.
#pragma once

#include "coop/base/spin_lock.h"
#include "coop/rndv/lanes.h"
#include "coop/rndv/sender.h"
#include "lifetime.h"
#include "pieces.h"
#include "rdma.h"
#include "drive_copy.h"

namespace coop::pml {

struct SendRequest {
    mca_pml_base_send_request_t base;  // first: Open MPI sees this

    Peer* peer;
    std::uint64_t id;            // in Module::sends; 0: none
    std::uint16_t sequence;
    rndv::Sender engine;
    void* store;                 // a buffered send's payload; nobody waits for such a request
    void (*release_store)(void*);
    bool mpi_complete;           // the user's request is complete already
    Baton baton;
    References references;
    Fate fate;
    Deferred deferred;
    Waiting waiting;             // in Peer::line, for kStart
    bool first_in_line;          // taken from there, and back to its head if refused
    std::uint8_t patience;       // immediate sends to try before a descriptor is used
    Count in_flight;             // our packets in the hands of transports

    rndv::SendCall call;         // what MPI call this is
    bool answer_due;             // an RTS or a COOP grant is out: a reference is held for what may answer it
    Pieces local_pieces, remote_pieces;  // where a buffer is in large pieces; none: contiguous
    bool offered;                // the receive was offered, and `offer` taken
    rndv::Taken offer;
    rndv::CopySide copy;         // our side of a cooperative copy
    std::uint64_t load;          // bytes that the load board counts for this message

    // From the grant; valid once the engine says that it is answered.
    std::uint64_t recv_id;
    std::uint64_t remote_address;  // where the first byte of the message would land
    rndv::Lanes lanes;           // how much of the fragments each transport has had

    // RDMA: the transport, our registration (RGET: for the receiver to read;
    // RPUT: to write from) and the receiver's handle.
    mca_bml_base_btl_t* rdma;
    const BtlExtension* extension;  // of `rdma`; null: none
    mca_btl_base_registration_handle_t* registration;
    mca_btl_base_registration_handle_t* hca_registration;  // for the HCAs' part of a cooperative copy
    RdmaRun run;
    unsigned char remote_handle[wire::kMaxHandleBytes];

    static SendRequest* of(ompi_request_t* request) noexcept { return reinterpret_cast<SendRequest*>(request); }
    ompi_request_t* mpi() noexcept { return &base.req_base.req_ompi; }
    opal_convertor_t& convertor() noexcept { return base.req_base.req_convertor; }
    std::size_t bytes() const noexcept { return base.req_bytes_packed; }
};

// A request for these arguments, not started. `peer` must have been reached. Null: there is no memory for it.
SendRequest* make_send(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                       ompi_communicator_t* comm, mca_pml_base_send_mode_t mode, bool persistent) noexcept;
// What the receiver will answer to needs an id. Taken before the message has its place in the order of the peer's messages: it can still
// be refused then. False: there is no memory for it.
[[nodiscard]] bool reserve_id(SendRequest& request) noexcept;
// Before start_send, where the caller waits in the call.
void set_blocking(SendRequest& request) noexcept;
void start_send(SendRequest& request, std::uint16_t sequence) noexcept;
// For the transport: the kind of the send. What the receive is, only an RTS would tell.
sched::Marker marker(SendRequest& request) noexcept;
void advance(SendRequest& request) noexcept;
void drop(SendRequest& request) noexcept;  // one reference
void recycle(SendRequest& request) noexcept;
void prepare_item(SendRequest& request) noexcept;  // once per piece of memory

// The answers of the receiver (on_answer.cc has validated the headers).
void on_grant(SendRequest& request, const wire::CtsHeader& header, const void* handle) noexcept;
void on_read(SendRequest& request) noexcept;  // the engine has all FINs

}  // namespace coop::pml

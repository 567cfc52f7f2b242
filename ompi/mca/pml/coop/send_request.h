// SPDX-License-Identifier: BSD-3-Clause
//
// A send that one immediate packet could not carry. coop/rndv/sender.h decides what it does next; this file translates
// its actions to Open MPI's transports, and their callbacks to its events.
//
// A step that a transport refuses for lack of resources is retried by the progress function. Messages that could not
// start wait in their peer's line, so that they leave in the order of their sequence numbers. Threading: advance() is
// driven by whoever holds the baton.
#pragma once

#include "coop/base/spin_lock.h"
#include "coop/rndv/lanes.h"
#include "coop/rndv/pace.h"
#include "coop/rndv/sender.h"
#include "lifetime.h"
#include "pieces.h"
#include "rdma.h"
#include "drive_copy.h"

namespace coop::pml {

struct SendRequest {
    mca_pml_base_send_request_t base;  // first: Open MPI sees this

    Peer* peer;
    std::uint64_t id;  // in Module::sends; 0: none
    std::uint16_t sequence;
    LaneOut* lane;  // as found when the message started (reserve_id); null: none
    rndv::Sender engine;
    void* store;        // payload of a buffered send, in the attached buffer; the user does not see the request
    bool mpi_complete;  // the user's request is complete already
    Baton baton;
    References references;
    Fate fate;
    Deferred deferred;
    Waiting waiting;              // entry of Peer::line, before the first packet
    std::atomic<Unsent*> unsent;  // counts its first packet (begin_unsent()); null: it is not counted
    bool first_in_line;           // was the first of the line, and returns to its head if refused
    std::uint8_t patience;        // immediate sends left to try before a descriptor is used
    Count in_flight;              // packets that transports have not completed

    rndv::SendCall call;                 // the kind of MPI call
    std::size_t whole_max;               // the longest message in one packet, as it was when the id was reserved
    bool paced;                          // the pace of messages to the process counts it (streams.h)
    rndv::Pace::Way way;                 // valid if `paced`
    bool answer_due;                     // the receiver may still answer; the answer holds a reference
    Pieces local_pieces, remote_pieces;  // of a buffer that consists of large pieces; otherwise empty
    bool offered;                        // we have taken `offer`, an offer of the receive
    rndv::Taken offer;
    rndv::CopySide copy;  // our side of a cooperative copy
    std::uint64_t load;   // bytes that the load of our board counts for this message

    // From the grant, and valid once the engine has seen it; `remote_address` may be from a taken offer instead.
    std::uint64_t recv_id;
    std::uint64_t remote_address;  // address for the message's first byte
    rndv::Lanes lanes;             // bytes of fragments sent on each transport

    // RDMA: the transport, our registration (RGET: the receiver reads from it; RPUT: we write from it) and the
    // receiver's handle.
    mca_bml_base_btl_t* rdma;
    const BtlExtension* extension;  // of `rdma`; null: none
    mca_btl_base_registration_handle_t* registration;
    mca_btl_base_registration_handle_t* hca_registration;  // for the chunks of a cooperative copy that HCAs read
    RdmaRun run;
    unsigned char remote_handle[wire::kMaxHandleBytes];

    static SendRequest* of(ompi_request_t* request) noexcept { return reinterpret_cast<SendRequest*>(request); }
    ompi_request_t* mpi() noexcept { return &base.req_base.req_ompi; }
    opal_convertor_t& convertor() noexcept { return base.req_base.req_convertor; }
    std::size_t bytes() const noexcept { return base.req_bytes_packed; }
};

// Returns a request that is not started yet, or null if there is no memory for it.
SendRequest* make_send(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int dst, int tag,
                       ompi_communicator_t* comm, mca_pml_base_send_mode_t mode, bool persistent) noexcept;
// Takes an id if the receiver will answer the message. To be called after reach() and before the message takes its
// sequence number, while the send can still be refused. Returns false if there is no memory for an id.
[[nodiscard]] bool reserve_id(SendRequest& request) noexcept;
// The ring is too short for the message, for lack of memory: its transport takes it, in the same order. The lane stays if there is no
// memory for the id that this may need.
void leave_lane(SendRequest& request) noexcept;
// Called before start_send() if the caller waits in the MPI call.
void set_blocking(SendRequest& request) noexcept;
void start_send(SendRequest& request, std::uint16_t sequence) noexcept;
// What the transport is told about the message. The kind of receive is not known.
sched::Marker marker(SendRequest& request) noexcept;
void advance(SendRequest& request) noexcept;
void drop(SendRequest& request) noexcept;  // one reference
void recycle(SendRequest& request) noexcept;
void prepare_item(SendRequest& request) noexcept;  // once per free-list item

// The answers of the receiver (on_answer.cc has validated the headers).
void on_grant(SendRequest& request, const wire::CtsHeader& header, const void* handle) noexcept;
void on_read(SendRequest& request) noexcept;  // when the engine has received all FINs

}  // namespace coop::pml

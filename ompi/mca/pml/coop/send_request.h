// SPDX-License-Identifier: BSD-3-Clause
//
// A send that could not be done with one immediate packet.
//
//                       fits eager                     packets gone
//     kStart ------------------------------------------> kDrain -> kOver
//       | RTS            | RTS, receive was offered        ^  ^
//       v                +--------------+                  |  |
//     kAnswer ---- FIN, or CTS with ----|------------------+  |
//       |          nothing left         |                     |
//       | CTS: send   | CTS: rput       | CTS: coop, or rput  |
//       |             | without a slot  | with a slot         |
//       v             v                 v          all copied |
//     kFragments <- kPut -> kFin      kCopy ------------------+
//       |  ^    refused       |         | neither side can,   |
//       |  |                  |         v CTS: send           |
//       |  +------------------|---------+                     |
//       +---------------------+-------------------------------+
//
// A step that a transport refuses for want of resources is retried by the
// progress function. Messages that could not start stand in their peer's line,
// so that they leave in the order of their sequence numbers. Threading: advance() is driven by whoever holds the baton.
#pragma once

#include "coop/base/spin_lock.h"
#include "lifetime.h"
#include "pieces.h"
#include "rdma.h"
#include "shared_copy.h"

namespace coop::pml {

constexpr std::size_t kMaxLanes = 8;  // transports that share the fragments of a message

enum class SendStep : std::uint8_t { kStart, kAnswer, kFragments, kPut, kFin, kCopy, kDrain, kOver };

struct SendRequest {
    mca_pml_base_send_request_t base;  // first: Open MPI sees this

    Peer* peer;
    std::uint64_t id;            // in Module::sends; 0: none
    std::uint16_t sequence;
    std::atomic<SendStep> step;  // changed by who holds the baton; arrivals check it
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
    SharedCopy shared;           // kCopy
    std::atomic<bool> fall_back; // kCopy: neither side could; the rest is granted as fragments
    std::uint64_t load;          // bytes that the load board counts for this message

    // From the answer; valid once `answered` is true.
    std::atomic<bool> answered;
    bool fin;                    // FIN: the receiver has read everything
    Count fins;                  // those that have come, of fins_due
    std::atomic<std::uint32_t> fins_due;  // 0: none has come
    rndv::Choice choice;         // final row and reason
    std::uint64_t recv_id;
    std::uint64_t remote_address;  // where the first byte of the message would land
    std::size_t next, end;       // kFragments: range still to send
    std::size_t lane_bytes[kMaxLanes];  // kFragments: what each transport has had of it

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
void on_read(SendRequest& request, const wire::FinHeader& header) noexcept;

}  // namespace coop::pml

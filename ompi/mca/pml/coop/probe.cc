// SPDX-License-Identifier: BSD-3-Clause
//
// Probes search the unexpected messages. A matched probe takes the message out, so that no other receive can match it.
#include "arrived.h"
#include "comm.h"
#include "diagnose.h"
#include "coop/base/tsan.h"

namespace coop::pml {
namespace {

// MPI_ERROR is left as it is: only calls with several requests set it (MPI 3.1, 3.2.5).
void describe(const Arrived& arrived, ompi_status_public_t* status) noexcept {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = arrived.arrival.source;
    status->MPI_TAG = arrived.arrival.tag;
    status->_ucount = arrived.message_bytes();
    status->_cancelled = 0;
}

// Returns the oldest message that matches; with `take` it belongs to the caller. The status is filled in under the
// lock, because without `take` another thread may receive the message right afterwards.
Arrived* look(int src, int tag, ompi_communicator_t* comm, bool take, ompi_status_public_t* status) noexcept {
    Comm& c = of(comm);
    match::Source* source = src == OMPI_ANY_SOURCE ? nullptr : &c.peer(src).source;
    Guard guard(c.lock);
    match::Arrival* arrival = c.engine.find_unexpected(source, tag);
    if (!arrival) return nullptr;
    describe(*Arrived::from(arrival), status);
    if (take) {
        c.engine.remove_unexpected(arrival);
        module.counters.down(Gauge::kUnexpected);
    }
    return Arrived::from(arrival);
}

// Looks for a message; if there is none, lets the transports progress and looks again.
Arrived* look_twice(int src, int tag, ompi_communicator_t* comm, bool take, ompi_status_public_t* status) noexcept {
    if (Arrived* arrived = look(src, tag, comm, take, status)) return arrived;
    opal_progress();
    return look(src, tag, comm, take, status);
}

ompi_message_t* make_message(Arrived* arrived, ompi_communicator_t* comm) noexcept {
    ompi_message_t* message = ompi_message_alloc();
    if (!message) out_of_memory("a message handle");
    tsan_acquire(message);
    OBJ_RETAIN(comm);  // it may be freed before the message is received (recv.cc releases it)
    message->comm = comm;
    message->req_ptr = arrived;
    message->peer = arrived->arrival.source;
    message->count = arrived->message_bytes();
    return message;
}

}  // namespace

extern "C" int mca_pml_coop_iprobe(int src, int tag, ompi_communicator_t* comm, int* matched,
                                   ompi_status_public_t* status) {
    const Inside turn;
    *matched = look_twice(src, tag, comm, false, status) != nullptr;
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_probe(int src, int tag, ompi_communicator_t* comm, ompi_status_public_t* status) {
    const Inside turn;
    while (!look_twice(src, tag, comm, false, status)) {
    }
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_improbe(int src, int tag, ompi_communicator_t* comm, int* matched, ompi_message_t** message,
                                    ompi_status_public_t* status) {
    const Inside turn;
    Arrived* arrived = look_twice(src, tag, comm, true, status);
    *matched = arrived != nullptr;
    if (arrived) *message = make_message(arrived, comm);
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_mprobe(int src, int tag, ompi_communicator_t* comm, ompi_message_t** message,
                                   ompi_status_public_t* status) {
    const Inside turn;
    Arrived* arrived = nullptr;
    while (!arrived) arrived = look_twice(src, tag, comm, true, status);
    *message = make_message(arrived, comm);
    return OMPI_SUCCESS;
}

}  // namespace coop::pml

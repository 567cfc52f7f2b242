// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Recv and related calls, and MPI_Cancel of receives.
#include "recv_request.h"

#include "awaited.h"
#include "coop/base/tsan.h"
#include "lane_packet.h"
#include "recv_direct.h"
#include "ompi/mca/shim/complete.h"

namespace coop::pml {
namespace {

int free_recv(ompi_request_t** request) {
    const Inside turn;
    tsan_acquire(*request);  // the callers, such as MPI_Wait, are not instrumented
    RecvRequest& r = *RecvRequest::of(*request);
    r.base.req_base.req_free_called = true;
    if (r.fate.user_freed()) recycle(r);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

// Cancels a receive that has not matched a message; one that has matched continues.
int cancel_recv(ompi_request_t* request, int) {
    const Inside turn;
    RecvRequest& r = *RecvRequest::of(request);
    Comm& c = of(r.comm());
    {
        Guard guard(c.lock);
        if (!r.posted.node.linked()) return OMPI_SUCCESS;
        if (r.offered && !withdraw(r)) return OMPI_SUCCESS;  // the sender is writing
        match::Engine::cancel(&r.posted);
    }

    r.mpi()->req_status._cancelled = true;
    r.base.req_base.req_pml_complete = true;
    r.fate.completing();
    module.handler.expect(-1);
    complete_request(*r.mpi());
    if (r.fate.library_done()) recycle(r);
    return OMPI_SUCCESS;
}

int wait(RecvRequest& r, ompi_status_public_t* status) noexcept {
    const int source = r.posted.source;
    if (source < 0 ? waits_on_lane() : waits_on_lane(of(r.comm()).peer(source))) wait_on_lane_at_last(r.mpi());
    else wait_among_threads(r.mpi());
    tsan_acquire(r.mpi());
    if (status != MPI_STATUS_IGNORE) OMPI_COPY_STATUS(status, r.mpi()->req_status, false);
    const int rc = r.mpi()->req_status.MPI_ERROR;
    if (r.fate.user_freed()) recycle(r);
    return rc;
}

// Starts the receive of a message that a matched probe has taken.
RecvRequest* take(void* buf, std::size_t count, ompi_datatype_t* datatype, ompi_message_t** message,
                  rndv::RecvCall call) noexcept {
    auto* arrived = static_cast<Arrived*>((*message)->req_ptr);
    ompi_communicator_t* comm = (*message)->comm;
    RecvRequest* r = make_recv(buf, count, datatype, arrived->arrival.source, arrived->arrival.tag, comm, false);
    if (!r) return nullptr;
    tsan_release(*message);
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    r->call = call;
    start_recv_of(*r, arrived);
    OBJ_RELEASE(comm);
    return r;
}

}  // namespace

extern "C" int mca_pml_coop_recv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                                 ompi_communicator_t* comm, ompi_status_public_t* status) {
    const Inside turn;
    if (direct_recv.begin(buf, count, datatype, src, tag, comm)) {
        wait_on_lane([] { return !direct_recv.waits(); });
        RecvRequest* const r = direct_recv.end(status);
        return r ? wait(*r, status) : OMPI_SUCCESS;
    }
    RecvRequest* r = begin_recv(buf, count, datatype, src, tag, comm, rndv::RecvCall::kRecv);
    return r ? wait(*r, status) : MPI_ERR_NO_MEM;
}

extern "C" int mca_pml_coop_irecv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                                  ompi_communicator_t* comm, ompi_request_t** request) {
    const Inside turn;
    RecvRequest* r = begin_recv(buf, count, datatype, src, tag, comm, rndv::RecvCall::kIrecv);
    if (!r) return MPI_ERR_NO_MEM;
    *request = r->mpi();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_irecv_init(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                                       ompi_communicator_t* comm, ompi_request_t** request) {
    const Inside turn;
    RecvRequest* r = make_recv(buf, count, datatype, src, tag, comm, true);
    if (!r) return MPI_ERR_NO_MEM;
    *request = r->mpi();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_imrecv(void* buf, size_t count, ompi_datatype_t* datatype, ompi_message_t** message,
                                   ompi_request_t** request) {
    const Inside turn;
    RecvRequest* r = take(buf, count, datatype, message, rndv::RecvCall::kIrecv);
    if (!r) return MPI_ERR_NO_MEM;
    *request = r->mpi();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_mrecv(void* buf, size_t count, ompi_datatype_t* datatype, ompi_message_t** message,
                                  ompi_status_public_t* status) {
    const Inside turn;
    RecvRequest* r = take(buf, count, datatype, message, rndv::RecvCall::kRecv);
    return r ? wait(*r, status) : MPI_ERR_NO_MEM;
}

extern "C" int mca_pml_coop_start_recv(ompi_request_t* request) {
    RecvRequest& r = *RecvRequest::of(request);
    while (!r.fate.may_start()) opal_progress();  // the last round is not finished: its FIN may wait for resources
    start_recv(r);
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_init_recv_item(opal_free_list_item_t* item, void*) {
    auto& r = *reinterpret_cast<RecvRequest*>(item);
    prepare_item(r);
    r.mpi()->req_start = mca_pml_coop_start;
    r.mpi()->req_free = free_recv;
    r.mpi()->req_cancel = cancel_recv;
    return OMPI_SUCCESS;
}

}  // namespace coop::pml

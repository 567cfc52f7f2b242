// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include "coop/base/tsan.h"
#include "ompi/mca/shim/complete.h"

namespace coop::osc {
namespace {

int free_request(ompi_request_t** request) {
    tsan_acquire(*request);  // the callers, such as MPI_Wait, are not instrumented
    OMPI_REQUEST_FINI(*request);
    OBJ_RELEASE(*request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

int cancel_request(ompi_request_t*, int) { return MPI_ERR_REQUEST; }

void construct(Request* request) {
    request->super.req_type = OMPI_REQUEST_WIN;
    request->super.req_status._cancelled = 0;
    request->super.req_free = free_request;
    request->super.req_cancel = cancel_request;
    request->parts = 0;
}

}  // namespace

OBJ_CLASS_INSTANCE(Request, ompi_request_t, construct, nullptr);

Request* new_request(ompi_win_t& win) noexcept {
    auto* const request = OBJ_NEW(Request);
    if (!request) return nullptr;
    OMPI_REQUEST_INIT(&request->super, false);
    request->super.req_mpi_object.win = &win;
    request->super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.req_status.MPI_ERROR = MPI_SUCCESS;
    OBJ_RETAIN(request);
    return request;
}

void complete(Request& request) noexcept {
    complete_request(request.super);
    Request* mine = &request;
    OBJ_RELEASE(mine);
}

}  // namespace coop::osc

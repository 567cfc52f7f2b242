// SPDX-License-Identifier: BSD-3-Clause
#include "awaited.h"

#include "lane_packet.h"
#include "send_request.h"

namespace coop::pml {
namespace {

ompi_request_fns_t stock;
bool watching = false;

// Shows on our board that this process waits for the send with this id; 0: for none. With threads it shows nothing, because
// they would change it for each other.
void show_awaited_send(std::uint64_t id) noexcept {
    rndv::Board* const board = my_board();
    if (board && !module.threads && board->awaited_send.load(std::memory_order_relaxed) != id)
        board->awaited_send.store(id, std::memory_order_relaxed);
}

// Of several sends that are not complete the board shows the last one.
void note(ompi_request_t* request, bool awaited) noexcept {
    if (request->req_type != OMPI_REQUEST_PML) return;
    if (reinterpret_cast<mca_pml_base_request_t*>(request)->req_type == MCA_PML_REQUEST_RECV)
        RecvRequest::of(request)->awaited.store(awaited, std::memory_order_relaxed);
    else if (awaited && !REQUEST_COMPLETE(request) && SendRequest::of(request)->id != 0)
        show_awaited_send(SendRequest::of(request)->id);
}

// True if a message on the lane may complete the request, so that looking there often is worth it.
bool comes_by_lane(ompi_request_t* request) noexcept {
    if (request->req_type != OMPI_REQUEST_PML || request->req_state != OMPI_REQUEST_ACTIVE) return false;
    if (reinterpret_cast<mca_pml_base_request_t*>(request)->req_type == MCA_PML_REQUEST_SEND)
        return waits_on_lane(*SendRequest::of(request)->peer);
    RecvRequest& r = *RecvRequest::of(request);
    return r.posted.source < 0 ? waits_on_lane() : waits_on_lane(of(r.comm()).peer(r.posted.source));
}

// Returns false if the thread should sleep now.
bool look_for(ompi_request_t* request) noexcept {
    const auto done = [request] { return REQUEST_COMPLETE(request); };
    if (done()) return true;
    if (comes_by_lane(request)) wait_on_lane(done);
    else if (module.threads) look_before_sleep(done);
    return !module.threads || done();
}

int wait_for_one(ompi_request_t** request, ompi_status_public_t* status) {
    note(*request, true);
    look_for(*request);
    const int rc = stock.req_wait(request, status);
    show_awaited_send(0);
    return rc;
}

// The stock function returns early if a request fails; the other requests are then no longer awaited.
int wait_for_all(std::size_t count, ompi_request_t** requests, ompi_status_public_t* statuses) {
    for (std::size_t i = 0; i < count; ++i) note(requests[i], true);
    for (std::size_t i = 0; i < count && look_for(requests[i]);) ++i;
    const int rc = stock.req_wait_all(count, requests, statuses);
    show_awaited_send(0);
    for (std::size_t i = 0; rc != OMPI_SUCCESS && i < count; ++i) note(requests[i], false);
    return rc;
}

}  // namespace

void watch_waits() noexcept {
    stock = ompi_request_functions;
    ompi_request_functions.req_wait = wait_for_one;
    ompi_request_functions.req_wait_all = wait_for_all;
    watching = true;
}

void stop_watching_waits() noexcept {
    if (watching) ompi_request_functions = stock;
    watching = false;
}

}  // namespace coop::pml

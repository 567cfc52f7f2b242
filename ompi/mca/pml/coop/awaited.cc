// SPDX-License-Identifier: BSD-3-Clause
#include "awaited.h"

#include "lane_packet.h"
#include "send_request.h"

namespace coop::pml {
namespace {

ompi_request_fns_t stock;
bool watching = false;

// Returns 1 if it is a send whose receiver still has to answer, or copies. Among threads always 0: another one may complete
// the send just now, or begin one.
std::uint32_t note(ompi_request_t* request, bool awaited) noexcept {
    if (request->req_type != OMPI_REQUEST_PML) return 0;
    if (reinterpret_cast<mca_pml_base_request_t*>(request)->req_type == MCA_PML_REQUEST_SEND)
        return !module.threads && !REQUEST_COMPLETE(request) && SendRequest::of(request)->id != 0;
    RecvRequest::of(request)->awaited.store(awaited, std::memory_order_relaxed);
    return 0;
}

bool are_all_sends(std::uint32_t sends) noexcept { return sends > 0 && sends == module.sends.in_use(); }

// True if a message on the lane may complete the request, so that looking there often is worth it.
bool comes_by_lane(ompi_request_t* request) noexcept {
    if (request->req_type != OMPI_REQUEST_PML || request->req_state != OMPI_REQUEST_ACTIVE) return false;
    if (reinterpret_cast<mca_pml_base_request_t*>(request)->req_type == MCA_PML_REQUEST_SEND)
        return waits_on_lane(*SendRequest::of(request)->peer);
    RecvRequest& r = *RecvRequest::of(request);
    return r.posted.source < 0 ? waits_on_lane() : waits_on_lane(of(r.comm()).peer(r.posted.source));
}

// Returns false if the thread should sleep now. `last`: the call ends when the request is complete.
bool look_for(ompi_request_t* request, bool last) noexcept {
    const auto done = [request] { return REQUEST_COMPLETE(request); };
    if (done()) return true;
    if (!comes_by_lane(request)) {
        if (module.threads) look_before_sleep(done);
    } else if (last) {
        wait_on_lane_at_last(request);
    } else {
        wait_on_lane(done);
    }
    return !module.threads || done();
}

int wait_for_one(ompi_request_t** request, ompi_status_public_t* status) {
    show_waiting(are_all_sends(note(*request, true)));
    look_for(*request, true);
    const int rc = stock.req_wait(request, status);
    show_waiting(false);
    return rc;
}

// The stock function returns early if a request fails; the other requests are then no longer awaited.
int wait_for_all(std::size_t count, ompi_request_t** requests, ompi_status_public_t* statuses) {
    std::uint32_t sends = 0;
    for (std::size_t i = 0; i < count; ++i) sends += note(requests[i], true);
    show_waiting(are_all_sends(sends));
    std::size_t left = count;
    while (left > 0 && REQUEST_COMPLETE(requests[left - 1])) --left;
    for (std::size_t i = 0; i < left && look_for(requests[i], i + 1 == left);) ++i;
    const int rc = stock.req_wait_all(count, requests, statuses);
    show_waiting(false);
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

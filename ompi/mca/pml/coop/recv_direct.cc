// SPDX-License-Identifier: BSD-3-Clause
#include "recv_direct.h"

#include <utility>

#include "hints.h"
#include "lane_packet.h"

namespace coop::pml {

bool DirectRecv::begin(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
                       ompi_communicator_t* comm) noexcept {
    const opal_datatype_t& type = datatype->super;
    if (state_ != State::kIdle || !waits_on_lane() || !is_contiguous(type, count) || device_memory_is_possible())
        return false;
    if (to_leave_out_ > 0) {
        --to_leave_out_;
        return false;
    }
    // With pml_coop_free_list_max, MPI_Recv has to fail when all requests are in use; so it takes one first.
    if (!spare_ && (module.config.free_list_max >= 0 || !(spare_ = unused_request()))) return false;
    Comm& c = of(comm);
    Peer* const peer = src == match::kAnySource ? nullptr : &c.peer(src);
    if (peer && !peer->neighbour) return false;
    // A receive that may be offered to its sender needs a request.
    capacity_ = count * type.size;
    if (capacity_ > node::LaneTraffic::kLong) take_in_written_parameters();
    const auto least = static_cast<std::size_t>(module.config.rtr_min);
    if (least > 0 && capacity_ >= least) return false;
    match::Source* const source = peer ? &peer->source : nullptr;
    if (c.engine.find_unexpected(source, tag)) return false;

    to_ = reinterpret_cast<std::byte*>(const_cast<char*>(start_of(type, buf)));
    buf_ = buf;
    count_ = count;
    datatype_ = datatype;
    comm_ = comm;
    posted_.source = src;
    posted_.tag = tag;
    state_ = State::kWaits;
    module.handler.expect(1);
    c.engine.post(source, &posted_);
    return true;
}

RecvRequest* DirectRecv::end(ompi_status_public_t* status) noexcept {
    if (std::exchange(state_, State::kIdle) == State::kHasRequest) [[unlikely]]
        return std::exchange(spare_, nullptr);
    if (status != MPI_STATUS_IGNORE) {
        status->MPI_SOURCE = source_;
        status->MPI_TAG = tag_;
        status->_ucount = bytes_;
        status->_cancelled = 0;
    }
    return nullptr;
}

RecvRequest& DirectRecv::change_over() noexcept {
    module.handler.expect(-1);
    use_for_matched(*spare_, buf_, count_, datatype_, posted_.source, posted_.tag, comm_);
    to_leave_out_ = kLeftOut;
    state_ = State::kHasRequest;
    return *spare_;
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Recv without a request. The call waits for one message and returns; nobody else can see its request. To fill in, complete
// and free one would only take time between the arrival of a message and the answer to it. So the receive is posted without
// one, and a message that comes whole through the lane is copied straight into the buffer. If something else matches, or the
// message is too long, change_over() turns the receive into a request, which was allocated before the wait. The next
// kLeftOut receives then begin with requests, because their messages are likely to be of the same kind.
//
// Only one receive at a time is direct. If a callback calls MPI_Recv during the wait, that one uses a request. The communicator
// and the datatype are not held: no callback may free them meanwhile, and MPI has none that may.
//
// Threading: begin() returns false if several threads may be inside MPI. Errors: none.
#pragma once

#include <cstring>

#include "arrived.h"
#include "coop/base/short_copy.h"
#include "recv_request.h"

namespace coop::pml {

class DirectRecv {
public:
    // Posts the receive. Returns false if it needs a request from the start, or an unexpected message waits for it.
    bool begin(void* buf, std::size_t count, ompi_datatype_t* datatype, int src, int tag,
               ompi_communicator_t* comm) noexcept;
    bool waits() const noexcept { return state_ == State::kWaits; }
    bool is_received() const noexcept { return state_ == State::kReceived; }
    // After the wait. Returns the request that it has needed, which may be incomplete. Null: the message is received, and
    // `status` is set.
    RecvRequest* end(ompi_status_public_t* status) noexcept;

    bool is(const match::Posted* posted) const noexcept { return posted == &posted_; }
    // Delivers the message that has matched. Returns false if it does not fit the buffer.
    [[nodiscard]] bool take(const Whole& message) noexcept {
        if (message.bytes > capacity_) [[unlikely]]
            return false;
        module.handler.expect(-1);
        if (message.bytes <= kShortCopy) copy_short(to_, message.payload, message.bytes);
        else std::memcpy(to_, message.payload, message.bytes);
        source_ = message.header->source;
        tag_ = message.header->tag;
        bytes_ = message.bytes;
        state_ = State::kReceived;
        return true;
    }
    // The request that goes on with the receive, whose message has matched.
    RecvRequest& change_over() noexcept;

private:
    enum class State : std::uint8_t { kIdle, kWaits, kReceived, kHasRequest };
    static constexpr unsigned kLeftOut = 16;

    match::Posted posted_;
    std::byte* to_ = nullptr;
    std::size_t capacity_ = 0;
    State state_ = State::kIdle;
    int source_ = 0, tag_ = 0;
    std::size_t bytes_ = 0;

    // Only for a request.
    void* buf_ = nullptr;
    std::size_t count_ = 0;
    ompi_datatype_t* datatype_ = nullptr;
    ompi_communicator_t* comm_ = nullptr;
    RecvRequest* spare_ = nullptr;  // kHasRequest: in use
    unsigned to_leave_out_ = 0;     // the number of next receives that use requests
};

alignas(64) inline constinit DirectRecv direct_recv;

}  // namespace coop::pml

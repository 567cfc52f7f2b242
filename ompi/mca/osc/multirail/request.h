// SPDX-License-Identifier: BSD-3-Clause
//
// The requests of MPI_Rput, MPI_Rget, MPI_Raccumulate and MPI_Rget_accumulate.
//
// Ownership: the program has one reference, from the call until MPI_Wait or MPI_Request_free; the operation has another
// one until complete(). Threading: complete() is called without a lock of a window.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compat.h"
#include "layout.h"

namespace coop::osc {
struct Request {
    ompi_request_t super;
    std::uint32_t parts;  // of the operation that have not ended; guarded by the mutex of the window
};
OBJ_CLASS_DECLARATION(Request);

// Null: no memory.
Request* new_request(ompi_win_t& win) noexcept;
void complete(Request& request) noexcept;

// Requests to complete when the mutex is released. With them go the unpackers of results that have ended: the last
// reference to a datatype may be theirs, and its end may call functions of the program.
struct RequestList : std::vector<Request*> {
    std::vector<std::unique_ptr<Unpacker>> spent;
};
inline void complete_all(const RequestList& requests) noexcept {
    for (Request* const request : requests) complete(*request);
}

}  // namespace coop::osc

// SPDX-License-Identifier: BSD-3-Clause
//
// One get or put in the hands of a transport, and the progress of a row of
// them over a range of a message.
#pragma once

#include <algorithm>

#include "comm.h"
#include "lifetime.h"

namespace coop::pml {

struct RdmaOp {
    opal_free_list_item_t item;
    void* request;       // SendRequest (put) or RecvRequest (get)
    std::size_t offset;  // in the message
    std::size_t bytes;
};

// The range [begin, end) of a message, moved by operations in rising order,
// `depth` at a time. When one fails, everything from the first failure on is
// left for another protocol: `done_to` is then where that one starts.
struct RdmaRun {
    std::size_t begin = 0, end = 0;
    std::size_t next = 0;                     // first byte not yet asked for
    std::atomic<std::size_t> failed_at{0};    // lowest offset that failed; end: none did
    Count in_flight;

    void start(std::size_t from, std::size_t to) noexcept {
        begin = next = from;
        end = to;
        failed_at.store(to, std::memory_order_relaxed);
        in_flight.start(0);
    }

    void fail(std::size_t offset) noexcept {
        std::size_t seen = failed_at.load(std::memory_order_relaxed);
        while (offset < seen && !failed_at.compare_exchange_weak(seen, offset, std::memory_order_relaxed)) {
        }
    }

    bool failed() const noexcept { return failed_at.load(std::memory_order_relaxed) < end; }
    bool more() const noexcept { return next < end && !failed(); }
    bool drained() const noexcept { return in_flight.now() == 0; }
    std::size_t done_to() const noexcept { return failed_at.load(std::memory_order_relaxed); }

    std::size_t next_bytes(std::size_t transport_limit) const noexcept {
        std::size_t limit = static_cast<std::size_t>(module.config.rdma_chunk);
        if (transport_limit > 0) limit = std::min(limit, transport_limit);
        return std::min(end - next, limit);
    }
};

}  // namespace coop::pml

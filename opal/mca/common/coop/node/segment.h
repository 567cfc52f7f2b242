// SPDX-License-Identifier: BSD-3-Clause
//
// Memory shared by several processes of one node: one creates it, the others attach by its ticket. The creator
// closes the descriptor when all have attached, so that the memory costs no descriptor and nobody else can open it.
// The kernel frees it when the last process has unmapped it or ended. (node/neighbour.h)
//
// Units: bytes. Threading: none of its own. Errors: never fatal; a segment that could not be created or attached is
// empty and holds an errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "coop/base/export.h"
#include "coop/node/neighbour.h"

namespace coop::node {

// What the other processes need to attach.
struct SegmentTicket {
    std::int32_t pid = 0;
    std::int32_t fd = -1;
    std::uint64_t nonce = 0;  // tells the segment from other memory, should the process id belong to another process
};

class Segment {
public:
    static constexpr std::size_t kHeaderBytes = 64;
    static constexpr std::size_t kMostBytes = std::size_t{1} << 46;

    Segment() = default;
    // `bytes`: for the users, zeroed and aligned to a cache line. More than kMostBytes: EINVAL.
    COOP_EXPORT static Segment create(std::size_t bytes) noexcept;
    // Accepts only memory that create(bytes) of the same user has made with this ticket; otherwise EBADF.
    // `keeps_descriptor`: as for SharedMemory.
    COOP_EXPORT static Segment attach(const SegmentTicket& ticket, std::size_t bytes,
                                      bool keeps_descriptor = false) noexcept;

    SegmentTicket ticket() const noexcept { return ticket_; }
    // By the creator: nobody attaches from now on.
    void conceal() noexcept { shared_.close_descriptor(); }

    std::byte* memory() const noexcept { return static_cast<std::byte*>(shared_.address()) + kHeaderBytes; }
    std::int32_t descriptor() const noexcept { return shared_.fd(); }  // -1: none
    int error() const noexcept { return error_ ? error_ : shared_.error(); }
    explicit operator bool() const noexcept { return static_cast<bool>(shared_); }

private:
    explicit Segment(int error) noexcept : error_(error) {}
    explicit Segment(SharedMemory shared) noexcept : shared_(std::move(shared)) {}

    SharedMemory shared_;
    SegmentTicket ticket_;
    int error_ = 0;
};

}  // namespace coop::node

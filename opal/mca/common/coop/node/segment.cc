// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/segment.h"

#include <cerrno>
#include <new>
#include <utility>

#include <unistd.h>

namespace coop::node {
namespace {

constexpr std::uint64_t kMagic = 0x746e656d67657363;  // "csegment"

struct Header {
    std::uint64_t magic;
    std::uint64_t nonce;
    std::uint64_t bytes;
};
static_assert(sizeof(Header) <= Segment::kHeaderBytes);

}  // namespace

Segment Segment::create(std::size_t bytes) noexcept {
    if (bytes > kMostBytes) return Segment(EINVAL);
    Segment segment(SharedMemory::create(kHeaderBytes + bytes));
    if (!segment) return segment;
    segment.ticket_ = {static_cast<std::int32_t>(getpid()), segment.shared_.fd(), random_word()};
    new (segment.shared_.address()) Header{kMagic, segment.ticket_.nonce, bytes};
    return segment;
}

Segment Segment::attach(const SegmentTicket& ticket, std::size_t bytes, bool keeps_descriptor) noexcept {
    if (bytes > kMostBytes) return Segment(EINVAL);
    Segment segment(SharedMemory::attach(ticket.pid, ticket.fd, kHeaderBytes + bytes, keeps_descriptor));
    if (!segment) return segment;
    segment.ticket_ = ticket;
    const auto& header = *static_cast<const Header*>(segment.shared_.address());
    if (header.magic != kMagic || header.nonce != ticket.nonce || header.bytes != bytes) return Segment(EBADF);
    return segment;
}

}  // namespace coop::node

// SPDX-License-Identifier: BSD-3-Clause
//
// A first packet (eager message or RTS) that has to be kept: it is unexpected, out of order, or for a communicator that
// does not exist here yet. The record holds a copy of header and payload, a short copy inside the record itself.
#pragma once

#include <span>

#include "lane_parts.h"
#include "module.h"
#include "coop/match/engine.h"

namespace coop::pml {

// A packet as a BTL delivers it: it starts with the header; the payload may lie in other segments.
struct Packet {
    mca_btl_base_module_t* btl;
    const mca_btl_base_segment_t* segments;
    std::size_t count;
    // Not null: the payload, which is the second segment, is still being written, or lies in the sender's memory.
    ArrivingParts* parts = nullptr;

    const void* header() const noexcept { return segments[0].seg_addr.pval; }
    std::size_t first_bytes() const noexcept { return segments[0].seg_len; }

    // Where all of the payload lies behind a header of this length. Null: in several segments.
    const void* payload_behind(std::size_t header_bytes) const noexcept {
        if (count == 1) return static_cast<const char*>(header()) + header_bytes;
        return count == 2 && first_bytes() == header_bytes ? segments[1].seg_addr.pval : nullptr;
    }

    std::size_t bytes() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += segments[i].seg_len;
        return sum;
    }
};

// A whole eager message in one piece, as nearly all of the lane are: a copy of its header, which the peer cannot change any
// more, and the payload.
struct Whole {
    const wire::MatchHeader* header;
    const std::byte* payload;
    std::size_t bytes;
};

// The same as a packet.
struct WholePacket {
    explicit WholePacket(const Whole& whole) noexcept {
        segments[0].seg_addr.pval = const_cast<wire::MatchHeader*>(whole.header);
        segments[0].seg_len = sizeof *whole.header;
        segments[1].seg_addr.pval = const_cast<std::byte*>(whole.payload);
        segments[1].seg_len = whole.bytes;
    }
    Packet packet() const noexcept { return {nullptr, segments, segments[1].seg_len > 0 ? 2u : 1u}; }

    mca_btl_base_segment_t segments[2];
};

struct Arrived {
    opal_free_list_item_t item;
    match::Arrival arrival;
    match::Posted* posted;  // the matched receive, until the packet is delivered to it
    Arrived* next_due;      // the next one that has been matched and not been delivered yet
    mca_btl_base_module_t* btl;
    std::uint16_t context;
    mca_btl_base_segment_t segment;  // header and payload in one piece
    unsigned char* heap;             // the copy, if it is too long for `room`; otherwise null
    unsigned char room[];            // Config::unexpected_inline bytes

    Packet packet() const noexcept { return {btl, &segment, 1}; }
    const wire::MatchHeader& header() const noexcept {
        return *static_cast<const wire::MatchHeader*>(segment.seg_addr.pval);
    }

    const wire::RtsHeader& rts() const noexcept { return *static_cast<const wire::RtsHeader*>(segment.seg_addr.pval); }

    // Length of the whole message, of which an RTS holds only a part.
    std::size_t message_bytes() const noexcept {
        if (header().kind == wire::Kind::kMatch) return segment.seg_len - sizeof(wire::MatchHeader);
        return rts().length;
    }

    static Arrived* from(match::Arrival* arrival) noexcept {
        return reinterpret_cast<Arrived*>(reinterpret_cast<char*>(arrival) - offsetof(Arrived, arrival));
    }
};

// Copies the packet. Ends the job if there is no memory.
Arrived* keep(const Packet& packet) noexcept;
inline Arrived* keep(const Whole& whole) noexcept { return keep(WholePacket(whole).packet()); }
void discard(Arrived* arrived) noexcept;

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// A first packet (eager message or RTS) that has to be kept: unexpected, early,
// or for a communicator that is not here yet. Holds a copy of header and
// payload, short ones inside the record.
#pragma once

#include <span>

#include "module.h"
#include "coop/match/engine.h"

namespace coop::pml {

// A packet as a BTL hands it over: header first, payload possibly elsewhere.
struct Packet {
    mca_btl_base_module_t* btl;
    const mca_btl_base_segment_t* segments;
    std::size_t count;

    const void* header() const noexcept { return segments[0].seg_addr.pval; }
    std::size_t first_bytes() const noexcept { return segments[0].seg_len; }

    std::size_t bytes() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += segments[i].seg_len;
        return sum;
    }
};

struct Arrived {
    opal_free_list_item_t item;
    match::Arrival arrival;
    match::Posted* posted;           // its receive, while it is on its way there
    mca_btl_base_module_t* btl;
    std::uint16_t context;
    mca_btl_base_segment_t segment;  // header and payload in one piece
    unsigned char* heap;             // null while the piece lies in `room`
    unsigned char room[];            // Config::unexpected_inline bytes

    Packet packet() const noexcept { return {btl, &segment, 1}; }
    const wire::MatchHeader& header() const noexcept { return *static_cast<const wire::MatchHeader*>(segment.seg_addr.pval); }

    // Bytes of the whole message.
    std::size_t message_bytes() const noexcept {
        if (header().kind == wire::Kind::kMatch) return segment.seg_len - sizeof(wire::MatchHeader);
        return static_cast<const wire::RtsHeader*>(segment.seg_addr.pval)->length;
    }

    static Arrived* from(match::Arrival* arrival) noexcept {
        return reinterpret_cast<Arrived*>(reinterpret_cast<char*>(arrival) - offsetof(Arrived, arrival));
    }
};

// A copy of the packet; null: out of memory (the job ends).
Arrived* keep(const Packet& packet) noexcept;
void discard(Arrived* arrived) noexcept;

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// Time on the links. Each direction of a cable has one number: until when it is
// busy. A chunk of a message takes the first link when that is free, and when
// its turn there has come, the others, cut-through: a switch passes a chunk on
// as it comes in. Times are those of the model: whoever is late in computing
// loses none of a link's rate.
//
// Units: bytes/s, nanoseconds.
#pragma once

#include <cstdint>

#include "fabric/engine/route.h"

namespace coop::fabric {

struct Slot {
    std::int64_t start_ns;
    std::int64_t end_ns;
};

// Takes the link for `bytes`, not before `ready_ns`.
Slot take_link(Link& link, std::uint64_t bytes, std::int64_t ready_ns) noexcept;

// The first link of a route; with loopback what the HCA takes itself, which is nothing where that has no rate.
Slot take_first_link(const Segment& subnet, const Route& route, std::uint64_t bytes, std::int64_t ready_ns) noexcept;
// The others, for a chunk with that slot on the first; returns when its last byte arrives.
std::int64_t take_other_links(const Segment& subnet, const Route& route, std::uint64_t bytes, const Slot& first) noexcept;

// What a packet without load takes: an acknowledgement.
std::int64_t latency_ns(const Segment& subnet, const Route& route) noexcept;
// Bytes of a message that are moved at a time on this route: about two milliseconds' worth.
std::uint64_t chunk_bytes(const Segment& subnet, const Route& route) noexcept;

// Whether one of `packets` packets is lost on the way, by the links' dice; counts it there.
bool is_lost(const Segment& subnet, const Route& route, std::uint32_t packets) noexcept;
// Whether one of the links loses every packet. Asked of acknowledgements, which are not thrown for: with the dice of the data on
// the same link, what a seed loses would depend on who comes first.
bool loses_everything(const Segment& subnet, const Route& route) noexcept;
void count(const Segment& subnet, const Route& route, std::uint64_t bytes, std::uint32_t packets) noexcept;

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Time on the links. Each direction of a cable stores the time until which it is
// busy. A chunk of a message reserves the first link when it is queued, and the
// others when its turn on the first has come. Switching is cut-through: a switch
// forwards a chunk while it arrives. Times are those of the model, so a process
// that computes late does not reduce a link's rate.
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

// Reserves the link for `bytes`, not before `ready_ns`. A short message goes between the packets of long ones.
Slot take_link(Link& link, std::uint64_t bytes, std::int64_t ready_ns) noexcept;

// Reserves the first link of a route. Loopback uses the port's loopback rate instead, and takes no time if that is
// unlimited.
Slot take_first_link(const Segment& subnet, const Route& route, std::uint64_t bytes, std::int64_t ready_ns) noexcept;
// Reserves the other links for a chunk with that slot on the first one; returns the time at which its last byte
// arrives.
std::int64_t take_other_links(const Segment& subnet, const Route& route, std::uint64_t bytes,
                              const Slot& first) noexcept;

// The time that a packet without payload takes, such as an acknowledgement.
std::int64_t latency_ns(const Segment& subnet, const Route& route) noexcept;
// The size of the chunks in which a message moves on this route: about two milliseconds' worth.
std::uint64_t chunk_bytes(const Segment& subnet, const Route& route) noexcept;

// Draws from the links' dice whether one of `packets` packets is lost on the way, and counts the loss at the link.
bool is_lost(const Segment& subnet, const Route& route, std::uint32_t packets) noexcept;
// True if one of the links loses every packet. Acknowledgements check only this and do not use the dice: if they shared
// the dice of the data on the same link, the losses of a seed would depend on the order of arrival.
bool loses_everything(const Segment& subnet, const Route& route) noexcept;
void count(const Segment& subnet, const Route& route, std::uint64_t bytes, std::uint32_t packets) noexcept;

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Gives a port other LIDs or another GID, as a subnet manager does when a port
// returns, or an administrator on RoCE. Raises LID_CHANGE and GID_CHANGE.
//
// The forwarding tables lead to the new LIDs on the routes of the old ones, which
// become free. Queue pairs and address handles that use the old addresses send
// into the void, or to the port that has the addresses next.
//
// Threading: any process; one change at a time (the header's lock).
// Errors: the address is malformed, used by another port, or not of this network.
#pragma once

#include <string>

#include "fabric/shm/segment.h"

namespace coop::fabric {

// `text` is a LID, the base of a block of 2^LMC, or "new": the lowest free block.
Error check_lid_text(const std::string& text);
Error change_lid(const Segment& subnet, std::uint32_t port, const std::string& text);

// `text` is a GID in the notation of IPv6, or "new": all GIDs of the port change. On InfiniBand it replaces the only one,
// on RoCE that of its kind: an IPv4 address (::ffff:10.0.0.1), or the other.
Error check_gid_text(const std::string& text);
Error change_gid(const Segment& subnet, std::uint32_t port, const std::string& text);

}  // namespace coop::fabric

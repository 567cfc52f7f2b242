// SPDX-License-Identifier: BSD-3-Clause
//
// A message in the lane that its sender, which waits in its call, still writes while we handle the packet
// (coop/node/lane_parts.h). A sender that has more to do than that, because its threads or processes share CPUs, does not
// send such messages: we wait for it here.
//
// Threading: of the thread that handles the packet. Ownership: none; it is valid while the packet is handled. Errors: if
// the sender ends, the launcher ends the job; if not, this does.
#pragma once

#include "module.h"

#include "coop/node/lane_area.h"
#include "coop/node/lane_parts.h"

namespace coop::pml {

class ArrivingParts {
public:
    static constexpr std::uint32_t kHeadBytes = node::LaneParts<node::LaneMemory>::kWordBytes;

    // `body`: of the record; `payload_bytes`: behind the header.
    ArrivingParts(const node::LaneArea& area, std::byte* body, std::uint32_t payload_bytes) noexcept;

    // Copies each part as soon as it is there.
    void copy(char* to) noexcept;
    // Waits until all parts are there.
    void wait() noexcept;

private:
    std::uint32_t more_than(std::uint32_t done) noexcept;

    node::LaneParts<node::LaneMemory> parts_;
    const std::byte* payload_;
    std::uint32_t bytes_;
    std::int32_t pid_;  // of the sender
};

}  // namespace coop::pml

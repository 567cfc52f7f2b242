// SPDX-License-Identifier: BSD-3-Clause
//
// A message in the lane whose sender waits in its call while we handle the packet: it writes the message part by part
// (coop/node/lane_parts.h), or offers that we read it from its memory (coop/node/lane_offer.h). A sender that has more to
// do than that, because its threads or processes share CPUs, does not send such messages: we wait for it here.
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

    // `body`: of the record; `payload_bytes`: behind the header. `is_offered`: a LaneOffer lies between the two.
    ArrivingParts(const node::LaneArea& area, std::byte* body, std::uint32_t payload_bytes, bool is_offered) noexcept;

    // Copies all of the payload. Call this or get_whole(), once.
    void copy(void* to) noexcept;
    // Returns when all of the payload is in the record.
    void get_whole() noexcept;

private:
    bool read_into(void* to) noexcept;
    std::uint32_t more_than(std::uint32_t done) noexcept;

    const node::LaneArea& area_;
    std::uint32_t ring_;
    node::LaneParts<node::LaneMemory> parts_;
    std::byte *offer_, *payload_;
    std::uint32_t bytes_;
    std::int32_t pid_;  // of the sender
    bool is_offered_;
};

}  // namespace coop::pml

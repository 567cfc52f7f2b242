// SPDX-License-Identifier: BSD-3-Clause
//
// A message in the lane whose sender waits in its call while we handle the packet: it writes the message part by part
// (coop/node/lane_parts.h), or offers that we read it from its memory (coop/node/lane_offer.h). A sender that has more to
// do than that, because its threads or processes share CPUs, does not send such messages. It may be held up even so: it
// is stopped, or its buffer is a file. So each wait for it ends after a while, and go_on() continues later. The record
// stays in its ring until all of the message has been taken.
//
// Threading: of the thread that handles the packet. Ownership: none. Errors: if the sender ends, the launcher ends the
// job; if not, this does.
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

    // How often to look for the next part before a call returns. A part takes less than a microsecond.
    static constexpr unsigned kPatience = 4096;

    // Begins to copy the payload. All functions return whether all of it has arrived there, or else go_on() is called
    // later.
    bool copy(void* to, unsigned patience = kPatience) noexcept;
    // The same for the payload in the record.
    bool get_whole(unsigned patience = kPatience) noexcept;
    bool go_on(unsigned patience) noexcept;
    std::uint32_t ring() const noexcept { return ring_; }
    // Copies all of the payload, however long that takes.
    void copy_all(void* to) noexcept {
        if (!copy(to))
            while (!go_on(kPatience)) {
            }
    }

private:
    bool read_into(void* to) noexcept;
    void note_delay() noexcept;

    const node::LaneArea& area_;
    std::uint32_t ring_;
    node::LaneParts<node::LaneMemory> parts_;
    std::byte *offer_, *payload_;
    std::uint32_t bytes_;
    std::int32_t pid_;         // of the sender
    bool is_offered_;          // and the kernel has not refused the copy
    std::byte* to_ = nullptr;  // null: the payload stays in the record
    std::uint32_t done_ = 0;   // bytes that have arrived
};

}  // namespace coop::pml

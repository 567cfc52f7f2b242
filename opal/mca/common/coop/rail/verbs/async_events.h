// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous events of an HCA (InfiniBand 11.6.3): read from its descriptor,
// acknowledged at once, and what each means to a transport.
//
// Threading: read_events() by one thread per HCA; the rest is pure. Ownership:
// values. Errors: false where the descriptor can no longer be read.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace coop::rail {

enum class Meaning : std::uint8_t {
    kNothing,   // ordinary, or the subject of another part
    kNotice,    // a port has changed: rails may be slow or fail, or are back
    kRailLost,  // a queue pair is in error
    kHcaLost,   // the HCA or a queue of it is in error: nothing works on it any more
};
Meaning meaning_of(ibv_event_type type) noexcept;

struct HcaEvent {
    ibv_event_type type;
    std::uint32_t number = 0;  // of the queue pair, or of the port; otherwise 0
};

// So that read_events() returns when there are no more. False: it refuses.
bool make_events_nonblocking(ibv_context* device) noexcept;

// Appends all events that there are. False: no event will come any more.
bool read_events(ibv_context* device, std::vector<HcaEvent>& events);

}  // namespace coop::rail

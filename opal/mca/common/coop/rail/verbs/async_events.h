// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous events of an HCA (InfiniBand 11.6.3): reads them from its descriptor, acknowledges them at once,
// and classifies their consequences for a transport.
//
// Threading: read_events() by one thread per HCA; the rest is pure. Ownership: values. Errors: false if the
// descriptor can no longer be read.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace coop::rail {

enum class Meaning : std::uint8_t {
    kNothing,   // no consequence, or handled elsewhere
    kNotice,    // a port has changed: its rails may be slow, fail, or work again
    kRailLost,  // a queue pair is in error, or cannot migrate any more
    kHcaLost,   // the HCA or one of its queues is in error: the HCA is unusable
};
Meaning meaning_of(ibv_event_type type) noexcept;

struct HcaEvent {
    ibv_event_type type;
    std::uint32_t number = 0;  // of the queue pair or port; otherwise 0
};

// Makes the descriptor nonblocking, as read_events() requires. Returns false on failure.
bool make_events_nonblocking(ibv_context* device) noexcept;

// Appends all pending events. Returns false if no further event can be read.
bool read_events(ibv_context* device, std::vector<HcaEvent>& events);

}  // namespace coop::rail

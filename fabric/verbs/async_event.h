// SPDX-License-Identifier: BSD-3-Clause
//
// The objects of asynchronous events, and the removal of a destroyed object's
// events.
#pragma once

#include "fabric/verbs/context.h"

namespace coop::fabric {

enum class EventSource { qp, cq, srq, port, device };

EventSource source_of(std::uint32_t event_type);

// Removes the events of a destroyed QP, CQ or SRQ from its device's pipe. `object` and `used`: as in EventRecord.
void purge_events(const VerbsContext& context, EventSource source, std::uint32_t object, std::uint32_t used);

}  // namespace coop::fabric

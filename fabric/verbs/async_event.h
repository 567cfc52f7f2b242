// SPDX-License-Identifier: BSD-3-Clause
//
// Which object an asynchronous event is of, and what destroying one has to do
// with its events.
#pragma once

#include "fabric/verbs/context.h"

namespace coop::fabric {

enum class EventSource { qp, cq, srq, port, device };

EventSource source_of(std::uint32_t event_type);

// Takes the events of a destroyed QP, CQ or SRQ out of its device's pipe. `object` and `used`: as in EventRecord.
void purge_events(const VerbsContext& context, EventSource source, std::uint32_t object, std::uint32_t used);

}  // namespace coop::fabric

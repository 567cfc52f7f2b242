// SPDX-License-Identifier: BSD-3-Clause
//
// Handles messages that arrive over any rail or through a ring.
//
// Threading: call without the lock unless noted. The upper layer is called without it.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct HcaUse;
struct Module;

void post_receive(Module& m, ReceiveBuffer& buffer);  // call it with Module::lock held
// Handles the completion of a receive. Returns the number of messages handled, 0 or 1.
int on_received(Module& m, HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc);
// Call this when the next slot of the ring looks full. Another thread may have taken its message meanwhile. Returns the
// number of messages handled, 0 or 1.
int on_slot_filled(Module& m, Inbox& ring);

}  // namespace coop::ib

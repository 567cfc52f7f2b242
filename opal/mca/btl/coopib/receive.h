// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that arrive, over any rail or by a ring.
//
// Threading: the lock is held where that is said; calls of the upper layer are
// made without it.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct HcaUse;
struct Module;

void post_receive(Module& m, ReceiveBuffer& buffer);  // with Module::lock held
// Handles the completion of a receive. Returns how many messages that was.
int on_received(Module& m, HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc);
// The next slot of the ring looks full; another thread may have taken it meanwhile. Returns how many messages that was.
int on_slot_filled(Module& m, Inbox& ring);

}  // namespace coop::ib

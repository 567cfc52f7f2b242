// SPDX-License-Identifier: BSD-3-Clause
#include "write_order.h"

#include "coop/rail/verbs/rc.h"
#include "extension.h"
#include "module.h"

namespace coop::ib {

bool lands_in_order(const Module& m, const Rail& rail) noexcept {
    switch (static_cast<RingInOrder>(m.given.ring_in_order)) {
    case RingInOrder::kYes: return true;
    case RingInOrder::kNo: return false;
    case RingInOrder::kAuto: break;
    }
    return rail::writes_land_in_order(rail.qp.get());
}

bool lands_in_order(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->connected.load(std::memory_order_relaxed)) return false;
    for (const Rail& rail : endpoint->channel->rails)
        if (!lands_in_order(m, rail)) return false;
    return true;
}

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// Which rails of a channel have carried RDMA writes since a moment: a signal behind those writes needs one copy on each.
// Several users share a channel, and each remembers its own moment, so a signal of one takes nothing from another.
//
// Units: moments count writes, from 1; 0 is before all. Threading: none; the caller holds the lock of the channel.
// Errors: none.
#pragma once

#include <array>
#include <cstdint>

#include "coop/sched/rail_set.h"

namespace coop::rail {

class Writes {
public:
    void on_write(sched::RailIndex rail) noexcept { last_[rail] = ++now_; }

    std::uint64_t now() const noexcept { return now_; }
    sched::RailMask since(std::uint64_t moment) const noexcept {
        sched::RailMask rails = 0;
        if (moment == now_) return rails;
        for (sched::RailIndex rail = 0; rail < sched::kMaxRails; ++rail)
            if (last_[rail] > moment) rails |= sched::bit_of(rail);
        return rails;
    }

private:
    std::uint64_t now_ = 0;
    std::array<std::uint64_t, sched::kMaxRails> last_{};  // the moment of the last write of each rail
};

}  // namespace coop::rail

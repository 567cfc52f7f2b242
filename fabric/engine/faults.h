// SPDX-License-Identifier: BSD-3-Clause
//
// The rules that a scenario or the tool has set (shm/layout.h, Fault), asked once
// for each attempt of a message. Without rules in force nobody asks.
#pragma once

#include "fabric/engine/route.h"

namespace coop::fabric {

struct Strike {
    bool drop = false;          // the message does not arrive
    bool corrupt = false;       // nor this one, and a symbol error is counted
    bool lose_ack = false;      // it is executed, and the sender does not hear of it
    bool not_ready = false;     // the receiver answers RNR
    bool reorder = false;       // a read's response is late: what need not wait passes it
    bool kill_qp = false;       // the receiving QP fails
    bool kill_process = false;  // the receiving process dies

    bool is_lost() const { return drop || corrupt; }
};

Strike consult_faults(const Segment& subnet, const Route& route, std::uint32_t source_qp, std::uint32_t destination_qp) noexcept;

// Takes rules away that have done all they were to do; returns how many are in force. By the tool, and by whoever strikes last.
std::uint32_t clear_spent_faults(const Segment& subnet) noexcept;

}  // namespace coop::fabric

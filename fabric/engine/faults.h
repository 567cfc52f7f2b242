// SPDX-License-Identifier: BSD-3-Clause
//
// Consults the rules that a scenario or the tool has set (shm/layout.h, Fault),
// once for each chunk that is executed, and again when the message is repeated.
// Without rules in force nothing calls this.
#pragma once

#include "fabric/engine/route.h"

namespace coop::fabric {

struct Strike {
    bool drop = false;       // the message does not arrive
    bool corrupt = false;    // as drop, and a symbol error is counted
    bool lose_ack = false;   // the message is executed, but its acknowledgement is lost
    bool not_ready = false;  // the receiver answers RNR
    bool reorder = false;    // a read's response is late; requests that need not wait for it overtake it
    bool cut = false;        // as lose_ack; the rule's last message also takes down the target (cut_off())
    bool cut_now = false;    // with `cut`: this is the last message
    FaultScope cut_scope = FaultScope::all;  // with `cut`
    std::uint32_t cut_target = 0;            // with `cut`
    Mute sender = Mute::no;                  // the sending QP becomes mute; the message arrives
    Mute receiver = Mute::no;                // the receiving QP becomes mute before the message arrives
    bool twice = false;                      // the datagram arrives a second time, a little later
    bool swallow = false;                    // the receiving HCA acknowledges the message and does not deliver it
    bool swallow_now = false;                // with `swallow`: this is the last message, and the HCA fails
    std::int64_t late_ns = 0;                // not 0: the message arrives this long after its sender has given up on it
    bool kill_qp = false;                    // the receiving QP fails
    bool kill_process = false;               // the receiving process dies

    bool is_lost() const { return drop || corrupt; }
};

// What the rules have to know about a chunk. Some kinds of rules spare chunks that they could not affect.
struct Struck {
    std::uint32_t source_qp, destination_qp;  // numbers
    std::uint32_t qp_type;                    // ibv_qp_type
    ibv_wr_opcode opcode;
    bool ends_message;
};

inline constexpr Strike kNoStrike;

Strike consult_faults(const Segment& subnet, const Route& route, const Struck& chunk) noexcept;

// How many chunks like this one the rules will still drop or corrupt, the next one first; INT64_MAX: all.
std::int64_t drops_left(const Segment& subnet, const Route& route, const Struck& chunk) noexcept;

// Removes rules that are used up; returns the number in force. Called by the tool, and by the process that uses a rule
// up.
std::uint32_t clear_spent_faults(const Segment& subnet) noexcept;

}  // namespace coop::fabric

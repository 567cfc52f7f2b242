// SPDX-License-Identifier: BSD-3-Clause
//
// What a channel decides when a rail reports trouble. The decision depends on the
// state of the rail and on the event alone; the owner of the channel carries it out.
//
//     kOpening ──both sides have opened it──► kUp ──trouble──► kFailed
//         └──cannot be made, or is silent──► kClosed
//
//                      kOpening   kUp                    kFailed    kClosed
//     kPostRefused     ignore     repair, else end job   ignore     ignore
//     kSendError       ignore     repair, else end job   ignore     ignore
//     kSendFlushed     ignore     repair, else end job   ignore     ignore
//     kSendRefused     ignore     end job                ignore     ignore
//     kReceiveError    end job    end job                ignore     ignore
//     kReceiveFlushed  ignore     repair, else ignore    ignore     ignore
//     kQueuePairError  ignore     repair, else end job   ignore     ignore
//
// `repairs`: both processes can take a rail out of service and continue over others (path/rail_life.h).
// Errors of a rail that is being opened are ignored, because its probe will show that
// it does not work. A receive error is an exception: the peer has violated the protocol.
// Further events of a failed rail are consequences of the first, which has been reported.
//
// Threading: pure. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::rail {

enum class RailState : std::uint8_t {
    kOpening,  // not a part of its channel yet
    kUp,       // carries data
    kFailed,   // was up; nothing is posted on it any more
    kClosed,   // never was up; requests posted on it may still complete
};
constexpr std::size_t kRailStates = 4;
COOP_EXPORT const char* name(RailState state) noexcept;

enum class RailEvent : std::uint8_t {
    kPostRefused,     // the queue pair did not take a request
    kSendError,       // a posted request has completed with an error that another rail may not have
    kSendFlushed,     // a posted request was not carried out, because the queue pair is in error
    kSendRefused,     // a posted request has completed with an error that it would have over every rail
    kReceiveError,    // a receive has completed with an error
    kReceiveFlushed,  // a receive buffer comes back unused, because the queue pair is in error
    kQueuePairError,  // the HCA reports that the queue pair is in error
};
constexpr std::size_t kRailEvents = 7;
COOP_EXPORT const char* name(RailEvent event) noexcept;

enum class RailDecision : std::uint8_t {
    kIgnore,
    kRepair,  // the requests in flight go over other rails
    kEndJob,
};

COOP_EXPORT RailDecision decide(RailState state, RailEvent event, bool repairs = false) noexcept;

}  // namespace coop::rail

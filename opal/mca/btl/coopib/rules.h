// SPDX-License-Identifier: BSD-3-Clause
//
// The rules by which failover loses and doubles nothing. A test can switch one of them off, to show that another test
// notices it: the environment variable COOP_TEST_FAILOVER_WITHOUT has its name. The process says so. Such a job computes
// wrong results or hangs when a rail fails. Without the variable, all rules hold.
//
// Threading: any thread. Errors: an unknown name ends the process.
#pragma once

#include <array>
#include <cstdint>

namespace coop::ib {

enum class Rule : std::uint8_t {
    kDuplicates,  // a message that has arrived is not handed on again
    kFlushed,     // a request that was flushed counts as not executed
    kClosed,      // writes are repeated only after the peer has closed its end of the rail
    kHeld,        // messages are kept until the peer's process has them
    kFollowers,   // a message behind stripes is repeated only after these
    kArrived,     // stripes before a message that has arrived are not repeated
    kAtomics,     // atomic operations are not repeated
    kMute,        // a queue pair that ends nothing is closed
    kDestroy,     // a queue pair that does not drain is destroyed
    kAddress,     // the address that a peer tells is the one that is used
    kPorts,       // datagrams take every port
    kUnopened,    // rails that have never opened are tried again
    kBusy,        // a process that computes answers those that wait for it
    kLeft,        // a process that ends tells its peers
};
inline constexpr std::array kRuleNames = {"duplicates", "flushed",  "closed", "held",    "followers",
                                          "arrived",    "atomics",  "mute",   "destroy", "address",
                                          "ports",      "unopened", "busy",   "left"};

bool holds(Rule rule) noexcept;

}  // namespace coop::ib

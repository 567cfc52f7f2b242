// SPDX-License-Identifier: BSD-3-Clause
//
// The alternate paths of a rail, for automatic path migration (APM): the HCA moves a queue pair to its alternate path when
// the primary one fails, and nothing is lost.
//
//     lmc     the same two ports, with other path bits:   bits 1, 2, 3, 0 for a rail that begins with bits 0
//     port    other ports of the same two HCAs:           port 2 to port 2, then port 1 to port 1 again
//     auto    port, if both HCAs have another port that reaches the other's; otherwise lmc
//
// The paths of a rail form a ring. It begins with the rail's own path; the alternate of each path is the next one. Each
// side computes the ring on its own from the two port lists. Entry i of one side is entry i of the other with local and
// remote exchanged, so both sides load the same alternate without a message.
//
// Only ports that were active when the process started are in the lists. Another port must have an MTU of at least that
// of the rail, because a migration does not change the MTU.
//
// Source: dissertation 9.2.1. Threading: pure functions. Errors: a ring of one path, and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/pairing.h"
#include "coop/path/port.h"

namespace coop::path {

// PortRecord::apm, and the values of the parameter.
enum class Apm : std::uint8_t { kOff, kLmc, kPort, kAuto };
inline constexpr const char* kApmNames[] = {"off", "lmc", "port", "auto"};

constexpr std::size_t kMostAlternates = std::size_t{1} << kMaxLmc;  // paths of a ring

enum class NoAlternate : std::uint8_t {
    kNone,         // there is one
    kOff,          // this process does not want any
    kRoce,         // Ethernet has no path migration
    kHcaCannot,    // the HCA of this process has no path migration
    kPeerCannot,   // the peer's HCA has none
    kPeerOff,      // the peer does not want any
    kPeerDiffers,  // one process wants another port, the other one another LID
    kNoPort,       // `port`: no other port of both HCAs, or they do not reach each other
    kNoLid,        // `lmc`: one of the ports has one LID only
    kNoPath,       // `auto`: neither of both
    kRefused,      // the HCA has refused to load it
};
constexpr std::size_t kNoAlternates = 11;
COOP_EXPORT const char* describe(NoAlternate why) noexcept;

struct Ring {
    std::vector<PathChoice> paths;  // the first one is that of the rail
    NoAlternate why = NoAlternate::kNone;

    bool has_alternate() const noexcept { return paths.size() > 1; }
};

// Both sides compute the same mode. kOff, with a reason, if they do not agree.
struct AgreedApm {
    Apm mode = Apm::kOff;
    NoAlternate why = NoAlternate::kNone;
};
COOP_EXPORT AgreedApm agreed(Apm own, Apm peers) noexcept;

COOP_EXPORT Ring ring_of(const PathChoice& rail, std::span<const PortRecord> local, std::span<const PortRecord> remote);

}  // namespace coop::path

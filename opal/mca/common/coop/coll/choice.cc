// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/choice.h"

#include <optional>

namespace coop::coll {
namespace {

std::optional<Algorithm> named(Wish wish) noexcept {
    switch (wish) {
    case Wish::kDoubling: return Algorithm::kRecursiveDoubling;
    case Wish::kBruck: return Algorithm::kBruck;
    case Wish::kRing: return Algorithm::kRing;
    case Wish::kNeighbour: return Algorithm::kNeighbour;
    case Wish::kNode:  // by shared memory, if that is possible
    case Wish::kAuto: break;
    }
    return std::nullopt;
}

}  // namespace

const char* text(Reason reason) noexcept {
    switch (reason) {
    case Reason::kAsked: return "asked";
    case Reason::kPowerOfTwo: return "power-of-two";
    case Reason::kAnyNumber: return "any-number";
    case Reason::kLong: return "long";
    case Reason::kSharedMemory: return "shared-memory";
    case Reason::kTuning: return "tuning";
    case Reason::kMeasured: return "measured";
    }
    return "unknown";
}

Choice choose(const Situation& s) noexcept {
    if (const auto asked = named(s.wish); asked && fits(*asked, s.processes)) return {*asked, Reason::kAsked};
    const bool power_of_two = fits(Algorithm::kRecursiveDoubling, s.processes);
    if (s.bytes / s.processes >= s.ring_min && (s.processes > kManyProcesses || !power_of_two))
        return {Algorithm::kRing, Reason::kLong};
    if (power_of_two) return {Algorithm::kRecursiveDoubling, Reason::kPowerOfTwo};
    return {Algorithm::kBruck, Reason::kAnyNumber};
}

}  // namespace coop::coll

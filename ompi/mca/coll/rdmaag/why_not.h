// SPDX-License-Identifier: BSD-3-Clause
//
// Why a call, or all calls on a communicator, are left to the component of lower priority.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::ag {

enum class WhyNot : std::uint8_t {
    kTooFewCalls,
    kNoBytes,
    kNoBml,
    kUnreachable,
    kNoMemory,
    kPeerWithout,
    kPeerRefuses,
    kParametersDiffer,
    kNotPrepared,
    kTuning,
    kMeasuredSlower,
};
inline constexpr const char* kWhyNotTexts[] = {
    "too-few-calls",      // the first call of a communicator
    "no-bytes",           // the result is empty
    "no-bml",             // the PML does not use BTLs
    "unreachable",        // no BTL reaches a partner
    "no-memory",          // no memory for the buffers of the communicator
    "peer-without",       // a process does not use coll/rdmaag, or with another priority or version
    "peer-refuses",       // another process has one of these reasons
    "parameters-differ",  // the parameters or the architecture
    "not-prepared",       // a non-blocking call before the second blocking one
    "tuning",             // tried, to measure its time
    "measured-slower"     // the component of lower priority was clearly faster in the trials
};
inline constexpr std::size_t kWhyNots = sizeof kWhyNotTexts / sizeof *kWhyNotTexts;
constexpr const char* text(WhyNot why) noexcept { return kWhyNotTexts[static_cast<std::size_t>(why)]; }

}  // namespace coop::ag

// SPDX-License-Identifier: BSD-3-Clause
//
// Why a message goes as it does. Every choice of a protocol carries its reason, which the report prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "coop/base/export.h"

namespace coop::rndv {

struct Situation;

// The numbers travel in control headers: a change of their order needs a new wire version.
enum class Reason : std::uint8_t {
    kFitsEager,
    kSynchronousFitsInline,
    kForced,
    kForcedUnavailable,
    kReceiverReads,
    kNoGet,
    kNoRdma,
    kBelowRdmaMin,
    kSenderPieces,
    kReceiverPieces,
    kStripedOverTransports,
    kGetRefused,
    kRdmaRefused,
    kNothingLeft,
    kBothWait,
    kSenderWaits,
    kReceiverWaits,
    kNobodyWaits,
    kReceiverLighter,
    kSenderLighter,
    kEvenLoad,
    kBelowCoopMin,
    kOffered,
    kNoKernelCopy,
    kNoSlot,
    kReceiverTurn,
    kSenderTurn,
    kOneWay,
    kNotAwaited,
    kFitsLane,
    kBelowLaneMax,
    kSlowLink,
    kFastLink,
    kReadFromSender,
    kLaneIsQuicker,
    kPacketIsQuicker,
};
constexpr std::size_t kReasons = 36;

COOP_EXPORT const char* text(Reason reason) noexcept;  // "the receiver reads the send buffer"

// The numbers that decided, to follow text(): " of 4096 bytes". Empty where no number did.
COOP_EXPORT std::string numbers(Reason reason, const Situation& situation);

}  // namespace coop::rndv

// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/failure.h"

namespace coop::rail {
namespace {

constexpr RailDecision end_job_if(bool condition) noexcept {
    return condition ? RailDecision::kEndJob : RailDecision::kIgnore;
}

}  // namespace

const char* name(RailState state) noexcept {
    switch (state) {
    case RailState::kOpening: return "opening";
    case RailState::kUp: return "up";
    case RailState::kFailed: return "failed";
    case RailState::kClosed: return "closed";
    }
    return "?";
}

const char* name(RailEvent event) noexcept {
    switch (event) {
    case RailEvent::kPostRefused: return "post refused";
    case RailEvent::kSendError: return "send error";
    case RailEvent::kSendFlushed: return "send flushed";
    case RailEvent::kSendRefused: return "send refused";
    case RailEvent::kReceiveError: return "receive error";
    case RailEvent::kReceiveFlushed: return "receive flushed";
    case RailEvent::kQueuePairError: return "queue pair error";
    }
    return "?";
}

RailDecision decide(RailState state, RailEvent event, bool repairs) noexcept {
    const bool up = state == RailState::kUp;
    switch (event) {
    case RailEvent::kPostRefused:
    case RailEvent::kSendError:
    case RailEvent::kSendFlushed:
    case RailEvent::kQueuePairError: return up && repairs ? RailDecision::kRepair : end_job_if(up);
    case RailEvent::kSendRefused: return end_job_if(up);
    case RailEvent::kReceiveError: return end_job_if(up || state == RailState::kOpening);
    case RailEvent::kReceiveFlushed: return up && repairs ? RailDecision::kRepair : RailDecision::kIgnore;
    }
    return RailDecision::kEndJob;
}

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/schedule.h"

namespace coop::sched {
namespace {

std::string joined_rails(const Schedule& schedule) {
    std::string out;
    for (const Stripe& stripe : schedule) out.append(out.empty() ? "" : ", ").append(std::to_string(stripe.rail));
    return out;
}

std::string percents(const Schedule& schedule) {
    std::string out;
    const std::uint64_t total = schedule.batch_weight();
    for (const Stripe& stripe : schedule) {
        const std::uint64_t percent = (std::uint64_t{stripe.weight} * 100 + total / 2) / total;
        out.append(out.empty() ? "" : "/").append(std::to_string(percent));
    }
    return out;
}

// The limit that the reason refers to, if any.
std::string limit(Reason reason, const SchedConfig& config) {
    switch (reason) {
    case Reason::kSmall:
    case Reason::kLarge: return " of " + std::to_string(config.striping_threshold) + " bytes";
    case Reason::kVeryLarge: return " of " + std::to_string(config.epc_always_stripe) + " bytes";
    case Reason::kBlocking:
    case Reason::kNonblocking:
    case Reason::kCollective:
    case Reason::kNoMarker:
    case Reason::kWhole:
    case Reason::kNotWorth:
    case Reason::kOneRail:
    case Reason::kNoRail: break;
    }
    return "";
}

std::string where(const Schedule& schedule) {
    if (schedule.size() == 1) return "whole on rail " + std::to_string(schedule[0].rail);
    std::string out = "in " + std::to_string(schedule.size()) + " stripes on rails " + joined_rails(schedule);
    if (schedule.header.policy == Policy::kEvenStriping) return out + ", evenly";
    return out + " by " + (row_of(schedule.header.policy).measures ? "measured" : "fixed") + " weight " +
           percents(schedule);
}

}  // namespace

const char* text(Reason reason) noexcept {
    switch (reason) {
    case Reason::kSmall: return "below the striping threshold";
    case Reason::kLarge: return "not below the striping threshold";
    case Reason::kBlocking: return "the call is blocking";
    case Reason::kNonblocking: return "the call is nonblocking";
    case Reason::kCollective: return "the call is part of a collective one";
    case Reason::kVeryLarge: return "the call is nonblocking, but the message is not below the limit";
    case Reason::kNoMarker: return "the kind of call is unknown, so the size decides";
    case Reason::kWhole: return "the caller does not permit stripes";
    case Reason::kNotWorth: return "stripes have taken longer";
    case Reason::kOneRail: return "no other rail is usable";
    case Reason::kNoRail: return "no rail is left";
    }
    return "unknown";
}

std::string describe(const Schedule& schedule, const SchedConfig& config) {
    const Schedule::Header& header = schedule.header;
    const std::string size = std::to_string(header.bytes) + " bytes";
    if (schedule.empty()) return size + " cannot be sent: " + text(Reason::kNoRail);
    std::string out = size + " go " + where(schedule) + " (" + (header.by_epc ? "epc: " : "") + name(header.policy) +
                      "): ";
    out.append(text(header.reason)).append(limit(header.reason, config));
    if (header.probed != kNoRailIndex) out += "; rail " + std::to_string(header.probed) + " only to measure it again";
    if (header.suspect) out += "; no rail is up, these are suspect";
    return out;
}

}  // namespace coop::sched

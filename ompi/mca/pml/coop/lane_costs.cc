// SPDX-License-Identifier: BSD-3-Clause
#include "lane_costs.h"

#include <algorithm>
#include <cstdio>

#include "module.h"
#include "node_lane.h"

namespace coop::pml {
namespace {

// The shortest message that both sides copy (coop/rndv/choice).
std::size_t shared_from() noexcept {
    return static_cast<std::size_t>(module.config.coop_min) * (module.crowded ? rndv::kCrowdedFactor : 1);
}

std::uint64_t rate_of(double byte_ns) noexcept { return byte_ns > 0 ? static_cast<std::uint64_t>(1e9 / byte_ns) : 0; }

std::string measured_words(const node::LaneFindings& found) {
    char text[160];
    const double lane = static_cast<double>(found.lane_rate) / 1e9;
    if (found.kernel_call == 0) {
        std::snprintf(text, sizeof text, "measured: lane %.1f GB/s; no copies by the kernel", lane);
        return text;
    }
    std::snprintf(text, sizeof text, "measured: lane %.1f GB/s, kernel %.1f us a copy and %.1f GB/s", lane,
                  static_cast<double>(found.kernel_call) / 1e3, static_cast<double>(found.kernel_rate) / 1e9);
    return text;
}

}  // namespace

const node::KernelCopy& kernel_copy_costs() noexcept {
    static const node::KernelCopy measured = node::measure_kernel_copy();
    return measured;
}

node::LaneFindings& lane_findings() noexcept {
    static node::LaneFindings found;
    return found;
}

std::uint64_t LaneLimit::clock() noexcept { return now_ns(); }

// On a crowded node alone() is the limit. It only doubles, because the rings become longer with the messages.
void LaneLimit::allow_more() noexcept {
    waited_.store(bounds_.longest, std::memory_order_relaxed);
    unwaited_.store(bounds_.longest, std::memory_order_relaxed);
    alone_.store(std::min(2 * alone(), most_alone()), std::memory_order_relaxed);
}

void LaneLimit::settle() noexcept {
    const node::KernelCopy kernel = kernel_copies_messages() ? kernel_copy_costs() : node::KernelCopy{};
    const node::LaneRange offers = may_offer_ ? node::offer_range(kernel, pace_.byte_ns(), shared_from(), bounds_)
                                              : node::LaneRange{};
    offers_to_.store(offers.to, std::memory_order_relaxed);
    offers_from_.store(offers.from, std::memory_order_relaxed);
    waited_.store(node::lane_limit(kernel, pace_.byte_ns(), shared_from(), bounds_), std::memory_order_relaxed);
    unwaited_.store(node::lane_limit(kernel, pace_.byte_ns(), SIZE_MAX, bounds_), std::memory_order_relaxed);
    alone_.store(node::alone_limit(kernel, pace_.byte_ns(), bounds_), std::memory_order_relaxed);
    node::LaneFindings& found = lane_findings();
    found.alone_limit = alone();
    found.kernel_call = static_cast<std::uint64_t>(kernel.call_ns);
    found.kernel_rate = rate_of(kernel.byte_ns);
    found.lane_rate = rate_of(pace_.byte_ns());
    found.unwaited_limit = get(false);
    found.offers_from = offers.to > 0 ? offers.from : 0;
    found.offers_to = offers.to;
    found.limit = get(true);
}

std::string lane_limit_words() {
    if (!has_lane_memory()) return {};
    const std::int64_t given = module.config.lane_max;
    const node::LaneFindings& found = lane_findings();
    const std::string name = "pml_coop_lane_max " + std::to_string(given);
    if (given >= 0) return name;
    if (found.limit == 0) return {};
    const auto bytes = [](const std::atomic<std::uint64_t>& value) { return std::to_string(value) + " bytes"; };
    if (found.kernel_call == 0) return name + ": up to " + bytes(found.limit) + " (" + measured_words(found) + ")";
    if (module.crowded)
        return name + ": up to " + bytes(found.alone_limit) + " in one packet, on a crowded node (" +
               measured_words(found) + ")";
    std::string words = name + ": of a sender that waits up to " + bytes(found.limit);
    if (found.offers_to > 0)
        words += ", and those of " + std::to_string(found.offers_from) + " to " + bytes(found.offers_to) +
                 " are read by the receiver";
    return words + "; of one that does not, up to " + bytes(found.unwaited_limit) +
           ", the first one after a message of the peer, and those that go both ways, up to " +
           bytes(found.alone_limit) + " (" + measured_words(found) + ")";
}

}  // namespace coop::pml

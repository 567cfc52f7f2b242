// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdio>
#include <string>

#include "compat.h"
#include "ompi/mca/shim/say.h"
#include "process.h"

namespace coop::osc {
namespace {

// All counts that are not 0.
std::string counts() {
    std::string text;
    const auto add = [&text](const char* what, const char* name, const Tally& counter) {
        if (const auto n = counter.read(); n > 0)
            text += std::string(" ") + what + name + " " + std::to_string(n) + ";";
    };
    for (std::size_t i = 0; i < kWays; ++i) add("", kWayTexts[i], process.ways[i]);
    for (std::size_t i = 0; i < kReasons; ++i) add("reason: ", kReasonTexts[i], process.reasons[i]);
    for (std::size_t i = 0; i < std::size(kCountRows); ++i) add("", kCountRows[i].name, process.counts[i]);
    return text;
}

}  // namespace

void prepare_report() noexcept {
    if (process.config.report < 2) return;
    process.usage = Usage(kWays, kReasons);
    process.usage.set_threads(process.threads);
}

void print_report() noexcept {
    if (process.config.report == 0) return;
    const std::string counted = counts();
    if (counted.empty()) return;
    const std::string me = "osc/multirail: rank " + std::to_string(my_rank());
    std::string text = me + ":" + counted + "\n";
    if (process.config.report > 1)
        text += format_table({me + ": operations", "way", "bytes", "operations"}, process.usage,
                             {kWayTexts, kReasonTexts});
    // In one write, so that the lines of processes do not mix.
    std::fputs(text.c_str(), stderr);
}

}  // namespace coop::osc

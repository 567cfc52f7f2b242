// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdio>
#include <string>

#include "compat.h"
#include "counts.h"
#include "ompi/mca/shim/say.h"

namespace coop::osc {
namespace {

std::string me() { return "osc/multirail: rank " + std::to_string(my_rank()); }

void add(std::string& text, const std::string& name, std::uint64_t n, const std::string& after = "") {
    if (n > 0) text += " " + name + " " + std::to_string(n) + after + ";";
}

// All counts that are not 0.
std::string reasons_in(const Tallies& tallies) {
    std::string text;
    for (std::size_t i = 0; i < kReasons; ++i)
        add(text, std::string("reason: ") + kReasonTexts[i], tallies.read(reason_cell(static_cast<Reason>(i))));
    return text;
}
std::string counts_of_process(const Tallies& tallies) {
    std::string text;
    for (std::size_t i = 0; i < kWays; ++i) add(text, kWayTexts[i], tallies.read(operations_cell(static_cast<Way>(i))));
    text += reasons_in(tallies);
    for (std::size_t i = 0; i < std::size(kCountRows); ++i) add(text, kCountRows[i].name, process.counts[i].read());
    return text;
}
std::string counts_of_window(const Tallies& tallies) {
    std::string text;
    for (std::size_t i = 0; i < kWays; ++i) {
        const auto way = static_cast<Way>(i);
        add(text, kWayTexts[i], tallies.read(operations_cell(way)),
            " (" + std::to_string(tallies.read(bytes_cell(way))) + " B)");
    }
    return text + reasons_in(tallies);
}

std::string table_of(const std::string& whose, const Usage& table) {
    if (process.config.report < 2) return "";
    return format_table({whose + ": operations", "way", "bytes", "operations"}, table, {kWayTexts, kReasonTexts});
}

std::string lines_of(const WindowCounts& window) {
    const std::string counted = counts_of_window(window.tallies());
    if (!window.is_reported() || counted.empty()) return "";
    const std::string whose = me() + ": " + window.description();
    return whose + ":" + counted + "\n" + table_of(whose, window.table());
}

// In one write, so that the lines of processes do not mix.
void print(const std::string& text) noexcept { std::fputs(text.c_str(), stderr); }

}  // namespace

void print_window(const WindowCounts& window) noexcept {
    if (process.config.report > 0) print(lines_of(window));
}

void print_report() noexcept {
    if (process.config.report == 0) return;
    const Summary sum = sum_of_windows();
    std::string text;
    for (const WindowCounts* const window : sum.open) text += lines_of(*window);
    const std::string counted = counts_of_process(sum.tallies);
    if (!counted.empty()) {
        if (sum.windows > kMostReported)
            text += me() + ": windows " + std::to_string(kMostReported + 1) + " to " + std::to_string(sum.windows) +
                    " are only in the sum\n";
        text += me() + ":" + counted + "\n" + table_of(me(), sum.table);
    }
    print(text);
}

}  // namespace coop::osc

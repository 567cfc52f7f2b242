// SPDX-License-Identifier: BSD-3-Clause
//
// One run of the simulator: options in, JSON out. Users call it through coop-sim(1).
#include <chrono>
#include <cstdio>

#include "coop_config.h"
#include "sim/plan.h"
#include "sim/report.h"

namespace coop::sim {
namespace {

using Clock = std::chrono::steady_clock;

int fail(int status, const std::string& what) {
    std::fprintf(stderr, "coop-sim: %s\n", what.c_str());
    return status;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int main_with(const std::vector<std::string>& words) {
    Options options;
    if (const Defect bad = read_options(words, options)) return fail(2, *bad);
    if (options.help) {
        std::printf(
            "One run of the simulator. Sizes: 65536, 64KiB, 1MiB; rates: 1.4GB/s, 20Gbit/s; times: 500ns, 2us, 3ms, "
            "1s.\n\n%s",
            options_help().c_str());
        return 0;
    }
    const Clock::time_point start = Clock::now();
    auto made = make_plan(options);
    if (const auto* bad = std::get_if<std::string>(&made)) return fail(2, *bad);
    const WorldPlan& plan = std::get<WorldPlan>(made);
    World world(plan);
    const auto tell = [&](double share) {
        std::fprintf(stderr, "\rcoop-sim: %3.0f %%, %.0f s ", 100 * share, seconds_since(start));
    };
    const Defect bad = world.run(options.progress ? std::function<void(double)>(tell) : nullptr);
    if (options.progress) std::fputs("\r                         \r", stderr);
    if (bad) return fail(3, *bad);
    std::fputs(to_json(options, world, plan, seconds_since(start)).c_str(), stdout);
    return 0;
}

}  // namespace
}  // namespace coop::sim

int main(int count, char** words) { return coop::sim::main_with({words + (count > 0 ? 1 : 0), words + count}); }

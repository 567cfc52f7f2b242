// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric storm: performs random faults.
#include <cstdio>
#include <sstream>
#include <stop_token>

#include "fabric/tool/options.h"
#include "fabric/tool/scenario.h"
#include "fabric/tool/storm.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

Option time_option(const char* name, std::int64_t& ns) {
    return {name, true, [=, &ns](const std::string& value) {
                const auto parsed = parse_time_ns(value);
                if (!parsed || *parsed == 0) return bad_value(name, value, kTimeWords);
                ns = *parsed;
                return Error{};
            }};
}

std::vector<std::string> split(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    return words;
}

Error take_storm_options(Words& words, StormPlan& plan, std::string& name, bool& print) {
    std::string kinds;
    const Option options[] = {
        {"--seed", true,
         [&](const std::string& value) { return parse_in_range("--seed", value, 0, ~std::uint64_t{0}, plan.seed); }},
        number("--faults", 1, 1'000'000, plan.faults),
        time_option("--every", plan.every_ns),
        time_option("--outage", plan.outage_ns),
        time_option("--settle", plan.settle_ns),
        text("--kinds", kinds),
        flag("--all-rails", plan.all_rails),
        flag("--print", print),
        text("--subnet", name),
    };
    if (Error error = take_options(kStormCommand, words, options)) return error;
    plan.kinds = split(kinds);
    return words.empty() ? Error{} : Error{"'" + words[0] + "' is unexpected"};
}

int run_storm(Words words) {
    StormPlan plan;
    plan.seed = static_cast<std::uint64_t>(now_ns());
    std::string name, actions;
    bool print = false;
    if (Error error = take_storm_options(words, plan, name, print)) return misuse(kStormCommand, error);
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kStormCommand, error);
    if (Error error = make_storm(subnet, plan, actions)) return misuse(kStormCommand, error);
    std::printf("# coop-fabric storm --seed %llu\n%s", static_cast<unsigned long long>(plan.seed), actions.c_str());
    std::fflush(stdout);
    if (print) return 0;
    Scenario scenario;
    if (Error error = scenario.parse(subnet, "storm", actions)) return fail(kStormCommand, error);
    scenario.run(subnet, std::stop_token{});
    return 0;
}

}  // namespace

const Command kStormCommand = {"storm", "random faults, for soak tests",
                               R"(coop-fabric storm [OPTION…]

Prints a scenario of random faults on the ports of all hosts, with its seed, and performs it. The same seed on the same
subnet gives the same faults. Each ends after an outage: what went down comes up, and rules expire. The last actions
remove all rules, and bring up what rules may have taken down. Unless --all-rails is given, at least one HCA of every host is left alone at any time.

  --seed N        of the random numbers (default: from the clock)
  --faults N      number of faults (20)
  --every T       mean time from one fault to the next (500ms)
  --outage T      mean duration of a fault (300ms)
  --settle T      time after a fault until its HCA counts as usable again (1s)
  --kinds K,…     of port, link, lid, one-way, loss, rate, latency, drop, lose-ack, rnr, cut, late, mute-qp, kill-qp,
                  new-lid, new-gid, hca, ack-and-die (default: without the last four)
  --all-rails     also faults that leave no HCA usable
  --print         only print the scenario
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)

  coop-fabric run --hcas 4 -- sh -c 'coop-fabric storm --faults 100 > storm.scenario & mpirun -n 2 ./a.out'
)",
                               run_storm};

}  // namespace coop::fabric

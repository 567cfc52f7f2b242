// SPDX-License-Identifier: BSD-3-Clause
#include "rdmaag.h"

#include <optional>

#include "coop/coll/choice.h"
#include "coop/coll/tuner.h"
#include "ompi/mca/coll/rdmaag/params.h"
#include "ompi/mca/coll/rdmaag/variables.h"
#include "rst.h"

namespace {

using coop::coll::Algorithm, coop::coll::Choice, coop::coll::fits, coop::coll::kManyProcesses, coop::coll::Reason,
    coop::coll::Situation, coop::coll::Wish;

constexpr const char* kPrefix = "coll_rdmaag_";

std::vector<coop::ag::Variable> all_variables() {
    std::vector<coop::ag::Variable> all;
    for (const coop::ag::CountRow& row : coop::ag::kCountRows) all.push_back({row.name, row.help});
    for (std::size_t i = 0; i < coop::coll::kAlgorithms; ++i)
        all.push_back(coop::ag::calls_variable(static_cast<Algorithm>(i)));
    for (std::size_t i = 0; i < coop::ag::kLanes; ++i)
        all.push_back(coop::ag::calls_variable(static_cast<coop::ag::Lane>(i)));
    for (std::size_t i = 0; i < coop::coll::kReasons; ++i)
        all.push_back(coop::ag::chosen_variable(static_cast<Reason>(i)));
    for (std::size_t i = 0; i < coop::ag::kWhyNots; ++i)
        all.push_back(coop::ag::left_variable(static_cast<coop::ag::WhyNot>(i)));
    return all;
}

// --- choice of an algorithm --------------------------------------------------

bool power_of_two(const Situation& s) { return fits(Algorithm::kRecursiveDoubling, s.processes); }
bool is_long(const Situation& s) { return s.bytes / s.processes >= s.ring_min; }

struct Case {
    const char* condition;
    bool (*holds)(const Situation&);
};
constexpr Case kCases[] = {
    {"``coll_rdmaag_algorithm`` is ``doubling``, and *p* is a power of two",
     [](const Situation& s) { return s.wish == Wish::kDoubling && power_of_two(s); }},
    {"``coll_rdmaag_algorithm`` is ``bruck``", [](const Situation& s) { return s.wish == Wish::kBruck; }},
    {"``coll_rdmaag_algorithm`` is ``ring``", [](const Situation& s) { return s.wish == Wish::kRing; }},
    {"``coll_rdmaag_algorithm`` is ``neighbour``, and *p* is even",
     [](const Situation& s) { return s.wish == Wish::kNeighbour && s.processes % 2 == 0; }},
    {"a block has at least ``coll_rdmaag_ring_min`` bytes, and *p* is more than 32",
     [](const Situation& s) { return is_long(s) && s.processes > kManyProcesses; }},
    {"a block has at least ``coll_rdmaag_ring_min`` bytes, and *p* is not a power of two",
     [](const Situation& s) { return is_long(s) && !power_of_two(s); }},
    {"*p* is a power of two", power_of_two},
    {"otherwise", [](const Situation&) { return true; }},
};
static_assert(kManyProcesses == 32, "the table says 32");

std::vector<Situation> all_situations() {
    constexpr std::uint64_t kRingMin = 1 << 20;
    std::vector<Situation> all;
    for (std::uint32_t processes = 2; processes <= 2 * kManyProcesses + 1; ++processes)
        for (const std::uint64_t bytes : {std::uint64_t{1}, kRingMin - 1, kRingMin, 2 * kRingMin})
            for (const Wish wish : {Wish::kAuto, Wish::kDoubling, Wish::kBruck, Wish::kRing, Wish::kNeighbour})
                all.push_back({processes, processes * bytes, wish, kRingMin});
    return all;
}

}  // namespace

void print_rdmaag_parameters() { print(coop::to_rst("Parameters of coll/rdmaag", kPrefix, coop::ag::params())); }
void print_rdmaag_parameters_short() { print_short(kPrefix, coop::ag::params()); }

void print_rdmaag_variables() {
    std::vector<std::vector<std::string>> rows = {{"Variable", "Meaning"}};
    for (const coop::ag::Variable& v : all_variables()) rows.push_back({code(kPrefix + v.name), v.help});
    print_table("40 60", rows);
}

void print_rdmaag_variables_short() {
    for (const coop::ag::Variable& v : all_variables()) print("**" + (kPrefix + v.name) + "**\n    " + v.help + "\n\n");
}

// Fails unless the table holds for every situation.
void print_rdmaag_algorithms() {
    std::optional<Choice> answers[std::size(kCases)];
    bool shown[coop::coll::kReasons] = {};
    for (const Reason of_tuner : {Reason::kSharedMemory, Reason::kTuning, Reason::kMeasured})
        shown[static_cast<std::size_t>(of_tuner)] = true;
    for (const Situation& s : all_situations()) {
        std::size_t i = 0;
        while (!kCases[i].holds(s)) ++i;
        const Choice choice = coop::coll::choose(s);
        if (answers[i] && *answers[i] != choice)
            fail(std::string("the case \"") + kCases[i].condition + "\" has two answers");
        answers[i] = choice;
        shown[static_cast<std::size_t>(choice.reason)] = true;
    }
    for (std::size_t i = 0; i < std::size(shown); ++i)
        if (!shown[i]) fail(std::string("no situation leads to the reason \"") + text(static_cast<Reason>(i)) + '"');

    std::vector<std::vector<std::string>> rows = {{"", "First condition that holds", "Algorithm", "Reason"}};
    for (std::size_t i = 0; i < std::size(kCases); ++i) {
        if (!answers[i]) fail(std::string("the case \"") + kCases[i].condition + "\" never occurs");
        rows.push_back({std::to_string(i + 1), kCases[i].condition, code(text(answers[i]->algorithm)),
                        code(text(answers[i]->reason))});
    }
    print_table("6 64 15 15", rows);
}

// In the order in which the candidates are tried.
void print_rdmaag_trials() {
    std::vector<std::vector<std::string>> rows = {{"Word", "Way", "Tried if"},
                                                  {"–", "that of the table above", "always"}};
    for (const coop::coll::Candidate& candidate : coop::coll::kCandidates) {
        const auto& way = candidate.way;
        if (!way.algorithm) {
            rows.push_back({code("others"), "the component of lower priority", "always"});
            continue;
        }
        const std::string algorithm = text(*way.algorithm), part = std::to_string(way.short_part);
        std::string condition = *way.algorithm == Algorithm::kRecursiveDoubling ? "*p* is a power of two"
                                : *way.algorithm == Algorithm::kNeighbour       ? "*p* is even"
                                : !candidate.powers_of_two                      ? "*p* is not a power of two"
                                                                                : "";
        const auto add = [&condition](const std::string& more) { condition += (condition.empty() ? "" : ", ") + more; };
        if (candidate.min_block > 0) add("a block has at least " + std::to_string(candidate.min_block) + " bytes");
        if (way.short_part > 1) add("a step lies between the two limits");
        if (way.rings > 1) {
            const std::string rings = std::to_string(way.rings);
            rows.push_back(
                {code(rings + " rings"), rings + " rings at once, each with its part of each block", condition});
            continue;
        }
        if (way.packets) {
            add("a block has less than " + std::to_string(candidate.end_block) + " bytes");
            add("a step is long");
            rows.push_back(
                {code(algorithm + " in packets"), code(algorithm) + " with long steps in packets", condition});
            continue;
        }
        rows.push_back({code(way.short_part > 1 ? algorithm + "/" + part : algorithm),
                        way.short_part > 1 ? code(algorithm) + " with 1/" + part + " of the limit of short steps"
                                           : code(algorithm),
                        condition.empty() ? "always" : condition});
    }
    print_table("15 45 40", rows);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace rma_storm {
namespace {

const char* const kFeatures[] = {"create",      "allocate",  "shared",  "dynamic", "fence",   "pscw",     "locks",
                                 "lock_all",    "exclusive", "nested",  "mixed",   "crowded", "reads",    "writes",
                                 "sums",        "sequences", "flushed", "tickets", "races",   "updates",  "direct",
                                 "flush_local", "requests",  "late",    "derived", "pairs",   "unsigned", "bottom",
                                 "empty",       "asserts",   "hints",   "subsets", "zero",    "odd"};
static_assert(std::size(kFeatures) == static_cast<std::size_t>(Feature::kCount));

const char* const kSabotages[] = {"none", "lose", "double", "misplace"};

[[noreturn]] void usage() {
    fprintf(stderr,
            "usage: rma_storm [--seed N] [--operations N | --rounds N] [--threads T] [--max-bytes N] "
            "[--watchdog SECONDS]\n                 [--print ROUND] [--sabotage lose|double|misplace] "
            "[--without FEATURE,…]\nfeatures:");
    for (const char* name : kFeatures) fprintf(stderr, " %s", name);
    fprintf(stderr, "\n");
    exit(2);
}

std::size_t index_in(const char* const* words, std::size_t count, const std::string& word) {
    for (std::size_t i = 0; i < count; ++i)
        if (word == words[i]) return i;
    usage();
}

std::uint64_t parse_features(const std::string& list) {
    std::uint64_t mask = 0;
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        mask |= std::uint64_t{1} << index_in(kFeatures, std::size(kFeatures), list.substr(begin, end - begin));
        begin = end + 1;
    }
    return mask;
}

bool some_of(const Options& o, Feature first, Feature last) {
    for (int f = static_cast<int>(first); f <= static_cast<int>(last); ++f)
        if (o.has(static_cast<Feature>(f))) return true;
    return false;
}

}  // namespace

Options parse(int argc, char** argv) {
    Options o;
    if (argc % 2 != 1) usage();
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        char* end = nullptr;
        const unsigned long long value = strtoull(argv[i + 1], &end, 0);
        if (name == "--sabotage") {
            o.sabotage = static_cast<Sabotage>(index_in(kSabotages, std::size(kSabotages), argv[i + 1]));
            continue;
        }
        if (name == "--without") {
            o.without |= parse_features(argv[i + 1]);
            continue;
        }
        if (name == "--with") {
            o.without &= ~parse_features(argv[i + 1]);
            continue;
        }
        if (*end != '\0') usage();
        if (name == "--seed") o.seed = value;
        else if (name == "--rounds") o.rounds = value;
        else if (name == "--operations") o.operations = value;
        else if (name == "--threads" || name == "-t") o.threads = static_cast<int>(value);
        else if (name == "--max-bytes") o.max_bytes = value;
        else if (name == "--print") o.print = value;
        else if (name == "--watchdog") o.stall_seconds = static_cast<int>(value);
        else usage();
    }
    const bool possible = some_of(o, Feature::kCreate, Feature::kDynamic) && o.has(Feature::kWrites) &&
                          some_of(o, Feature::kFence, Feature::kLockAll);
    if (o.threads < 1 || o.max_bytes < 1 || !possible) usage();
    return o;
}

std::string reproduce(const Options& options) {
    std::string text = "reproduce: --seed " + std::to_string(options.seed);
    if (options.rounds != 0) text += " --rounds " + std::to_string(options.rounds);
    else text += " --operations " + std::to_string(options.operations);
    text += " --max-bytes " + std::to_string(options.max_bytes) + " --threads " + std::to_string(options.threads);
    if (options.sabotage != Sabotage::kNone)
        text += std::string(" --sabotage ") + kSabotages[static_cast<std::size_t>(options.sabotage)];
    const Options usual;
    if ((usual.without & ~options.without) != 0) text += " --with crowded";
    std::string list;
    for (std::size_t f = 0; f < std::size(kFeatures); ++f)
        if (!options.has(static_cast<Feature>(f)) && usual.has(static_cast<Feature>(f)))
            list += (list.empty() ? "" : ",") + std::string(kFeatures[f]);
    return list.empty() ? text : text + " --without " + list;
}

}  // namespace rma_storm

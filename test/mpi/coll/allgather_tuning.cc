// SPDX-License-Identifier: BSD-3-Clause
// The trials of coll/rdmaag in the first calls of a communicator (gathering.h): all ranks take the same way in each call,
// every byte is right, and the performance variables give the reason. At least three ranks.
//
// Arguments:
//
//     slow     the calls of coll/rdmaag are slow, in one rank or in all: the component of lower priority must win
//     late     rank 1 comes late to many calls
#include <unistd.h>

#include <utility>

#include "gathering.h"

namespace {

constexpr int kMostTrials = 20;
constexpr std::size_t kSizes[] = {8, 3000, 100000};

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

// What a call was counted as.
struct Way {
    int algorithm = -1;  // -1: another component
    bool trial = false, measured = false;
};

class Ways {
public:
    // The way of the calls since the last time; they must be one.
    Way next() {
        const Counts now = counters().read();
        Way way;
        for (std::size_t i = 0; i < kAlgorithms; ++i)
            if (now.calls[i] > last_.calls[i]) way.algorithm = static_cast<int>(i);
        way.trial = has_grown(chosen_tuning_) + has_grown(left_tuning_) > 0;
        way.measured = has_grown(chosen_measured_) + has_grown(left_measured_) > 0;
        last_ = now;
        return way;
    }

private:
    struct Seen {
        explicit Seen(const char* name) : variable(name, "coll_rdmaag") {}
        Variable variable;
        unsigned long long last = variable.read();
    };
    static unsigned long long has_grown(Seen& seen) {
        const auto before = std::exchange(seen.last, seen.variable.read());
        return seen.last - before;
    }
    Seen chosen_tuning_{"chosen_tuning"}, chosen_measured_{"chosen_measured"}, left_tuning_{"left_tuning"},
        left_measured_{"left_measured_slower"};
    Counts last_ = counters().read();
};

// All ranks have counted the call as the same.
void check_same(const Way& way, MPI_Comm comm) {
    const int mine[] = {way.algorithm, -way.algorithm, way.trial, -way.trial, way.measured, -way.measured};
    int least[6];
    MPI_Allreduce(mine, least, 6, MPI_INT, MPI_MIN, comm);
    for (int i = 0; i < 6; i += 2) CHECK_EQ(least[i], -least[i + 1]);
}

void be_late(const mpitest::Env& env, int call) {
    if (has_argument("late") && env.rank == 1) usleep(static_cast<unsigned>(call * 7919 % 5) * 200);
}

}  // namespace

CASE(all_ranks_take_the_same_way_and_one_for_good) {
    for (const std::size_t bytes : kSizes) {
        Gathering all(duplicate(env.comm));
        Ways ways;
        Way final;
        int trials = 0;
        for (int call = 0; call < kMostTrials + 10; ++call) {
            be_late(env, call);
            all.equal(bytes);
            const Way way = ways.next();
            check_same(way, env.comm);
            if (way.trial) {
                CHECK_EQ(trials, call);  // no trial after the decision
                ++trials;
                continue;
            }
            if (call > trials) CHECK_EQ(way.algorithm, final.algorithm);
            final = way;
        }
        CHECK(trials >= 4 && trials <= kMostTrials);
        if (has_argument("slow")) CHECK(final.algorithm == -1 && final.measured);
        if (final.algorithm == -1) CHECK(final.measured);
    }
}

CASE(sizes_take_turns) {
    Gathering all(duplicate(env.comm));
    Ways ways;
    int trials = 0;
    for (int call = 0; call < 40; ++call)
        for (const std::size_t bytes : kSizes) {
            be_late(env, call);
            all.equal(call % 2 == 0 ? bytes : bytes + bytes / 8);
            const Way way = ways.next();
            check_same(way, env.comm);
            trials += way.trial;
            CHECK(!way.trial || call < kMostTrials);
        }
    CHECK(trials <= kMostTrials * static_cast<int>(std::size(kSizes)));
}

CASE(blocks_of_unequal_length_have_trials_of_their_own) {
    Gathering all(duplicate(env.comm));
    Ways ways;
    bool tried = false, decided = false;
    for (int call = 0; call < kMostTrials + 5; ++call) {
        std::vector<Block> blocks;
        for (int rank = 0, at = 0; rank < all.size(); at += blocks[rank++].count)
            blocks.push_back({rank == call % all.size() ? 0 : 1500, at});
        be_late(env, call);
        all.unequal(blocks);
        const Way way = ways.next();
        check_same(way, env.comm);
        CHECK(!(way.trial && decided));
        (way.trial ? tried : decided) = true;
    }
    CHECK(tried && decided);
}

CASE(every_call_has_a_reason) {
    std::vector<std::unique_ptr<Variable>> reasons;
    for (const char* name : {"asked", "power_of_two", "any_number", "long", "tuning", "measured"})
        reasons.push_back(std::make_unique<Variable>(std::string("chosen_") + name, "coll_rdmaag"));
    const auto sum = [&] {
        unsigned long long all = 0;
        for (const auto& reason : reasons) all += reason->read();
        return all;
    };
    const auto before = sum(), calls = counters().read().all_calls();
    Gathering all(duplicate(env.comm));
    for (int call = 0; call < kMostTrials + 5; ++call) all.equal(500);
    CHECK_EQ(sum() - before, counters().read().all_calls() - calls);
}

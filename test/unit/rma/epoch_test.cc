// SPDX-License-Identifier: BSD-3-Clause
//
// rma/epoch.h: every call with every assertion and kind of target in every state, against a table of its own and a
// model made of sets.
#include "coop/rma/epoch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace coop::rma {

static void PrintTo(Verdict verdict, std::ostream* out) {
    constexpr const char* kNames[] = {"proceed", "not synchronized", "bad rank", "no locks"};
    *out << kNames[static_cast<std::size_t>(verdict)];
}
static void PrintTo(Access state, std::ostream* out) { *out << name(state); }

namespace {

using Ranks = std::vector<std::uint32_t>;

constexpr std::uint32_t kProcesses = 3;
constexpr std::uint32_t kBadRanks[] = {kProcesses, ~0u};

// What MPI requires. E: an error. G: only a target in the group. T: only a locked target. +: only one that is not, and it
// is added. -: only a locked one, and it is removed. Otherwise the next state; "same": the state stays.
struct Row {
    Call call;
    const char* exposure;  // "any", "posted" or "none" is necessary
    std::array<const char*, kAccesses> in;
};
constexpr Row kTable[] = {
    // clang-format off
    //                               none       fence      fence used started lock_all locks
    {Call::kFence,          "none",   {"fence",   "fence",   "fence",   "E",    "E",     "E"}},
    {Call::kFenceNoSucceed, "none",   {"none",    "none",    "none",    "E",    "E",     "E"}},
    {Call::kStart,          "any",    {"started", "started", "E",       "E",    "E",     "E"}},
    {Call::kComplete,       "any",    {"E",       "E",       "E",       "none", "E",     "E"}},
    {Call::kPost,           "none",   {"same",    "none",    "E",       "same", "same",  "same"}},
    {Call::kWait,           "posted", {"same",    "same",    "same",    "same", "same",  "same"}},
    {Call::kLock,           "any",    {"+",       "+",       "E",       "E",    "E",     "+"}},
    {Call::kUnlock,         "any",    {"E",       "E",       "E",       "E",    "E",     "-"}},
    {Call::kLockAll,        "any",    {"lock_all", "lock_all", "E",     "E",    "E",     "E"}},
    {Call::kUnlockAll,      "any",    {"E",       "E",       "E",       "E",    "none",  "E"}},
    {Call::kFlush,          "any",    {"E",       "E",       "E",       "E",    "same",  "T"}},
    {Call::kFlushAll,       "any",    {"E",       "E",       "E",       "E",    "same",  "same"}},
    {Call::kAccess,         "any",    {"E",       "fence used", "same", "G",    "same",  "T"}},
    {Call::kFree,           "none",   {"same",    "same",    "E",       "E",    "E",     "E"}},
    // clang-format on
};
static_assert(std::size(kTable) == kCalls);

// One call with its arguments.
struct Step {
    Call call;
    std::string words;
    Ranks ranks{};  // the target, or the group
    bool no_check = false;
    FenceAsserts asserts{};
};

bool has_target(Call call) {
    return call == Call::kLock || call == Call::kUnlock || call == Call::kFlush || call == Call::kAccess;
}

std::vector<Step> all_steps() {
    std::vector<Step> all;
    for (const bool no_precede : {false, true})
        for (const bool no_succeed : {false, true})
            all.push_back(
                {.call = no_succeed ? Call::kFenceNoSucceed : Call::kFence,
                 .words = std::string("fence") + (no_precede ? " no_precede" : "") + (no_succeed ? " no_succeed" : ""),
                 .asserts = {no_precede, no_succeed}});
    for (const Ranks& group : {Ranks{}, Ranks{2, 0}, Ranks{1}, Ranks{1, kProcesses}, Ranks{~0u}})
        all.push_back({.call = Call::kStart, .words = "start " + testing::PrintToString(group), .ranks = group});
    all.push_back({.call = Call::kPost, .words = "post"});
    for (const Call call : {Call::kLock, Call::kUnlock, Call::kFlush, Call::kAccess}) {
        Ranks targets = {0, 1, 2};
        targets.insert(targets.end(), std::begin(kBadRanks), std::end(kBadRanks));
        for (const std::uint32_t target : targets)
            for (const bool no_check : {false, true}) {
                if (no_check && call != Call::kLock) continue;
                all.push_back(
                    {.call = call,
                     .words = std::string(name(call)) + " " + std::to_string(target) + (no_check ? " no_check" : ""),
                     .ranks = {target},
                     .no_check = no_check});
            }
    }
    for (const bool no_check : {false, true})
        all.push_back(
            {.call = Call::kLockAll, .words = no_check ? "lock_all no_check" : "lock_all", .no_check = no_check});
    for (const Call call : {Call::kComplete, Call::kWait, Call::kUnlockAll, Call::kFlushAll, Call::kFree})
        all.push_back({.call = call, .words = name(call)});
    return all;
}

Verdict carry_out(Epochs& epochs, const Step& step) {
    switch (step.call) {
    case Call::kFence:
    case Call::kFenceNoSucceed: return epochs.fence(step.asserts);
    case Call::kStart: return epochs.start(step.ranks);
    case Call::kComplete: return epochs.complete();
    case Call::kPost: return epochs.post();
    case Call::kWait: {
        const Verdict verdict = epochs.wait();
        if (verdict == Verdict::kProceed) epochs.exposure_over();
        return verdict;
    }
    case Call::kLock: return epochs.lock(step.ranks[0], step.no_check);
    case Call::kUnlock: return epochs.unlock(step.ranks[0]);
    case Call::kLockAll: return epochs.lock_all(step.no_check);
    case Call::kUnlockAll: return epochs.unlock_all();
    case Call::kFlush: return epochs.flush(step.ranks[0]);
    case Call::kFlushAll: return epochs.flush_all();
    case Call::kAccess: {
        const Verdict asked = epochs.may_access(step.ranks[0]);
        EXPECT_EQ(epochs.access(step.ranks[0]), asked);
        return asked;
    }
    case Call::kFree: return epochs.free();
    }
    return Verdict::kProceed;
}

// The same window, made of the table above and of sets.
struct Model {
    bool no_locks = false;
    std::string access = "none";
    bool posted = false;
    std::set<std::uint32_t> group;         // of the last start
    std::map<std::uint32_t, bool> locked;  // by lock, and whether with no_check
    bool all_no_check = false;             // of the last lock_all

    auto operator<=>(const Model&) const = default;

    std::size_t column() const {
        std::size_t i = 0;
        while (access != name(static_cast<Access>(i))) ++i;
        return i;
    }

    Verdict carry_out(const Step& step) {
        const Row& row = *std::ranges::find(kTable, step.call, &Row::call);
        if (no_locks && (step.call == Call::kLock || step.call == Call::kLockAll)) return Verdict::kNoLocks;
        for (const std::uint32_t rank : step.ranks)
            if (rank >= kProcesses) return Verdict::kBadRank;
        const std::string exposure = row.exposure, cell = row.in[column()];
        if (exposure != "any" && (exposure == "posted") != posted) return Verdict::kNotSynchronized;
        if (cell == "E") return Verdict::kNotSynchronized;
        const std::uint32_t target = has_target(step.call) ? step.ranks[0] : 0;
        if (cell == "G" && !group.count(target)) return Verdict::kNotSynchronized;
        if ((cell == "T" || cell == "-") && !locked.count(target)) return Verdict::kNotSynchronized;
        if (cell == "+" && locked.count(target)) return Verdict::kNotSynchronized;

        if (cell == "+") locked[target] = step.no_check;
        if (cell == "-") locked.erase(target);
        if (cell == "+" || cell == "-") access = locked.empty() ? "none" : "locks";
        else if (cell != "G" && cell != "T" && cell != "same") access = cell;

        if (step.call == Call::kStart) group = {step.ranks.begin(), step.ranks.end()};
        if (step.call == Call::kPost) posted = true;
        if (step.call == Call::kWait) posted = false;
        if (step.call == Call::kLockAll) all_no_check = step.no_check;
        return Verdict::kProceed;
    }
};

void expect_equal(const Epochs& epochs, const Model& model) {
    EXPECT_EQ(name(epochs.access_state()), model.access);
    EXPECT_EQ(epochs.exposure() == Exposure::kPosted, model.posted);
    EXPECT_EQ(Ranks(epochs.group().begin(), epochs.group().end()), Ranks(model.group.begin(), model.group.end()));
    EXPECT_EQ(epochs.all_no_check(), model.all_no_check);
    std::map<std::uint32_t, bool> locked;
    for (std::uint32_t target = 0; target < kProcesses; ++target)
        if (epochs.access_state() == Access::kLocks && epochs.flush(target) == Verdict::kProceed)
            locked[target] = epochs.lock_had_no_check(target);
    EXPECT_EQ(locked, model.locked);
    for (std::uint32_t target = 0; target < kProcesses; ++target) {
        if (model.locked.count(target)) continue;
        EXPECT_EQ(epochs.lock_had_no_check(target), model.access == "lock_all" && model.all_no_check);
    }
}

// Every state that calls can lead to, found by carrying out every call in every state found.
void check_all_states(bool no_locks, const std::function<void(const Model& before, const Step&, Verdict)>& seen) {
    const std::vector<Step> steps = all_steps();
    std::set<Model> known = {Model{.no_locks = no_locks}};
    std::deque<std::pair<Model, Epochs>> open = {{Model{.no_locks = no_locks}, Epochs(kProcesses, no_locks)}};
    for (; !open.empty() && !testing::Test::HasFailure(); open.pop_front()) {
        const auto& [before, epochs] = open.front();
        for (const Step& step : steps) {
            Model model = before;
            Epochs after = epochs;
            const Verdict expected = model.carry_out(step), verdict = carry_out(after, step);
            SCOPED_TRACE(step.words + " while " + before.access + (before.posted ? ", posted" : "") + ", locked " +
                         testing::PrintToString(before.locked) + ", group " + testing::PrintToString(before.group));
            EXPECT_EQ(verdict, expected);
            expect_equal(after, model);  // after an error: as before
            if (testing::Test::HasFailure()) return;
            seen(before, step, verdict);
            if (known.insert(model).second) open.emplace_back(model, after);
        }
    }
}

TEST(RmaEpoch, every_call_with_every_assertion_in_every_state) {
    std::set<std::pair<std::string, bool>> states;
    std::map<std::pair<Call, std::size_t>, std::set<Verdict>> verdicts;  // by call and state
    check_all_states(false, [&](const Model& before, const Step& step, Verdict verdict) {
        states.emplace(before.access, before.posted);
        verdicts[{step.call, before.column()}].insert(verdict);
    });
    // An exposure and an epoch of fence exclude each other.
    EXPECT_EQ(states.size(), 10u);
    EXPECT_FALSE(states.count({"fence", true}));
    EXPECT_FALSE(states.count({"fence used", true}));
    // Every cell was visited, and one with a condition with and without it.
    EXPECT_EQ(verdicts.size(), kCalls * kAccesses);
    for (const Row& row : kTable)
        for (std::size_t i = 0; i < kAccesses; ++i) {
            const std::string cell = row.in[i];
            const auto& answers = verdicts[{row.call, i}];
            SCOPED_TRACE(std::string(name(row.call)) + " in " + name(static_cast<Access>(i)));
            const bool never_posted = i == 1 || i == 2;  // fence, fence used
            EXPECT_EQ(answers.count(Verdict::kProceed), cell != "E" && !(row.call == Call::kWait && never_posted));
            const bool is_conditional = cell == "G" || cell == "T" || cell == "-" || (cell == "+" && i == 5);
            if (cell == "E" || is_conditional) {
                EXPECT_EQ(answers.count(Verdict::kNotSynchronized), 1u);
            }
        }
}

// The documentation prints the rules, also where the machine only asks whether a call is permitted.
TEST(RmaEpoch, rules_say_the_state_after_each_call) {
    const std::map<std::string, If> kConditions = {
        {"E", If::kNever}, {"G", If::kInGroup}, {"T", If::kLocked}, {"-", If::kLocked}};
    for (const Row& row : kTable)
        for (std::size_t i = 0; i < kAccesses; ++i) {
            const std::string cell = row.in[i];
            const Cell& rule = rule_of(row.call).in[i];
            SCOPED_TRACE(std::string(name(row.call)) + " in " + name(static_cast<Access>(i)));
            const bool adds_another = cell == "+" && static_cast<Access>(i) == Access::kLocks;
            const If otherwise = adds_another ? If::kNotLocked : If::kAlways;
            EXPECT_EQ(rule.condition, kConditions.count(cell) ? kConditions.at(cell) : otherwise);
            if (cell == "E") continue;
            const bool stays = cell == "same" || cell == "G" || cell == "T";
            const std::string next = stays ? name(static_cast<Access>(i)) : cell == "+" || cell == "-" ? "locks" : cell;
            EXPECT_EQ(name(rule.next), next);
        }
}

TEST(RmaEpoch, without_locks_only_active_epochs_are_permitted) {
    std::set<std::string> states;
    check_all_states(true, [&](const Model& before, const Step& step, Verdict verdict) {
        states.insert(before.access);
        EXPECT_EQ(verdict == Verdict::kNoLocks, step.call == Call::kLock || step.call == Call::kLockAll);
    });
    EXPECT_EQ(states, (std::set<std::string>{"none", "fence", "fence used", "started"}));
}

// The walk above reaches a state in one way; this one in many.
TEST(RmaEpoch, long_random_programs) {
    const std::vector<Step> steps = all_steps();
    for (std::uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
        std::mt19937 random(seed);
        Model model;
        Epochs epochs(kProcesses, false);
        for (int i = 0; i < 3000 && !HasFailure(); ++i) {
            const Step& step = steps[random() % steps.size()];
            SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(i) + ": " + step.words);
            EXPECT_EQ(carry_out(epochs, step), model.carry_out(step));
            expect_equal(epochs, model);
        }
    }
}

TEST(RmaEpoch, memory_depends_on_the_ranks_in_use_only) {
    constexpr std::uint32_t kMany = ~0u;
    Epochs epochs(kMany, false);
    EXPECT_EQ(epochs.lock(kMany - 1, true), Verdict::kProceed);
    EXPECT_EQ(epochs.lock(0, false), Verdict::kProceed);
    EXPECT_EQ(epochs.lock(kMany, false), Verdict::kBadRank);
    EXPECT_EQ(epochs.access(kMany - 1), Verdict::kProceed);
    EXPECT_EQ(epochs.access(kMany), Verdict::kBadRank);
    EXPECT_TRUE(epochs.lock_had_no_check(kMany - 1));
    EXPECT_FALSE(epochs.lock_had_no_check(0));
}

TEST(RmaEpoch, ten_thousand_locks_in_any_order) {
    constexpr std::uint32_t kMany = 10'000;
    Ranks targets(kMany);
    std::iota(targets.begin(), targets.end(), 0u);
    std::mt19937 random(1);
    Epochs epochs(2 * kMany, false);
    std::ranges::shuffle(targets, random);
    for (const std::uint32_t target : targets) ASSERT_EQ(epochs.lock(2 * target, target % 3 == 0), Verdict::kProceed);
    for (std::uint32_t target = 0; target < 2 * kMany; ++target)
        ASSERT_EQ(epochs.flush(target) == Verdict::kProceed, target % 2 == 0);
    std::ranges::shuffle(targets, random);
    for (const std::uint32_t target : targets) {
        ASSERT_EQ(epochs.access_state(), Access::kLocks);
        ASSERT_EQ(epochs.access(2 * target + 1), Verdict::kNotSynchronized);
        ASSERT_EQ(epochs.lock_had_no_check(2 * target), target % 3 == 0);
        ASSERT_EQ(epochs.unlock(2 * target), Verdict::kProceed);
        ASSERT_EQ(epochs.flush(2 * target), Verdict::kNotSynchronized);
    }
    EXPECT_EQ(epochs.access_state(), Access::kNone);
}

TEST(RmaEpoch, names_every_state_and_call) {
    std::set<std::string> names, states;
    for (std::size_t i = 0; i < kCalls; ++i) names.insert(name(static_cast<Call>(i)));
    for (std::size_t i = 0; i < kAccesses; ++i) states.insert(name(static_cast<Access>(i)));
    EXPECT_EQ(names.size(), kCalls);
    EXPECT_EQ(states.size(), kAccesses);
    EXPECT_EQ(names.count("?") + states.count("?"), 0u);
}

}  // namespace
}  // namespace coop::rma

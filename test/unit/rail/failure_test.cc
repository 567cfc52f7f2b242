// SPDX-License-Identifier: BSD-3-Clause
//
// rail/failure.h: what a channel decides in every state of a rail, at every event.
#include "coop/rail/failure.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace coop::rail {
namespace {

constexpr RailDecision kIgnore = RailDecision::kIgnore, kEndJob = RailDecision::kEndJob;

struct Row {
    RailEvent event;
    RailDecision in[kRailStates];  // opening, up, failed, closed
};

constexpr Row kTable[] = {
    {RailEvent::kPostRefused, {kIgnore, kEndJob, kIgnore, kIgnore}},
    {RailEvent::kSendError, {kIgnore, kEndJob, kIgnore, kIgnore}},
    {RailEvent::kSendFlushed, {kIgnore, kEndJob, kIgnore, kIgnore}},
    {RailEvent::kReceiveError, {kEndJob, kEndJob, kIgnore, kIgnore}},
    {RailEvent::kReceiveFlushed, {kIgnore, kIgnore, kIgnore, kIgnore}},
    {RailEvent::kQueuePairError, {kIgnore, kEndJob, kIgnore, kIgnore}},
};
static_assert(std::size(kTable) == kRailEvents);

TEST(RailFailure, is_decided_in_every_state_at_every_event) {
    std::set<RailEvent> seen;
    for (const Row& row : kTable) {
        seen.insert(row.event);
        for (std::size_t i = 0; i < kRailStates; ++i) {
            const auto state = static_cast<RailState>(i);
            EXPECT_EQ(decide(state, row.event), row.in[i]) << name(row.event) << " while " << name(state);
        }
    }
    EXPECT_EQ(seen.size(), kRailEvents);
}

TEST(RailFailure, names_every_state_and_event) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < kRailStates; ++i) names.insert(name(static_cast<RailState>(i)));
    for (std::size_t i = 0; i < kRailEvents; ++i) names.insert(name(static_cast<RailEvent>(i)));
    EXPECT_EQ(names.size(), kRailStates + kRailEvents);
    EXPECT_EQ(names.count("?"), 0u);
}

}  // namespace
}  // namespace coop::rail

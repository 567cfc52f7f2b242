// SPDX-License-Identifier: BSD-3-Clause
//
// rail/failure.h: what a channel decides in every state of a rail, at every event.
#include "coop/rail/failure.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace coop::rail {
namespace {

constexpr RailDecision kIgnore = RailDecision::kIgnore, kEndJob = RailDecision::kEndJob,
                       kRepair = RailDecision::kRepair;

struct Row {
    RailEvent event;
    RailDecision in[kRailStates];  // opening, up, failed, closed
    RailDecision up_if_it_repairs;
};

constexpr Row kTable[] = {
    {RailEvent::kPostRefused, {kIgnore, kEndJob, kIgnore, kIgnore}, kRepair},
    {RailEvent::kSendError, {kIgnore, kEndJob, kIgnore, kIgnore}, kRepair},
    {RailEvent::kSendFlushed, {kIgnore, kEndJob, kIgnore, kIgnore}, kRepair},
    {RailEvent::kSendRefused, {kIgnore, kEndJob, kIgnore, kIgnore}, kEndJob},
    {RailEvent::kReceiveError, {kEndJob, kEndJob, kIgnore, kIgnore}, kEndJob},
    {RailEvent::kReceiveFlushed, {kIgnore, kIgnore, kIgnore, kIgnore}, kRepair},
    {RailEvent::kQueuePairError, {kIgnore, kEndJob, kIgnore, kIgnore}, kRepair},
};
static_assert(std::size(kTable) == kRailEvents);

TEST(RailFailure, is_decided_in_every_state_at_every_event) {
    std::set<RailEvent> seen;
    for (const Row& row : kTable) {
        seen.insert(row.event);
        for (std::size_t i = 0; i < kRailStates; ++i) {
            const auto state = static_cast<RailState>(i);
            const RailDecision repairs = state == RailState::kUp ? row.up_if_it_repairs : row.in[i];
            EXPECT_EQ(decide(state, row.event), row.in[i]) << name(row.event) << " while " << name(state);
            EXPECT_EQ(decide(state, row.event, true), repairs) << name(row.event) << " while " << name(state);
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

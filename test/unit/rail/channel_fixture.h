// SPDX-License-Identifier: BSD-3-Clause
//
// A channel over fake queue pairs, for tests.
#pragma once

#include "coop/rail/channel.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace coop::rail {
using sched::RailIndex;

struct FakeRequest {
    std::uint32_t bytes = 0;
};

// Keeps what is posted until the test completes it.
struct FakeQueuePair {
    using Request = FakeRequest;
    struct Posted {
        void* id;
        bool completes;
    };

    int post(Request&, void* id, bool completes) noexcept {
        if (refuses != 0) return refuses;
        posted.push_back({id, completes});
        return 0;
    }
    int post_empty_write(void* id) noexcept {
        Request request;
        return post(request, id, true);
    }

    std::deque<Posted> posted;
    int refuses = 0;  // an errno
};

struct FakeWork {
    ListNode node;
    std::uint64_t posted_ns = sched::kNotMeasured;
    std::uint32_t bytes = 100;
    std::uint32_t requests = 1;
    sched::SequenceNumber psn = 0;
    WorkKind kind = WorkKind::kSend;
    RailIndex rail = 0;
    bool ordered = false, wants_credit = false, has_token = false, waits = false, apart = false;
    bool follows = false, displaced = false, in_order = false;
    std::uint32_t turn = 0;
};

using FakeRail = Rail<FakeQueuePair, FakeWork>;

struct FakeChannel : Channel<FakeChannel, FakeRail, FakeWork> {
    void prepare(FakeWork& message) {
        message.wants_credit = !has_ring;
        prepared.push_back(message.psn);
    }
    void build(FakeRail&, FakeWork& work, FakeRequest& request) { request.bytes = work.bytes; }
    void on_refused(FakeRail& rail, FakeWork& work, int error) {
        refused.push_back(&work);
        last_errno = error;
        decision = on_rail_event(&rail, RailEvent::kPostRefused);
    }
    std::optional<RailIndex> rail_for(const FakeWork& work) {
        if (!has_usable_rail()) return std::nullopt;
        return scheduler->rail_of_small(work.bytes, direction_of(work.kind));
    }
    std::optional<RailIndex> rail_in_order(const FakeWork&, std::optional<RailIndex> taken) {
        for (const FakeRail& rail : rails)
            if ((!taken || rail.number() == *taken) && reach_atomics[rail.number()]) return rail.number();
        return std::nullopt;
    }

    std::vector<bool> reach_atomics{true, true, true, true};
    bool has_ring = false;  // messages need no credit
    std::vector<sched::SequenceNumber> prepared;
    std::vector<FakeWork*> refused;
    int last_errno = 0;
    std::optional<RailDecision> decision;
};

constexpr std::uint32_t kDepth = 16;

// A channel of rails in these states, each with a send queue of kDepth and two read tokens.
class ChannelTest : public testing::Test {
protected:
    void open(std::vector<RailState> states, bool counts_credits = false) {
        sched::RailSet set;
        for (const RailState state : states) {
            auto rail = std::make_unique<FakeRail>();
            rail->state = state;
            rail->set_depth(kDepth);
            rail->max_inline = 64;
            rail->counts_credits = counts_credits;
            rail->own_receives = sched::ReceiveCredits(32);
            rail->reads.reset(2);
            FakeRail* const put = channel.rails.put(std::move(rail));
            put->mark.rail = static_cast<RailIndex>(channel.rails.numbers() - 1);
            ASSERT_TRUE(set.add({}, state == RailState::kUp ? sched::RailState::kUp : sched::RailState::kDown));
        }
        config.small_policy = sched::Policy::kRoundRobin;
        channel.scheduler.emplace(config, set);
    }

    std::size_t posted(RailIndex rail) const { return channel.rails[rail].qp.posted.size(); }
    const sched::Rail& known(RailIndex rail) const { return channel.scheduler->rails()[rail]; }

    FakeWork& new_work(WorkKind kind = WorkKind::kSend) {
        works.push_back(std::make_unique<FakeWork>());
        works.back()->kind = kind;
        return *works.back();
    }
    void send(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) channel.send(new_work());
    }
    // Gives the rail a queue pair for reads, as open() made the rail.
    FakeRail& add_reader(RailIndex number, RailState state = RailState::kUp) {
        auto reader = std::make_unique<FakeRail>();
        reader->state = state;
        reader->set_depth(kDepth);
        reader->reads.reset(2);
        reader->mark.rail = number;
        channel.rails.put_reader(number, std::move(reader));
        return *channel.rails.any_reader(number);
    }
    FakeWork& submit_read(RailIndex rail, bool apart = true) {
        FakeWork& read = new_work(WorkKind::kGet);
        read.apart = apart;
        read.rail = rail;
        channel.submit_stripe(read, true);
        return read;
    }
    bool send_inline(std::uint32_t bytes = 32) {
        FakeRail* const rail = channel.rail_for_inline(bytes);
        if (rail == nullptr || !channel.take_credit(*rail)) return false;
        FakeRequest request;
        channel.post_inline(*rail, request, bytes, channel.window.take());
        return true;
    }

    // Completes the oldest request that asks for a completion. Like a queue pair, it takes those before it off the send
    // queue without telling.
    void complete(RailIndex rail) {
        auto& queue = channel.rails[rail].qp.posted;
        while (!queue.front().completes) queue.pop_front();
        auto& work = *static_cast<FakeWork*>(queue.front().id);
        queue.pop_front();
        if (work.kind == WorkKind::kMark) return channel.on_mark_completed(channel.rails[rail]);
        channel.on_completed(work, 1);
    }
    // The oldest request fails; every later one is flushed.
    std::vector<RailDecision> fail(RailIndex rail) {
        std::vector<RailDecision> decisions;
        auto& queue = channel.rails[rail].qp.posted;
        for (RailEvent event = RailEvent::kSendError; !queue.empty(); event = RailEvent::kSendFlushed) {
            const auto& work = *static_cast<FakeWork*>(queue.front().id);
            queue.pop_front();
            decisions.push_back(channel.on_failed(work, event));
        }
        return decisions;
    }

    sched::SchedConfig config;
    std::vector<std::unique_ptr<FakeWork>> works;
    FakeChannel channel;
};

constexpr RailState kUp = RailState::kUp, kClosed = RailState::kClosed;

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
//
// The channel of one process to another: the product's scheduler over the rails
// that the product's pairing finds, and what waits on each rail. A rail is a
// reliable queue pair: its stripes go one after the other.
//
// Of n processes there are n·n channels, and a scheduler is a few KiB. Where they
// would take too much memory, a channel that is idle is kept as its weights (16
// bits each) and made again from those. What is forgotten then: the turns of small
// messages, and how long ago a rail was measured, so that a channel never sends a
// probe. That changes nothing as long as fewer messages pass than lie between two
// probes.
//
// Units: bytes, nanoseconds. Threading: none. Ownership: the table's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "coop/sched/scheduler.h"
#include "sim/policies.h"

namespace coop::sim {

// The rails between two processes with one port each of this LMC, by path/pairing.h; their path bits are the k of a route.
sched::RailSet rails_between(std::uint32_t lmc, std::uint32_t paths, double bytes_per_s);

struct Channel {
    std::uint32_t from = 0, to = 0;         // ranks
    std::optional<sched::SchedConfig> own;  // with the weights it had before it was idle
    std::optional<sched::Scheduler> scheduler;
    std::array<std::uint32_t, sched::kMaxRails> first, last;  // stripes queued on each rail; kNone
    std::uint32_t first_rts = 0, last_rts = 0;  // messages that were announced and not yet asked for; kNone
    std::uint32_t open = 0;                     // messages
    std::uint32_t routes_seen = 0;              // the generation of the routes that the states of its rails are about
    double one_way_ns = 0;
};

class ChannelTable {
public:
    // `memory_bytes`: what schedulers may take.
    ChannelTable(const Scheduling& setup, const sched::RailSet& rails, std::uint32_t ranks, std::uint64_t memory_bytes);

    // The channel, made if it is not there; `is_new`: as it was made now.
    Channel& open(std::uint32_t from, std::uint32_t to, bool& is_new);
    // One message less.
    void close(Channel& channel);

    // Whether it is the channel's first message.
    bool first_use(std::uint32_t from, std::uint32_t to);

    bool keeps_weights_only() const noexcept { return !kept_.empty(); }

private:
    std::size_t key(std::uint32_t from, std::uint32_t to) const noexcept { return std::size_t{from} * ranks_ + to; }
    Channel& take(std::size_t key);
    void build(Channel& channel, std::size_t key);
    void keep(Channel& channel, std::size_t key);

    Scheduling setup_;
    sched::RailSet rails_;
    std::uint32_t ranks_;
    std::vector<std::uint32_t> place_;  // by key: in channels_, or kNone
    std::deque<Channel> channels_;
    std::vector<std::uint32_t> free_;
    std::vector<bool> used_;             // by key
    std::vector<std::uint16_t> kept_;    // by key and rail; empty: all channels stay
};

}  // namespace coop::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// A channel from one process to another: btl/coopib's scheduler (coop/sched) over the
// rails that its pairing (coop/path) selects, and the queue of each rail. A rail is a
// reliable queue pair: its stripes are sent one after the other.
//
// n processes have n·n channels, and a scheduler takes a few KiB. If all channels
// would take too much memory, an idle channel is reduced to its weights (16 bits each)
// and rebuilt from them later. This forgets whose turn it is among the rails for small
// messages, and how many messages have skipped a rail since it was last measured, so
// that such a channel sends no probes. The results are the same as long as a channel
// carries fewer messages than there are between two probes.
//
// Units: bytes, nanoseconds. Threading: none. Ownership: ChannelTable.
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

// The rails between two processes with one port each and this LMC, from path/pairing.h. RailInfo::path of a rail is the
// path number k of routes.h.
sched::RailSet rails_between(std::uint32_t lmc, std::uint32_t paths, double bytes_per_s);

struct Channel {
    std::uint32_t from = 0, to = 0;         // ranks
    std::optional<sched::SchedConfig> own;  // with the weights from before it was idle
    std::optional<sched::Scheduler> scheduler;
    std::array<std::uint32_t, sched::kMaxRails> first, last;  // queued stripes of each rail, or kNone
    std::uint32_t first_rts = 0, last_rts = 0;                // messages announced but not yet requested, or kNone
    std::uint32_t first_unsent = 0, last_unsent = 0;          // messages that wait for an address, or kNone
    std::uint32_t addresses = 0;                              // calls of which the receiver announced its address
    std::uint32_t early = 0;                                  // direct messages for later steps of the receiver
    std::uint32_t open = 0;                                   // open messages
    std::uint32_t routes_seen = 0;                            // generation of the routes that its rail states refer to
    double one_way_ns = 0;
};

class ChannelTable {
public:
    // `memory_bytes`: limit for all schedulers.
    ChannelTable(const Scheduling& setup, const sched::RailSet& rails, std::uint32_t ranks, std::uint64_t memory_bytes);

    // Returns the channel. Makes it, or rebuilds it from its weights, if needed; `is_new` is then true. The caller
    // counts its messages in Channel::open.
    Channel& open(std::uint32_t from, std::uint32_t to, bool& is_new);
    // Ends a message: decrements Channel::open. A channel without open messages may be reduced to its weights.
    void close(Channel& channel);

    // True for the first message of the channel.
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
    std::vector<std::uint32_t> place_;  // by key: index into channels_, or kNone
    std::deque<Channel> channels_;
    std::vector<std::uint32_t> free_;
    std::vector<bool> used_;           // by key
    std::vector<std::uint16_t> kept_;  // by key and rail; empty: no channel is reduced to its weights
};

}  // namespace coop::sim

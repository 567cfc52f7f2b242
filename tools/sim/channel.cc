// SPDX-License-Identifier: BSD-3-Clause
#include "sim/channel.h"

#include <algorithm>
#include <cmath>

#include "coop/path/pairing.h"
#include "sim/topology.h"

namespace coop::sim {
namespace {

constexpr double kKeptTotal = 60'000;  // the weights of a channel at rest sum up to this

path::PortList port_with(std::uint32_t lmc, std::uint32_t paths) {
    path::PortRecord port;
    port.lmc = static_cast<std::uint8_t>(lmc);
    port.lid = static_cast<std::uint16_t>(1u << lmc);
    path::PortList list;
    list.limits.max_paths = static_cast<std::uint16_t>(paths);
    list.ports.push_back(port);
    return list;
}

}  // namespace

sched::RailSet rails_between(std::uint32_t lmc, std::uint32_t paths, double bytes_per_s) {
    const path::PortList port = port_with(lmc, paths);
    sched::RailSet rails;
    for (const path::PathChoice& choice : path::choose_paths(port, port)) {
        sched::RailInfo info;
        info.path = choice.remote_bits;
        info.bytes_per_s = static_cast<std::uint64_t>(bytes_per_s);
        if (!rails.add(info)) break;
    }
    return rails;
}

ChannelTable::ChannelTable(const Scheduling& setup, const sched::RailSet& rails, std::uint32_t ranks,
                           std::uint64_t memory_bytes)
    : setup_(setup), rails_(rails), ranks_(ranks), place_(std::size_t{ranks} * ranks, kNone),
      used_(std::size_t{ranks} * ranks, false) {
    if (std::uint64_t{ranks} * ranks * sizeof(Channel) > memory_bytes) kept_.assign(place_.size() * rails.size(), 0);
}

Channel& ChannelTable::open(std::uint32_t from, std::uint32_t to, bool& is_new) {
    const std::size_t at = key(from, to);
    is_new = place_[at] == kNone;
    Channel& channel = is_new ? take(at) : channels_[place_[at]];
    if (is_new) {
        channel.from = from;
        channel.to = to;
        build(channel, at);
    }
    return channel;
}

Channel& ChannelTable::take(std::size_t at) {
    if (free_.empty()) {
        place_[at] = static_cast<std::uint32_t>(channels_.size());
        return channels_.emplace_back();
    }
    place_[at] = free_.back();
    free_.pop_back();
    return channels_[place_[at]];
}

// Starts with the weights that keep() saved, if there are any.
void ChannelTable::build(Channel& channel, std::size_t at) {
    channel.first.fill(kNone);
    channel.last.fill(kNone);
    channel.first_rts = channel.last_rts = channel.first_unsent = channel.last_unsent = kNone;
    channel.addresses = channel.early = 0;
    channel.own.reset();
    const std::size_t rails = rails_.size();
    if (!kept_.empty() && kept_[at * rails] != 0) {
        channel.own = setup_.config;
        channel.own->weights.count = rails;
        for (std::size_t i = 0; i < rails; ++i) channel.own->weights.of[i] = kept_[at * rails + i];
    }
    channel.scheduler.emplace(channel.own ? *channel.own : setup_.config, rails_);
}

// Settles a complete round first, as the next message would find it (feedback.h).
void ChannelTable::keep(Channel& channel, std::size_t at) {
    static_cast<void>(channel.scheduler->make_schedule(0, sched::Marker::kNone, UINT64_MAX));
    const std::size_t rails = rails_.size();
    for (std::size_t i = 0; i < rails; ++i) {
        const double weight = channel.scheduler->rails()[static_cast<sched::RailIndex>(i)].weight / sched::kTotalWeight;
        kept_[at * rails + i] = static_cast<std::uint16_t>(std::max(1.0, std::round(weight * kKeptTotal)));
    }
}

void ChannelTable::close(Channel& channel) {
    if (--channel.open != 0 || kept_.empty()) return;
    const std::size_t at = key(channel.from, channel.to);
    keep(channel, at);
    free_.push_back(place_[at]);
    place_[at] = kNone;
}

bool ChannelTable::first_use(std::uint32_t from, std::uint32_t to) {
    const std::size_t at = key(from, to);
    if (used_[at]) return false;
    used_[at] = true;
    return true;
}

}  // namespace coop::sim

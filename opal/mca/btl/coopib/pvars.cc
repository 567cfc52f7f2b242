// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables: the rows of variables.h, computed from the counters of rails, channels and HCAs.
#include "pvars.h"

#include <algorithm>
#include <numeric>

#include "migration.h"
#include "module.h"
#include "progress.h"
#include "variables.h"

namespace coop::ib {
namespace {

constexpr double kMillion = 1e6;  // unit of rail_weight

std::uint64_t of_rail(const Channel& channel, const Rail& rail, Quantity quantity) noexcept {
    const rail::RailCounts counts = counts_of(channel, rail);
    const RailRepair repair = rail.number() < channel.repair.size() ? channel.repair[rail.number()] : RailRepair();
    switch (quantity) {
    case Quantity::kBytes: return counts.bytes;
    case Quantity::kSends: return counts.sends;
    case Quantity::kStripes: return counts.stripes;
    case Quantity::kWaits: return counts.waits;
    case Quantity::kReadWaits: return counts.read_waits;
    case Quantity::kEarly: return rail.early;
    case Quantity::kFailures: return repair.failures;
    case Quantity::kRecoveries: return repair.recoveries;
    case Quantity::kRepeated: return repair.repeated;
    case Quantity::kRepeatedBytes: return repair.repeated_bytes;
    case Quantity::kMoves: return moves_of(channel, rail);
    case Quantity::kWeight:
        return static_cast<std::uint64_t>(kMillion * channel.scheduler->rails().share(rail.number()));
    case Quantity::kWhole:
    case Quantity::kStriped:
    case Quantity::kOutOfOrder:
    case Quantity::kConnectWaits:
    case Quantity::kRepeats:
    case Quantity::kRingMessages:
    case Quantity::kCreditMessages:
    case Quantity::kConnections:
    case Quantity::kRailsUp:
    case Quantity::kRailsArmed:
    case Quantity::kDuplicates:
    case Quantity::kPartitions:
    case Quantity::kWindowWaits:
    case Quantity::kRegistrations:
    case Quantity::kEvents:
    case Quantity::kEarlyCopies:
    case Quantity::kEarlyBytes:
    case Quantity::kMostEarlyBytes: break;
    }
    return 0;
}

std::uint64_t armed_rails(const Channel& channel) {
    std::uint64_t armed = 0;
    for (Rail& rail : channel.rails)
        if (module.migrations && module.migrations->is_armed(rail, now_ns())) ++armed;
    return armed;
}

std::uint64_t of_channel(const Endpoint& endpoint, Quantity quantity) {
    const Channel& channel = *endpoint.channel;
    const auto sum = [](const auto& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); };
    switch (quantity) {
    case Quantity::kWhole: return sum(channel.whole);
    case Quantity::kStriped: return sum(channel.striped);
    case Quantity::kOutOfOrder: return channel.out_of_order;
    case Quantity::kConnectWaits: return channel.connect_waits;
    case Quantity::kRepeats: return module.connections->repeated(endpoint.id);
    case Quantity::kRingMessages: return channel.ring_messages;
    case Quantity::kCreditMessages: return channel.credit_messages;
    case Quantity::kConnections: return 1;
    case Quantity::kRailsUp: return sched::count_of(channel.rails.up());
    case Quantity::kRailsArmed: return armed_rails(channel);
    case Quantity::kDuplicates: return channel.duplicates;
    case Quantity::kPartitions: return channel.partitions;
    case Quantity::kWindowWaits: return channel.window_waits;
    case Quantity::kBytes:
    case Quantity::kSends:
    case Quantity::kStripes:
    case Quantity::kWaits:
    case Quantity::kReadWaits:
    case Quantity::kEarly:
    case Quantity::kFailures:
    case Quantity::kRecoveries:
    case Quantity::kRepeated:
    case Quantity::kRepeatedBytes:
    case Quantity::kMoves:
    case Quantity::kWeight:
    case Quantity::kRegistrations:
    case Quantity::kEvents:
    case Quantity::kEarlyCopies:
    case Quantity::kEarlyBytes:
    case Quantity::kMostEarlyBytes: break;
    }
    return 0;
}

// A handle may be allocated before the HCAs are open, so its length does not depend on them.
int length_of(const Variable& v) noexcept {
    switch (v.scope) {
    case Scope::kProcess: return 1;
    case Scope::kHca: return static_cast<int>(kMaxHcas);
    case Scope::kRail: return static_cast<int>(sched::kMaxRails);
    }
    return 1;
}

int notify(mca_base_pvar_t* variable, mca_base_pvar_event_t event, void*, int* count) {
    if (event == MCA_BASE_PVAR_HANDLE_BIND) *count = length_of(*static_cast<const Variable*>(variable->ctx));
    return OPAL_SUCCESS;
}

void add_channel(const Endpoint& endpoint, const Variable& v, unsigned long long* values) {
    if (v.scope == Scope::kProcess) {
        values[0] += of_channel(endpoint, v.quantity);
        return;
    }
    const Channel& channel = *endpoint.channel;
    for_each_used_rail(channel, [&](const Rail& rail) {
        values[v.scope == Scope::kHca ? rail.local_hca : rail.number()] += of_rail(channel, rail, v.quantity);
    });
}

// Reads a quantity that is counted per process; returns false if it is counted per peer.
bool read_own(Quantity quantity, unsigned long long* values) {
    const bool of_hca = is_of_hca(quantity);
    for (std::size_t i = 0; of_hca && i < module.uses.size(); ++i)
        values[i] = quantity == Quantity::kEvents ? module.connections->events(i) : module.uses[i].registrations;
    if (quantity == Quantity::kEarlyCopies) values[0] = module.early_copies.count;
    if (quantity == Quantity::kEarlyBytes) values[0] = module.early_copies.bytes;
    if (quantity == Quantity::kMostEarlyBytes) values[0] = module.early_copies.most_bytes;
    return is_own(quantity);
}

int read(const mca_base_pvar_t* variable, void* value, void*) {
    const auto& v = *static_cast<const Variable*>(variable->ctx);
    auto* values = static_cast<unsigned long long*>(value);
    std::fill_n(values, length_of(v), 0);
    unsigned long long channels = 0;
    Guard guard(module);
    if (read_own(v.quantity, values)) return OPAL_SUCCESS;
    for (const auto& [id, endpoint] : module.endpoints) {
        if (!endpoint->channel || endpoint->channel->state != ChannelState::kConnected) continue;
        add_channel(*endpoint, v, values);
        ++channels;
    }
    if (is_level(v.quantity) && channels > 0)
        std::for_each_n(values, length_of(v), [&](auto& each) { each /= channels; });
    return OPAL_SUCCESS;
}

int class_of(Quantity quantity) noexcept {
    if (is_high_water(quantity)) return MCA_BASE_PVAR_CLASS_HIGHWATERMARK;
    return is_level(quantity) ? MCA_BASE_PVAR_CLASS_LEVEL : MCA_BASE_PVAR_CLASS_COUNTER;
}

}  // namespace

void register_performance_variables(const mca_base_component_t& component) {
    for (const Variable& v : kVariables)
        mca_base_component_pvar_register(
            &component, v.name, v.help, OPAL_INFO_LVL_4, class_of(v.quantity), MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
            nullptr, MCA_BASE_VAR_BIND_NO_OBJECT,
            static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS), read,
            nullptr, notify, const_cast<Variable*>(&v));
}

}  // namespace coop::ib

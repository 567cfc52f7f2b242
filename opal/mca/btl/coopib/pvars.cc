// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables: the rows of variables.h, read off the rails.
#include <algorithm>

#include "component.h"
#include "variables.h"

namespace coop::ib {
namespace {

std::uint64_t of_rail(const Rail& rail, Counter counter) noexcept {
    switch (counter) {
    case Counter::kBytes: return rail.sent_bytes;
    case Counter::kSends: return rail.sends;
    case Counter::kStripes: return rail.stripes;
    case Counter::kWaits: return rail.waits;
    case Counter::kOutOfOrder:
    case Counter::kRingMessages:
    case Counter::kCreditMessages:
    case Counter::kConnections:
    case Counter::kCount: break;
    }
    return 0;
}

std::uint64_t of_channel(const Channel& channel, Counter counter) noexcept {
    switch (counter) {
    case Counter::kOutOfOrder: return channel.out_of_order;
    case Counter::kRingMessages: return channel.ring_messages;
    case Counter::kCreditMessages: return channel.credit_messages;
    case Counter::kConnections: return 1;
    case Counter::kBytes:
    case Counter::kSends:
    case Counter::kStripes:
    case Counter::kWaits:
    case Counter::kCount: break;
    }
    return 0;
}

// A handle may be older than the HCAs are, so its length cannot follow them:
// the elements behind the last HCA stay 0.
int length_of(const Variable& v) noexcept { return v.per_hca ? static_cast<int>(kMaxHcas) : 1; }

int notify(mca_base_pvar_t* variable, mca_base_pvar_event_t event, void*, int* count) {
    if (event == MCA_BASE_PVAR_HANDLE_BIND) *count = length_of(*static_cast<const Variable*>(variable->ctx));
    return OPAL_SUCCESS;
}

int read(const mca_base_pvar_t* variable, void* value, void*) {
    const auto& v = *static_cast<const Variable*>(variable->ctx);
    auto* values = static_cast<unsigned long long*>(value);
    std::fill_n(values, length_of(v), 0);
    Guard guard(module);
    for (const auto& [id, endpoint] : module.endpoints) {
        if (!endpoint->channel || endpoint->channel->state != ChannelState::kConnected) continue;
        if (!v.per_hca) values[0] += of_channel(*endpoint->channel, v.counter);
        else
            for (const auto& rail : endpoint->channel->rails) values[rail->local_hca] += of_rail(*rail, v.counter);
    }
    return OPAL_SUCCESS;
}

}  // namespace

void register_performance_variables(const mca_base_component_t& component) {
    for (const Variable& v : kVariables)
        mca_base_component_pvar_register(&component, v.name, v.help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
                                         MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, MCA_BASE_VAR_BIND_NO_OBJECT,
                                         static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS), read,
                                         nullptr, notify, const_cast<Variable*>(&v));
}

}  // namespace coop::ib

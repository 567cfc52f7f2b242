// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables: pml_coop_messages_<row>, pml_coop_bytes_<row>
// from the usage table, the counters and gauges of coop/base/counters.h, and the
// counters of coop/async/counts.h, and the findings of coop/node/lane_limit.h.
#include <string>

#include "lane_costs.h"
#include "report.h"

namespace coop::pml {
namespace {

int read_messages(const mca_base_pvar_t* variable, void* value, void*) {
    const auto row = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(variable->ctx));
    *static_cast<unsigned long long*>(value) = module.usage.messages(row);
    return OMPI_SUCCESS;
}

int read_bytes(const mca_base_pvar_t* variable, void* value, void*) {
    const auto row = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(variable->ctx));
    *static_cast<unsigned long long*>(value) = module.usage.bytes(row);
    return OMPI_SUCCESS;
}

int read_counter(const mca_base_pvar_t* variable, void* value, void*) {
    const auto& v = *static_cast<const Variable*>(variable->ctx);
    const std::uint64_t now = value_of(v, module.counters);
    *static_cast<unsigned long long*>(value) = v.counter == Counter::kCopyTime ? module.ticks.to_ns(now) : now;
    return OMPI_SUCCESS;
}

int read_handler(const mca_base_pvar_t* variable, void* value, void*) {
    const auto& v = *static_cast<const async::HandlerVariable*>(variable->ctx);
    *static_cast<unsigned long long*>(value) = (module.handler.counts().*v.count).load(std::memory_order_relaxed);
    return OMPI_SUCCESS;
}

using Read = int (*)(const mca_base_pvar_t*, void*, void*);

int read_lane(const mca_base_pvar_t* variable, void* value, void*) {
    const auto& v = *static_cast<const node::LaneVariable*>(variable->ctx);
    *static_cast<unsigned long long*>(value) = (lane_findings().*v.value).load(std::memory_order_relaxed);
    return OMPI_SUCCESS;
}

void add(const mca_base_component_t& component, const std::string& name, const std::string& help, int kind, Read read,
         const void* context) {
    mca_base_component_pvar_register(
        &component, name.c_str(), help.c_str(), OPAL_INFO_LVL_4, kind, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr,
        MCA_BASE_VAR_BIND_NO_OBJECT,
        static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS), read, nullptr,
        nullptr, const_cast<void*>(context));
}

int class_of(VariableKind kind) noexcept {
    switch (kind) {
    case VariableKind::kTotal: return MCA_BASE_PVAR_CLASS_COUNTER;
    case VariableKind::kLevel: return MCA_BASE_PVAR_CLASS_LEVEL;
    case VariableKind::kHighWater: return MCA_BASE_PVAR_CLASS_HIGHWATERMARK;
    }
    return MCA_BASE_PVAR_CLASS_GENERIC;
}

}  // namespace

void register_performance_variables(const mca_base_component_t& component) noexcept {
    for (std::uintptr_t row = 0; row < rndv::kRows; ++row) {
        const std::string name = rndv::name(static_cast<rndv::Row>(row));
        const auto* context = reinterpret_cast<const void*>(row);
        add(component, "messages_" + name, "Messages that this process sent by " + name + ".",
            MCA_BASE_PVAR_CLASS_COUNTER, read_messages, context);
        add(component, "bytes_" + name, "Bytes of the messages that this process sent by " + name + ".",
            MCA_BASE_PVAR_CLASS_COUNTER, read_bytes, context);
    }
    for (const Variable& v : kVariables) add(component, v.name, v.help, class_of(v.kind), read_counter, &v);
    for (const async::HandlerVariable& v : async::kHandlerVariables)
        add(component, v.name, v.help, MCA_BASE_PVAR_CLASS_COUNTER, read_handler, &v);
    for (const node::LaneVariable& v : node::kLaneVariables)
        add(component, v.name, v.help, MCA_BASE_PVAR_CLASS_LEVEL, read_lane, &v);
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters and performance variables of a component, from its tables to Open MPI and back. Include Open MPI's headers
// first (compat.h of the component).
//
// Threading: by one thread, before the component is used.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "coop/base/fault.h"
#include "coop/base/param_table.h"
#include "coop/base/tally.h"

namespace coop {

// Open MPI stores the values in `given`, which must stay.
template <class Config>
void register_parameters(const mca_base_component_t& component, const ParamTable<Config>& table,
                         Config& given) noexcept {
    for (std::size_t i = 0; i < table.rows().size(); ++i) {
        const ParamRow& row = table.rows()[i];
        mca_base_component_var_register(&component, row.name, help_text(row).c_str(),
                                        is_given_as_text(row) ? MCA_BASE_VAR_TYPE_STRING : MCA_BASE_VAR_TYPE_INT64_T,
                                        nullptr, 0, static_cast<mca_base_var_flag_t>(0),
                                        static_cast<mca_base_var_info_lvl_t>(OPAL_INFO_LVL_1 + row.level - 1),
                                        MCA_BASE_VAR_SCOPE_READONLY, table.set_default(given, i));
    }
}

inline int read_counter(const mca_base_pvar_t* variable, void* value, void*) {
    *static_cast<unsigned long long*>(value) = static_cast<const Tally*>(variable->ctx)->read();
    return OMPI_SUCCESS;
}

inline void register_counter(const mca_base_component_t& component, const std::string& name, const std::string& help,
                             Tally& counter) noexcept {
    mca_base_component_pvar_register(
        &component, name.c_str(), help.c_str(), OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, MCA_BASE_VAR_BIND_NO_OBJECT,
        static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS), read_counter,
        nullptr, nullptr, &counter);
}

// Takes over what was given, and ends the job by `refused` if a value is not allowed. `process` has given, config and
// faults.
template <class Process>
void take_parameters(Process& process, void (*refused)(const ParamError&)) {
    process.config = process.given;
    if (const auto error = check(process.config)) refused(*error);
    const char* fault = process.config.fault ? process.config.fault : "";
    auto faults = Faults::parse(fault);
    if (auto* why = std::get_if<std::string>(&faults)) refused({"fault", fault, *why});
    process.faults = std::move(std::get<Faults>(faults));
}

}  // namespace coop

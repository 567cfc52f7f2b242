// SPDX-License-Identifier: BSD-3-Clause
//
// The component, and what only its start needs.
#pragma once

#include "module.h"

extern "C" __attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_coopib_component;

namespace coop::ib {

void keep_near_hcas(Module& m);                    // nearness.cc; as many as a process may use
std::optional<ParamError> order_ports(Module& m);  // nearness.cc; once the HCAs and Connections are open
void publish_ports(Module& m);                    // procs.cc

void register_performance_variables(const mca_base_component_t& component);  // pvars.cc
void print_report(const Module& m);                                          // report.cc

// diagnose.cc
void parameter_out_of_range(const ParamError& error);
void not_there(const Module& m, const std::string& why);  // what if_include or if_exclude names
void no_device(const std::string& why);
void memory_locked(const Module& m, std::uint64_t needed_bytes);
void cannot_start(const std::string& why);
void answers_by_polling(const std::string& why);
void too_many_hcas(std::size_t all, const std::string& used, const std::string& left_out);
[[noreturn]] void architectures_differ(const opal_proc_t* peer, std::uint32_t theirs);
[[noreturn]] void versions_differ(const opal_proc_t* peer, std::uint32_t theirs);
[[noreturn]] void sizes_differ(const opal_proc_t* peer, std::uint32_t theirs);

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// User-facing error messages and notices. The texts are in the help file.
//
// Threading: under Module::lock, or at start, when there is only one thread; only the
// asynchronous handler calls interrupts_lost(), without the lock. Errors: the functions
// marked [[noreturn]] end the job.
#pragma once

#include <cstdint>
#include <string>

#include "coop/rail/verbs/async_events.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// Problems found at start.
void parameter_out_of_range(const ParamError& error);
void not_there(const Module& m, const std::string& why);  // an HCA or port that if_include or if_exclude names
void no_device(const std::string& why);
void memory_locked(const Module& m, std::uint64_t needed_bytes);
void cannot_start(const std::string& why);
void answers_by_polling(const std::string& why);
void too_many_hcas(std::size_t all, const std::string& used, const std::string& left_out);

// A peer that this process cannot work with.
[[noreturn]] void architectures_differ(const opal_proc_t* peer, std::uint32_t theirs);
[[noreturn]] void versions_differ(const opal_proc_t* peer, std::uint32_t theirs);
[[noreturn]] void sizes_differ(const opal_proc_t* peer, std::uint32_t theirs);
[[noreturn]] void cannot_connect(const opal_proc_t* peer, const std::string& why);
[[noreturn]] void rails_differ(const opal_proc_t* peer, const ParamError& error);
[[noreturn]] void no_atomics(const Endpoint& endpoint);
[[noreturn]] void damaged(const char* field, const opal_proc_t* peer, std::uint64_t value);

// Rails and HCAs that have failed.
struct RailTrouble {
    const char* operation;  // the operation that failed, as printed
    std::uint32_t hca;
    const char* status;
    std::uint32_t vendor_code;
};
const char* operation_of(const Work& work) noexcept;
[[noreturn]] void atomic_in_doubt(const Endpoint& endpoint);
[[noreturn]] void cannot_repeat(const Endpoint& endpoint);
[[noreturn]] void partition_too_long(const Endpoint& endpoint, std::int64_t seconds);
[[noreturn]] void rail_failed(const Module& m, const Endpoint& endpoint, const RailTrouble& trouble);
[[noreturn]] void hca_failed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event);

// Notices. A process reports each at most once, or only one process of the node reports it.
void rail_lost(const Channel& channel, sched::RailIndex rail, const char* why);
void rail_back(const Channel& channel, sched::RailIndex rail, std::uint64_t away_ns);
void rail_moved(const Channel& channel, const Rail& rail, const Moved& moved);
void path_not_loaded(const Channel& channel, const Rail& rail, const char* why);
void partitioned(const Endpoint& endpoint, std::int64_t seconds);
void partition_over(const Endpoint& endpoint, std::uint64_t lasted_ns);
void port_changed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event);
void fewer_rails(const opal_proc_t* peer, std::size_t open, std::size_t all);
void rail_is_silent(const opal_proc_t* peer, const std::string& rail, std::size_t silent);
void peer_is_late(const opal_proc_t* peer, std::int64_t seconds);
void other_partition(const opal_proc_t* peer, const std::string& why);
void interrupts_lost(const char* hca) noexcept;

}  // namespace coop::ib

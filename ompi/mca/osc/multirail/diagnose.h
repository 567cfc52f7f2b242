// SPDX-License-Identifier: BSD-3-Clause
//
// User-facing messages, from the help file. Those that do not return end the job.
#pragma once

#include "compat.h"
#include "coop/base/param.h"
#include "coop/rma/packet.h"

namespace coop::osc {

// A packet that is damaged, contradicts the state of its window, or leads outside of it.
[[noreturn]] void wrong_packet(const rma::Packet& packet, const char* what);
[[noreturn]] void transport_failed(const mca_btl_base_module_t& btl, const char* operation, int error);
// A message of the PML that carries a long put or get.
[[noreturn]] void message_failed(const char* operation, int error);
// Open MPI could not read whether another process uses the component.
[[noreturn]] void modex_failed(std::uint32_t rank, int error);
[[noreturn]] void out_of_memory(const char* what);
[[noreturn]] void parameter_out_of_range(const ParamError& error);

// A copy to or from the memory of a process of the node, `rank` of the window, which worked when the window was made.
[[noreturn]] void copy_failed(std::uint32_t rank, int error);
// The kernel does not permit such copies. Says so once.
void copies_refused(int error);

// Why a window could not be made. MPI reports only that it could not.
void cannot_create(const char* why);

}  // namespace coop::osc

// SPDX-License-Identifier: BSD-3-Clause
//
// User-facing errors. Each prints one message of the help file and ends the job.
#pragma once

#include "compat.h"
#include "coop/base/param.h"
#include "coop/coll/packet.h"

namespace coop::ag {

// A packet that is damaged, or contradicts the state of its communicator. `whole`: its fields can be shown.
[[noreturn]] void wrong_packet(const coll::Packet& packet, bool whole, const char* what);
[[noreturn]] void transport_failed(const mca_btl_base_module_t& btl, const char* operation, int error);
// The processes of a communicator have called with different lengths.
[[noreturn]] void lengths_differ(std::uint32_t lap);
// The tail of a collective buffer is wrong.
[[noreturn]] void damaged_buffer(std::uint32_t lap);
// A word in the shared memory of a node that cannot be right. `rank`: in the communicator, of the process that wrote it.
[[noreturn]] void wrong_word(std::uint32_t rank, const char* what, std::uint64_t lap);
// Open MPI does not say whether a process uses the component.
[[noreturn]] void modex_failed(std::uint32_t rank, int error);
[[noreturn]] void out_of_memory(std::size_t bytes);
[[noreturn]] void parameter_out_of_range(const ParamError& error);

}  // namespace coop::ag

// SPDX-License-Identifier: BSD-3-Clause
//
// The limit above which a message to another node uses RDMA if its sender does not wait for it: as
// pml_coop_isend_rdma_min says, or as the pace of such messages to the process suggests (coop/rndv/pace.h).
//
// Threading: any thread; takes Module::lock.
#pragma once

#include "send_request.h"

namespace coop::pml {

// Before the first message to the process. Under Module::lock.
void start_pace(Process& process, const mca_bml_base_btl_t& rdma) noexcept;

// Sets the limit and the link of the situation, whose other fields are complete.
void set_stream_limit(const SendRequest& request, rndv::Situation& situation) noexcept;

// The RTS has left, offering this; the message has ended. They change nothing unless the pace has decided.
void pace_begins(SendRequest& request, rndv::Reason reason) noexcept;
void pace_ends(SendRequest& request) noexcept;

}  // namespace coop::pml

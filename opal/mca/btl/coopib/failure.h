// SPDX-License-Identifier: BSD-3-Clause
//
// Trouble of rails: each function turns what verbs report into an event of a rail,
// asks its channel for the decision (coop/rail/failure.h), and carries it out.
// Channel::on_refused() is here.
//
// Threading: under Module::lock. Errors: a decision may be to end the job.
#pragma once

#include "coop/rail/verbs/async_events.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// A posted request has completed with an error.
void on_send_error(const Work& work, const ibv_wc& wc);
// A receive on a queue pair of `hca` has completed with an error.
void on_receive_error(Endpoint& endpoint, std::uint32_t hca, const ibv_wc& wc);
// The HCA has reported an event of a queue pair, or one that concerns all its rails.
void on_queue_pair_error(Module& m, std::uint32_t hca, const rail::HcaEvent& event);
void on_hca_lost(Module& m, std::uint32_t hca, const rail::HcaEvent& event);

}  // namespace coop::ib

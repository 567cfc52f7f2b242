// SPDX-License-Identifier: BSD-3-Clause
//
// Failures of rails. Each function translates an error that verbs report into an event
// of a rail, lets its channel decide (coop/rail/failure.h) and carries the decision
// out. failure.cc also defines Channel::on_refused().
//
// Threading: under Module::lock. Errors: the functions may end the job.
#pragma once

#include "coop/rail/verbs/async_events.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// A posted request has completed with an error.
void on_send_error(Rail& rail, Work& work, const ibv_wc& wc);
// A receive on a queue pair of `hca` has completed with an error.
void on_receive_error(Endpoint& endpoint, std::uint32_t hca, const ibv_wc& wc);
// The HCA has reported an error of one queue pair, or one that affects all of its rails, or a change of a port.
void on_queue_pair_error(Module& m, std::uint32_t hca, const rail::HcaEvent& event);
void on_hca_lost(Module& m, std::uint32_t hca, const rail::HcaEvent& event);
void on_port_changed(Module& m, std::uint32_t hca, const rail::HcaEvent& event);

}  // namespace coop::ib

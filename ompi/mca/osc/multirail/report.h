// SPDX-License-Identifier: BSD-3-Clause
//
// What a process prints about its windows (osc_multirail_report).
#pragma once

namespace coop::osc {

// Starts counting for the report. Once, before the first window.
void prepare_report() noexcept;
// At the end of the job.
void print_report() noexcept;

}  // namespace coop::osc

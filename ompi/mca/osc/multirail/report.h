// SPDX-License-Identifier: BSD-3-Clause
//
// What a process prints about its windows (osc_multirail_report).
#pragma once

namespace coop::osc {

class WindowCounts;

// A window is being freed.
void print_window(const WindowCounts& window) noexcept;
// At the end of the job: the windows that have not been freed, and the process.
void print_report() noexcept;

}  // namespace coop::osc

// SPDX-License-Identifier: BSD-3-Clause
//
// Counters of the asynchronous handler, and the names under which pml/coop exports them as MPI_T performance
// variables.
//
// Threading: any. Units: events.
#pragma once

#include <atomic>
#include <cstdint>

namespace coop::async {

struct HandlerCounts {
    std::atomic<std::uint64_t> interrupts{0};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> left{0};
    std::atomic<std::uint64_t> events{0};
    std::atomic<std::uint64_t> callbacks_left{0};
};

struct HandlerVariable {
    const char* name;
    std::atomic<std::uint64_t> HandlerCounts::*count;
    const char* help;
};
inline constexpr HandlerVariable kHandlerVariables[] = {
    {"interrupts", &HandlerCounts::interrupts, "Interrupts: wake-ups of the thread for asynchronous progress."},
    {"interrupts_requested", &HandlerCounts::requests, "Requests to transports to interrupt."},
    {"interrupts_left", &HandlerCounts::left,
     "Interrupts that the thread left to the application because it was polling."},
    {"events_handled", &HandlerCounts::events, "Completions that the thread for asynchronous progress handled."},
    {"callbacks_left", &HandlerCounts::callbacks_left,
     "Callbacks of other parts of Open MPI that the thread for asynchronous progress left to the application's next "
     "call."},
};
static_assert(sizeof(HandlerCounts) == sizeof kHandlerVariables / sizeof *kHandlerVariables * sizeof(std::uint64_t),
              "each has a name");

}  // namespace coop::async

// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a command: passes signals on to it, waits for its exit status, and ends
// the processes that it leaves.
//
// Signals from other processes are passed on; those from the terminal reach the
// command directly. Five seconds after a SIGTERM, a SIGHUP, or another process's
// SIGINT, or at the second one, the command is killed.
// Descendants that outlive the command become this process's children
// (PR_SET_CHILD_SUBREAPER): they get a second to end by themselves, then SIGTERM,
// and SIGKILL another second later.
//
// Threading: call block_signals() before making any thread; call everything from
// the main thread. When that thread ends, the command gets SIGTERM
// (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <functional>

#include "fabric/tool/command.h"

namespace coop::fabric {

void block_signals();

// `prepare` is called in the new process, before the command is executed.
Error start(const Words& command, const std::function<Error()>& prepare, pid_t& child);

// The exit status of the command, or 128 plus the number of the signal that ended it.
int wait_for(pid_t child);

void end_descendants();

}  // namespace coop::fabric

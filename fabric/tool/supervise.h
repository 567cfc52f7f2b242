// SPDX-License-Identifier: BSD-3-Clause
//
// A command and all that it starts: signals are passed on to it, its exit status
// is waited for, and nothing of it is left afterwards.
//
// A signal that the terminal sends reaches the command by itself. Those from
// other processes are passed on. If the command is still there five seconds after
// a SIGTERM, SIGHUP or SIGINT of theirs, or at the second one, all of it is killed. Descendants that outlive it are this
// process's children then (PR_SET_CHILD_SUBREAPER): they get a second to end by
// themselves, SIGTERM, and SIGKILL another second later.
//
// Threading: block_signals() first, before any thread is made; all by the main
// thread. The command dies with it (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <functional>

#include "fabric/tool/command.h"

namespace coop::fabric {

void block_signals();

// `prepare` is called in the new process, before the command is executed.
Error start(const Words& command, const std::function<Error()>& prepare, pid_t& child);

// The exit status of the command; 128 and the signal's number, if one ended it.
int wait_for(pid_t child);

void end_descendants();

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// One machine as several for mpirun: a host file with the subnet's hosts, and a
// remote-shell agent that runs a command under the name of a host, in a UTS
// namespace. mpirun then starts a daemon per host, and ranks on different hosts
// share no memory.
//
// That takes CAP_SYS_ADMIN. Who is not root gets it in a user namespace of their
// own, around the whole command, where the system permits that: one for all,
// because processes in different ones cannot copy from one another.
#pragma once

#include <string>

#include "fabric/shm/segment.h"
#include "fabric/tool/command.h"

namespace coop::fabric {

class VirtualHosts {
public:
    VirtualHosts() = default;
    ~VirtualHosts();  // removes the host file
    VirtualHosts(const VirtualHosts&) = delete;
    VirtualHosts& operator=(const VirtualHosts&) = delete;

    // Writes the host file. An error names what the system refuses, and the remedy.
    Error prepare(const Segment& subnet, unsigned slots);
    // For the process that becomes the command: its namespace, and mpirun's settings in its environment.
    Error enter() const;

private:
    std::string folder_, host_file_;
    bool needs_user_namespace_ = false;
};

// Why this process, or one in a user namespace that it makes, cannot have a UTS namespace; empty: it can.
std::string virtual_host_refusal();

// Runs `command`, joined to one line for a shell as ssh does, as that host.
Error run_as_host(const std::string& host, const Words& command);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// Presents one machine as several hosts to mpirun: a host file with the subnet's
// hosts, and a remote-shell agent that runs a command under a host's name, in a
// UTS namespace. mpirun then starts a daemon per host, and ranks on different
// hosts share no memory.
//
// A UTS namespace needs CAP_SYS_ADMIN. Users other than root get it in a user
// namespace, if the system permits that. One user namespace surrounds the whole
// command, because processes in different ones cannot copy from one another.
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
    // Called in the process that becomes the command: enters the namespace and puts mpirun's settings into the
    // environment.
    Error enter() const;

private:
    std::string folder_, host_file_;
    bool needs_user_namespace_ = false;
};

// The reason why neither this process nor one in a user namespace of its own can have a UTS namespace; empty: it can.
std::string virtual_host_refusal();

// Runs `command` as that host. Like ssh, joins the words to one line for a shell.
Error run_as_host(const std::string& host, const Words& command);

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric agent HOST COMMAND…: 'run --virtual-hosts' has mpirun call it
// instead of ssh.
#include "fabric/tool/virtual_hosts.h"

namespace coop::fabric {
namespace {

int run_agent(Words words) {
    if (words.size() < 2) return misuse(kAgentCommand, {"give a host and a command"});
    const std::string host = words[0];
    words.erase(words.begin());
    fail(kAgentCommand, run_as_host(host, words));
    return 255;  // as ssh when it cannot reach a host
}

}  // namespace

const Command kAgentCommand = {
    "agent", "", "coop-fabric agent HOST COMMAND…\n\nHas a shell run COMMAND under the name of that host.\n",
    run_agent};

}  // namespace coop::fabric

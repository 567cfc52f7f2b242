// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric exec: runs a command on an existing subnet.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fabric/tool/environment.h"
#include "fabric/tool/names.h"
#include "fabric/tool/options.h"

namespace coop::fabric {
namespace {

int run_exec(Words words) {
    std::string name, host;
    const Option options[] = {text("--subnet", name), text("--host", host)};
    if (Error error = take_options(kExecCommand, words, options, true)) return misuse(kExecCommand, error);
    if (words.empty()) return misuse(kExecCommand, {"a command is missing"});
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kExecCommand, error);
    std::uint32_t index = 0;
    if (!host.empty())
        if (Error error = find_host(subnet, host, index)) return fail(kExecCommand, error);
    if (Error error = set_environment(subnet.header().name, host)) return fail(kExecCommand, error);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fail(kExecCommand, {"cannot run '" + words[0] + "': " + std::strerror(errno)});
    return errno == ENOENT ? 127 : 126;
}

}  // namespace

const Command kExecCommand = {"exec", "run a command on an existing subnet",
                              R"(coop-fabric exec [--subnet NAME] [--host H] [--] COMMAND…

Runs COMMAND on a subnet that 'coop-fabric create' made. The exit status is COMMAND's.

  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
  --host H        the host that COMMAND is on (default: see 'coop-fabric run --help')

Example, in two terminals:
  coop-fabric create --latency 1us
  coop-fabric exec --host h0 ibv_rc_pingpong
  coop-fabric exec --host h1 ibv_rc_pingpong localhost
)",
                              run_exec};

}  // namespace coop::fabric

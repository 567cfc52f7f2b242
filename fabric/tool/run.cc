// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric run: makes a subnet for one command and removes it afterwards. If
// SIGKILL ends it, the subnet stays, and 'list' shows it as abandoned.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "fabric/shm/process.h"
#include "fabric/tool/environment.h"
#include "fabric/tool/names.h"
#include "fabric/tool/report.h"
#include "fabric/tool/scenario.h"
#include "fabric/tool/subnet_options.h"
#include "fabric/tool/supervise.h"
#include "fabric/tool/virtual_hosts.h"

namespace coop::fabric {
namespace {

struct RunOptions {
    SubnetOptions subnet;
    bool virtual_hosts = false, counters = false;
    std::uint32_t slots = 1;
    std::string scenario, trace_to, host;
};

std::string run_help() {
    return std::string(
               "coop-fabric run [OPTIONS] [--] COMMAND…\n\n"
               "Makes a subnet, runs COMMAND on it, and removes the subnet. The exit status is COMMAND's. Processes "
               "that\n"
               "COMMAND leaves are ended.\n\n"
               "The host of a process is $COOP_FABRIC_HOST, or the host with the name of its system (hostname), or "
               "follows\n"
               "from its rank (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID: in blocks), or is the first "
               "one.\n\n") +
           kSubnetOptionsHelp +
           R"(
Options, the run:
  --virtual-hosts      for mpirun: it starts a daemon for each host, under the host's name, and ranks on different
                       hosts share no memory. Needs root, or user namespaces
  --slots N            ranks per virtual host (1)
  --host H             the host that COMMAND is on
  --scenario FILE      perform the actions in FILE at their times ('coop-fabric scenario --help')
  --trace-to FILE      write the trace to FILE
  --counters           print the counters of ports, links and processes at the end

Examples:
  coop-fabric run -- ibv_devinfo
  coop-fabric run --hcas 2 --rate 250MB/s --latency 1.5us --virtual-hosts -- mpirun -n 2 ./a.out
  coop-fabric run --fat-tree 2,2,2 --lmc 1 --rate 500MB/s -- ./script
)";
}

void set_up_options(RunOptions& run, std::vector<Option>& options) {
    run.subnet.add_to(options);
    options.push_back(flag("--virtual-hosts", run.virtual_hosts));
    options.push_back(number("--slots", 1, 4096, run.slots));
    options.push_back(text("--host", run.host));
    options.push_back(text("--scenario", run.scenario));
    options.push_back(text("--trace-to", run.trace_to));
    options.push_back(flag("--counters", run.counters));
}

// Removes the subnet when it goes out of scope.
class Removal {
public:
    explicit Removal(std::string name) : name_(std::move(name)) {}
    ~Removal() { [[maybe_unused]] const Error gone_already = Segment::remove(name_); }
    Removal(const Removal&) = delete;
    Removal& operator=(const Removal&) = delete;

private:
    std::string name_;
};

struct FileCloser {
    void operator()(FILE* file) const { std::fclose(file); }
};

int run_command(const RunOptions& run, const Words& command, const Segment& subnet) {
    Scenario scenario;
    if (!run.scenario.empty())
        if (Error error = scenario.read(subnet, run.scenario)) return fail(kRunCommand, error);
    std::unique_ptr<FILE, FileCloser> trace_file;
    if (!run.trace_to.empty()) {
        trace_file.reset(std::fopen(run.trace_to.c_str(), "we"));
        if (trace_file == nullptr) return fail(kRunCommand, {"cannot write '" + run.trace_to + "'"});
    }
    VirtualHosts hosts;
    if (run.virtual_hosts)
        if (Error error = hosts.prepare(subnet, run.slots)) return fail(kRunCommand, error);

    pid_t child = 0;
    const auto prepare = [&] {
        if (run.virtual_hosts)
            if (Error error = hosts.enter()) return error;
        return set_environment(subnet.header().name, run.host);
    };
    if (Error error = start(command, prepare, child)) return fail(kRunCommand, error), 127;

    std::jthread tracer, actor;
    if (trace_file != nullptr)
        tracer = std::jthread([&](const std::stop_token& stop) { follow_trace(subnet, trace_file.get(), stop); });
    if (!run.scenario.empty()) actor = std::jthread([&](const std::stop_token& stop) { scenario.run(subnet, stop); });
    const int status = wait_for(child);
    actor = {};
    end_descendants();
    reap(subnet);
    tracer = {};
    if (run.counters) print_counters(subnet, {.ports = true, .links = true, .qps = false, .processes = true}, false);
    return status;
}

int run_run(Words words) {
    RunOptions run;
    std::vector<Option> options;
    set_up_options(run, options);
    if (Error error = take_options(kRunCommand, words, options, true)) return misuse(kRunCommand, error);
    if (words.empty()) return misuse(kRunCommand, {"a command is missing"});
    std::string library;
    if (Error error = find_library(library)) return fail(kRunCommand, error);
    Topology topology;
    if (Error error = run.subnet.make(topology)) return fail(kRunCommand, error);

    block_signals();
    const std::string name = run.subnet.name().empty() ? "run-" + std::to_string(getpid()) : run.subnet.name();
    Segment subnet;
    if (Error error = install(topology, run.subnet.settings(), name, true, subnet)) return fail(kRunCommand, error);
    const Removal removal(name);
    std::uint32_t host = 0;
    if (!run.host.empty())
        if (Error error = find_host(subnet, run.host, host)) return fail(kRunCommand, error);
    return run_command(run, words, subnet);
}

const std::string kHelp = run_help();

}  // namespace

const Command kRunCommand = {"run", "make a subnet, run a command on it, remove it", kHelp.c_str(), run_run};

}  // namespace coop::fabric

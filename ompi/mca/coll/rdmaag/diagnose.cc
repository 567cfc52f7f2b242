// SPDX-License-Identifier: BSD-3-Clause
#include "diagnose.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "members.h"

namespace coop::ag {
namespace {

const char* host() noexcept { return opal_process_info.nodename; }
unsigned my_rank() noexcept { return ompi_proc_local()->super.proc_name.vpid; }

// Prints a topic of the help file here, not by way of mpirun, where messages are sometimes lost.
template <class... Arguments>
void say(const char* topic, Arguments... arguments) {
    char* text = opal_show_help_string("help-mpi-coll-rdmaag.txt", topic, true, arguments...);
    std::fputs(text ? text : topic, stderr);
    std::fflush(stderr);
    std::free(text);
}

[[noreturn]] void end_job() {
    ompi_rte_abort(1, nullptr);
    std::abort();  // not reached: the declaration of ompi_rte_abort does not say that it never returns
}

}  // namespace

void wrong_packet(const coll::Packet& packet, bool whole, const char* what) {
    const bool leads = packet.context & Members::kContextOfLeaders;
    const std::string sender = whole ? (leads ? "leader of node " : "rank ") + std::to_string(packet.source) +
                                           " of communicator " +
                                           std::to_string(packet.context & ~Members::kContextOfLeaders)
                                     : "unknown (the packet is too short to name it)";
    say("wrong-packet", host(), my_rank(), sender.c_str(), what, packet.lap, packet.step);
    end_job();
}

void transport_failed(const mca_btl_base_module_t& btl, const char* operation, int error) {
    say("transport-failed", btl.btl_component->btl_version.mca_component_name, host(), my_rank(), operation,
        opal_strerror(error));
    end_job();
}

void lengths_differ(std::uint32_t lap) {
    say("lengths-differ", host(), my_rank(), lap);
    end_job();
}

void damaged_buffer(std::uint32_t lap) {
    say("damaged-buffer", host(), my_rank(), lap);
    end_job();
}

void wrong_word(std::uint32_t rank, const char* what, std::uint64_t lap) {
    say("wrong-word", host(), my_rank(), rank, what, static_cast<unsigned long>(lap));
    end_job();
}

void modex_failed(std::uint32_t rank, int error) {
    say("modex-failed", host(), my_rank(), rank, opal_strerror(error));
    end_job();
}

void out_of_memory(std::size_t bytes) {
    say("out-of-memory", host(), my_rank(), static_cast<unsigned long>(bytes));
    end_job();
}

void parameter_out_of_range(const ParamError& error) {
    // A wrong parameter is usually wrong in every process: rank 0 reports it and ends the job.
    if (my_rank() != 0) sleep(3);
    say("parameter", ("coll_rdmaag_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
    end_job();
}

}  // namespace coop::ag

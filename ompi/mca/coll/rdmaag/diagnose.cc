// SPDX-License-Identifier: BSD-3-Clause
#include "diagnose.h"

#include <string>

#include "members.h"
#include "ompi/mca/shim/say.h"

namespace coop::ag {
namespace {

template <class... Arguments>
void tell(const char* topic, Arguments... arguments) {
    say("help-mpi-coll-rdmaag.txt", topic, arguments...);
}

}  // namespace

void wrong_packet(const coll::Packet& packet, bool whole, const char* what) {
    const bool leads = packet.context & Members::kContextOfLeaders;
    const std::string sender = whole ? (leads ? "leader of node " : "rank ") + std::to_string(packet.source) +
                                           " of communicator " +
                                           std::to_string(packet.context & ~Members::kContextOfLeaders)
                                     : "unknown (the packet is too short to name it)";
    tell("wrong-packet", host(), my_rank(), sender.c_str(), what, packet.lap, packet.step);
    end_job();
}

void transport_failed(const mca_btl_base_module_t& btl, const char* operation, int error) {
    tell("transport-failed", btl.btl_component->btl_version.mca_component_name, host(), my_rank(), operation,
         opal_strerror(error));
    end_job();
}

void lengths_differ(std::uint32_t lap) {
    tell("lengths-differ", host(), my_rank(), lap);
    end_job();
}

void damaged_buffer(std::uint32_t lap) {
    tell("damaged-buffer", host(), my_rank(), lap);
    end_job();
}

void wrong_word(std::uint32_t rank, const char* what, std::uint64_t lap) {
    tell("wrong-word", host(), my_rank(), rank, what, static_cast<unsigned long>(lap));
    end_job();
}

void modex_failed(std::uint32_t rank, int error) {
    tell("modex-failed", host(), my_rank(), rank, opal_strerror(error));
    end_job();
}

void out_of_memory(std::size_t bytes) {
    tell("out-of-memory", host(), my_rank(), static_cast<unsigned long>(bytes));
    end_job();
}

void parameter_out_of_range(const ParamError& error) {
    // A wrong parameter is usually wrong in every process: rank 0 reports it and ends the job.
    if (my_rank() != 0) sleep(3);
    tell("parameter", ("coll_rdmaag_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
    end_job();
}

}  // namespace coop::ag

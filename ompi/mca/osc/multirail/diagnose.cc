// SPDX-License-Identifier: BSD-3-Clause
#include "diagnose.h"

#include <atomic>
#include <cstring>

#include "ompi/mca/shim/say.h"

namespace coop::osc {
namespace {

template <class... Arguments>
void tell(const char* topic, Arguments... arguments) {
    say("help-mpi-osc-multirail.txt", topic, arguments...);
}

}  // namespace

void wrong_packet(const rma::Packet& packet, const char* what) {
    tell("wrong-packet", host(), my_rank(), packet.source, packet.window, what, packet.sequence);
    end_job();
}

void transport_failed(const mca_btl_base_module_t& btl, const char* operation, int error) {
    tell("transport-failed", btl.btl_component->btl_version.mca_component_name, host(), my_rank(), operation,
         opal_strerror(error));
    end_job();
}

void message_failed(const char* operation, int error) {
    tell("message-failed", host(), my_rank(), operation, error);
    end_job();
}

void copy_failed(std::uint32_t rank, int error) {
    tell("copy-failed", host(), my_rank(), rank, std::strerror(error));
    end_job();
}

void copies_refused(int error) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) tell("no-cma", host(), my_rank(), std::strerror(error));
}

void modex_failed(std::uint32_t rank, int error) {
    tell("modex-failed", host(), my_rank(), rank, opal_strerror(error));
    end_job();
}

void out_of_memory(const char* what) {
    tell("out-of-memory", host(), my_rank(), what);
    end_job();
}

void parameter_out_of_range(const ParamError& error) {
    // A wrong parameter is usually wrong in every process: rank 0 reports it and ends the job.
    if (my_rank() != 0) sleep(3);
    tell("parameter", ("osc_multirail_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
    end_job();
}

void cannot_create(const char* why) { tell("cannot-create", host(), my_rank(), why); }

}  // namespace coop::osc

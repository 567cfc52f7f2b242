// SPDX-License-Identifier: BSD-3-Clause
#include "diagnose.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace coop::pml {
namespace {

constexpr const char* kHelp = "help-mpi-pml-coop.txt";

const char* host() noexcept { return opal_process_info.nodename; }

std::string rank_name(std::uint32_t job_rank) { return "rank " + std::to_string(job_rank); }

std::string range(std::uint64_t min, std::uint64_t max) {
    return min == max ? std::to_string(min) : std::to_string(min) + ".." + std::to_string(max);
}

// Prints a topic of the help file. opal_show_help would send it to mpirun, where messages are sometimes lost (seen with
// Open MPI 4.1.4, also with stock components), but a job must not end without a reason.
template <class... Arguments>
void say(const char* topic, Arguments... arguments) {
    char* text = opal_show_help_string(kHelp, topic, true, arguments...);
    std::fputs(text ? text : topic, stderr);
    std::fflush(stderr);
    std::free(text);
}

// A wrong parameter is usually wrong in every process. Rank 0 reports it and ends the job at once; the others wait, so
// that they report it only if rank 0 has no reason to.
void let_rank_0_speak() noexcept {
    if (ompi_proc_local()->super.proc_name.vpid != 0) sleep(3);
}

}  // namespace

void abort_job(const char* why) {
    ompi_rte_abort(1, const_cast<char*>(why ? "%s" : nullptr), why);
    std::abort();  // not reached: the declaration of ompi_rte_abort does not say that it never returns
}

Sender::Sender() : name("an unknown process (the header is too short to name it)") {}

Sender::Sender(std::uint32_t job_rank) : name(rank_name(job_rank)) {}

Sender::Sender(const wire::MatchHeader& header) {
    const Comm* const c = find_comm(header.context);
    if (c != nullptr && header.source >= 0 && header.source < c->size)
        name = rank_name(ompi_comm_peer_lookup(c->comm, header.source)->super.proc_name.vpid);
    else name = "rank " + std::to_string(header.source) + " of communicator " + std::to_string(header.context);
}

void diagnose_header(const wire::Damage& damage, const Sender& sender) {
    say("corrupt-header", wire::name(damage.kind), host(), module.my_rank, sender.name.c_str(), damage.field,
        static_cast<unsigned long long>(damage.value), range(damage.min, damage.max).c_str());
    abort_job(nullptr);
}

void protocol_error(wire::Kind kind, const Sender& sender, const std::string& what) {
    say("protocol-error", wire::name(kind), host(), module.my_rank, sender.name.c_str(), what.c_str());
    abort_job(nullptr);
}

void diagnose_field(wire::Kind kind, const char* field, const Sender& sender, std::uint64_t value, std::uint64_t min,
                    std::uint64_t max) {
    protocol_error(kind, sender, std::string(field) + " is " + std::to_string(value) + ", expected " + range(min, max));
}

void diagnose_rank(const wire::MatchHeader& header, std::int32_t size) {
    diagnose_field(header.kind, "source rank", header, static_cast<std::uint32_t>(header.source), 0,
                   static_cast<std::uint64_t>(size) - 1);
}

void diagnose_repeated(const wire::MatchHeader& header) {
    protocol_error(header.kind, header,
                   "the message with sequence number " + std::to_string(header.sequence) + " has arrived before");
}

void transport_failed(const mca_bml_base_btl_t& btl, const char* operation, int error) {
    say("transport-failed", btl.btl->btl_component->btl_version.mca_component_name, host(), module.my_rank, operation,
        opal_strerror(error));
    abort_job(nullptr);
}

void eager_limit_too_small(const mca_base_component_t& transport, std::size_t limit, std::size_t need) {
    let_rank_0_speak();
    say("eager-limit-too-small", transport.mca_component_name, static_cast<unsigned long>(limit),
        static_cast<unsigned long>(need), host());
    abort_job(nullptr);
}

void out_of_memory(const char* what) {
    say("out-of-memory", host(), module.my_rank, what);
    abort_job(nullptr);
}

void parameter_out_of_range(const ParamError& error) {
    let_rank_0_speak();
    say("parameter", ("pml_coop_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
    abort_job(nullptr);
}

void parameter_ignored(const ParamError& error) noexcept {
    say("parameter-ignored", ("pml_coop_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host(),
        module.my_rank);
}

void no_shared_memory(int error) noexcept { say("no-shared-memory", host(), module.my_rank, strerror(error)); }

void no_lane(int error) noexcept {
    static std::atomic_flag said = ATOMIC_FLAG_INIT;
    if (said.test_and_set(std::memory_order_relaxed)) return;
    say("no-lane", host(), module.my_rank, error ? strerror(error) : "the other process has no free ring");
}

void no_kernel_copy(int error) noexcept { say("no-kernel-copy", host(), strerror(error)); }

void no_interrupts(const char* why) noexcept { say("no-interrupts", host(), why); }

void extension_differs(const char* transport, const BtlExtensionHead& theirs) noexcept {
    if (opal_process_info.my_local_rank == 0)
        say("extension", host(), transport, theirs.abi, theirs.bytes, kBtlExtensionAbi,
            static_cast<unsigned>(sizeof(BtlExtension)));
}

void no_offload(const Peer& peer) noexcept {
    static std::atomic_flag said = ATOMIC_FLAG_INIT;
    if (!said.test_and_set(std::memory_order_relaxed)) say("no-offload", host(), module.my_rank, peer.job_rank());
}

void no_devices() noexcept { say("no-devices", host()); }

void transport_warns(const char* transport, const char* what) noexcept {
    say("transport-warns", host(), module.my_rank, transport, what ? what : "no description");
}

void transport_reports_an_error(const char* transport, const char* what) {
    say("transport-error", host(), module.my_rank, transport, what ? what : "no description");
    abort_job(nullptr);
}

void peer_died(const Peer& peer) {
    say("peer-died", host(), module.my_rank, peer.job_rank());
    abort_job(nullptr);
}

void architectures_differ(std::uint32_t peer, std::uint32_t theirs) {
    say("architecture", host(), module.my_rank, opal_local_arch, peer, theirs);
    abort_job(nullptr);
}

void versions_differ(std::uint32_t peer, const std::string& theirs) {
    say("version", host(), module.my_rank, wire::kVersion, peer, theirs.c_str());
    abort_job(nullptr);
}

}  // namespace coop::pml

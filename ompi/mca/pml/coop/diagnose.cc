// SPDX-License-Identifier: BSD-3-Clause
#include "diagnose.h"

#include <cstdlib>

namespace coop::pml {
namespace {

constexpr const char* kHelp = "help-mpi-pml-coop.txt";
const char* host() noexcept { return opal_process_info.nodename; }

std::string peer_name(std::int64_t peer) {
    return peer < 0 ? "an unknown process (no field of the header says which)" : "rank " + std::to_string(peer);
}

}  // namespace

void abort_job(const char* why) {
    ompi_rte_abort(1, const_cast<char*>("%s"), why);
    std::abort();  // ompi_rte_abort does not return; the compiler does not know
}

void diagnose_field(wire::Kind kind, const char* field, std::int64_t peer, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
    const std::string allowed = min == max ? std::to_string(min) : std::to_string(min) + ".." + std::to_string(max);
    opal_show_help(kHelp, "corrupt-header", true, wire::name(kind), host(), module.my_rank, peer_name(peer).c_str(), field,
                   static_cast<unsigned long long>(value), allowed.c_str());
    abort_job(nullptr);
}

void diagnose_header(const wire::Damage& damage, std::int64_t peer) {
    diagnose_field(damage.kind, damage.field, peer, damage.value, damage.min, damage.max);
}

void diagnose_rank(const wire::MatchHeader& header, std::int32_t size) {
    diagnose_field(header.kind, "source rank", header.source, static_cast<std::uint32_t>(header.source), 0,
                   static_cast<std::uint64_t>(size) - 1);
}

void diagnose_repeated(const wire::MatchHeader& header) {
    diagnose_field(header.kind, "sequence (seen before)", header.source, header.sequence, 0, UINT16_MAX);
}

void transport_failed(const mca_bml_base_btl_t& btl, const char* operation, int error) {
    opal_show_help(kHelp, "transport-failed", true, btl.btl->btl_component->btl_version.mca_component_name, host(), module.my_rank,
                   operation, opal_strerror(error));
    abort_job(nullptr);
}

void out_of_memory(const char* what) {
    opal_show_help(kHelp, "out-of-memory", true, host(), module.my_rank, what);
    abort_job(nullptr);
}

void parameter_out_of_range(const ParamError& error) {
    opal_show_help(kHelp, "parameter", true, ("pml_coop_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
    abort_job(nullptr);
}

void versions_differ(std::uint32_t peer, const std::string& theirs) {
    opal_show_help(kHelp, "version", true, host(), module.my_rank, wire::kVersion, peer, theirs.c_str());
    abort_job(nullptr);
}

}  // namespace coop::pml

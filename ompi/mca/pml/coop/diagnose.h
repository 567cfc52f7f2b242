// SPDX-License-Identifier: BSD-3-Clause
//
// User-facing errors and notices. An error prints one message of the help file, which names the peer and the field (or
// the parameter, the value and the range), and ends the job: these functions do not return.
#pragma once

#include <string>

#include "comm.h"

namespace coop::pml {

// The sender of a packet, as an error message names it.
struct Sender {
    Sender();  // the header is too short to name it
    Sender(std::uint32_t job_rank);
    // The header has the sender's rank in a communicator. This finds the rank in the job if the communicator is known.
    Sender(const wire::MatchHeader& header);

    std::string name;
};

// A header that wire::valid_… has refused.
[[noreturn]] void diagnose_header(const wire::Damage& damage, const Sender& sender);

// An intact packet that contradicts the state of this process. `what` is a sentence without its full stop.
[[noreturn]] void protocol_error(wire::Kind kind, const Sender& sender, const std::string& what);
// The same for a field that must be in a range.
[[noreturn]] void diagnose_field(wire::Kind kind, const char* field, const Sender& sender, std::uint64_t value,
                                 std::uint64_t min, std::uint64_t max);
[[noreturn]] void diagnose_rank(const wire::MatchHeader& header, std::int32_t size);
[[noreturn]] void diagnose_repeated(const wire::MatchHeader& header);

[[noreturn]] void transport_failed(const mca_bml_base_btl_t& btl, const char* operation, int error);
[[noreturn]] void transport_reports_an_error(const char* transport, const char* what);  // `what` may be null
[[noreturn]] void eager_limit_too_small(const mca_base_component_t& transport, std::size_t limit, std::size_t need);
[[noreturn]] void out_of_memory(const char* what);
[[noreturn]] void versions_differ(std::uint32_t peer, const std::string& their_version);
[[noreturn]] void architectures_differ(std::uint32_t peer, std::uint32_t theirs);
[[noreturn]] void parameter_out_of_range(const ParamError& error);
[[noreturn]] void peer_died(const Peer& peer);
[[noreturn]] void abort_job(const char* why);

// A notice: this process has no memory that it could share with its node, and works without.
void no_shared_memory(int error) noexcept;

// A notice, once per process: packets to a process of this node use a transport although there should be a lane.
// `error`: an errno, or 0 if the process has no more rings.
void no_lane(int error) noexcept;

// A notice: device memory cannot be told from host memory.
void no_devices() noexcept;

// A notice: the kernel denies copies, so messages inside this node go through shared memory.
void no_kernel_copy(int error) noexcept;

// A notice: a transport has reported an error from which it has recovered. `what` may be null.
void transport_warns(const char* transport, const char* what) noexcept;

// A notice, by one process of each node: a transport's extension has another version, so the transport is used like a
// stock one.
void extension_differs(const char* transport, const BtlExtensionHead& theirs) noexcept;

// A notice: messages make no progress while this process computes, although the user asked for it.
void no_interrupts(const char* why) noexcept;

// A notice, once per process: only the CPUs copy inside this node, although the user asked for HCAs.
void no_offload(const Peer& peer) noexcept;

// A notice: a parameter was changed to an invalid value while the job runs, and keeps its old value.
void parameter_ignored(const ParamError& error) noexcept;

}  // namespace coop::pml

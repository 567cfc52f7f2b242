// SPDX-License-Identifier: BSD-3-Clause
//
// The HCAs of this process and their active ports: selects HCAs and ports of the node, reports their
// capabilities, and says why others are not used.
//
// Lists name HCAs and ports as btl_openib_if_include does: "mlx5_0,mlx5_1:2" is all of mlx5_0 and port 2 of
// mlx5_1. A port without the requested P_Key or GID is not used.
//
// Ownership: a Hca owns its context and protection domain; destroy objects on it before it. Threading:
// open_hcas() by one thread; afterwards a Hca is constant, except for set_index() and set_connector(). Errors:
// HCAs and ports that cannot be used are reported; the others are used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coop/path/port.h"
#include "coop/rail/verbs/objects.h"
#include "coop/rail/verbs/port_query.h"

namespace coop::rail {

struct HcaOptions {
    std::string include;                         // use only these; "": all
    std::string exclude;                         // do not use these; include and exclude must not both be set
    std::uint32_t want_inline = 256;             // bytes; upper limit of caps().max_inline
    std::uint32_t most_reads = path::kMaxReads;  // upper limit of caps().max_rd_atomic and max_dest_rd_atomic
    PortWishes ports;
};

// Why an HCA or port is not used. A list that names a missing HCA or port is an error even if others can be
// used.
struct Diagnostic {
    About about;
    std::string sentence;  // kPkey, kGidIndex: the port and what it has, such as "mlx5_0:1: 0xffff, 0x8001"
};

struct HcaCaps {
    std::uint32_t max_inline = 0;          // bytes
    std::uint32_t max_rd_atomic = 0;       // outstanding reads and atomics of a queue pair as initiator
    std::uint32_t max_dest_rd_atomic = 0;  // as responder
    std::uint32_t max_qp = 0;
    std::uint32_t max_qp_wr = 0;
    std::uint32_t max_cqe = 0;
    std::uint32_t max_sge = 0;
    std::uint32_t max_srq_wr = 0;  // 0: no shared receive queues
    std::uint32_t max_srq_sge = 0;
    std::uint64_t max_mr_bytes = 0;
    std::uint32_t max_message_bytes = 0;  // smallest value of its ports
    bool atomics = false;                 // 64-bit atomics, atomic at least with respect to this HCA
    bool global_atomics = false;          // also with respect to the CPU
    bool path_migration = false;          // APM
    std::uint8_t most_retries = 7;        // largest finite packet retry count: Soft-RoCE retries forever with 7

    bool has_srq() const noexcept { return max_srq_wr != 0; }
};

class Hca {
public:
    Hca(Context context, Pd pd, HcaCaps caps, std::vector<path::PortRecord> ports);

    ibv_context* context() const noexcept { return context_; }
    ibv_pd* pd() const noexcept { return pd_; }
    std::string name() const;  // "mlx5_0"
    std::string sysfs_folder()
        const;  // "/sys/class/infiniband/mlx5_0": identifies the device for hwloc and node/numa.h
    const HcaCaps& caps() const noexcept { return caps_; }
    // The active ports that the options select, at least one, ordered by number. Their `hca` is the index of
    // this HCA.
    std::span<const path::PortRecord> ports() const noexcept { return ports_; }

    // Sets the index among the HCAs of the process in the records of the ports.
    void set_index(std::uint8_t index) noexcept;

    // Used by Connector: stores the queue pair for datagrams in the record of ports()[index].
    void set_connector(std::size_t index, std::uint32_t qpn, std::uint32_t qkey) noexcept;

private:
    Context context_;
    Pd pd_;
    HcaCaps caps_;
    std::vector<path::PortRecord> ports_;
};

std::vector<Hca> open_hcas(const HcaOptions& options, std::vector<Diagnostic>& diagnostics);

// Names of all HCAs of the node in natural order: mlx5_2 before mlx5_10. The index is PortRecord::position.
std::vector<std::string> hca_names();

// The ports of all HCAs, in order, as input of path::by_preference(). Publish them only after
// Connector::open(), which writes into their records.
std::vector<path::PortRecord> ports_of(std::span<const Hca> hcas);

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
//
// The HCAs of this process and their active ports: which of those that the node
// has are used, what they can do, and which are not used and why.
//
// Lists name HCAs and ports as btl_openib_if_include does: "mlx5_0,mlx5_1:2" is
// all of mlx5_0 and port 2 of mlx5_1. A port without the P_Key or the GID that
// is wished for does not serve.
//
// Ownership: a Hca owns its context and protection domain; objects made on it go
// before it. Threading: open_hcas() by one thread; a Hca is then constant, but
// for set_connector(). Errors: what could not be opened is said, the rest serves.
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
    std::string include;  // only these; "": all
    std::string exclude;  // but not these; only one of both lists may be given
    std::uint32_t want_inline = 256;  // bytes; caps().max_inline is the most up to this that an RC queue pair gets
    std::uint32_t most_reads = path::kMostReads;  // caps().max_rd_atomic and max_dest_rd_atomic are no more than this
    PortWishes ports;
};

// What happened to an HCA or port that does not serve. A list that names what is not there is an error, also where others serve.
struct Said {
    About about;
    std::string sentence;  // kPkey, kGidIndex: "mlx5_0:1: 0xffff, 0x8001", what that port has
};

struct HcaCaps {
    std::uint32_t max_inline = 0;      // bytes
    std::uint32_t max_rd_atomic = 0;   // outstanding reads and atomics of a queue pair, as initiator
    std::uint32_t max_dest_rd_atomic = 0;  // as responder
    std::uint32_t max_qp_wr = 0;
    std::uint32_t max_cqe = 0;
    std::uint32_t max_sge = 0;
    std::uint32_t max_srq_wr = 0;      // 0: no shared receive queues
    std::uint32_t max_srq_sge = 0;
    std::uint64_t max_mr_bytes = 0;
    std::uint32_t max_message_bytes = 0;  // the least of its ports
    bool atomics = false;              // 64-bit, between verbs of the same HCA at least
    bool global_atomics = false;       // and with the CPU
    bool path_migration = false;       // APM
    std::uint8_t most_retries = 7;     // of a packet, that end: Soft-RoCE takes 7 for ever

    bool has_srq() const noexcept { return max_srq_wr != 0; }
};

class Hca {
public:
    Hca(Context context, Pd pd, HcaCaps caps, std::vector<path::PortRecord> ports);

    ibv_context* context() const noexcept { return context_; }
    ibv_pd* pd() const noexcept { return pd_; }
    std::string name() const;         // "mlx5_0"
    std::string sysfs_folder() const; // "/sys/class/infiniband/mlx5_0": hwloc's and NUMA's key
    const HcaCaps& caps() const noexcept { return caps_; }
    // The active ports that the options let through, at least one. Ordered by number; their `hca` is this one's index.
    std::span<const path::PortRecord> ports() const noexcept { return ports_; }

    // Its index among the HCAs of the process, as the records of its ports have it.
    void set_index(std::uint8_t index) noexcept;

    // Of Connector: the queue pair that takes datagrams, on ports()[0].
    void set_connector(std::uint32_t qpn, std::uint32_t qkey) noexcept;

private:
    Context context_;
    Pd pd_;
    HcaCaps caps_;
    std::vector<path::PortRecord> ports_;
};

std::vector<Hca> open_hcas(const HcaOptions& options, std::vector<Said>& said);

// Of all HCAs of the node, in the order in which people count: mlx5_2 before mlx5_10. The place in it is PortRecord::position.
std::vector<std::string> hca_names();

// The ports of all, in the order of the HCAs: what path::by_preference() takes. To be
// published only behind Connector::open(), which writes into them.
std::vector<path::PortRecord> ports_of(std::span<const Hca> hcas);

}  // namespace coop::rail

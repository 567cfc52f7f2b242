// SPDX-License-Identifier: BSD-3-Clause
//
// The reliable connected (RC) queue pair of a rail. It is created in INIT, so that receives can be posted
// before the peer can send, and then connected to the peer's queue pair over one path (RTR, RTS).
//
// Units: timeouts as IBTA codes: 4.096 us x 2^code. Ownership: the caller's. Threading: as the verbs. Errors: a
// Trouble that names the step and the rail.
#pragma once

#include <cstdint>

#include "coop/path/connect.h"
#include "coop/path/pairing.h"
#include "coop/path/port.h"
#include "coop/rail/verbs/address.h"
#include "coop/rail/verbs/hcas.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

struct RcCaps {
    std::uint32_t sends = 128;     // work requests that may be outstanding
    std::uint32_t receives = 128;  // ignored with a shared receive queue
    std::uint32_t send_sge = 1;
    std::uint32_t receive_sge = 1;
    std::uint32_t inline_bytes = 0;  // at most the HCA's max_inline
};

struct RcQp {
    Qp qp;
    RcCaps got;  // at least the requested values
    std::uint32_t qpn() const noexcept { return qp->qp_num; }
};

// Creates a queue pair in INIT on `local` (a port of `hca`), for send, write, read and atomics. If `srq` is
// null, it has its own receive queue. Only sends with IBV_SEND_SIGNALED generate a completion.
Wanted<RcQp> make_rc_qp(const Hca& hca, const path::PortRecord& local, ibv_cq* send_cq, ibv_cq* receive_cq,
                        ibv_srq* srq, const RcCaps& caps, void* user = nullptr);

// Timeouts, retries and address options of a connection.
struct RcTimes {
    std::uint8_t timeout = 18;        // for the acknowledgement of a packet, about 1 s
    std::uint8_t retries = 7;         // per packet
    std::uint8_t rnr_retries = 7;     // 7: forever
    std::uint8_t min_rnr_timer = 12;  // IBTA code: 0.64 ms
    AddressOptions address;
};

// Number of reads and atomics that may be outstanding on a rail: the smaller of what the local device can issue
// and what the remote one can serve.
std::uint8_t rd_atomic_depth(const Hca& initiator, const path::PortRecord& responder) noexcept;

// Takes `qp` from INIT through RTR to RTS. `ends` comes from Connection::rail().
Status connect_rc_qp(const Hca& hca, ibv_qp* qp, const path::PortRecord& local, const path::PortRecord& remote,
                     const path::PathChoice& path, const path::RailEnds& ends, const RcTimes& times = {});

// Whether RDMA writes of any length land in this queue pair's memory in ascending order, so that the arrival of
// the last byte implies that of all others. The queue pair must be in RTS: drivers answer for no other state.
// Returns false if the driver or a libibverbs before 36 cannot answer.
bool writes_land_in_order(ibv_qp* qp) noexcept;

// The path MTU of a queue pair in RTR or RTS; 256, the smallest value, if it cannot be queried.
std::uint32_t path_mtu_bytes(ibv_qp* qp) noexcept;

}  // namespace coop::rail

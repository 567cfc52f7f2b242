// SPDX-License-Identifier: BSD-3-Clause
//
// The reliable queue pair of a rail: made in INIT, so that receives can be posted
// before the peer knows it; then connected to the peer's (RTR, RTS) over one path.
//
// Units: timeouts as IBTA codes them: 4.096 us x 2^code. Ownership: the caller's.
// Threading: as the verbs. Errors: a Trouble that says which step of which rail.
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
    std::uint32_t receives = 128;  // without a shared receive queue; otherwise of no meaning
    std::uint32_t send_sge = 1;
    std::uint32_t receive_sge = 1;
    std::uint32_t inline_bytes = 0;  // at most the HCA's max_inline
};

struct RcQp {
    Qp qp;
    RcCaps got;  // at least what was asked for
    std::uint32_t qpn() const noexcept { return qp->qp_num; }
};

// In INIT on `local` (a port of `hca`), for send, write, read and atomics. `srq`
// may be null: then it has a receive queue of its own. Sends complete only if
// they ask for it (IBV_SEND_SIGNALED).
Wanted<RcQp> make_rc_qp(const Hca& hca, const path::PortRecord& local, ibv_cq* send_cq, ibv_cq* receive_cq, ibv_srq* srq,
                        const RcCaps& caps, void* user = nullptr);

// What a queue pair is told of its connection.
struct RcTimes {
    std::uint8_t timeout = 18;      // of a packet's acknowledgement, about 1 s
    std::uint8_t retries = 7;       // of a packet
    std::uint8_t rnr_retries = 7;   // 7: for ever
    std::uint8_t min_rnr_timer = 12;  // IBTA code: 0.64 ms
    AddressOptions address;
};

// Reads and atomics that may be outstanding on a rail from a process that has
// `initiator` to `responder`: what the device here issues and the one there answers.
std::uint8_t rd_atomic_depth(const Hca& initiator, const path::PortRecord& responder) noexcept;

// INIT -> RTR -> RTS. `ends` as Connection::rail() gives.
Status connect_rc_qp(const Hca& hca, ibv_qp* qp, const path::PortRecord& local, const path::PortRecord& remote,
                     const path::PathChoice& path, const path::RailEnds& ends, const RcTimes& times = {});

// Whether RDMA writes of any length land in this queue pair's memory in ascending order, so that the last byte says that all are
// there. Of a queue pair in RTS: drivers answer for no other. False too where the driver or a libibverbs before 36 says nothing.
bool writes_land_in_order(ibv_qp* qp) noexcept;

// Of a queue pair in RTR or RTS. 256, the least there is, if it cannot be queried.
std::uint32_t path_mtu_bytes(ibv_qp* qp) noexcept;

}  // namespace coop::rail

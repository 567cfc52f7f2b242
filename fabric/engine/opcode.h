// SPDX-License-Identifier: BSD-3-Clause
//
// Properties of the operations (InfiniBand 9.4: transport functions).
#pragma once

#include <infiniband/verbs.h>

namespace coop::fabric {

inline bool is_read(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_READ; }
inline bool is_atomic(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}
inline bool is_send(ibv_wr_opcode opcode) { return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM; }
inline bool is_write(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool has_imm(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Operations whose response carries data: they count against max_rd_atomic, and a fence waits for them.
inline bool is_read_or_atomic(ibv_wr_opcode opcode) { return is_read(opcode) || is_atomic(opcode); }
// Operations that consume a receive request of the responder.
inline bool takes_receive(ibv_wr_opcode opcode) { return is_send(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

}  // namespace coop::fabric

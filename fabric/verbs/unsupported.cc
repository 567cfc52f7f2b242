// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of libibverbs that are not implemented. They are defined so that
// libibverbs itself never gets one of our objects.
#include "fabric/verbs/exports.h"

using coop::fabric::refuse;

COOP_VERB int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }
COOP_VERB int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }

COOP_VERB int ibv_set_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }
COOP_VERB int ibv_query_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }

COOP_VERB ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
    return refuse<ibv_mr>(EOPNOTSUPP);
}

COOP_VERB ibv_context* ibv_import_device(int) { return refuse<ibv_context>(EOPNOTSUPP); }
COOP_VERB ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) { return refuse<ibv_pd>(EOPNOTSUPP); }
COOP_VERB void ibv_unimport_pd(ibv_pd*) {}
COOP_VERB ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) { return refuse<ibv_mr>(EOPNOTSUPP); }
COOP_VERB void ibv_unimport_mr(ibv_mr*) {}
COOP_VERB ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) { return refuse<ibv_dm>(EOPNOTSUPP); }
COOP_VERB void ibv_unimport_dm(ibv_dm*) {}

COOP_VERB int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
    return EOPNOTSUPP;
}

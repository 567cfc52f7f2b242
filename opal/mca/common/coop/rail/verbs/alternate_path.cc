// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/alternate_path.h"

namespace coop::rail {

AlternatePath alternate_path(const path::PortRecord& local, const path::PortRecord& remote,
                             const path::PathChoice& path, std::uint8_t timeout,
                             const AddressOptions& options) noexcept {
    return {address_of(local, remote, path.local_bits, path.remote_bits, options), local.pkey_index, timeout};
}

int load_alternate(ibv_qp* qp, const AlternatePath& path) noexcept {
    ibv_qp_attr attr{};
    attr.alt_ah_attr = path.address;
    attr.alt_pkey_index = path.pkey_index;
    attr.alt_port_num = path.port();
    attr.alt_timeout = path.timeout;
    attr.path_mig_state = IBV_MIG_REARM;
    return ibv_modify_qp(qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

int force_migration(ibv_qp* qp) noexcept {
    ibv_qp_attr attr{};
    attr.path_mig_state = IBV_MIG_MIGRATED;
    return ibv_modify_qp(qp, &attr, IBV_QP_PATH_MIG_STATE);
}

std::optional<SeenMigration> see_migration(ibv_qp* qp, std::span<const AlternatePath> ring) noexcept {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(qp, &attr, IBV_QP_PATH_MIG_STATE | IBV_QP_AV, &init) != 0) return std::nullopt;
    SeenMigration seen{attr.path_mig_state, std::nullopt};
    for (std::size_t i = 0; i < ring.size() && !seen.path; ++i) {
        const ibv_ah_attr &known = ring[i].address, &now = attr.ah_attr;
        if (known.dlid == now.dlid && known.src_path_bits == now.src_path_bits && known.port_num == now.port_num)
            seen.path = i;
    }
    return seen;
}

}  // namespace coop::rail

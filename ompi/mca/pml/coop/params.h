// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters of pml/coop, declared once: each row of kParams feeds the
// registration with Open MPI (ompi_info, MPI_T), the check at start and the
// parameter reference of the documentation. Config holds the values.
#pragma once

#include <cstdint>

#include "coop/base/param_table.h"
#include "coop/rndv/protocol.h"

namespace coop::pml {

// Values in the units of their rows. Ranges hold after check().
struct Config {
    std::int64_t priority = 0;
    std::int64_t protocol = 0;  // rndv::Wish
    std::int64_t eager_limit = 0;
    std::int64_t rndv_inline = 0;
    std::int64_t rdma_min = 0;
    std::int64_t isend_rdma_min = 0;
    std::int64_t rdma_chunk = 0;
    std::int64_t rdma_depth = 0;
    std::int64_t coop_min = 0;
    std::int64_t copy_chunk = 0;
    std::int64_t rtr_min = 0;
    std::int64_t bounce_max = 0;
    std::int64_t piece_min = 0;
    std::int64_t send_depth = 0;
    std::int64_t unexpected_inline = 0;
    std::int64_t free_list_num = 0;
    std::int64_t free_list_max = 0;
    std::int64_t free_list_inc = 0;
    std::int64_t report = 0;
    std::int64_t overlap = 0;   // Overlap
    const char* protocol_name = nullptr;  // as given; protocol is its index
    const char* overlap_name = nullptr;
    std::int64_t async = 0;     // Async
    const char* async_name = nullptr;
    std::int64_t fin = 0;       // Fin
    const char* fin_name = nullptr;
    std::int64_t hca = 0;       // HcaMode
    const char* hca_name = nullptr;
    std::int64_t hca_min = 0;
    std::int64_t hca_load = 0;
    std::int64_t copy_rate = 0;
    const char* fault = nullptr;          // specification of coop/base/fault.h
};

// The declarations, for registration and for the documentation.
const ParamTable<Config>& param_table() noexcept;
inline std::span<const ParamRow> params() noexcept { return param_table().rows(); }

// What the values of `config` do not keep to; sets the index of each kChoice.
std::optional<ParamError> check(Config& config);

// Whether a checked Config still says what `given` does.
bool same_values(const Config& given, const Config& checked) noexcept;

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters of osc/multirail, declared once: each row feeds the registration with Open MPI (ompi_info, MPI_T), the
// check at start and the parameter reference of the documentation. Config holds the values.
#pragma once

#include <cstdint>

#include "coop/base/param_table.h"

namespace coop::osc {

constexpr std::int64_t kDefaultPriority = 2;

struct Config {
    std::int64_t priority = 0;
    std::int64_t frame_bytes = 0;
    std::int64_t open_frames = 0;
    std::int64_t direct_min = 0;
    std::int64_t rendezvous_min = 0;
    std::int64_t shared_memory = 0;
    std::int64_t cma = 0;
    std::int64_t cma_min = 0;
    std::int64_t hca_control = 0;
    std::int64_t target_helps = 0;
    std::int64_t signals = 0;
    std::int64_t read_behind = 0;
    std::int64_t report = 0;
    const char* fault = nullptr;  // specification of coop/base/fault.h
};

// The declarations, for registration and for the documentation.
const ParamTable<Config>& param_table() noexcept;
inline std::span<const ParamRow> params() noexcept { return param_table().rows(); }

// Returns the first value that its row does not allow.
std::optional<ParamError> check(Config& config);

}  // namespace coop::osc

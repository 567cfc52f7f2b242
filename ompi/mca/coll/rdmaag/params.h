// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters of coll/rdmaag, declared once: each row of kParams feeds the registration with Open MPI (ompi_info,
// MPI_T), the check at start and the parameter reference of the documentation. Config holds the values.
#pragma once

#include <cstdint>

#include "coop/base/param_table.h"
#include "coop/coll/choice.h"

namespace coop::ag {

// How short steps travel.
enum class Row : std::uint8_t { kAuto, kAm, kBuffer };

struct Config {
    std::int64_t priority = 0;
    std::int64_t short_max = 0;
    std::int64_t ring_min = 0;
    std::int64_t algorithm = 0;            // coll::Wish
    const char* algorithm_name = nullptr;  // the word that was given
    std::int64_t report = 0;
    const char* fault = nullptr;  // specification of coop/base/fault.h
    std::int64_t row = 0;         // Row
    const char* row_name = nullptr;
    std::int64_t memory_max = 0;
    std::int64_t node = 0;
    std::int64_t node_slot = 0;
    std::int64_t node_memory = 0;
    std::int64_t tune = 0;  // calls by each way
};

// The declarations, for registration and for the documentation.
const ParamTable<Config>& param_table() noexcept;
inline std::span<const ParamRow> params() noexcept { return param_table().rows(); }

// Returns the first value that its row does not allow; sets the index of each kChoice.
std::optional<ParamError> check(Config& config);

}  // namespace coop::ag

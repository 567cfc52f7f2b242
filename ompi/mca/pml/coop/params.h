// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters of pml/coop, declared once: each row of kParams feeds the
// registration with Open MPI (ompi_info, MPI_T), the check at start and the
// parameter reference of the documentation. Config holds the values.
#pragma once

#include <cstdint>

#include "coop/base/param_table.h"
#include "coop/base/setting.h"
#include "coop/rndv/protocol.h"

namespace coop::pml {

// Values in the units of their rows. Ranges hold after check(). Settable parameters can change at any time.
struct Config {
    Setting priority = 0;
    Setting protocol = 0;  // rndv::Wish
    Setting eager_limit = 0;
    Setting rndv_inline = 0;
    Setting rdma_min = 0;
    Setting isend_rdma_min = 0;
    Setting rdma_chunk = 0;
    Setting rdma_depth = 0;
    Setting coop_min = 0;
    Setting copy_chunk = 0;
    Setting patience = 0;
    Setting rtr_min = 0;
    Setting bounce_max = 0;
    Setting lane = 0;
    Setting lane_small_max = 0;
    Setting lane_max = 0;
    Setting lane_read_min = 0;
    Setting lane_memory = 0;
    Setting lane_after = 0;
    Setting piece_min = 0;
    Setting send_depth = 0;
    Setting unexpected_inline = 0;
    Setting unexpected_idle = 0;
    Setting free_list_num = 0;
    Setting free_list_max = 0;
    Setting free_list_inc = 0;
    Setting report = 0;
    Setting overlap = 0;     // Overlap
    int protocol_index = 0;  // index of the word that was given
    int overlap_index = 0;
    Setting async = 0;                 // Async
    const char* async_name = nullptr;  // the word that was given; `async` is its index
    Setting fin = 0;                   // Fin
    const char* fin_name = nullptr;
    Setting hca = 0;  // HcaMode
    const char* hca_name = nullptr;
    Setting hca_min = 0;
    Setting hca_load = 0;
    Setting copy_rate = 0;
    const char* fault = nullptr;  // specification of coop/base/fault.h
};

// The declarations, for registration and for the documentation.
const ParamTable<Config, Setting>& param_table() noexcept;
inline std::span<const ParamRow> params() noexcept { return param_table().rows(); }

// Returns the first value that its row does not allow; sets the index of each kChoice.
std::optional<ParamError> check(Config& config);

// Open MPI can write settable parameters while the job runs, from any thread. is_rewritten() says whether `given`
// differs from `config`, which is in use. take_rewritten() copies the allowed values into `config` and returns the
// first one that is not allowed.
bool is_rewritten(const Config& given, const Config& config) noexcept;
std::optional<ParamError> take_rewritten(const Config& given, Config& config);

}  // namespace coop::pml

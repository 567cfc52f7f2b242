// SPDX-License-Identifier: BSD-3-Clause
//
// Which transport (BTL) carries what to another process.
//
// Threading: look_up_extensions() comes before all else; the others may be called in any thread.
#pragma once

#include "compat.h"
#include "coop/extension/btl_extension.h"
#include "ompi/mca/shim/codes.h"

namespace coop::ag {

constexpr std::uint32_t kAccess = MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_READ |
                                  MCA_BTL_REG_FLAG_REMOTE_WRITE;

// The transports with an extension, looked up once.
void look_up_extensions();
const BtlExtension* extension_of(const mca_btl_base_module_t& btl) noexcept;  // null: none
// Whether a transport of this process can write into collective buffers.
bool any_writes_buffers() noexcept;

// The transport for packets, and the one for puts; null: none.
mca_bml_base_btl_t* packets_to(mca_bml_base_endpoint_t& endpoint) noexcept;
bool may_put(mca_bml_base_endpoint_t& endpoint, const mca_bml_base_btl_t& btl) noexcept;
mca_bml_base_btl_t* puts_to(mca_bml_base_endpoint_t& endpoint) noexcept;

bool is_aligned(const mca_btl_base_module_t& btl, std::uint64_t local, std::uint64_t remote,
                std::uint64_t bytes) noexcept;

}  // namespace coop::ag

// SPDX-License-Identifier: BSD-3-Clause
#include "transports.h"

#include <algorithm>
#include <vector>

#include "coop/coll/packet.h"
#include "coop/extension/registry.h"

namespace coop::ag {
namespace {

struct Extended {
    const mca_btl_base_module_t* btl;
    const BtlExtension* extension;
};
std::vector<Extended>& extended() {
    static auto& all = *new std::vector<Extended>;
    return all;
}

}  // namespace

void look_up_extensions() {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        if (const auto found = find_extension(selected->btl_module); found.extension)
            extended().push_back({selected->btl_module, found.extension});
    }
}

const BtlExtension* extension_of(const mca_btl_base_module_t& btl) noexcept {
    for (const Extended& each : extended())
        if (each.btl == &btl) return each.extension;
    return nullptr;
}

bool any_writes_buffers() noexcept {
    return std::any_of(extended().begin(), extended().end(),
                       [](const Extended& each) { return each.extension->lands_in_order != nullptr; });
}

mca_bml_base_btl_t* packets_to(mca_bml_base_endpoint_t& endpoint) noexcept {
    return mca_bml_base_btl_array_get_index(&endpoint.btl_eager, 0);
}

// The BML offers every transport that has puts, also HCAs for processes of this node, and sorts them by bandwidth. Only
// those that carry packets to this process are meant for it.
bool may_put(mca_bml_base_endpoint_t& endpoint, const mca_bml_base_btl_t& btl) noexcept {
    constexpr std::uint32_t kNeeded = MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_SEND;
    return (btl.btl_flags & kNeeded) == kNeeded && btl.btl->btl_put &&
           btl.btl->btl_registration_handle_size <= coll::kMaxHandleBytes &&
           mca_bml_base_btl_array_find(&endpoint.btl_eager, btl.btl);
}

mca_bml_base_btl_t* puts_to(mca_bml_base_endpoint_t& endpoint) noexcept {
    for (std::size_t i = 0; i < mca_bml_base_btl_array_get_size(&endpoint.btl_rdma); ++i) {
        mca_bml_base_btl_t& btl = *mca_bml_base_btl_array_get_index(&endpoint.btl_rdma, i);
        if (may_put(endpoint, btl)) return &btl;
    }
    return nullptr;
}

bool is_aligned(const mca_btl_base_module_t& btl, std::uint64_t local, std::uint64_t remote,
                std::uint64_t bytes) noexcept {
    const std::uint64_t unit = btl.btl_put_alignment;
    return unit <= 1 || (local % unit == 0 && remote % unit == 0 && bytes % unit == 0);
}

}  // namespace coop::ag

// SPDX-License-Identifier: BSD-3-Clause
//
// The transports of this process that have an extension
// (coop/extension/btl_extension.h). Each BTL module is looked up once, when the pml
// is enabled; a peer and a request keep the pointer of the transport that they use.
//
// Threading: written before the first message and after the last. Ownership: the
// tables are the transports'. Errors: a table of another version counts as absent,
// and that is reported once on each node.
#pragma once

#include <span>
#include <vector>

#include "compat.h"
#include "coop/extension/btl_extension.h"

namespace coop::pml {

struct Extended {
    mca_btl_base_module_t* btl;
    const BtlExtension* extension;
};

class Extensions {
public:
    void look_up();
    void forget() noexcept { all_.clear(); }

    // One comparison for each transport with an extension: most often there is one, or none. Null: `btl` has none.
    const BtlExtension* of(const mca_btl_base_module_t& btl) const noexcept {
        for (const Extended& each : all_)
            if (each.btl == &btl) return each.extension;
        return nullptr;
    }
    std::span<const Extended> all() const noexcept { return all_; }

private:
    std::vector<Extended> all_;
};

}  // namespace coop::pml

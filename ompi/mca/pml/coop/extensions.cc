// SPDX-License-Identifier: BSD-3-Clause
#include "extensions.h"

#include "coop/extension/registry.h"
#include "diagnose.h"

namespace coop::pml {

void Extensions::look_up() {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        const ExtensionLookup found = find_extension(selected->btl_module);
        if (found.extension) all_.push_back({selected->btl_module, found.extension});
        if (found.unusable) extension_differs(selected->btl_component->btl_version.mca_component_name, *found.unusable);
    }
}

}  // namespace coop::pml

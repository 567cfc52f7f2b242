// SPDX-License-Identifier: BSD-3-Clause
//
// The published tables of btl_extension.h, by BTL module. One registry per process,
// in libmca_common_coop.so, because the components are loaded separately and do not
// see each other's symbols.
//
// The version is compared in find_extension(), which is compiled into the caller:
// transport and caller may be of different builds, and each knows its own version.
//
// Threading: any thread. Ownership: the transport owns its table and withdraws it
// before its module is destroyed. Errors: none; publishing a module again replaces
// its table.
#pragma once

#include "coop/base/export.h"
#include "coop/extension/btl_extension.h"

namespace coop {

COOP_EXPORT void publish_extension(const mca_btl_base_module_t* module, const BtlExtensionHead& table);
COOP_EXPORT void withdraw_extension(const mca_btl_base_module_t* module) noexcept;  // harmless if there is none
COOP_EXPORT const BtlExtensionHead* published_extension(
    const mca_btl_base_module_t* module) noexcept;  // a table of any version; null: none

struct ExtensionLookup {
    const BtlExtension* extension = nullptr;  // null: absent
    // A table of another version or size, which counts as absent; null: there is none.
    const BtlExtensionHead* unusable = nullptr;
};

inline ExtensionLookup find_extension(const mca_btl_base_module_t* module) noexcept {
    const BtlExtensionHead* const head = published_extension(module);
    if (head == nullptr) return {};
    if (head->abi != kBtlExtensionAbi || head->bytes != sizeof(BtlExtension)) return {nullptr, head};
    return {reinterpret_cast<const BtlExtension*>(head), nullptr};
}

}  // namespace coop

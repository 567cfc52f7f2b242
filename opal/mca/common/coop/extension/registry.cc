// SPDX-License-Identifier: BSD-3-Clause
#include "coop/extension/registry.h"

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

#include "coop/base/undestroyed.h"

namespace coop {

static_assert(std::is_standard_layout_v<BtlExtension> && offsetof(BtlExtension, head) == 0,
              "a table is found by its head");

namespace {

struct Entry {
    const mca_btl_base_module_t* module;
    const BtlExtensionHead* table;
};

struct Registry {
    std::mutex lock;
    std::vector<Entry> entries;

    auto find(const mca_btl_base_module_t* module) {
        return std::find_if(entries.begin(), entries.end(), [=](const Entry& entry) { return entry.module == module; });
    }
};

Undestroyed<Registry> registry_holder;
constexpr Registry& registry = registry_holder.value;

}  // namespace

void publish_extension(const mca_btl_base_module_t* module, const BtlExtensionHead& table) {
    const std::lock_guard guard(registry.lock);
    if (const auto entry = registry.find(module); entry != registry.entries.end()) entry->table = &table;
    else registry.entries.push_back({module, &table});
}

void withdraw_extension(const mca_btl_base_module_t* module) noexcept {
    const std::lock_guard guard(registry.lock);
    if (const auto entry = registry.find(module); entry != registry.entries.end()) registry.entries.erase(entry);
}

const BtlExtensionHead* published_extension(const mca_btl_base_module_t* module) noexcept {
    const std::lock_guard guard(registry.lock);
    const auto entry = registry.find(module);
    return entry != registry.entries.end() ? entry->table : nullptr;
}

}  // namespace coop

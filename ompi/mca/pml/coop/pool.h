// SPDX-License-Identifier: BSD-3-Clause
//
// Objects from Open MPI's free lists.
#pragma once

#include "module.h"
#include "coop/base/tsan.h"

namespace coop::pml {

// Returns null if there is no memory for more, or pml_coop_free_list_max is reached.
template <class Object>
Object* take(opal_free_list_t& list) noexcept {
    auto* object = reinterpret_cast<Object*>(opal_free_list_get(&list));
    tsan_acquire(object);
    return object;
}

template <class Object>
void give_back(opal_free_list_t& list, Object* object) noexcept {
    tsan_release(object);
    opal_free_list_return(&list, reinterpret_cast<opal_free_list_item_t*>(object));
}

}  // namespace coop::pml

// SPDX-License-Identifier: BSD-3-Clause
#include "info.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace coop::osc {
namespace {

// Open MPI's callbacks take and return text that they do not change.
char* text(const char* words) noexcept { return const_cast<char*>(words); }

bool is_boolean(std::string_view value) noexcept { return value == "true" || value == "false"; }

bool is_operations(std::string_view value) noexcept { return value == "same_op" || value == "same_op_no_op"; }

// "none", or a list of orders. Accumulates are ordered in any case.
bool is_ordering(std::string_view value) noexcept {
    constexpr std::string_view kOrders[] = {"rar", "raw", "war", "waw"};
    if (value == "none") return true;
    for (;;) {
        const std::size_t comma = value.find(',');
        if (std::find(std::begin(kOrders), std::end(kOrders), value.substr(0, comma)) == std::end(kOrders))
            return false;
        if (comma == std::string_view::npos) return true;
        value.remove_prefix(comma + 1);
    }
}

struct Key {
    const char* name;
    const char* standard;  // the default of the MPI standard
    bool (*is_valid)(std::string_view) noexcept;
    bool of_allocation;  // only of windows whose memory MPI allocates
};
constexpr Key kKeys[] = {
    {"accumulate_ordering", "rar,raw,war,waw", is_ordering, false},
    {"accumulate_ops", "same_op_no_op", is_operations, false},
    {"same_size", "false", is_boolean, false},
    {"same_disp_unit", "false", is_boolean, false},
    {"alloc_shared_noncontig", "false", is_boolean, true},
};

// Returns the value that the window keeps. Null: none; then MPI_Win_get_info does not return the key. `value` is null
// if the program has set none.
extern "C" char* mca_osc_multirail_take_info(opal_infosubscriber_t*, char* key, char* value) {
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                    [key](const Key& each) { return std::string_view(each.name) == key; });
    return value && found != std::end(kKeys) && found->is_valid(value) ? value : nullptr;
}

// The window cannot get locks, or lose them, after its creation.
extern "C" char* mca_osc_multirail_take_no_locks(opal_infosubscriber_t* object, char*, char*) {
    const auto* const win = reinterpret_cast<const ompi_win_t*>(object);
    return text((win->w_flags & OMPI_WIN_NO_LOCKS) != 0 ? "true" : "false");
}

}  // namespace

int subscribe_to_info(ompi_win_t& win) noexcept {
    if (const int rc = opal_infosubscribe_subscribe(&win.super, text("no_locks"), text("false"),
                                                    mca_osc_multirail_take_no_locks);
        rc != OMPI_SUCCESS)
        return rc;
    const bool allocates = win.w_flavor == MPI_WIN_FLAVOR_ALLOCATE || win.w_flavor == MPI_WIN_FLAVOR_SHARED;
    for (const Key& each : kKeys) {
        if (each.of_allocation && !allocates) continue;
        if (const int rc = opal_infosubscribe_subscribe(&win.super, text(each.name), text(each.standard),
                                                        mca_osc_multirail_take_info);
            rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

}  // namespace coop::osc

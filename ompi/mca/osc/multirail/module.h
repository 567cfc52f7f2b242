// SPDX-License-Identifier: BSD-3-Clause
//
// The module of a window, as Open MPI knows it.
#pragma once

#include "window.h"

struct mca_osc_multirail_module_t {
    ompi_osc_base_module_t super;
    coop::osc::Window* window;
};

namespace coop::osc {

// The functions that all modules have.
extern const ompi_osc_base_module_t kFunctions;

inline Window& window_of(ompi_win_t* win) noexcept {
    return *reinterpret_cast<mca_osc_multirail_module_t*>(win->w_osc_module)->window;
}

}  // namespace coop::osc

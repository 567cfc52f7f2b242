// SPDX-License-Identifier: BSD-3-Clause
//
// Variables of operations exist twice: for the process, and for the window that a handle is bound to (MPI 3.1, 14.3.2).
// Open MPI passes the window of the handle to the callbacks; it may belong to another component, or have been freed.
#include "pvars.h"

#include <array>
#include <numeric>

#include "counts.h"
#include "ompi/mca/shim/registration.h"
#include "process.h"

namespace coop::osc {
namespace {

std::array<std::size_t, kCells> cells;  // their numbers, for the contexts of variables

std::size_t cell_of(const mca_base_pvar_t& variable) noexcept { return *static_cast<const std::size_t*>(variable.ctx); }

extern "C" int mca_osc_multirail_read_sum(const mca_base_pvar_t* variable, void* value, void*) {
    *static_cast<unsigned long long*>(value) = sum_of_windows(cell_of(*variable));
    return OMPI_SUCCESS;
}

// An error makes the creation of the handle fail, because that reads a counter. (If the notification of the binding
// failed, Open MPI 4.1 would remove the handle from a list in which it is not.)
extern "C" int mca_osc_multirail_read_window(const mca_base_pvar_t* variable, void* value, void* win) {
    const auto count = count_of_window(win, cell_of(*variable));
    if (!count) return OPAL_ERR_NOT_BOUND;
    *static_cast<unsigned long long*>(value) = *count;
    return OMPI_SUCCESS;
}

void register_cell(const mca_base_component_t& component, std::size_t cell, Scope scope) noexcept {
    const Variable variable = cell_variable(cell, scope);
    const bool of_window = scope == Scope::kWindow;
    mca_base_component_pvar_register(
        &component, variable.name.c_str(), variable.help.c_str(), OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr,
        of_window ? MCA_BASE_VAR_BIND_MPI_WIN : MCA_BASE_VAR_BIND_NO_OBJECT,
        static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS),
        of_window ? mca_osc_multirail_read_window : mca_osc_multirail_read_sum, nullptr, nullptr, &cells[cell]);
}

}  // namespace

void register_variables(const mca_base_component_t& component) noexcept {
    for (std::size_t i = 0; i < std::size(kCountRows); ++i)
        register_counter(component, kCountRows[i].name, kCountRows[i].help, process.counts[i]);
    std::iota(cells.begin(), cells.end(), std::size_t{0});
    for (const Scope scope : {Scope::kProcess, Scope::kWindow})
        for (std::size_t cell = 0; cell < kCells; ++cell) register_cell(component, cell, scope);
}

}  // namespace coop::osc

// SPDX-License-Identifier: BSD-3-Clause
//
// The component structure that Open MPI loads: registration of the parameters, opening, and the module.
#include "async.h"
#include "awaited.h"
#include "device_memory.h"
#include "diagnose.h"
#include <algorithm>

#include "choices.h"
#include "coop_config.h"
#include "modex.h"
#include "report.h"

extern "C" __attribute__((visibility("default"))) mca_pml_base_component_t mca_pml_coop_component;

namespace coop::pml {
namespace {

void register_parameter(const ParamRow& row, void* value) noexcept {
    mca_base_var_enum_t* words = is_given_as_index(row) ? make_enumerator(row) : nullptr;
    const mca_base_var_type_t type = words                   ? MCA_BASE_VAR_TYPE_INT
                                     : is_given_as_text(row) ? MCA_BASE_VAR_TYPE_STRING
                                                             : MCA_BASE_VAR_TYPE_INT64_T;
    mca_base_component_var_register(
        &mca_pml_coop_component.pmlm_version, row.name, help_text(row).c_str(), type, words, 0,
        row.settable_at_run_time ? MCA_BASE_VAR_FLAG_SETTABLE : static_cast<mca_base_var_flag_t>(0),
        static_cast<mca_base_var_info_lvl_t>(OPAL_INFO_LVL_1 + row.level - 1),
        row.settable_at_run_time ? MCA_BASE_VAR_SCOPE_LOCAL : MCA_BASE_VAR_SCOPE_READONLY, value);
    if (words) OBJ_RELEASE(words);
}

extern "C" int mca_pml_coop_register(void) {
    for (std::size_t i = 0; i < params().size(); ++i)
        register_parameter(params()[i], param_table().set_default(module.given, i));
    register_performance_variables(mca_pml_coop_component.pmlm_version);
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_open(void) {
    opal_show_help_add_dir(COOP_HELP_DIR);
    return mca_base_framework_open(&ompi_bml_base_framework, static_cast<mca_base_open_flag_t>(0));
}

extern "C" int mca_pml_coop_close(void) { return mca_base_framework_close(&ompi_bml_base_framework); }

bool any_transport(std::uint32_t flag) noexcept {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        if (selected->btl_module->btl_flags & flag) return true;
    }
    return false;
}

extern "C" mca_pml_base_module_t* mca_pml_coop_init(int* priority, bool progress_threads, bool mpi_threads) {
    if (mca_bml_base_init(progress_threads, mpi_threads) != OMPI_SUCCESS) return nullptr;
    *priority = static_cast<int>(
        std::max<std::int64_t>(module.given.priority, 0));  // enable() reports a value that is out of range
    if (any_transport(MCA_BTL_FLAGS_SINGLE_ADD_PROCS)) base_module.pml_flags |= MCA_PML_BASE_FLAG_REQUIRE_WORLD;
    find_devices();
    open_node();
    publish_modex();
    return &base_module;
}

extern "C" int mca_pml_coop_fini(void) {
    stop_async();
    stop_watching_waits();
    stop_counting_hca_loads();
    const int rc = mca_bml.bml_finalize();
    if (!module.enabled) return rc;
    module.enabled = false;
    close_node();
    module.extensions.forget();
    opal_progress_unregister(mca_pml_coop_progress);
    OBJ_DESTRUCT(&module.arrived);
    module.blocks.clear();
    OBJ_DESTRUCT(&module.rdma_ops);
    OBJ_DESTRUCT(&module.lock);
    return rc;
}

}  // namespace
}  // namespace coop::pml

using namespace coop::pml;

mca_pml_base_component_t mca_pml_coop_component = {
    .pmlm_version =
        {
            MCA_PML_BASE_VERSION_2_0_0,
            .mca_component_name = "coop",
            MCA_BASE_MAKE_VERSION(component, COOP_VERSION_MAJOR, COOP_VERSION_MINOR, COOP_VERSION_RELEASE),
            .mca_open_component = mca_pml_coop_open,
            .mca_close_component = mca_pml_coop_close,
            .mca_register_component_params = mca_pml_coop_register,
        },
    .pmlm_init = mca_pml_coop_init,
    .pmlm_finalize = mca_pml_coop_fini,
};

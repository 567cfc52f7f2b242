// SPDX-License-Identifier: BSD-3-Clause
//
// The component structure that Open MPI loads: it registers parameters and performance variables, says whether it
// serves a window, and makes a module for each window.
#include <cstring>

#include "coop_config.h"
#include "diagnose.h"
#include "frames.h"
#include "info.h"
#include "module.h"
#include "ompi/mca/shim/peers.h"
#include "ompi/mca/shim/registration.h"
#include "ompi/mca/shim/threads.h"
#include "pvars.h"
#include "report.h"

extern "C" __attribute__((visibility("default"))) ompi_osc_base_component_t mca_osc_multirail_component;

namespace coop::osc {

Undestroyed<Process> process_holder;

namespace {

PublishedUse& use() noexcept {
    static auto& published = *new PublishedUse("osc.multirail", modex_failed);
    return published;
}
UseCard own_card() noexcept { return {rma::kPacketVersion, static_cast<std::uint32_t>(process.given.priority)}; }

const mca_base_component_t& version() noexcept { return mca_osc_multirail_component.osc_version; }

extern "C" int mca_osc_multirail_register(void) {
    register_parameters(version(), param_table(), process.given);
    register_variables(version());
    return OMPI_SUCCESS;
}

// Whether the user has selected the component, by its name or by a priority. Otherwise it does not ask what all
// processes have published, which would cost a message for each of them.
bool is_wanted() noexcept {
    const char* const names = ompi_osc_base_framework.framework_selection;
    const bool named = names && names[0] != '^' && std::strstr(names, "multirail");
    return process.given.priority > 0 && (named || process.given.priority != kDefaultPriority);
}

// Before Open MPI exchanges the modex.
extern "C" int mca_osc_multirail_open(void) {
    opal_show_help_add_dir(COOP_HELP_DIR);
    if (is_wanted()) use().publish(own_card());
    return OMPI_SUCCESS;
}

extern "C" int mca_osc_multirail_close(void) { return OMPI_SUCCESS; }

// Always succeeds: after an error, Open MPI would close the component in this process only.
extern "C" int mca_osc_multirail_init(bool, bool) {
    process.threads = threads_meet_in_mpi();
    take_parameters(process, parameter_out_of_range);
    receive_packets();  // before any process can have a window
    return OMPI_SUCCESS;
}

extern "C" int mca_osc_multirail_finalize(void) {
    print_report();
    process.staging.close();
    return OMPI_SUCCESS;
}

// Every process must give the same answer, because Open MPI does not compare them: so the answer depends only on what
// all processes have published, and on which of them share a node.
extern "C" int mca_osc_multirail_query(ompi_win_t*, void**, size_t, int, ompi_communicator_t* comm, opal_info_t*,
                                       int flavor) {
    if (!is_wanted() || !use().all_publish(*comm, own_card())) return -1;
    if (flavor == MPI_WIN_FLAVOR_SHARED)
        for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ompi_comm_size(comm)); ++rank)
            if (!is_on_this_node(*comm, rank)) return OMPI_ERR_RMA_SHARED;  // the program gets this error
    return static_cast<int>(process.config.priority);
}

extern "C" int mca_osc_multirail_select(ompi_win_t* win, void** base, size_t size, int unit, ompi_communicator_t* comm,
                                        opal_info_t* info, int flavor, int* model) {
    const Inside inside;
    std::unique_ptr<Window> window;
    int rc = Window::create(*win, base, size, unit, *comm, info, flavor, window);
    if (rc != OMPI_SUCCESS) return rc;
    // Every process has the same keys, so this fails only for a lack of memory, and not in all of them: end the job.
    if (rc = subscribe_to_info(*win); rc != OMPI_SUCCESS) out_of_memory("the info of a window");
    auto* const module = new (std::nothrow) mca_osc_multirail_module_t{kFunctions, window.release()};
    if (!module) out_of_memory("the module of a window");
    if (flavor != MPI_WIN_FLAVOR_SHARED) module->super.osc_win_shared_query = nullptr;  // Open MPI returns the error
    win->w_osc_module = &module->super;
    *model = MPI_WIN_UNIFIED;
    ompi_win_set_name(win, ("multirail window " + std::to_string(module->window->context())).c_str());
    module->window->counts().begin(*win);
    return OMPI_SUCCESS;
}

}  // namespace
}  // namespace coop::osc

using namespace coop::osc;

ompi_osc_base_component_t mca_osc_multirail_component = {
    .osc_version =
        {
            OMPI_OSC_BASE_VERSION_3_0_0,
            .mca_component_name = "multirail",
            MCA_BASE_MAKE_VERSION(component, COOP_VERSION_MAJOR, COOP_VERSION_MINOR, COOP_VERSION_RELEASE),
            .mca_open_component = mca_osc_multirail_open,
            .mca_close_component = mca_osc_multirail_close,
            .mca_register_component_params = mca_osc_multirail_register,
        },
    .osc_init = mca_osc_multirail_init,
    .osc_query = mca_osc_multirail_query,
    .osc_select = mca_osc_multirail_select,
    .osc_finalize = mca_osc_multirail_finalize,
};

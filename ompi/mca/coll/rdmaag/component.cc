// SPDX-License-Identifier: BSD-3-Clause
//
// The component structure that Open MPI loads: registration of parameters and performance variables, one module for
// each communicator, the report.
#include "arena.h"
#include "coop_config.h"
#include "diagnose.h"
#include "module.h"
#include "ompi/mca/shim/registration.h"
#include "ompi/mca/shim/threads.h"
#include "outstanding.h"
#include "peers.h"
#include "report.h"

extern "C" __attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_rdmaag_component;

namespace coop::ag {

Undestroyed<Process> process_holder;

namespace {

const mca_base_component_t& version() noexcept { return mca_coll_rdmaag_component.collm_version; }

void register_variable(const Variable& variable, Tally& counter) noexcept {
    register_counter(version(), variable.name, variable.help, counter);
}

extern "C" int mca_coll_rdmaag_register(void) {
    register_parameters(version(), param_table(), process.given);
    for (std::size_t i = 0; i < std::size(kCountRows); ++i)
        register_variable({kCountRows[i].name, kCountRows[i].help}, process.counts[i]);
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i)
        register_variable(calls_variable(static_cast<coll::Algorithm>(i)), process.calls[i]);
    for (std::size_t i = 0; i < coll::kReasons; ++i)
        register_variable(chosen_variable(static_cast<coll::Reason>(i)), process.reasons[i]);
    for (std::size_t i = 0; i < kLanes; ++i) register_variable(calls_variable(static_cast<Lane>(i)), process.lanes[i]);
    for (std::size_t i = 0; i < kWhyNots; ++i)
        register_variable(left_variable(static_cast<WhyNot>(i)), process.left_to_others[i]);
    return OMPI_SUCCESS;
}

extern "C" int mca_coll_rdmaag_open(void) {
    opal_show_help_add_dir(COOP_HELP_DIR);
    if (process.given.priority > 0) publish_use(process.given.priority);
    return OMPI_SUCCESS;
}

extern "C" int mca_coll_rdmaag_close(void) {
    stop_polling();
    return OMPI_SUCCESS;
}

extern "C" int mca_coll_rdmaag_init_query(bool, bool) {
    // As in pml/coop, whose handler and the application take turns if no threads meet.
    process.threads = threads_meet_in_mpi();
    take_parameters(process, parameter_out_of_range);
    prepare_requests();
    return OMPI_SUCCESS;
}

extern "C" int mca_coll_rdmaag_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
    State& state = *reinterpret_cast<mca_coll_rdmaag_module_t*>(base)->state;
    const mca_coll_base_comm_coll_t& below = *comm->c_coll;
    if (!below.coll_allgather || !below.coll_allgatherv || !below.coll_iallgather || !below.coll_iallgatherv ||
        !below.coll_allreduce)
        return OMPI_ERROR;
    state.comm = comm;
    state.allgather = below.coll_allgather;
    state.allgather_module = below.coll_allgather_module;
    state.allgatherv = below.coll_allgatherv;
    state.allgatherv_module = below.coll_allgatherv_module;
    state.iallgather = below.coll_iallgather;
    state.iallgather_module = below.coll_iallgather_module;
    state.iallgatherv = below.coll_iallgatherv;
    state.iallgatherv_module = below.coll_iallgatherv_module;
    OBJ_RETAIN(state.allgather_module);
    OBJ_RETAIN(state.allgatherv_module);
    OBJ_RETAIN(state.iallgather_module);
    OBJ_RETAIN(state.iallgatherv_module);
    return OMPI_SUCCESS;
}

// Null: coll/rdmaag has nothing to do with the communicator.
extern "C" mca_coll_base_module_t* mca_coll_rdmaag_comm_query(ompi_communicator_t* comm, int* priority) {
    *priority = static_cast<int>(process.config.priority);
    if (comm == &ompi_mpi_comm_world.comm) report_at_finalize();
    if (process.config.priority == 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return nullptr;
    auto* module = OBJ_NEW(mca_coll_rdmaag_module_t);
    if (!module) return nullptr;
    module->super.coll_module_enable = mca_coll_rdmaag_enable;
    module->super.coll_allgather = mca_coll_rdmaag_allgather;
    module->super.coll_allgatherv = mca_coll_rdmaag_allgatherv;
    module->super.coll_iallgather = mca_coll_rdmaag_iallgather;
    module->super.coll_iallgatherv = mca_coll_rdmaag_iallgatherv;
    return &module->super;
}

void construct(mca_coll_rdmaag_module_t* module) {
    module->state = new State;
    arena().retain();
}

void destruct(mca_coll_rdmaag_module_t* module) {
    if (module->state->allgather_module) OBJ_RELEASE(module->state->allgather_module);
    if (module->state->allgatherv_module) OBJ_RELEASE(module->state->allgatherv_module);
    if (module->state->iallgather_module) OBJ_RELEASE(module->state->iallgather_module);
    if (module->state->iallgatherv_module) OBJ_RELEASE(module->state->iallgatherv_module);
    delete module->state;
    arena().release();
}

}  // namespace
}  // namespace coop::ag

using namespace coop::ag;

OBJ_CLASS_INSTANCE(mca_coll_rdmaag_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_component_t mca_coll_rdmaag_component = {
    .collm_version =
        {
            MCA_COLL_BASE_VERSION_2_0_0,
            .mca_component_name = "rdmaag",
            MCA_BASE_MAKE_VERSION(component, COOP_VERSION_MAJOR, COOP_VERSION_MINOR, COOP_VERSION_RELEASE),
            .mca_open_component = mca_coll_rdmaag_open,
            .mca_close_component = mca_coll_rdmaag_close,
            .mca_register_component_params = mca_coll_rdmaag_register,
        },
    .collm_init_query = mca_coll_rdmaag_init_query,
    .collm_comm_query = mca_coll_rdmaag_comm_query,
};

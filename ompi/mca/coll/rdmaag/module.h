// SPDX-License-Identifier: BSD-3-Clause
//
// The module of one communicator: Open MPI calls its functions, and they use the group of the communicator, or leave
// the call to the component of lower priority.
#pragma once

#include <vector>

#include "coop/coll/tuner.h"
#include "group.h"
#include "hierarchy.h"
#include "process.h"

namespace coop::ag {

struct State {
    ompi_communicator_t* comm = nullptr;
    mca_coll_base_module_allgather_fn_t allgather = nullptr;  // of the component of lower priority
    mca_coll_base_module_t* allgather_module = nullptr;
    mca_coll_base_module_allgatherv_fn_t allgatherv = nullptr;
    mca_coll_base_module_t* allgatherv_module = nullptr;
    mca_coll_base_module_iallgather_fn_t iallgather = nullptr;
    mca_coll_base_module_t* iallgather_module = nullptr;
    mca_coll_base_module_iallgatherv_fn_t iallgatherv = nullptr;
    mca_coll_base_module_t* iallgatherv_module = nullptr;

    std::uint32_t calls = 0;       // that could have been done here
    bool decided = false;          // the processes have agreed, or not
    WhyNot why_not{};              // if decided without a group
    std::unique_ptr<Group> group;  // null: not yet, or never
    // Blocking calls may go through it instead of the group (plan.cc). Null: no processes share memory.
    std::unique_ptr<Hierarchy> hierarchy;
    std::unique_ptr<coll::Tuner> tuner;  // if there is a group
    std::vector<std::uint64_t> ends;     // of the blocks of MPI_Allgatherv
    std::vector<int> lengths, begins;    // the same, for the component of lower priority
};

// The group, if this call is done here; the result has `bytes` bytes. Every process of the communicator comes to the
// same result. The second call sets up the group and the hierarchy (agree.cc).
Group* group_for(State& state, std::uint64_t bytes) noexcept;
// The same for a non-blocking call, which cannot set up the group: the call is left to others until blocking calls have
// done so, and does not count as a first or second one.
Group* prepared_group(State& state, std::uint64_t bytes) noexcept;
// Before the first non-blocking call, which several threads may make at once.
void prepare_requests() noexcept;

// Whether all calls are left to other components; then counts this one. It need not know the lengths of the blocks, which
// take time in proportion to the number of processes, unless the report shows them.
bool leaves_all(const State& state) noexcept;

}  // namespace coop::ag

// C++ members behind a pointer, because Open MPI allocates and copies the object.
struct mca_coll_rdmaag_module_t {
    mca_coll_base_module_t super;
    coop::ag::State* state;
};
OBJ_CLASS_DECLARATION(mca_coll_rdmaag_module_t);

namespace coop::ag {

inline State& state_of(mca_coll_base_module_t* module) noexcept {
    return *reinterpret_cast<mca_coll_rdmaag_module_t*>(module)->state;
}

}  // namespace coop::ag

extern "C" {
int mca_coll_rdmaag_allgather(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, int rcount,
                              ompi_datatype_t* rdtype, ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_rdmaag_allgatherv(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                               const int* displs, ompi_datatype_t* rdtype, ompi_communicator_t* comm,
                               mca_coll_base_module_t* module);
int mca_coll_rdmaag_iallgather(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, int rcount,
                               ompi_datatype_t* rdtype, ompi_communicator_t* comm, ompi_request_t** request,
                               mca_coll_base_module_t* module);
int mca_coll_rdmaag_iallgatherv(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, const int* rcounts,
                                const int* displs, ompi_datatype_t* rdtype, ompi_communicator_t* comm,
                                ompi_request_t** request, mca_coll_base_module_t* module);
}

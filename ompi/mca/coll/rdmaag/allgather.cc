// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Allgather and MPI_Allgatherv.
#include "buffers.h"
#include "ompi/mca/shim/inside.h"
#include "module.h"
#include "plan.h"

namespace coop::ag {
namespace {

// `sbuf`, `scount` and `sdtype` as in MPI_Allgather.
int gather(State& state, coll::Operation operation, const void* sbuf, int scount, ompi_datatype_t* sdtype,
           const Received& received, const coll::Blocks& blocks, const coll::Way& way) noexcept {
    Buffers buffers(static_cast<std::uint32_t>(ompi_comm_rank(state.comm)), sbuf, scount, sdtype, received, blocks,
                    way.shared_memory);
    if (!way.algorithm && !way.shared_memory) {
        const int rc = gather_by_others(state, operation, buffers.memory(), blocks);
        const int rc_of_buffers = buffers.finish();
        return rc == OMPI_SUCCESS ? rc_of_buffers : rc;
    }
    const Inside inside;
    if (way.shared_memory) state.hierarchy->gather(buffers.own(), buffers.memory(), blocks);
    else state.group->gather(buffers.memory(), blocks, way);
    return buffers.finish();
}

// `below` leaves the call to the component of lower priority.
template <class Below>
int gather_or_leave(State& state, coll::Operation operation, const void* sbuf, int scount, ompi_datatype_t* sdtype,
                    const Received& received, const coll::Blocks& blocks, Below below) {
    if (!group_for(state, blocks.bytes())) return below();
    return do_as_planned(state, operation, blocks, [&](const coll::Way& way) {
        return gather(state, operation, sbuf, scount, sdtype, received, blocks, way);
    });
}

}  // namespace
}  // namespace coop::ag

using namespace coop;
using namespace coop::ag;

extern "C" int mca_coll_rdmaag_allgather(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                         ompi_datatype_t* rdtype, ompi_communicator_t* comm,
                                         mca_coll_base_module_t* module) {
    State& state = state_of(module);
    const Received received{static_cast<std::byte*>(rbuf), rdtype, rcount, nullptr, nullptr};
    const coll::Blocks blocks(static_cast<std::uint32_t>(ompi_comm_size(comm)), received.block(0).bytes());
    return gather_or_leave(state, coll::Operation::kAllgather, sbuf, scount, sdtype, received, blocks, [&] {
        return state.allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, state.allgather_module);
    });
}

extern "C" int mca_coll_rdmaag_allgatherv(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf,
                                          const int* rcounts, const int* displs, ompi_datatype_t* rdtype,
                                          ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    State& state = state_of(module);
    const Received received{static_cast<std::byte*>(rbuf), rdtype, 0, rcounts, displs};
    const auto below = [&] {
        return state.allgatherv(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, state.allgatherv_module);
    };
    if (leaves_all(state)) return below();
    std::uint64_t end = 0;
    if (state.ends.empty()) state.ends.resize(static_cast<std::size_t>(ompi_comm_size(comm)));
    for (std::uint32_t rank = 0; rank < state.ends.size(); ++rank)
        state.ends[rank] = end += received.block(rank).bytes();
    const coll::Blocks blocks{std::span<const std::uint64_t>(state.ends)};
    return gather_or_leave(state, coll::Operation::kAllgatherv, sbuf, scount, sdtype, received, blocks, below);
}

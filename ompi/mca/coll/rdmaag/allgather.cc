// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Allgather and MPI_Allgatherv.
#include "buffers.h"
#include "module.h"

namespace coop::ag {
namespace {

void gather_by_transports(Group& group, std::byte* memory, const coll::Blocks& blocks) noexcept {
    const auto choice = coll::choose({blocks.processes(), blocks.bytes(),
                                      static_cast<coll::Wish>(process.config.algorithm),
                                      static_cast<std::uint64_t>(process.config.ring_min)});
    process.count(choice.algorithm);
    group.gather(memory, blocks, choice.algorithm);
}

// `sbuf`, `scount` and `sdtype` as in MPI_Allgather.
int gather(State& state, Group& group, std::uint32_t rank, const void* sbuf, int scount, ompi_datatype_t* sdtype,
           const Received& received, const coll::Blocks& blocks) noexcept {
    Buffers buffers(rank, sbuf, scount, sdtype, received, blocks);
    if (state.hierarchy) {
        process.count(state.hierarchy->lane());
        state.hierarchy->gather(buffers.memory(), blocks);
    } else {
        gather_by_transports(group, buffers.memory(), blocks);
    }
    return buffers.finish();
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
    if (Group* const group = group_for(state, blocks.bytes()))
        return gather(state, *group, static_cast<std::uint32_t>(ompi_comm_rank(comm)), sbuf, scount, sdtype, received,
                      blocks);
    return state.allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, state.allgather_module);
}

extern "C" int mca_coll_rdmaag_allgatherv(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf,
                                          const int* rcounts, const int* displs, ompi_datatype_t* rdtype,
                                          ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    State& state = state_of(module);
    const Received received{static_cast<std::byte*>(rbuf), rdtype, 0, rcounts, displs};
    std::uint64_t end = 0;
    if (state.ends.empty()) state.ends.resize(static_cast<std::size_t>(ompi_comm_size(comm)));
    for (std::uint32_t rank = 0; rank < state.ends.size(); ++rank)
        state.ends[rank] = end += received.block(rank).bytes();
    const coll::Blocks blocks{std::span<const std::uint64_t>(state.ends)};
    if (Group* const group = group_for(state, end))
        return gather(state, *group, static_cast<std::uint32_t>(ompi_comm_rank(comm)), sbuf, scount, sdtype, received,
                      blocks);
    return state.allgatherv(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, state.allgatherv_module);
}

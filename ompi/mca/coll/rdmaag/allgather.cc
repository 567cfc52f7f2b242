// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Allgather and MPI_Allgatherv. The blocks travel as bytes, in the order of the ranks and without gaps. Where they
// lie otherwise in the receive buffer, they are gathered in memory of our own and unpacked.
#include <algorithm>
#include <cstring>
#include <new>

#include "diagnose.h"
#include "module.h"

namespace coop::ag {
namespace {

// Elements of a datatype in the caller's memory.
struct Elements {
    std::byte* address;
    std::size_t count;
    ompi_datatype_t* type;

    std::size_t bytes() const noexcept {
        std::size_t size;
        ompi_datatype_type_size(type, &size);
        return size * count;
    }
};

// Whether the elements of the type lie one after the other without gaps.
bool is_dense(ompi_datatype_t* type) noexcept {
    ptrdiff_t lower, extent, true_lower, true_extent;
    std::size_t size;
    ompi_datatype_get_extent(type, &lower, &extent);
    ompi_datatype_get_true_extent(type, &true_lower, &true_extent);
    ompi_datatype_type_size(type, &size);
    return ompi_datatype_is_contiguous_memory_layout(type, 2) && true_lower == 0 &&
           static_cast<std::size_t>(extent) == size;
}

ptrdiff_t extent_of(ompi_datatype_t* type) noexcept {
    ptrdiff_t lower, extent;
    ompi_datatype_get_extent(type, &lower, &extent);
    return extent;
}

// At most `bytes` bytes.
void pack(const Elements& from, std::byte* to, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    if (is_dense(from.type)) {
        std::memcpy(to, from.address, bytes);
        return;
    }
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &from.type->super, from.count, from.address, 0,
                                             &convertor);
    iovec whole{to, bytes};
    std::uint32_t pieces = 1;
    opal_convertor_pack(&convertor, &whole, &pieces, &bytes);
    OBJ_DESTRUCT(&convertor);
}

void unpack(std::byte* from, std::size_t bytes, const Elements& to) noexcept {
    if (bytes == 0) return;
    if (is_dense(to.type)) {
        std::memcpy(to.address, from, bytes);
        return;
    }
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &to.type->super, to.count, to.address, 0,
                                             &convertor);
    iovec whole{from, bytes};
    std::uint32_t pieces = 1;
    opal_convertor_unpack(&convertor, &whole, &pieces, &bytes);
    OBJ_DESTRUCT(&convertor);
}

// The blocks in the receive buffer of MPI_Allgather or MPI_Allgatherv.
struct Received {
    std::byte* buffer;
    ompi_datatype_t* type;
    int count;          // of each block, if counts is null
    const int* counts;  // of the blocks, and where they begin, in extents
    const int* displs;

    Elements block(std::uint32_t rank) const noexcept {
        const ptrdiff_t begin = counts ? displs[rank] : static_cast<ptrdiff_t>(rank) * count;
        return {buffer + begin * extent_of(type), static_cast<std::size_t>(counts ? counts[rank] : count), type};
    }

    // Whether the blocks lie as they travel.
    bool is_dense(const coll::Blocks& blocks) const noexcept {
        if (!ag::is_dense(type)) return false;
        if (!counts) return true;
        for (std::uint32_t rank = 0; rank < blocks.processes(); ++rank)
            if (counts[rank] > 0 && block(rank).address != buffer + blocks.begin_of(rank)) return false;
        return true;
    }
};

// The blocks in memory of our own, if they do not lie as they travel.
std::unique_ptr<std::byte[]> staging_for(const coll::Blocks& blocks) {
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[blocks.bytes()]);
    // The other processes are in the call already, so it cannot be left to another component.
    if (!memory) out_of_memory(blocks.bytes());
    return memory;
}

void gather_by_transports(Group& group, std::byte* memory, const coll::Blocks& blocks) noexcept {
    const auto choice = coll::choose({blocks.processes(), blocks.bytes(),
                                      static_cast<coll::Wish>(process.config.algorithm),
                                      static_cast<std::uint64_t>(process.config.ring_min)});
    process.count(choice.algorithm);
    group.gather(memory, blocks, choice.algorithm);
}

// `sbuf`, `scount` and `sdtype` as in MPI_Allgather.
int gather(Group& group, std::uint32_t rank, const void* sbuf, int scount, ompi_datatype_t* sdtype,
           const Received& received, const coll::Blocks& blocks) noexcept {
    const std::uint64_t own = blocks.bytes_of(rank);
    const bool in_place = sbuf == MPI_IN_PLACE, dense = received.is_dense(blocks);
    const std::unique_ptr<std::byte[]> staging = dense ? nullptr : staging_for(blocks);
    std::byte* const memory = dense ? received.buffer : staging.get();

    // Open MPI's convertor takes the buffer without const.
    const Elements sent{static_cast<std::byte*>(const_cast<void*>(sbuf)), static_cast<std::size_t>(scount), sdtype};
    const Elements from = in_place ? received.block(rank) : sent;
    const std::size_t contributed = from.bytes();
    const bool as_it_is = group.hierarchy() && !in_place && is_dense(sdtype) && contributed == own;
    if (!as_it_is && (!in_place || !dense))
        pack(from, memory + blocks.begin_of(rank), std::min<std::uint64_t>(contributed, own));

    if (Hierarchy* const hierarchy = group.hierarchy()) {
        process.count(hierarchy->lane());
        hierarchy->gather(group, as_it_is ? sent.address : memory + blocks.begin_of(rank), memory, blocks);
    } else {
        gather_by_transports(group, memory, blocks);
    }

    if (!dense)
        for (std::uint32_t block = 0; block < blocks.processes(); ++block)
            if (!in_place || block != rank)
                unpack(memory + blocks.begin_of(block), blocks.bytes_of(block), received.block(block));
    return contributed > own ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
}

State& state_of(mca_coll_base_module_t* module) noexcept {
    return *reinterpret_cast<mca_coll_rdmaag_module_t*>(module)->state;
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
        return gather(*group, static_cast<std::uint32_t>(ompi_comm_rank(comm)), sbuf, scount, sdtype, received, blocks);
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
        return gather(*group, static_cast<std::uint32_t>(ompi_comm_rank(comm)), sbuf, scount, sdtype, received, blocks);
    return state.allgatherv(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, state.allgatherv_module);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "buffers.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "diagnose.h"

namespace coop::ag {
namespace {

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

std::unique_ptr<std::byte[]> allocate(std::size_t bytes) noexcept {
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    if (!memory) out_of_memory(bytes);
    return memory;
}

}  // namespace

Elements Received::block(std::uint32_t rank) const noexcept {
    const ptrdiff_t begin = counts ? displs[rank] : static_cast<ptrdiff_t>(rank) * count;
    return {buffer + begin * extent_of(type), static_cast<std::size_t>(counts ? counts[rank] : count), type};
}

bool Received::is_dense(const coll::Blocks& blocks) const noexcept {
    if (!ag::is_dense(type)) return false;
    if (!counts) return true;
    for (std::uint32_t rank = 0; rank < blocks.processes(); ++rank)
        if (counts[rank] > 0 && block(rank).address != buffer + blocks.begin_of(rank)) return false;
    return true;
}

Buffers::Buffers(std::uint32_t rank, const void* sbuf, int scount, ompi_datatype_t* sdtype, const Received& received,
                 const coll::Blocks& blocks, bool may_stay) noexcept
    : rank_(rank), in_place_(sbuf == MPI_IN_PLACE), received_(received), blocks_(blocks),
      staging_(received.is_dense(blocks) ? nullptr : allocate(blocks.bytes())),
      memory_(staging_ ? staging_.get() : received.buffer) {
    // Open MPI's convertor takes the buffer without const.
    const Elements sent{static_cast<std::byte*>(const_cast<void*>(sbuf)), static_cast<std::size_t>(scount), sdtype};
    const Elements from = in_place_ ? received.block(rank) : sent;
    const std::size_t contributed = from.bytes(), own = blocks.bytes_of(rank);
    too_long_ = contributed > own;
    own_ = memory_ + blocks.begin_of(rank);
    if (may_stay && !in_place_ && contributed == own && ag::is_dense(sdtype)) own_ = sent.address;
    else if (!in_place_ || staging_) pack(from, memory_ + blocks.begin_of(rank), std::min(contributed, own));
}

int Buffers::finish() noexcept {
    if (staging_)
        for (std::uint32_t block = 0; block < blocks_.processes(); ++block)
            if (!in_place_ || block != rank_)
                unpack(memory_ + blocks_.begin_of(block), blocks_.bytes_of(block), received_.block(block));
    return too_long_ ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
}

}  // namespace coop::ag

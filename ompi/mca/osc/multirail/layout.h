// SPDX-License-Identifier: BSD-3-Clause
//
// Open MPI's datatypes, as one-sided operations need them: what an access covers, its blocks in order, the elements of
// accumulates, and packing.
//
// Threading: functions are pure; a Packer or an Unpacker is used by one thread at a time. Errors: std::bad_alloc.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compat.h"
#include "coop/rma/range.h"
#include "coop/rma/runs.h"
#include "ompi/mca/shim/pack.h"

namespace coop::osc {

// The address may be MPI_BOTTOM, a null pointer, from which C++ permits no offset.
inline std::byte* shifted(const void* address, std::ptrdiff_t bytes) noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(bytes));
}

inline bool is_one_block(const ompi_datatype_t& type, int count) noexcept {
    return opal_datatype_is_contiguous_memory_layout(&type.super, count);
}

// Memory of the origin: the arguments of an MPI call.
struct Origin {
    void* address;
    int count;
    ompi_datatype_t* type;

    std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(count) * type->super.size; }
    // The start of the data, if it is one block.
    std::byte* contiguous() const noexcept {
        return is_one_block(*type, count) ? shifted(address, type->super.true_lb) : nullptr;
    }
};

// Memory of the target: the arguments of an MPI call.
struct Target {
    std::uint32_t rank;
    std::ptrdiff_t displacement;  // in units of the target
    int count;
    ompi_datatype_t* type;

    std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(count) * type->super.size; }
    bool is_contiguous() const noexcept { return is_one_block(*type, count); }
};

// opal_datatype_span() does not know negative extents.
inline rma::Extent extent_of(const Target& target) noexcept {
    const opal_datatype_t& type = target.type->super;
    const std::int64_t way = (type.ub - type.lb) * (target.count - 1);
    const std::uint64_t bytes = static_cast<std::uint64_t>(type.true_ub - type.true_lb) +
                                static_cast<std::uint64_t>(way < 0 ? -way : way);
    return {type.true_lb + std::min<std::int64_t>(way, 0), bytes};
}

// The elements of an accumulate: a predefined datatype. Some pairs have gaps: MPI_SHORT_INT between its members,
// MPI_DOUBLE_INT at its end. An element travels, and is accessed, with the gap between its members but without the one
// at its end, which may not belong to the window.
struct ElementType {
    ompi_datatype_t* type;
    std::uint32_t size;    // of the data of one element
    std::uint32_t span;    // from its first byte to its last
    std::uint32_t extent;  // between the elements of an array
    bool has_gap() const noexcept { return size != extent; }
};
// Nothing: the datatype mixes several predefined ones.
std::optional<ElementType> element_type(ompi_datatype_t& type) noexcept;
// The number of a predefined datatype on the wire, and back. 0 or null: there is none.
std::uint8_t number_of(const ompi_datatype_t& type) noexcept;
ompi_datatype_t* type_of(std::uint8_t number) noexcept;

// The data of an origin as blocks at addresses, which lie in [first, first + span).
struct OriginBlocks {
    rma::RunBuilder blocks;
    std::uint64_t first = 0, span = 0;
};
// Lists the first `bytes` of the origin's data for RDMA. False: the blocks have fewer than `least` bytes on average, or lie
// so far apart that registering their memory would lock much more of it.
bool list_long_blocks(const Origin& origin, std::uint64_t bytes, std::uint64_t least, OriginBlocks& to);

// The blocks of the first `bytes` of the target's data, each shifted by `offset`, the place of the displacement.
void flatten(const Target& target, std::uint64_t offset, std::uint64_t bytes, rma::RunBuilder& to);
// Whether flatten() makes only a few runs of all of the data, however many blocks they have.
bool has_few_runs(const Target& target) noexcept;
// flatten() for accumulates: the blocks consist of whole spans of elements.
void flatten_elements(const Target& target, const ElementType& element, std::uint64_t offset, std::uint64_t bytes,
                      rma::RunBuilder& to);

// Delivers the data of the origin in order.
class Packer {
public:
    explicit Packer(const Origin& origin) noexcept;
    ~Packer();
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;
    void take(void* to, std::size_t bytes) noexcept;

private:
    const std::byte* next_;  // of contiguous data; null: by the convertor
    opal_convertor_t convertor_;
    // Elements of which the last take() took a part, and the bytes that it left.
    std::byte elements_[2 * kLongestElement];
    std::span<const std::byte> left_;
};

// Writes data to any position of the origin's memory. Retains the datatype until it is destroyed.
class Unpacker {
public:
    // With an element type: the data are spans of elements, which are unpacked when all have come.
    Unpacker(const Origin& to, const ElementType* element);
    ~Unpacker();
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;
    void put(std::uint64_t position, const std::byte* data, std::size_t bytes) noexcept;
    void finish() noexcept;  // call it when all data have been put

private:
    const Origin to_;
    std::optional<ElementType> element_;
    std::vector<std::byte> elements_;
    opal_convertor_t convertor_;
};

// The data of the origin as spans of elements.
std::vector<std::byte> pack_elements(const Origin& origin, const ElementType& element);

// The number of an operation on the wire, and back; 0, null: none.
constexpr std::uint8_t kNoOp = OMPI_OP_NUM_OF_TYPES, kReplace = OMPI_OP_REPLACE;
std::uint8_t number_of(const ompi_op_t& op) noexcept;
// Whether the operation is defined for the type.
bool is_defined(std::uint8_t operation, const ompi_datatype_t& type) noexcept;
// to = from op to, for spans of elements. Precondition: is_defined().
void reduce(std::uint8_t operation, const ElementType& element, const std::byte* from, std::byte* to,
            std::uint64_t bytes) noexcept;

// The elements that an operation takes from the origin: a span there, if they lie there without gaps, or a packed copy.
// The origin's memory must outlive this object.
class Operand {
public:
    Operand(const Origin& origin, const ElementType& element, std::uint8_t operation) {
        if (operation == kNoOp) return;
        data_ = element.has_gap() ? nullptr : origin.contiguous();
        if (data_) return;
        packed_ = pack_elements(origin, element);
        data_ = packed_.data();
    }
    Operand(const Operand&) = delete;
    Operand& operator=(const Operand&) = delete;

    // Null: the operation is kNoOp and takes none.
    const std::byte* data() const noexcept { return data_; }

private:
    std::vector<std::byte> packed_;
    const std::byte* data_ = nullptr;
};

}  // namespace coop::osc

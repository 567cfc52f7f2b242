// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace coop::osc {
namespace {

// A base for convertors that only compute offsets: so large that blocks before the displacement have valid addresses.
std::byte* fake_base() noexcept { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 62); }

// Open MPI numbers its predefined datatypes first.
constexpr int kMostPredefined = 100;

// MPI_Type_create_f90_real and the like make copies of a predefined type, which other processes do not know.
bool is_f90_type(const ompi_datatype_t& type) noexcept {
    std::int32_t integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    if (!type.args || ompi_datatype_get_args(&type, 0, &integers, nullptr, &addresses, nullptr, &types, nullptr,
                                             &combiner) != OMPI_SUCCESS)
        return false;
    return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
           combiner == MPI_COMBINER_F90_INTEGER;
}
ompi_datatype_t* original_of(const ompi_datatype_t& type) noexcept {
    if (type.id < 0 || type.id >= OMPI_DATATYPE_MPI_MAX_PREDEFINED) return nullptr;
    return const_cast<ompi_datatype_t*>(ompi_datatype_basicDatatypes[type.id]);
}

// Equal blocks at a constant distance, as MPI_Type_vector makes them.
struct Vector {
    std::int64_t first;   // from the address
    std::uint64_t bytes;  // of a block
    std::int64_t stride;
    std::uint64_t blocks;
};

// The datatype as a vector; nothing: it is not described as one.
std::optional<Vector> vector_of(const opal_datatype_t& type) noexcept {
    if (type.opt_desc.used != 1 || (type.opt_desc.desc[0].elem.common.flags & OPAL_DATATYPE_FLAG_DATA) == 0)
        return std::nullopt;
    const ddt_elem_desc_t& blocks = type.opt_desc.desc[0].elem;
    const std::uint64_t bytes = blocks.blocklen * opal_datatype_basicDatatypes[blocks.common.type]->size;
    if (bytes == 0 || bytes * blocks.count != type.size) return std::nullopt;
    return Vector{blocks.disp, bytes, blocks.extent, blocks.count};
}

// Calls f(offset, bytes) for the blocks of the first `most` bytes of data.
template <class F>
void for_each_block(const Target& target, std::uint64_t most, F f) {
    most = std::min(most, target.bytes());
    if (most == 0) return;
    if (is_one_block(*target.type, target.count)) {
        f(static_cast<std::int64_t>(target.type->super.true_lb), most);
        return;
    }
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &target.type->super,
                                             static_cast<std::size_t>(target.count), fake_base(), 0, &convertor);
    for (bool done = false; !done && most > 0;) {
        std::array<iovec, 64> blocks;
        std::uint32_t count = blocks.size();
        std::size_t bytes = 0;
        done = opal_convertor_raw(&convertor, blocks.data(), &count, &bytes) != 0;
        for (std::uint32_t i = 0; i < count && most > 0; ++i) {
            const std::uint64_t part = std::min<std::uint64_t>(blocks[i].iov_len, most);
            f(static_cast<std::byte*>(blocks[i].iov_base) - fake_base(), part);
            most -= part;
        }
    }
    OBJ_DESTRUCT(&convertor);
}

}  // namespace

std::optional<ElementType> element_type(ompi_datatype_t& type) noexcept {
    ompi_datatype_t* const single = is_f90_type(type) ? original_of(type)
                                    : ompi_datatype_is_predefined(&type)
                                        ? &type
                                        : ompi_datatype_get_single_predefined_type_from_args(&type);
    if (!single || single->super.size == 0) return std::nullopt;
    std::ptrdiff_t low, extent;
    ompi_datatype_get_extent(single, &low, &extent);
    return ElementType{single, static_cast<std::uint32_t>(single->super.size),
                       static_cast<std::uint32_t>(single->super.true_ub), static_cast<std::uint32_t>(extent)};
}

std::uint8_t number_of(const ompi_datatype_t& type) noexcept {
    const int index = type.d_f_to_c_index;
    return index > 0 && index <= kMostPredefined ? static_cast<std::uint8_t>(index) : std::uint8_t{0};
}

ompi_datatype_t* type_of(std::uint8_t number) noexcept {
    auto* const type = static_cast<ompi_datatype_t*>(opal_pointer_array_get_item(&ompi_datatype_f_to_c_table, number));
    return type && ompi_datatype_is_predefined(type) && type->super.size > 0 ? type : nullptr;
}

void flatten(const Target& target, std::uint64_t offset, std::uint64_t bytes, rma::RunBuilder& to) {
    const opal_datatype_t& type = target.type->super;
    if (target.is_contiguous())
        return to.add(offset + static_cast<std::uint64_t>(type.true_lb), std::min(bytes, target.bytes()));
    const auto vector = vector_of(type);
    if (vector && bytes == target.bytes()) {
        const std::ptrdiff_t extent = type.ub - type.lb;
        std::uint64_t first = offset + static_cast<std::uint64_t>(vector->first);
        const auto count = static_cast<std::uint64_t>(target.count);
        if (vector->blocks == 1) return to.add(rma::Run{first, vector->bytes, extent, count});
        for (std::uint64_t i = 0; i < count; ++i, first += static_cast<std::uint64_t>(extent))
            to.add(rma::Run{first, vector->bytes, vector->stride, vector->blocks});
        return;
    }
    for_each_block(target, bytes,
                   [&](std::int64_t at, std::uint64_t part) { to.add(offset + static_cast<std::uint64_t>(at), part); });
}

bool has_few_runs(const Target& target) noexcept {
    const auto vector = vector_of(target.type->super);
    return vector && (vector->blocks == 1 || target.count == 1);
}

// How many blocks an element of the type has at most, or more than any; loops are not followed.
static std::uint64_t most_blocks(const opal_datatype_t& type) noexcept {
    std::uint64_t blocks = 0;
    for (std::size_t i = 0; i < type.opt_desc.used; ++i) {
        const auto& each = type.opt_desc.desc[i];
        if ((each.elem.common.flags & OPAL_DATATYPE_FLAG_DATA) == 0) return UINT64_MAX;
        blocks += each.elem.count;
    }
    return blocks;
}

bool list_long_blocks(const Origin& origin, std::uint64_t bytes, std::uint64_t least, OriginBlocks& to) {
    constexpr std::uint64_t kMostSpan = 4;  // times the data
    const auto address = reinterpret_cast<std::uintptr_t>(origin.address);
    if (std::byte* const block = origin.contiguous()) {
        to.first = reinterpret_cast<std::uintptr_t>(block);
        to.span = bytes;
        to.blocks.add(to.first, bytes);
        return true;
    }
    const Target blocks{0, 0, origin.count, origin.type};
    const rma::Extent extent = extent_of(blocks);
    // Listing many short blocks would take longer than copying them.
    const bool is_short_list = has_few_runs(blocks) && bytes == origin.bytes();
    const auto count = static_cast<std::uint64_t>(origin.count);
    if (extent.bytes > kMostSpan * bytes || (!is_short_list && most_blocks(origin.type->super) > bytes / least / count))
        return false;
    to.first = address + static_cast<std::uint64_t>(extent.low);
    to.span = extent.bytes;
    flatten(blocks, address, bytes, to.blocks);
    return bytes / rma::count_blocks(to.blocks.runs()) >= least;
}

// Elements with a gap are found by their first byte; their other parts follow it.
void flatten_elements(const Target& target, const ElementType& element, std::uint64_t offset, std::uint64_t bytes,
                      rma::RunBuilder& to) {
    if (!element.has_gap()) return flatten(target, offset, bytes, to);
    std::uint64_t packed = 0;
    for_each_block(target, bytes, [&](std::int64_t at, std::uint64_t part) {
        const std::uint64_t next = (packed + element.size - 1) / element.size * element.size;
        for (std::uint64_t start = next; start < packed + part; start += element.size)
            to.add(offset + static_cast<std::uint64_t>(at) + (start - packed), element.span);
        packed += part;
    });
}

Packer::Packer(const Origin& origin) noexcept : next_(origin.contiguous()) {
    if (next_) return;
    OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &origin.type->super,
                                             static_cast<std::size_t>(origin.count), origin.address, 0, &convertor_);
}

Packer::~Packer() {
    if (!next_) OBJ_DESTRUCT(&convertor_);
}

void Packer::take(void* to, std::size_t bytes) noexcept {
    if (next_) {
        std::memcpy(to, next_, bytes);
        next_ += bytes;
        return;
    }
    auto* at = static_cast<std::byte*>(to);
    while (bytes > 0) {
        std::size_t taken = std::min(bytes, left_.size());
        if (taken > 0) {
            std::memcpy(at, left_.data(), taken);
            left_ = left_.subspan(taken);
        } else if (taken = pack_next(convertor_, at, bytes); taken == 0) {
            left_ = std::span(elements_, pack_next(convertor_, elements_, sizeof elements_));
            if (left_.empty()) return;  // not reached: origin and target have the same number of bytes
        }
        at += taken;
        bytes -= taken;
    }
}

Unpacker::Unpacker(const Origin& to, const ElementType* element) : to_(to) {
    if (element) {
        element_ = *element;
        elements_.resize(to.bytes() / element->size * element->span);
    }
    OBJ_RETAIN(to_.type);
    OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &to_.type->super,
                                             static_cast<std::size_t>(to_.count), to_.address, 0, &convertor_);
}

Unpacker::~Unpacker() {
    OBJ_DESTRUCT(&convertor_);
    ompi_datatype_t* type = to_.type;
    OBJ_RELEASE(type);
}

void Unpacker::put(std::uint64_t position, const std::byte* data, std::size_t bytes) noexcept {
    if (element_) {
        std::memcpy(elements_.data() + position, data, bytes);
        return;
    }
    std::size_t at = position;
    opal_convertor_set_position(&convertor_, &at);
    iovec where{const_cast<std::byte*>(data), bytes};
    std::uint32_t count = 1;
    std::size_t taken = bytes;
    opal_convertor_unpack(&convertor_, &where, &count, &taken);
}

void Unpacker::finish() noexcept {
    if (!element_) return;
    const std::size_t count = elements_.size() / element_->span;
    std::vector<std::byte> array(count * element_->extent);
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(&array[i * element_->extent], &elements_[i * element_->span], element_->span);
    ompi_datatype_sndrcv(array.data(), static_cast<int>(count), element_->type, to_.address, to_.count, to_.type);
}

std::vector<std::byte> pack_elements(const Origin& origin, const ElementType& element) {
    const std::uint64_t count = origin.bytes() / element.size;
    std::vector<std::byte> array(count * element.extent);
    ompi_datatype_sndrcv(origin.address, origin.count, origin.type, array.data(), static_cast<int>(count),
                         element.type);
    if (element.span == element.extent) return array;
    std::vector<std::byte> elements(count * element.span);
    for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(&elements[i * element.span], &array[i * element.extent], element.span);
    return elements;
}

namespace {

// By the number, which is ompi_op_type. The last one is MPI_NO_OP, which has no type of its own.
ompi_op_t* operation_of(std::uint8_t number) noexcept {
    static ompi_op_t* const all[] = {nullptr,
                                     &ompi_mpi_op_max.op,
                                     &ompi_mpi_op_min.op,
                                     &ompi_mpi_op_sum.op,
                                     &ompi_mpi_op_prod.op,
                                     &ompi_mpi_op_land.op,
                                     &ompi_mpi_op_band.op,
                                     &ompi_mpi_op_lor.op,
                                     &ompi_mpi_op_bor.op,
                                     &ompi_mpi_op_lxor.op,
                                     &ompi_mpi_op_bxor.op,
                                     &ompi_mpi_op_maxloc.op,
                                     &ompi_mpi_op_minloc.op,
                                     &ompi_mpi_op_replace.op,
                                     &ompi_mpi_op_no_op.op};
    static_assert(std::size(all) == kNoOp + 1);
    return number < std::size(all) ? all[number] : nullptr;
}

}  // namespace

std::uint8_t number_of(const ompi_op_t& op) noexcept {
    if (&op == operation_of(kNoOp)) return kNoOp;
    const auto number = static_cast<std::uint32_t>(op.op_type);
    return number < kNoOp && &op == operation_of(static_cast<std::uint8_t>(number)) ? static_cast<std::uint8_t>(number)
                                                                                    : std::uint8_t{0};
}

bool is_defined(std::uint8_t operation, const ompi_datatype_t& type) noexcept {
    if (operation == kReplace || operation == kNoOp) return true;
    const ompi_op_t* const op = operation_of(operation);
    if (!op || type.id < 0 || type.id >= OMPI_DATATYPE_MAX_PREDEFINED) return false;
    const int index = ompi_op_ddt_map[type.id];
    return index >= 0 && index < OMPI_OP_BASE_TYPE_MAX && op->o_func.intrinsic.fns[index];
}

void reduce(std::uint8_t operation, const ElementType& element, const std::byte* from, std::byte* to,
            std::uint64_t bytes) noexcept {
    if (operation == kNoOp) return;
    if (operation == kReplace && !element.has_gap()) {
        std::memmove(to, from, bytes);
        return;
    }
    // The functions of Open MPI may use vectors that need aligned memory.
    constexpr std::uint64_t kAlign = 16;
    alignas(kAlign) std::array<std::byte, 4096> aligned;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(from) % kAlign == 0;
    const std::uint64_t most = element.has_gap() ? element.span
                               : is_aligned      ? std::uint64_t{1} << 30
                                                 : aligned.size() / element.span * element.span;
    for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t part = std::min(most / element.span * element.span, bytes - done);
        const std::byte* source = from + done;
        if (!is_aligned || element.has_gap())
            source = static_cast<const std::byte*>(std::memcpy(aligned.data(), source, part));
        // The gap of a pair may belong to something else.
        if (operation == kReplace)
            ompi_datatype_copy_content_same_ddt(element.type, 1, reinterpret_cast<char*>(to + done),
                                                reinterpret_cast<char*>(const_cast<std::byte*>(source)));
        else
            ompi_op_reduce(operation_of(operation), const_cast<std::byte*>(source), to + done,
                           static_cast<int>(part / element.span), element.type);
        done += part;
    }
}

}  // namespace coop::osc

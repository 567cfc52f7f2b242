// SPDX-License-Identifier: BSD-3-Clause
#include "element.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "pattern.h"

namespace rma_storm {
namespace {

struct TwoInts {
    int value, index;
};

template <typename T>
T combined(Combine op, T old, T in) {
    if (op == Combine::kReplace) return in;
    if (op == Combine::kNoOp) return old;
    if (op == Combine::kMaximum) return std::max(old, in);
    if (op == Combine::kMinimum) return std::min(old, in);
    if constexpr (std::is_integral_v<T>) {
        const auto a = static_cast<std::uint64_t>(old), b = static_cast<std::uint64_t>(in);
        if (op == Combine::kSum) return static_cast<T>(a + b);
        if (op == Combine::kProduct) return static_cast<T>(a * b);
        if (op == Combine::kAnd) return static_cast<T>(a & b);
        if (op == Combine::kOr) return static_cast<T>(a | b);
        if (op == Combine::kXor) return static_cast<T>(a ^ b);
    } else {
        if (op == Combine::kSum) return old + in;
    }
    return old;
}

TwoInts combined(Combine op, TwoInts old, TwoInts in) {
    if (op == Combine::kReplace) return in;
    if (op == Combine::kNoOp) return old;
    if (old.value == in.value) return {old.value, std::min(old.index, in.index)};
    return (op == Combine::kMaxLoc) == (in.value > old.value) ? in : old;
}

template <typename T>
void combine_all(Combine op, const void* in, void* inout, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        T a, b;
        std::memcpy(&a, static_cast<const char*>(inout) + i * sizeof(T), sizeof(T));
        std::memcpy(&b, static_cast<const char*>(in) + i * sizeof(T), sizeof(T));
        a = combined(op, a, b);
        std::memcpy(static_cast<char*>(inout) + i * sizeof(T), &a, sizeof(T));
    }
}

}  // namespace

std::size_t bytes_of(Element element) {
    static constexpr std::size_t kBytes[] = {1, 1, 2, 4, 4, 8, 8, 8, sizeof(TwoInts)};
    return kBytes[static_cast<std::size_t>(element)];
}

MPI_Datatype type_of(Element element) {
    const MPI_Datatype types[] = {MPI_BYTE,    MPI_INT8_T,   MPI_UINT16_T, MPI_INT32_T, MPI_UINT32_T,
                                  MPI_INT64_T, MPI_UINT64_T, MPI_DOUBLE,   MPI_2INT};
    return types[static_cast<std::size_t>(element)];
}

MPI_Op op_of(Combine combine) {
    const MPI_Op ops[] = {MPI_REPLACE, MPI_NO_OP, MPI_SUM,  MPI_PROD,   MPI_MAX,   MPI_MIN,
                          MPI_BAND,    MPI_BOR,   MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    return ops[static_cast<std::size_t>(combine)];
}

const char* name_of(Element element) {
    static const char* const kNames[] = {"MPI_BYTE",    "MPI_INT8_T",   "MPI_UINT16_T", "MPI_INT32_T", "MPI_UINT32_T",
                                         "MPI_INT64_T", "MPI_UINT64_T", "MPI_DOUBLE",   "MPI_2INT"};
    return kNames[static_cast<std::size_t>(element)];
}

const char* name_of(Combine combine) {
    static const char* const kNames[] = {"MPI_REPLACE", "MPI_NO_OP", "MPI_SUM",  "MPI_PROD",   "MPI_MAX",   "MPI_MIN",
                                         "MPI_BAND",    "MPI_BOR",   "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC"};
    return kNames[static_cast<std::size_t>(combine)];
}

Combine draw_combine(Element element, std::uint64_t random) {
    switch (element) {
    // Open MPI adds integers of 8 and 16 bits with saturation where the processor can (op/avx), which depends on the order.
    case Element::kInt8:
    case Element::kUint16: {
        static constexpr Combine kOps[] = {Combine::kMaximum, Combine::kMinimum, Combine::kAnd, Combine::kOr,
                                           Combine::kXor};
        return kOps[random % 5];
    }
    case Element::kByte: return static_cast<Combine>(static_cast<int>(Combine::kAnd) + static_cast<int>(random % 3));
    case Element::kDouble: {
        static constexpr Combine kOps[] = {Combine::kSum, Combine::kMaximum, Combine::kMinimum};
        return kOps[random % 3];
    }
    case Element::kTwoInts: return random % 2 == 0 ? Combine::kMaxLoc : Combine::kMinLoc;
    default: {
        static constexpr Combine kOps[] = {Combine::kSum,     Combine::kSum,     Combine::kSum, Combine::kXor,
                                           Combine::kMaximum, Combine::kMinimum, Combine::kAnd, Combine::kOr,
                                           Combine::kXor,     Combine::kProduct};
        return kOps[random % 10];
    }
    }
}

Content content_for(Element element, Combine combine) {
    const bool arithmetic = combine != Combine::kReplace && combine != Combine::kNoOp;
    return element == Element::kDouble && arithmetic ? Content::kSmall : Content::kBits;
}

void fill(Element element, Content content, std::uint64_t key, std::size_t count, void* out) {
    const std::size_t bytes = bytes_of(element);
    if (count == 0) return;
    switch (content) {
    case Content::kBits: pattern::fill(key, 0, out, count * bytes); break;
    case Content::kZero: std::memset(out, 0, count * bytes); break;
    case Content::kSmall:
        for (std::size_t i = 0; i < count; ++i) {
            const double value = static_cast<double>(pattern::word(key, i) & 0xffff);
            std::memcpy(static_cast<char*>(out) + i * bytes, &value, bytes);
        }
        break;
    case Content::kTicket:
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t value = std::uint64_t{1} << (key & 63);
            std::memcpy(static_cast<char*>(out) + i * bytes, &value, bytes);  // little endian
        }
        break;
    }
}

void combine(Element element, Combine op, const void* in, void* inout, std::size_t count) {
    if (op == Combine::kNoOp || count == 0) return;
    if (op == Combine::kReplace) {
        std::memcpy(inout, in, count * bytes_of(element));
        return;
    }
    switch (element) {
    case Element::kByte: return combine_all<std::uint8_t>(op, in, inout, count);
    case Element::kInt8: return combine_all<std::int8_t>(op, in, inout, count);
    case Element::kUint16: return combine_all<std::uint16_t>(op, in, inout, count);
    case Element::kInt32: return combine_all<std::int32_t>(op, in, inout, count);
    case Element::kUint32: return combine_all<std::uint32_t>(op, in, inout, count);
    case Element::kInt64: return combine_all<std::int64_t>(op, in, inout, count);
    case Element::kUint64: return combine_all<std::uint64_t>(op, in, inout, count);
    case Element::kDouble: return combine_all<double>(op, in, inout, count);
    case Element::kTwoInts: return combine_all<TwoInts>(op, in, inout, count);
    case Element::kCount: return;
    }
}

}  // namespace rma_storm

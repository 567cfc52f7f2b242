// SPDX-License-Identifier: BSD-3-Clause
//
// Elements of operations: predefined datatypes of MPI, their operands, and MPI's operations on them, computed here.
// All results are independent of the order of operations: integers wrap, and doubles are small whole numbers wherever
// they are added.
//
// Threading: pure functions. Units: elements, unless a name says bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace rma_storm {

enum class Element { kByte, kInt8, kUint16, kInt32, kUint32, kInt64, kUint64, kDouble, kTwoInts, kCount };
enum class Combine { kReplace, kNoOp, kSum, kProduct, kMaximum, kMinimum, kAnd, kOr, kXor, kMaxLoc, kMinLoc };

// The values of an operand or of fresh memory.
enum class Content {
    kBits,    // any
    kSmall,   // doubles: whole numbers below 65536
    kZero,    //
    kTicket,  // each element has one bit set, which the lowest bits of the key give
};

std::size_t bytes_of(Element element);
MPI_Datatype type_of(Element element);
MPI_Op op_of(Combine combine);
const char* name_of(Element element);
const char* name_of(Combine combine);

// A random operation that MPI allows on the element, other than replace and no-op.
Combine draw_combine(Element element, std::uint64_t random);

// The values that an operation on an element needs.
Content content_for(Element element, Combine combine);

// Writes `count` elements of the operand `key`.
void fill(Element element, Content content, std::uint64_t key, std::size_t count, void* out);

// inout[i] = inout[i] op in[i], for elements at any alignment.
void combine(Element element, Combine combine, const void* in, void* inout, std::size_t count);

}  // namespace rma_storm

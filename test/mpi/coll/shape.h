// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes with a description of their own: where the parts of an element lie. Buffers are filled and checked by that
// description, without Open MPI's pack functions.
//
// Units: bytes.
#pragma once

#include <cstring>
#include <vector>

#include "mpi_test.h"

namespace {

constexpr unsigned char kGuard = 0x5a;
constexpr std::size_t kGuardBytes = 64;  // on both sides of a buffer

struct Shape {
    MPI_Datatype type = MPI_BYTE;
    MPI_Aint extent = 1;
    std::size_t part_bytes = 1;
    std::vector<MPI_Aint> parts{0};  // where they lie in an element, in the order of the signature

    std::size_t bytes() const { return parts.size() * part_bytes; }
    bool is_dense() const { return parts.size() == 1 && extent == static_cast<MPI_Aint>(part_bytes); }
};

// Puts the message `key` into `count` elements at `to`.
inline void place(const Shape& shape, unsigned char* to, std::size_t count, std::uint64_t key) {
    if (shape.is_dense()) {
        pattern::fill(key, 0, to, count * shape.part_bytes);
        return;
    }
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < count; ++i, to += shape.extent)
        for (const MPI_Aint part : shape.parts) {
            pattern::fill(key, at, to + part, shape.part_bytes);
            at += shape.part_bytes;
        }
}

// Memory between guard bytes; the gaps of datatypes hold guard bytes, too.
class Buffer {
public:
    explicit Buffer(std::size_t bytes) : all_(bytes + 2 * kGuardBytes, kGuard) {}
    unsigned char* data() { return all_.data() + kGuardBytes; }
    std::size_t size() const { return all_.size() - 2 * kGuardBytes; }

    void check_equals(const Buffer& expected, const std::string& what) const {
        if (std::memcmp(all_.data(), expected.all_.data(), all_.size()) == 0) return;
        std::size_t i = 0;
        while (all_[i] == expected.all_[i]) ++i;
        mpitest::fail(__FILE__, __LINE__,
                      what + ": byte " + std::to_string(static_cast<long>(i) - static_cast<long>(kGuardBytes)) +
                          " of " + std::to_string(size()) + " is " + std::to_string(all_[i]) + ", expected " +
                          std::to_string(expected.all_[i]));
    }

private:
    std::vector<unsigned char> all_;
};

}  // namespace

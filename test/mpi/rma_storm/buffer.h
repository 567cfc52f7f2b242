// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer of the origin: the elements of an operation in their shape, between guard bytes. Gaps and guards have a value
// that must stay.
#pragma once

#include <string>

#include "model.h"
#include "shape.h"

namespace rma_storm {

class Buffer {
public:
    Buffer() : shape_(Recipe{}) {}
    explicit Buffer(const Recipe& recipe);
    Buffer(const Recipe& recipe, const Bytes& stream);

    // The arguments of MPI. `bottom`: with an absolute address in the datatype.
    struct Arguments {
        void* address;
        Type type;
    };
    Arguments arguments(bool bottom);

    unsigned char* memory() { return memory_.data() + kGuard; }  // of the shape
    const Shape& shape() const { return shape_; }
    Bytes stream() const;

    // Says what differs if the elements are not `stream`, or if something else was written; otherwise empty.
    std::string difference(const Bytes& stream) const;

    // Overwrites all of it: whoever still uses it shows.
    void spoil();

private:
    static constexpr std::size_t kGuard = 64;

    Shape shape_;
    Bytes memory_;
};

}  // namespace rma_storm

// SPDX-License-Identifier: BSD-3-Clause
// The buffer of MPI_Bsend for the lifetime of an object. MPI_Wait completes a buffered send at once; the destructor
// detaches the buffer after the message has left.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi_test.h"

namespace {

class BsendBuffer {
public:
    explicit BsendBuffer(std::size_t bytes) : bytes_(bytes + 1024 + MPI_BSEND_OVERHEAD) {
        MPI_Buffer_attach(bytes_.data(), static_cast<int>(bytes_.size()));
    }
    ~BsendBuffer() {
        void* buffer;
        int bytes;
        MPI_Buffer_detach(&buffer, &bytes);
    }

private:
    std::vector<unsigned char> bytes_;
};

}  // namespace

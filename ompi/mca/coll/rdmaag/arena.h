// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of the collective buffers of all communicators of this process: one region, registered once with each
// transport. coll_rdmaag_memory_max limits it. It is allocated when the first communicator takes a range, and released
// with the last communicator, which is MPI_COMM_WORLD or MPI_COMM_SELF.
//
// A range that was given back cannot be written any more. A partner writes only steps of calls that this process is in
// or about to enter, and a call returns when all of its steps have arrived. So after the last call on a communicator all
// writes to its buffers have landed, and MPI_Comm_free needs no synchronisation. (An RC queue pair does not execute a
// write again that its sender repeats because an acknowledgement was lost.)
//
// Threading: any thread. Ownership: the arena owns the memory; communicators give their ranges back.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "compat.h"
#include "coop/coll/ranges.h"

namespace coop::ag {

class Arena {
public:
    // Null: the limit is reached, or there is no memory.
    std::byte* take(std::size_t bytes) noexcept;
    void give_back(const std::byte* range, std::size_t bytes) noexcept;
    // The handle of the whole region. `refused`: the transport does not register it; null otherwise: it needs no handle.
    mca_btl_base_registration_handle_t* handle(mca_btl_base_module_t& btl, bool& refused) noexcept;

    // The communicators that may take a range; release while the transports are still there.
    void retain() noexcept;
    void release() noexcept;

private:
    struct Registered {
        mca_btl_base_module_t* btl;
        mca_btl_base_registration_handle_t* handle;
    };
    struct Unmap {
        std::size_t bytes;
        void operator()(std::byte* memory) const noexcept;
    };
    bool allocate() noexcept;

    std::mutex lock_;
    std::size_t users_ = 0;
    std::unique_ptr<std::byte, Unmap> memory_{nullptr, Unmap{0}};
    std::unique_ptr<coll::Ranges> ranges_;
    std::vector<Registered> registered_;
};

Arena& arena() noexcept;

}  // namespace coop::ag

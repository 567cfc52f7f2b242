// SPDX-License-Identifier: BSD-3-Clause
//
// Registered memory through which short and scattered transfers go, because copying takes less time than registering
// the program's own memory. All windows of the process share it.
//
// Units: bytes. Threading: all functions but close() have a lock of their own, which is taken last; a block that was
// taken belongs to one window and is guarded by its mutex. Ownership: Staging owns the memory and
// its registration, until close(). Errors: see each function.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "compat.h"

namespace coop::osc {

class Staging {
public:
    using Handle = mca_btl_base_registration_handle_t;
    static constexpr std::uint32_t kBlockBytes = 8 * 1024;

    struct Block {
        std::byte* memory = nullptr;
        Handle* handle = nullptr;
        std::uint32_t used = 0;  // from the start
        std::uint32_t refs = 0;  // transfers under way, and the peer that fills it
    };

    Staging() = default;
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Registers the first blocks. False: no memory, the transport refuses, or the blocks belong to another transport.
    bool open(mca_btl_base_module_t& btl);
    // Before the transport is closed. No transfer is under way.
    void close() noexcept;

    // An unused block; null: none is free.
    Block* take() noexcept;
    // The same, after registering more memory if none is free; null: the transport refuses that.
    Block* take_more();
    // want(): somebody waits for a block. take_wish() returns true once after that.
    void want() noexcept { wanted_.store(true, std::memory_order_relaxed); }
    bool take_wish() noexcept {
        return wanted_.load(std::memory_order_relaxed) && wanted_.exchange(false, std::memory_order_relaxed);
    }
    void give(Block& block) noexcept;

private:
    struct Chunk {
        std::unique_ptr<std::byte[], void (*)(void*)> memory{nullptr, std::free};
        Handle* handle = nullptr;
        std::vector<Block> blocks;
    };
    bool grow();
    Block* pop() noexcept;

    std::mutex mutex_;
    mca_btl_base_module_t* btl_ = nullptr;
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<Block*> free_;
    std::atomic<bool> wanted_{false};
};

}  // namespace coop::osc

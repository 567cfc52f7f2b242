// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "process.h"
#include "transports.h"

namespace coop::ag {

void Arena::Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, bytes); }

bool Arena::allocate() noexcept {
    const auto bytes = static_cast<std::size_t>(process.config.memory_max);
    if (bytes == 0) return false;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
    ranges_ = std::make_unique<coll::Ranges>(bytes);
    return true;
}

std::byte* Arena::take(std::size_t bytes) noexcept try {
    const std::lock_guard guard(lock_);
    if (!ranges_ && !allocate()) return nullptr;
    const auto offset = ranges_->take(bytes);
    if (!offset) return nullptr;
    process.count(Count::kBuffersTaken);
    return memory_.get() + *offset;
} catch (const std::bad_alloc&) {
    return nullptr;
}

void Arena::give_back(const std::byte* range, std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    ranges_->give_back(static_cast<std::uint64_t>(range - memory_.get()), bytes);
    process.count(Count::kBuffersReturned);
}

mca_btl_base_registration_handle_t* Arena::handle(mca_btl_base_module_t& btl, bool& refused) noexcept {
    const std::lock_guard guard(lock_);
    refused = false;
    if (!btl.btl_register_mem) return nullptr;
    for (const Registered& each : registered_)
        if (each.btl == &btl) return each.handle;
    mca_btl_base_registration_handle_t* fresh = nullptr;
    if (!process.faults.hit(Fault::kRegister))
        fresh = btl.btl_register_mem(&btl, MCA_BTL_ENDPOINT_ANY, memory_.get(), memory_.get_deleter().bytes, kAccess);
    refused = fresh == nullptr;
    if (refused) process.count(Count::kRefusedRegistrations);
    else registered_.push_back({&btl, fresh});
    return fresh;
}

void Arena::retain() noexcept {
    const std::lock_guard guard(lock_);
    ++users_;
}

void Arena::release() noexcept {
    const std::lock_guard guard(lock_);
    if (--users_ > 0) return;
    for (const Registered& each : registered_) each.btl->btl_deregister_mem(each.btl, each.handle);
    registered_.clear();
    ranges_.reset();
    memory_.reset();
}

Arena& arena() noexcept {
    static auto& only = *new Arena;
    return only;
}

}  // namespace coop::ag

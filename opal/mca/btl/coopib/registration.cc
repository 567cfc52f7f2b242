// SPDX-License-Identifier: BSD-3-Clause
//
// Registers memory of the upper layer on the HCAs that have rails to the peer, or on all
// HCAs if the caller names no peer. Open MPI's registration cache (rcache/grdma) keeps
// the registration, and is told when memory is unmapped. The handle is sent before the
// peer chooses its rails, so it has the keys of all these HCAs. If cached memory is
// needed for a peer that is reached through other HCAs, it is registered on those, too.
#include "registration.h"

#include <cerrno>
#include <cstring>

#include "entry.h"
#include "module.h"

namespace coop::ib {
namespace {

struct Registration {
    mca_rcache_base_registration_t base;  // first: the cache knows the registration by its address
    Handle handle;
    std::uint32_t lkey[kMaxHcas];
    ibv_mr* regions[kMaxHcas];

    static Registration* of(const Handle* handle) {
        return reinterpret_cast<Registration*>(reinterpret_cast<std::uintptr_t>(handle) -
                                               offsetof(Registration, handle));
    }
};

int access_of(std::int32_t flags) {
    int access = IBV_ACCESS_LOCAL_WRITE;
    if ((flags & MCA_RCACHE_ACCESS_REMOTE_READ) != 0) access |= IBV_ACCESS_REMOTE_READ;
    if ((flags & MCA_RCACHE_ACCESS_REMOTE_WRITE) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
    if ((flags & MCA_RCACHE_ACCESS_REMOTE_ATOMIC) != 0) access |= IBV_ACCESS_REMOTE_ATOMIC;
    return access;
}

extern "C" int mca_btl_coopib_deregister_region(void*, mca_rcache_base_registration_t* base) {
    auto* registration = reinterpret_cast<Registration*>(base);
    for (ibv_mr*& region : registration->regions) {
        if (region != nullptr && ibv_dereg_mr(region) != 0) return OPAL_ERROR;
        region = nullptr;
    }
    return OPAL_SUCCESS;
}

// Passes the HCAs to register_region(), because the cache does not pass on the endpoint.
thread_local HcaMask wanted_hcas = 0;

ibv_mr* register_on(const rail::Hca& hca, void* address, std::size_t bytes, int access) {
    ibv_mr* region = ibv_reg_mr(hca.pd(), address, bytes, access);
    // Read-only memory cannot be registered for local writes.
    if (region == nullptr && (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) == 0) {
        const int read_only = access & ~IBV_ACCESS_LOCAL_WRITE;
        region = ibv_reg_mr(hca.pd(), address, bytes, read_only);
    }
    return region;
}

// An error that other memory has nothing to do with, so that evicting its registrations would not help.
bool is_of_this_memory(int error) noexcept { return error == EFAULT || error == EACCES || error == EPERM; }

// Registers the memory on those of `hcas` where it is not registered yet. Returns one of Open MPI's codes.
int register_where_missing(Module& m, Registration& registration, HcaMask hcas) {
    const std::size_t bytes = static_cast<std::size_t>(registration.base.bound - registration.base.base) + 1;
    for (std::size_t i = 0; i < m.hcas.size(); ++i) {
        if ((hcas >> i & 1) == 0 || registration.regions[i] != nullptr) continue;
        ibv_mr* region = register_on(m.hcas[i], registration.base.base, bytes,
                                     access_of(registration.base.access_flags));
        if (region == nullptr) return is_of_this_memory(errno) ? OPAL_ERR_PERM : OPAL_ERR_OUT_OF_RESOURCE;
        registration.regions[i] = region;
        registration.lkey[i] = region->lkey;
        registration.handle.rkey[i] = region->rkey;
        ++m.uses[i].registrations;
    }
    return OPAL_SUCCESS;
}

extern "C" int mca_btl_coopib_register_region(void* data, void*, std::size_t, mca_rcache_base_registration_t* base) {
    auto* registration = reinterpret_cast<Registration*>(base);
    std::memset(registration->regions, 0, sizeof registration->regions);
    std::memset(&registration->handle, 0, sizeof registration->handle);
    Module& m = *static_cast<Module*>(data);
    Guard guard(m);
    const int rc = register_where_missing(m, *registration, wanted_hcas);
    if (rc != OPAL_SUCCESS) mca_btl_coopib_deregister_region(data, base);
    return rc;  // after a shortage, the cache evicts something and tries again
}

}  // namespace

bool open_registration(Module& m) {
    static char name[] = "coopib";
    mca_rcache_base_resources_t resources{};
    resources.cache_name = name;
    resources.reg_data = &m;
    resources.sizeof_reg = sizeof(Registration);
    resources.register_mem = mca_btl_coopib_register_region;
    resources.deregister_mem = mca_btl_coopib_deregister_region;
    m.rcache = mca_rcache_base_module_create("grdma", &m, &resources);
    return m.rcache != nullptr;
}

void close_registration(Module& m) {
    if (m.rcache != nullptr) mca_rcache_base_module_destroy(m.rcache);
    m.rcache = nullptr;
}

std::uint32_t lkey_of(const Handle* handle, std::uint32_t hca) noexcept {
    return handle == nullptr ? 0 : Registration::of(handle)->lkey[hca];
}

Handle* register_memory(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* address, std::size_t bytes,
                        std::uint32_t flags) {
    Module& m = Module::of(btl);
    if ((flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC) != 0) m.offers_atomics.store(true, std::memory_order_relaxed);
    mca_rcache_base_registration_t* base = nullptr;
    const auto access = static_cast<std::int32_t>(flags & MCA_BTL_REG_FLAG_ACCESS_ANY);
    const bool any = endpoint == nullptr || endpoint == MCA_BTL_ENDPOINT_ANY;
    wanted_hcas = any ? static_cast<HcaMask>(~HcaMask{0}) : endpoint->local_hcas;
    if (m.rcache->rcache_register(m.rcache, address, bytes, 0, access, &base) != OPAL_SUCCESS || base == nullptr)
        return nullptr;
    Registration& registration = *reinterpret_cast<Registration*>(base);
    const auto complete = [&] {
        Guard guard(m);
        return register_where_missing(m, registration, wanted_hcas);
    };
    for (int rc = complete(); rc != OPAL_SUCCESS; rc = complete()) {
        // If an unused registration was removed, try again.
        if (rc == OPAL_ERR_OUT_OF_RESOURCE && m.rcache->rcache_evict(m.rcache)) continue;
        m.rcache->rcache_deregister(m.rcache, base);
        return nullptr;
    }
    return &registration.handle;
}

int deregister_memory(mca_btl_base_module_t* btl, Handle* handle) {
    Module& m = Module::of(btl);
    return m.rcache->rcache_deregister(m.rcache, &Registration::of(handle)->base);
}

}  // namespace coop::ib

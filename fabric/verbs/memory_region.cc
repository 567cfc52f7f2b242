// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/memory_region.h"

#include <time.h>

#include "fabric/engine/memory.h"
#include "fabric/verbs/fork.h"
#include "fabric/verbs/memory_lock.h"
#include "fabric/verbs/memory_probe.h"
#include "fabric/verbs/strict_memory.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kRemoteWriting = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t kKnownAccess = IBV_ACCESS_LOCAL_WRITE | kRemoteWriting | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                                       IBV_ACCESS_OPTIONAL_RANGE;

// The arguments of a registration.
struct Wish {
    std::uint64_t address, bytes, iova;
    std::uint32_t access;
};

int check(const Wish& wish) {
    if ((wish.access & ~kKnownAccess) != 0) return EINVAL;  // includes on-demand paging
    // InfiniBand 10.6.3.1, and the kernel: remote write access requires local write access.
    if ((wish.access & kRemoteWriting) != 0 && (wish.access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
    const std::uint64_t end = wish.address + wish.bytes;
    if (wish.bytes == 0 || end < wish.address || page_ceiling(end) < end) return EINVAL;
    const bool zero_based = (wish.access & IBV_ACCESS_ZERO_BASED) != 0;
    if (!zero_based && (wish.address ^ wish.iova) % kPageBytes != 0) return EINVAL;
    return 0;
}

// The low byte of the keys. It changes with each use of the entry and is never 0, so that no key is 0.
std::uint32_t next_tag(std::uint32_t tag) {
    const std::uint32_t next = (tag + 2) & 0xfe;
    return next != 0 ? next : 2;
}

std::uint32_t enter(const VerbsPd& pd, const Wish& wish) {
    const Segment& subnet = pd.owner.subnet();
    const std::uint32_t index = subnet.claim<MemoryRegion>(kMemoryRegions);
    if (index == kNone) return kNone;
    MemoryRegion& region = subnet.memory_regions()[index];
    region.process = pd.owner.client.process();
    region.pd = pd.number;
    region.hca = pd.owner.hca_index;
    region.access = wish.access;
    region.address = wish.address;
    region.iova = wish.iova;
    region.bytes = wish.bytes;
    region.stale.store(0, std::memory_order_relaxed);
    region.tag = next_tag(region.tag);
    return index;
}

// Invalidates the keys and releases the entry. A later user of the entry has other keys.
void leave(const Segment& subnet, std::uint32_t index) {
    MemoryRegion& region = subnet.memory_regions()[index];
    region.tag = next_tag(region.tag);
    subnet.release(region);
    wait_until_idle(subnet, index);
}

int acquire(VerbsMr& mr, const VerbsPd& pd, const Wish& wish) {
    const Client& client = pd.owner.client;
    if (const int error = check(wish)) return error;
    const std::uint64_t locked = locked_bytes(wish.address, wish.bytes);
    if (!charge_locked(client, locked)) return ENOMEM;
    const bool writable = (wish.access & IBV_ACCESS_LOCAL_WRITE) != 0;
    const bool mapped = is_mapped(wish.address, wish.bytes, writable);
    mr.index = mapped ? enter(pd, wish) : kNone;
    if (mr.index == kNone) {
        discharge_locked(client, locked);
        return mapped ? ENOMEM : EFAULT;
    }
    const MemoryRegion& region = client.subnet().memory_regions()[mr.index];
    mr.addr = reinterpret_cast<void*>(wish.address);
    mr.length = wish.bytes;
    mr.access = wish.access;
    mr.iova = wish.iova;
    mr.handle = mr.index;
    mr.lkey = lkey_of(mr.index, region);
    mr.rkey = rkey_of(mr.index, region);
    if (client.subnet().header().strict_memory != 0) watch_region(client, mr.index);
    if (client.subnet().header().strict_fork != 0) hide_from_children(wish.address, wish.bytes);
    return 0;
}

void give_up(const VerbsMr& mr) {
    if (!mr.domain->owner.is_live()) return;
    const Client& client = mr.domain->owner.client;
    if (client.subnet().header().strict_memory != 0) unwatch_region(client, mr.index);
    if (client.subnet().header().strict_fork != 0)
        show_to_children(reinterpret_cast<std::uint64_t>(mr.addr), mr.length);
    leave(client.subnet(), mr.index);
    discharge_locked(client, locked_bytes(reinterpret_cast<std::uint64_t>(mr.addr), mr.length));
}

std::int64_t thread_cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Spends the configured cost of a registration. Pinning pages occupies the calling thread, so this computes and does not
// sleep, and time in which another thread has the core does not count.
void spend_register_cost(const VerbsMr& mr) {
    const RegisterCost& cost = mr.domain->owner.hca().register_cost;
    if (cost == RegisterCost{}) return;
    const std::uint64_t pages = locked_bytes(reinterpret_cast<std::uint64_t>(mr.addr), mr.length) / kPageBytes;
    const std::int64_t end_ns = thread_cpu_ns() + cost.base_ns + static_cast<std::int64_t>(pages) * cost.page_ns;
    while (thread_cpu_ns() < end_ns) continue;
}

ibv_mr* register_memory(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova, std::uint32_t access) {
    VerbsPd& pd = to_pd(domain);
    auto* mr = new VerbsMr(pd);
    const bool zero_based = (access & IBV_ACCESS_ZERO_BASED) != 0;
    if (const int error = acquire(*mr, pd,
                                  {reinterpret_cast<std::uint64_t>(address), bytes, zero_based ? 0 : iova, access})) {
        delete mr;
        return refuse<ibv_mr>(error);
    }
    pd.users.fetch_add(1);
    mr->context = domain->context;
    mr->pd = domain;
    spend_register_cost(*mr);
    return mr;
}

int refuse_again(int error, int code) {
    errno = error;
    return code;
}

}  // namespace
}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    return register_memory(pd, address, bytes, reinterpret_cast<std::uint64_t>(address),
                           static_cast<std::uint32_t>(access));
}

COOP_VERB ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, int access) {
    return register_memory(pd, address, bytes, iova, static_cast<std::uint32_t>(access));
}

COOP_VERB ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
    return register_memory(pd, address, bytes, iova, access);
}

// Replaces the registration by a new one with new keys; if that is refused, the old one stays.
COOP_VERB int ibv_rereg_mr(ibv_mr* registered, int flags, ibv_pd* pd, void* address, std::size_t bytes, int access) {
    VerbsMr& mr = to_mr(registered);
    if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return refuse_again(EINVAL, IBV_REREG_MR_ERR_INPUT);
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == nullptr || pd->context != mr.context))
        return refuse_again(EINVAL, IBV_REREG_MR_ERR_INPUT);
    Wish wish{reinterpret_cast<std::uint64_t>(mr.addr), mr.length, mr.iova, mr.access};
    if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) wish.access = static_cast<std::uint32_t>(access);
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
        wish.address = wish.iova = reinterpret_cast<std::uint64_t>(address);
        wish.bytes = bytes;
    }
    VerbsPd& domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? to_pd(pd) : *mr.domain;
    const VerbsMr old = mr;
    if (const int error = acquire(mr, domain, wish)) {
        static_cast<ibv_mr&>(mr) = old;
        mr.index = old.index;
        return refuse_again(error, IBV_REREG_MR_ERR_INPUT);
    }
    give_up(old);
    domain.users.fetch_add(1);
    old.domain->users.fetch_sub(1);
    mr.domain = &domain;
    mr.pd = &domain;
    spend_register_cost(mr);
    return 0;
}

COOP_VERB int ibv_dereg_mr(ibv_mr* registered) {
    VerbsMr& mr = to_mr(registered);
    give_up(mr);
    mr.domain->users.fetch_sub(1);
    delete &mr;
    return 0;
}

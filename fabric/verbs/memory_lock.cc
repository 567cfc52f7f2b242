// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/memory_lock.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

namespace coop::fabric {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

bool may_lock_any() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    if (syscall(SYS_capget, &header, data) != 0) return false;
    return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

std::uint64_t limit_of(const Client& client) {
    if (const std::uint64_t own = client.subnet().header().memory_lock_limit.load(std::memory_order_relaxed))
        return own;
    rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || may_lock_any()) return kNoLimit;
    return page_floor(limit.rlim_cur);
}

}  // namespace

bool charge_locked(const Client& client, std::uint64_t bytes) {
    auto& locked = client.self().locked_bytes;
    const std::uint64_t before = locked.fetch_add(bytes, std::memory_order_relaxed);
    const std::uint64_t limit = limit_of(client);
    if (before + bytes <= limit) return true;
    locked.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

void discharge_locked(const Client& client, std::uint64_t bytes) {
    client.self().locked_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace coop::fabric

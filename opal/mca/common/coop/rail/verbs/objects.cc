// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/objects.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace coop::rail {
namespace {

// Describes the limit of locked memory; "" if it is unlimited.
std::string memlock_words() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
    return " (the limit of locked memory, 'ulimit -l', is " + std::to_string(limit.rlim_cur) + " bytes)";
}

}  // namespace

Trouble trouble(ibv_context* device, int number, const std::string& what) {
    return {number, std::string(ibv_get_device_name(device->device)) + ": " + what + ": " +
                        std::generic_category().message(number)};
}

Wanted<CompChannel> make_comp_channel(ibv_context* device) {
    CompChannel channel(ibv_create_comp_channel(device));
    if (!channel) return trouble(device, errno, "cannot create a completion channel");
    return channel;
}

Wanted<Cq> make_cq(ibv_context* device, int entries, ibv_comp_channel* channel, void* user) {
    Cq cq(ibv_create_cq(device, entries, user, channel, 0));
    if (!cq)
        return trouble(device, errno, "cannot create a completion queue of " + std::to_string(entries) + " entries");
    return cq;
}

Wanted<Srq> make_srq(ibv_pd* pd, std::uint32_t receives, std::uint32_t sge, void* user) {
    ibv_srq_init_attr wanted{};
    wanted.srq_context = user;
    wanted.attr.max_wr = receives;
    wanted.attr.max_sge = sge;
    Srq srq(ibv_create_srq(pd, &wanted));
    if (!srq)
        return trouble(pd->context, errno,
                       "cannot create a shared receive queue of " + std::to_string(receives) + " receives");
    return srq;
}

Wanted<Mr> register_memory(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    Mr mr(ibv_reg_mr(pd, address, bytes, static_cast<unsigned>(access)));
    if (mr) return mr;
    const int number = errno;
    Trouble failure = trouble(pd->context, number, "cannot register " + std::to_string(bytes) + " bytes");
    if (number == ENOMEM) failure.sentence += memlock_words();
    return failure;
}

}  // namespace coop::rail

// SPDX-License-Identifier: BSD-3-Clause
//
// The attributes of a device, from its profile. It appears as a ConnectX-3, so that
// programs with a table of devices find known parameters.
#include <endian.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "fabric/verbs/context.h"
#include "fabric/verbs/operations.h"
#include "fabric/verbs/port_state.h"
#include "fabric/verbs/sysfs.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kMellanox = 0x2c9, kConnectX3 = 4099;
constexpr std::uint64_t kClockKHz = 1'000'000;  // completions have timestamps in nanoseconds

unsigned capability_flags(const Profile& profile) {
    unsigned flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CHANGE_PHY_PORT |
                     IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SHUTDOWN_PORT |
                     IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;
    if (profile.apm != 0) flags |= IBV_DEVICE_AUTO_PATH_MIG;
    if (profile.max_srq_wr != 0) flags |= IBV_DEVICE_SRQ_RESIZE;
    return flags;
}

template <class Entries>
int count(const Entries& entries) {
    return static_cast<int>(entries.size());
}

ibv_device_attr describe_device(const Segment& subnet, const Hca& hca) {
    const Profile& profile = hca.profile;
    ibv_device_attr attr{};
    std::strncpy(attr.fw_ver, kFirmware, sizeof attr.fw_ver - 1);
    attr.node_guid = attr.sys_image_guid = htobe64(hca.guid);
    attr.max_mr_size = ~std::uint64_t{0};
    attr.page_size_cap = 0xfffff000;
    attr.vendor_id = kMellanox;
    attr.vendor_part_id = kConnectX3;
    attr.hw_ver = 1;
    attr.max_qp = count(subnet.queue_pairs());
    attr.max_qp_wr = static_cast<int>(profile.max_qp_wr);
    attr.device_cap_flags = capability_flags(profile);
    attr.max_sge = attr.max_sge_rd = static_cast<int>(profile.max_sge);
    attr.max_cq = count(subnet.completion_queues());
    attr.max_cqe = static_cast<int>(profile.max_cqe);
    attr.max_mr = count(subnet.memory_regions());
    attr.max_pd = 1 << 16;
    attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = static_cast<int>(profile.max_rd_atomic);
    attr.max_res_rd_atom = attr.max_qp * attr.max_qp_rd_atom;
    attr.atomic_cap = profile.atomics != 0 ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
    attr.max_ah = 1 << 30;
    if (profile.max_srq_wr != 0) {
        attr.max_srq = count(subnet.shared_receive_queues());
        attr.max_srq_wr = static_cast<int>(profile.max_srq_wr);
        attr.max_srq_sge = static_cast<int>(profile.max_sge);
    }
    attr.max_pkeys = kMaxPkeys;
    attr.local_ca_ack_delay = 15;
    attr.phys_port_cnt = static_cast<std::uint8_t>(hca.ports);
    return attr;
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr,
                    std::size_t bytes) {
    const VerbsContext& device = to_context(context);
    ibv_device_attr_ex described{};
    described.orig_attr = describe_device(device.subnet(), device.hca());
    described.device_cap_flags_ex = described.orig_attr.device_cap_flags;
    described.phys_port_cnt_ex = device.hca().ports;
    if (device.profile().extended != 0) {
        described.completion_timestamp_mask = ~std::uint64_t{0};
        described.hca_core_clock = kClockKHz;
    }
    if (bytes < sizeof described.orig_attr) return EINVAL;
    std::memset(attr, 0, bytes);
    std::memcpy(attr, &described, std::min(bytes, sizeof described));
    return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
    const std::uint32_t wanted = values->comp_mask;
    values->comp_mask = 0;
    if ((wanted & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
    if (wanted == 0) return 0;
    // The raw clock value, not split into seconds, as in the drivers of rdma-core.
    values->raw_clock = {0, static_cast<long>(now_ns())};
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
    const VerbsContext& device = to_context(context);
    *attr = describe_device(device.subnet(), device.hca());
    return 0;
}

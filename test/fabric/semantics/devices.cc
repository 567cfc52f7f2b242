// SPDX-License-Identifier: BSD-3-Clause
// The attributes of a device, its ports and their tables (IBTA 11.2.1 HCA, 4.1 addressing, 10.9 partitioning).
#include <cstring>
#include <set>

#include "objects.h"

using namespace verbstest;

namespace {

struct List {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ~List() { ibv_free_device_list(list); }
};

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

}  // namespace

CASE(list_names_each_hca_once_and_ends_with_null) {
    const List devices;
    CHECK(devices.count > 0);
    CHECK(devices.list[devices.count] == nullptr);
    std::set<std::string> names;
    std::set<std::uint64_t> guids;
    for (int i = 0; i < devices.count; ++i) {
        CHECK(ibv_get_device_name(devices.list[i]) == "coop" + std::to_string(i));
        names.insert(ibv_get_device_name(devices.list[i]));
        guids.insert(ibv_get_device_guid(devices.list[i]));
        CHECK_EQ(devices.list[i]->node_type, IBV_NODE_CA);
        CHECK_EQ(devices.list[i]->transport_type, IBV_TRANSPORT_IB);
    }
    CHECK_EQ(names.size(), devices.count);
    CHECK_EQ(guids.size(), devices.count);
    CHECK_EQ(guids.count(0), 0);
}

CASE(list_may_be_freed_while_a_device_is_open) {
    ibv_context* context = nullptr;
    {
        const List devices;
        context = ibv_open_device(devices.list[0]);
        CHECK(context != nullptr);
    }
    ibv_port_attr port{};
    CHECK_OK(ibv_query_port(context, 1, &port));
    CHECK(std::strlen(ibv_get_device_name(context->device)) > 0);
    CHECK_OK(ibv_close_device(context));
}

CASE(device_opens_many_times_at_once_and_in_turn) {
    for (int round = 0; round < 20; ++round) {
        const Context one, two;
        CHECK(one != two);
        CHECK(one->async_fd != two->async_fd);
        CHECK(one->num_comp_vectors >= 1);
        CHECK(one.device().node_guid == two.device().node_guid);
    }
}

CASE(device_attributes_allow_what_programs_count_on) {
    const Context context;
    const ibv_device_attr device = context.device();
    const List devices;
    CHECK(device.node_guid == ibv_get_device_guid(devices.list[0]));
    CHECK(device.sys_image_guid != 0);
    CHECK(device.phys_port_cnt >= 1);
    CHECK(device.max_qp >= 2);
    CHECK(device.max_qp_wr >= 64);
    CHECK(device.max_sge >= 1);
    CHECK(device.max_cq >= 2);
    CHECK(device.max_cqe >= 512);
    CHECK(device.max_mr >= 16);
    CHECK(device.max_pd >= 2);
    CHECK(device.max_ah >= 16);
    CHECK(device.max_pkeys >= 1);
    CHECK((device.page_size_cap & 4096) != 0);
    CHECK(device.max_mr_size >= std::uint64_t{1} << 32);
    // Depth of RDMA READ and atomics: as responder, as initiator (IBTA 11.2.1.2).
    CHECK(device.max_qp_rd_atom >= 1);
    CHECK(device.max_qp_init_rd_atom >= 1);
    CHECK((device.max_srq == 0) == (device.max_srq_wr == 0));
    CHECK(std::strlen(device.fw_ver) < sizeof device.fw_ver);
}

CASE(extended_attributes_contain_the_plain_ones) {
    const Context context;
    const ibv_device_attr plain = context.device();
    ibv_device_attr_ex extended;
    std::memset(&extended, 0xff, sizeof extended);
    CHECK_OK(ibv_query_device_ex(context, nullptr, &extended));
    const ibv_device_attr& inside = extended.orig_attr;
    CHECK_EQ(inside.max_qp, plain.max_qp);
    CHECK_EQ(inside.max_cqe, plain.max_cqe);
    CHECK_EQ(inside.max_srq, plain.max_srq);
    CHECK_EQ(inside.device_cap_flags, plain.device_cap_flags);
    CHECK_EQ(inside.phys_port_cnt, plain.phys_port_cnt);
    CHECK(inside.node_guid == plain.node_guid);
    CHECK(extended.phys_port_cnt_ex == 0 || extended.phys_port_cnt_ex == plain.phys_port_cnt);
    // Timestamps are useless without a clock rate, so both are there or neither.
    CHECK((extended.completion_timestamp_mask != 0) == (extended.hca_core_clock != 0));
    ibv_query_device_ex_input unknown{};
    unknown.comp_mask = 1;
    CHECK_ERROR(ibv_query_device_ex(context, &unknown, &extended), EINVAL);
}

CASE(port_is_active_and_knows_its_limits) {
    const Context context;
    for (int number = 1; number <= context.device().phys_port_cnt; ++number) {
        const ibv_port_attr port = context.port(static_cast<std::uint8_t>(number));
        CHECK_EQ(port.state, IBV_PORT_ACTIVE);
        CHECK_EQ(port.phys_state, 5);  // LinkUp (IBTA 14.2.5.6, PortInfo)
        CHECK(port.active_mtu >= IBV_MTU_256 && port.active_mtu <= port.max_mtu);
        CHECK(port.max_mtu <= IBV_MTU_4096);
        CHECK(port.max_msg_sz >= 1u << 20);
        CHECK(port.max_msg_sz <= 1u << 31);  // IBTA 9.7.7
        CHECK(port.gid_tbl_len >= 1);
        CHECK(port.pkey_tbl_len >= 1);
        CHECK(port.active_width != 0);
        CHECK(port.active_speed != 0);
    }
}

CASE(lids_are_unicast_aligned_to_lmc_and_distinct) {
    if (Context().ethernet()) skip("no LIDs on Ethernet");
    std::set<int> seen;
    for (int i = 0; i < devices(); ++i) {
        const Context context(i);
        for (int number = 1; number <= context.device().phys_port_cnt; ++number) {
            const ibv_port_attr port = context.port(static_cast<std::uint8_t>(number));
            CHECK_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
            CHECK(port.lmc <= 7);
            CHECK_EQ(port.lid & ((1 << port.lmc) - 1), 0);  // IBTA 4.1.3, 7.11.1
            CHECK(port.sm_lid != 0);
            for (int k = 0; k < 1 << port.lmc; ++k) {
                CHECK(port.lid + k >= 1 && port.lid + k <= 0xbfff);
                CHECK(seen.insert(port.lid + k).second);
            }
        }
    }
}

// IBA over Ethernet (annex A16): no LID, no LMC, no SM; addressing by GID alone.
CASE(ethernet_port_has_gids_and_no_lids) {
    const Context context;
    if (!context.ethernet()) skip("an InfiniBand port");
    const ibv_port_attr port = context.port();
    CHECK_EQ(port.lid, 0);
    CHECK_EQ(port.lmc, 0);
    CHECK_EQ(port.sm_lid, 0);
    CHECK_EQ(has_apm(context), false);
}

CASE(port_number_out_of_range_is_refused) {
    const Context context;
    ibv_port_attr port{};
    CHECK_ERROR(ibv_query_port(context, 0, &port), EINVAL);
    CHECK_ERROR(ibv_query_port(context, static_cast<std::uint8_t>(context.device().phys_port_cnt + 1), &port), EINVAL);
}

// IBTA 4.1.1: GID 0 is the subnet prefix (by default fe80::/64) and the port's GUID.
CASE(gid_0_is_prefix_and_port_guid_and_distinct) {
    std::set<std::string> seen;
    for (int i = 0; i < devices(); ++i) {
        const Context context(i);
        const ibv_gid gid = context.gid();
        CHECK(gid.global.interface_id != 0);
        CHECK(seen.insert(std::string(reinterpret_cast<const char*>(gid.raw), sizeof gid.raw)).second);
        if (context.ethernet()) continue;
        CHECK_EQ(gid.raw[0], 0xfe);
        CHECK_EQ(gid.raw[1], 0x80);
    }
}

CASE(gid_index_out_of_range_is_refused) {
    const Context context;
    ibv_gid gid{};
    CHECK(ibv_query_gid(context, 1, context.port().gid_tbl_len, &gid) != 0);
    CHECK(ibv_query_gid(context, 1, -1, &gid) != 0);
}

CASE(gid_entry_tells_its_type) {
    const Context context;
    ibv_gid_entry entry{};
    CHECK_OK(ibv_query_gid_ex(context, 1, 0, &entry, 0));
    CHECK(same(entry.gid, context.gid()));
    CHECK_EQ(entry.gid_index, 0);
    CHECK_EQ(entry.port_num, 1);
    if (context.ethernet()) CHECK(entry.gid_type != IBV_GID_TYPE_IB);
    else CHECK_EQ(entry.gid_type, IBV_GID_TYPE_IB);
}

// IBTA 10.9.1.2: the first entry is by default 0xFFFF, full membership of the default partition.
CASE(pkey_0_is_the_default_partition) {
    const Context context;
    __be16 pkey = 0;
    CHECK_OK(ibv_query_pkey(context, 1, 0, &pkey));
    CHECK_EQ(pkey, 0xffff);
    CHECK_EQ(ibv_get_pkey_index(context, 1, pkey), 0);
    CHECK(ibv_query_pkey(context, 1, context.port().pkey_tbl_len, &pkey) != 0);
}

CASE(names_of_states_and_events_are_text) {
    for (int i = IBV_PORT_NOP; i <= IBV_PORT_ACTIVE_DEFER; ++i)
        CHECK(std::strlen(ibv_port_state_str(static_cast<ibv_port_state>(i))) > 0);
    for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; ++i)
        CHECK(std::strlen(ibv_event_type_str(static_cast<ibv_event_type>(i))) > 0);
    for (int i = IBV_WC_SUCCESS; i <= IBV_WC_GENERAL_ERR; ++i)
        CHECK(std::strlen(ibv_wc_status_str(static_cast<ibv_wc_status>(i))) > 0);
}

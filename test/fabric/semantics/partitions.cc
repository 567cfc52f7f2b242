// SPDX-License-Identifier: BSD-3-Clause
// Partitions (IBTA 10.9): a port's table of P_Keys, and the keys that match. On the ground 'pkeys' every port has the
// table kTable.
#include <endian.h>

#include "end.h"

using namespace verbstest;

namespace {

constexpr std::uint16_t kTable[] = {0x8001, 0xffff, 0x0000, 0x0002, 0x8002};
enum Index : std::uint16_t { kOne, kDefault, kEmpty, kLimitedTwo, kFullTwo, kBehind };
static_assert(std::size(kTable) == kBehind);

Pair::Options with_keys(std::uint16_t a, std::uint16_t b, ibv_qp_type type = IBV_QPT_RC) {
    Pair::Options options;
    options.from_a.pkey_index = a;
    options.from_b.pkey_index = b;
    options.a.qp.type = options.b.qp.type = type;
    return options;
}

void expect_both_ways(std::uint16_t a, std::uint16_t b) {
    Pair pair(with_keys(a, b));
    pair.exchange(1, 3000);
    pair.a.qp.receive(2, pair.a.memory.sge(8192, 64));
    pair.b->post_send(2, 0, 64);
    pair.b->expect_send(2);
    pair.a.rcq.expect(2);
}

std::uint32_t violations(const Context& context) { return context.port().bad_pkey_cntr; }

// A message from a to b must be lost, and b's port must count it and its retries.
void expect_silence(std::uint16_t a, std::uint16_t b) {
    Two two(with_keys(a, b));
    const std::uint32_t before = violations(two.b.context);
    two.b.qp.receive(1, two.b.memory.sge(0, 64));
    two.a.qp.post(send(1, two.a.memory.sge(0, 64)));
    two.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(two.b.qp.state(), IBV_QPS_RTS);  // it has noticed nothing
    two.b.rcq.expect_none(1);
    CHECK_EQ(violations(two.b.context) - before, 1u + Path{}.retry);
}

}  // namespace

CASE(table_has_the_keys_of_the_subnet) {
    const Context context;
    CHECK_EQ(context.port().pkey_tbl_len, kBehind);
    CHECK(context.device().max_pkeys >= kBehind);
    for (int i = 0; i < kBehind; ++i) {
        __be16 key = 0;
        CHECK_OK(ibv_query_pkey(context, 1, i, &key));
        CHECK_EQ(be16toh(key), kTable[i]);
        CHECK_EQ(ibv_get_pkey_index(context, 1, key), i);
    }
    __be16 key = 0;
    CHECK(ibv_query_pkey(context, 1, kBehind, &key) != 0);
    CHECK(ibv_query_pkey(context, 1, -1, &key) != 0);
    CHECK(ibv_query_pkey(context, 9, 0, &key) != 0);
    CHECK_EQ(ibv_get_pkey_index(context, 1, htobe16(0x0001)), -1);  // a full member has a different key
}

CASE(index_beyond_the_table_is_refused) {
    Node node;
    Path path;
    path.pkey_index = kBehind;
    CHECK_ERROR(node.to_init(path), EINVAL);
}

CASE(queue_pair_tells_its_index) {
    Pair pair(with_keys(kFullTwo, kLimitedTwo));
    CHECK_EQ(pair.a.qp.query().pkey_index, kFullTwo);
    CHECK_EQ(pair.b->query().pkey_index, kLimitedTwo);
}

CASE(full_members_of_one_partition_talk) {
    expect_both_ways(kOne, kOne);
    expect_both_ways(kDefault, kDefault);
}

CASE(full_and_limited_member_talk) {
    expect_both_ways(kFullTwo, kLimitedTwo);
    expect_both_ways(kLimitedTwo, kFullTwo);
}

CASE(two_limited_members_do_not_talk) { expect_silence(kLimitedTwo, kLimitedTwo); }

CASE(members_of_different_partitions_do_not_talk) {
    expect_silence(kOne, kDefault);
    expect_silence(kFullTwo, kOne);
}

CASE(empty_place_of_the_table_matches_nothing) {
    expect_silence(kEmpty, kEmpty);
    expect_silence(kDefault, kEmpty);
}

CASE(write_and_read_of_another_partition_touch_nothing) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
        Pair pair(with_keys(kOne, kDefault));
        Wr wr = write(1, pair.a.memory.sge(0, 64), pair.at_b.remote());
        wr.opcode = opcode;
        pair.a.qp.post(wr);
        pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
        pair.b->check_untouched(0, 64);
        pair.a.memory.check_untouched(0, 64);
    }
}

// Dropped silently, like datagrams with a wrong Q_Key; the P_Key is checked first.
CASE(datagrams_of_another_partition_are_dropped_and_counted) {
    for (const auto& [key, arrives] : {std::pair(kDefault, true), {kOne, false}, {kEmpty, false}}) {
        Two two(with_keys(key, kDefault, IBV_QPT_UD));
        const Ah ah(two.a.pd, way_to(two.b.address(), {}, 1));
        const std::uint32_t before = violations(two.b.context);
        two.b.qp.receive(1, two.b.memory.sge(0, 200));
        Wr wr = send(1, two.a.memory.sge(0, 64));
        wr.ah = ah;
        wr.qpn = two.b.address().qpn;
        wr.qkey = kQkey;
        two.a.qp.post(wr);
        two.a.scq.expect(1);
        if (arrives) two.b.rcq.expect(1);
        else two.b.rcq.expect_none();
        CHECK_EQ(violations(two.b.context) - before, arrives ? 0u : 1u);
    }
}

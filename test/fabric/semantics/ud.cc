// SPDX-License-Identifier: BSD-3-Clause
// Unreliable datagrams (IBTA 9.8.3 service, 10.2.5 queue keys, 11.2.2 address handles, 11.4.2.1 fields of a
// completion).
#include <arpa/inet.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

constexpr std::size_t kGrh = sizeof(ibv_grh);  // 40 bytes before every received datagram
static_assert(kGrh == 40);

Pair::Options datagrams() {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    return options;
}

std::size_t mtu_bytes(ibv_mtu mtu) { return std::size_t{128} << mtu; }

Wr to(const Address& peer, const Ah& ah, Wr wr, std::uint32_t qkey = kQkey) {
    wr.ah = ah;
    wr.qpn = peer.qpn;
    wr.qkey = qkey;
    return wr;
}

struct Datagrams : Pair {
    Ah ah;
    Datagrams() : Pair(datagrams()), ah(a.pd, way_to(at_b, {}, 1)) {}
    Wr to_b(const Wr& wr, std::uint32_t qkey = kQkey) const { return to(at_b, ah, wr, qkey); }
};

}  // namespace

CASE(datagram_arrives_after_40_bytes_of_header) {
    Datagrams d;
    const std::size_t sizes[] = {0, 1, 255, 256, mtu_bytes(d.at_b.mtu)};
    std::uint64_t id = 1;
    for (std::size_t bytes : sizes) {
        d.a.memory.fill(id, 0, bytes);
        d.b->receive(id, 64, kGrh + bytes);
        d.a.qp.post(d.to_b(send(id, d.a.memory.sge(0, bytes))));
        d.a.scq.expect(id);
        const ibv_wc wc = d.b->expect_receive(id);
        CHECK_EQ(wc.byte_len, kGrh + bytes);
        CHECK_EQ(wc.opcode, IBV_WC_RECV);
        d.b->check(id++, 64 + kGrh, bytes);
    }
    d.b->check_untouched(0, 64);
    d.b->check_untouched(64 + kGrh + mtu_bytes(d.at_b.mtu), 1024);
}

CASE(completion_tells_where_the_datagram_is_from) {
    Datagrams d;
    d.b->receive(1, 0, 1024);
    Wr wr = d.to_b(send(1, d.a.memory.sge(0, 64)));
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm = 0xabcd;
    d.a.qp.post(wr);
    d.a.scq.expect(1);
    const ibv_wc wc = d.b->expect_receive(1);
    CHECK_EQ(wc.src_qp, d.at_a.qpn);
    CHECK_EQ(wc.qp_num, d.at_b.qpn);
    CHECK_EQ(wc.imm_data, __builtin_bswap32(0xabcd));
    CHECK((wc.wc_flags & IBV_WC_WITH_IMM) != 0);
    CHECK_EQ(wc.sl, 0);
    CHECK_EQ(wc.pkey_index, 0);
    CHECK_EQ((wc.wc_flags & IBV_WC_GRH) != 0, d.at_a.global || d.at_a.header);
    if (d.at_a.global) return;
    CHECK_EQ(wc.slid, d.at_a.lid);
    CHECK_EQ(wc.dlid_path_bits, 0);
}

// IBTA 8.3: the global routing header contains source and destination. (RoCE v2 over IPv4 has an IPv4 header there
// instead.)
CASE(global_datagram_carries_its_header) {
    Two two(datagrams());
    if (two.a.context.ethernet()) skip("the header is not an IPv6 one");
    ibv_ah_attr way = way_to(two.b.address(), {}, 1);
    way.is_global = 1;
    way.grh.dgid = two.b.context.gid();
    way.grh.hop_limit = 5;
    const Ah ah(two.a.pd, way);
    two.b.qp.receive(1, two.b.memory.sge(0, 200));
    two.a.memory.fill(1, 0, 100);
    two.a.qp.post(to(two.b.address(), ah, send(1, two.a.memory.sge(0, 100))));
    two.a.scq.expect(1);
    const ibv_wc wc = two.b.rcq.expect(1);
    CHECK((wc.wc_flags & IBV_WC_GRH) != 0);
    ibv_grh header;
    std::memcpy(&header, two.b.memory.data(), sizeof header);
    const ibv_gid from = two.a.context.gid(), target = two.b.context.gid();
    CHECK_EQ(std::memcmp(&header.sgid, &from, sizeof from), 0);
    CHECK_EQ(std::memcmp(&header.dgid, &target, sizeof target), 0);
    CHECK_EQ(header.hop_limit, 5);
    two.b.memory.check(1, kGrh, 100);
}

CASE(answer_finds_its_way_by_the_completion) {
    Two two(datagrams());
    const Ah ah(two.a.pd, way_to(two.b.address(), {}, 1));
    two.b.qp.receive(1, two.b.memory.sge(0, 200));
    two.a.qp.receive(2, two.a.memory.sge(1024, 200));
    two.a.qp.post(to(two.b.address(), ah, send(1, two.a.memory.sge(0, 64))));
    two.a.scq.expect(1);
    ibv_wc wc = two.b.rcq.expect(1);
    ibv_grh header;
    std::memcpy(&header, two.b.memory.data(), sizeof header);
    ibv_ah_attr attr{};
    CHECK_OK(ibv_init_ah_from_wc(two.b.context, 1, &wc, &header, &attr));
    if (!two.a.context.ethernet()) CHECK_EQ(attr.dlid, two.a.address().lid);
    const Ah back(ibv_create_ah_from_wc(two.b.pd, &wc, &header, 1));
    two.b.memory.fill(5, 1024, 64);
    Wr wr = to(two.a.address(), back, send(2, two.b.memory.sge(1024, 64)));
    wr.qpn = wc.src_qp;
    two.b.qp.post(wr);
    two.b.scq.expect(2);
    CHECK_EQ(two.a.rcq.expect(2).src_qp, two.b.qp.number());
    two.a.memory.check(5, 1024 + kGrh, 64);
}

// IBTA 10.2.5, 9.6.1.4: it is dropped, and counted at the port.
CASE(datagram_with_a_wrong_queue_key_is_dropped) {
    Datagrams d;
    d.b->receive(1, 0, 1024);
    d.a.qp.post(d.to_b(send(1, d.a.memory.sge(0, 64)), kQkey + 1));
    d.a.scq.expect(1);  // the sender does not learn of it
    d.b->expect_no_receive();
    d.a.memory.fill(2, 0, 64);
    d.a.qp.post(d.to_b(send(2, d.a.memory.sge(0, 64))));
    d.a.scq.expect(2);
    d.b->expect_receive(1);
    d.b->check(2, kGrh, 64);
}

// IBTA 10.2.5: if the most significant bit is set, the Q_Key of the sending queue pair is used instead.
CASE(queue_key_with_the_top_bit_stands_for_the_senders_own) {
    Datagrams d;
    d.b->receive(1, 0, 1024);
    d.a.qp.post(d.to_b(send(1, d.a.memory.sge(0, 64)), 0x80000001));
    d.a.scq.expect(1);
    d.b->expect_receive(1);
}

CASE(datagram_without_a_receive_is_dropped) {
    Datagrams d;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        d.a.qp.post(d.to_b(send(id, d.a.memory.sge(0, 64))));
        d.a.scq.expect(id);
    }
    d.b->receive(1, 0, 1024);
    d.b->expect_no_receive();
    d.a.memory.fill(6, 0, 64);
    d.a.qp.post(d.to_b(send(6, d.a.memory.sge(0, 64))));
    d.a.scq.expect(6);
    d.b->expect_receive(1);
    d.b->check(6, kGrh, 64);
}

CASE(datagram_to_nobody_is_dropped) {
    Datagrams d;
    Wr wr = d.to_b(send(1, d.a.memory.sge(0, 64)));
    wr.qpn ^= 0x800000;
    d.a.qp.post(wr);
    d.a.scq.expect(1);
    if (!d.at_b.global) {
        ibv_ah_attr way = way_to(d.at_b, {}, 1);
        way.dlid = 0x7777;
        const Ah nobody(d.a.pd, way);
        d.a.qp.post(to(d.at_b, nobody, send(2, d.a.memory.sge(0, 64))));
        d.a.scq.expect(2);
    }
    d.b->receive(1, 0, 1024);
    d.b->expect_no_receive();
    CHECK_EQ(d.a.qp.state(), IBV_QPS_RTS);
}

// IBTA 9.8.3, 11.6.2 (Local Length Error): a datagram is one packet. The error stops only the send queue, not the queue
// pair (10.3.1.6). Soft-RoCE refuses such a request when it is posted.
CASE(datagram_longer_than_the_mtu_fails_and_stops_the_send_queue) {
    Datagrams d;
    const std::size_t bytes = mtu_bytes(d.at_a.mtu) + 1;
    d.a.qp.receive(9, d.a.memory.sge(8192, 1024));
    d.a.qp.post({d.to_b(send(1, d.a.memory.sge(0, bytes))), d.to_b(send(2, d.a.memory.sge(0, 64)))});
    d.a.scq.expect(1, IBV_WC_LOC_LEN_ERR);
    d.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(d.a.qp.state(), IBV_QPS_SQE);
    d.a.rcq.expect_none(1);  // the receive queue continues
    CHECK_OK(d.a.qp.to(IBV_QPS_RTS));
    d.b->receive(3, 0, 1024);
    d.a.memory.fill(3, 0, 64);
    d.a.qp.post(d.to_b(send(3, d.a.memory.sge(0, 64))));
    d.a.scq.expect(3);
    d.b->expect_receive(3);
    d.b->check(3, kGrh, 64);
}

CASE(unknown_local_key_stops_the_send_queue) {
    Datagrams d;
    ibv_sge list = d.a.memory.sge(0, 64);
    list.lkey ^= 0x5a5a5a;
    d.a.qp.post(d.to_b(send(1, list)));
    d.a.scq.expect(1, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(d.a.qp.state(), IBV_QPS_SQE);
}

// IBTA 10.2.2.1, 11.6.2 (Local QP Operation Error): address handle and queue pair must have the same protection domain.
CASE(address_handle_of_another_domain_is_a_local_operation_error) {
    Datagrams d;
    const Pd other(d.a.context);
    const Ah foreign(other, way_to(d.at_b, {}, 1));
    d.b->receive(1, 0, 1024);
    d.a.qp.post(to(d.at_b, foreign, send(1, d.a.memory.sge(0, 64))));
    d.a.scq.expect(1, IBV_WC_LOC_QP_OP_ERR);
    d.b->expect_no_receive();
}

// Refused when posted, or completed with Local QP Operation Error (IBTA 10.2.2.3, table of operations per service).
CASE(rdma_on_a_datagram_queue_is_not_possible) {
    Datagrams d;
    Wr wr = d.to_b(send(1, d.a.memory.sge(0, 64)));
    wr.opcode = IBV_WR_RDMA_WRITE;
    const int result = d.a.qp.try_post(wr);
    if (result == 0) d.a.scq.expect(1, IBV_WC_LOC_QP_OP_ERR);
    else CHECK_EQ(result, EINVAL);
}

// It must not be reported as received, nor written beyond the buffer: IBTA 9.9.3 lets the responder drop it (Soft-RoCE)
// or complete the receive with Local Length Error (ConnectX).
CASE(datagram_longer_than_the_receive_is_not_received) {
    Datagrams d;
    d.a.memory.fill(1, 0, 200);
    d.b->receive(1, 64, kGrh + 100);
    d.a.qp.post(d.to_b(send(1, d.a.memory.sge(0, 200))));
    d.a.scq.expect(1);
    const auto wc = d.b->poll_receive(kQuietMs);
    CHECK(!wc || wc->status == IBV_WC_LOC_LEN_ERR);
    d.b->check_untouched(64 + kGrh + 100, 200);
}

CASE(one_queue_hears_from_many) {
    Two two(datagrams());
    const Qp other(two.a.pd, two.a.scq, two.a.rcq, {IBV_QPT_UD, 16, 16, 1, 0, 0});
    connect(two.a.context, other, {});
    const Address at_b = two.b.address();
    const Ah ah(two.a.pd, way_to(at_b, {}, 1));
    for (std::uint64_t id = 0; id < 8; ++id) {
        two.b.qp.receive(id, two.b.memory.sge(id * 256, 256));
        const Qp& from = id % 2 == 0 ? two.a.qp : other;
        two.a.memory.fill(id, id * 64, 64);
        from.post(to(at_b, ah, send(id, two.a.memory.sge(id * 64, 64))));
        two.a.scq.expect(id);
        CHECK_EQ(two.b.rcq.expect(id).src_qp, from.number());
        two.b.memory.check(id, id * 256 + kGrh, 64);
    }
}

CASE(datagram_to_oneself_arrives) {
    Node node([] {
        Shape shape;
        shape.qp.type = IBV_QPT_UD;
        return shape;
    }());
    node.connect({});
    const Ah ah(node.pd, way_to(node.address(), {}, 1));
    node.memory.fill(1, 0, 64);
    node.qp.receive(1, node.memory.sge(1024, 256));
    node.qp.post(to(node.address(), ah, send(1, node.memory.sge(0, 64))));
    node.scq.expect(1);
    CHECK_EQ(node.rcq.expect(1).src_qp, node.qp.number());
    node.memory.check(1, 1024 + kGrh, 64);
}

CASE(datagram_to_a_port_that_is_down_is_lost) {
    Datagrams d;
    d.b->receive(1, 0, 1024);
    {
        const Meanwhile down({"port", d.b->port_name(), "down"}, {"port", d.b->port_name(), "up"});
        d.a.qp.post(d.to_b(send(1, d.a.memory.sge(0, 64))));
        d.a.scq.expect(1);
    }
    d.b->expect_no_receive();
    d.a.memory.fill(2, 0, 64);
    d.a.qp.post(d.to_b(send(2, d.a.memory.sge(0, 64))));
    d.a.scq.expect(2);
    d.b->expect_receive(1);
    d.b->check(2, kGrh, 64);
}

CASE(address_handle_for_an_impossible_port_is_refused) {
    const Context context;
    const Pd pd(context);
    ibv_ah_attr way{};
    way.dlid = 1;
    way.port_num = static_cast<std::uint8_t>(context.device().phys_port_cnt + 1);
    CHECK_NULL(ibv_create_ah(pd, &way), EINVAL);
}

// --- networks that double and reorder -------------------------------------------------------------------------------

namespace {

// Sends two datagrams, with the immediate values 1 and 2, while a rule of this kind applies to the first.
void send_two_with_a_rule(Pair& pair, const char* kind) {
    char name[32];
    snprintf(name, sizeof name, "qp:0x%x", pair.at_a.qpn);
    tool({"fault", name, kind});
    const Ah ah(pair.a.pd, way_to(pair.at_b, {}, 1));
    std::vector<Wr> both;
    for (std::uint32_t id = 1; id <= 2; ++id) {
        Wr wr = send_imm(id, pair.a.memory.sge(0, 64), id);
        wr.ah = ah;
        wr.qpn = pair.at_b.qpn;
        wr.qkey = kQkey;
        both.push_back(wr);
    }
    pair.a.qp.post(both);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.a.scq.expect(id);
}

std::uint32_t next_imm(Pair& pair, std::uint64_t id) { return ntohl(pair.b->expect_receive(id).imm_data); }

}  // namespace

// IBTA 9.8.3: the service is unacknowledged and unordered for the program; nothing detects duplicates.
CASE(doubled_datagram_takes_two_receives) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    for (std::uint64_t id = 1; id <= 4; ++id) pair.b->receive(id, id * 1024, 256);
    send_two_with_a_rule(pair, "double");
    std::uint32_t times[3] = {};
    for (std::uint64_t id = 1; id <= 3; ++id) ++times[next_imm(pair, id)];
    CHECK_EQ(times[1], 2);
    CHECK_EQ(times[2], 1);
    pair.b->expect_no_receive();
}

CASE(reordered_datagram_comes_after_the_next) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, id * 1024, 256);
    send_two_with_a_rule(pair, "reorder");
    CHECK_EQ(next_imm(pair, 1), 2);
    CHECK_EQ(next_imm(pair, 2), 1);
}

CASE(datagram_that_is_lost_is_not_late) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, id * 1024, 256);
    char name[32];
    snprintf(name, sizeof name, "qp:0x%x", pair.at_a.qpn);
    tool({"fault", name, "late", "1ms"});
    send_two_with_a_rule(pair, "drop");
    CHECK_EQ(next_imm(pair, 1), 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pair.b->expect_no_receive();
}

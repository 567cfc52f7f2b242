// SPDX-License-Identifier: BSD-3-Clause
// Mis-cabled and half-dead networks (test/fabric/topologies): all ports report a good state, yet some ports with the
// same prefix cannot reach each other, or only in one direction. Needs --far: the two ends are on different hosts.
#include <cstring>

#include "end.h"

using namespace verbstest;

namespace {

Pair::Options between(int device_of_a, int device_of_b) {
    Pair::Options options;
    options.a.device = device_of_a;
    options.b.device = device_of_b;
    return options;
}

void expect_both_ways(int device_of_a, int device_of_b) {
    Pair pair(between(device_of_a, device_of_b));
    pair.exchange(1);
    pair.a.qp.receive(2, pair.a.memory.sge(0, 64));
    pair.b->post_send(2, 0, 64);
    pair.a.rcq.expect(2);
    pair.b->expect_send(2);
}

// The sender's retries are exceeded in either case; the cases differ in whether the receiver got the message.
void expect_a_loses(int device_of_a, int device_of_b) {
    Pair pair(between(device_of_a, device_of_b));
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive();
}

void expect_b_is_not_heard(int device_of_a, int device_of_b, bool arrives) {
    Pair pair(between(device_of_a, device_of_b));
    pair.a.qp.receive(2, pair.a.memory.sge(0, 64));
    pair.b->post_send(2, 0, 64);
    pair.b->expect_send(2, IBV_WC_RETRY_EXC_ERR);
    if (arrives) pair.a.rcq.expect(2);
    else pair.a.rcq.expect_none();
}

void expect_apart(int device_of_a, int device_of_b) {
    expect_a_loses(device_of_a, device_of_b);
    expect_b_is_not_heard(device_of_a, device_of_b, false);
}

}  // namespace

CASE(every_port_is_active_and_of_one_prefix) {
    for (int device = 0; device < 2; ++device) {
        const Pair pair(between(device, device));
        CHECK_EQ(pair.a.context.port().state, IBV_PORT_ACTIVE);
        CHECK(pair.at_a.lid != 0 && pair.at_b.lid != 0 && pair.at_a.lid != pair.at_b.lid);
        CHECK_EQ(std::memcmp(pair.at_a.gid.raw, pair.at_b.gid.raw, 8), 0);
    }
}

CASE(ports_of_different_fabrics_do_not_hear_each_other) {
    if (ground() == "one_way") skip("one fabric");
    if (ground() == "crossed_cables") {
        expect_both_ways(0, 1);
        expect_both_ways(1, 0);
        expect_apart(0, 0);
        expect_apart(1, 1);
        return;
    }
    expect_both_ways(0, 0);
    expect_apart(1, 1);
    expect_apart(0, 1);
    expect_apart(1, 0);
}

CASE(route_that_leads_nowhere_loses_requests_and_the_acknowledgements_of_the_other_side) {
    if (ground() != "one_way") skip("every route leads somewhere");
    expect_both_ways(0, 0);
    expect_both_ways(0, 1);
    expect_both_ways(1, 0);
    expect_a_loses(1, 1);
    expect_b_is_not_heard(1, 1, true);
}

CASE(datagrams_take_the_same_ways) {
    Pair::Options options = between(1, 1);
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    pair.b->receive(1, 0, 256);
    const Ah ah(pair.a.pd, way_to(pair.at_b, {}, 1));
    Wr wr = send(1, pair.a.memory.sge(0, 64));
    wr.ah = ah;
    wr.qpn = pair.at_b.qpn;
    wr.qkey = kQkey;
    pair.a.qp.post(wr);
    pair.a.scq.expect(1);
    pair.b->expect_no_receive();
}

// SPDX-License-Identifier: BSD-3-Clause
// Ports that accept only packets with a global routing header, and ports with different prefixes, between which there
// would be a router (IBTA 8.3, 9.6.1, 13.5.4). On the ground 'grh' every port requires the header; on 'prefixes' the
// first and the last device differ in prefix.
#include <cstring>

#include "end.h"

using namespace verbstest;

namespace {

Address without_header(Address address) {
    address.header = false;
    return address;
}

Address with_header(Address address) {
    address.header = true;
    return address;
}

Address with_wrong_gid(Address address) {
    address = with_header(address);
    address.gid.raw[15] ^= 0x40;
    return address;
}

struct Ends {
    Node a, b;
    explicit Ends(ibv_qp_type type = IBV_QPT_RC) : a(shape(type, 0)), b(shape(type, -1)) {}

    static Shape shape(ibv_qp_type type, int device) {
        Shape shape;
        shape.qp.type = type;
        shape.device = device;
        return shape;
    }
    void connect(const Address& to_b, const Address& to_a) const {
        b.connect(to_a, reversed({}));
        a.connect(to_b);
    }
    void send_to_b() const {
        b.qp.receive(1, b.memory.sge(0, 256));
        a.qp.post(send(1, a.memory.sge(0, 256)));
    }
};

void expect_lost(const Address& to_b, const Ends& ends) {
    ends.connect(to_b, with_header(ends.a.address()));
    ends.send_to_b();
    ends.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    ends.b.rcq.expect_none(1);
}

}  // namespace

CASE(port_says_whether_it_demands_the_header) {
    const Context first, last(-1);
    const bool grh = ground() == "grh";
    CHECK_EQ((first.port().flags & IBV_QPF_GRH_REQUIRED) != 0, grh);
    CHECK_EQ((last.port().flags & IBV_QPF_GRH_REQUIRED) != 0, grh);
    CHECK_EQ(std::memcmp(first.gid().raw, last.gid().raw, 8) != 0, !grh);
}

CASE(requests_without_the_header_are_lost) {
    const Ends ends;
    expect_lost(without_header(ends.b.address()), ends);
}

CASE(requests_with_the_header_arrive) {
    const Ends ends;
    ends.connect(with_header(ends.b.address()), with_header(ends.a.address()));
    ends.send_to_b();
    ends.a.scq.expect(1);
    ends.b.rcq.expect(1);
    ends.a.qp.post(read(2, ends.a.memory.sge(0, 8192), ends.b.memory.remote()));
    ends.a.scq.expect(2);
    const ibv_ah_attr way = ends.a.qp.query().ah_attr;
    CHECK_EQ(way.is_global, 1);
    CHECK_EQ(std::memcmp(way.grh.dgid.raw, ends.b.context.gid().raw, sizeof way.grh.dgid.raw), 0);
}

CASE(header_with_an_unknown_gid_is_lost) {
    const Ends ends;
    expect_lost(with_wrong_gid(ends.b.address()), ends);
}

// The request is executed, but its acknowledgement is lost.
CASE(acknowledgements_need_the_header_too) {
    const Ends ends;
    ends.connect(with_header(ends.b.address()), without_header(ends.a.address()));
    ends.send_to_b();
    ends.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    ends.b.rcq.expect(1);
}

CASE(datagrams_need_the_header) {
    for (const bool header : {true, false}) {
        const Ends ends(IBV_QPT_UD);
        ends.connect(ends.b.address(), ends.a.address());
        Address to = ends.b.address();
        to.header = header;
        const Ah ah(ends.a.pd, way_to(to, {}, 1));
        ends.b.qp.receive(1, ends.b.memory.sge(0, 400));
        Wr wr = send(1, ends.a.memory.sge(0, 256));
        wr.ah = ah;
        wr.qpn = to.qpn;
        wr.qkey = kQkey;
        ends.a.qp.post(wr);
        ends.a.scq.expect(1);
        if (!header) {
            ends.b.rcq.expect_none();
            continue;
        }
        CHECK((ends.b.rcq.expect(1).wc_flags & IBV_WC_GRH) != 0);
    }
}

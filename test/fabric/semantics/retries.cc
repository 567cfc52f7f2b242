// SPDX-License-Identifier: BSD-3-Clause
// Timers and retries of a reliable connection (IBTA 9.7.5.2.8 RNR NAK, 9.7.6.1 retries and timers, 11.6.2).
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

constexpr std::uint8_t kRnr20ms = 22;  // 20.48 ms (IBTA 9.7.5.2.8, table of RNR timer values)

Pair::Options rnr(std::uint8_t retries, std::uint8_t timer) {
    Pair::Options options;
    options.from_a.rnr_retry = retries;
    options.from_b.min_rnr = timer;
    return options;
}

void expect_retry_exceeded(Pair& pair) {
    pair.a.qp.post({send(1, pair.a.memory.sge(0, 8)), send(2, pair.a.memory.sge(0, 8))});
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_ERR);
}

}  // namespace

// --- receiver not ready ---------------------------------------------------------------------------------------------

CASE(rnr_retry_0_fails_at_the_first_nak) {
    Pair pair(rnr(0, 1));
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));
    pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_ERR);
    CHECK_EQ(pair.b->query().qp_state, IBV_QPS_RTS);  // the responder has made no error
}

CASE(rnr_retries_are_counted_and_each_waits_for_the_timer_of_the_responder) {
    Pair pair(rnr(2, kRnr20ms));
    const auto start = Clock::now();
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));
    pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK(ms_since(start) >= 2 * 20.48);
}

// The retries are counted per request (IBTA 9.7.6.1.2).
CASE(rnr_retries_are_counted_per_request) {
    Pair pair(rnr(3, kRnr20ms));
    for (std::uint64_t id = 1; id <= 3; ++id) {
        pair.a.qp.post(send(id, pair.a.memory.sge(0, 8)));
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // time for one or two retries
        pair.b->receive(id, 0, 8);
        pair.a.scq.expect(id);
        pair.b->expect_receive(id);
    }
}

CASE(rnr_retry_7_waits_for_ever) {
    Pair pair(rnr(7, 1));
    pair.a.memory.fill(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect_none(50);  // at 0.01 ms each these are far more than 7
    pair.b->receive(1, 0, 64);
    pair.a.scq.expect(1);
    pair.b->expect_receive(1);
    pair.b->check(1, 0, 64);
}

CASE(rnr_send_is_not_tried_again_before_the_timer) {
    Pair pair(rnr(7, kRnr20ms));
    const auto start = Clock::now();
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));
    pair.a.scq.expect_none(5);  // until it has been refused
    pair.b->receive(1, 0, 8);
    pair.a.scq.expect(1);
    CHECK(ms_since(start) >= 20.48);
}

// IBTA 9.5: no request overtakes one that is retried.
CASE(requests_after_one_that_finds_the_receiver_not_ready_wait) {
    Pair pair(rnr(7, 12));
    pair.a.memory.fill(1, 0, 64);
    pair.a.qp.post({send(1, pair.a.memory.sge(0, 8)), write(2, pair.a.memory.sge(0, 64), pair.at_b.remote(4096)),
                    send(3, pair.a.memory.sge(0, 8))});
    pair.a.scq.expect_none();
    pair.b->check_untouched(4096, 64);
    pair.b->receive(1, 0, 8);
    pair.a.scq.expect(1);
    pair.a.scq.expect(2);
    pair.b->check(1, 4096, 64);
    pair.a.scq.expect_none();
    pair.b->receive(3, 0, 8);
    pair.a.scq.expect(3);
}

CASE(write_with_immediate_needs_a_ready_receiver) {
    Pair pair(rnr(1, 1));
    pair.a.qp.post(write_imm(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
}

CASE(plain_write_and_read_need_no_receiver) {
    Pair pair(rnr(0, 1));
    pair.a.qp.post(
        {write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()), read(2, pair.a.memory.sge(8, 8), pair.at_b.remote())});
    pair.a.scq.expect(1);
    pair.a.scq.expect(2);
}

// --- no answer ------------------------------------------------------------------------------------------------------

CASE(port_of_the_peer_down_exceeds_retries) {
    Pair pair;
    pair.exchange(9);
    const Meanwhile down({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
    expect_retry_exceeded(pair);
    pair.b->expect_no_receive(1);
    CHECK_EQ(pair.b->query().qp_state, IBV_QPS_RTS);
}

CASE(own_port_down_exceeds_retries) {
    Pair pair;
    pair.exchange(9);
    const Meanwhile down({"port", pair.a.port_name(), "down"}, {"port", pair.a.port_name(), "up"});
    expect_retry_exceeded(pair);
}

CASE(wrong_lid_exceeds_retries) {
    Pair::Options options;
    options.from_a.dlid_offset = 0x700;  // no port has this LID
    Pair pair(options);
    if (pair.at_b.global) skip("no LIDs on Ethernet");
    expect_retry_exceeded(pair);
}

CASE(wrong_gid_exceeds_retries) {
    Node a, b(on_last_device());
    Address nobody = b.address();
    if (!nobody.global) skip("addressed by LID");
    nobody.gid.raw[15] = static_cast<std::uint8_t>(nobody.gid.raw[15] ^ 0x55);
    a.connect(nobody);
    a.qp.post(send(1, a.memory.sge(0, 8)));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

CASE(wrong_queue_pair_number_exceeds_retries) {
    Node a, b(on_last_device());
    Address wrong = b.address();
    wrong.qpn ^= 0x800000;
    b.connect(a.address(), reversed({}));
    a.connect(wrong);
    b.qp.receive(1, b.memory.sge(0, 8));
    a.qp.post(send(1, a.memory.sge(0, 8)));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    b.rcq.expect_none();
}

// The responder's queue pair is connected to another one: it drops packets from elsewhere (IBTA 9.6.1, header checks:
// the connection context names the peer).
CASE(queue_pair_connected_to_another_does_not_listen) {
    Node a, b(on_last_device());
    Address other = a.address();
    if (other.global) skip("checked by LID");
    other.lid = static_cast<std::uint16_t>(other.lid + 0x700);
    b.connect(other, reversed({}));
    a.connect(b.address());
    b.qp.receive(1, b.memory.sge(0, 8));
    a.qp.post(send(1, a.memory.sge(0, 8)));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

CASE(destroyed_queue_pair_of_the_peer_exceeds_retries) {
    Node a;
    {
        Node b(on_last_device());
        b.connect(a.address(), reversed({}));
        a.connect(b.address());
    }
    a.qp.post(send(1, a.memory.sge(0, 8)));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

// IBTA 9.7.5.2.8, 9.7.6.1.1: a sequence error is answered by a NAK, which counts as a retry. (A wrong initial number
// can also be in the range of duplicates, which are acknowledged; this one is ahead.)
CASE(wrong_packet_sequence_number_exceeds_retries) {
    Pair::Options options;
    options.from_a.my_psn = (kPsnOfA + 1000) & 0xffffff;
    Pair pair(options);
    pair.b->receive(1, 0, 8);
    expect_retry_exceeded(pair);
    pair.b->expect_no_receive(1);
}

// IBTA 9.7.6.1.3: the timer runs for at least 4.096 us * 2^timeout (and at most four times that).
CASE(retries_wait_for_the_timeout_each) {
    Pair::Options options;
    options.from_a.timeout = 13;  // 33.6 ms
    options.from_a.retry = 1;
    Pair pair(options);
    const Meanwhile down({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
    const auto start = Clock::now();
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK(ms_since(start) >= 2 * 33.554);
}

// IBTA 10.8.3: requests complete in order. The response of a read needs no further request, so it arrives.
CASE(read_on_its_way_completes_before_a_later_request_fails) {
    constexpr std::size_t kBytes = 1 << 20;
    Pair::Options options;
    options.a.bytes = options.b.bytes = kBytes;
    options.from_a.timeout = 10;  // 4.2 ms
    options.from_a.retry = 1;
    Pair pair(options);
    pair.b->fill(1, 0, kBytes);
    const Meanwhile slow({"port", pair.b->port_name(), "rate", "5MB/s"},
                         {"port", pair.b->port_name(), "rate", "unlimited"});
    pair.a.qp.post(read(1, pair.a.memory.sge(0, kBytes), pair.at_b.remote()));
    pair.a.scq.expect_none(5);  // until the request has arrived
    tool({"fault", pair.b->port_name(), "drop", "--count", "2"});
    pair.a.qp.post(write(2, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(1);
    pair.a.memory.check(1, 0, kBytes);
    pair.a.scq.expect(2, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_ERR);
}

CASE(port_that_comes_back_in_time_loses_and_doubles_nothing) {
    Pair::Options options;
    options.from_a.timeout = 15;  // 134 ms, 8 times
    options.from_a.retry = 7;
    Pair pair(options);
    pair.b->set_word(0, 0);
    for (std::uint64_t id = 0; id < 10; ++id) pair.b->receive(id, 64 + id * 64, 64);
    {
        const Meanwhile down({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
        for (std::uint64_t id = 0; id < 10; ++id) {
            pair.a.memory.fill(id, id * 64, 64);
            pair.a.qp.post(send(id, pair.a.memory.sge(id * 64, 64)));
        }
        pair.a.scq.expect_none();
    }
    for (std::uint64_t id = 0; id < 10; ++id) {
        pair.a.scq.expect(id);
        pair.b->expect_receive(id);
        pair.b->check(id, 64 + id * 64, 64);
    }
    pair.b->expect_no_receive();
}

CASE(switched_off_lid_exceeds_retries_and_comes_back) {
    {
        Pair pair;
        if (pair.at_b.global) skip("no LIDs on Ethernet");
        const std::string lid = std::to_string(pair.at_b.lid);
        const Meanwhile down({"lid", lid, "down"}, {"lid", lid, "up"});
        expect_retry_exceeded(pair);
    }
    Pair pair;
    pair.exchange(1);
}

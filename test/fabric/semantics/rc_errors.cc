// SPDX-License-Identifier: BSD-3-Clause
// How requests of a reliable connection fail (IBTA 9.9 error behaviour, 10.7.3.1, 10.10 error handling, 11.6.2
// completion status). Other statuses of 11.6.2: access to memory in memory.cc, timers in retries.cc, Local QP Operation
// in ud.cc. No test causes Bad Response (needs a broken peer), Local EEC, RDD, Memory Window and Abort statuses.
#include "end.h"

using namespace verbstest;

namespace {

ibv_sge wrong_key(const Memory& memory) {
    ibv_sge list = memory.sge(0, 8);
    list.lkey ^= 0x5a5a5a;
    return list;
}

void expect_invalid_request(Pair& pair, const Wr& wr) {
    pair.a.qp.post(wr);
    pair.a.scq.expect(wr.id, IBV_WC_REM_INV_REQ_ERR);
    pair.a.qp.wait_state(IBV_QPS_ERR);
    pair.b->wait_state(IBV_QPS_ERR);
}

}  // namespace

// IBTA 9.9.3.1, 11.6.2: Local Length Error at the receiver, Remote Invalid Request at the sender.
CASE(message_longer_than_the_receive_fails_on_both_sides) {
    Pair pair;
    pair.a.memory.fill(1);
    pair.b->receive(5, 64, 100);
    pair.b->receive(6, 1024, 100);
    expect_invalid_request(pair, send(1, pair.a.memory.sge(0, 101)));
    pair.b->expect_receive(5, IBV_WC_LOC_LEN_ERR);
    pair.b->expect_receive(6, IBV_WC_WR_FLUSH_ERR);
    pair.b->check_untouched(0, 64);
    pair.b->check_untouched(164, 2048);
}

// IBTA 11.6.2, Local Length Error: the sum of the lengths exceeds the port's limit. (If the limit is large, the scatter
// list exceeds the registered memory; then the device may choose which of both it checks first.)
CASE(message_longer_than_the_port_takes_is_not_sent) {
    const std::uint32_t longest = Context().port().max_msg_sz;
    const bool has_memory = longest <= 64u << 20;
    Pair::Options options;
    options.a.bytes = options.b.bytes = has_memory ? longest + 1 : 4096;
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
        Pair pair(options);
        pair.a.memory.fill(1);
        if (has_memory) {
            pair.a.qp.post(write(1, pair.a.memory.sge(0, longest), pair.at_b.remote()));
            pair.a.scq.expect(1);
            pair.b->check(1, 0, longest);
        }
        ibv_sge all = pair.a.memory.sge();
        all.length = longest + 1;
        Wr wr = write(2, all, pair.at_b.remote());
        wr.opcode = opcode;
        pair.a.qp.post(wr);
        const ibv_wc wc = pair.a.scq.wait();
        CHECK(wc.status == IBV_WC_LOC_LEN_ERR || (!has_memory && wc.status == IBV_WC_LOC_PROT_ERR));
        pair.b->expect_no_receive(1);
    }
}

// The vendor errors that ConnectX cards report with a status, which people search for; 0 if unknown.
CASE(vendor_errors_are_those_of_a_connectx) {
    {
        Pair pair;
        pair.b->receive(5, 64, 100);
        pair.a.qp.post(send(1, pair.a.memory.sge(0, 101)));
        CHECK_EQ(pair.a.scq.expect(1, IBV_WC_REM_INV_REQ_ERR).vendor_err, 0x8a);
        CHECK_EQ(pair.b->expect_receive(5, IBV_WC_LOC_LEN_ERR).vendor_err, 0x69);
    }
    {
        Pair pair;
        Remote wrong = pair.at_b.remote();
        wrong.rkey ^= 0x5a5a00;
        pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), wrong));
        CHECK_EQ(pair.a.scq.expect(1, IBV_WC_REM_ACCESS_ERR).vendor_err, 0x88);
    }
    {
        Pair::Options options;
        options.from_a.rnr_retry = 0;
        Pair pair(options);
        pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));
        CHECK_EQ(pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR).vendor_err, 0x87);
    }
    Pair pair;
    ibv_qp_attr failed{};
    failed.qp_state = IBV_QPS_ERR;
    CHECK_OK(pair.b->modify(failed, IBV_QP_STATE));
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.qp.post(write(2, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    CHECK_EQ(pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR).vendor_err, 0x81);
    CHECK_EQ(pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR).vendor_err, 0);
}

CASE(long_message_longer_than_the_receive_stays_within_it) {
    Pair pair;
    pair.a.memory.fill(1);
    pair.b->receive(5, 64, 10000);
    expect_invalid_request(pair, send(1, pair.a.memory.sge(0, 60000)));
    pair.b->expect_receive(5, IBV_WC_LOC_LEN_ERR);
    pair.b->check_untouched(0, 64);
    pair.b->check_untouched(10064, 50000);
}

CASE(send_to_a_receive_without_buffers_needs_length_0) {
    Pair pair;
    pair.b->receive(1, 0, 0);
    pair.b->receive(2, 0, 0);
    Wr empty = send(1, {});
    empty.list.clear();
    pair.a.qp.post(empty);
    pair.a.scq.expect(1);
    CHECK_EQ(pair.b->expect_receive(1).byte_len, 0);
    expect_invalid_request(pair, send(2, pair.a.memory.sge(0, 1)));
    pair.b->expect_receive(2, IBV_WC_LOC_LEN_ERR);
}

// IBTA 9.7.4.1.4 (responder: operation not supported by this queue pair): NAK 'invalid request', not 'access error',
// because the queue pair's access flags are checked before the key. Soft-RoCE and ConnectX agree.
CASE(write_without_right_at_the_queue_pair_is_an_invalid_request) {
    Pair::Options options;
    options.from_b.access = IBV_ACCESS_REMOTE_READ;
    Pair pair(options);
    expect_invalid_request(pair, write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.b->check_untouched(0, 64);
}

CASE(read_without_right_at_the_queue_pair_is_an_invalid_request) {
    Pair::Options options;
    options.from_b.access = IBV_ACCESS_REMOTE_WRITE;
    Pair pair(options);
    expect_invalid_request(pair, read(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.memory.check_untouched();
}

// IBTA 11.6.3.2, Invalid Request Local Work Queue Error: the responder finds the request invalid, but no receive of its
// own completes in error to report that. Some HCAs raise the access error event here.
CASE(invalid_request_without_a_receive_raises_an_event) {
    Pair::Options options;
    options.from_b.access = 0;
    Pair pair(options);
    expect_invalid_request(pair, write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.b->expect_event(IBV_EVENT_QP_REQ_ERR);
}

CASE(right_of_the_queue_pair_given_later_counts) {
    Pair::Options options;
    options.from_b.access = 0;
    Pair pair(options);
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    CHECK_OK(pair.b->modify(attr, IBV_QP_ACCESS_FLAGS));
    pair.a.memory.fill(1, 0, 64);
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.scq.expect(1);
    pair.b->check(1, 0, 64);
}

// IBTA 9.7.4.1.4 (too many RDMA READ or atomic requests): here the responder has a depth of 0.
CASE(read_from_a_responder_without_read_resources_is_an_invalid_request) {
    Pair::Options options;
    options.from_b.max_dest_rd_atomic = 0;
    Pair pair(options);
    expect_invalid_request(pair, read(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.memory.check_untouched();
}

// As above, with more requests at once than the responder's depth: its first answer is on a slow link when the next
// request comes.
CASE(more_reads_at_once_than_the_responder_allows_are_an_invalid_request) {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 1 << 20;
    options.from_a.max_rd_atomic = 4;
    options.from_b.max_dest_rd_atomic = 1;
    options.from_a.timeout = 14;
    Pair pair(options);
    if (pair.at_b.max_rd_atomic < 4) skip("the device has fewer than 4");
    const Meanwhile slow({"port", pair.b->port_name(), "rate", "50MB/s"},
                         {"port", pair.b->port_name(), "rate", "unlimited"});
    std::vector<Wr> reads;
    for (std::uint64_t id = 0; id < 4; ++id)
        reads.push_back(read(id, pair.a.memory.sge(0, 1 << 20), pair.at_b.remote()));
    pair.a.qp.post(reads);
    bool refused = false;
    for (std::uint64_t id = 0; id < 4; ++id) {
        const ibv_wc wc = pair.a.scq.wait();
        CHECK_EQ(wc.wr_id, id);
        if (refused) CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        else CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_INV_REQ_ERR);
        refused |= wc.status != IBV_WC_SUCCESS;
    }
    CHECK(refused);
}

// --- requests after an error ----------------------------------------------------------------------------------------

// IBTA 10.7.3.1, 10.8.3.1: all later requests complete as flushed, in order, signaled or not; earlier ones keep their
// status.
CASE(requests_after_an_error_are_flushed_in_order) {
    Pair pair;
    std::vector<Wr> list;
    for (std::uint64_t id = 0; id < 20; ++id) {
        Wr wr = write(id, pair.a.memory.sge(0, 8), pair.at_b.remote(id * 8));
        list.push_back(id == 2 || id > 10 ? wr.unsignaled() : wr);
    }
    list[5].list = {wrong_key(pair.a.memory)};
    for (std::uint64_t id = 100; id < 110; ++id) pair.a.qp.receive(id, pair.a.memory.sge(64, 8));
    pair.a.qp.post(list);
    for (std::uint64_t id : {0, 1, 3, 4}) pair.a.scq.expect(id);
    pair.a.scq.expect(5, IBV_WC_LOC_PROT_ERR);
    for (std::uint64_t id = 6; id < 20; ++id) {
        const ibv_wc wc = pair.a.scq.expect(id, IBV_WC_WR_FLUSH_ERR);
        CHECK_EQ(wc.qp_num, pair.a.qp.number());
    }
    for (std::uint64_t id = 100; id < 110; ++id) pair.a.rcq.expect(id, IBV_WC_WR_FLUSH_ERR);
    pair.a.scq.expect_none();
    pair.a.rcq.expect_none(1);
    pair.b->check_untouched(6 * 8, 14 * 8);  // no request after the error was executed
}

CASE(unsignaled_request_that_fails_completes) {
    Pair pair;
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()).unsignaled());
    pair.a.qp.post(write(2, wrong_key(pair.a.memory), pair.at_b.remote()).unsignaled());
    pair.a.scq.expect(2, IBV_WC_LOC_PROT_ERR);
}

CASE(requests_after_a_remote_error_have_no_effect) {
    Pair pair;
    Remote beyond = pair.at_b.remote(pair.at_b.bytes);
    pair.a.qp.post({write(1, pair.a.memory.sge(0, 8), beyond).unsignaled(),
                    write(2, pair.a.memory.sge(0, 8), pair.at_b.remote()).unsignaled(),
                    send(3, pair.a.memory.sge(0, 8))});
    pair.b->receive(7, 64, 8);
    pair.a.scq.expect(1, IBV_WC_REM_ACCESS_ERR);
    pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    pair.a.scq.expect(3, IBV_WC_WR_FLUSH_ERR);
    pair.b->expect_receive(7, IBV_WC_WR_FLUSH_ERR);
    pair.b->check_untouched(0, 128);
}

CASE(moving_to_error_flushes_what_is_under_way) {
    Pair pair;
    for (std::uint64_t id = 0; id < 10; ++id) pair.a.qp.post(send(id, pair.a.memory.sge(0, 8)));  // b has no receives
    CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
    for (std::uint64_t id = 0; id < 10; ++id) pair.a.scq.expect(id, IBV_WC_WR_FLUSH_ERR);
    pair.a.scq.expect_none();
}

// The peer is not informed: it finds out when its next request is not answered (IBTA 10.10.2.2).
CASE(peer_of_a_queue_pair_in_error_finds_out_by_retrying) {
    Pair pair;
    CHECK_OK(pair.b->to(IBV_QPS_ERR));
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_RTS);
    pair.a.qp.receive(2, pair.a.memory.sge(0, 8));
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.a.rcq.expect(2, IBV_WC_WR_FLUSH_ERR);
    pair.b->check_untouched(0, 8);
}

CASE(other_queue_pairs_do_not_notice_an_error) {
    Two two;
    const Qp other_a(two.a.pd, two.a.scq, two.a.rcq), other_b(two.b.pd, two.b.scq, two.b.rcq);
    Address at_a = two.a.address(), at_b = two.b.address();
    at_a.qpn = other_a.number();
    at_b.qpn = other_b.number();
    connect(two.b.context, other_b, at_a, reversed({}));
    connect(two.a.context, other_a, at_b);
    two.a.qp.post(write(1, wrong_key(two.a.memory), two.b.memory.remote()));
    two.a.scq.expect(1, IBV_WC_LOC_PROT_ERR);
    two.a.memory.fill(2, 0, 64);
    other_b.receive(2, two.b.memory.sge(0, 64));
    other_a.post(send(2, two.a.memory.sge(0, 64)));
    two.a.scq.expect(2);
    two.b.rcq.expect(2);
    two.b.memory.check(2, 0, 64);
}

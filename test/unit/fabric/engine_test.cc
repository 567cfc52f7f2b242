// SPDX-License-Identifier: BSD-3-Clause
//
// The transport between two QPs of this process: delivery, completions, failures.
#include <set>
#include <thread>

#include "fabric/engine/link.h"
#include "fabric/engine/responder.h"
#include "fabric/shm/trace.h"
#include "test/unit/fabric/subnet.h"

namespace coop::fabric {
namespace {

class FabricEngine : public ::testing::Test {
protected:
    FabricEngine() {
        clean_links(subnet);
        a.connect(b);
        b.connect(a);
        from.fill(1);
    }
    Link& first_link() { return subnet.links()[subnet.ports()[0].link_out]; }
    Link& last_link() { return subnet.links()[subnet.ports()[1].link_in]; }
    void set_fault(FaultKind kind, std::int64_t count, std::int64_t after = 0) {
        const std::uint32_t i = subnet.claim<Fault>(kFaults);
        Fault& fault = subnet.faults()[i];
        fault.kind = kind;
        fault.scope = FaultScope::all;
        fault.after = after;
        fault.count = count;
        fault.until_ns = 0;
        subnet.header().faults.fetch_add(1);
    }
    bool same(std::size_t bytes) const {
        return std::equal(from.bytes.begin(), from.bytes.begin() + static_cast<long>(bytes), to.bytes.begin());
    }

    const Segment& subnet = test_client().subnet();
    TestQp a{0}, b{1};
    TestMemory from{0, 4 << 20}, to{1, 4 << 20};
    Completion done{};
};

TEST_F(FabricEngine, send_arrives_and_completes_on_both_sides) {
    b.post_receive(7, to, 4096);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 1000), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 3u);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 7u);
    EXPECT_EQ(done.bytes, 1000u);
    EXPECT_EQ(done.source_qp, a.shared().number);
    EXPECT_TRUE(same(1000));
    EXPECT_EQ(to.bytes[1000], 0);
}

TEST_F(FabricEngine, long_write_comes_in_chunks_and_whole) {
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 4 << 20, &to), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(same(4 << 20));
    EXPECT_EQ(b.shared().expected_psn, 100u + 4096);
}

TEST_F(FabricEngine, read_brings_the_bytes_back) {
    ASSERT_EQ(b.post(IBV_WR_RDMA_READ, 1, to, 3 << 20, &from), 0);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.opcode, static_cast<std::uint32_t>(IBV_WC_RDMA_READ));
    EXPECT_TRUE(same(3 << 20));
}

// The read takes 100 ms, so that a thread that loses its processor in between does not matter.
TEST_F(FabricEngine, unfenced_send_passes_a_read_and_a_fenced_one_waits) {
    for (Link& link : subnet.links()) link.rate = 10'000'000;
    for (const bool fenced : {false, true}) {
        to.bytes.assign(to.bytes.size(), 0);
        a.post_receive(9, from, 64);
        ASSERT_EQ(b.post(IBV_WR_RDMA_READ, 1, to, 1 << 20, &from), 0);
        ASSERT_EQ(b.post(IBV_WR_SEND, 2, to, 8, nullptr, IBV_SEND_SIGNALED | (fenced ? IBV_SEND_FENCE : 0)), 0);
        ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
        EXPECT_EQ(b.cq.is_empty(), !fenced);
        ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
        EXPECT_EQ(done.wr_id, 1u);
        ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
        EXPECT_EQ(done.wr_id, 2u);
    }
}

TEST_F(FabricEngine, rate_of_the_slowest_link_is_kept) {
    first_link().rate = 1'000'000'000;
    last_link().rate = 200'000'000;
    const std::int64_t start = now_ns();
    for (int i = 0; i < 4; ++i) ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 4 << 20, &to), 0);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_GE(now_ns() - start, 16ll * (1 << 20) * 5 - 1000);  // 200 MB/s take 5 ns per byte
}

TEST_F(FabricEngine, short_message_waits_for_a_packet_of_a_long_one_and_takes_its_time_from_the_next) {
    Link link{};
    link.rate = 100'000'000;
    const Slot chunk = take_link(link, 200'000, 1000);
    EXPECT_EQ(chunk.start_ns, 1000);
    EXPECT_EQ(chunk.end_ns, 2'001'000);
    const Slot brief = take_link(link, 100, 5000);
    EXPECT_EQ(brief.start_ns, 5000 + 40'960);  // a packet of 4096 bytes
    EXPECT_EQ(brief.end_ns, brief.start_ns + 1000);
    const Slot longer = take_link(link, 1000, 5000);
    EXPECT_EQ(longer.start_ns, 2'001'000 + 1000);
    // On a link that is free it waits for nothing.
    EXPECT_EQ(take_link(link, 100, longer.end_ns + 7).start_ns, longer.end_ns + 7);
    EXPECT_EQ(take_link(link, 100, longer.end_ns + 500).start_ns, longer.end_ns + 1007);
}

TEST_F(FabricEngine, lone_message_has_the_latency_of_its_links) {
    for (Link& link : subnet.links()) link.latency_ns = 1'000'000;
    b.post_receive(7, to, 64);
    const std::int64_t start = now_ns();
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 8), 0);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_GE(now_ns() - start, 2'000'000);
    EXPECT_TRUE(a.cq.is_empty() || now_ns() - start >= 4'000'000);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_GE(now_ns() - start, 4'000'000);
}

TEST_F(FabricEngine, receiver_that_is_not_ready_is_asked_again) {
    a.connect(b, 1, 2, 7);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 8), 0);
    EXPECT_TRUE(a.cq.is_empty());
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_GE(a.shared().rnr_retries, 1u);
}

TEST_F(FabricEngine, receiver_that_is_never_ready_ends_in_an_error_and_a_flush) {
    for (Link& link : subnet.links()) link.latency_ns = 1'000'000;
    a.post_receive(5, from, 8);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 8), 0);
    ASSERT_EQ(a.post(IBV_WR_SEND, 4, from, 8), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(done.wr_id, 3u);
    // The two queues are flushed in any order, for example when the second send is posted late.
    std::set<std::uint64_t> flushed;
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(a.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
        flushed.insert(done.wr_id);
    }
    EXPECT_EQ(flushed, (std::set<std::uint64_t>{4, 5}));
    EXPECT_EQ(a.shared().state, static_cast<std::uint32_t>(IBV_QPS_ERR));
}

TEST_F(FabricEngine, cut_link_ends_in_retries_exceeded) {
    last_link().down = 1;
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 3, from, 8, &to), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(to.bytes[0], 0);
}

TEST_F(FabricEngine, link_that_comes_back_in_time_loses_nothing) {
    a.connect(b, 12, 7);
    last_link().down = 1;
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    EXPECT_TRUE(a.cq.is_empty());
    last_link().down = 0;
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(same(64));
}

TEST_F(FabricEngine, lost_acknowledgement_does_not_double_a_message) {
    set_fault(FaultKind::lose_ack, 1);
    b.post_receive(7, to, 64);
    b.post_receive(8, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 7u);
    EXPECT_TRUE(b.cq.is_empty());
    EXPECT_EQ(b.shared().duplicates, 1u);
}

TEST_F(FabricEngine, repeated_atomic_is_executed_once) {
    set_fault(FaultKind::lose_ack, 1);
    TestMemory old(0, 8);
    ASSERT_EQ(a.shared().state, static_cast<std::uint32_t>(IBV_QPS_RTS));
    a.qp->begin();
    SendWork* work = a.qp->slot();
    *work = {};
    work->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    work->flags = IBV_SEND_SIGNALED;
    work->remote_address = to.address();
    work->rkey = to.rkey();
    work->compare_add = 5;
    work->sges = 1;
    work->sge[0] = {old.address(), 8, old.lkey()};
    ASSERT_EQ(a.qp->add(*work), 0);
    a.qp->end();
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(to.bytes[0], 5);
    EXPECT_EQ(old.bytes[0], 0);
}

TEST_F(FabricEngine, acknowledgement_lost_for_good_is_an_error_although_executed) {
    set_fault(FaultKind::lose_ack, 100);
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(same(64));
    for (Fault& fault : subnet.faults()) fault.count = 0;
    clear_spent_faults(subnet);
}

TEST_F(FabricEngine, mute_queue_pair_completes_nothing_and_sleeps_until_it_is_in_the_error_state) {
    set_fault(FaultKind::mute_qp, 1);
    b.post_receive(7, to, 64);
    a.post_receive(8, from, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    ASSERT_EQ(a.post(IBV_WR_SEND, 4, from, 64), 0);
    EXPECT_EQ(a.cq.wait(done, 0.05), -1);
    EXPECT_EQ(a.shared().mute, Mute::until_error);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    const std::uint64_t wakeups = test_client().self().engine_wakeups;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LT(test_client().self().engine_wakeups - wakeups, 100u);
    a.to_state(IBV_QPS_ERR);
    EXPECT_EQ(a.shared().mute, Mute::no);
    std::set<std::uint64_t> flushed;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(a.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
        flushed.insert(done.wr_id);
    }
    EXPECT_EQ(flushed, (std::set<std::uint64_t>{3, 4, 8}));
}

TEST_F(FabricEngine, queue_pair_that_is_mute_for_good_is_not_even_flushed) {
    set_fault(FaultKind::mute_qp_for_good, 1);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 3, from, 64, &to), 0);
    a.to_state(IBV_QPS_ERR);
    EXPECT_EQ(a.cq.wait(done, 0.05), -1);
    EXPECT_EQ(a.shared().state, static_cast<std::uint32_t>(IBV_QPS_ERR));
    a.to_state(IBV_QPS_RESET);
    EXPECT_EQ(a.shared().mute, Mute::for_good);
    EXPECT_TRUE(same(64));
}

TEST_F(FabricEngine, wrong_key_is_refused_and_fails_both_sides) {
    TestMemory other(0, 64);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 3, from, 8, &other), 0);  // a region of another HCA
    EXPECT_EQ(a.cq.wait(done), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(b.shared().state, static_cast<std::uint32_t>(IBV_QPS_ERR));
}

TEST_F(FabricEngine, message_longer_than_the_receive_is_an_error_on_both_sides) {
    b.post_receive(7, to, 32);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(done.wr_id, 7u);
    EXPECT_EQ(to.bytes[0], 0);
}

TEST_F(FabricEngine, path_migrates_when_the_primary_lid_is_lost) {
    const auto arm = [&](TestQp& q, std::uint32_t peer_port) {
        ibv_qp_attr attribute{};
        attribute.alt_port_num = 1;
        attribute.alt_timeout = 1;
        attribute.alt_ah_attr.port_num = 1;
        attribute.alt_ah_attr.src_path_bits = 1;
        attribute.alt_ah_attr.dlid = static_cast<std::uint16_t>(subnet.ports()[peer_port].lid + 1);
        attribute.path_mig_state = IBV_MIG_REARM;
        q.qp->modify(attribute, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
    };
    arm(a, 1);
    arm(b, 0);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 8, &to), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(a.shared().migration, static_cast<std::uint32_t>(IBV_MIG_ARMED));
    EXPECT_EQ(b.shared().migration, static_cast<std::uint32_t>(IBV_MIG_ARMED));
    subnet.lids()[subnet.ports()[1].lid].down = 1;
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 2, from, 4096, &to), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(a.shared().migration, static_cast<std::uint32_t>(IBV_MIG_MIGRATED));
    EXPECT_EQ(b.shared().migration, static_cast<std::uint32_t>(IBV_MIG_MIGRATED));
    EXPECT_EQ(b.shared().primary.dlid, subnet.ports()[0].lid + 1);
    EXPECT_TRUE(same(4096));
}

// The lines of the trace from sequence number `from` on that contain `with`, each without what precedes `with`.
std::vector<std::string> traced(const Segment& subnet, std::uint64_t from, const std::string& with) {
    std::vector<std::string> lines;
    read_traces(subnet, from, [&](const Trace& entry) {
        const std::string line = describe(subnet, entry);
        if (line.find(with) != std::string::npos) lines.push_back(line.substr(line.find(with)));
    });
    return lines;
}

std::string qp_text(const TestQp& qp) {
    char text[32];
    std::snprintf(text, sizeof text, "QP 0x%x", qp.shared().number);
    return text;
}

TEST_F(FabricEngine, messages_are_traced_with_begin_arrival_and_end_if_asked_for) {
    const std::uint64_t from_here = subnet.header().traced;
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 64, &to), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(traced(subnet, from_here, "message").empty());

    subnet.header().trace_messages = 1;
    TestQp c{0}, d{1};
    subnet.header().trace_messages = 0;
    c.connect(d, 1, 0);
    d.connect(c);
    const std::string way = qp_text(c) + " -> " + qp_text(d);
    ASSERT_EQ(c.post(IBV_WR_RDMA_WRITE, 1, from, 4096, &to), 0);
    ASSERT_EQ(c.cq.wait(done), IBV_WC_SUCCESS);
    ASSERT_EQ(c.post(IBV_WR_RDMA_READ, 4, from, 64, &to), 0);
    ASSERT_EQ(c.cq.wait(done), IBV_WC_SUCCESS);
    d.to_state(IBV_QPS_ERR);
    ASSERT_EQ(c.post(IBV_WR_SEND, 2, from, 8), 0);
    ASSERT_EQ(c.post(IBV_WR_RDMA_READ, 3, from, 8, &to), 0);
    ASSERT_EQ(c.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(done.vendor_error, 0x81u);
    ASSERT_EQ(c.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
    const std::vector<std::string> lines = traced(subnet, from_here, "message");
    const auto has = [&](const std::string& line) { return std::count(lines.begin(), lines.end(), line) == 1; };
    EXPECT_TRUE(has("message begun " + way + " RDMA_WRITE 4096 bytes"));
    EXPECT_TRUE(has("message ended " + way + " RDMA_WRITE 4096 bytes SUCCESS"));
    EXPECT_TRUE(has("message arrived " + way + " RDMA_WRITE 4096 bytes"));
    EXPECT_TRUE(has("message begun " + way + " RDMA_READ 64 bytes"));
    EXPECT_TRUE(has("message arrived " + way + " RDMA_READ 64 bytes"));
    EXPECT_TRUE(has("message ended " + way + " RDMA_READ 64 bytes SUCCESS"));
    EXPECT_TRUE(has("message begun " + way + " SEND 8 bytes"));
    EXPECT_FALSE(has("message arrived " + way + " SEND 8 bytes"));
    EXPECT_TRUE(has("message ended " + way + " SEND 8 bytes RETRY_EXC_ERR"));
    EXPECT_TRUE(has("message ended " + way + " RDMA_READ 8 bytes WR_FLUSH_ERR"));
}

TEST_F(FabricEngine, trace_names_faults_errors_and_events) {
    const std::uint64_t from_here = subnet.header().traced;
    trace(subnet, TraceKind::fault_set, static_cast<std::uint32_t>(FaultKind::lose_ack), 1, 0,
          static_cast<std::uint64_t>(FaultScope::port));
    trace(subnet, TraceKind::fault_hit, static_cast<std::uint32_t>(FaultKind::drop), 0, 0x10,
          static_cast<std::uint64_t>(FaultScope::all));
    trace(subnet, TraceKind::access_error, 0x10, 0x11, 0xab, 0x7f00);
    trace(subnet, TraceKind::cq_overflow, 5);
    trace(subnet, TraceKind::event, 0, IBV_EVENT_PATH_MIG, a.index);
    trace(subnet, TraceKind::event, 1, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(
        traced(subnet, from_here, "fault"),
        (std::vector<std::string>{"fault set lose-ack: " + port_name(subnet, 1), "fault drop: all, sent by QP 0x10"}));
    EXPECT_EQ(traced(subnet, from_here, "remote access refused"),
              std::vector<std::string>{"remote access refused QP 0x10 -> QP 0x11 rkey 0xab at 0x7f00"});
    EXPECT_EQ(traced(subnet, from_here, "CQ overflow"), std::vector<std::string>{"CQ overflow 5"});
    EXPECT_EQ(traced(subnet, from_here, "event"),
              (std::vector<std::string>{"event " + hca_name(subnet, 0) + " PATH_MIG " + qp_text(a),
                                        "event " + hca_name(subnet, 1) + " PORT_ERR port 1"}));
}

// An entry has a due time and a latest time. The engine's thread sleeps until the earliest of the latest times; threads
// that are awake handle entries from their due time on.
TEST(FabricAgenda, engine_may_sleep_until_the_first_entry_that_cannot_wait) {
    Agenda agenda;
    EXPECT_TRUE(agenda.plan(1, 100, 400));
    EXPECT_EQ(agenda.earliest_ns(), 100);
    EXPECT_EQ(agenda.latest_ns(), 400);
    EXPECT_TRUE(agenda.plan(2, 150, 150));
    EXPECT_EQ(agenda.latest_ns(), 150);
    EXPECT_FALSE(agenda.plan(3, 200, 300));
    EXPECT_EQ(agenda.take(99), kNone);
    EXPECT_EQ(agenda.take(160), 1u);
    EXPECT_EQ(agenda.take(160), 2u);
    EXPECT_EQ(agenda.take(160), kNone);
    EXPECT_EQ(agenda.latest_ns(), 300);
    EXPECT_EQ(agenda.take(200), 3u);
    EXPECT_EQ(agenda.latest_ns(), Agenda::kNever);
}

TEST_F(FabricEngine, full_send_queue_is_refused) {
    for (Link& link : subnet.links()) link.latency_ns = 100'000'000;
    for (int i = 0; i < 16; ++i) ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 8, &to), 0);
    EXPECT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 8, &to), ENOMEM);
}

TEST_F(FabricEngine, completion_queue_that_overflows_takes_nothing_more) {
    TestCq small(2);
    Completion completion{};
    Notices notices;
    EXPECT_TRUE(put_completion(subnet, small.index, completion, notices));
    EXPECT_TRUE(put_completion(subnet, small.index, completion, notices));
    EXPECT_FALSE(put_completion(subnet, small.index, completion, notices));
    EXPECT_EQ(subnet.completion_queues()[small.index].overflowed, 1u);
}

TEST_F(FabricEngine, lossy_link_delivers_everything_once_and_in_order) {
    a.connect(b, 8, 7, 7);
    first_link().loss = 0x20000000;  // one packet in eight
    for (std::uint64_t i = 0; i < 16; ++i) b.post_receive(i, to, 64);
    for (std::uint64_t i = 0; i < 12; ++i) ASSERT_EQ(a.post(IBV_WR_SEND, 100 + i, from, 64), 0);
    for (std::uint64_t i = 0; i < 12; ++i) {
        ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
        EXPECT_EQ(done.wr_id, 100 + i);
        ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
        EXPECT_EQ(done.wr_id, i);
    }
    EXPECT_TRUE(b.cq.is_empty());
}

}  // namespace
}  // namespace coop::fabric

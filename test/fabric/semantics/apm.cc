// SPDX-License-Identifier: BSD-3-Clause
// Automatic path migration (IBTA 17.2.8; its state machine MIGRATED, REARM, ARMED in 17.2.8.1; events in 11.6.3.1). The
// alternate path goes from port 2 to port 2 where there is one, else between the second LIDs of the ports (LMC).
#include "end.h"

using namespace verbstest;

namespace {

constexpr int kAlternate = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

void need_apm() {
    const Context context;
    if (!has_apm(context)) skip("no path migration");
    if (context.device().phys_port_cnt < 2 && context.port().lmc == 0) skip("no second path");
}

struct Migrating {
    Pair pair;
    bool by_port = pair.at_a.lid_of_port_2 != 0 && pair.at_b.lid_of_port_2 != 0;
    std::vector<std::vector<std::string>> heal;

    static Pair::Options options() {
        need_apm();
        Pair::Options options;
        options.a.bytes = options.b.bytes = 1 << 20;
        options.from_a.timeout = options.from_b.timeout = 8;
        return options;
    }
    Migrating() : pair(options()) {}
    ~Migrating() {
        for (const auto& words : heal) tool(words);
    }

    // These set the alternate path: alternate_to() to the second path between the two sides, original_to() to the
    // first.
    ibv_qp_attr alternate_to(const Address& peer) const {
        ibv_qp_attr attr{};
        attr.alt_ah_attr = way_to(peer, {}, 1);
        attr.alt_timeout = 8;
        attr.alt_port_num = 1;
        if (by_port) {
            attr.alt_port_num = attr.alt_ah_attr.port_num = 2;
            attr.alt_ah_attr.dlid = peer.lid_of_port_2;
        } else {
            attr.alt_ah_attr.src_path_bits = 1;
            attr.alt_ah_attr.dlid = static_cast<std::uint16_t>(peer.lid + 1);
        }
        attr.path_mig_state = IBV_MIG_REARM;
        return attr;
    }
    ibv_qp_attr original_to(const Address& peer) const {
        ibv_qp_attr attr{};
        attr.alt_ah_attr = way_to(peer, {}, 1);
        attr.alt_timeout = 8;
        attr.alt_port_num = 1;
        attr.path_mig_state = IBV_MIG_REARM;
        return attr;
    }
    void rearm_a() { CHECK_OK(pair.a.qp.modify(alternate_to(pair.at_b), kAlternate)); }
    void rearm_b() { CHECK_OK(pair.b->modify(alternate_to(pair.at_a), kAlternate)); }
    bool armed() { return state_a() == IBV_MIG_ARMED && state_b() == IBV_MIG_ARMED; }
    ibv_mig_state state_a() { return pair.a.qp.query().path_mig_state; }
    ibv_mig_state state_b() { return pair.b->query().path_mig_state; }
    void exchange() {
        pair.exchange(++count_);
        pair.b->fill(count_, 8192, 64);
        pair.a.qp.receive(count_, pair.a.memory.sge(8192, 64));
        pair.b->post_send(count_, 8192, 64);
        pair.a.rcq.expect(count_);
        pair.b->expect_send(count_);
        pair.a.memory.check(count_, 8192, 64);
    }
    // The request to arm travels in packets (the MigReq bit), so arming needs traffic.
    void wait_armed() {
        CHECK(wait_until([&] {
            exchange();
            return armed();
        }));
    }
    void arm() {
        rearm_a();
        rearm_b();
        wait_armed();
    }
    // Takes down the first path of b; the second one stays up.
    void cut_primary() {
        if (by_port) change({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
        else cut_lid(pair.at_b.lid);
    }
    void cut_alternate() {
        std::string port = pair.b->port_name();
        port.back() = '2';
        if (by_port) change({"port", port, "down"}, {"port", port, "up"});
        else cut_lid(pair.at_b.lid + 1);
    }
    void mend() {
        for (const auto& words : heal) tool(words);
        heal.clear();
    }
    bool on_alternate(const ibv_qp_attr& attr, const Address& peer) const {
        return attr.ah_attr.dlid == alternate_to(peer).alt_ah_attr.dlid;
    }

private:
    void cut_lid(int lid) { change({"lid", std::to_string(lid), "down"}, {"lid", std::to_string(lid), "up"}); }
    void change(const std::vector<std::string>& now, const std::vector<std::string>& after) {
        tool(now);
        heal.push_back(after);
    }
    std::uint64_t count_ = 1000;
};

}  // namespace

CASE(device_without_apm_refuses_an_alternate_path) {
    const Context context;
    if (has_apm(context)) skip("the device has path migration");
    Pair pair;
    ibv_qp_attr attr{};
    attr.alt_ah_attr = way_to(pair.at_b, {}, 1);
    attr.alt_port_num = 1;
    attr.path_mig_state = IBV_MIG_REARM;
    const int result = pair.a.qp.modify(attr, kAlternate);
    CHECK(result == EINVAL || result == EOPNOTSUPP || result == ENOSYS);
    CHECK_EQ(pair.a.qp.query().path_mig_state, IBV_MIG_MIGRATED);
    pair.exchange(1);
}

CASE(armed_state_takes_both_sides) {
    Migrating m;
    CHECK_EQ(m.state_a(), IBV_MIG_MIGRATED);
    m.rearm_a();
    CHECK_EQ(m.state_a(), IBV_MIG_REARM);
    for (int i = 0; i < 5; ++i) m.exchange();
    CHECK_EQ(m.state_a(), IBV_MIG_REARM);
    CHECK_EQ(m.state_b(), IBV_MIG_MIGRATED);
    m.rearm_b();
    m.wait_armed();
    CHECK_EQ(m.pair.a.qp.query().alt_port_num, m.by_port ? 2 : 1);
}

// Only the HCA makes that transition (IBTA 17.2.8.1).
CASE(software_cannot_set_armed) {
    Migrating m;
    ibv_qp_attr attr = m.alternate_to(m.pair.at_b);
    attr.path_mig_state = IBV_MIG_ARMED;
    CHECK_ERROR(m.pair.a.qp.modify(attr, kAlternate), EINVAL);
}

CASE(alternate_path_on_an_impossible_port_is_refused) {
    Migrating m;
    ibv_qp_attr attr = m.alternate_to(m.pair.at_b);
    attr.alt_port_num = static_cast<std::uint8_t>(m.pair.a.context.device().phys_port_cnt + 1);
    CHECK_ERROR(m.pair.a.qp.modify(attr, kAlternate), EINVAL);
}

CASE(lost_path_migrates_both_sides) {
    Migrating m;
    m.arm();
    m.pair.a.context.forget_events();
    m.cut_primary();
    m.exchange();
    m.pair.a.context.wait_event(IBV_EVENT_PATH_MIG);
    m.pair.b->expect_event(IBV_EVENT_PATH_MIG);
    CHECK_EQ(m.state_a(), IBV_MIG_MIGRATED);
    CHECK_EQ(m.state_b(), IBV_MIG_MIGRATED);
    CHECK(m.on_alternate(m.pair.a.qp.query(), m.pair.at_b));
    CHECK(m.on_alternate(m.pair.b->query(), m.pair.at_a));
    CHECK_EQ(m.pair.a.qp.query().qp_state, IBV_QPS_RTS);
    for (int i = 0; i < 5; ++i) m.exchange();
    CHECK(!m.pair.a.context.has_event(IBV_EVENT_PATH_MIG, 1));  // only once
}

// IBTA 17.2.8: each of the two paths has its own P_Key index.
CASE(alternate_path_has_a_key_of_its_own) {
    if (Context().port().pkey_tbl_len < 2) skip("one P_Key");
    for (const bool of_b : {true, false}) {
        Migrating m;
        ibv_qp_attr to_b = m.alternate_to(m.pair.at_b), to_a = m.alternate_to(m.pair.at_a);
        to_b.alt_pkey_index = 1;
        to_a.alt_pkey_index = of_b ? 1 : 2;
        CHECK_OK(m.pair.a.qp.modify(to_b, kAlternate));
        CHECK_OK(m.pair.b->modify(to_a, kAlternate));
        CHECK_EQ(m.pair.a.qp.query().alt_pkey_index, 1);
        m.wait_armed();
        m.cut_primary();
        if (of_b) {
            m.exchange();
            CHECK_EQ(m.pair.a.qp.query().pkey_index, 1);
            CHECK_EQ(m.pair.b->query().pkey_index, 1);
        } else {
            m.pair.a.qp.post(write(1, m.pair.a.memory.sge(0, 8), m.pair.at_b.remote()));
            m.pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
        }
    }
}

CASE(migration_resets_the_retry_count) {
    Migrating m;
    m.arm();
    m.cut_primary();
    m.pair.a.qp.post(write(1, m.pair.a.memory.sge(0, 8), m.pair.at_b.remote()));
    m.pair.a.scq.expect(1);
}

CASE(migration_on_request_moves_the_peer_too) {
    Migrating m;
    m.arm();
    ibv_qp_attr attr{};
    attr.path_mig_state = IBV_MIG_MIGRATED;
    CHECK_OK(m.pair.a.qp.modify(attr, IBV_QP_PATH_MIG_STATE));
    CHECK_EQ(m.state_a(), IBV_MIG_MIGRATED);
    CHECK(m.on_alternate(m.pair.a.qp.query(), m.pair.at_b));
    m.exchange();
    m.pair.b->expect_event(IBV_EVENT_PATH_MIG);
    CHECK_EQ(m.state_b(), IBV_MIG_MIGRATED);
    m.cut_primary();  // not used any more
    m.exchange();
}

CASE(unarmed_connection_does_not_migrate) {
    Migrating m;
    m.rearm_a();  // b is not rearmed
    m.exchange();
    m.cut_primary();
    m.pair.a.qp.post(write(1, m.pair.a.memory.sge(0, 8), m.pair.at_b.remote()));
    m.pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK(!m.pair.a.context.has_event(IBV_EVENT_PATH_MIG, 1));
}

CASE(migrated_connection_is_armed_again_with_the_way_back) {
    Migrating m;
    for (int round = 0; round < 3; ++round) {
        const bool there = round % 2 == 0;
        if (there) {
            m.arm();
            m.cut_primary();
        } else {
            CHECK_OK(m.pair.a.qp.modify(m.original_to(m.pair.at_b), kAlternate));
            CHECK_OK(m.pair.b->modify(m.original_to(m.pair.at_a), kAlternate));
            m.wait_armed();
            m.cut_alternate();
        }
        m.exchange();
        CHECK_EQ(m.on_alternate(m.pair.a.qp.query(), m.pair.at_b), there);
        CHECK_EQ(m.on_alternate(m.pair.b->query(), m.pair.at_a), there);
        m.mend();
    }
}

// Cuts the path in the middle of a stream of sends and additions: each must be executed once, in order.
CASE(migration_in_a_stream_loses_and_doubles_nothing) {
    Migrating m;
    m.arm();
    constexpr std::uint64_t kCount = 240, kWindow = 32;
    const bool atomics = has_atomics(m.pair.a.context);
    m.pair.b->set_word(0, 0);
    const auto place = [](std::uint64_t id) { return static_cast<std::size_t>(65536 + id % kWindow * 1024); };
    std::uint64_t posted = 0, received = 0;
    const auto post_receives = [&] {
        for (; posted < kCount && posted < received + kWindow; ++posted) m.pair.b->receive(posted, place(posted), 1024);
    };
    post_receives();
    std::uint64_t sent = 0, done = 0;
    while (received < kCount) {
        for (; sent < kCount && sent < received + kWindow / 2; ++sent) {
            m.pair.a.memory.fill(sent, place(sent), 1000);
            m.pair.a.qp.post(send(2 * sent, m.pair.a.memory.sge(place(sent), 1000)));
            if (atomics) m.pair.a.qp.post(fetch_add(2 * sent + 1, m.pair.a.memory.sge(8, 8), m.pair.at_b.remote(), 1));
            if (sent == kCount / 2) m.cut_primary();
        }
        m.pair.b->expect_receive(received);
        m.pair.b->check(received, place(received), 1000);
        ++received;
        post_receives();
        m.pair.a.scq.expect(2 * done);
        if (atomics) m.pair.a.scq.expect(2 * done + 1);
        ++done;
    }
    if (atomics) CHECK_EQ(m.pair.b->word(0), kCount);
    m.pair.a.context.wait_event(IBV_EVENT_PATH_MIG);
    m.pair.b->expect_no_receive();
}

CASE(dead_alternate_path_exceeds_retries) {
    Migrating m;
    m.arm();
    m.cut_primary();
    m.cut_alternate();
    m.pair.a.qp.post({write(1, m.pair.a.memory.sge(0, 8), m.pair.at_b.remote()), send(2, m.pair.a.memory.sge(0, 8))});
    m.pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    m.pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(m.pair.a.qp.state(), IBV_QPS_ERR);
}

// The request arrives by a path that is not the responder's alternate one: the responder does not accept it and reports
// an error (IBTA 17.2.8.1, 11.6.3.2 'path migration request error').
CASE(migration_to_a_path_the_peer_does_not_know_is_an_error) {
    Migrating m;
    m.rearm_a();
    ibv_qp_attr attr = m.alternate_to(m.pair.at_a);
    attr.alt_ah_attr.dlid = static_cast<std::uint16_t>(attr.alt_ah_attr.dlid + 0x700);
    CHECK_OK(m.pair.b->modify(attr, kAlternate));
    m.wait_armed();
    attr.path_mig_state = IBV_MIG_MIGRATED;
    CHECK_OK(m.pair.a.qp.modify(attr, IBV_QP_PATH_MIG_STATE));
    m.pair.a.qp.post(write(1, m.pair.a.memory.sge(0, 8), m.pair.at_b.remote(512)));
    m.pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    m.pair.b->expect_event(IBV_EVENT_PATH_MIG_ERR);
    m.pair.b->check_untouched(512, 8);
}

CASE(alternate_path_may_be_given_on_the_way_to_rts) {
    need_apm();
    Migrating m;
    // Reconnects both sides, with the alternate path among the attributes of RTR -> RTS.
    CHECK_OK(m.pair.a.qp.to(IBV_QPS_RESET));
    CHECK_OK(m.pair.b->to(IBV_QPS_RESET));
    CHECK_OK(m.pair.a.to_init());
    CHECK_OK(m.pair.a.to_rtr(m.pair.at_b));
    ibv_qp_attr attr = m.alternate_to(m.pair.at_b);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = kPsnOfA;
    attr.timeout = 8;
    attr.retry_cnt = 2;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    CHECK_OK(m.pair.a.qp.modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | kAlternate));
    m.pair.b->connect(m.pair.at_a, reversed({}));
    m.rearm_b();
    m.wait_armed();
}

// SPDX-License-Identifier: BSD-3-Clause
// Messages that arrive after their sender has given up on them. A network may hold a packet for up to the packet lifetime
// of the path, longer than retries with a short timeout take (IBTA 9.7.6.1.3 has the timer start from that lifetime; a
// program chooses its own). The responder cannot tell such a packet from one in time: it executes what it expects (IBTA
// 9.7.1). A queue pair in the error state, reset, or destroyed drops it (IBTA 10.3.1).
#include <arpa/inet.h>

#include <chrono>
#include <memory>
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

constexpr const char* kLate = "300ms";
constexpr int kSurelyMs = 500;  // later than a late message, if it was to come

std::string name_of(std::uint32_t qpn) {
    char text[32];
    snprintf(text, sizeof text, "qp:0x%x", qpn);
    return text;
}

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Node a writes 8 bytes with the value 1 to the other side, and gives up on them.
void give_up_on_a_write(const Node& a, const Remote& to, const char* late = kLate) {
    tool({"fault", name_of(a.qp.number()), "late", late});
    const_cast<Memory&>(a.memory).set_word(0, 1);
    a.qp.post(write(1, a.memory.sge(0, 8), to));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace

CASE(late_write_lands_when_its_sender_has_given_up_and_uses_the_memory_for_other_data) {
    Pair pair;
    pair.b->set_word(0, 0);
    give_up_on_a_write(pair.a, pair.at_b.remote());
    CHECK_EQ(pair.b->word(0), 0);
    pair.a.memory.set_word(0, 2);
    CHECK(wait_until([&] { return pair.b->word(0) != 0; }));
    CHECK_EQ(pair.b->word(0), 1);
}

CASE(late_send_completes_a_receive) {
    Pair pair;
    pair.a.memory.fill(1, 0, 3000);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, (id - 1) * 4096, 3000);
    tool({"fault", name_of(pair.at_a.qpn), "late", kLate});
    pair.a.qp.post({send(1, pair.a.memory.sge(0, 3000)), send(2, pair.a.memory.sge(0, 8))});
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    pair.a.memory.wipe();
    CHECK_EQ(pair.b->expect_receive(1).byte_len, 3000);
    pair.b->check(1, 0, 3000);
    pair.b->expect_no_receive();  // the second came before the first and was dropped
}

CASE(late_atomic_changes_the_word_without_an_answer) {
    Pair pair;
    if (!has_atomics(pair.a.context)) skip("no atomics");
    pair.b->set_word(0, 7);
    pair.a.memory.set_word(0, 99);
    tool({"fault", name_of(pair.at_a.qpn), "late", kLate});
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK(wait_until([&] { return pair.b->word(0) == 8; }));
    CHECK_EQ(pair.a.memory.word(0), 99);
}

CASE(late_write_of_a_destroyed_queue_pair_lands) {
    Two two;
    two.b.memory.set_word(0, 0);
    give_up_on_a_write(two.a, two.b.memory.remote());
    CHECK_OK(ibv_destroy_qp(two.a.qp.release()));
    CHECK(wait_until([&] { return two.b.memory.word(0) == 1; }));
}

CASE(flushed_message_may_arrive_late) {
    Pair::Options options;
    options.from_a.timeout = 20;  // four seconds
    Pair pair(options);
    pair.b->set_word(0, 0);
    tool({"fault", name_of(pair.at_a.qpn), "late", kLate});
    pair.a.memory.set_word(0, 1);
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect_none();
    CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
    pair.a.scq.expect(1, IBV_WC_WR_FLUSH_ERR);
    CHECK(wait_until([&] { return pair.b->word(0) == 1; }));
}

// --- the fence ------------------------------------------------------------------------------------------------------

CASE(error_state_of_the_responder_keeps_late_writes_out) {
    Pair pair;
    pair.b->set_word(0, 0);
    give_up_on_a_write(pair.a, pair.at_b.remote());
    CHECK_OK(pair.b->to(IBV_QPS_ERR));
    pause_ms(kSurelyMs);
    CHECK_EQ(pair.b->word(0), 0);
}

CASE(reset_of_the_responder_keeps_late_writes_out) {
    Pair pair;
    pair.b->set_word(0, 0);
    give_up_on_a_write(pair.a, pair.at_b.remote());
    CHECK_OK(pair.b->to(IBV_QPS_RESET));
    pause_ms(kSurelyMs);
    CHECK_EQ(pair.b->word(0), 0);
}

CASE(destruction_of_the_responder_keeps_late_writes_out) {
    Two two;
    two.b.memory.set_word(0, 0);
    give_up_on_a_write(two.a, two.b.memory.remote());
    CHECK_OK(ibv_destroy_qp(two.b.qp.release()));
    const Qp next(two.b.pd, two.b.scq, two.b.rcq);  // may use the same entry, under another number
    connect(two.b.context, next, two.a.address(), reversed({}));
    pause_ms(kSurelyMs);
    CHECK_EQ(two.b.memory.word(0), 0);
}

// IBTA 9.7.1: connected again with other numbers, the queue pair takes the message for one that it does not expect.
CASE(other_sequence_numbers_keep_late_writes_out) {
    Two two;
    two.b.memory.set_word(0, 0);
    give_up_on_a_write(two.a, two.b.memory.remote());
    CHECK_OK(two.b.qp.to(IBV_QPS_RESET));
    Path path = reversed({});
    path.peer_psn = 0x4711;
    two.b.connect(two.a.address(), path);
    pause_ms(kSurelyMs);
    CHECK_EQ(two.b.memory.word(0), 0);
}

CASE(late_write_to_memory_that_is_gone_fails_the_responder) {
    Two two;
    auto memory = std::make_unique<Memory>(two.b.pd, 64);
    give_up_on_a_write(two.a, memory->remote());
    memory->deregister();
    CHECK(two.b.context.wait_event(IBV_EVENT_QP_ACCESS_ERR).element == static_cast<ibv_qp*>(two.b.qp));
}

// --- several --------------------------------------------------------------------------------------------------------

CASE(migration_overtakes_a_late_message_which_is_then_a_duplicate) {
    if (ground() != "lmc") skip("needs a second path");
    Pair pair;
    const auto arm = [](auto& side, const Address& peer, auto&& modify) {
        ibv_qp_attr attr{};
        attr.alt_ah_attr = way_to(peer, {}, 1);
        attr.alt_ah_attr.dlid = static_cast<std::uint16_t>(peer.lid + 1);
        attr.alt_ah_attr.src_path_bits = 1;
        attr.alt_port_num = 1;
        attr.alt_timeout = 8;
        attr.path_mig_state = IBV_MIG_REARM;
        CHECK_OK(modify(side, attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
    };
    arm(pair.a.qp, pair.at_b, [](const Qp& qp, const ibv_qp_attr& attr, int mask) { return qp.modify(attr, mask); });
    arm(*pair.b, pair.at_a, [](End& end, const ibv_qp_attr& attr, int mask) { return end.modify(attr, mask); });
    pair.exchange(1);
    pair.b->set_word(0, 0);
    tool({"fault", name_of(pair.at_a.qpn), "late", kLate});
    pair.a.memory.set_word(0, 1);
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(1);  // on the other path
    CHECK_EQ(pair.b->word(0), 1);
    pair.b->set_word(0, 5);
    pause_ms(kSurelyMs);
    CHECK_EQ(pair.b->word(0), 5);
}

CASE(late_datagram_is_overtaken) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, (id - 1) * 1024, 256);
    const Ah ah(pair.a.pd, way_to(pair.at_b, {}, 1));
    tool({"fault", name_of(pair.at_a.qpn), "late", "100ms"});
    for (std::uint64_t id = 1; id <= 2; ++id) {
        pair.a.memory.fill(id, 0, 64);
        Wr wr = send_imm(id, pair.a.memory.sge(0, 64), static_cast<std::uint32_t>(id));
        wr.ah = ah;
        wr.qpn = pair.at_b.qpn;
        wr.qkey = kQkey;
        pair.a.qp.post(wr);
        pair.a.scq.expect(id);
    }
    for (std::uint64_t id = 1; id <= 2; ++id) {
        const ibv_wc got = pair.b->expect_receive(id);
        CHECK_EQ(ntohl(got.imm_data), 3 - id);
        pair.b->check(3 - id, (id - 1) * 1024 + 40, 64);
    }
}

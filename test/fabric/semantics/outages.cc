// SPDX-License-Identifier: BSD-3-Clause
// Cables that are pulled while messages are under way. A request and its acknowledgement pass each cable at different
// times, so a requester whose retries are exceeded does not know whether the request was executed (IBTA 9.7.6.1.3,
// 10.10.2.2: the completion status of the requester says nothing about the responder's memory). Hardware does the same.
#include <atomic>
#include <chrono>
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

// Long enough for the tool to act while a message is on a cable, on a busy machine, too.
constexpr const char* kLong = "600ms";

std::string name_of(const Qp& qp) {
    char text[32];
    snprintf(text, sizeof text, "qp:0x%x", qp.number());
    return text;
}

Meanwhile slow(const std::string& port) { return {{"port", port, "latency", kLong}, {"port", port, "latency", "0"}}; }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Messages 1 and 2 are executed, and message 3 is not; the requester knows of none of them.
void expect_two_of_three(Pair& pair) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
        pair.a.memory.fill(id, id * 64, 64);
        pair.b->receive(id, id * 64, 64);
    }
    for (std::uint64_t id = 1; id <= 3; ++id) pair.a.qp.post(send(id, pair.a.memory.sge(id * 64, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    pair.a.scq.expect(3, IBV_WC_WR_FLUSH_ERR);
    for (std::uint64_t id = 1; id <= 2; ++id) {
        pair.b->expect_receive(id);
        pair.b->check(id, id * 64, 64);
    }
    pair.b->expect_no_receive();
}

}  // namespace

CASE(acknowledgement_on_a_pulled_cable_is_lost_although_the_request_was_executed) {
    Pair pair;
    const Meanwhile far_away = slow(pair.a.port_name());
    pair.a.memory.fill(1, 0, 64);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.b->expect_receive(1);
    const Meanwhile down({"port", pair.a.port_name(), "down"}, {"port", pair.a.port_name(), "up"});
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->check(1, 0, 64);
    pair.b->expect_no_receive(1);
}

CASE(request_that_has_passed_the_pulled_cable_is_executed) {
    Pair pair;
    const Meanwhile far_away = slow(pair.b->port_name());
    pair.a.memory.fill(1, 0, 64);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pause_ms(20);  // it is on the cable of b
    const Meanwhile down({"port", pair.a.port_name(), "down"}, {"port", pair.a.port_name(), "up"});
    pair.b->expect_no_receive(1);
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_receive(1);
    pair.b->check(1, 0, 64);
}

CASE(request_that_has_not_passed_the_pulled_cable_is_lost) {
    Pair pair;
    const Meanwhile far_away = slow(pair.b->port_name());
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pause_ms(20);
    const Meanwhile down({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive();
    pair.b->check_untouched(0, 64);
}

// IBTA 9.7.5.1.2: the repeated request is a duplicate, which is acknowledged and not executed.
CASE(acknowledgement_lost_in_a_short_outage_is_given_again) {
    Pair::Options options;
    options.from_a.retry = 7;
    options.from_a.timeout = 15;
    Pair pair(options);
    const Meanwhile far_away = slow(pair.a.port_name());
    pair.b->receive(1, 0, 64);
    pair.b->receive(2, 64, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.b->expect_receive(1);
    tool({"port", pair.a.port_name(), "down"});
    tool({"port", pair.a.port_name(), "up"});
    pair.a.scq.expect(1);
    pair.b->expect_no_receive();
}

// --- the rule 'cut' -------------------------------------------------------------------------------------------------

CASE(cut_port_has_executed_what_the_requester_did_not_hear_of) {
    Pair pair;
    const std::string port = pair.b->port_name();
    const Meanwhile cut({"fault", port, "cut", "--count", "2"}, {"port", port, "up"});
    expect_two_of_three(pair);
    pair.b->expect_event(IBV_EVENT_PORT_ERR);
}

CASE(cut_of_a_queue_pair_takes_the_receiving_port_down) {
    Pair pair;
    const Meanwhile cut({"fault", name_of(pair.a.qp), "cut", "--count", "2"}, {"port", pair.b->port_name(), "up"});
    expect_two_of_three(pair);
    pair.b->expect_event(IBV_EVENT_PORT_ERR);
}

CASE(cut_cable_of_the_requester_is_an_event_there) {
    Pair pair;
    const std::string cable = pair.a.port_name() + "-sw0";
    const Meanwhile cut({"fault", "link", cable, "cut", "--count", "2"}, {"link", cable, "up"});
    expect_two_of_three(pair);
    pair.a.context.wait_event(IBV_EVENT_PORT_ERR);
}

CASE(cut_lid_leaves_the_port_active) {
    Pair pair;
    if (pair.at_b.global) skip("no LIDs on Ethernet");
    const std::string lid = std::to_string(pair.at_b.lid);
    const Meanwhile cut({"fault", lid, "cut", "--count", "2"}, {"lid", lid, "up"});
    expect_two_of_three(pair);
    pair.b->expect_no_event(IBV_EVENT_PORT_ERR);
}

CASE(cut_atomic_is_executed_although_its_status_is_an_error) {
    Pair pair;
    if (!has_atomics(pair.a.context)) skip("no atomics");
    const Meanwhile cut({"fault", pair.b->port_name(), "cut"}, {"port", pair.b->port_name(), "up"});
    pair.b->set_word(0, 7);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(pair.b->word(0), 8);
}

CASE(cut_write_of_several_chunks_is_executed_completely) {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 3 << 20;
    Pair pair(options);
    const Meanwhile cut({"fault", pair.b->port_name(), "cut"}, {"port", pair.b->port_name(), "up"});
    const std::size_t bytes = std::min<std::size_t>(3 << 20, pair.a.context.port().max_msg_sz);
    pair.a.memory.fill(1, 0, bytes);
    pair.a.qp.post(write(1, pair.a.memory.sge(0, bytes), pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->check(1, 0, bytes);
}

// --- storms ---------------------------------------------------------------------------------------------------------

// Long retries survive cables that are pulled for a short time (IBTA 9.7.6.1).
CASE(storm_that_is_shorter_than_the_retries_loses_and_doubles_nothing) {
    Pair::Options options;
    options.from_a.timeout = 15;  // 134 ms, seven times
    options.from_a.retry = 7;
    Pair pair(options);
    std::atomic<bool> over{false};
    std::thread raging([&] {
        tool({"storm", "--seed", "11", "--faults", "25", "--every", "40ms", "--outage", "20ms", "--settle", "20ms",
              "--kinds", "port,link,loss,rate,latency"});
        over = true;
    });
    std::uint64_t sent = 0;
    while (!over) pair.exchange(++sent, 2000);
    raging.join();
    pair.exchange(++sent);
    pair.b->expect_no_receive(1);
}

// --- acknowledged and lost ------------------------------------------------------------------------------------------

// IBTA 9.7.5.1: the acknowledgement says that the HCA has accepted the request; 9.7.5.1.3 and 10.8.1 leave open when its data is
// visible to the responder's program. An HCA that fails meanwhile takes it along.
CASE(acknowledged_messages_are_gone_with_the_hca_that_had_them) {
    if (devices() < 2 && !far()) skip("needs a second HCA");
    Pair pair;
    const std::string port = pair.b->port_name(), hca = port.substr(0, port.rfind('/'));
    const Meanwhile dead({"fault", port, "ack-and-die", "--count", "3"}, {"hca", hca, "up"});
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, id * 64, 64);
    pair.a.qp.post({write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()), send(2, pair.a.memory.sge(0, 64)),
                    write(3, pair.a.memory.sge(0, 64), pair.at_b.remote())});
    for (std::uint64_t id = 1; id <= 3; ++id) pair.a.scq.expect(id);
    pair.b->expect_event(IBV_EVENT_DEVICE_FATAL);
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->expect_receive(id, IBV_WC_WR_FLUSH_ERR);
    pair.b->check_untouched(0, 64);
    pair.b->check_untouched(64, 128);
    pair.a.qp.post(write(4, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.scq.expect(4, IBV_WC_RETRY_EXC_ERR);
}

// The HCA that the rule names is the one that fails, so that `hca … up` of the same one ends it.
CASE(hca_that_is_to_fail_after_acknowledgements_may_send) {
    if (devices() < 2 && !far()) skip("needs a second HCA");
    Pair pair;
    const std::string port = pair.a.port_name(), hca = port.substr(0, port.rfind('/'));
    for (const std::string& target : {port, hca}) {
        const Meanwhile rule({"fault", target, "ack-and-die", "--count", "1"}, {"fault", "clear"});
        pair.exchange(1);
    }
}

CASE(acknowledged_send_needs_a_receive_although_it_will_be_lost) {
    Pair::Options options;
    options.from_a.rnr_retry = 1;
    Pair pair(options);
    const Meanwhile rule({"fault", pair.b->port_name(), "ack-and-die", "--count", "100"}, {"fault", "clear"});
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
}

// SPDX-License-Identifier: BSD-3-Clause
// Faults set by the tool, and how a reliable connection handles them (IBTA 9.7.5.1.2 duplicates, 9.7.6.1 retries, 9.5
// ordering).
#include <cstdio>
#include <cstdlib>

#include "end.h"

using namespace verbstest;

namespace {

void fault(const Pair& pair, const char* kind, int count, int after = 0) {
    std::vector<std::string> words{"fault", pair.b->port_name(), kind, "--count", std::to_string(count)};
    if (after > 0) words.insert(words.end(), {"--after", std::to_string(after)});
    tool(words);
}

std::string name_of(const Qp& qp) {  // as the target of a rule; a rule left over does not meet later queue pairs
    char text[32];
    snprintf(text, sizeof text, "qp:0x%x", qp.number());
    return text;
}

// The sum of all counters of this name in the tool's JSON, over all ports.
unsigned long long total(const std::string& counter) {
    const std::string json = tool_output({"counters", "--json"}), key = "\"" + counter + "\"";
    unsigned long long sum = 0;
    bool found = false;
    for (std::size_t at = json.find(key); at != std::string::npos; at = json.find(key, at + 1)) {
        const std::size_t colon = json.find(':', at);
        CHECK(colon != std::string::npos);
        sum += strtoull(json.c_str() + colon + 1, nullptr, 10);
        found = true;
    }
    if (!found) fail(__FILE__, __LINE__, "counters --json does not have " + key);
    return sum;
}

// Two timers of 33.6 ms for a message of several packets. Those after the lost one are lost, too, so that no NAK tells of the
// gap.
Pair::Options of_two_timers() {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 1 << 20;
    options.from_a.timeout = 13;
    options.from_a.retry = 1;
    return options;
}

void expect_timers_to_expire(Pair& pair, std::vector<std::string> fault, std::vector<std::string> over) {
    const Meanwhile slow({"port", pair.b->port_name(), "rate", "50MB/s"},
                         {"port", pair.b->port_name(), "rate", "unlimited"});
    const Meanwhile faulty(std::move(fault), std::move(over));
    const auto start = Clock::now();
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 1 << 20), pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK(ms_since(start) >= 2 * 33.554);
}

}  // namespace

CASE(dropped_messages_are_sent_again) {
    Pair pair;
    fault(pair, "drop", 2);
    for (std::uint64_t id = 1; id <= 5; ++id) pair.exchange(id, 3000);
    pair.b->expect_no_receive();
}

CASE(more_drops_than_retries_exceed_them) {
    {
        Pair pair;  // retry_cnt 2: the first try and two more
        fault(pair, "drop", 3);
        pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
        pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
        pair.b->check_untouched(0, 8);
    }
    Pair pair;
    pair.exchange(1);
}

CASE(loss_of_all_requests_is_noticed_when_the_timers_expire) {
    Pair pair(of_two_timers());
    const std::string cable = pair.a.port_name() + "-sw0";
    expect_timers_to_expire(pair, {"link", cable, "loss", "100%", "--one-way"},
                            {"link", cable, "loss", "0", "--one-way"});
}

CASE(drop_of_all_requests_is_noticed_when_the_timers_expire) {
    Pair pair(of_two_timers());
    expect_timers_to_expire(pair, {"fault", name_of(pair.a.qp), "drop", "--for", "10s"}, {});
}

// IBTA 10.3.1.6: a queue pair in the error state drops requests silently.
CASE(error_state_of_the_peer_is_noticed_when_the_timers_expire) {
    Pair pair(of_two_timers());
    expect_timers_to_expire(pair, {"fault", name_of(pair.a.qp), "kill-qp"}, {});
}

CASE(drop_begins_after_the_messages_named) {
    Pair::Options options;
    options.from_a.retry = 0;
    Pair pair(options);
    fault(pair, "drop", 1, 3);
    for (std::uint64_t id = 1; id <= 3; ++id) pair.exchange(id);
    pair.a.qp.post(write(4, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(4, IBV_WC_RETRY_EXC_ERR);
}

CASE(corrupted_message_counts_as_a_symbol_error_and_is_sent_again) {
    Pair pair;
    const unsigned long long before = total("symbol_errors");
    fault(pair, "corrupt", 1);
    pair.exchange(1, 3000);
    CHECK(total("symbol_errors") > before);
}

CASE(lost_acknowledgement_alone_executes_once) {
    Pair pair;
    const bool atomics = has_atomics(pair.a.context);
    pair.b->set_word(0, 5);
    for (std::uint64_t id = 1; id <= 5; ++id) {
        fault(pair, "lose-ack", 1);
        if (atomics) {
            pair.a.qp.post(fetch_add(id, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
            pair.a.scq.expect(id);
            CHECK_EQ(pair.b->word(0), 5 + id);
            CHECK_EQ(pair.a.memory.word(0), 4 + id);  // the result of the first execution (IBTA 9.7.5.1.4)
        }
        fault(pair, "lose-ack", 1);
        pair.exchange(id, 500, 64);
        pair.b->expect_no_receive(2);
    }
}

CASE(read_whose_answer_is_lost_is_read_again) {
    Pair pair;
    pair.b->fill(1, 0, 5000);
    fault(pair, "lose-ack", 1);
    pair.a.qp.post(read(1, pair.a.memory.sge(0, 5000), pair.at_b.remote()));
    pair.a.scq.expect(1);
    pair.a.memory.check(1, 0, 5000);
}

// A requester that gets no answer cannot know whether the request was executed: either is possible
// (IBTA 9.7.6, 10.10.2.2). Replaying it on another path could execute it twice.
CASE(lost_acknowledgement_before_the_path_dies_is_an_error_although_executed) {
    Pair pair;
    const std::string qp = name_of(pair.a.qp);
    tool({"fault", qp, "lose-ack", "--count", "1"});
    tool({"fault", qp, "drop", "--after", "1", "--count", "100"});
    pair.a.memory.fill(1, 0, 64);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_receive(1);
    pair.b->check(1, 0, 64);
    pair.b->expect_no_receive(2);
}

CASE(no_acknowledgement_at_all_is_an_error_although_executed_once) {
    Pair pair;
    const bool atomics = has_atomics(pair.a.context);
    pair.b->set_word(0, 7);
    tool({"fault", name_of(pair.a.qp), "lose-ack", "--count", "100"});
    if (atomics) pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    else pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    if (atomics) CHECK_EQ(pair.b->word(0), 8);  // executed once in spite of the retries
}

CASE(burst_of_receiver_not_ready_is_waited_out) {
    Pair pair;
    fault(pair, "rnr", 5);
    for (std::uint64_t id = 1; id <= 3; ++id) pair.exchange(id);
}

CASE(burst_of_receiver_not_ready_counts_as_retries) {
    Pair::Options options;
    options.from_a.rnr_retry = 1;
    Pair pair(options);
    pair.b->receive(1, 0, 64);  // posted, although the fault pretends otherwise
    fault(pair, "rnr", 2);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
}

// IBTA 9.5, table of ordering rules: a SEND may pass an earlier RDMA READ unless it is fenced; completions stay in
// order.
CASE(unfenced_send_may_carry_the_contents_from_before_the_read) {
    Pair pair;
    constexpr std::size_t kBytes = 2000;
    pair.b->fill(1, 0, kBytes);
    pair.a.memory.fill(2, 0, kBytes);
    pair.b->receive(2, 8192, kBytes);
    fault(pair, "reorder", 1);
    pair.a.qp.post({read(1, pair.a.memory.sge(0, kBytes), pair.at_b.remote()), send(2, pair.a.memory.sge(0, kBytes))});
    pair.a.scq.expect(1);
    pair.a.scq.expect(2);
    pair.b->expect_receive(2);
    pair.b->check(2, 8192, kBytes);  // not the data of the read
    pair.a.memory.check(1, 0, kBytes);
}

CASE(fenced_send_waits_for_a_late_read) {
    Pair pair;
    constexpr std::size_t kBytes = 2000;
    pair.b->fill(1, 0, kBytes);
    pair.a.memory.fill(2, 0, kBytes);
    pair.b->receive(2, 8192, kBytes);
    fault(pair, "reorder", 1);
    pair.a.qp.post({read(1, pair.a.memory.sge(0, kBytes), pair.at_b.remote()),
                    send(2, pair.a.memory.sge(0, kBytes)).with(IBV_SEND_FENCE)});
    pair.a.scq.expect(1);
    pair.a.scq.expect(2);
    pair.b->expect_receive(2);
    pair.b->check(1, 8192, kBytes);
}

CASE(random_loss_delays_and_loses_nothing) {
    Pair::Options options;
    options.from_a.retry = 7;
    Pair pair(options);
    const Meanwhile lossy({"port", pair.b->port_name(), "loss", "0.05"}, {"port", pair.b->port_name(), "loss", "0"});
    for (std::uint64_t id = 1; id <= 100; ++id) pair.exchange(id, 64 + id % 7 * 100);
}

CASE(fault_of_one_queue_pair_leaves_the_others_alone) {
    Pair one, two;
    tool({"fault", name_of(one.a.qp), "drop", "--count", "3"});
    two.exchange(1);
    one.a.qp.post(write(1, one.a.memory.sge(0, 8), one.at_b.remote()));
    one.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    two.exchange(2);
}

// A link that loses everything in one direction loses a's packets, and the acknowledgements of b's packets.
CASE(loss_one_way_loses_requests_and_the_acknowledgements_of_the_other_side) {
    Pair one, two;
    const std::string cable = one.a.port_name() + "-sw0";
    const Meanwhile lossy({"link", cable, "loss", "100%", "--one-way"}, {"link", cable, "loss", "0", "--one-way"});
    one.b->receive(1, 0, 64);
    one.a.qp.post(send(1, one.a.memory.sge(0, 64)));
    one.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    one.b->expect_no_receive();
    two.a.qp.receive(2, two.a.memory.sge(0, 64));
    two.b->post_send(2, 0, 64);
    two.b->expect_send(2, IBV_WC_RETRY_EXC_ERR);
    two.a.rcq.expect(2);
}

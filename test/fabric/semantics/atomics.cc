// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations (IBTA 9.4.5 operations, 9.4.5.1 atomicity, 10.7.2.3; errors in 9.7.4).
#include <unistd.h>

#include "end.h"

using namespace verbstest;

namespace {

void need_atomics(const Pair& pair) {
    if (!has_atomics(pair.a.context)) skip("no atomics");
}

}  // namespace

CASE(fetch_and_add_adds_and_returns_what_was_there) {
    Pair pair;
    need_atomics(pair);
    pair.b->set_word(64, 1000);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(8, 8), pair.at_b.remote(64), 7));
    CHECK_EQ(pair.a.scq.expect(1).byte_len, 8);
    CHECK_EQ(pair.a.memory.word(8), 1000);
    CHECK_EQ(pair.b->word(64), 1007);
    pair.a.qp.post(fetch_add(2, pair.a.memory.sge(8, 8), pair.at_b.remote(64), ~std::uint64_t{0}));  // minus one
    pair.a.scq.expect(2);
    CHECK_EQ(pair.a.memory.word(8), 1007);
    CHECK_EQ(pair.b->word(64), 1006);
    pair.b->check_untouched(0, 64);
    pair.b->check_untouched(72, 64);
    pair.a.memory.check_untouched(0, 8);
    pair.a.memory.check_untouched(16);
}

CASE(fetch_and_add_wraps_around) {
    Pair pair;
    need_atomics(pair);
    pair.b->set_word(0, ~std::uint64_t{0} - 1);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 5));
    pair.a.scq.expect(1);
    CHECK_EQ(pair.b->word(0), 3);
}

CASE(compare_and_swap_swaps_if_equal) {
    Pair pair;
    need_atomics(pair);
    pair.b->set_word(8, 0x1122334455667788);
    pair.a.qp.post(compare_swap(1, pair.a.memory.sge(0, 8), pair.at_b.remote(8), 0x1122334455667788, 42));
    pair.a.scq.expect(1);
    CHECK_EQ(pair.a.memory.word(0), 0x1122334455667788);
    CHECK_EQ(pair.b->word(8), 42);
    pair.a.qp.post(compare_swap(2, pair.a.memory.sge(0, 8), pair.at_b.remote(8), 41, 43));
    pair.a.scq.expect(2);
    CHECK_EQ(pair.a.memory.word(0), 42);  // the previous value, although nothing was swapped
    CHECK_EQ(pair.b->word(8), 42);
}

CASE(atomics_and_reads_and_writes_of_a_queue_are_in_order) {
    Pair pair;
    need_atomics(pair);
    pair.b->set_word(0, 0);
    pair.a.memory.set_word(0, 100);
    pair.a.qp.post({write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()),
                    fetch_add(2, pair.a.memory.sge(8, 8), pair.at_b.remote(), 1),
                    compare_swap(3, pair.a.memory.sge(16, 8), pair.at_b.remote(), 101, 200),
                    read(4, pair.a.memory.sge(24, 8), pair.at_b.remote())});
    for (std::uint64_t id = 1; id <= 4; ++id) pair.a.scq.expect(id);
    CHECK_EQ(pair.a.memory.word(8), 100);
    CHECK_EQ(pair.a.memory.word(16), 101);
    CHECK_EQ(pair.a.memory.word(24), 200);
}

// IBTA 9.7.4.1 (responder checks): a misaligned address is a NAK 'invalid request'.
CASE(misaligned_atomic_is_an_invalid_request) {
    Pair pair;
    need_atomics(pair);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(4), 1));
    pair.a.scq.expect(1, IBV_WC_REM_INV_REQ_ERR);
    pair.b->check_untouched(0, 64);
    pair.a.qp.wait_state(IBV_QPS_ERR);
    pair.b->wait_state(IBV_QPS_ERR);
}

// IBTA 11.6.2, Remote Access Error.
CASE(atomic_beyond_the_region_is_refused) {
    Pair pair;
    need_atomics(pair);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(pair.at_b.bytes), 1));
    pair.a.scq.expect(1, IBV_WC_REM_ACCESS_ERR);
    pair.b->expect_event(IBV_EVENT_QP_ACCESS_ERR);
}

CASE(atomic_with_an_unwritable_result_fails_locally) {
    Pair::Options options;
    options.a.access = IBV_ACCESS_REMOTE_READ;
    Pair pair(options);
    need_atomics(pair);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.a.scq.expect(1, IBV_WC_LOC_PROT_ERR);
    pair.a.memory.check_untouched();
}

// The result is 8 bytes; providers refuse another length when posting, or fail the request (IBTA 11.6.2, Local Length).
CASE(atomic_result_shorter_than_8_bytes_fails) {
    Pair pair;
    need_atomics(pair);
    const int result = pair.a.qp.try_post(fetch_add(1, pair.a.memory.sge(0, 4), pair.at_b.remote(), 1));
    if (result == 0) pair.a.scq.expect(1, IBV_WC_LOC_LEN_ERR);
    else CHECK_EQ(result, EINVAL);
    pair.a.memory.check_untouched();
}

CASE(atomic_without_right_at_the_queue_pair_is_an_invalid_request) {
    Pair::Options options;
    options.from_b.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    Pair pair(options);
    need_atomics(pair);
    pair.a.qp.post(fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.a.scq.expect(1, IBV_WC_REM_INV_REQ_ERR);
    pair.b->check_untouched(0, 64);
}

// --- from two sides simultaneously ----------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kEach = 2000;

// Connects to the given queue pair and adds 1, kEach times; checks that the values it gets only grow.
ROLE(adds_and_swaps) {
    Node node;
    channel.put(node.address());
    const auto target = channel.get<Address>();
    node.connect(target);
    channel.get<char>();
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < kEach; ++i) {
        node.qp.post(fetch_add(i, node.memory.sge(0, 8), target.remote(), 1));
        node.scq.expect(i);
        CHECK(i == 0 || node.memory.word(0) > last);
        last = node.memory.word(0);
    }
    // A lock made with compare and swap protects a plain read and write.
    for (std::uint64_t i = 0; i < kEach / 10; ++i) {
        do {
            node.qp.post(compare_swap(1, node.memory.sge(0, 8), target.remote(8), 0, 1));
            node.scq.expect(1);
        } while (node.memory.word(0) != 0);
        node.qp.post(read(2, node.memory.sge(16, 8), target.remote(16)));
        node.scq.expect(2);
        node.memory.set_word(16, node.memory.word(16) + 1);
        node.memory.set_word(24, 0);
        node.qp.post(
            {write(3, node.memory.sge(16, 8), target.remote(16)), write(4, node.memory.sge(24, 8), target.remote(8))});
        node.scq.expect(3);
        node.scq.expect(4);
    }
    return 0;
}

}  // namespace

CASE(atomics_of_two_processes_lose_nothing) {
    Node node;
    if (!has_atomics(node.context)) skip("no atomics");
    for (std::size_t at = 0; at < 32; at += 8) node.memory.set_word(at, 0);
    Process one("adds_and_swaps", "h1"), two("adds_and_swaps", "h0");
    Qp second(node.pd, node.scq, node.rcq);
    const auto peer_one = one.channel().get<Address>(), peer_two = two.channel().get<Address>();
    node.connect(peer_one, reversed({}));
    connect(node.context, second, peer_two, reversed({}));
    Address at = node.address();
    one.channel().put(at);
    at.qpn = second.number();
    two.channel().put(at);
    one.channel().put('g');
    two.channel().put('g');
    CHECK_EQ(one.finish(), 0);
    CHECK_EQ(two.finish(), 0);
    CHECK_EQ(node.memory.word(0), 2 * kEach);
    CHECK_EQ(node.memory.word(8), 0);
    CHECK_EQ(node.memory.word(16), 2 * (kEach / 10));
}

// IBTA 9.4.5.1: IBV_ATOMIC_GLOB promises atomicity with the host's own instructions, too; IBV_ATOMIC_HCA does not.
CASE(global_atomics_agree_with_the_processor) {
    Node node;
    if (node.context.device().atomic_cap != IBV_ATOMIC_GLOB) skip("the device does not report IBV_ATOMIC_GLOB");
    node.memory.set_word(0, 0);
    for (std::size_t at = 8; at < 32; at += 8) node.memory.set_word(at, 0);
    Process other("adds_and_swaps", "h1");
    node.connect(other.channel().get<Address>(), reversed({}));
    other.channel().put(node.address());
    other.channel().put('g');
    auto* word = reinterpret_cast<std::uint64_t*>(node.memory.data());
    for (std::uint64_t i = 0; i < kEach; ++i) __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(other.finish(), 0);
    CHECK_EQ(node.memory.word(0), 2 * kEach);
}

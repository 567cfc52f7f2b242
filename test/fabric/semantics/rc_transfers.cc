// SPDX-License-Identifier: BSD-3-Clause
// Data transfer over a reliable connection (IBTA 9.4 operations, 9.5 ordering, 9.7 reliable service, 10.7 work
// requests).
#include <algorithm>
#include <atomic>
#include <thread>

#include "end.h"
#include "pattern.h"

using namespace verbstest;

namespace {

void pattern_fill(std::uint64_t key, std::vector<unsigned char>& to) { pattern::fill(key, 0, to.data(), to.size()); }

// Sizes around the path MTU, and around lengths at which an emulation may split messages.
constexpr std::size_t kSizes[] = {0, 1, 7, 8, 63, 255, 256, 257, 4095, 4096, 4097, 12289, 65536, 262144, 1048583};

Pair::Options large() {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 2 << 20;
    return options;
}

}  // namespace

CASE(send_of_every_size_arrives_whole) {
    Pair pair(large());
    std::uint64_t id = 1;
    for (std::size_t bytes : kSizes) {
        pair.a.memory.fill(id, 0, bytes);
        pair.b->receive(id, 64, bytes + 32);
        pair.a.qp.post(send(id, pair.a.memory.sge(0, bytes)));
        pair.a.scq.expect(id);
        CHECK_EQ(pair.b->expect_receive(id).byte_len, bytes);
        pair.b->check(id++, 64, bytes);
    }
    pair.b->check_untouched(0, 64);
    pair.b->check_untouched(64 + 1048583, 1024);
}

CASE(write_of_every_size_arrives_whole) {
    Pair pair(large());
    std::uint64_t id = 1;
    for (std::size_t bytes : kSizes) {
        pair.a.memory.fill(id, 3, bytes);
        pair.a.qp.post(write(id, pair.a.memory.sge(3, bytes), pair.at_b.remote(77)));
        pair.a.scq.expect(id);
        pair.b->check(id++, 77, bytes);
    }
    pair.b->check_untouched(0, 77);
    pair.b->check_untouched(77 + 1048583, 1024);
    pair.b->expect_no_receive(1);
}

CASE(read_of_every_size_arrives_whole) {
    Pair pair(large());
    std::uint64_t id = 1;
    for (std::size_t bytes : kSizes) {
        pair.b->fill(id, 5, bytes);
        pair.a.qp.post(read(id, pair.a.memory.sge(129, bytes), pair.at_b.remote(5)));
        pair.a.scq.expect(id);
        pair.a.memory.check(id++, 129, bytes);
    }
    pair.a.memory.check_untouched(0, 129);
    pair.a.memory.check_untouched(129 + 1048583);
}

CASE(send_both_ways_at_once) {
    Pair pair;
    for (std::uint64_t id = 0; id < 20; ++id) {
        pair.a.memory.fill(id, 1000 * id, 1000);
        pair.b->fill(100 + id, 1000 * id, 1000);
        pair.a.qp.receive(id, pair.a.memory.sge(20000 + 1000 * id, 1000));
        pair.b->receive(id, 20000 + 1000 * id, 1000);
    }
    for (std::uint64_t id = 0; id < 20; ++id) {
        pair.a.qp.post(send(id, pair.a.memory.sge(1000 * id, 1000)));
        pair.b->post_send(id, 1000 * id, 1000);
    }
    for (std::uint64_t id = 0; id < 20; ++id) {
        pair.a.scq.expect(id);
        pair.b->expect_send(id);
        pair.a.rcq.expect(id);
        pair.b->expect_receive(id);
        pair.a.memory.check(100 + id, 20000 + 1000 * id, 1000);
        pair.b->check(id, 20000 + 1000 * id, 1000);
    }
}

CASE(messages_arrive_in_the_order_sent) {
    Pair pair;
    std::uint64_t received = 0, posted = 0, sent = 0;
    constexpr std::uint64_t kCount = 300;
    for (; posted < 32; ++posted) pair.b->receive(posted, posted % 64 * 512, 512);
    const auto bytes = [](std::uint64_t id) { return static_cast<std::size_t>(1 + id * 37 % 512); };
    while (received < kCount) {
        for (; sent < kCount && sent < received + 32; ++sent) {
            pair.a.memory.fill(sent, sent % 64 * 512, bytes(sent));
            pair.a.qp.post(send(sent, pair.a.memory.sge(sent % 64 * 512, bytes(sent))));
        }
        CHECK_EQ(pair.b->expect_receive(received).byte_len, bytes(received));
        pair.b->check(received, received % 64 * 512, bytes(received));
        pair.a.scq.expect(received);
        pair.b->receive(posted, posted % 64 * 512, 512);
        ++posted;
        ++received;
    }
}

CASE(immediate_data_arrives_in_network_order) {
    Pair pair;
    pair.a.memory.fill(1, 0, 32);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send_imm(1, pair.a.memory.sge(0, 32), 0xcafe0123));
    pair.a.scq.expect(1);
    const ibv_wc wc = pair.b->expect_receive(1);
    CHECK_EQ(wc.imm_data, __builtin_bswap32(0xcafe0123));
    CHECK((wc.wc_flags & IBV_WC_WITH_IMM) != 0);
    pair.b->check(1, 0, 32);
}

// IBTA 9.4.3, 10.7.2.2: the receive is consumed, but its buffer is not written to.
CASE(write_with_immediate_uses_up_a_receive_but_not_its_buffer) {
    Pair pair;
    pair.a.memory.fill(1, 0, 1000);
    pair.b->receive(1, 0, 64);
    pair.b->receive(2, 64, 64);
    pair.a.qp.post(write_imm(1, pair.a.memory.sge(0, 1000), pair.at_b.remote(4096), 9));
    pair.a.qp.post(send(2, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1);
    CHECK_EQ(pair.b->expect_receive(1).byte_len, 1000);
    pair.b->expect_receive(2);
    pair.b->check(1, 4096, 1000);
    pair.b->check_untouched(0, 64);
    pair.b->check(1, 64, 64);
}

CASE(write_with_immediate_of_length_0_is_a_signal) {
    Pair pair;
    pair.b->receive(1, 0, 0);
    Wr wr = write_imm(1, {}, {}, 0xffffffff);
    wr.list.clear();
    pair.a.qp.post(wr);
    pair.a.scq.expect(1);
    const ibv_wc wc = pair.b->expect_receive(1);
    CHECK_EQ(wc.byte_len, 0);
    CHECK_EQ(wc.imm_data, 0xffffffff);
}

// IBTA 9.5: when a message has arrived, earlier writes have, too.
CASE(write_is_visible_before_the_following_send) {
    Pair pair(large());
    for (std::uint64_t id = 1; id <= 20; ++id) {
        pair.a.memory.fill(id, 0, 100000);
        pair.b->receive(id, 0, 8);
        pair.a.qp.post({write(id, pair.a.memory.sge(0, 100000), pair.at_b.remote(4096)).unsignaled(),
                        send(id, pair.a.memory.sge(0, 8))});
        pair.b->expect_receive(id);
        pair.b->check(id, 4096, 100000);
        pair.a.scq.expect(id);
    }
}

// IBTA 9.5 does not promise this within one message, but HCAs do it: eager RDMA protocols poll on the last byte.
CASE(last_byte_of_a_write_lands_last) {
    Two two;
    if (ibv_query_qp_data_in_order(two.b.qp, IBV_WR_RDMA_WRITE, 0) == 0) skip("writes land in any order");
    constexpr std::size_t kBytes = 9000;
    std::atomic<bool> stop{false};
    const volatile unsigned char* last = two.b.memory.data() + kBytes - 1;
    for (std::uint64_t round = 1; round <= 50; ++round) {
        two.a.memory.fill(round, 0, kBytes);
        two.a.memory.data()[kBytes - 1] = static_cast<unsigned char>(round);
        std::thread watcher([&] {
            while (*last != static_cast<unsigned char>(round) && !stop) {
            }
            std::atomic_thread_fence(std::memory_order_acquire);
            two.b.memory.check(round, 0, kBytes - 1);
        });
        two.a.qp.post(write(round, two.a.memory.sge(0, kBytes), two.b.memory.remote()));
        two.a.scq.expect(round);
        watcher.join();
    }
}

CASE(read_sees_what_an_earlier_write_put_there) {
    Pair pair;
    for (std::uint64_t id = 1; id <= 20; ++id) {
        pair.a.memory.fill(id, 0, 3000);
        pair.a.qp.post({write(id, pair.a.memory.sge(0, 3000), pair.at_b.remote(100)),
                        read(100 + id, pair.a.memory.sge(8192, 3000), pair.at_b.remote(100))});
        pair.a.scq.expect(id);
        pair.a.scq.expect(100 + id);
        pair.a.memory.check(id, 8192, 3000);
    }
}

// --- gathering and scattering ---------------------------------------------------------------------------------------

CASE(lists_are_gathered_and_scattered) {
    Pair::Options options;
    options.a.qp.sges = options.b.qp.sges = 4;
    Two two(options);
    if (two.a.qp.cap().max_send_sge < 4 || two.b.qp.cap().max_recv_sge < 4) skip("less than 4 entries per list");
    Memory &from = two.a.memory, &to = two.b.memory;
    Memory whole(two.a.pd, 1000);
    whole.fill(9);
    const auto part = [&](std::size_t at, std::size_t n, std::size_t where) {
        std::copy_n(whole.data() + at, n, from.data() + where);
        return from.sge(where, n);
    };
    Wr wr = send(1, {});
    wr.list = {part(0, 100, 5000), part(100, 1, 300), from.sge(0, 0), part(101, 899, 2001)};
    two.b.qp.receive(1, {to.sge(10, 7), to.sge(1000, 500), to.sge(0, 0), to.sge(3000, 600)});
    two.a.qp.post(wr);
    two.a.scq.expect(1);
    CHECK_EQ(two.b.rcq.expect(1).byte_len, 1000);
    CHECK(std::equal(whole.data(), whole.data() + 7, to.data() + 10));
    CHECK(std::equal(whole.data() + 7, whole.data() + 507, to.data() + 1000));
    CHECK(std::equal(whole.data() + 507, whole.data() + 1000, to.data() + 3000));
    to.check_untouched(0, 10);
    to.check_untouched(17, 983);
    to.check_untouched(1500, 1500);
    to.check_untouched(3000 + 493);
    wr = read(2, {}, to.remote(1000));
    from.wipe();
    wr.list = {from.sge(64, 200), from.sge(1024, 300)};
    two.a.qp.post(wr);
    two.a.scq.expect(2);
    CHECK(std::equal(whole.data() + 7, whole.data() + 207, from.data() + 64));
    CHECK(std::equal(whole.data() + 207, whole.data() + 507, from.data() + 1024));
    from.check_untouched(264, 760);
    from.check_untouched(1324);
}

CASE(list_longer_than_granted_is_refused) {
    Pair pair;
    Wr wr = send(1, {});
    wr.list.assign(pair.a.qp.cap().max_send_sge + 1, pair.a.memory.sge(0, 8));
    CHECK_ERROR(pair.a.qp.try_post(wr), EINVAL);
    const std::vector<ibv_sge> list(pair.a.qp.cap().max_recv_sge + 1, pair.a.memory.sge(0, 8));
    CHECK_ERROR(pair.a.qp.try_receive(1, list), EINVAL);
    pair.exchange(2);
}

// --- inline ---------------------------------------------------------------------------------------------------------

CASE(inline_data_is_taken_when_posted_and_needs_no_key) {
    Pair::Options options;
    options.a.qp.inline_bytes = 16;
    Pair pair(options);
    const std::size_t room = pair.a.qp.cap().max_inline_data;
    CHECK(room >= 16);
    for (std::uint64_t id = 1; id <= 20; ++id) {
        std::vector<unsigned char> text(room);
        pattern_fill(id, text);
        const ibv_sge list{reinterpret_cast<std::uint64_t>(text.data()), static_cast<std::uint32_t>(room), 0xbad};
        pair.b->receive(id, 0, room);
        pair.a.qp.post(send(id, list).with(IBV_SEND_INLINE));
        std::fill(text.begin(), text.end(),
                  std::uint8_t{0});  // may be changed at once (a feature of verbs, not in IBTA)
        pair.a.scq.expect(id);
        pair.b->expect_receive(id);
        pair.b->check(id, 0, room);
        pattern_fill(id + 100, text);
        pair.a.qp.post(write(id, list, pair.at_b.remote(4096)).with(IBV_SEND_INLINE));
        std::fill(text.begin(), text.end(), std::uint8_t{0});
        pair.a.scq.expect(id);
        pair.b->check(id + 100, 4096, room);
    }
}

CASE(inline_data_longer_than_granted_is_refused) {
    Pair::Options options;
    options.a.qp.inline_bytes = 8;
    options.a.bytes = options.b.bytes = 1 << 20;
    Pair pair(options);
    const std::size_t room = pair.a.qp.cap().max_inline_data;
    const int result = pair.a.qp.try_post(send(1, pair.a.memory.sge(0, room + 1)).with(IBV_SEND_INLINE));
    CHECK(result == EINVAL || result == ENOMEM);  // mlx providers return ENOMEM
    pair.exchange(2);
}

// --- posting --------------------------------------------------------------------------------------------------------

CASE(list_of_requests_is_posted_in_order) {
    Pair pair;
    std::vector<Wr> list;
    for (std::uint64_t id = 0; id < 20; ++id) {
        pair.a.memory.fill(id, id * 64, 64);
        list.push_back(id % 2 == 0 ? write(id, pair.a.memory.sge(id * 64, 64), pair.at_b.remote(id * 64))
                                   : send(id, pair.a.memory.sge(id * 64, 64)));
        if (id % 2 == 1) pair.b->receive(id, 8192 + id * 64, 64);
    }
    pair.a.qp.post(list);
    for (std::uint64_t id = 0; id < 20; ++id) {
        pair.a.scq.expect(id);
        if (id % 2 == 1) pair.b->expect_receive(id);
        pair.b->check(id, (id % 2 == 0 ? 0 : 8192) + id * 64, 64);
    }
}

// IBTA 11.4.1.1: the requests before the bad one are posted; it and the later ones are not.
CASE(bad_wr_points_to_the_first_request_that_was_refused) {
    Pair pair;
    std::vector<Wr> list;
    for (std::uint64_t id = 0; id < 5; ++id)
        list.push_back(write(id, pair.a.memory.sge(id * 64, 64), pair.at_b.remote(id * 64)));
    list[3].list.assign(pair.a.qp.cap().max_send_sge + 1, pair.a.memory.sge(0, 8));
    pair.a.memory.fill(1, 0, 512);
    std::size_t bad = 99;
    CHECK_ERROR(pair.a.qp.try_post(list, &bad), EINVAL);
    CHECK_EQ(bad, 3);
    for (std::uint64_t id = 0; id < 3; ++id) pair.a.scq.expect(id);
    pair.a.scq.expect_none();
    pair.b->check(1, 0, 192);
    pair.b->check_untouched(192, 320);
}

CASE(unknown_opcode_is_refused) {
    Pair pair;
    Wr wr = send(1, pair.a.memory.sge(0, 8));
    wr.opcode = static_cast<ibv_wr_opcode>(13);
    CHECK_ERROR(pair.a.qp.try_post(wr), EINVAL);
}

CASE(full_send_queue_refuses_with_enomem) {
    Pair::Options options;
    options.a.qp.send_wrs = 8;
    Pair pair(options);
    const std::uint32_t room = pair.a.qp.cap().max_send_wr;
    // b has no receive, so nothing completes.
    std::uint64_t id = 0;
    for (; id < room; ++id) pair.a.qp.post(send(id, pair.a.memory.sge(0, 8)));
    CHECK_ERROR(pair.a.qp.try_post(send(id, pair.a.memory.sge(0, 8))), ENOMEM);
    pair.a.scq.expect_none();
    for (std::uint64_t i = 0; i < room; ++i) pair.b->receive(i, 0, 8);
    for (std::uint64_t i = 0; i < room; ++i) pair.a.scq.expect(i);
    for (std::uint64_t i = 0; i < room; ++i) pair.b->expect_receive(i);
    pair.exchange(1000);
}

// IBTA 10.7.3.1, 10.8.3.1: an unsignaled request occupies its place until a later one was found completed, so a queue
// of unsignaled requests alone fills up. An emulation that frees places earlier hides a bug from its users.
CASE(unsignaled_requests_hold_their_places_until_a_signaled_one_completes) {
    Pair::Options options;
    options.a.qp.send_wrs = 16;
    Pair pair(options);
    const std::uint32_t room = pair.a.qp.cap().max_send_wr;
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t id = 1; id < room; ++id)
            pair.a.qp.post(write(id, pair.a.memory.sge(0, 8), pair.at_b.remote()).unsignaled());
        pair.a.qp.post(write(1000, pair.a.memory.sge(0, 8), pair.at_b.remote()));
        CHECK_ERROR(pair.a.qp.try_post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote())), ENOMEM);
        pair.a.scq.expect(1000);
        pair.a.scq.expect_none(1);
    }
}

CASE(full_receive_queue_refuses_with_enomem) {
    Pair::Options options;
    options.a.qp.recv_wrs = 8;
    Pair pair(options);
    const std::uint32_t room = pair.a.qp.cap().max_recv_wr;
    for (std::uint64_t id = 0; id < room; ++id) pair.a.qp.receive(id, pair.a.memory.sge(id * 8, 8));
    CHECK_ERROR(pair.a.qp.try_receive(room, {pair.a.memory.sge(0, 8)}), ENOMEM);
    pair.b->post_send(1, 0, 8);
    pair.a.rcq.expect(0);
    pair.b->expect_send(1);
    CHECK_OK(pair.a.qp.try_receive(room, {pair.a.memory.sge(0, 8)}));
}

CASE(unsignaled_requests_leave_no_completion) {
    Pair pair;
    for (std::uint64_t id = 1; id <= 10; ++id) {
        pair.b->receive(id, 0, 8);
        pair.a.qp.post(send(id, pair.a.memory.sge(0, 8)).unsignaled());
    }
    for (std::uint64_t id = 1; id <= 10; ++id) pair.b->expect_receive(id);
    pair.a.qp.post(write(11, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(11);
    pair.a.scq.expect_none();
}

CASE(sq_sig_all_signals_everything) {
    Pair::Options options;
    options.a.qp.sig_all = 1;
    Pair pair(options);
    for (std::uint64_t id = 1; id <= 5; ++id)
        pair.a.qp.post(write(id, pair.a.memory.sge(0, 8), pair.at_b.remote()).unsignaled());
    for (std::uint64_t id = 1; id <= 5; ++id) pair.a.scq.expect(id);
}

// --- fence and outstanding reads ------------------------------------------------------------------------------------

// IBTA 10.8.3.3: a fenced request does not begin before the earlier RDMA READs and atomics have completed. Without the
// fence the contents of the send would be undefined here; with it the send carries the data that was read.
CASE(fenced_send_carries_what_was_read_before) {
    Pair pair(large());
    constexpr std::size_t kBytes = 300000;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        pair.b->fill(id, 0, kBytes);
        pair.b->receive(id, 1 << 20, kBytes);
        pair.a.qp.post({read(id, pair.a.memory.sge(0, kBytes), pair.at_b.remote()),
                        send(50 + id, pair.a.memory.sge(0, kBytes)).with(IBV_SEND_FENCE)});
        pair.a.scq.expect(id);
        pair.a.scq.expect(50 + id);
        pair.b->expect_receive(id);
        pair.b->check(id, 1 << 20, kBytes);
    }
}

CASE(more_reads_than_max_rd_atomic_wait_for_their_turn) {
    Pair::Options options = large();
    options.from_a.max_rd_atomic = 1;
    options.from_b.max_dest_rd_atomic = 1;
    Pair pair(options);
    pair.b->fill(1, 0, 1 << 20);
    for (std::uint64_t id = 0; id < 32; ++id)
        pair.a.qp.post(read(id, pair.a.memory.sge(0, 100000), pair.at_b.remote()));
    for (std::uint64_t id = 0; id < 32; ++id) pair.a.scq.expect(id);
    pair.a.memory.check(1, 0, 100000);
}

CASE(read_and_write_of_many_regions_keep_apart) {
    Two two;
    Memory one(two.b.pd, 5000), other(two.b.pd, 5000);
    two.a.memory.fill(1, 0, 5000);
    two.a.memory.fill(2, 5000, 5000);
    two.a.qp.post(
        {write(1, two.a.memory.sge(0, 5000), one.remote()), write(2, two.a.memory.sge(5000, 5000), other.remote()),
         read(3, two.a.memory.sge(20000, 5000), one.remote()), read(4, two.a.memory.sge(30000, 5000), other.remote())});
    for (std::uint64_t id = 1; id <= 4; ++id) two.a.scq.expect(id);
    one.check(1);
    other.check(2);
    two.a.memory.check(1, 20000, 5000);
    two.a.memory.check(2, 30000, 5000);
    two.b.memory.check_untouched();
}

// SPDX-License-Identifier: BSD-3-Clause
// Verbs objects of processes that fork, exit or are killed; and many queue pairs at once. IBTA does not specify this.
// The operating system destroys the objects of a process that ends, so its peers no longer get acknowledgements.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "end.h"

using namespace verbstest;

namespace {

// Forks a child that dies with its parent and cannot hang.
pid_t fork_child() {
    fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(15);
    }
    return child;
}

int status_of(pid_t child) {
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

}  // namespace

// --- fork -----------------------------------------------------------------------------------------------------------

CASE(parent_goes_on_after_its_child_exits) {
    CHECK_OK(ibv_fork_init());
    Pair pair;
    pair.exchange(1);
    const pid_t child = fork_child();
    if (child == 0) _exit(7);
    CHECK_EQ(status_of(child), 7 << 8);
    for (std::uint64_t id = 2; id < 10; ++id) pair.exchange(id, 5000);
}

CASE(parent_goes_on_while_its_child_lives) {
    Pair pair;
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    const pid_t child = fork_child();
    if (child == 0) {
        char c;
        close(ends[1]);
        _exit(::read(ends[0], &c, 1) == 0 ? 0 : 1);
    }
    // Parent and child share pages until one of the two writes. The device must keep using the parent's copy
    // (MADV_DONTFORK, or pages copied at fork).
    for (std::uint64_t id = 1; id < 10; ++id) pair.exchange(id, 5000);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(status_of(child), 0);
    pair.exchange(20);
}

CASE(child_that_runs_exit_handlers_does_not_disturb_its_parent) {
    Pair pair;
    pair.exchange(1);
    const pid_t child = fork_child();
    if (child == 0) exit(0);  // runs atexit handlers and destructors of libraries
    CHECK_EQ(status_of(child), 0);
    for (std::uint64_t id = 2; id < 10; ++id) pair.exchange(id);
}

CASE(child_opens_a_device_of_its_own) {
    Pair pair;
    pair.exchange(1);
    const pid_t child = fork_child();
    if (child == 0) {
        Two own;
        for (std::uint64_t id = 1; id <= 5; ++id) {
            own.a.memory.fill(id, 0, 500);
            own.b.qp.receive(id, own.b.memory.sge(0, 500));
            own.a.qp.post(send(id, own.a.memory.sge(0, 500)));
            own.a.scq.expect(id);
            own.b.rcq.expect(id);
            own.b.memory.check(id, 0, 500);
        }
        _exit(0);
    }
    for (std::uint64_t id = 2; id < 10; ++id) pair.exchange(id);
    CHECK_EQ(status_of(child), 0);
    pair.exchange(20);
}

CASE(program_forked_and_executed_is_a_process_like_any_other) {
    Node here;
    std::unique_ptr<End> there = make_far({}, "h0");
    there->connect(here.address(), reversed({}));
    here.connect(there->address());
    here.memory.fill(1, 0, 64);
    there->receive(1, 0, 64);
    here.qp.post(send(1, here.memory.sge(0, 64)));
    here.scq.expect(1);
    there->expect_receive(1);
    there->check(1, 0, 64);
}

// --- death ----------------------------------------------------------------------------------------------------------

CASE(peer_of_a_killed_process_exceeds_retries) {
    Node a;
    std::unique_ptr<End> b = make_far({});
    const Address at_b = b->address();
    b->connect(a.address(), reversed({}));
    a.connect(at_b);
    a.qp.post(write(1, a.memory.sge(0, 8), at_b.remote()));
    a.scq.expect(1);
    a.qp.receive(5, a.memory.sge(0, 8));
    kill_far(*b);
    a.qp.post({write(2, a.memory.sge(0, 8), at_b.remote()), read(3, a.memory.sge(8, 8), at_b.remote())});
    a.scq.expect(2, IBV_WC_RETRY_EXC_ERR);
    a.scq.expect(3, IBV_WC_WR_FLUSH_ERR);
    a.rcq.expect(5, IBV_WC_WR_FLUSH_ERR);
    a.memory.check_untouched(8, 8);
}

CASE(process_killed_in_a_transfer_leaves_the_subnet_usable) {
    for (int round = 0; round < 3; ++round) {
        Shape shape;
        shape.bytes = 2 << 20;
        Node a(shape);
        std::unique_ptr<End> b = make_far(shape);
        const Address at_b = b->address();
        b->connect(a.address(), reversed({}));
        a.connect(at_b);
        for (std::uint64_t id = 0; id < 32; ++id)
            a.qp.post(id % 2 == 0 ? write(id, a.memory.sge(), at_b.remote()) : read(id, a.memory.sge(), at_b.remote()));
        a.scq.expect(0);
        kill_far(*b);
        bool failed = false;
        for (std::uint64_t id = 1; id < 32; ++id) {
            const ibv_wc wc = a.scq.wait();
            CHECK_EQ(wc.wr_id, id);
            if (failed) CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
            else CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_RETRY_EXC_ERR);
            failed |= wc.status != IBV_WC_SUCCESS;
        }
    }
    Pair pair;
    pair.exchange(1);
}

CASE(receiver_killed_before_it_polls_its_completions_does_not_block_the_sender) {
    Node a;
    std::unique_ptr<End> b = make_far({});
    const Address at_b = b->address();
    b->connect(a.address(), reversed({}));
    a.connect(at_b);
    for (std::uint64_t id = 0; id < 20; ++id) b->receive(id, 0, 8);
    for (std::uint64_t id = 0; id < 10; ++id) a.qp.post(send(id, a.memory.sge(0, 8)));
    for (std::uint64_t id = 0; id < 10; ++id) a.scq.expect(id);
    kill_far(*b);
    a.qp.post(send(10, a.memory.sge(0, 8)));
    a.scq.expect(10, IBV_WC_RETRY_EXC_ERR);
}

CASE(killed_processes_give_back_what_they_held) {
    for (int round = 0; round < 20; ++round) {
        std::unique_ptr<End> b = make_far({});
        b->address();
        kill_far(*b);
    }
    std::unique_ptr<End> b = make_far({});
    Node a;
    b->connect(a.address(), reversed({}));
    a.connect(b->address());
    b->receive(1, 0, 64);
    a.memory.fill(1, 0, 64);
    a.qp.post(send(1, a.memory.sge(0, 64)));
    a.scq.expect(1);
    b->expect_receive(1);
    b->check(1, 0, 64);
}

// Packets to the queue pair number of a killed process must not reach a queue pair of a new process on that host.
CASE(successor_of_a_killed_process_is_not_mistaken_for_it) {
    Node a;
    std::unique_ptr<End> old = make_far({});
    const Address at_old = old->address();
    old->connect(a.address(), reversed({}));
    a.connect(at_old);
    kill_far(*old);
    std::unique_ptr<End> successor = make_far({});
    successor->connect(a.address(), reversed({}));
    a.qp.post(write(1, a.memory.sge(0, 8), at_old.remote()));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    successor->check_untouched(0, 64);
}

CASE(process_killed_by_a_fault_is_gone) {
    Node a;
    std::unique_ptr<End> b = make_far({});
    const Address at_b = b->address();
    b->connect(a.address(), reversed({}));
    a.connect(at_b);
    tool({"fault", b->port_name(), "kill-process", "--count", "1"});
    a.qp.post(write(1, a.memory.sge(0, 8), at_b.remote()));
    a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    kill_far(*b);  // already killed by the fault: only waits for the process
}

CASE(process_that_ends_without_destroying_anything_is_as_good_as_dead) {
    Node a;
    Process process("leaves_everything_open", "h1");
    const auto at = process.channel().get<Address>();
    process.channel().put(a.address());
    a.connect(at);
    // Wait until the peer is connected: on a busy machine the retries could be exhausted before that.
    process.channel().get<char>();
    a.qp.post(write(1, a.memory.sge(0, 8), at.remote()));
    a.scq.expect(1);
    CHECK_EQ(process.finish(), 0);
    a.qp.post(write(2, a.memory.sge(0, 8), at.remote()));
    a.scq.expect(2, IBV_WC_RETRY_EXC_ERR);
}

namespace {
ROLE(leaves_everything_open) {
    Node* node = new Node;
    channel.put(node->address());
    node->connect(channel.get<Address>(), reversed({}));
    char c = 0;
    channel.put(c);
    channel.try_get(c);
    _exit(0);
}
}  // namespace

// --- many -----------------------------------------------------------------------------------------------------------

CASE(two_thousand_queue_pairs_work) {
    constexpr std::size_t kPairs = 1000;
    const Context context_a, context_b(-1);
    if (context_a.device().max_qp < 2100) skip("the device supports fewer than 2100 queue pairs");
    const Pd pd_a(context_a), pd_b(context_b);
    const Cq cq_a(context_a, 4096), cq_b(context_b, 4096);
    Memory from(pd_a, kPairs * 64), to(pd_b, kPairs * 64);
    const QpShape shape{IBV_QPT_RC, 4, 4, 1, 0, 0};
    std::vector<std::unique_ptr<Qp>> a, b;
    for (std::size_t i = 0; i < kPairs; ++i) {
        a.push_back(std::make_unique<Qp>(pd_a, cq_a, cq_a, shape));
        b.push_back(std::make_unique<Qp>(pd_b, cq_b, cq_b, shape));
    }
    Address at_a = address_of(context_a, *a[0]), at_b = address_of(context_b, *b[0]);
    for (std::size_t i = 0; i < kPairs; ++i) {
        at_a.qpn = a[i]->number();
        at_b.qpn = b[i]->number();
        connect(context_b, *b[i], at_a, reversed({}));
        connect(context_a, *a[i], at_b);
    }
    for (std::size_t i = 0; i < kPairs; ++i) {
        from.fill(i, i * 64, 64);
        b[i]->receive(i, to.sge(i * 64, 64));
        a[i]->post(send(i, from.sge(i * 64, 64)));
    }
    std::vector<int> sent(kPairs), received(kPairs);
    for (std::size_t i = 0; i < kPairs; ++i) {
        const ibv_wc one = cq_a.wait(), two = cq_b.wait();
        CHECK_EQ(one.status, IBV_WC_SUCCESS);
        CHECK_EQ(two.status, IBV_WC_SUCCESS);
        ++sent[one.wr_id];
        ++received[two.wr_id];
        CHECK_EQ(two.qp_num, b[two.wr_id]->number());
    }
    for (std::size_t i = 0; i < kPairs; ++i) {
        CHECK_EQ(sent[i], 1);
        CHECK_EQ(received[i], 1);
        to.check(i, i * 64, 64);
    }
}

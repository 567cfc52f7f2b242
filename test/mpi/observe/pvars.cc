// SPDX-License-Identifier: BSD-3-Clause
// The MPI_T performance variables of pml/coop count the messages of the program. Only for pml/coop.
#include "mpi_test.h"
#include "sizes.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

struct Traffic {
    Variable eager_messages{"messages_eager"}, eager_bytes{"bytes_eager"};
    Variable send{"messages_send"}, rput{"messages_rput"}, rget{"messages_rget"}, coop{"messages_coop"},
        rtr{"messages_rtr"}, bounce{"messages_bounce"}, lane{"messages_lane"};
    Variable send_bytes{"bytes_send"}, rput_bytes{"bytes_rput"}, rget_bytes{"bytes_rget"}, coop_bytes{"bytes_coop"},
        rtr_bytes{"bytes_rtr"}, bounce_bytes{"bytes_bounce"}, lane_bytes{"bytes_lane"};

    // Short messages use the lane from its opening on.
    unsigned long long eager() const { return eager_messages.read() + lane.read(); }
    unsigned long long all_eager_bytes() const { return eager_bytes.read() + lane_bytes.read(); }
    unsigned long long rendezvous() const {
        return send.read() + rput.read() + rget.read() + coop.read() + rtr.read() + bounce.read();
    }
    unsigned long long rendezvous_bytes() const {
        return send_bytes.read() + rput_bytes.read() + rget_bytes.read() + coop_bytes.read() + rtr_bytes.read() +
               bounce_bytes.read();
    }
};

void send(const mpitest::Env& env, int to, int tag, std::size_t n) {
    const Bytes data(n);
    MPI_Send(data.data(), as_int(n), MPI_BYTE, to, tag, env.comm);
}

void receive(const mpitest::Env& env, int from, int tag, std::size_t n) {
    Bytes data(n);
    MPI_Recv(data.data(), as_int(n), MPI_BYTE, from, tag, env.comm, MPI_STATUS_IGNORE);
}

}  // namespace

CASE(messages_and_bytes_are_counted_by_protocol) {
    if (env.rank > 1) return;
    const Traffic traffic;
    const auto eager = traffic.eager(), bytes = traffic.all_eager_bytes();
    const auto rendezvous = traffic.rendezvous(), large_bytes = traffic.rendezvous_bytes();
    if (env.rank == 0) {
        for (int i = 0; i < 10; ++i) send(env, 1, 1, 100);
        for (int i = 0; i < 3; ++i) send(env, 1, 2, sizes::kRendezvous);
        CHECK_EQ(traffic.eager() - eager, 10);
        CHECK_EQ(traffic.all_eager_bytes() - bytes, 10 * 100);
        CHECK_EQ(traffic.rendezvous() - rendezvous, 3);
        CHECK_EQ(traffic.rendezvous_bytes() - large_bytes, 3 * sizes::kRendezvous);
        receive(env, 1, 3, 0);
    } else {
        for (int i = 0; i < 10; ++i) receive(env, 0, 1, 100);
        for (int i = 0; i < 3; ++i) receive(env, 0, 2, sizes::kRendezvous);
        // The sender counts messages, the receiver does not.
        CHECK_EQ(traffic.eager() - eager, 0);
        CHECK_EQ(traffic.rendezvous() - rendezvous, 0);
        send(env, 0, 3, 0);
    }
}

CASE(unexpected_messages_are_counted_while_they_wait) {
    if (env.rank > 1) return;
    const Variable now("unexpected_now"), high("unexpected_high");
    constexpr int kMessages = 60;
    if (env.rank == 0) {
        receive(env, 1, 0, 0);  // rank 1 has read the variable
        for (int i = 0; i < kMessages; ++i) send(env, 1, i, 8);
        send(env, 1, kMessages, 0);
        receive(env, 1, 0, 0);  // no further message, not even a barrier, until rank 1 is done
    } else {
        const auto before = now.read();
        send(env, 0, 0, 0);
        receive(env, 0, kMessages, 0);  // by now the others have all arrived
        CHECK_EQ(now.read() - before, kMessages);
        CHECK(high.read() >= before + kMessages);
        for (int i = kMessages; i-- > 0;) {
            receive(env, 0, i, 8);
            CHECK_EQ(now.read() - before, i);
        }
        send(env, 0, 0, 0);
    }
}

CASE(rendezvous_in_flight_go_up_and_down) {
    if (env.rank > 1) return;
    const Variable now("rendezvous_now"), high("rendezvous_high");
    const auto before = now.read();
    constexpr std::size_t kMessages = 5;
    std::vector<Bytes> data(kMessages, Bytes(sizes::kRendezvous));
    std::vector<MPI_Request> requests(kMessages);
    if (env.rank == 0) {
        for (std::size_t i = 0; i < kMessages; ++i)
            MPI_Isend(data[i].data(), as_int(data[i].size()), MPI_BYTE, 1, as_int(i), env.comm, &requests[i]);
        CHECK_EQ(now.read() - before, kMessages);  // nothing is received yet
        send(env, 1, 100, 0);
    } else {
        receive(env, 0, 100, 0);
        for (std::size_t i = 0; i < kMessages; ++i)
            MPI_Irecv(data[i].data(), as_int(data[i].size()), MPI_BYTE, 0, as_int(i), env.comm, &requests[i]);
    }
    MPI_Waitall(as_int(kMessages), requests.data(), MPI_STATUSES_IGNORE);
    if (env.rank == 0) CHECK(high.read() >= before + kMessages);
    MPI_Barrier(env.comm);
    CHECK_EQ(now.read(), before);
}

CASE(retries_are_counted_by_reason) {
    // With an argument: pml_coop_fault makes the transport refuse every third packet.
    const Variable busy("retries_send_busy"), register_("retries_register");
    const auto before = busy.read();
    for (int i = 0; i < 30; ++i) {
        const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
        Bytes out(2000), in(2000);
        MPI_Sendrecv(out.data(), 2000, MPI_BYTE, to, 1, in.data(), 2000, MPI_BYTE, from, 1, env.comm,
                     MPI_STATUS_IGNORE);
    }
    const auto retries = busy.read() - before;
    if (mpitest::settings().arguments.empty()) CHECK_EQ(retries, 0);
    else CHECK(retries >= 5);
    CHECK_EQ(register_.read(), 0);
}

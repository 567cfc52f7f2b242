// SPDX-License-Identifier: BSD-3-Clause
// Messages inside a node: rows WISH [refused|both]. WISH is the value of pml_coop_protocol; the row of a message is the
// protocol that was used for it (coop/rndv/rows). Each send call meets each receive call at each size. Every byte is
// checked, and that the row is the one for the wish and the calls. With "refused" the transport refuses operations
// (pml_coop_fault), and only the data is checked; with "both" it refuses all gets and puts. Two ranks. Only for
// pml/coop.
#include <unistd.h>

#include <map>
#include <memory>

#include "bsend_buffer.h"
#include "mpi_test.h"
#include "sizes.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

const std::string& wish() { return mpitest::settings().arguments.at(0); }
bool refused() { return mpitest::settings().arguments.size() > 1; }

constexpr int kTag = 3, kReady = 4;
constexpr unsigned char kGuard = 0x5a;
constexpr std::size_t kGuardBytes = 64;

enum class Send { kSend, kIsend, kBsend, kSsend, kRsend };
enum class Recv { kRecv, kIrecv };
constexpr Send kSends[] = {Send::kSend, Send::kIsend, Send::kBsend, Send::kSsend, Send::kRsend};
constexpr Recv kRecvs[] = {Recv::kRecv, Recv::kIrecv};

// If the receive is posted before the send, it may be offered.
enum class Order { kReceiveFirst, kSendFirst };
constexpr Order kOrders[] = {Order::kReceiveFirst, Order::kSendFirst};

std::vector<std::size_t> sizes_to_try() {
    if (refused()) return {4096, 40000, 65537, (1 << 20) + 1};
    return {1, 4023, 4024, 4025, 4096, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 262143, (1 << 20) + 1};
}

void token(const mpitest::Env& env, int to) { MPI_Send(nullptr, 0, MPI_BYTE, to, kReady, env.comm); }
void await_token(const mpitest::Env& env, int from) {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, kReady, env.comm, MPI_STATUS_IGNORE);
}

// Gives the other side time to enter its call.
void pause_ms(unsigned ms) { usleep(ms * 1000); }

void send(Send call, const Bytes& data, int to, const mpitest::Env& env) {
    const int n = as_int(data.size());
    switch (call) {
    case Send::kSend: CHECK_MPI(MPI_Send(data.data(), n, MPI_BYTE, to, kTag, env.comm)); break;
    case Send::kSsend: CHECK_MPI(MPI_Ssend(data.data(), n, MPI_BYTE, to, kTag, env.comm)); break;
    case Send::kRsend: CHECK_MPI(MPI_Rsend(data.data(), n, MPI_BYTE, to, kTag, env.comm)); break;
    case Send::kBsend: {
        const BsendBuffer buffer(data.size());
        CHECK_MPI(MPI_Bsend(data.data(), n, MPI_BYTE, to, kTag, env.comm));
        break;
    }
    case Send::kIsend: {
        MPI_Request request;
        CHECK_MPI(MPI_Isend(data.data(), n, MPI_BYTE, to, kTag, env.comm, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    }
    }
}

// Returns MPI's error code; `bytes` is the room for the message.
int receive(Recv call, Order order, Bytes& data, std::size_t bytes, int from, const mpitest::Env& env,
            MPI_Status& status) {
    const int n = as_int(bytes);
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    if (call == Recv::kIrecv) {
        MPI_Request request;
        if (order == Order::kSendFirst) pause_ms(1);
        MPI_Irecv(data.data(), n, MPI_BYTE, from, kTag, env.comm, &request);
        if (order == Order::kReceiveFirst) token(env, from);
        return MPI_Wait(&request, &status);
    }
    if (order == Order::kReceiveFirst) token(env, from);
    else pause_ms(1);
    return MPI_Recv(data.data(), n, MPI_BYTE, from, kTag, env.comm, &status);
}

// One message from `from` to `to`; the buffer has `room` bytes for it.
void one_message(const mpitest::Env& env, int from, int to, Send s, Recv r, Order order, std::size_t bytes,
                 std::size_t room) {
    const std::uint64_t key = pattern::key(
        {bytes, static_cast<std::uint64_t>(s), static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(order)});
    if (env.rank == from) {
        Bytes data(bytes);
        pattern::fill(key, 0, data.data(), bytes);
        if (order == Order::kReceiveFirst) {
            await_token(env, to);
            if (r == Recv::kRecv) pause_ms(1);
        }
        send(s, data, to, env);
        CHECK_PATTERN(key, data.data(), bytes);
    } else if (env.rank == to) {
        Bytes data(room + kGuardBytes, kGuard);
        MPI_Status status;
        const int rc = receive(r, order, data, room, from, env, status);
        if (bytes > room) CHECK_ERROR(rc, MPI_ERR_TRUNCATE);
        else CHECK_MPI(rc);
        const std::size_t landed = std::min(bytes, room);
        CHECK_PATTERN(key, data.data(), landed);
        CHECK_UNTOUCHED(kGuard, data.data() + landed, data.size() - landed);
        CHECK_EQ(status.MPI_SOURCE, from);
        CHECK_EQ(status.MPI_TAG, kTag);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (bytes <= room) CHECK_EQ(count, bytes);
    }
}

// The rows of this process's messages.
class Rows {
public:
    Rows() {
        for (const char* row : {"eager", "send", "rput", "rget", "coop", "rtr", "bounce"})
            variables_[row] = std::make_unique<Variable>(std::string("messages_") + row);
        note();
    }
    void note() {
        for (const auto& [row, variable] : variables_) before_[row] = variable->read();
    }
    std::uint64_t since(const std::string& row) const { return variables_.at(row)->read() - before_.at(row); }
    std::uint64_t rendezvous() const {
        return since("send") + since("rput") + since("rget") + since("coop") + since("rtr") + since("bounce");
    }
    std::string text() const {
        std::string words;
        for (const auto& [row, variable] : variables_) words += row + " " + std::to_string(since(row)) + ", ";
        return words;
    }

private:
    std::map<std::string, std::unique_ptr<Variable>> variables_;
    std::map<std::string, std::uint64_t> before_;
};

// The message must use one of the returned rows. (coop_coll: Cooperative Rendezvous Protocols, Table II. hybrid: for
// two ranks with a core each.)
std::vector<std::string> rows_wanted(Send s, Recv r, Order order) {
    const bool sender_waits = s == Send::kSend || s == Send::kSsend || s == Send::kRsend;
    if (wish() == "coop" || wish() == "coop_fixed") return {"coop"};
    if (wish() == "coop_load") return {"rget", "rput"};  // no rank has anything else to copy: they take turns
    if (wish() == "coop_coll") {
        std::vector<std::string> rows;
        if (r == Recv::kRecv) rows = {sender_waits ? "coop" : "rget"};
        else rows = {s == Send::kIsend ? "coop" : "rput"};
        if (s == Send::kRsend && order == Order::kReceiveFirst) rows.push_back("rtr");
        return rows;
    }
    if (wish() == "hybrid") {
        if (order == Order::kReceiveFirst && r == Recv::kIrecv) return {"rtr"};
        return {"coop", "rtr"};  // either side may be first: on a busy machine a pause does not ensure the order
    }
    return {wish()};
}

}  // namespace

CASE(messages_arrive_whole_whatever_the_calls) {
    for (std::size_t bytes : sizes_to_try())
        for (Send s : kSends)
            for (Recv r : kRecvs)
                for (Order order : kOrders) {
                    if (s == Send::kRsend && order == Order::kSendFirst) continue;
                    one_message(env, 0, 1, s, r, order, bytes, bytes);
                    one_message(env, 1, 0, s, r, order, bytes, bytes + 1000);
                }
}

CASE(long_messages_arrive_whole) {
    if (refused()) return;
    for (std::size_t bytes : {std::size_t{5} << 20, (std::size_t{5} << 20) + 4097})
        for (Recv r : kRecvs)
            for (Send s : {Send::kSend, Send::kIsend})
                for (Order order : kOrders) one_message(env, 0, 1, s, r, order, bytes, bytes);
}

CASE(both_ways_at_once_messages_arrive_whole) {
    for (std::size_t bytes : {std::size_t{40000}, std::size_t{70001}, std::size_t{1} << 20})
        for (int n : {1, 5}) {
            const int other = 1 - env.rank;
            std::vector<Bytes> in(static_cast<std::size_t>(n), Bytes(bytes)),
                out(static_cast<std::size_t>(n), Bytes(bytes));
            std::vector<MPI_Request> requests;
            for (int i = 0; i < n; ++i)
                MPI_Irecv(in[static_cast<std::size_t>(i)].data(), as_int(bytes), MPI_BYTE, other, i, env.comm,
                          &requests.emplace_back());
            for (int i = 0; i < n; ++i) {
                Bytes& data = out[static_cast<std::size_t>(i)];
                pattern::fill(
                    pattern::key({bytes, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(env.rank)}), 0,
                    data.data(), bytes);
                MPI_Isend(data.data(), as_int(bytes), MPI_BYTE, other, i, env.comm, &requests.emplace_back());
            }
            MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < n; ++i)
                CHECK_PATTERN(pattern::key({bytes, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(other)}),
                              in[static_cast<std::size_t>(i)].data(), bytes);
        }
}

CASE(messages_longer_than_the_buffer_are_cut) {
    for (std::size_t room : {std::size_t{0}, std::size_t{100}, std::size_t{40000}, std::size_t{70000}})
        for (std::size_t bytes : {std::size_t{70001}, (std::size_t{1} << 20) + 1})
            for (Send s : {Send::kSend, Send::kIsend, Send::kSsend})
                for (Recv r : kRecvs)
                    for (Order order : kOrders) one_message(env, 0, 1, s, r, order, bytes, room);
}

CASE(the_row_is_the_one_asked_for) {
    if (refused()) return;
    Rows rows;
    for (std::size_t bytes : {std::size_t{70000}, std::size_t{1} << 20})
        for (Send s : kSends)
            for (Recv r : kRecvs)
                for (Order order : kOrders) {
                    if (s == Send::kRsend && order == Order::kSendFirst) continue;
                    rows.note();
                    // The row also depends on what both sides still have to copy or send: let both be idle first.
                    MPI_Barrier(env.comm);
                    one_message(env, 0, 1, s, r, order, bytes, bytes);
                    if (env.rank != 0) continue;
                    std::uint64_t taken = 0;
                    for (const std::string& row : rows_wanted(s, r, order)) taken += rows.since(row);
                    if (taken != 1 || rows.rendezvous() != 1)
                        mpitest::fail(__FILE__, __LINE__,
                                      "send call " + std::to_string(static_cast<int>(s)) + ", receive call " +
                                          std::to_string(static_cast<int>(r)) + ", order " +
                                          std::to_string(static_cast<int>(order)) + ", " + std::to_string(bytes) +
                                          " bytes: " + rows.text());
                }
}

CASE(each_side_copies_what_its_row_says) {
    if (refused() || wish() == "send") return;
    const Variable copied("copied_bytes");
    constexpr std::size_t kBytes = 4 << 20;
    MPI_Barrier(env.comm);
    const std::uint64_t before = copied.read();
    one_message(env, 0, 1, Send::kSend, Recv::kRecv, Order::kSendFirst, kBytes, kBytes);
    MPI_Barrier(env.comm);
    const std::uint64_t mine = copied.read() - before;
    std::uint64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, env.comm);
    CHECK_EQ(all, kBytes);  // each byte once
    if (wish() == "coop_load") CHECK(mine == 0 || mine == kBytes);
    if (wish() == "rget") CHECK_EQ(mine, env.rank == 1 ? kBytes : 0);
    if (wish() == "rput") CHECK_EQ(mine, env.rank == 0 ? kBytes : 0);
    if (wish() == "coop_fixed") CHECK_EQ(mine, kBytes / 2);
}

CASE(by_load_each_side_copies_half_of_the_messages) {
    if (refused() || wish() != "coop_load") return;
    const Variable copied("copied_bytes");
    constexpr std::size_t kBytes = 1 << 20;
    const auto one_way = [&](int messages) {
        for (int i = 0; i < messages; ++i)
            one_message(env, 0, 1, Send::kSend, Recv::kRecv, Order::kReceiveFirst, kBytes, kBytes);
        MPI_Barrier(env.comm);
    };
    one_way(12);  // balances what earlier cases left
    const std::uint64_t before = copied.read();
    one_way(40);
    CHECK_EQ((copied.read() - before) / kBytes, 20);
}

// Under "get:1,put:1" a cooperative copy ends as fragments.
CASE(transfers_refused_on_both_sides_use_fragments) {
    if (!refused() || mpitest::settings().arguments[1] != "both") return;
    Rows rows;
    for (Order order : kOrders)
        for (Recv r : kRecvs) one_message(env, 0, 1, Send::kSend, r, order, 200000, 200000);
    if (env.rank != 0) return;
    CHECK_EQ(rows.since("send"), 4);
    CHECK_EQ(rows.rendezvous(), 4);
}

// SPDX-License-Identifier: BSD-3-Clause
// Messages through the lane: lane [refused | small_ring | found | denied | offers]. With "refused" operations are refused
// (pml_coop_fault), or there is no lane between some processes, and only the data is checked. With "found" lane_max is -1,
// and with "denied" the kernel denies copies, too. With "offers" lane_read_min is 0. Two or more ranks. Only for pml/coop, with pml_coop_lane 1,
// pml_coop_lane_after 0, and lane_small_max and lane_max as below.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include <unistd.h>

#include "lane_message.h"
#include "mpi_test.h"
#include "sizes.h"
#include "variable.h"

namespace {

constexpr std::size_t kWholeMax = 8192, kLaneMax = 131072;

mpitest::Configure configure([](mpitest::Settings& s) { s.hang_seconds = 200; });

// Lengths around each switch: empty, one cache line, one packet, several, the last of the lane, beyond it.
const std::vector<std::size_t>& lengths() {
    static const std::vector<std::size_t> all = [] {
        std::vector<std::size_t> made;
        for (std::size_t i = 0; i <= 130; ++i) made.push_back(i);
        for (const std::size_t around :
             {std::size_t{512}, std::size_t{4024}, std::size_t{4096}, kWholeMax - 64, kWholeMax, 2 * kWholeMax,
              3 * kWholeMax, std::size_t{32768}, std::size_t{65536}, kLaneMax})
            for (std::size_t i = around - 3; i <= around + 3; ++i) made.push_back(i);
        made.push_back(1 << 20);
        return made;
    }();
    return all;
}
std::size_t length_of(int i) { return lengths()[static_cast<std::size_t>(i * 31) % lengths().size()]; }

int send_by(int how, const Message& m, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    switch (how % 4) {
    case 0: return MPI_Send(m.data.data(), as_int(m.bytes()), MPI_BYTE, to, tag, comm);
    case 1: return MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, to, tag, comm, request);
    case 2: return MPI_Ssend(m.data.data(), as_int(m.bytes()), MPI_BYTE, to, tag, comm);
    default: return MPI_Issend(m.data.data(), as_int(m.bytes()), MPI_BYTE, to, tag, comm, request);
    }
}

void exchange_windows(const mpitest::Env& env, int window, int rounds, std::size_t most) {
    const int peer = env.rank ^ 1;
    if (peer >= env.size) return;
    for (int round = 0; round < rounds; ++round) {
        std::vector<Message> out, in;
        std::vector<MPI_Request> requests(static_cast<std::size_t>(2 * window));
        for (int i = 0; i < window; ++i) {
            const std::size_t bytes = std::min(length_of(i + round), most);
            out.emplace_back(bytes, key_of(env.rank, peer, i));
            out.back().fill();
            in.emplace_back(bytes, key_of(peer, env.rank, i));
        }
        for (int i = 0; i < window; ++i)
            MPI_Irecv(in[static_cast<std::size_t>(i)].data.data(), as_int(in[static_cast<std::size_t>(i)].bytes()),
                      MPI_BYTE, peer, 3, env.comm, &requests[static_cast<std::size_t>(i)]);
        for (int i = 0; i < window; ++i)
            MPI_Isend(out[static_cast<std::size_t>(i)].data.data(), as_int(out[static_cast<std::size_t>(i)].bytes()),
                      MPI_BYTE, peer, 3, env.comm, &requests[static_cast<std::size_t>(window + i)]);
        CHECK_MPI(MPI_Waitall(2 * window, requests.data(), MPI_STATUSES_IGNORE));
        for (const Message& m : in) m.check();
    }
}

}  // namespace

CASE(short_and_medium_messages_take_the_lane_and_long_ones_do_not) {
    if (refused() || env.rank > 1) return;
    const Variable lane("messages_lane");
    for (const std::size_t bytes : {std::size_t{0}, kWholeMax, kWholeMax + 1, kLaneMax, kLaneMax + 1}) {
        const auto before = lane.read();
        Message m(bytes, 7);
        MPI_Status status;
        if (env.rank == 0) {
            m.fill();
            CHECK_MPI(MPI_Send(m.data.data(), as_int(bytes), MPI_BYTE, 1, 1, env.comm));
            CHECK_EQ(lane.read() - before, bytes <= kLaneMax ? 1 : 0);
        } else {
            CHECK_MPI(MPI_Recv(m.data.data(), as_int(bytes), MPI_BYTE, 0, 1, env.comm, &status));
            m.check();
        }
    }
}

// A limit that is found is at most kLaneMax.
CASE(a_limit_is_found_from_the_first_long_messages) {
    if ((!told("found") && !told("denied")) || env.rank > 1) return;
    const Variable lane("messages_lane"), limit("lane_limit"), unwaited("lane_unwaited_limit"), rate("lane_rate"),
        alone("lane_alone_limit"), offers_from("lane_offers_from"), offers_to("lane_offers_to"),
        kernel("kernel_copy_call");
    const auto send = [&](std::size_t bytes) {
        Message m(bytes, 9);
        const auto before = lane.read();
        if (env.rank == 0) m.fill();
        if (env.rank == 0) CHECK_MPI(MPI_Send(m.data.data(), as_int(bytes), MPI_BYTE, 1, 1, env.comm));
        else CHECK_MPI(MPI_Recv(m.data.data(), as_int(bytes), MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE));
        if (env.rank == 1) m.check();
        return lane.read() - before;
    };
    // The kernel copies the first ones, until they are worth a longer ring. From then on, until a limit is found, messages go
    // through the lane, which is how it is found.
    bool through_lane = told("denied");
    for (int i = 0; i < 100; ++i) {
        const bool is_known = limit.read() != 0;
        const auto sent = send(65536);
        if (!is_known && env.rank == 0) CHECK(sent == 1 || !through_lane);
        if (i == 0 && env.rank == 0) CHECK_EQ(sent == 1, through_lane);
        through_lane |= sent == 1;
    }
    if (env.rank == 0) CHECK(through_lane);
    std::uint64_t found = limit.read();
    if (env.rank == 0) {
        CHECK(found >= kWholeMax && found <= kLaneMax && unwaited.read() >= kWholeMax && unwaited.read() <= kLaneMax);
        CHECK(rate.read() > 0);
        CHECK_EQ(kernel.read() == 0, told("denied"));
        if (told("denied")) CHECK_EQ(found, kLaneMax);
    }
    MPI_Bcast(&found, 1, MPI_UINT64_T, 0, env.comm);
    const auto below = send(found), above = send(found + 1);
    if (env.rank == 0) CHECK_EQ(below, 1);
    if (env.rank == 0 && (found < offers_from.read() || found >= offers_to.read())) CHECK_EQ(above, 0);

    // Of two messages that nobody waits for, the receiver reads the first one.
    if (env.rank == 0) found = alone.read() < unwaited.read() ? alone.read() + 1 : 0;
    MPI_Bcast(&found, 1, MPI_UINT64_T, 0, env.comm);
    if (found == 0) return;
    Message first(found, 10), second(found, 11);
    MPI_Request requests[2];
    if (env.rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, env.comm, MPI_STATUS_IGNORE);
        first.fill();
        second.fill();
        const auto before = lane.read();
        MPI_Isend(first.data.data(), as_int(found), MPI_BYTE, 1, 1, env.comm, &requests[0]);
        CHECK_EQ(lane.read() - before, 0);
        MPI_Isend(second.data.data(), as_int(found), MPI_BYTE, 1, 1, env.comm, &requests[1]);
        CHECK_EQ(lane.read() - before, 1);
    } else {
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, env.comm);
        MPI_Irecv(first.data.data(), as_int(found), MPI_BYTE, 0, 1, env.comm, &requests[0]);
        MPI_Irecv(second.data.data(), as_int(found), MPI_BYTE, 0, 1, env.comm, &requests[1]);
    }
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    if (env.rank == 1) first.check();
    if (env.rank == 1) second.check();
}

// A send does not depend on calls of its receiver. If it did, this case would never end: the receiver computes until the
// sender has sent. The sender withdraws the first offer, and does not offer the next four messages.
CASE(a_send_ends_while_its_receiver_computes) {
    if (!told("offers") || env.rank > 1) return;
    constexpr int kMessages = 12;
    std::array<char, 64> name{};
    if (env.rank == 0) std::snprintf(name.data(), name.size(), "/tmp/coop_lane_test.%d", static_cast<int>(getpid()));
    MPI_Bcast(name.data(), as_int(name.size()), MPI_CHAR, 0, env.comm);
    const std::string computes = std::string(name.data()) + ".computes";
    const auto await_file = [](const std::string& path) {
        while (unlink(path.c_str()) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    for (int i = 0; i < kMessages; ++i) {
        Message m(i % 2 == 0 ? 3000 : 16384, key_of(0, 1, i));
        char answer = 0;
        if (env.rank == 0) {
            m.fill();
            await_file(computes);
            CHECK_MPI(MPI_Send(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, i, env.comm));
            std::fill(m.data.begin(), m.data.end(), 0);  // the message must not be read from here any more
            std::ofstream(name.data()).put('x');
            CHECK_MPI(MPI_Recv(&answer, 1, MPI_CHAR, 1, i, env.comm, MPI_STATUS_IGNORE));
        } else {
            const bool is_posted = i % 3 != 0;
            MPI_Request request;
            if (is_posted) MPI_Irecv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, i, env.comm, &request);
            std::ofstream(computes).put('x');
            await_file(name.data());
            if (is_posted) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
            else CHECK_MPI(MPI_Recv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, i, env.comm, MPI_STATUS_IGNORE));
            m.check();
            CHECK_MPI(MPI_Send(&answer, 1, MPI_CHAR, 0, i, env.comm));
        }
    }
}

// The kernel may refuse both of two offers that cross: each process then waits for the other one's payload.
CASE(both_send_at_once_and_wait) {
    if (!told("refused") || env.rank > 1) return;
    const int peer = 1 - env.rank;
    for (int i = 0; i < 3000; ++i) {
        Message out(2048 + static_cast<std::size_t>(i % 7) * 4000, key_of(env.rank, peer, i)),
            in(out.bytes(), key_of(peer, env.rank, i));
        MPI_Request request;
        out.fill();
        MPI_Irecv(in.data.data(), as_int(in.bytes()), MPI_BYTE, peer, 6, env.comm, &request);
        CHECK_MPI(MPI_Send(out.data.data(), as_int(out.bytes()), MPI_BYTE, peer, 6, env.comm));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        in.check();
    }
}

// Messages wait for room in the ring, and the limits for messages in one packet change meanwhile.
CASE(messages_wait_while_the_ring_becomes_longer) {
    if (!told("found") || env.rank > 1) return;
    const int kMessages = 500;
    const std::size_t lengths_of_turn[] = {4096, 6144, 4096, 5000, 8192, 6144, 16384, 65536};
    for (int round = 0; round < 6; ++round) {
        std::vector<Message> all;
        std::vector<MPI_Request> requests;
        for (int i = 0; i < kMessages; ++i) {
            // First what fills any ring.
            all.emplace_back(i < 300 - 40 * round ? 4096 : lengths_of_turn[i % 8], key_of(0, 1, i));
            if (env.rank == 0) all.back().fill();
        }
        if (env.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (Message& m : all) {
            MPI_Request request;
            if (env.rank == 0) MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, 7, env.comm, &request);
            else MPI_Irecv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, 7, env.comm, &request);
            requests.push_back(request);
        }
        CHECK_MPI(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
        if (env.rank == 1)
            for (const Message& m : all) m.check();
    }
}

CASE(every_length_around_each_switch_by_every_call_both_ways) {
    const int peer = env.rank ^ 1;
    if (peer >= env.size) return;
    for (int how = 0; how < 8; ++how)
        for (std::size_t n = 0; n < lengths().size(); ++n) {
            Message out(lengths()[n], key_of(env.rank, peer, as_int(n))),
                in(lengths()[n], key_of(peer, env.rank, as_int(n)));
            out.fill();
            MPI_Request sent, got = MPI_REQUEST_NULL;
            const bool first = (env.rank & 1) == (how & 1), posted = how >= 4;
            const auto receive = [&] {
                CHECK_MPI(MPI_Recv(in.data.data(), as_int(in.bytes()), MPI_BYTE, peer, 5, env.comm, MPI_STATUS_IGNORE));
            };
            if (posted) MPI_Irecv(in.data.data(), as_int(in.bytes()), MPI_BYTE, peer, 5, env.comm, &got);
            else if (!first) receive();
            CHECK_MPI(send_by(how, out, peer, 5, env.comm, &sent));
            if (!posted && first) receive();
            MPI_Request both[] = {sent, got};
            CHECK_MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            in.check();
        }
}

CASE(windows_of_1_to_1000_messages_both_ways) {
    for (const int window : {1, 2, 3, 7, 16, 64, 200}) exchange_windows(env, window, 5, 1 << 20);
    exchange_windows(env, 1000, 2, 20000);
    exchange_windows(env, 1000, 2, 130);
}

// Messages wait in the rings, in memory and with their senders, and are received in another order.
CASE(a_flood_of_unexpected_messages) {
    constexpr int kMessages = 3000;
    if (env.rank > 1) return;
    std::vector<Message> all;
    std::vector<MPI_Request> requests(kMessages, MPI_REQUEST_NULL);
    for (int i = 0; i < kMessages; ++i) all.emplace_back(std::min<std::size_t>(length_of(i), 20000), key_of(0, 1, i));
    if (env.rank == 0) {
        for (int i = 0; i < kMessages; ++i) {
            Message& m = all[static_cast<std::size_t>(i)];
            m.fill();
            MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, i % 10, env.comm,
                      &requests[static_cast<std::size_t>(i)]);
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 1, 99, env.comm);
    } else {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 99, env.comm, MPI_STATUS_IGNORE);
        for (int tag = 9; tag >= 0; --tag)
            for (int i = tag; i < kMessages; i += 10) {
                Message& m = all[static_cast<std::size_t>(i)];
                MPI_Irecv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, tag, env.comm,
                          &requests[static_cast<std::size_t>(i)]);
            }
    }
    CHECK_MPI(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
    if (env.rank == 1)
        for (const Message& m : all) m.check();
}

// The receiver keeps what it has no receive for only up to a limit (4 MiB); it reads the rest from its sender.
CASE(nonblocking_messages_with_room_in_the_ring_are_complete_at_once) {
    constexpr int kMessages = 400;
    constexpr std::size_t kBytes = 32768, kMostKept = 4 << 20, kRing = 4 << 20;
    if (refused() || env.rank > 1) return;
    const Variable by_lane("bytes_lane");
    std::vector<Message> all;
    std::vector<MPI_Request> requests(kMessages, MPI_REQUEST_NULL);
    for (int i = 0; i < kMessages; ++i) all.emplace_back(kBytes, key_of(0, 1, i));
    if (env.rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 98, env.comm, MPI_STATUS_IGNORE);  // the ring has been read
        const auto before = by_lane.read();
        int done = 0;
        for (int i = 0; i < kMessages; ++i) {
            Message& m = all[static_cast<std::size_t>(i)];
            m.fill();
            MPI_Isend(m.data.data(), as_int(kBytes), MPI_BYTE, 1, i, env.comm, &requests[static_cast<std::size_t>(i)]);
            if (i == 0) MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
        }
        CHECK_EQ(done, 1);
        MPI_Send(nullptr, 0, MPI_BYTE, 1, kMessages, env.comm);
        CHECK(by_lane.read() - before >= kBytes);
        CHECK(by_lane.read() - before <= kMostKept + kRing + kBytes);
    } else {
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 98, env.comm);
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, kMessages, env.comm, MPI_STATUS_IGNORE);
        for (int i = kMessages - 1; i >= 0; --i) {
            Message& m = all[static_cast<std::size_t>(i)];
            MPI_Irecv(m.data.data(), as_int(kBytes), MPI_BYTE, 0, i, env.comm, &requests[static_cast<std::size_t>(i)]);
        }
    }
    CHECK_MPI(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
    if (env.rank == 1)
        for (const Message& m : all) m.check();
}

CASE(buffered_sends_return_whatever_the_receiver_does) {
    constexpr int kMessages = 60;
    if (env.rank > 1) return;
    Bytes attached(kMessages * (70000 + MPI_BSEND_OVERHEAD));
    if (env.rank == 0) {
        MPI_Buffer_attach(attached.data(), as_int(attached.size()));
        for (int i = 0; i < kMessages; ++i) {
            Message m(std::min<std::size_t>(length_of(i), 65536), key_of(0, 1, i));
            m.fill();
            CHECK_MPI(MPI_Bsend(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, 1, env.comm));
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 1, 99, env.comm);
        void* buffer;
        int size;
        MPI_Buffer_detach(&buffer, &size);
    } else {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 99, env.comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < kMessages; ++i) {
            Message m(std::min<std::size_t>(length_of(i), 65536), key_of(0, 1, i));
            CHECK_MPI(MPI_Recv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE));
            m.check();
        }
    }
}

// Everyone to rank 0, which takes whatever comes; messages of one source and tag keep their order.
CASE(wildcards_take_messages_of_all_lengths_in_order) {
    constexpr int kEach = 200;
    if (env.rank > 0) {
        for (int i = 0; i < kEach; ++i) {
            Message m(std::min<std::size_t>(length_of(i), 40000), key_of(env.rank, 0, i));
            m.fill();
            CHECK_MPI(MPI_Send(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, i % 2, env.comm));
        }
        return;
    }
    std::vector<int> next(static_cast<std::size_t>(env.size) * 2, 0);
    for (int n = 0; n < kEach * (env.size - 1); ++n) {
        MPI_Status status;
        Message m(40000, 0);
        CHECK_MPI(MPI_Recv(m.data.data(), 40000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status));
        int& of_both = next[static_cast<std::size_t>(status.MPI_SOURCE * 2 + status.MPI_TAG)];
        const int i = 2 * of_both++ + status.MPI_TAG;
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, std::min<std::size_t>(length_of(i), 40000));
        CHECK_PATTERN(key_of(status.MPI_SOURCE, 0, i), m.data.data(), static_cast<std::size_t>(count));
    }
}

CASE(a_receive_that_is_too_short_gets_what_fits) {
    if (env.rank > 1) return;
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 200; ++i) {
        const std::size_t bytes = std::max<std::size_t>(length_of(i), 1);
        const std::size_t room = static_cast<std::size_t>(i) * 7919 % bytes;
        Message m(bytes, key_of(0, 1, i));
        if (env.rank == 0) {
            m.fill();
            CHECK_MPI(MPI_Send(m.data.data(), as_int(bytes), MPI_BYTE, 1, 1, env.comm));
            continue;
        }
        MPI_Request request;
        MPI_Status status;
        if (i % 2) MPI_Probe(0, 1, env.comm, &status);
        MPI_Irecv(m.data.data(), as_int(room), MPI_BYTE, 0, 1, env.comm, &request);
        CHECK_ERROR(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
        CHECK_PATTERN(m.key, m.data.data(), room);
        CHECK_UNTOUCHED(0x5a, m.data.data() + room, bytes - room);
    }
}

// Rank 1 starts to receive after it has been told that the synchronous send is under way.
CASE(a_synchronous_send_waits_for_its_receive) {
    if (env.rank > 1) return;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kWholeMax, std::size_t{50000}}) {
        Message m(bytes, 5);
        if (env.rank == 0) {
            m.fill();
            MPI_Request request;
            MPI_Issend(m.data.data(), as_int(bytes), MPI_BYTE, 1, 1, env.comm, &request);
            for (int i = 0; i < 1000; ++i) {
                int done = 1;
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                CHECK_EQ(done, 0);
            }
            MPI_Send(nullptr, 0, MPI_BYTE, 1, 2, env.comm);
            CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 2, env.comm, MPI_STATUS_IGNORE);
            CHECK_MPI(MPI_Recv(m.data.data(), as_int(bytes), MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE));
            m.check();
        }
    }
}

CASE(probes_see_the_whole_length_and_matched_probes_take_the_message) {
    if (env.rank > 1) return;
    for (int i = 0; i < 200; ++i) {
        Message m(length_of(i), key_of(0, 1, i));
        if (env.rank == 0) {
            m.fill();
            CHECK_MPI(MPI_Send(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, i, env.comm));
            continue;
        }
        MPI_Status status;
        MPI_Message message;
        int count = -1;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, m.bytes());
        CHECK_EQ(status.MPI_TAG, i);
        MPI_Mprobe(0, MPI_ANY_TAG, env.comm, &message, &status);
        CHECK_MPI(MPI_Mrecv(m.data.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        m.check();
    }
}

// Every other int on one side, or both, with lengths that end inside of an element of the pieces.
// A call that waits looks at the lane, finds something each time, and still has to copy its long message. The stream ends
// when rank 0 has it.
CASE(a_stream_of_short_messages_does_not_hold_up_a_long_one) {
    constexpr int kMost = 400000, kLong = 1, kShort = 2, kStop = 3, kCount = 4, kReady = 5;
    if (env.rank > 1) return;
    Message m(100000, 5);
    int count = 0, value = 0;
    if (env.rank == 0) {
        MPI_Send(nullptr, 0, MPI_BYTE, 1, kReady, env.comm);
        CHECK_MPI(MPI_Recv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, kLong, env.comm, MPI_STATUS_IGNORE));
        MPI_Send(nullptr, 0, MPI_BYTE, 1, kStop, env.comm);
        MPI_Recv(&count, 1, MPI_INT, 1, kCount, env.comm, MPI_STATUS_IGNORE);
        m.check();
        for (int i = 0; i < count; ++i) {
            MPI_Recv(&value, 1, MPI_INT, 1, kShort, env.comm, MPI_STATUS_IGNORE);
            CHECK_EQ(value, i);
        }
        return;
    }
    MPI_Request request;
    int stopped = 0;
    m.fill();
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, kReady, env.comm, MPI_STATUS_IGNORE);
    MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, kLong, env.comm, &request);
    for (; !stopped && count < kMost; ++count) {
        MPI_Send(&count, 1, MPI_INT, 0, kShort, env.comm);
        if (count % 64 == 0) MPI_Iprobe(0, kStop, env.comm, &stopped, MPI_STATUS_IGNORE);
    }
    CHECK(stopped);
    MPI_Send(&count, 1, MPI_INT, 0, kCount, env.comm);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, kStop, env.comm, MPI_STATUS_IGNORE);
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

CASE(buffers_in_pieces_are_packed_and_unpacked) {
    if (env.rank > 1) return;
    for (const int ints : {1, 10, 1000, 2047, 2048, 2049, 5000, 20000, 40000}) {
        MPI_Datatype every_other;
        MPI_Type_vector(ints, 1, 2, MPI_INT, &every_other);
        MPI_Type_commit(&every_other);
        for (int i = 0; i < 6; ++i) {
            const bool from_pieces = i % 3 != 0, to_pieces = i % 3 != 1;
            std::vector<int> data(2 * static_cast<std::size_t>(ints), -1);
            const std::size_t step = (env.rank == 0 ? from_pieces : to_pieces) ? 2 : 1;
            const MPI_Datatype type = step == 2 ? every_other : MPI_INT;
            const int count = step == 2 ? 1 : ints;
            if (env.rank == 0) {
                for (std::size_t n = 0; n < static_cast<std::size_t>(ints); ++n)
                    data[n * step] = i + static_cast<int>(n);
                CHECK_MPI(MPI_Send(data.data(), count, type, 1, 1, env.comm));
            } else {
                CHECK_MPI(MPI_Recv(data.data(), count, type, 0, 1, env.comm, MPI_STATUS_IGNORE));
                for (std::size_t n = 0; n < static_cast<std::size_t>(ints); ++n)
                    CHECK_EQ(data[n * step], i + static_cast<int>(n));
                if (step == 2) CHECK_EQ(data[1], -1);
            }
        }
        MPI_Type_free(&every_other);
    }
}

CASE(communicators_share_a_ring) {
    constexpr int kComms = 5, kRounds = 100;
    std::vector<mpitest::Env> all(kComms, env);
    for (mpitest::Env& each : all) MPI_Comm_dup(env.comm, &each.comm);
    const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<Message> out, in;
        std::vector<MPI_Request> requests;
        for (int c = 0; c < kComms; ++c) {
            const std::size_t bytes = std::min<std::size_t>(length_of(round + c), 50000);
            out.emplace_back(bytes, key_of(env.rank, to, c));
            out.back().fill();
            in.emplace_back(bytes, key_of(from, env.rank, c));
        }
        for (int c = 0; c < kComms; ++c) {
            Message& m = out[static_cast<std::size_t>(c)];
            MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, to, 0, all[static_cast<std::size_t>(c)].comm,
                      &requests.emplace_back());
        }
        for (int c = kComms - 1; c >= 0; --c) {
            Message& m = in[static_cast<std::size_t>(c)];
            CHECK_MPI(MPI_Recv(m.data.data(), as_int(m.bytes()), MPI_BYTE, from, 0,
                               all[static_cast<std::size_t>(c)].comm, MPI_STATUS_IGNORE));
            m.check();
        }
        CHECK_MPI(MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    }
    for (mpitest::Env& each : all) MPI_Comm_free(&each.comm);
}

CASE(everyone_to_everyone) {
    for (const int ints : {1, 30, 1000, 3000, 12000}) {
        const auto all = static_cast<std::size_t>(env.size) * static_cast<std::size_t>(ints);
        std::vector<int> out(all), in(all, -1);
        for (std::size_t i = 0; i < all; ++i) out[i] = env.rank * 1000003 + static_cast<int>(i);
        for (int round = 0; round < 3; ++round) {
            CHECK_MPI(MPI_Alltoall(out.data(), ints, MPI_INT, in.data(), ints, MPI_INT, env.comm));
            for (int r = 0; r < env.size; ++r)
                for (int i = 0; i < ints; ++i)
                    CHECK_EQ(in[static_cast<std::size_t>(r * ints + i)], r * 1000003 + env.rank * ints + i);
        }
    }
}

// Between two messages of other kinds lie 22 short ones, after which MPI_Recv waits without a request again (recv_direct.h).
CASE(blocking_receives_of_all_kinds_follow_each_other) {
    if (env.rank > 1) return;
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    const int peer = 1 - env.rank;
    for (int i = 0; i < 3000; ++i) {
        enum { kSync, kTooLong, kLong, kEmpty, kAnybody, kReadable, kGaps, kKinds };
        const int kind = i % 23 == 0 ? i / 23 % kKinds : kKinds;  // kKinds: short
        const std::size_t bytes = kind == kLong       ? 70000
                                  : kind == kReadable ? 4096
                                  : kind == kEmpty    ? 0
                                                      : static_cast<std::size_t>(i % 300 + 8);
        Message m(bytes, key_of(i % 2, 0, i));
        const int tag = i % 5;
        MPI_Status status;
        if (i % 2 == env.rank) {
            m.fill();
            CHECK_MPI(
                (kind == kSync ? MPI_Ssend : MPI_Send)(m.data.data(), as_int(bytes), MPI_BYTE, peer, tag, env.comm));
            continue;
        }
        const int room = kind == kTooLong ? 7 : as_int(bytes + 8);
        MPI_Datatype type = MPI_BYTE;
        if (kind == kGaps) {  // every second byte of a longer buffer
            MPI_Type_create_resized(MPI_BYTE, 0, 2, &type);
            MPI_Type_commit(&type);
        }
        Bytes wide(2 * bytes + 16, 0x5a);
        void* const to = kind == kEmpty ? nullptr : kind == kGaps ? wide.data() : m.data.data();
        const int rc = MPI_Recv(to,
                                kind == kEmpty  ? 0
                                : kind == kGaps ? as_int(bytes)
                                                : room,
                                type, kind == kAnybody ? MPI_ANY_SOURCE : peer, kind == kAnybody ? MPI_ANY_TAG : tag,
                                env.comm, i % 3 == 0 ? MPI_STATUS_IGNORE : &status);
        int code = MPI_SUCCESS, count = -1;
        if (rc != MPI_SUCCESS) MPI_Error_class(rc, &code);
        CHECK_EQ(code, kind == kTooLong ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        if (i % 3 != 0) {
            CHECK_EQ(status.MPI_SOURCE, peer);
            CHECK_EQ(status.MPI_TAG, tag);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (kind != kTooLong) CHECK_EQ(count, as_int(bytes));
        }
        if (kind == kTooLong) {
            CHECK_PATTERN(m.key, m.data.data(), 7);
            CHECK_UNTOUCHED(0x5a, m.data.data() + 7, m.data.size() - 7);
        } else if (kind == kGaps) {
            for (std::size_t at = 0; at < bytes; ++at) m.data[at] = wide[2 * at];
            for (std::size_t at = 1; at < wide.size(); at += 2) CHECK_EQ(wide[at], 0x5a);
            MPI_Type_free(&type);
            CHECK_PATTERN(m.key, m.data.data(), bytes);
        } else {
            m.check();
        }
    }
}

CASE(threads_of_two_processes_exchange_at_once) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE || env.rank > 1) return;
    constexpr int kThreads = 3;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&env, t] {
            const int peer = 1 - env.rank;
            for (int i = 0; i < 300; ++i) {
                const std::size_t bytes = std::min<std::size_t>(length_of(i + t), 60000);
                Message out(bytes, key_of(env.rank, t, i)), in(bytes, key_of(peer, t, i));
                out.fill();
                MPI_Request requests[2];
                MPI_Irecv(in.data.data(), as_int(bytes), MPI_BYTE, peer, t, env.comm, &requests[0]);
                MPI_Isend(out.data.data(), as_int(bytes), MPI_BYTE, peer, t, env.comm, &requests[1]);
                CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
                in.check();
            }
        });
    for (std::thread& each : threads) each.join();
}

// Checks the data while the length changes. Enough is sent for one trial in a ring of 4 MiB.
CASE(a_stream_tries_two_lengths_of_the_ring) {
    if ((refused() && !told("refused")) || env.size != 2 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return;  // not on a crowded node
    constexpr std::size_t kWindow = 32, kEnough = 160 << 20;
    std::vector<Message> window;
    std::size_t sent = 0;
    for (int i = 0; sent < kEnough; ++i) {
        window.clear();
        MPI_Request requests[kWindow];
        for (std::size_t k = 0; k < kWindow; ++k) {
            const std::size_t bytes = i % 8 == 7 ? 65536 - 8 * k
                                                 : 2000 + (k * 977 + static_cast<std::size_t>(i) * 131) % 6000;
            sent += bytes;
            window.emplace_back(bytes, key_of(0, static_cast<int>(k), i));
        }
        for (std::size_t k = 0; k < kWindow; ++k) {
            Message& m = window[k];
            if (env.rank == 0) {
                m.fill();
                MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, 1, 0, env.comm, &requests[k]);
            } else {
                MPI_Irecv(m.data.data(), as_int(m.bytes()), MPI_BYTE, 0, 0, env.comm, &requests[k]);
            }
        }
        CHECK_MPI(MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE));
        if (env.rank == 1)
            for (const Message& m : window) m.check();
    }
    if (!refused()) CHECK(lane_kib() > 1000);
}

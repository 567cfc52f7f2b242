// SPDX-License-Identifier: BSD-3-Clause
// Receives that are offered to their sender (RTR). Matching must follow MPI's rules with any other receives, messages,
// probes and cancels; and where the match is certain, the offer must be used. Two ranks, with protocol hybrid. Only for
// pml/coop.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "mpi_test.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

constexpr std::size_t kLarge = 200000;
constexpr int kToken = 999;
constexpr unsigned char kGuard = 0xa5;

int as_int(std::size_t n) { return static_cast<int>(n); }

void token(const mpitest::Env& env) { MPI_Send(nullptr, 0, MPI_BYTE, 1 - env.rank, kToken, env.comm); }
void await_token(const mpitest::Env& env) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 1 - env.rank, kToken, env.comm, MPI_STATUS_IGNORE);
}

void send_message(std::uint64_t key, int tag, MPI_Comm comm, int to, std::size_t bytes = kLarge) {
    Bytes data(bytes);
    pattern::fill(key, 0, data.data(), bytes);
    MPI_Send(data.data(), as_int(bytes), MPI_BYTE, to, tag, comm);
}

// A pending receive, and its buffer followed by a guard.
struct Receive {
    Receive(int source, int tag, MPI_Comm comm, std::size_t room = kLarge) : room(room), data(room + 64, kGuard) {
        MPI_Irecv(data.data(), as_int(room), MPI_BYTE, source, tag, comm, &request);
    }
    Receive(const Receive&) = delete;

    void expect(std::uint64_t key, std::size_t bytes = kLarge) {
        CHECK_MPI(MPI_Wait(&request, &status));
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, bytes);
        CHECK_PATTERN(key, data.data(), bytes);
        CHECK_UNTOUCHED(kGuard, data.data() + bytes, data.size() - bytes);
    }
    bool cancelled() {
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        int flag = -1;
        MPI_Test_cancelled(&status, &flag);
        return flag != 0;
    }

    std::size_t room;
    Bytes data;
    MPI_Request request;
    MPI_Status status;
};

// Counts in this process since the object was made.
class Since {
public:
    explicit Since(const char* name) : variable_(name), before_(variable_.read()) {}
    unsigned long long count() const { return variable_.read() - before_; }

private:
    Variable variable_;
    unsigned long long before_;
};

}  // namespace

CASE(a_posted_receive_is_offered_and_written_into) {
    const Since offers("offers"), taken("offers_taken"), rtr("messages_rtr");
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::size_t bytes = kLarge - i * 1001;  // shorter ones fit as well
        if (env.rank == 1) {
            Receive receive(0, 7, env.comm);
            token(env);
            receive.expect(i, bytes);
        } else {
            await_token(env);
            send_message(i, 7, env.comm, 1, bytes);
        }
    }
    if (env.rank == 1) CHECK_EQ(offers.count(), 10);
    else CHECK_EQ(taken.count(), 10);
    if (env.rank == 0) CHECK_EQ(rtr.count(), 10);
}

CASE(short_receives_are_not_offered_and_short_messages_take_no_offer) {
    const Since offers("offers"), taken("offers_taken");
    if (env.rank == 1) {
        Receive small(0, 7, env.comm, 65535);
        token(env);
        small.expect(1, 60000);
        CHECK_EQ(offers.count(), 0);
        Receive large(0, 7, env.comm);
        CHECK_EQ(offers.count(), 1);
        token(env);
        large.expect(2, 100);
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1, 60000);
        await_token(env);
        send_message(2, 7, env.comm, 1, 100);
        CHECK_EQ(taken.count(), 0);
    }
}

CASE(messages_of_every_size_find_an_offered_receive) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4024}, std::size_t{4025}, std::size_t{32767},
                              std::size_t{32768}, std::size_t{65536}, kLarge - 1, kLarge}) {
        if (env.rank == 1) {
            Receive receive(0, 7, env.comm);
            token(env);
            receive.expect(bytes, bytes);
        } else {
            await_token(env);
            send_message(bytes, 7, env.comm, 1, bytes);
        }
    }
}

CASE(a_message_that_is_too_long_does_not_take_the_offer_and_is_cut) {
    const Since taken("offers_taken");
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    if (env.rank == 1) {
        Receive receive(0, 7, env.comm);
        token(env);
        CHECK_ERROR(MPI_Wait(&receive.request, &receive.status), MPI_ERR_TRUNCATE);
        CHECK_PATTERN(1, receive.data.data(), kLarge);
        CHECK_UNTOUCHED(kGuard, receive.data.data() + kLarge, 64);
        Receive next(0, 7, env.comm);  // later messages are not affected
        token(env);
        next.expect(2);
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1, kLarge + 1);
        CHECK_EQ(taken.count(), 0);
        await_token(env);
        send_message(2, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 1);
    }
}

// A wildcard posted earlier could match the message.
CASE(nothing_is_offered_after_a_wildcard) {
    const struct {
        int source, tag;
    } wildcards[] = {{0, MPI_ANY_TAG}, {MPI_ANY_SOURCE, 7}, {MPI_ANY_SOURCE, MPI_ANY_TAG}};
    const Since offers("offers"), taken("offers_taken");
    for (const auto& wildcard : wildcards) {
        if (env.rank == 1) {
            Receive first(wildcard.source, wildcard.tag, env.comm), second(0, 7, env.comm);
            token(env);
            first.expect(1);
            second.expect(2);
        } else {
            await_token(env);
            send_message(1, 7, env.comm, 1);
            send_message(2, 7, env.comm, 1);
        }
    }
    CHECK_EQ(offers.count(), 0);
    CHECK_EQ(taken.count(), 0);
}

CASE(a_wildcard_that_cannot_match_the_message_does_not_matter) {
    const Since offers("offers"), taken("offers_taken");
    if (env.rank == 1) {
        Receive other_tag(MPI_ANY_SOURCE, 8, env.comm), receive(0, 7, env.comm);
        CHECK_EQ(offers.count(), 1);
        token(env);
        receive.expect(1);
        other_tag.expect(2);
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 1);
        send_message(2, 8, env.comm, 1);
    }
}

CASE(wildcards_after_an_offer_do_not_matter) {
    const Since taken("offers_taken");
    for (int source : {0, MPI_ANY_SOURCE})
        for (int tag : {7, MPI_ANY_TAG}) {
            if (env.rank == 1) {
                Receive first(0, 7, env.comm), second(source, tag, env.comm);
                token(env);
                first.expect(1);
                second.expect(2);
            } else {
                await_token(env);
                send_message(1, 7, env.comm, 1);
                send_message(2, 7, env.comm, 1);
            }
            MPI_Barrier(env.comm);
        }
    if (env.rank == 0) CHECK(taken.count() >= 4);
}

CASE(equal_tags_match_in_order) {
    for (int round = 0; round < 5; ++round)
        if (env.rank == 1) {
            Receive a(0, 7, env.comm), b(0, 7, env.comm), c(0, 7, env.comm), d(0, 7, env.comm);
            token(env);
            d.expect(4, 100);
            c.expect(3);
            b.expect(2, 30000);
            a.expect(1);
        } else {
            await_token(env);
            send_message(1, 7, env.comm, 1);
            send_message(2, 7, env.comm, 1, 30000);
            send_message(3, 7, env.comm, 1);
            send_message(4, 7, env.comm, 1, 100);
        }
}

CASE(messages_in_flight_at_once_match_in_order) {
    constexpr int kMessages = 8;
    if (env.rank == 1) {
        std::vector<std::unique_ptr<Receive>> receives;
        for (int i = 0; i < kMessages; ++i) receives.push_back(std::make_unique<Receive>(0, 7, env.comm));
        token(env);
        for (int i = kMessages; i-- > 0;) receives[static_cast<std::size_t>(i)]->expect(static_cast<std::uint64_t>(i));
    } else {
        std::vector<Bytes> data(kMessages, Bytes(kLarge));
        std::vector<MPI_Request> requests(kMessages);
        await_token(env);
        for (std::size_t i = 0; i < kMessages; ++i) {
            pattern::fill(i, 0, data[i].data(), kLarge);
            MPI_Isend(data[i].data(), as_int(kLarge), MPI_BYTE, 1, 7, env.comm, &requests[i]);
        }
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    }
}

CASE(messages_with_other_tags_pass_by) {
    const Since taken("offers_taken");
    if (env.rank == 1) {
        Receive large(0, 7, env.comm);
        Receive other(0, 8, env.comm);
        token(env);
        other.expect(1);
        Bytes small(100);
        for (int i = 0; i < 50; ++i) MPI_Recv(small.data(), 100, MPI_BYTE, 0, 100 + i, env.comm, MPI_STATUS_IGNORE);
        token(env);  // all of them have passed the offer
        large.expect(2);
    } else {
        await_token(env);
        send_message(1, 8, env.comm, 1);
        CHECK_EQ(taken.count(), 0);
        for (int i = 49; i >= 0; --i) send_message(5, 100 + i, env.comm, 1, 100);
        await_token(env);
        send_message(2, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 1);
    }
}

// The receiver has not yet matched the short message when it makes the offer, so the offer is for the sequence number
// of the short message. As long as the receiver has not handled that one, the long message may not take the offer, and
// must find its receive nevertheless.
CASE(a_message_close_after_another_finds_its_receive) {
    for (int round = 0; round < 50; ++round) {
        if (env.rank == 1) {
            Receive large(0, 7, env.comm);
            token(env);
            large.expect(static_cast<std::uint64_t>(round));
            Bytes small(100);
            MPI_Recv(small.data(), 100, MPI_BYTE, 0, 8, env.comm, MPI_STATUS_IGNORE);
        } else {
            await_token(env);
            send_message(5, 8, env.comm, 1, 100);
            send_message(static_cast<std::uint64_t>(round), 7, env.comm, 1);
        }
    }
}

CASE(communicators_are_kept_apart) {
    MPI_Comm other;
    MPI_Comm_dup(env.comm, &other);
    const Since taken("offers_taken");
    if (env.rank == 1) {
        Receive here(0, 7, env.comm), there(0, 7, other);
        token(env);
        there.expect(1);
        here.expect(2);
        Receive again(0, 7, other);
        token(env);
        Bytes data(kLarge);
        MPI_Recv(data.data(), as_int(kLarge), MPI_BYTE, 0, 7, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(3, data.data(), kLarge);
        again.expect(4);
    } else {
        await_token(env);
        send_message(1, 7, other, 1);
        send_message(2, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 2);
        await_token(env);
        send_message(3, 7, env.comm, 1);
        send_message(4, 7, other, 1);
    }
    MPI_Comm_free(&other);
}

CASE(an_unmatched_offered_receive_is_cancelled) {
    const Since offers("offers");
    if (env.rank == 1) {
        for (int i = 0; i < 200; ++i) {  // must not lose slots
            Receive receive(0, 7, env.comm);
            CHECK(receive.cancelled());
            CHECK_UNTOUCHED(kGuard, receive.data.data(), receive.data.size());
        }
        CHECK_EQ(offers.count(), 200);
        Receive cancelled(0, 7, env.comm), stays(0, 7, env.comm);
        CHECK(cancelled.cancelled());
        token(env);
        stays.expect(1);
        CHECK_UNTOUCHED(kGuard, cancelled.data.data(), cancelled.data.size());
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1);
    }
}

CASE(a_receive_whose_offer_was_taken_is_not_cancelled) {
    if (env.rank == 1) {
        Receive receive(0, 7, env.comm);
        token(env);
        usleep(100 * 1000);  // the sender writes during this time; this rank makes no progress
        const bool cancelled = receive.cancelled();
        CHECK(!cancelled);
        CHECK_PATTERN(1, receive.data.data(), kLarge);
    } else {
        const Since taken("offers_taken");
        await_token(env);
        send_message(1, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 1);
    }
}

// Rank 1 cancels the receive at about the moment when its message comes. Either the receive is cancelled and the next
// one gets the message, or the receive gets the message itself.
CASE(cancelling_while_the_message_comes_has_one_of_two_ends) {
    constexpr int kRounds = 300;
    const Since taken("offers_taken");
    pattern::Random random(11);
    int cancelled = 0;
    for (int round = 0; round < kRounds; ++round) {
        const auto key = static_cast<std::uint64_t>(round);
        if (env.rank == 1) {
            Receive first(0, 7, env.comm);
            token(env);
            for (volatile std::uint64_t spin = random.below(4000); spin > 0; spin = spin - 1) {
            }
            if (first.cancelled()) {
                ++cancelled;
                CHECK_UNTOUCHED(kGuard, first.data.data(), first.data.size());
                Receive second(0, 7, env.comm);
                second.expect(key);
                CHECK_UNTOUCHED(kGuard, first.data.data(), first.data.size());
            } else {
                CHECK_PATTERN(key, first.data.data(), kLarge);
            }
        } else {
            await_token(env);
            send_message(key, 7, env.comm, 1);
        }
    }
    unsigned long long counts[2] = {static_cast<unsigned long long>(cancelled), taken.count()}, all[2];
    MPI_Allreduce(counts, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, env.comm);
    if (env.rank == 0) printf("cancelled %llu of %d, offers taken %llu\n", all[0], kRounds, all[1]);
}

CASE(probes_do_not_see_what_an_offered_receive_gets) {
    if (env.rank == 1) {
        Receive offered(0, 7, env.comm);
        token(env);
        MPI_Status status;
        MPI_Probe(0, MPI_ANY_TAG, env.comm, &status);
        CHECK_EQ(status.MPI_TAG, 8);
        int flag = -1;
        MPI_Iprobe(0, 7, env.comm, &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, kLarge);
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &message, &status);
        CHECK_EQ(status.MPI_TAG, 8);
        Receive next(0, 8, env.comm);  // the probed message is not for it
        Bytes data(kLarge);
        MPI_Mrecv(data.data(), as_int(kLarge), MPI_BYTE, &message, MPI_STATUS_IGNORE);
        CHECK_PATTERN(2, data.data(), kLarge);
        offered.expect(1);
        token(env);
        next.expect(3);
    } else {
        await_token(env);
        MPI_Request request;
        Bytes data(kLarge);
        pattern::fill(2, 0, data.data(), kLarge);
        send_message(1, 7, env.comm, 1);
        MPI_Isend(data.data(), as_int(kLarge), MPI_BYTE, 1, 8, env.comm, &request);
        await_token(env);
        send_message(3, 8, env.comm, 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

CASE(an_unexpected_message_is_found_before_anything_is_offered) {
    const Since offers("offers"), taken("offers_taken");
    if (env.rank == 1) {
        MPI_Probe(0, 7, env.comm, MPI_STATUS_IGNORE);
        Receive receive(0, 7, env.comm);
        CHECK_EQ(offers.count(), 0);
        receive.expect(1);
    } else {
        send_message(1, 7, env.comm, 1);
        CHECK_EQ(taken.count(), 0);
    }
}

CASE(persistent_receives_are_offered_each_time) {
    constexpr int kRounds = 20;
    const Since offers("offers"), taken("offers_taken");
    Bytes data(kLarge);
    MPI_Request request;
    if (env.rank == 1) MPI_Recv_init(data.data(), as_int(kLarge), MPI_BYTE, 0, 7, env.comm, &request);
    else MPI_Send_init(data.data(), as_int(kLarge), MPI_BYTE, 1, 7, env.comm, &request);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
        if (env.rank == 1) {
            std::fill(data.begin(), data.end(), kGuard);
            MPI_Start(&request);
            token(env);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_PATTERN(round, data.data(), kLarge);
        } else {
            pattern::fill(round, 0, data.data(), kLarge);
            await_token(env);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    MPI_Request_free(&request);
    if (env.rank == 1) CHECK_EQ(offers.count(), kRounds);
    else CHECK_EQ(taken.count(), kRounds);
}

CASE(a_receive_that_was_freed_while_on_offer_completes) {
    Bytes data(kLarge, kGuard);
    if (env.rank == 1) {
        MPI_Request request;
        MPI_Irecv(data.data(), as_int(kLarge), MPI_BYTE, 0, 7, env.comm, &request);
        MPI_Request_free(&request);
        token(env);
        await_token(env);  // sent after the message, on the same communicator
        for (int i = 0; pattern::mismatch(1, 0, data.data(), kLarge) != pattern::kNone && i < 10000; ++i) {
            int flag;
            MPI_Iprobe(0, 5, env.comm, &flag, MPI_STATUS_IGNORE);
        }
        CHECK_PATTERN(1, data.data(), kLarge);
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1);
        token(env);
    }
}

CASE(messages_to_oneself_are_not_offered) {
    const Since offers("offers");
    Receive receive(env.rank, 7, env.comm);
    CHECK_EQ(offers.count(), 0);
    Bytes data(kLarge);
    pattern::fill(1, 0, data.data(), kLarge);
    MPI_Request request;
    MPI_Isend(data.data(), as_int(kLarge), MPI_BYTE, env.rank, 7, env.comm, &request);
    receive.expect(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CASE(intercommunicators_have_offers_too) {
    MPI_Comm local, inter;
    MPI_Comm_split(env.comm, env.rank, 0, &local);
    MPI_Intercomm_create(local, 0, env.comm, 1 - env.rank, 12, &inter);
    const Since taken("offers_taken");
    for (std::uint64_t i = 0; i < 5; ++i) {
        if (env.rank == 1) {
            Receive receive(0, 7, inter);
            token(env);
            receive.expect(i);
        } else {
            await_token(env);
            send_message(i, 7, inter, 0);
        }
    }
    if (env.rank == 0) CHECK_EQ(taken.count(), 5);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

CASE(receives_in_pieces_are_not_offered) {
    const Since offers("offers");
    MPI_Datatype every_other;
    MPI_Type_vector(as_int(kLarge / 100), 50, 100, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    if (env.rank == 1) {
        Bytes data(kLarge, kGuard);
        MPI_Request request;
        MPI_Irecv(data.data(), 1, every_other, 0, 7, env.comm, &request);
        CHECK_EQ(offers.count(), 0);
        token(env);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < kLarge; ++i)
            CHECK_EQ(data[i], i % 100 < 50 ? pattern::byte(1, i / 100 * 50 + i % 100) : kGuard);
    } else {
        await_token(env);
        send_message(1, 7, env.comm, 1, kLarge / 2);
    }
    MPI_Type_free(&every_other);
}

CASE(pieces_find_an_offered_receive_without_taking_the_offer) {
    const Since taken("offers_taken");
    if (env.rank == 1) {
        Receive receive(0, 7, env.comm);
        token(env);
        receive.expect(1, kLarge / 2);
    } else {
        MPI_Datatype every_other;
        MPI_Type_vector(as_int(kLarge / 100), 50, 100, MPI_BYTE, &every_other);
        MPI_Type_commit(&every_other);
        Bytes data(kLarge, kGuard);
        for (std::size_t i = 0; i < kLarge / 2; ++i) data[i / 50 * 100 + i % 50] = pattern::byte(1, i);
        await_token(env);
        MPI_Send(data.data(), 1, every_other, 1, 7, env.comm);
        CHECK_EQ(taken.count(), 0);
        MPI_Type_free(&every_other);
    }
}

CASE(receives_on_both_sides_before_the_sends_do_not_deadlock) {
    for (std::uint64_t round = 0; round < 20; ++round) {
        Receive receive(1 - env.rank, 7, env.comm);
        if (round % 2) MPI_Barrier(env.comm);
        send_message(round * 2 + static_cast<std::uint64_t>(env.rank), 7, env.comm, 1 - env.rank);
        receive.expect(round * 2 + static_cast<std::uint64_t>(1 - env.rank));
    }
}

// More offered receives than slots of a board: one on each of seventy communicators.
CASE(more_offers_than_slots_do_no_harm) {
    constexpr int kComms = 70;
    const Since offers("offers");
    std::vector<MPI_Comm> comms(kComms);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(env.comm, &comm);
    if (env.rank == 1) {
        std::vector<std::unique_ptr<Receive>> receives;
        for (int i = 0; i < kComms; ++i)
            receives.push_back(std::make_unique<Receive>(0, 7, comms[static_cast<std::size_t>(i)], 70000));
        CHECK_EQ(offers.count(), 64);
        token(env);
        for (int i = 0; i < kComms; ++i)
            receives[static_cast<std::size_t>(i)]->expect(static_cast<std::uint64_t>(i), 70000);
    } else {
        await_token(env);
        for (int i = kComms; i-- > 0;)
            send_message(static_cast<std::uint64_t>(i), 7, comms[static_cast<std::size_t>(i)], 1, 70000);
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Random traffic with offers, every message checked; the receives are posted before or after the sends start.
CASE(random_receives_and_messages_match_as_they_should) {
    constexpr int kRounds = 150;
    pattern::Random random(5);  // the same on both sides
    for (int round = 0; round < kRounds; ++round) {
        const auto messages = static_cast<int>(1 + random.below(6));
        std::vector<int> tags;
        std::vector<std::size_t> bytes;
        for (int i = 0; i < messages; ++i) {
            tags.push_back(static_cast<int>(random.below(3)));
            bytes.push_back(random.one_in(3) ? static_cast<std::size_t>(random.below(5000))
                                             : 65536 + static_cast<std::size_t>(random.below(100000)));
        }
        const bool any_source = random.one_in(3), early = !random.one_in(3);
        const auto key = [&](int i) {
            return pattern::key({static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(i)});
        };
        if (env.rank == 1) {
            if (!early) token(env);
            // For each tag in the order of sending; tags in another order.
            std::vector<std::unique_ptr<Receive>> receives(static_cast<std::size_t>(messages));
            for (int tag : {1, 2, 0})
                for (int i = 0; i < messages; ++i)
                    if (tags[static_cast<std::size_t>(i)] == tag)
                        receives[static_cast<std::size_t>(i)] = std::make_unique<Receive>(
                            any_source && i % 2 ? MPI_ANY_SOURCE : 0, tag, env.comm, 170000);
            if (early) token(env);
            for (int i = 0; i < messages; ++i)
                receives[static_cast<std::size_t>(i)]->expect(key(i), bytes[static_cast<std::size_t>(i)]);
        } else {
            await_token(env);
            std::vector<Bytes> data;
            std::vector<MPI_Request> requests(static_cast<std::size_t>(messages));
            for (std::size_t i = 0; i < static_cast<std::size_t>(messages); ++i) {
                data.emplace_back(bytes[i]);
                pattern::fill(key(static_cast<int>(i)), 0, data[i].data(), bytes[i]);
                MPI_Isend(data[i].data(), as_int(bytes[i]), MPI_BYTE, 1, tags[i], env.comm, &requests[i]);
            }
            MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
        }
        MPI_Barrier(env.comm);
    }
}

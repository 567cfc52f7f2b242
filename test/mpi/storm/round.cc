// SPDX-License-Identifier: BSD-3-Clause
#include "round.h"

#include "completion.h"

namespace storm {

RoundRun::RoundRun(const Options& options, const std::vector<Channel>& channels, const Round& round, MPI_Comm control,
                   State& state)
    : options_(options), channels_(channels), round_(round), control_(control), state_(state),
      random_(pattern::key({round.key, 5, static_cast<std::uint64_t>(state.rank)})) {
    for (const Message& m : round.messages)
        if (m.source == state.rank) sends_.emplace_back(m);
    for (const ReceivePlan& p : plan_receives(round, channels, state.rank)) receives_.emplace_back(p);
}

void RoundRun::run() {
    attach_buffer();
    switch (round_.style) {
    case Style::kPosted: run_posted(); break;
    case Style::kUnexpected: run_unexpected(); break;
    case Style::kMixed:
    case Style::kCount: run_mixed(); break;
    }
    compute();
    state_.phase = "completing requests";
    finish();
    state_.phase = "checking";
    check_received();
    state_.phase = "detaching the buffer";
    detach_buffer();
    // Otherwise a message of the next round could match a wildcard of this one.
    state_.phase = "barrier after the round";
    MPI_Barrier(control_);
}

// Computes sometimes, as an application would. Most calls follow each other directly.
void RoundRun::compute() {
    if (options_.compute_us == 0 || !random_.one_in(3)) return;
    const double until = MPI_Wtime() +
                         1e-6 * static_cast<double>(random_.below(static_cast<std::uint64_t>(options_.compute_us) + 1));
    while (MPI_Wtime() < until) {
    }
}

void RoundRun::run_posted() {
    state_.phase = "posting receives";
    for (Receive& r : receives_) {
        post(r);
        compute();
        if (r.plan.may_repost && random_.one_in(8)) cancel_and_repost(r);
    }
    post_and_cancel_unmatched();
    state_.phase = "barrier";
    MPI_Barrier(control_);
    state_.phase = "sending to posted receives";
    for (Send& s : sends_) {
        start_send(s);
        compute();
    }
}

void RoundRun::run_unexpected() {
    state_.phase = "sending";
    for (Send& s : sends_) start_send(s);
    // In half of the rounds, messages get time to arrive before the first receive.
    if (random_.one_in(2)) {
        int flag = 0;
        for (int i = 0; i < 50; ++i) MPI_Iprobe(MPI_ANY_SOURCE, kUnusedTag, control_, &flag, MPI_STATUS_IGNORE);
    }
    state_.phase = "receiving one by one";
    for (Receive& r : receives_) receive_now(r);
}

void RoundRun::run_mixed() {
    state_.phase = "sending and posting";
    std::size_t next_send = 0, next_receive = 0;
    while (next_send < sends_.size() || next_receive < receives_.size()) {
        const std::size_t sends_left = sends_.size() - next_send, receives_left = receives_.size() - next_receive;
        if (random_.below(sends_left + receives_left) < sends_left) {
            start_send(sends_[next_send++]);
        } else {
            Receive& r = receives_[next_receive++];
            post(r);
            if (r.plan.may_repost && random_.one_in(6)) cancel_and_repost(r);
        }
        compute();
    }
    post_and_cancel_unmatched();
}

// Completes all open sends and receives in one array.
void RoundRun::finish() {
    std::vector<MPI_Request> requests;
    for (Send& s : sends_) requests.push_back(s.request);
    for (Receive& r : receives_) requests.push_back(r.request);
    complete_all(requests, random_, [&](std::size_t i, const MPI_Status& status) {
        if (i < sends_.size()) ++state_.sends_done;
        else received(receives_[i - sends_.size()], status);
    });
    for (MPI_Request& r : requests)  // persistent ones
        if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
}

}  // namespace storm

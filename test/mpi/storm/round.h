// SPDX-License-Identifier: BSD-3-Clause
//
// One round on one rank (and thread): sends and receives by the plan, and checks every
// received byte.
#pragma once

#include <mpi.h>

#include <deque>
#include <vector>

#include "schedule.h"
#include "watchdog.h"

namespace storm {

class RoundRun {
public:
    RoundRun(const Options& options, const std::vector<Channel>& channels, const Round& round, MPI_Comm control,
             State& state);

    // Returns when all messages to this rank were received and checked, and
    // all of its own sends are complete.
    void run();

private:
    struct Send {
        Send(const Message& m);
        const Message& message;
        Layout layout;
        std::vector<unsigned char> memory;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Receive {
        Receive(const ReceivePlan& p);
        ReceivePlan plan;
        Layout layout;
        std::vector<unsigned char> memory;
        MPI_Request request = MPI_REQUEST_NULL;
        bool persistent = false;
        std::uint64_t order = 0;  // position among this rank's receives, by the time from which they can match
        MPI_Status status;
    };

    // sending.cc
    void attach_buffer();
    void detach_buffer();
    void start_send(Send& send);
    // receiving.cc
    void* address(Receive& receive) const { return receive.memory.data() + receive.layout.origin(); }
    int source_rank(const Receive& receive) const;
    void post(Receive& receive);
    void cancel_and_repost(Receive& receive);
    void receive_now(Receive& receive);
    void receive_probed(Receive& receive, bool spin);
    void receive_matched(Receive& receive, bool spin, bool nonblocking);
    void post_and_cancel_unmatched();
    void received(Receive& receive, const MPI_Status& status);
    // checking.cc
    void check_received();
    void check(const Receive& receive, const Message& message) const;
    // round.cc
    void run_posted();
    void run_unexpected();
    void run_mixed();
    void compute();
    void finish();
    [[noreturn]] void failed(const std::string& what) const { fail(options_, state_, what); }
    MPI_Comm comm(int channel) const { return channels_[static_cast<std::size_t>(channel)].comm; }
    const Channel& channel(int index) const { return channels_[static_cast<std::size_t>(index)]; }

    const Options& options_;
    const std::vector<Channel>& channels_;
    const Round& round_;
    const MPI_Comm control_;
    State& state_;
    pattern::Random random_;  // for choices that other ranks need not know
    std::deque<Send> sends_;
    std::deque<Receive> receives_;
    std::vector<char> buffer_;
    std::uint64_t next_order_ = 0;
};

}  // namespace storm

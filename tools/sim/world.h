// SPDX-License-Identifier: BSD-3-Clause
//
// The simulation: jobs of processes that exchange messages over a subnet.
//
//     sender                          receiver
//       start, RTS  ---------------->   posted? if not, it waits in the channel
//                   <----------------   CTS
//       make_schedule()
//       stripes on their queue pairs
//         flow … last byte              FIN of each stripe, after one latency
//       completion, after two           the product's filter: message complete
//       on_completed(), SentStripes
//
// Each process has one CPU and one progress engine. A sweep finds everything that has
// arrived since the last one and gives it all the time of the sweep. So a process that is
// busy posting, or handling other completions, sees a stripe later than it arrived: the
// accuracy problem of the dissertation (7.1.2, 7.2.2) is always simulated.
//
// Direct messages need no handshake: those that are copied through buffers, and those
// of an allgather whose receivers announce an address at the beginning of the call.
//
// Between processes of a host, the sender's CPU copies a message directly to its place.
//
// Control packets use no bandwidth and are never lost.
//
// When a cable goes down, the stripes on it fail after retry_ns, their rail is down, and
// they are sent again on another rail. After manager_ns there are new routes and the
// rails are up again. A channel without another rail retries on the same one.
//
// Units: nanoseconds, bytes. Threading: none. Errors: run() returns a sentence.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coop/sched/stripe_filter.h"
#include "sim/agenda.h"
#include "sim/channel.h"
#include "sim/costs.h"
#include "sim/network.h"
#include "sim/packets.h"
#include "sim/process.h"
#include "sim/routes.h"
#include "sim/workload.h"

namespace coop::sim {

struct JobPlan {
    Workload workload;
    Scheduling setup;
    std::vector<NodeIndex> hosts;  // by rank
    bool background = false;       // runs until the other jobs are done
};

// The results of a job.
struct JobResult {
    std::vector<double> iteration_end_ns;      // when the last rank finished it
    std::vector<std::vector<double>> step_ns;  // [step][rank], of the last iteration
    double ended_ns = 0;
    std::uint64_t messages = 0, stripes = 0, replayed = 0, probes = 0;
    bool keeps_weights_only = false;
};

struct Change {  // of the topology
    double at_ns;
    std::vector<LinkIndex> cables;
    bool up;
};

struct WorldPlan {
    Topology topology;
    Routes routes;
    std::function<Defect(const Topology&, Routes&)> new_routes;  // the subnet manager
    Costs costs;
    Blocking blocking = Blocking::kOff;
    std::optional<PacketRules> packets;  // nothing: simulate flows
    double slice_ns = 0;                 // rates are computed at most this often
    std::vector<JobPlan> jobs;
    std::vector<Change> changes;
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // of the channels of all jobs
};

class World {
public:
    explicit World(WorldPlan plan);

    // Runs until all jobs except background ones are done. Calls `on_progress` with the
    // completed share from time to time.
    Defect run(const std::function<void(double)>& on_progress = {});

    const std::vector<JobResult>& results() const noexcept { return results_; }
    const Network& network() const noexcept { return *network_; }
    const Topology& topology() const noexcept { return plan_.topology; }
    std::uint64_t events() const noexcept { return agenda_.entered(); }
    double now_ns() const noexcept { return now_ns_; }

private:
    struct Message {
        Channel* channel = nullptr;
        std::uint32_t job = 0, sender = 0, receiver = 0;  // sender and receiver are processes
        std::uint64_t bytes = 0;
        sched::SentStripes sent{1};
        sched::SentStripes arrived{1};
        std::uint32_t next = kNone;  // next message waiting in the channel, or free
        bool sent_all = false, arrived_all = false;
        bool copied = false, direct = false;  // as in Step
    };
    struct StripeOnRail {
        std::uint32_t message = 0;
        std::uint32_t next = kNone;  // next stripe on the same queue pair, or free
        FlowIndex flow = kNone;      // valid while it is first on its queue pair and has a route
        std::uint64_t bytes = 0;
        std::uint64_t posted_ns = sched::kNotMeasured;
        double way_ns = 0;  // latency of the route
        sched::RailIndex rail = 0;
        std::uint8_t index = 0;  // in the message
    };

    // protocol.cc
    void next_step(Process& process);
    void begin_step(Process& process);
    bool step_is_over(const Process& process) const noexcept;
    std::uint32_t begin_message(Process& process, std::uint32_t to);
    void announce(Process& process, std::uint32_t to);
    void handle(Process& process, const Notice& notice, double sweep_ns);
    void on_rts(Process& process, std::uint32_t message);
    void ask_for(Process& process, std::uint32_t message);
    void send(Process& process, std::uint32_t message);
    void on_completion(Process& process, const Notice& notice, double sweep_ns);
    void on_failure(Process& process, const Notice& notice);
    void on_fin(Process& process, const Notice& notice);
    void finish_if_over(std::uint32_t message);
    void tell(std::uint32_t process, double at_ns, NoticeKind kind, std::uint32_t what, std::uint8_t stripe = 0);

    // direct.cc
    void begin_call(Process& process);
    void on_address(Process& process, std::uint32_t receiver);
    void send_directly(Process& process, std::uint32_t to);
    void take_early(Process& process);
    void on_direct(Process& process, Channel& channel);
    void take_one(Process& process);

    // rails.cc
    void post(Process& process, std::uint32_t stripe);
    void on_posted(std::uint32_t stripe);
    void begin_stripe(std::uint32_t stripe);
    void on_landed(std::uint32_t stripe);
    void on_failed(std::uint32_t stripe);
    void fail_later(std::uint32_t stripe);
    void take_off_rail(std::uint32_t stripe);
    bool stays_on_host(const StripeOnRail& stripe) const noexcept;
    Channel& channel_of(const StripeOnRail& stripe) noexcept { return *messages_[stripe.message].channel; }
    void refresh_rails(Channel& channel);

    // world.cc
    void sweep(Process& process);
    void look_again(Process& process);
    void on_event(const Event& event);
    void change_topology(std::uint32_t number);
    Channel& channel_of(const Process& process, std::uint32_t to);
    Process& process_of(std::uint32_t job, std::uint32_t rank) noexcept {
        return processes_[first_process_[job] + rank];
    }
    std::uint32_t index_of(const Process& process) const noexcept {
        return static_cast<std::uint32_t>(&process - processes_.data());
    }
    const JobPlan& job_of(const Process& process) const noexcept { return plan_.jobs[process.job]; }
    std::uint32_t new_message();
    std::uint32_t new_stripe();
    void free_stripe(std::uint32_t stripe) noexcept;
    double share_done() const noexcept;
    std::string who_waits() const;

    WorldPlan plan_;
    std::unique_ptr<Network> network_;
    Agenda agenda_;
    std::vector<Process> processes_;
    std::vector<std::uint32_t> first_process_;  // of each job
    std::vector<ChannelTable> channels_;        // of each job
    std::vector<JobResult> results_;
    std::deque<Message> messages_;
    std::deque<StripeOnRail> stripes_;
    std::uint32_t free_message_ = kNone, free_stripe_ = kNone;
    std::uint32_t routes_generation_ = 0;
    std::uint32_t unfinished_ = 0;              // processes of jobs that are not background
    std::uint64_t steps_done_ = 0, steps_ = 0;  // of those
    std::uint64_t notices_ = 0;
    double now_ns_ = 0;
};

}  // namespace coop::sim

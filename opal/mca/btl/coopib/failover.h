// SPDX-License-Identifier: BSD-3-Clause
//
// Failover: takes a rail that has failed out of service, sends what was under way over other rails, and connects the
// rail again. path/rail_life.h decides; this carries it out.
//
//     error, event, datagram ─► RailLife ─► stop, drain ─► repeat sends and reads ─► (peer closed) ─► repeat the rest
//                                                                                          │
//     connections.h: new queue pairs, probes ◄── reopen ◄──────── after a pause ◄──────────┘
//
// What is repeated, and why nothing is lost or doubled:
//
//     message         the same bytes with the same number: the peer drops the second one, with the credits in it. It
//                     is kept until the peer's process has acknowledged it (sched/held.h)
//     signal, rider   as a message, and only when the stripes before it on its rail have ended elsewhere (rail/channel.h)
//     RDMA read       has no effect at the peer
//     RDMA write      the same bytes to the same place, and only after the peer has closed its end: until then an
//                     earlier attempt might still land, in memory that the peer uses for something else by now. Not if
//                     the peer says that it has got the signal behind it: then it was executed
//     atomic          never: nobody knows whether it was executed. The job ends
//
// Without a usable rail, requests wait (`parked`, and as before the first connection) for partition_timeout, of which only
// the time counts for which path/partition_clock.h counts it. A process that ends says so, and its peers repair nothing any
// more.
//
// Old queue pairs stay in the error state for a while (Channel::retired), so that a late completion finds its rail.
//
// Threading: under Module::lock. Errors: the functions may end the job.
#pragma once

#include "connections.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// Call it when the channel is connected. `paths`: those of its rails, and behind them those of the queue pairs for reads.
void prepare_repairs(Endpoint& endpoint, const std::vector<path::PathChoice>& paths);

// The rail has failed, for this reason. Has no effect if it carries no data.
void begin_repair(Channel& channel, sched::RailIndex rail, const char* why);
// Rail::last has come back.
void on_drained(Channel& channel, Rail& rail);
void on_port_down(Channel& channel, sched::RailIndex rail, const char* why);
void on_port_active(Channel& channel, sched::RailIndex rail);
// A datagram about a rail, or the result of an attempt to connect it again.
void on_repair_news(Module& m, Endpoint& endpoint, News& news);
// The peer's process has ended: its rails need no repair, and messages to it have arrived or are not wanted.
void on_left(Endpoint& endpoint);
// This process ends.
void say_goodbye(Module& m);
// A read behind writes has ended over one rail. Returns false if that was the last one, and it is complete.
bool read_further(Channel& channel, StripeWork& read, std::uint64_t now);
// A write that repeats an earlier one to the ring has ended.
void end_repetition(Channel& channel, Fragment& fragment) noexcept;
// The upper layer uses a fragment again whose message the peer's process has not acknowledged: it is not kept any longer.
void forget_held(Module& m, Fragment& fragment);

// While Module::repairing is not 0: call repair() after each sweep, and note_sweep() when it has polled the queues.
// Otherwise call repair() after some of the sweeps: it finds mute rails (mute.h), and tries to open those that have never
// opened.
void repair(Module& m);
void note_sweep(Module& m, bool emptied) noexcept;

// Whether the queue pair belonged to a rail that was replaced.
bool is_retired(const Channel& channel, std::uint32_t hca, std::uint32_t qp_number) noexcept;

// Whether the rail is over this port of its HCA. A rail that carries data may have moved there; its queue pair for reads moves
// by itself.
inline bool is_over(const Channel& channel, sched::RailIndex number, std::uint32_t port) {
    if (!channel.repair[number].life.carries_data()) return channel.scheduler->rails()[number].info.port == port;
    const Rail* const reader = channel.rails.reader(number);
    return channel.rails[number].port == port || (reader != nullptr && reader->port == port);
}

// Calls each(channel, rail) for the rails over a port of our HCA; port 0: any.
template <class Each>
void for_each_rail_on(Channel& channel, std::uint32_t hca, std::uint32_t port, Each each) {
    for (sched::RailIndex rail = 0; rail < channel.repair.size(); ++rail) {
        const sched::RailInfo& info = channel.scheduler->rails()[rail].info;
        if (info.hca == hca && (port == 0 || is_over(channel, rail, port))) each(channel, rail);
    }
}

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// The loop over time, sweeps, and changes of the topology.
#include "sim/world.h"

#include <chrono>
#include <cmath>

namespace coop::sim {
namespace {

constexpr std::uint64_t kEventsBetweenLooks = 1 << 16;  // between two looks at the wall clock

std::unique_ptr<Network> make_network(const WorldPlan& plan) {
    if (plan.packets) return std::make_unique<PacketNetwork>(plan.topology, *plan.packets);
    return std::make_unique<FlowNetwork>(plan.topology, plan.blocking);
}

}  // namespace

World::World(WorldPlan plan) : plan_(std::move(plan)), network_(make_network(plan_)), results_(plan_.jobs.size()) {
    for (std::uint32_t job = 0; job < plan_.jobs.size(); ++job) {
        const JobPlan& wanted = plan_.jobs[job];
        const double rate = plan_.topology.links[plan_.topology.host_link(wanted.hosts[0])].bytes_per_s;
        channels_.emplace_back(wanted.setup, rails_between(plan_.routes.lmc, wanted.setup.paths, rate),
                               wanted.workload.ranks, plan_.memory_bytes / plan_.jobs.size());
        results_[job].keeps_weights_only = channels_.back().keeps_weights_only();
        results_[job].iteration_end_ns.assign(wanted.background ? 0 : wanted.workload.iterations, 0);
        if (wanted.workload.pattern == Pattern::kRing && !wanted.background)
            results_[job].step_ns.assign(steps_of(wanted.workload), std::vector<double>(wanted.workload.ranks, 0));
        first_process_.push_back(static_cast<std::uint32_t>(processes_.size()));
        for (std::uint32_t rank = 0; rank < wanted.workload.ranks; ++rank) {
            Process& process = processes_.emplace_back();
            process.job = job;
            process.rank = rank;
            process.host = wanted.hosts[rank];
        }
        if (wanted.background) continue;
        unfinished_ += wanted.workload.ranks;
        steps_ += std::uint64_t{wanted.workload.ranks} * wanted.workload.iterations * steps_of(wanted.workload);
    }
}

Defect World::run(const std::function<void(double)>& on_progress) {
    for (Process& process : processes_) {
        begin_step(process);
        next_step(process);
        look_again(process);
    }
    for (std::uint32_t i = 0; i < plan_.changes.size(); ++i)
        agenda_.add(plan_.changes[i].at_ns, EventKind::kTopology, 2 * i);
    auto told = std::chrono::steady_clock::now();
    std::uint64_t looked = 0;
    while (unfinished_ != 0) {
        network_->begin_slice(now_ns_);
        const double first_ns = std::min(agenda_.next_ns(), network_->next_ns());
        if (first_ns == kNever) return "nothing is under way, but " + who_waits();
        const double end_ns = first_ns + plan_.slice_ns;
        network_->take_done(
            end_ns, [&](std::uint32_t stripe, double at_ns) { agenda_.add(at_ns, EventKind::kLanded, stripe); });
        while (agenda_.next_ns() <= end_ns) on_event(agenda_.take());
        network_->end_slice(end_ns);
        now_ns_ = end_ns;
        if (!on_progress || agenda_.entered() - looked < kEventsBetweenLooks) continue;
        looked = agenda_.entered();
        if (const auto now = std::chrono::steady_clock::now(); now - told > std::chrono::seconds(1)) {
            told = now;
            on_progress(share_done());
        }
    }
    return std::nullopt;
}

void World::on_event(const Event& event) {
    now_ns_ = event.at_ns;
    switch (event.kind) {
    case EventKind::kSweep:
        if (processes_[event.what].sweep_ns == event.at_ns) sweep(processes_[event.what]);
        break;
    case EventKind::kPosted: on_posted(event.what); break;
    case EventKind::kLanded: on_landed(event.what); break;
    case EventKind::kFailed: on_failed(event.what); break;
    case EventKind::kTopology: change_topology(event.what); break;
    }
}

// The sweep gives its own time to everything that has arrived until now.
void World::sweep(Process& process) {
    const double sweep_ns = now_ns_;
    process.sweep_ns = kNever;
    process.cpu_ns = sweep_ns + plan_.costs.poll_ns;
    while (process.inbox.next_ns() <= sweep_ns) {
        process.cpu_ns += plan_.costs.completion_ns;
        handle(process, process.inbox.take(), sweep_ns);
    }
    next_step(process);
    look_again(process);
}

void World::look_again(Process& process) {
    double at_ns = std::max(process.inbox.next_ns(), process.cpu_ns);
    if (at_ns == kNever || at_ns >= process.sweep_ns) return;
    if (plan_.costs.late_ns > 0) at_ns = std::ceil(at_ns / plan_.costs.late_ns) * plan_.costs.late_ns;
    if (at_ns >= process.sweep_ns) return;
    process.sweep_ns = at_ns;
    agenda_.add(at_ns, EventKind::kSweep, index_of(process));
}

Channel& World::channel_of(const Process& process, std::uint32_t to) {
    bool is_new = false;
    Channel& channel = channels_[process.job].open(process.rank, to, is_new);
    if (!is_new) return channel;
    // The state of direct messages outlives a message, so the channel is never reduced to its weights.
    if (job_of(process).workload.has_direct_steps()) ++channel.open;
    channel.routes_seen = routes_generation_;
    const NodeIndex host = process_of(process.job, to).host;
    if (host == process.host) {
        channel.one_way_ns = plan_.costs.node_ns;
        return channel;
    }
    const Route way = trace(plan_.topology, plan_.routes, process.host, host, 0);
    channel.one_way_ns = plan_.costs.wire_ns + plan_.costs.hop_ns * (way.hops - (way.hops != 0));
    return channel;
}

// Change i is event 2i; 2i + 1 is the reaction of the subnet manager.
void World::change_topology(std::uint32_t number) {
    const Change& change = plan_.changes[number / 2];
    if (number % 2 == 1) {
        // A host that is unreachable now keeps its old routes, which end at the broken cable.
        Routes found = plan_.routes;
        if (plan_.new_routes(plan_.topology, found)) return;
        plan_.routes = std::move(found);
        ++routes_generation_;
        return;
    }
    for (const LinkIndex cable : change.cables) {
        plan_.topology.set_cable(cable, change.up);
        if (change.up) continue;
        for (const LinkIndex link : {cable, reverse(cable)})
            for (const FlowIndex flow : network_->flows_over(link)) {
                const std::uint32_t stripe = network_->owner(flow);
                network_->cut(flow);
                stripes_[stripe].flow = kNone;
                fail_later(stripe);
            }
    }
    agenda_.add(now_ns_ + plan_.costs.manager_ns, EventKind::kTopology, number + 1);
}

std::uint32_t World::new_message() {
    if (free_message_ == kNone) {
        messages_.emplace_back();
        return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t found = free_message_;
    free_message_ = messages_[found].next;
    messages_[found] = {};
    return found;
}

std::uint32_t World::new_stripe() {
    if (free_stripe_ == kNone) {
        stripes_.emplace_back();
        return static_cast<std::uint32_t>(stripes_.size() - 1);
    }
    const std::uint32_t found = free_stripe_;
    free_stripe_ = stripes_[found].next;
    stripes_[found] = {};
    return found;
}

void World::free_stripe(std::uint32_t stripe) noexcept {
    stripes_[stripe].next = free_stripe_;
    free_stripe_ = stripe;
}

double World::share_done() const noexcept { return static_cast<double>(steps_done_) / static_cast<double>(steps_); }

std::string World::who_waits() const {
    for (const Process& process : processes_)
        if (!process.finished && !job_of(process).background)
            return "rank " + std::to_string(process.rank) + " of job " + std::to_string(process.job) +
                   " waits in step " + std::to_string(process.step_number) + " of iteration " +
                   std::to_string(process.iteration);
    return "nobody waits";
}

}  // namespace coop::sim

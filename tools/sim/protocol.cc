// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of a process, and the rendezvous of its messages.
#include "sim/world.h"

namespace coop::sim {

// --- steps ----------------------------------------------------------------------------------------------------------

// With one address per call, the sends need to be complete at the end of the call only.
bool World::step_is_over(const Process& process) const noexcept {
    if (process.to_receive != 0 || process.finished) return false;
    const Workload& work = job_of(process).workload;
    const bool last = process.step_number + 1 == steps_of(work);
    return process.to_send == 0 || (work.announce == Announce::kCall && !work.await_sends && !last);
}

// If the step is over: starts the next step that has something to do.
void World::next_step(Process& process) {
    while (step_is_over(process)) {
        const Workload& work = job_of(process).workload;
        JobResult& result = results_[process.job];
        process.cpu_ns += static_cast<double>(process.step.reduced_bytes) / plan_.costs.reduce_bytes_per_s * 1e9;
        if (!result.step_ns.empty())
            result.step_ns[process.step_number][process.rank] = process.cpu_ns - process.step_began_ns;
        if (!job_of(process).background) ++steps_done_;
        if (++process.step_number == steps_of(work)) {
            process.step_number = 0;
            if (!job_of(process).background) {
                double& end_ns = result.iteration_end_ns[process.iteration];
                end_ns = std::max(end_ns, process.cpu_ns);
            }
            ++process.iteration;
        }
        if (!job_of(process).background && process.iteration == work.iterations) {
            process.finished = true;
            result.ended_ns = std::max(result.ended_ns, process.cpu_ns);
            --unfinished_;
            return;
        }
        begin_step(process);
    }
}

void World::begin_step(Process& process) {
    const Workload& work = job_of(process).workload;
    process.step = step_of(work, process.rank, process.iteration, process.step_number);
    process.step_began_ns = process.cpu_ns;
    if (process.step_number == 0) process.sent_by_rendezvous = false;
    if (process.step_number == 0 && work.announce == Announce::kCall) begin_call(process);
    process.to_receive = process.step.from == kNone ? 0 : work.messages;
    process.to_ask_for = process.step.direct ? 0 : process.to_receive;
    if (process.step.direct) {
        take_early(process);
    } else if (process.step.from != kNone) {
        // RTS packets that arrived before the receive was posted.
        Channel& channel = channel_of(process_of(process.job, process.step.from), process.rank);
        while (process.to_ask_for != 0 && channel.first_rts != kNone) {
            const std::uint32_t message = channel.first_rts;
            channel.first_rts = messages_[message].next;
            ask_for(process, message);
        }
    }
    if (process.step.to == kNone) return;
    if (!process.step.copied) process.to_send += work.messages;
    for (std::uint32_t i = 0; i < work.messages; ++i) {
        if (process.step.direct) send_directly(process, process.step.to);
        else announce(process, process.step.to);
    }
}

// --- rendezvous -----------------------------------------------------------------------------------------------------

std::uint32_t World::begin_message(Process& process, std::uint32_t to) {
    Channel& channel = channel_of(process, to);
    const std::uint32_t index = new_message();
    Message& message = messages_[index];
    message.channel = &channel;
    message.job = process.job;
    message.sender = index_of(process);
    message.receiver = first_process_[process.job] + to;
    message.bytes = process.step.bytes;
    message.copied = process.step.copied;
    message.direct = process.step.direct;
    ++channel.open;
    ++results_[process.job].messages;
    process.cpu_ns += plan_.costs.start_ns;
    if (!message.copied && !plan_.costs.has_new_buffers() && channels_[process.job].first_use(process.rank, to))
        process.cpu_ns += plan_.costs.registration_ns(message.bytes);
    return index;
}

void World::announce(Process& process, std::uint32_t to) {
    const std::uint32_t index = begin_message(process, to);
    const Message& message = messages_[index];
    process.cpu_ns += plan_.costs.post_ns;
    // The first one registers what it sends. Later ones send blocks that were registered when they were received.
    if (plan_.costs.has_new_buffers() && !process.sent_by_rendezvous)
        process.cpu_ns += plan_.costs.new_buffer_registration_ns(message.bytes);
    process.sent_by_rendezvous = true;
    tell(message.receiver, process.cpu_ns + message.channel->one_way_ns, NoticeKind::kRts, index);
}

void World::tell(std::uint32_t process, double at_ns, NoticeKind kind, std::uint32_t what, std::uint8_t stripe) {
    processes_[process].inbox.add({at_ns, notices_++, what, kind, stripe});
    look_again(processes_[process]);
}

void World::handle(Process& process, const Notice& notice, double sweep_ns) {
    switch (notice.kind) {
    case NoticeKind::kRts: return on_rts(process, notice.what);
    case NoticeKind::kCts: return send(process, notice.what);
    case NoticeKind::kCompletion: return on_completion(process, notice, sweep_ns);
    case NoticeKind::kFailure: return on_failure(process, notice);
    case NoticeKind::kFin: return on_fin(process, notice);
    case NoticeKind::kAddress: return on_address(process, notice.what);
    }
}

void World::on_rts(Process& process, std::uint32_t index) {
    Channel& channel = *messages_[index].channel;
    if (process.to_ask_for != 0 && process.step.from == channel.from) return ask_for(process, index);
    messages_[index].next = kNone;
    if (channel.first_rts == kNone) channel.first_rts = index;
    else messages_[channel.last_rts].next = index;
    channel.last_rts = index;
}

void World::ask_for(Process& process, std::uint32_t index) {
    --process.to_ask_for;
    if (plan_.costs.has_new_buffers()) process.cpu_ns += plan_.costs.new_buffer_registration_ns(messages_[index].bytes);
    process.cpu_ns += plan_.costs.post_ns;
    tell(messages_[index].sender, process.cpu_ns + messages_[index].channel->one_way_ns, NoticeKind::kCts, index);
}

void World::send(Process& process, std::uint32_t index) {
    Message& message = messages_[index];
    Channel& channel = *message.channel;
    refresh_rails(channel);
    const auto now_ns = static_cast<std::uint64_t>(process.cpu_ns);
    const sched::Schedule schedule = channel.scheduler->make_schedule(message.bytes, sched::Marker::kCollective,
                                                                      now_ns);
    message.sent = sched::SentStripes(schedule.size());
    message.arrived = sched::SentStripes(schedule.size());
    JobResult& result = results_[message.job];
    result.stripes += schedule.size();
    result.probes += schedule.header.probed != sched::kNoRailIndex;
    std::uint8_t number = 0;
    for (const sched::Stripe& cut : schedule) {
        const std::uint32_t stripe = new_stripe();
        StripeOnRail& entry = stripes_[stripe];
        entry.message = index;
        entry.bytes = cut.length_bytes;
        entry.rail = cut.rail;
        entry.posted_ns = schedule.is_measured() ? now_ns : sched::kNotMeasured;
        entry.index = number++;
        post(process, stripe);
    }
}

void World::on_completion(Process& process, const Notice& notice, double sweep_ns) {
    const StripeOnRail stripe = stripes_[notice.what];
    Message& message = messages_[stripe.message];
    message.channel->scheduler->on_completed(stripe.rail, stripe.bytes, stripe.posted_ns,
                                             static_cast<std::uint64_t>(sweep_ns));
    free_stripe(notice.what);
    if (message.sent.on_completed(stripe.index) != sched::Landed::kComplete) return;
    if (!message.copied) --process.to_send;
    message.sent_all = true;
    finish_if_over(stripe.message);
}

void World::on_fin(Process& process, const Notice& notice) {
    Message& message = messages_[notice.what];
    if (message.arrived.on_completed(notice.stripe) != sched::Landed::kComplete) return;
    if (message.direct) on_direct(process, *message.channel);
    else --process.to_receive;
    message.arrived_all = true;
    finish_if_over(notice.what);
}

void World::finish_if_over(std::uint32_t index) {
    Message& message = messages_[index];
    if (!message.sent_all || !message.arrived_all) return;
    channels_[message.job].close(*message.channel);
    message.next = free_message_;
    free_message_ = index;
}

}  // namespace coop::sim

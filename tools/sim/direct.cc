// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of an allgather that need no handshake.
//
//     copied steps      sender copies ------------->  buffer, receiver copies
//     one address per call
//         begin_call()  <----------------------------  register once, address to each sender
//         send()        stripes on queue pairs ----->  no copy
//
// A direct message may arrive before its receiver has reached the step. The messages
// of a channel arrive in the order of their steps, so it is enough to count them.
#include <algorithm>

#include "sim/world.h"

namespace coop::sim {

// Announces the buffer of this call to all that will write to it.
void World::begin_call(Process& process) {
    const Workload& work = job_of(process).workload;
    std::vector<std::uint32_t> senders;
    for (std::uint32_t i = 0; i < steps_of(work); ++i) {
        const Step step = step_of(work, process.rank, process.iteration, i);
        if (!step.copied && std::find(senders.begin(), senders.end(), step.from) == senders.end())
            senders.push_back(step.from);
    }
    if (senders.empty()) return;
    if (plan_.costs.has_new_buffers())
        process.cpu_ns += plan_.costs.new_buffer_registration_ns(work.bytes * work.ranks);
    for (const std::uint32_t sender : senders) {
        Process& other = process_of(process.job, sender);
        process.cpu_ns += plan_.costs.post_ns;
        tell(index_of(other), process.cpu_ns + channel_of(other, process.rank).one_way_ns, NoticeKind::kAddress,
             index_of(process));
    }
}

void World::on_address(Process& process, std::uint32_t receiver) {
    Channel& channel = channel_of(process, processes_[receiver].rank);
    ++channel.addresses;
    while (channel.first_unsent != kNone) {
        const std::uint32_t message = channel.first_unsent;
        channel.first_unsent = messages_[message].next;
        send(process, message);
    }
}

// RDMA copies from the buffer of the previous step: only the first step copies at the sender.
void World::send_directly(Process& process, std::uint32_t to) {
    const std::uint32_t index = begin_message(process, to);
    Channel& channel = *messages_[index].channel;
    if (process.step.copied) {
        if (job_of(process).workload.announce == Announce::kStep || process.step_number == 0)
            process.cpu_ns += plan_.costs.copy_ns(process.step.bytes);
        return send(process, index);
    }
    if (channel.addresses > process.iteration) return send(process, index);
    messages_[index].next = kNone;
    if (channel.first_unsent == kNone) channel.first_unsent = index;
    else messages_[channel.last_unsent].next = index;
    channel.last_unsent = index;
}

// Messages that arrived before the step began.
void World::take_early(Process& process) {
    Channel& channel = channel_of(process_of(process.job, process.step.from), process.rank);
    for (; channel.early != 0 && process.to_receive != 0; --channel.early) take_one(process);
}

void World::on_direct(Process& process, Channel& channel) {
    if (process.step.direct && process.step.from == channel.from && process.to_receive != 0) take_one(process);
    else ++channel.early;
}

void World::take_one(Process& process) {
    --process.to_receive;
    if (process.step.copied) process.cpu_ns += plan_.costs.copy_ns(process.step.bytes);
}

}  // namespace coop::sim

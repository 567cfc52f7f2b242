// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the message that each receive must get. Messages with the same envelope
// (channel, source, tag) match in the order in which they were sent, and receives that
// match the same envelope in the order in which they were posted. So for each envelope,
// the k-th receive in order of posting must hold the k-th message.
#include <map>
#include <tuple>

#include "round.h"

namespace storm {
namespace {

using Envelope = std::tuple<int, int, int>;  // channel, source's world rank, tag

std::string name_of(const Envelope& e) {
    return "channel " + std::to_string(std::get<0>(e)) + ", source " + std::to_string(std::get<1>(e)) + ", tag " +
           std::to_string(std::get<2>(e));
}

}  // namespace

void RoundRun::check_received() {
    std::map<Envelope, std::vector<const Message*>> sent;
    for (const Message& m : round_.messages)
        if (m.target == state_.rank) sent[{m.channel, m.source, m.tag}].push_back(&m);

    std::map<Envelope, std::map<std::uint64_t, const Receive*>> got;
    for (const Receive& r : receives_) {
        const Channel& c = channel(r.plan.channel);
        const int sources = static_cast<int>(c.targets(state_.rank).size());
        if (r.status.MPI_SOURCE < 0 || r.status.MPI_SOURCE >= sources)
            failed("a status with source " + std::to_string(r.status.MPI_SOURCE) + " on channel " + c.name);
        const int source = c.world_rank(state_.rank, r.status.MPI_SOURCE);
        got[{r.plan.channel, source, r.status.MPI_TAG}][r.order] = &r;
    }

    for (const auto& [envelope, receives] : got) {
        const std::vector<const Message*>& messages = sent[envelope];
        if (messages.size() != receives.size())
            failed(name_of(envelope) + ": " + std::to_string(messages.size()) + " sent, " +
                   std::to_string(receives.size()) + " received");
        std::size_t k = 0;
        for (const auto& [order, receive] : receives) check(*receive, *messages[k++]);
    }
    for (const auto& [envelope, messages] : sent)
        if (!messages.empty() && got.find(envelope) == got.end()) failed(name_of(envelope) + ": lost");
}

void RoundRun::check(const Receive& receive, const Message& message) const {
    const std::string name = name_of({message.channel, message.source, message.tag}) + " (" +
                             std::to_string(message.bytes) + " bytes, mode " +
                             std::to_string(static_cast<int>(message.mode)) + ", layouts " +
                             std::to_string(static_cast<int>(message.layout)) + " to " +
                             std::to_string(static_cast<int>(receive.plan.layout)) + ")";
    if ((receive.plan.source != MPI_ANY_SOURCE && receive.plan.source != message.source) ||
        (receive.plan.tag != MPI_ANY_TAG && receive.plan.tag != message.tag))
        failed(name + ": received where source " + std::to_string(receive.plan.source) + " and tag " +
               std::to_string(receive.plan.tag) + " were asked for");
    int bytes = 0;
    MPI_Get_elements(&receive.status, MPI_BYTE, &bytes);
    if (static_cast<std::size_t>(bytes) != message.bytes)
        failed(name + ": the status says " + std::to_string(bytes) + " bytes");
    const std::string bad = receive.layout.check(receive.memory.data(), message.key, message.bytes);
    if (!bad.empty()) failed(name + ": " + bad);
}

}  // namespace storm

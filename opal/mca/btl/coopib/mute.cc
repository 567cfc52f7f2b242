// SPDX-License-Identifier: BSD-3-Clause
#include "mute.h"

#include "coop/path/silence.h"
#include "failover.h"
#include "module.h"
#include "rules.h"

namespace coop::ib {
namespace {

// Without receive credits, the peer's queue pairs take from a queue that may be empty while the peer computes. With
// credits, there is a buffer for each message that takes one; few are kept for the messages that return credits and
// take none.
bool may_wait_for_buffer(const Rail& rail, Work& work) {
    const bool has_buffer = rail.counts_credits && work.wants_credit;
    return work.kind == WorkKind::kSend && Fragment::of(work).ring_address == 0 && !has_buffer;
}

path::Pending pending_on(const Channel& channel, Rail& rail) {
    path::Pending pending;
    pending.any = rail.expects_completion();
    pending.ended = rail.ended();
    pending.heard = channel.arrivals.expected() + channel.seen_unordered.expected();
    // Inline messages go into the ring if there is one.
    pending.needs_buffer = !rail.counts_credits && !channel.outbox;
    for (Work* work = rail.posted.front(); work != nullptr; work = rail.posted.next(work)) {
        pending.bytes += work->bytes;
        pending.needs_buffer |= may_wait_for_buffer(rail, *work);
    }
    return pending;
}

bool is_mute(Channel& channel, sched::RailIndex number, Rail& rail, path::Silence& silence, std::uint64_t now) {
    // A mark shows whether inline messages have left the queue pair.
    if (const int error = rail.make_room(); error != 0) {
        channel.on_refused(rail, rail.mark, error);
        return false;
    }
    const auto retries = static_cast<unsigned>(channel.module.given.retry_count);
    return silence.look(pending_on(channel, rail), path::retry_time_ns(channel.timeout, retries),
                        channel.scheduler->rails()[number].info.bytes_per_s, now);
}

}  // namespace

void look_for_mute_rails(Channel& channel, std::uint64_t now) {
    if (!holds(Rule::kMute)) return;
    for (sched::RailIndex number = 0; number < channel.repair.size(); ++number) {
        RailRepair& repair = channel.repair[number];
        Rail* const rail = channel.rails.find(number);
        if (rail == nullptr || rail->state != rail::RailState::kUp) continue;
        bool mute = is_mute(channel, number, *rail, repair.silence, now);
        if (Rail* const reader = channel.rails.reader(number); reader != nullptr && reader->state == rail->state)
            mute |= is_mute(channel, number, *reader, repair.reader_silence, now);
        if (mute) begin_repair(channel, number, "its requests do not end");
    }
}

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
#include "failover.h"

#include <algorithm>
#include <utility>

#include "connect.h"
#include "diagnose.h"
#include "message.h"
#include "module.h"
#include "mute.h"
#include "operation.h"
#include "progress.h"
#include "queue_pairs.h"
#include "replay.h"
#include "rules.h"

namespace coop::ib {
namespace {

using path::LifeDo;
using path::LifeEvent;

constexpr std::uint64_t kPause = 100'000;               // ns between two looks at timers
constexpr std::uint64_t kLongPause = 100'000'000;       // the same, of channels that are not watched
constexpr std::uint64_t kLeastRetired = 2'000'000'000;  // ns that a queue pair stays in the error state

Rail* reader_of(const Channel& channel, sched::RailIndex number) { return channel.rails.reader(number); }

void watch(Channel& channel) {
    if (!std::exchange(channel.watched, true)) ++channel.module.repairing;
}

// --- stopping --------------------------------------------------------------------------------------------------------

// If the queue pair does not take the last request, it counts as drained when the time for that is over.
void stop_queue_pair(Rail& rail) {
    rail.drained = false;
    rail.closed_ns = now_ns();
    rail.stop();
    static_cast<void>(rail.qp.post_empty_write(&rail.last));
}

// No rail is usable: requests wait from now on as they do before the connection.
void begin_partition(Channel& channel) {
    channel.partition_ns = now_ns();
    ++channel.partitions;
    channel.window.shut();
    channel.endpoint.connected.store(false, std::memory_order_release);
    if (!channel.left) partitioned(channel.endpoint, channel.module.given.partition_timeout);
}

// What has been learned with other rails may be wrong now, and what is repeated takes longer.
void forget_times(Channel& channel) {
    channel.trials = {};
    channel.timed = {};
}

void stop(Channel& channel, sched::RailIndex number) {
    watch(channel);
    forget_times(channel);
    if (channel.rails[number].state == rail::RailState::kUp) channel.shut(number);
    channel.rails.for_both(number, stop_queue_pair);
    if (channel.partition_ns == 0 && !channel.has_usable_rail()) begin_partition(channel);
    if (!holds(Rule::kFollowers))
        for (Work* work = channel.rails[number].posted.front(); work != nullptr;
             work = channel.rails[number].posted.next(work))
            work->follows = false;
    channel.rails.for_both(number, [&](Rail& rail) { channel.displace_posted(rail); });
    channel.rails.for_both(number, [&](Rail& rail) { channel.resubmit_waiting(rail); });
}

// --- coming back -----------------------------------------------------------------------------------------------------

// Takes a rail out of the channel. Its queue pair stays for a while.
void retire(Channel& channel, std::unique_ptr<Rail> rail) {
    if (rail == nullptr) return;
    watch(channel);
    rail->stop();
    rail->state = rail::RailState::kFailed;
    rail->closed_ns = now_ns();
    channel.retired.push_back(std::move(rail));
}

void retire(Channel& channel, std::vector<std::unique_ptr<Rail>> rails) {
    for (auto& rail : rails) retire(channel, std::move(rail));
}

void set_up(Channel& channel, sched::RailIndex number, Rail& rail, Rail* old) {
    set_mark(channel.endpoint, rail, number);
    rail.state = rail::RailState::kUp;
    rail.generation = channel.repair[number].life.generation() + 1;
    if (old == nullptr) return;
    rail.counts = old->counts;
    rail.early = old->early;
    rail.moves = old->moves;
    if (rail.balance == nullptr || old->balance == nullptr) return;
    const std::size_t path = rail.balance->current();  // the new queue pair may have moved already
    rail.balance = std::move(old->balance);
    rail.balance->on_replaced(path, now_ns());
}

std::optional<sched::SequenceNumber> take_early_follower(Channel& channel, const Rail& rail) {
    std::optional<sched::SequenceNumber> number;
    std::erase_if(channel.early_followers, [&](const EarlyFollower& each) {
        const bool same = each.hca == rail.local_hca && each.qp_number == rail.qp.number();
        if (same) number = each.number;
        return same;
    });
    return number;
}

// The peer may have used the queue pairs of an attempt that has failed here.
void retire_attempt(Channel& channel, sched::RailIndex number, std::vector<std::unique_ptr<Rail>> rails) {
    for (const auto& rail : rails)
        if (const auto follower = rail != nullptr ? take_early_follower(channel, *rail) : std::nullopt)
            channel.repair[number].attempt_follower = follower;
    retire(channel, std::move(rails));
}

// Puts the queue pairs of a successful attempt into the channel.
void install(Channel& channel, sched::RailIndex number, std::vector<std::unique_ptr<Rail>> rails) {
    rails.resize(2);
    std::unique_ptr<Rail> rail = std::move(rails[0]), reader = std::move(rails[1]);
    if (reader != nullptr && reader->state == rail::RailState::kClosed) retire(channel, std::move(reader));
    set_up(channel, number, *rail, channel.rails.find(number));
    rail->last_follower = take_early_follower(channel, *rail);
    channel.has_own_receives |= !rail->receives.empty();
    if (reader != nullptr) set_up(channel, number, *reader, channel.rails.any_reader(number));
    auto old = channel.rails.replace(number, std::move(rail), std::move(reader));
    retire(channel, std::move(old.first));
    retire(channel, std::move(old.second));
}

void use(Channel& channel, sched::RailIndex number) {
    RailRepair& repair = channel.repair[number];
    const std::uint64_t now = now_ns(), away = now - repair.lost_ns;
    ++repair.recoveries;
    repair.arrived.reset();
    repair.silence = repair.reader_silence = {};  // that of the queue pairs before says nothing about these
    forget_times(channel);
    repair.down_ns += away;
    rail_back(channel, number, away);
    const std::uint64_t since = std::exchange(channel.partition_ns, 0);
    channel.admit(number, sched::RailState::kSuspect);
    cut_waiting(channel.module, channel);
    if (since == 0 || channel.partition_ns != 0) return;
    partition_over(channel.endpoint, now - since);
    channel.endpoint.connected.store(true, std::memory_order_release);
    release_waiting(channel.module, channel.endpoint);
}

void reopen(Channel& channel, sched::RailIndex number) {
    RailRepair& repair = channel.repair[number];
    repair.attempt_follower.reset();
    std::vector<path::PathChoice> paths{repair.path};
    if (repair.wants_reader) paths.push_back(repair.reader_path);
    channel.module.connections->reopen(channel.endpoint.id, channel.endpoint.remote, number,
                                       repair.life.generation() + 1, std::move(paths));
}

// --- datagrams -------------------------------------------------------------------------------------------------------

// The ports without a rail that works; 0 if that would be all. `port`: the member of a path that selects it.
path::PortSet without_rail(const Channel& channel, const path::PortList& list, std::uint8_t path::PathChoice::*port) {
    path::PortSet with = 0, all = 0;
    for (sched::RailIndex i = 0; i < channel.repair.size(); ++i) {
        const path::PortSet ends = set_of(list.ports[channel.repair[i].path.*port]);
        const Rail* const rail = channel.rails.find(i);
        all |= ends;
        if (rail != nullptr && rail->state == rail::RailState::kUp) with |= ends;
    }
    return with == 0 ? 0 : all & ~with;
}

void tell_peer(Channel& channel, sched::RailIndex number, path::Kind kind) {
    RailRepair& repair = channel.repair[number];
    path::Datagram datagram{kind, channel.module.id, channel.endpoint.id, 0, 1, 0, {}, number};
    datagram.wants_answer = !repair.life.peer_closed();
    datagram.life = repair.life.generation();
    datagram.expected = channel.arrivals.expected();
    datagram.unordered = channel.seen_unordered.expected();
    const Rail* const rail = channel.rails.find(number);  // null: it has never opened
    const bool is_same = rail != nullptr && rail->generation == datagram.life;
    datagram.follower = is_same ? rail->last_follower : repair.attempt_follower;
    datagram.address = channel.module.connections->address_of(repair.path.local_port);
    const path::PortList& remote = channel.endpoint.remote;
    channel.module.connections->send(
        remote, datagram,
        {repair.way++, without_rail(channel, channel.module.own, &path::PathChoice::local_port),
         without_rail(channel, remote, &path::PathChoice::remote_port)});
}

// --- decisions -------------------------------------------------------------------------------------------------------

// From now on another queue pair, perhaps of another peer, may have its number.
void destroy_queue_pair(Module& m, Rail& rail) {
    m.uses[rail.local_hca].qp_users.erase(rail.qp.number());
    rail.qp.destroy();
}

void destroy(Channel& channel, sched::RailIndex number) {
    channel.rails.for_both(number, [&](Rail& rail) {
        if (!rail.drained) destroy_queue_pair(channel.module, rail);
        rail.drained = true;
    });
}

void carry_out(Channel& channel, sched::RailIndex number, LifeDo action) {
    switch (action) {
    case LifeDo::kStop: return stop(channel, number);
    case LifeDo::kDestroy: return destroy(channel, number);
    case LifeDo::kRepeatSafe: return repeat_posted(channel, number, false);
    case LifeDo::kRepeatAll: return repeat_all(channel, number);
    case LifeDo::kSendDown: return tell_peer(channel, number, path::Kind::kDown);
    case LifeDo::kSendClosed: return tell_peer(channel, number, path::Kind::kClosed);
    case LifeDo::kReopen: return reopen(channel, number);
    case LifeDo::kAbandon:
        return retire_attempt(channel, number, channel.module.connections->abandon(channel.endpoint.id, number));
    case LifeDo::kUse: return use(channel, number);
    case LifeDo::kTrust: return channel.scheduler->set_state(number, sched::RailState::kUp);
    }
}

void happen(Channel& channel, sched::RailIndex number, LifeEvent event, std::uint32_t generation = 0,
            bool wants_answer = false) {
    path::RailLife& life = channel.repair[number].life;
    watch(channel);
    for (const LifeDo action : life.on(event, now_ns(), generation, wants_answer)) carry_out(channel, number, action);
}

// A read behind writes whose rail has failed is executed over every rail, one after the other: the writes may have been
// repeated over any of them.
sched::RailIndex begin_reading(const Channel& channel, StripeWork& read) {
    const sched::RailIndex first = *sched::each(channel.rails.up()).begin();
    read.left = channel.rails.up() & ~sched::bit_of(first);
    return first;
}

bool is_part(const Channel& channel, sched::RailIndex number) { return number < channel.repair.size(); }

void note_loss(Channel& channel, sched::RailIndex number, const char* why) {
    RailRepair& repair = channel.repair[number];
    repair.lost_ns = now_ns();
    repair.way = 0;
    ++repair.failures;
    if (!channel.left) rail_lost(channel, number, why);
}

void on_closing(Channel& channel, const path::Datagram& datagram) {
    const sched::RailIndex number = datagram.rail;
    take_acknowledgement(channel.module, channel.endpoint, {datagram.expected, datagram.unordered});
    const path::RailLife& life = channel.repair[number].life;
    if (life.carries_data() && datagram.life == life.generation()) note_loss(channel, number, "the peer has closed it");
    if (datagram.kind == path::Kind::kClosed && datagram.life == life.generation())
        channel.repair[number].arrived = datagram.follower;
    happen(channel, number, datagram.kind == path::Kind::kDown ? LifeEvent::kPeerDown : LifeEvent::kPeerClosed,
           datagram.life, datagram.wants_answer);
}

void on_asked(Channel& channel, sched::RailIndex number, std::uint32_t generation) {
    const path::RailLife& life = channel.repair[number].life;
    if (life.carries_data() && generation == life.generation() + 1)
        note_loss(channel, number, "the peer has closed it");
    happen(channel, number, LifeEvent::kPeerAsks, generation);
}

void on_reopened(Channel& channel, News& news) {
    const path::RailLife& life = channel.repair[news.rail].life;
    if (life.state() != path::LifeState::kReopening || news.life != life.generation() + 1)
        return retire(channel, std::move(news.rails));
    install(channel, news.rail, std::move(news.rails));
    happen(channel, news.rail, LifeEvent::kEstablished);
    // The completion queue has no place for more as long as the old queue pair has some.
    bool takes_lists = true;
    channel.rails.for_both(news.rail, [&](const Rail& rail) { takes_lists &= rail.depth() >= channel.most_pieces; });
    if (!takes_lists) begin_repair(channel, news.rail, "its send queue is too short");
}

void on_attempt_failed(Channel& channel, News& news) {
    const path::RailLife& life = channel.repair[news.rail].life;
    retire_attempt(channel, news.rail, std::move(news.rails));
    if (news.life == life.generation() + 1) happen(channel, news.rail, LifeEvent::kGivenUp);
    // The peer has ended the attempt after this side had taken it for a success.
    else if (news.life == life.generation()) begin_repair(channel, news.rail, "the peer does not use it");
}

// --- time ------------------------------------------------------------------------------------------------------------

void forget_retired(Module& m, Channel& channel) {
    const std::uint64_t least = std::max(
        path::retry_time_ns(channel.timeout, static_cast<unsigned>(m.given.retry_count)), kLeastRetired);
    std::erase_if(channel.retired, [&](const std::unique_ptr<Rail>& rail) {
        if (m.sweeps != 0 || rail->in_use != 0 || m.emptied_ns < rail->closed_ns + least) return false;
        m.uses[rail->local_hca].qp_users.erase(rail->qp.number());
        m.connections->return_places(*rail);
        return true;
    });
}

// Arrivals over the queue pair have been taken. In a sweep inside of another one, the outer one may still have some.
void note_drained(Channel& channel, sched::RailIndex number) {
    if (channel.repair[number].life.state() != path::LifeState::kClosing) return;
    bool both = true;
    channel.rails.for_both(number, [&](const Rail& each) { both &= each.drained; });
    if (both) happen(channel, number, LifeEvent::kDrained);
}

// A queue pair that does not drain is not destroyed before its completions had a chance to be polled.
bool may_tick(const Module& m, const Channel& channel, sched::RailIndex number, std::uint64_t now) {
    const path::RailLife& life = channel.repair[number].life;
    if (!life.next_tick() || *life.next_tick() > now) return false;
    if (life.state() == path::LifeState::kClosing && !holds(Rule::kDestroy)) return false;
    return life.state() != path::LifeState::kClosing ||
           (m.sweeps == 0 && m.emptied_ns > channel.rails[number].closed_ns);
}

// Whether requests wait for a rail that there is not. Those in order also wait while others leave a rail, for which the peer
// may take any time.
bool lacks_rail(const Channel& channel) {
    return !channel.parked.empty() || (channel.in_order.has_waiting() && !channel.reaches_atomic_hca());
}

// Whether requests are on queue pairs that carry no data any more: they wait for the peer's CLOSED.
bool has_stranded(Channel& channel) {
    bool some = false;
    for (sched::RailIndex number = 0; number < channel.repair.size(); ++number)
        if (!channel.repair[number].life.carries_data())
            channel.rails.for_both(number, [&](const Rail& rail) { some |= !rail.posted.empty(); });
    return some;
}

// Whether something waits until a rail works. Without any rail, this includes messages that may be lost: both processes may wait
// for answers. A peer that has left closes nothing and acknowledges nothing any more.
bool waits_for_rail(Channel& channel) {
    if (lacks_rail(channel)) return true;
    if (channel.partition_ns == 0 && !channel.left) return false;
    const Endpoint& endpoint = channel.endpoint;
    const auto has_some = [](const OpList& uncut) { return !uncut.empty(); };
    if (!endpoint.waiting.empty() || !endpoint.waiting_ops.empty() || !channel.beyond.empty() ||
        std::any_of(channel.uncut.begin(), channel.uncut.end(), has_some) || channel.displaced() != 0 ||
        has_stranded(channel))
        return true;
    return !channel.left && (channel.held.size() != 0 || channel.held_unordered.size() != 0);
}

void end_if_partitioned(Channel& channel, std::uint64_t now) {
    const std::int64_t given = channel.module.given.partition_timeout;
    const auto limit = static_cast<std::uint64_t>(given) * 1'000'000'000u;
    channel.clock.look(waits_for_rail(channel), now);
    if (limit != 0 && channel.clock.waited() > limit) partition_too_long(channel.endpoint, given);
}

// Whether nothing happens to the rail before the next look at all channels.
bool rests(const path::RailLife& life, std::uint64_t now) {
    if (life.state() == path::LifeState::kUp) return true;
    return life.state() == path::LifeState::kDown && life.next_tick() && *life.next_tick() > now + kLongPause;
}

bool is_well(const Channel& channel, std::uint64_t now) {
    return channel.retired.empty() && channel.partition_ns == 0 && channel.parked.empty() &&
           !channel.in_order.has_waiting() &&
           std::all_of(channel.repair.begin(), channel.repair.end(),
                       [&](const RailRepair& each) { return rests(each.life, now); });
}

bool is_closing_any(const Channel& channel) {
    return std::any_of(channel.repair.begin(), channel.repair.end(),
                       [](const RailRepair& each) { return each.life.state() == path::LifeState::kClosing; });
}

void unwatch(Channel& channel) {
    channel.watched = false;
    --channel.module.repairing;
}

void look_after(Module& m, Channel& channel, std::uint64_t now) {
    if (channel.left && m.sweeps == 0) {
        end_messages(channel);
        if (!is_closing_any(channel) && !waits_for_rail(channel)) return unwatch(channel);
    }
    for (sched::RailIndex number = 0; number < channel.repair.size() && m.sweeps == 0; ++number)
        if (is_part(channel, number)) note_drained(channel, number);
    for (sched::RailIndex number = 0; number < channel.repair.size(); ++number)
        if (may_tick(m, channel, number, now)) happen(channel, number, LifeEvent::kTick);
    end_if_partitioned(channel, now);
    forget_retired(m, channel);
    if (is_well(channel, now)) unwatch(channel);
}

// Looks at all channels, some of which may have to be watched.
void look_around(Module& m, std::uint64_t now) {
    m.next_look_ns = now + kLongPause;
    for (const auto& [id, endpoint] : m.endpoints) {
        if (!endpoint->channel || !endpoint->channel->repairs || endpoint->channel->state != ChannelState::kConnected)
            continue;
        Channel& channel = *endpoint->channel;
        if (channel.left && waits_for_rail(channel)) watch(channel);
        if (channel.left) continue;
        // Inside of another sweep, completions may have been taken that nobody has handled yet.
        if (m.sweeps == 0) look_for_mute_rails(channel, now);
        if (!holds(Rule::kUnopened)) continue;
        for (const RailRepair& each : channel.repair)
            if (!rests(each.life, now)) watch(channel);
    }
}

}  // namespace

std::optional<sched::RailIndex> Channel::rail_for(Work& work) {
    if (!has_usable_rail()) return std::nullopt;
    if (work.kind == WorkKind::kGet && work.follows) return begin_reading(*this, static_cast<StripeWork&>(work));
    const sched::RailIndex rail = scheduler->rail_of_small(work.bytes, rail::direction_of(work.kind));
    if (work.kind == WorkKind::kPut) writes.on_write(rail);  // what comes behind it has to take this rail, too
    return rail;
}

bool Channel::reaches_atomic_hca() const noexcept {
    for (const Rail& rail : rails)
        if (rail.remote_hca == endpoint.atomic_hca) return true;
    return false;
}

// That of atomic operations, otherwise another one to the same HCA. One that has just come back is the last choice.
std::optional<sched::RailIndex> Channel::rail_in_order(const Work& work, std::optional<sched::RailIndex> taken) {
    const auto is_suspect = [&](sched::RailIndex number) {
        return scheduler->rails()[number].state == sched::RailState::kSuspect;
    };
    const auto rank = [&](sched::RailIndex number) { return 2 * is_suspect(number) + (number != *atomic_rail); };
    std::optional<sched::RailIndex> chosen;
    for (const Rail& rail : rails) {
        const sched::RailIndex number = rail.number();
        if (taken ? number != *taken : rail.remote_hca != endpoint.atomic_hca) continue;
        if (!chosen || rank(number) < rank(*chosen)) chosen = number;
    }
    if (chosen && work.kind == WorkKind::kPut) writes.on_write(*chosen);
    return chosen;
}

void prepare_repairs(Endpoint& endpoint, const std::vector<path::PathChoice>& paths) {
    Channel& channel = *endpoint.channel;
    const std::size_t rails = channel.rails.numbers();
    channel.repair.resize(rails);
    channel.timeout = timeout_for(channel.module, endpoint.remote);
    const std::uint64_t now = now_ns(),
                        hold = static_cast<std::uint64_t>(channel.module.given.failback_hold) * 1'000'000u;
    for (std::size_t i = 0; i < rails; ++i) {
        RailRepair& repair = channel.repair[i];
        const auto number = static_cast<sched::RailIndex>(i);
        const bool opened = (channel.rails.up() & sched::bit_of(number)) != 0;
        repair.life = opened ? path::RailLife(hold) : path::RailLife::of_unopened(hold, now);
        if (!holds(Rule::kClosed)) repair.life.repeat_early_for_test();
        repair.lost_ns = now;
        repair.path = paths[i];
        if (Rail* const rail = channel.rails.find(number)) rail->last_follower = take_early_follower(channel, *rail);
        repair.wants_reader = opened ? reader_of(channel, number) != nullptr : paths.size() > rails;
        if (repair.wants_reader) repair.reader_path = paths[rails + i];
    }
}

bool read_further(Channel& channel, StripeWork& read, std::uint64_t now) {
    const sched::RailMask left = std::exchange(read.left, 0) & channel.rails.up();
    if (left == 0) return false;
    channel.on_completed(read, now);
    const sched::RailIndex next = *sched::each(left).begin();
    read.left = left & ~sched::bit_of(next);
    read.rail = next;
    channel.submit_stripe(read, read.has_token);
    return true;
}

void begin_repair(Channel& channel, sched::RailIndex number, const char* why) {
    if (!is_part(channel, number) || !channel.repair[number].life.carries_data()) return;
    note_loss(channel, number, why);
    happen(channel, number, LifeEvent::kTrouble);
}

void on_drained(Channel& channel, Rail& rail) {
    rail.drained = true;
    if (channel.module.sweeps == 1) note_drained(channel, rail.number());
}

void on_port_down(Channel& channel, sched::RailIndex number, const char* why) {
    if (channel.left) return;
    if (is_part(channel, number) && channel.repair[number].life.carries_data()) note_loss(channel, number, why);
    if (is_part(channel, number)) happen(channel, number, LifeEvent::kPortDown);
}

void on_port_active(Channel& channel, sched::RailIndex number) {
    if (is_part(channel, number) && !channel.left) happen(channel, number, LifeEvent::kPortActive);
}

void on_repair_news(Module&, Endpoint& endpoint, News& news) {
    if (!endpoint.channel || endpoint.channel->state != ChannelState::kConnected) return;
    Channel& channel = *endpoint.channel;
    if (!is_part(channel, news.rail)) return;
    if (channel.left) return retire(channel, std::move(news.rails));
    switch (news.what) {
    case News::What::kClosing: return on_closing(channel, news.datagram);
    case News::What::kAsked: return on_asked(channel, news.rail, news.life);
    case News::What::kEstablished: return on_reopened(channel, news);
    case News::What::kGivenUp: return on_attempt_failed(channel, news);
    case News::What::kBusy: return channel.clock.hear();
    case News::What::kLeft:
    case News::What::kQueuePairs:
    case News::What::kLate:
    case News::What::kMoved:
    case News::What::kEvent: return;
    }
}

void on_left(Endpoint& endpoint) {
    if (!endpoint.survives || !endpoint.channel || endpoint.channel->state != ChannelState::kConnected) return;
    endpoint.channel->left = true;
}

void say_goodbye(Module& m) {
    if (!m.connections || !holds(Rule::kLeft)) return;
    std::vector<Farewell> peers;
    for (const auto& [id, endpoint] : m.endpoints)
        if (endpoint->survives && endpoint->channel && endpoint->channel->state == ChannelState::kConnected)
            peers.push_back({id, without_rail(*endpoint->channel, m.own, &path::PathChoice::local_port),
                             without_rail(*endpoint->channel, endpoint->remote, &path::PathChoice::remote_port)});
    if (!peers.empty()) m.connections->say_goodbye(peers);
}

void end_repetition(Channel& channel, Fragment& fragment) noexcept {
    fragment.repeats = false;
    --channel.outbox->repeating;
}

void forget_held(Module& m, Fragment& fragment) {
    Channel& channel = *fragment.work.endpoint->channel;
    (fragment.work.ordered ? channel.held : channel.held_unordered).forget(fragment.work.psn);
    m.fragments.let_go(fragment);
}

void repair(Module& m) {
    const std::uint64_t now = now_ns();
    if (now < m.next_repair_ns) return;
    Guard guard(m);
    m.next_repair_ns = now + kPause;
    if (now >= m.next_look_ns) look_around(m, now);
    if (m.repairing == 0) return;
    for (const auto& [id, endpoint] : m.endpoints)
        if (endpoint->channel && endpoint->channel->watched) look_after(m, *endpoint->channel, now);
}

void note_sweep(Module& m, bool emptied) noexcept {
    if (emptied) m.emptied_ns = now_ns();
}

bool is_retired(const Channel& channel, std::uint32_t hca, std::uint32_t qp_number) noexcept {
    return std::any_of(channel.retired.begin(), channel.retired.end(), [&](const std::unique_ptr<Rail>& rail) {
        return rail->local_hca == hca && rail->qp.number() == qp_number;
    });
}

}  // namespace coop::ib

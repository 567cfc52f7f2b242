// SPDX-License-Identifier: BSD-3-Clause
#include "migration.h"

#include <algorithm>
#include <utility>

#include "diagnose.h"
#include "module.h"
#include "progress.h"

namespace coop::ib {
namespace {

using path::MigrationDo;
using path::MigrationEvent;

std::uint64_t name_of(std::uint32_t hca, std::uint32_t number) noexcept { return std::uint64_t{hca} << 32 | number; }

path::MigrationPatience patience_of(const Config& given) {
    path::MigrationPatience patience;
    patience.hold = static_cast<std::uint64_t>(given.failback_hold) * 1'000'000u;
    return patience;
}

path::PathSet paths_over(const MigratingQp& qp, std::uint32_t port) {
    path::PathSet paths;
    for (std::size_t i = 0; i < qp.ring.size(); ++i) paths[i] = qp.ring[i].port() == port;
    return paths;
}

MigrationEvent seen_as(ibv_mig_state state) noexcept {
    switch (state) {
    case IBV_MIG_MIGRATED: return MigrationEvent::kSeenMigrated;
    case IBV_MIG_REARM: return MigrationEvent::kSeenRearm;
    case IBV_MIG_ARMED: return MigrationEvent::kSeenArmed;
    }
    return MigrationEvent::kSeenRearm;
}

}  // namespace

MigratingQp::~MigratingQp() {
    const std::lock_guard guard(owner.lock_);
    owner.all_.erase(name_of(hca, number));
}

// --- events ----------------------------------------------------------------------------------------------------------

// To return to the first path is a risk: whether it works again beyond the port shows only there. So it does that only if
// failover could continue.
void Migrations::begin(const Module& m, Rail& rail, const path::PathChoice& path, const path::PortList& remote,
                       std::uint8_t timeout) {
    const path::Ring ring = path::ring_of(path, m.own.ports, remote.ports);
    rail.no_alternate = ring.why;
    if (!ring.has_alternate()) return;
    auto qp = std::make_unique<MigratingQp>(*this, rail.qp.get(), rail.local_hca);
    for (const path::PathChoice& each : ring.paths)
        qp->ring.push_back(rail::alternate_path(m.own.ports[each.local_port], remote.ports[each.remote_port], each,
                                                timeout, address_options(m.given)));
    qp->machine = path::Migration(ring.paths.size(), m.given.failover != 0, patience_of(m.given));
    const std::lock_guard guard(lock_);
    all_[name_of(qp->hca, qp->number)] = qp.get();
    carry_out(*qp, qp->machine.on(MigrationEvent::kConnected, 0), 0);
    if (qp->machine.state() == path::MigrationState::kUnable) rail.no_alternate = path::NoAlternate::kRefused;
    rail.migrating = std::move(qp);
    if (m.given.apm_balance == 0 || rail.no_alternate != path::NoAlternate::kNone) return;
    std::vector<double> links;
    for (const path::PathChoice& each : ring.paths)
        links.push_back(1e-3 * std::min(m.own.ports[each.local_port].rate_mbytes_per_s,
                                        remote.ports[each.remote_port].rate_mbytes_per_s));
    rail.balance = std::make_unique<path::Balance>(links);
}

// The probes of the rail have armed it, if both sides had loaded by then.
void Migrations::adopt(Rail& rail) {
    if (rail.migrating == nullptr) return;
    const std::lock_guard guard(lock_);
    MigratingQp& qp = *rail.migrating;
    qp.pulse = &rail.pulse;
    const rail::AlternatePath& path = qp.ring[qp.machine.current()];
    rail.port = path.port();
    rail.path_bits = path.address.src_path_bits;
    if (rail.balance != nullptr && qp.machine.current() != 0)
        rail.balance->on_moved(qp.machine.current(), now_ns(), false);
    const bool wanted = std::exchange(qp.wants_pulse, false);
    if (wanted && qp.machine.state() == path::MigrationState::kMigrated) send(qp);
}

void Migrations::on_event(std::uint32_t hca, const rail::HcaEvent& event, std::uint64_t now) {
    const std::lock_guard guard(lock_);
    if (event.type == IBV_EVENT_PORT_ERR || event.type == IBV_EVENT_PORT_ACTIVE)
        return on_port(hca, event.number, event.type == IBV_EVENT_PORT_ACTIVE, now);
    if (event.type != IBV_EVENT_PATH_MIG && event.type != IBV_EVENT_PATH_MIG_ERR) return;
    const auto known = all_.find(name_of(hca, event.number));
    if (known == all_.end()) return;
    carry_out(
        *known->second,
        known->second->machine.on(
            event.type == IBV_EVENT_PATH_MIG ? MigrationEvent::kPathMigrated : MigrationEvent::kMigrationFailed, now),
        now);
}

void Migrations::on_port(std::uint32_t hca, std::uint32_t port, bool works, std::uint64_t now) {
    for (const auto& [name, qp] : all_) {
        if (qp->hca != hca) continue;
        const path::PathSet paths = paths_over(*qp, port);
        if (paths.none()) continue;
        carry_out(*qp, works ? qp->machine.on_active(paths, now) : qp->machine.on_down(paths, now), now);
    }
    set_first_tick();
}

void Migrations::on_pulse(Rail& rail, std::uint64_t now) {
    if (rail.migrating == nullptr) return;
    const std::lock_guard guard(lock_);
    MigratingQp& qp = *rail.migrating;
    qp.pulsing = false;
    if (std::exchange(qp.wants_pulse, false)) return send(qp);
    carry_out(qp, qp.machine.on(MigrationEvent::kConfirmed, now), now);
}

void Migrations::on_tick(std::uint64_t now) {
    if (now < first_tick_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock_);
    for (const auto& [name, qp] : all_)
        if (const auto due = qp->machine.next_tick(); due && *due <= now)
            carry_out(*qp, qp->machine.on(MigrationEvent::kTick, now), now);
    set_first_tick();
}

void Migrations::set_first_tick() noexcept {
    std::uint64_t first = UINT64_MAX;
    for (const auto& [name, qp] : all_) first = std::min(first, qp->machine.next_tick().value_or(UINT64_MAX));
    first_tick_.store(first, std::memory_order_relaxed);
}

std::optional<std::uint64_t> Migrations::next_tick() const noexcept {
    const std::uint64_t first = first_tick_.load(std::memory_order_relaxed);
    return first == UINT64_MAX ? std::nullopt : std::optional(first);
}

void Migrations::leave(Rail& rail, std::uint64_t now) {
    if (rail.migrating == nullptr) return;
    const std::lock_guard guard(lock_);
    carry_out(*rail.migrating, rail.migrating->machine.on(MigrationEvent::kAsked, now), now);
}

bool Migrations::is_armed(Rail& rail, std::uint64_t now) {
    if (rail.migrating == nullptr) return false;
    const std::lock_guard guard(lock_);
    look(*rail.migrating, now);
    return rail.migrating->machine.state() == path::MigrationState::kArmed;
}

std::vector<Moved> Migrations::take_moved() {
    const std::lock_guard guard(lock_);
    return std::exchange(moved_, {});
}

// --- actions ---------------------------------------------------------------------------------------------------------

void Migrations::carry_out(MigratingQp& qp, const path::MigrationActions& actions, std::uint64_t now) {
    for (const MigrationDo action : actions) carry_out(qp, action, now);
}

void Migrations::carry_out(MigratingQp& qp, MigrationDo action, std::uint64_t now) {
    switch (action) {
    case MigrationDo::kLoad: {
        const int error = rail::load_alternate(qp.qp, qp.ring[qp.machine.next()]);
        return carry_out(qp, qp.machine.on(error == 0 ? MigrationEvent::kLoaded : MigrationEvent::kRefused, now), now);
    }
    case MigrationDo::kLook: return look(qp, now);
    case MigrationDo::kForce: {
        const int error = rail::force_migration(qp.qp);
        return carry_out(qp, qp.machine.on(error == 0 ? MigrationEvent::kForced : MigrationEvent::kRefused, now), now);
    }
    case MigrationDo::kSend: return send(qp);
    case MigrationDo::kTell: {
        const rail::AlternatePath& path = qp.ring[qp.machine.current()];
        moved_.push_back(
            {qp.hca, qp.number, path.port(), path.address.src_path_bits, qp.machine.current(), qp.machine.cause()});
        return;
    }
    }
}

// A queue pair that has moved but names a path that is not in the ring is on the one that was loaded.
void Migrations::look(MigratingQp& qp, std::uint64_t now) {
    const auto seen = rail::see_migration(qp.qp, qp.ring);
    if (!seen) return;
    const bool loaded = qp.machine.state() != path::MigrationState::kMigrated;
    const std::size_t path = seen->path.value_or(loaded ? qp.machine.next() : qp.machine.current());
    carry_out(qp, qp.machine.on(seen_as(seen->state), now, path), now);
}

// A queue pair that does not take it is in error, which shows elsewhere.
void Migrations::send(MigratingQp& qp) noexcept {
    if (qp.pulse == nullptr || qp.pulsing) {
        qp.wants_pulse = true;
        return;
    }
    ibv_send_wr write{};
    write.wr_id = reinterpret_cast<std::uint64_t>(qp.pulse);
    write.opcode = IBV_WR_RDMA_WRITE;
    write.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad;
    qp.pulsing = ibv_post_send(qp.qp, &write, &bad) == 0;
}

// --- the application -------------------------------------------------------------------------------------------------

void want_alternates(Module& m) {
    for (path::PortRecord& port : m.own.ports) {
        port.apm = static_cast<std::uint8_t>(m.given.apm);
        port.migrates = m.hcas[port.hca].caps().path_migration ? 1 : 0;
    }
}

bool has_alternates(const Module& m, const path::PortList& remote) {
    if (m.migrations == nullptr) return false;
    const std::vector<path::PathChoice> paths = path::choose_paths(m.own, remote);
    return std::any_of(paths.begin(), paths.end(), [&](const path::PathChoice& path) {
        return path::ring_of(path, m.own.ports, remote.ports).has_alternate();
    });
}

void check_alternates(const Module& m, const Endpoint& endpoint) {
    if (m.migrations == nullptr || endpoint.id == m.id) return;
    for (const Rail& rail : endpoint.channel->rails)
        if (rail.no_alternate != path::NoAlternate::kNone)
            return path_not_loaded(*endpoint.channel, rail, path::describe(rail.no_alternate));
}

void note_moved(Module& m, const Moved& moved) {
    const auto user = m.uses[moved.hca].qp_users.find(moved.qp_number);
    if (user == m.uses[moved.hca].qp_users.end() || !user->second->channel) return;
    Channel& channel = *user->second->channel;
    if (channel.state != ChannelState::kConnected) return;
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number)
        for (Rail* const rail : {channel.rails.find(number), channel.rails.any_reader(number)}) {
            if (rail == nullptr || rail->local_hca != moved.hca || rail->qp.number() != moved.qp_number) continue;
            rail_moved(channel, *rail, moved);
            rail->port = moved.port;
            rail->path_bits = moved.path_bits;
            ++rail->moves;
            if (rail->balance != nullptr)
                rail->balance->on_moved(moved.path, now_ns(), moved.cause == path::MoveCause::kAsked);
            // What has been learned over the other path may be wrong now.
            channel.trials = {};
            channel.timed = {};
        }
}

namespace {

void note_all_moved(Module& m) {
    for (const Moved& moved : m.migrations->take_moved()) note_moved(m, moved);
}

// What the port of the rail has carried in its direction: in for reads that have a queue pair of their own, otherwise out.
path::Carried& carried(Module& m, const Channel& channel, const Rail& rail) {
    auto& ports = m.uses[rail.local_hca].carried;
    if (ports.size() <= rail.port) ports.resize(rail.port + 1u);
    return ports[rail.port][channel.rails.any_reader(rail.number()) == &rail];
}

// If the alternate path has failed meanwhile, the queue pair is lost. Failover repeats everything but atomic operations, of which
// there may be some of either side.
bool may_risk(const Module& m, const Channel& channel) {
    return channel.repairs && !channel.had_atomics && !m.offers_atomics.load(std::memory_order_relaxed);
}

}  // namespace

void on_pulse(Module& m, Rail& rail) {
    if (m.migrations == nullptr) return;
    m.migrations->on_pulse(rail, now_ns());
    note_all_moved(m);
}

void note_posted(Module& m, Rail& rail, const Work& work) {
    rail.balance->on_posted(work.bytes, now_ns(), carried(m, *work.endpoint->channel, rail));
}

void balance(Module& m, Rail& rail, const Work& work, std::uint64_t now) {
    const Channel& channel = *work.endpoint->channel;
    path::Carried& port = carried(m, channel, rail);
    port += work.bytes;
    if (rail.balance == nullptr || !rail.balance->on_completed(work.bytes, now, m.swept_ns, port)) return;
    if (!may_risk(m, channel)) return;
    m.migrations->leave(rail, now);
    note_all_moved(m);
}

}  // namespace coop::ib

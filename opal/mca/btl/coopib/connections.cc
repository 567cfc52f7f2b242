// SPDX-License-Identifier: BSD-3-Clause
#include "connections.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "coop/async/signals.h"
#include "module.h"
#include "procs.h"
#include "progress.h"
#include "queue_pairs.h"
#include "rules.h"

namespace coop::ib {
namespace {

// A rail that has not answered its probe for this long is checked for an error, which costs a system call.
constexpr path::Nanoseconds kAskQueuePairAfter = 50'000'000;

// Of attempts to connect a rail once more.
constexpr path::Nanoseconds kFirstPauseOfAttempt = 1'000'000;
constexpr path::Nanoseconds kLongestPauseOfAttempt = 100'000'000;  // perhaps the peer has no other rail
constexpr path::Nanoseconds kProbeOfAttempt = 500'000'000;

path::Patience patience_of(const Module& m) {
    path::Patience patience;
    patience.notice = static_cast<std::uint64_t>(m.given.connect_timeout) * 1'000'000'000u;
    patience.probe = static_cast<std::uint64_t>(m.given.probe_timeout) * 1'000'000u;
    return patience;
}

// With failover, the thread looks for datagrams at least as often as this, because the notification of one may be lost:
// the first while it connects, the second at other times. Waking takes time from the application.
constexpr path::Nanoseconds kLongestSleep = 100'000'000, kLongestRest = 2'000'000'000;

// If there is no thread, the application reads the HCAs' events. This takes a system call for each HCA, so it is done
// rarely.
constexpr std::uint32_t kPollsPerLookAtEvents = 4096;

// News that the application has not taken for so long mean that it computes.
constexpr path::Nanoseconds kBusyAfter = 250'000'000;

constexpr bool is_in(path::RailMask mask, std::size_t rail) noexcept { return (mask >> rail & 1) != 0; }

}  // namespace

Connections::~Connections() {
    stop_thread();
    if (wake_ >= 0) close(wake_);
}

void Connections::stop_thread() noexcept {
    if (!thread_.joinable() || getpid() != process_) return;
    stopping_.store(true, std::memory_order_release);
    wake();
    thread_.join();
}

rail::Status Connections::open() {
    std::vector<rail::Diagnostic> said;
    auto connector = rail::Connector::open(
        m_.hcas, {.every_port = holds(Rule::kPorts), .address = address_options(m_.given)}, said);
    if (!connector) return connector.trouble();
    connector_.emplace(std::move(*connector));
    std::vector<rail::Hca*> hcas;
    for (rail::Hca& hca : m_.hcas) hcas.push_back(&hca);
    if (!probe_memory_.open(m_.id, std::move(hcas)))
        return rail::Trouble{errno, "cannot register the memory that probes of rails need"};
    return rail::Done{};
}

std::optional<std::string> Connections::start_thread() {
    own_ = m_.own.ports;
    for (const rail::Hca& hca : m_.hcas)
        event_sources_.push_back(rail::make_events_nonblocking(hca.context()) ? hca.context()->async_fd : -1);
    arrivals_ = connector_->descriptors();
    if (arrivals_.empty()) return "an HCA has no completion channels";
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return std::string("no descriptor: ") + strerror(errno);
    const async::SignalsBlocked blocked;
    const std::lock_guard guard(lock_);  // the thread looks at thread_
    try {
        thread_ = std::thread([this] { run(); });
        process_ = getpid();
    } catch (const std::system_error& error) {
        return std::string("no thread: ") + error.what();
    }
    pthread_setname_np(thread_.native_handle(), "coopib-connect");
    return std::nullopt;
}

// --- the thread ----------------------------------------------------------------------------------------------------

void Connections::run() noexcept {
    while (!stopping_.load(std::memory_order_acquire)) {
        {
            const std::lock_guard guard(lock_);
            connector_->arm();
            serve();
        }
        sleep();
    }
}

std::optional<path::Nanoseconds> Connections::until_first_timer() const noexcept {
    const std::lock_guard guard(lock_);
    auto first = timers_.first();
    if (const auto moves = m_.migrations ? m_.migrations->next_tick() : std::nullopt; moves)
        first = first ? std::min(*first, *moves) : *moves;
    if (!first) return std::nullopt;
    const path::Nanoseconds now = now_ns();
    return *first > now ? *first - now : 0;
}

// Sleeps until a datagram arrives, an HCA reports an event, a timer is due or the application wants a connection.
void Connections::sleep() noexcept {
    std::vector<pollfd> all{{wake_, POLLIN, 0}};
    for (const int descriptor : event_sources_) all.push_back({descriptor, POLLIN, 0});  // poll() ignores -1
    for (const int descriptor : arrivals_) all.push_back({descriptor, POLLIN, 0});
    auto wait = until_first_timer();
    if (m_.given.failover != 0) wait = wait ? std::min(*wait, kLongestSleep) : kLongestRest;
    timespec pause{};
    if (wait) pause = {static_cast<time_t>(*wait / 1'000'000'000), static_cast<long>(*wait % 1'000'000'000)};
    if (ppoll(all.data(), all.size(), wait ? &pause : nullptr, nullptr) <= 0) return;
    std::uint64_t count;
    if (all[0].revents != 0) static_cast<void>(!read(wake_, &count, sizeof count));
    const std::size_t hcas = event_sources_.size();
    // A descriptor that reports an error but nothing to read would wake ppoll() at once, every time.
    const auto has_failed = [](const pollfd& one) {
        return (one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 && (one.revents & POLLIN) == 0;
    };
    for (std::size_t i = 0; i < hcas; ++i) {
        if (all[1 + i].revents != 0) take_events(i);
        if (has_failed(all[1 + i])) event_sources_[i] = -1;
    }
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
        const pollfd& one = all[1 + hcas + i];
        if (one.revents != 0) connector_->acknowledge(arrivals_[i]);
        if (has_failed(one)) arrivals_[i] = -1;
    }
}

void Connections::wake() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake_, &one, sizeof one));  // if it is full, the thread is awake
}

void Connections::take_events(std::size_t hca) {
    std::vector<rail::HcaEvent> events;
    if (!rail::read_events(m_.hcas[hca].context(), events)) event_sources_[hca] = -1;
    const std::lock_guard guard(lock_);
    for (const rail::HcaEvent& event : events) {
        ++events_[hca];
        if (rail::meaning_of(event.type) == rail::Meaning::kNotice) look_at_own_ports(hca);
        // Before the application learns that a port is down: it repairs only what is still on that port.
        if (m_.migrations) m_.migrations->on_event(static_cast<std::uint32_t>(hca), event, now_ns());
        tell_moved();
        if (rail::meaning_of(event.type) == rail::Meaning::kNothing) continue;
        tell({.what = News::What::kEvent, .hca = static_cast<std::uint32_t>(hca), .event = event});
    }
}

void Connections::tell_moved() {
    if (!m_.migrations) return;
    for (const Moved& moved : m_.migrations->take_moved()) tell({.what = News::What::kMoved, .moved = moved});
}

// A port may have another address. What else its record says was agreed with all peers, and does not change.
void Connections::look_at_own_ports(std::size_t hca) {
    for (path::PortRecord& port : own_) {
        std::uint32_t unused = 0;
        if (port.hca != hca) continue;
        const auto found = rail::query_port(m_.hcas[hca].context(), port.port, wishes_for_ports(m_.given), unused);
        const auto* now = std::get_if<path::PortRecord>(&found);
        if (now == nullptr || (now->lid == port.lid && now->gid == port.gid && now->gid_index == port.gid_index))
            continue;
        // The IP address of a RoCE port has gone. The peers cannot reach the one that is left.
        if (path::is_link_local(now->gid) && !path::is_link_local(port.gid)) continue;
        port.lid = now->lid;
        port.gid = now->gid;
        port.gid_index = now->gid_index;
        connector_->on_moved(port);
    }
}

path::PortAddress Connections::own_address(std::size_t port) const {
    return {static_cast<std::uint8_t>(port), own_[port].lid, own_[port].gid};
}

path::PortAddress Connections::address_of(std::uint8_t own_port) const {
    const std::lock_guard guard(lock_);
    return own_address(own_port);
}

// That of the port of the rail. If it is about all rails: of a port that has moved, another one with each repetition.
std::optional<path::PortAddress> Connections::address_to_tell(const Link& link) const {
    if (link.rail != path::kAllRails) return own_address(link.connection.path(0).local_port);
    std::vector<std::size_t> moved;
    for (std::size_t i = 0; i < own_.size(); ++i)
        if (own_[i].lid != m_.own.ports[i].lid || own_[i].gid != m_.own.ports[i].gid) moved.push_back(i);
    if (moved.empty()) return std::nullopt;
    return own_address(moved[link.connection.attempt() % moved.size()]);
}

std::vector<path::PortRecord> Connections::ports_now(std::uint64_t peer, const path::PortList& remote) const {
    std::vector<path::PortRecord> ports = remote.ports;
    const auto told = addresses_.find(peer);
    if (told == addresses_.end()) return ports;
    for (const auto& [port, address] : told->second) {
        if (port >= ports.size()) continue;
        ports[port].lid = address.lid;
        ports[port].gid = address.gid;
    }
    return ports;
}

// Handles all datagrams and timers. Call it with the lock held.
void Connections::serve() noexcept {
    while (connector_->poll([this](std::span<const std::byte> bytes) { take_datagram(bytes); }) > 0) {
    }
    const path::Nanoseconds now = now_ns();
    while (Link* link = timers_.due(now)) carry_out(*link, link->connection.on_tick(now));
    if (m_.migrations) m_.migrations->on_tick(now);
    tell_moved();
}

void Connections::poll() noexcept {
    if (!thread_.joinable() && polls_.fetch_add(1, std::memory_order_relaxed) % kPollsPerLookAtEvents == 0)
        for (std::size_t i = 0; i < event_sources_.size(); ++i)
            if (event_sources_[i] >= 0) take_events(i);
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (guard.owns_lock()) serve();
}

// --- events --------------------------------------------------------------------------------------------------------

// Finds or makes the link to a peer. `remote` is null if only the peer's id is known. Returns null if the peer has
// published no usable ports.
Connections::Link* Connections::find(std::uint64_t peer, const path::PortList* remote) {
    if (const auto known = links_.find(peer); known != links_.end()) return known->second.get();
    std::optional<path::PortList> published;
    if (remote == nullptr) {
        published = published_ports(peer);
        if (!published) return nullptr;
        remote = &*published;
    }
    const auto generation = static_cast<std::uint32_t>(now_ns() >> 10) | 1;
    path::Connection connection(m_.id, peer, generation, path::choose_paths(m_.own, *remote), patience_of(m_),
                                probe_memory_.own_word());
    auto link = std::make_unique<Link>(
        Link{peer, *remote, std::move(connection), {}, {}, 0, {}, path::kAllRails, 0, timeout_for(m_, *remote)});
    return (links_[peer] = std::move(link)).get();
}

void Connections::want(std::uint64_t peer, const path::PortList& remote) {
    const std::lock_guard guard(lock_);
    Link& link = *find(peer, &remote);
    carry_out(link, link.connection.on_want(now_ns()));
}

void Connections::take_datagram(std::span<const std::byte> bytes) {
    const path::Decoded decoded = path::decode(bytes);
    const auto* datagram = std::get_if<path::Datagram>(&decoded);
    if (datagram == nullptr || datagram->receiver != m_.id)
        return;  // of another job, or damaged: the sender repeats it
    if (datagram->address && holds(Rule::kAddress))
        addresses_[datagram->sender][datagram->address->port] = *datagram->address;
    if (datagram->kind == path::Kind::kLeft) return take_goodbye(*datagram);
    if (datagram->rail != path::kAllRails) return take_datagram_of_rail(*datagram);
    Link* link = find(datagram->sender, nullptr);
    if (link != nullptr) carry_out(*link, link->connection.on_datagram(*datagram, now_ns()));
}

// An attempt to connect a rail begins when the application wants it, also if the peer asks first: the application knows
// whether the rail is closed.
void Connections::take_datagram_of_rail(const path::Datagram& datagram) {
    if (datagram.kind == path::Kind::kBusy)
        return tell_once({.what = News::What::kBusy, .peer = datagram.sender, .rail = datagram.rail});
    if (path::is_about_closing(datagram.kind)) {
        if (datagram.wants_answer) say_busy(datagram);
        return tell_once(
            {.what = News::What::kClosing, .peer = datagram.sender, .rail = datagram.rail, .datagram = datagram});
    }
    const auto found = attempts_.find({datagram.sender, datagram.rail});
    const bool known = found != attempts_.end() && found->second->life == datagram.life;
    if (datagram.kind == path::Kind::kRequest) {
        const auto asked = [&] {
            say_busy(datagram);
            tell_once(
                {.what = News::What::kAsked, .peer = datagram.sender, .rail = datagram.rail, .life = datagram.life});
        };
        if (!known) return asked();
        // The peer may have given up an attempt that this side still follows.
        path::Connection& connection = found->second->connection;
        const std::uint32_t theirs = connection.peer_generation();
        if (connection.state() == path::State::kGivenUp) return asked();
        if (theirs != 0 && theirs != datagram.generation && datagram.generation - theirs < UINT32_MAX / 2 &&
            connection.state() != path::State::kEstablished)
            return carry_out(*found->second, connection.on_failed(path::Reason::kRefused)), asked();
    }
    if (known) carry_out(*found->second, found->second->connection.on_datagram(datagram, now_ns()));
}

// An application that calls MPI takes news soon, and answers. Otherwise this tells the peer that the process lives.
void Connections::say_busy(const path::Datagram& to) {
    if (!holds(Rule::kBusy) || news_.empty() || now_ns() - news_since_ < kBusyAfter) return;
    const auto known = links_.find(to.sender);
    if (known == links_.end()) return;
    Link& link = *known->second;
    path::Datagram datagram{path::Kind::kBusy, m_.id, to.sender, 0, 1, 0, {}, to.rail};
    datagram.life = to.life;
    static_cast<void>(connector_->send(link.remote.ports, encode(datagram), {link.answers++, 0, 0},
                                       ports_now(to.sender, link.remote)));
}

void Connections::say_goodbye(const std::vector<Farewell>& peers) {
    constexpr path::Nanoseconds kLongest = 100'000'000;
    const auto ignore = [](std::span<const std::byte>) {};
    const std::lock_guard guard(lock_);
    const path::Nanoseconds end = now_ns() + kLongest;
    for (const Farewell& to : peers) {
        const auto known = links_.find(to.peer);
        if (known == links_.end()) continue;
        const Link& link = *known->second;
        path::Datagram datagram = link.connection.datagram(path::Kind::kDone);
        datagram.kind = path::Kind::kLeft;
        datagram.rails.clear();
        const std::vector<std::byte> bytes = encode(datagram);
        for (const std::uint32_t attempt : {0u, 1u}) {  // over other ports the second time, if there are any
            const rail::Way way{attempt, to.avoid_local, to.avoid_remote};
            // Sends that have ended make room for more.
            while (!connector_->send(link.remote.ports, bytes, way, ports_now(to.peer, link.remote)) && now_ns() < end)
                connector_->poll(ignore);
        }
    }
    while (!connector_->has_sent() && now_ns() < end) connector_->poll(ignore);
}

// The datagram must be about this connection: of an earlier one, it would let messages to a process that lives count as
// delivered.
void Connections::take_goodbye(const path::Datagram& datagram) {
    const auto known = links_.find(datagram.sender);
    if (known == links_.end() || known->second->connection.peer_generation() != datagram.generation) return;
    tell({.what = News::What::kLeft, .peer = datagram.sender});
}

void Connections::reopen(std::uint64_t peer, const path::PortList& remote, std::uint8_t rail, std::uint32_t life,
                         std::vector<path::PathChoice> paths) {
    const std::lock_guard guard(lock_);
    path::Patience patience = patience_of(m_);
    patience.first = kFirstPauseOfAttempt;
    patience.longest = kLongestPauseOfAttempt;
    patience.notice = 0;
    for (const path::PathChoice& path : paths) look_at_own_ports(m_.own.ports[path.local_port].hca);
    std::unique_ptr<Link>& link = attempts_[{peer, rail}];
    if (link != nullptr) timers_.set(*link, link->due, std::nullopt);
    const auto generation = static_cast<std::uint32_t>(now_ns() >> 10) | 1;
    link = std::make_unique<Link>(
        Link{peer,
             remote,
             path::Connection(m_.id, peer, generation, std::move(paths), patience, probe_memory_.own_word()),
             {},
             {},
             0,
             {},
             rail,
             life,
             timeout_for(m_, remote)});
    carry_out(*link, link->connection.on_want(now_ns()));
}

std::vector<std::unique_ptr<Rail>> Connections::abandon(std::uint64_t peer, std::uint8_t rail) {
    const std::lock_guard guard(lock_);
    std::vector<std::unique_ptr<Rail>> rails;
    const auto found = attempts_.find({peer, rail});
    if (found != attempts_.end()) {
        close_rails(*found->second, ~path::RailMask{0});
        rails = std::move(found->second->rails);
        timers_.set(*found->second, found->second->due, std::nullopt);
        attempts_.erase(found);
    }
    // The attempt may have succeeded, without the application knowing it yet.
    for (News& news : news_) {
        if (news.peer != peer || news.rail != rail || news.what != News::What::kEstablished) continue;
        for (auto& each : news.rails) {
            if (each != nullptr) each->stop();
            rails.push_back(std::move(each));
        }
        news.what = News::What::kGivenUp;
        news.life = 0;
        news.rails.clear();
    }
    return rails;
}

void Connections::send(const path::PortList& remote, const path::Datagram& datagram, const rail::Way& way) {
    const std::lock_guard guard(lock_);
    static_cast<void>(connector_->send(remote.ports, encode(datagram), way, ports_now(datagram.receiver, remote)));
}

void Connections::return_places(const Rail& rail) {
    const std::lock_guard guard(lock_);
    m_.uses[rail.local_hca].cq_needed -= rail.cq_places;
    --m_.uses[rail.local_hca].queue_pairs;
}

// --- actions -------------------------------------------------------------------------------------------------------

void Connections::carry_out(Link& link, const path::Actions& actions) {
    for (const path::Action& action : actions) carry_out(link, action);
    schedule(link);
}

void Connections::carry_out(Link& link, const path::Action& action) {
    switch (action.what) {
    case path::Do::kMakeQueuePairs: return make_rails(link);
    case path::Do::kConnectQueuePairs: return connect_rails(link);
    case path::Do::kProbe: return probe(link);
    case path::Do::kLook: return look(link);
    case path::Do::kSend: {
        path::Datagram datagram = link.connection.datagram(action.kind);
        datagram.rail = link.rail;
        datagram.life = link.life;
        datagram.address = address_to_tell(link);
        // A datagram that cannot be sent is repeated later.
        static_cast<void>(connector_->send(link.remote.ports, encode(datagram), {link.connection.attempt(), 0, 0},
                                           ports_now(link.peer, link.remote)));
        return;
    }
    case path::Do::kEstablished: return establish(link);
    case path::Do::kTellLate: return tell({.what = News::What::kLate, .peer = link.peer});
    case path::Do::kGiveUp: return give_up(link, action.reason);
    }
}

// Sets the timer of the link, and wakes the thread if this timer is now the first.
void Connections::schedule(Link& link) {
    const auto before = link.due;
    timers_.set(link, link.due, link.connection.next_tick());
    const bool is_news = link.due != before && timers_.is_first(link);
    if (is_news && thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) wake();
}

void Connections::make_rails(Link& link) {
    path::Connection& connection = link.connection;
    std::vector<path::OwnEnd> ends;
    News news{.what = News::What::kQueuePairs, .peer = link.peer, .rail = link.rail, .life = link.life};
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        const path::PathChoice& path = connection.path(i);
        // A queue pair for reads needs its rail, which was made before.
        const std::size_t half = connection.rails() / 2;
        const bool is_needed = !path.is_for_reads() || link.rails[i - half] != nullptr;
        link.rails.push_back(is_needed ? make_rail(m_, path, link.remote.ports[path.remote_port]) : nullptr);
        const Rail* rail = link.rails.back().get();
        ends.push_back({});
        if (rail == nullptr) continue;
        ends.back() = {rail->qp.number(), probe_memory_.rkey(rail->local_hca)};
        news.names.push_back({rail->local_hca, rail->qp.number()});
    }
    tell(std::move(news));  // before the peer knows them
    carry_out(link, connection.on_qps_ready(ends, now_ns()));
}

void Connections::connect_rails(Link& link) {
    path::Connection& connection = link.connection;
    const std::vector<path::PortRecord> remote = ports_now(link.peer, link.remote);
    path::RailMask failed = 0;
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        if (!is_in(connection.live(), i) || link.rails[i] == nullptr) continue;
        const path::PathChoice& path = connection.path(i);
        if (!connect_rail(m_, *link.rails[i], path, own_[path.local_port], remote[path.remote_port], connection.rail(i),
                          link.timeout))
            failed |= path::RailMask{1} << i;
        else if (m_.migrations && link.peer != m_.id)
            m_.migrations->begin(m_, *link.rails[i], path, {link.remote.limits, remote}, link.timeout);
    }
    carry_out(link, connection.on_connected(failed, now_ns()));
}

void Connections::probe(Link& link) {
    path::Connection& connection = link.connection;
    link.block = probe_memory_.take(link.peer);
    link.probing_since = now_ns();
    path::RailMask broken = link.block.places == nullptr ? connection.live() : 0, answered = 0;
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        if (!is_in(connection.live() & ~broken, i)) continue;
        // HCAs without RDMA reads cannot probe: the rail counts as answered.
        if (link.rails[i]->reads.limit() == 0) {
            answered |= path::RailMask{1} << i;
            continue;
        }
        if (!post_probe(*link.rails[i], i, link.block, connection.peer_word(), connection.rail(i).remote_rkey))
            broken |= path::RailMask{1} << i;
    }
    if ((broken | answered) != 0) carry_out(link, connection.on_probed(answered, broken, link.probing_since));
}

void Connections::look(Link& link) {
    path::Connection& connection = link.connection;
    const path::Nanoseconds now = now_ns();
    path::RailMask answered = 0, broken = 0;
    // A rail that is connected once more is not waited for: there will be another attempt.
    const bool is_over = link.rail != path::kAllRails && now - link.probing_since >= kProbeOfAttempt;
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        if (!is_in(connection.live(), i)) continue;
        switch (
            look_at_probe(*link.rails[i], i, link.block, link.peer, now - link.probing_since >= kAskQueuePairAfter)) {
        case Probed::kSilent:
            if (is_over) broken |= path::RailMask{1} << i;
            break;
        case Probed::kAnswered: answered |= path::RailMask{1} << i; break;
        case Probed::kBroken: broken |= path::RailMask{1} << i; break;
        }
    }
    carry_out(link, connection.on_probed(answered, broken, now));
}

// Takes rails out of use. If nothing can arrive over them any more, the places of their probes can be used again.
void Connections::close_rails(Link& link, path::RailMask which) {
    bool quiet = true;
    for (std::size_t i = 0; i < link.rails.size(); ++i) {
        if (!is_in(which, i) || link.rails[i] == nullptr) continue;
        quiet &= link.rails[i]->stop();
        link.rails[i]->state = rail::RailState::kClosed;
    }
    if (quiet && link.block.places != nullptr) probe_memory_.give_back(link.block);
    link.block = {};
}

void Connections::establish(Link& link) {
    const path::Connection& connection = link.connection;
    News news{.what = News::What::kEstablished, .peer = link.peer, .rail = link.rail, .life = link.life};
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        const path::PathChoice& path = connection.path(i);
        news.paths.push_back(path);
        // The rail was probed and did not answer.
        if (link.rails[i] && !path.is_for_reads() && !is_in(connection.live(), i) && link.rails[i]->in_flight() != 0)
            news.silent.push_back(m_.hcas[link.rails[i]->local_hca].name() + " port " +
                                  std::to_string(m_.own.ports[path.local_port].port) + " to " +
                                  describe(link.remote.ports[path.remote_port]) + " of the peer");
    }
    close_rails(link, ~connection.live());
    news.rails = std::move(link.rails);
    tell(std::move(news));
}

void Connections::give_up(Link& link, path::Reason reason) {
    News news{.what = News::What::kGivenUp, .peer = link.peer, .reason = reason, .rail = link.rail, .life = link.life};
    for (std::size_t i = 0; i < link.rails.size(); ++i) news.paths.push_back(link.connection.path(i));
    close_rails(link, ~path::RailMask{0});
    news.rails = std::move(link.rails);
    tell(std::move(news));
}

// --- news ----------------------------------------------------------------------------------------------------------

void Connections::tell(News news) {
    if (news_.empty()) news_since_ = now_ns();
    news_.push_back(std::move(news));
    has_news_.store(true, std::memory_order_release);
}

// A peer repeats what a process that computes does not answer. The last one of these is enough.
void Connections::tell_once(News news) {
    for (News& old : news_) {
        const bool same = old.what == news.what && old.peer == news.peer && old.rail == news.rail &&
                          old.life == news.life && old.datagram.kind == news.datagram.kind &&
                          old.datagram.life == news.datagram.life;
        if (same) return static_cast<void>(old.datagram = std::move(news.datagram));
    }
    tell(std::move(news));
}

std::vector<News> Connections::take_news() {
    const std::lock_guard guard(lock_);
    has_news_.store(false, std::memory_order_relaxed);
    return std::exchange(news_, {});
}

std::uint64_t Connections::events(std::size_t hca) const {
    const std::lock_guard guard(lock_);
    return events_[hca];
}

std::uint32_t Connections::repeated(std::uint64_t peer) const {
    const std::lock_guard guard(lock_);
    const auto known = links_.find(peer);
    return known == links_.end() ? 0 : known->second->connection.attempt();
}

}  // namespace coop::ib

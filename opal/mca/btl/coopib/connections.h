// SPDX-License-Identifier: BSD-3-Clause
//
// The connections of this process to its peers. path/connect.h makes the decisions;
// this carries them out: it makes queue pairs, probes rails and sends datagrams.
//
//     application, first message ─► want() ─┐
//     datagram or timer ─► thread ──────────┼─► path::Connection ─► news ─► application: take_news()
//     application, while it waits ─► poll() ┘
//
// A thread answers peers even while the application computes. It sleeps until a
// datagram arrives, a timer is due, an HCA reports an event or the application wants a
// connection. Of the objects that the application uses it touches only the completion
// queues, which it may enlarge: rails become part of a channel when the application
// takes the news. If no thread can be started, the application polls.
//
// Threading: any thread. This has its own lock; a thread that needs both takes
// Module::lock first. Ownership: this owns the rails until it passes them on as news.
// Errors: open() returns its error; later errors are news.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "coop/path/connect.h"
#include "coop/path/timers.h"
#include "coop/rail/verbs/async_events.h"
#include "coop/rail/verbs/connector.h"
#include "endpoint.h"
#include "migration.h"
#include "probe.h"

namespace coop::ib {

struct Module;

// Names a queue pair: different HCAs may give their queue pairs the same number.
struct QueuePairName {
    std::uint32_t hca, number;
};

// Tells the application about a connection or an HCA.
struct News {
    enum class What : std::uint8_t {
        kQueuePairs,   // the queue pairs of `names` belong to the peer; messages may arrive on them from now on
        kEstablished,  // the rails that are not closed carry data
        kGivenUp,      // there is no connection, for `reason`
        kLate,         // the peer has not answered for a while
        kEvent,        // HCA `hca` has reported `event`
        kClosing,      // the peer has sent `datagram`: a rail is to be closed, or is
        kAsked,        // the peer wants to connect `rail` again
        kBusy,         // the peer's application computes: it has not taken its news for a while
        kLeft,         // the peer's process ends
        kMoved,        // a queue pair is on another path: `moved`
    };
    What what;
    std::uint64_t peer = 0;  // id of the peer
    std::vector<QueuePairName> names;
    // kEstablished, kGivenUp: one for each path. A closed rail does not work; null: it could not be made.
    std::vector<std::unique_ptr<Rail>> rails;
    std::vector<path::PathChoice> paths;
    std::vector<std::string> silent;  // descriptions of the rails that opened but did not answer their probe
    path::Reason reason = path::Reason::kNone;
    std::uint32_t hca = 0;
    rail::HcaEvent event{};
    std::uint8_t rail = path::kAllRails;  // kAllRails: the connection of two processes; else one rail, once more
    std::uint32_t life = 0;               // the generation of that rail
    path::Datagram datagram;
    Moved moved;
};

// A peer, and ports without a working rail to it.
struct Farewell {
    std::uint64_t peer;
    path::PortSet avoid_local, avoid_remote;
};

class Connections {
public:
    explicit Connections(Module& m) : m_(m) {}
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    // Opens the datagram queue pairs and writes their numbers into the records of the HCAs' ports. Publish the ports
    // afterwards.
    rail::Status open();
    // Call it when the ports of this process are known. If the thread cannot be started, returns the reason, and the
    // application has to poll.
    std::optional<std::string> start_thread();
    // Does nothing in a child process after fork(), because the thread does not exist there.
    void stop_thread() noexcept;
    bool has_thread() const noexcept { return thread_.joinable(); }

    void want(std::uint64_t peer, const path::PortList& remote);
    // Call this while waiting for a connection, or if there is no thread. Returns at once if another thread is polling.
    void poll() noexcept;

    bool has_news() const noexcept { return has_news_.load(std::memory_order_acquire); }
    std::vector<News> take_news();

    // Begins to connect one rail once more, as generation `life`, over `paths`: that of the rail, and perhaps that of its
    // queue pair for reads. The news is kEstablished or kGivenUp. Replaces an earlier attempt, which must be over.
    void reopen(std::uint64_t peer, const path::PortList& remote, std::uint8_t rail, std::uint32_t life,
                std::vector<path::PathChoice> paths);
    // Ends an attempt; nothing is executed over its queue pairs any more. Returns its rails.
    std::vector<std::unique_ptr<Rail>> abandon(std::uint64_t peer, std::uint8_t rail);
    // A datagram that cannot be sent is lost.
    void send(const path::PortList& remote, const path::Datagram& datagram, const rail::Way& way);
    // Tells these peers that this process ends, as well as datagrams can. Returns when they have left, or after 0.1 s.
    void say_goodbye(const std::vector<Farewell>& peers);
    // The present address of a port of this process.
    path::PortAddress address_of(std::uint8_t own_port) const;
    // The rail is about to be destroyed: its places in the completion queue are free.
    void return_places(const Rail& rail);

    std::uint32_t repeated(std::uint64_t peer) const;  // datagrams that were sent again
    std::uint64_t events(std::size_t hca) const;       // reported by the HCA

private:
    struct Link {
        std::uint64_t peer;
        path::PortList remote;  // as the peer has published it: the same paths follow from it on both sides
        path::Connection connection;
        std::vector<std::unique_ptr<Rail>> rails;  // one for each path; null if it could not be made
        ProbeMemory::Block block;
        path::Nanoseconds probing_since = 0;
        std::optional<path::Nanoseconds> due;  // the entry in timers_
        std::uint8_t rail = path::kAllRails;   // kAllRails, or the rail that is connected once more
        std::uint32_t life = 0;                // its generation
        std::uint8_t timeout = 0;              // of its queue pairs (queue_pairs.h)
        std::uint32_t answers = 0;             // that say that this process is busy; selects the ports of the next one
    };
    using RailName = std::pair<std::uint64_t, std::uint8_t>;  // peer, rail

    void run() noexcept;
    std::optional<path::Nanoseconds> until_first_timer() const noexcept;
    void sleep() noexcept;
    void serve() noexcept;
    void wake() noexcept;
    void take_events(std::size_t hca);
    void tell_moved();
    void look_at_own_ports(std::size_t hca);
    path::PortAddress own_address(std::size_t port) const;
    std::optional<path::PortAddress> address_to_tell(const Link& link) const;
    std::vector<path::PortRecord> ports_now(std::uint64_t peer, const path::PortList& remote) const;
    Link* find(std::uint64_t peer, const path::PortList* remote);
    void take_datagram(std::span<const std::byte> bytes);
    void take_datagram_of_rail(const path::Datagram& datagram);
    void say_busy(const path::Datagram& to);
    void take_goodbye(const path::Datagram& datagram);
    void carry_out(Link& link, const path::Actions& actions);
    void carry_out(Link& link, const path::Action& action);
    void schedule(Link& link);

    void make_rails(Link& link);
    void connect_rails(Link& link);
    void probe(Link& link);
    void look(Link& link);
    void establish(Link& link);
    void give_up(Link& link, path::Reason reason);
    void close_rails(Link& link, path::RailMask which);
    void tell(News news);
    void tell_once(News news);

    Module& m_;
    mutable std::mutex lock_;
    std::optional<rail::Connector> connector_;
    ProbeMemory probe_memory_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links_;
    std::map<RailName, std::unique_ptr<Link>> attempts_;  // the last one of each rail
    path::Timers<Link> timers_;
    std::array<std::uint64_t, kMaxHcas> events_{};
    std::vector<path::PortRecord> own_;  // Module::own with present addresses
    std::unordered_map<std::uint64_t, std::map<std::uint8_t, path::PortAddress>> addresses_;  // that peers have told
    std::vector<News> news_;
    path::Nanoseconds news_since_ = 0;  // when the first of these came
    std::atomic<bool> has_news_{false};
    int wake_ = -1;                   // an eventfd
    std::vector<int> arrivals_;       // descriptors that become readable when a datagram arrives; -1: it has failed
    std::vector<int> event_sources_;  // the event descriptor of each HCA; -1: none, or it has failed
    std::atomic<std::uint32_t> polls_{0};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    pid_t process_ = 0;  // the process that started thread_
};

}  // namespace coop::ib

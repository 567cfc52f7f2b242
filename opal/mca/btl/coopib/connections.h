// SPDX-License-Identifier: BSD-3-Clause
//
// The connections of this process to its peers: path/connect.h decides, this
// carries out: queue pairs, probes, datagrams, repetitions.
//
//     application, first message ─► want() ─┐
//     datagram or timer ─► thread ──────────┼─► path::Connection ─► news ─► application: take_news()
//     application, while it waits ─► poll() ┘
//
// A peer is answered even while the application computes: a thread sleeps until a
// datagram arrives, a repetition is due or an HCA reports an event. It touches
// nothing that the application uses: rails become part of a channel when the
// application takes the news. Where no thread can be had, the application polls.
//
// Threading: any thread; a lock of its own, taken after Module::lock and never
// before it. Ownership: the rails, until they are news. Errors: open() says;
// later ones are news.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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
        kGivenUp,      // for `reason`
        kLate,         // the peer has not answered for a while
        kEvent,        // HCA `hca` has reported `event`
    };
    What what;
    std::uint64_t peer = 0;  // its id
    std::vector<QueuePairName> names;
    std::vector<std::unique_ptr<Rail>>
        rails;  // kEstablished, kGivenUp: one for each path, closed where it is not open; null: it could not be made
    std::vector<path::PathChoice> paths;
    std::vector<std::string> silent;  // rails that opened and did not answer their probe, in words
    path::Reason reason = path::Reason::kNone;
    std::uint32_t hca = 0;
    rail::HcaEvent event{};
};

class Connections {
public:
    explicit Connections(Module& m) : m_(m) {}
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    // Writes the numbers of its datagram queue pairs into the HCAs' ports. Publish the ports only after that.
    rail::Status open();
    // Call it once the ports of this process are known. Returns nothing, or the reason why there is no thread and the
    // application has to poll.
    std::optional<std::string> start_thread();
    // Does nothing in a child of fork(), which has no such thread.
    void stop_thread() noexcept;
    bool has_thread() const noexcept { return thread_.joinable(); }

    void want(std::uint64_t peer, const path::PortList& remote);
    // For a caller that waits for a connection, or where there is no thread. Returns at once if another thread is
    // polling.
    void poll() noexcept;

    bool has_news() const noexcept { return has_news_.load(std::memory_order_acquire); }
    std::vector<News> take_news();

    std::uint32_t repeated(std::uint64_t peer) const;  // datagrams
    std::uint64_t events(std::size_t hca) const;       // that an HCA has reported

private:
    struct Link {
        std::uint64_t peer;
        path::PortList remote;
        path::Connection connection;
        std::vector<std::unique_ptr<Rail>> rails;  // one for each path; null if it could not be made
        ProbeMemory::Block block;
        path::Nanoseconds probing_since = 0;
        std::optional<path::Nanoseconds> due;  // as listed in timers_
    };

    void run() noexcept;
    std::optional<path::Nanoseconds> until_first_timer() const noexcept;
    void sleep() noexcept;
    void serve() noexcept;
    void wake() noexcept;
    void take_events(std::size_t hca);
    Link* find(std::uint64_t peer, const path::PortList* remote);
    void take_datagram(std::span<const std::byte> bytes);
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

    Module& m_;
    mutable std::mutex lock_;
    std::optional<rail::Connector> connector_;
    ProbeMemory probe_memory_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links_;
    path::Timers<Link> timers_;
    std::array<std::uint64_t, kMaxHcas> events_{};
    std::vector<News> news_;
    std::atomic<bool> has_news_{false};
    int wake_ = -1;                   // an eventfd
    std::vector<int> arrivals_;       // the thread sleeps on these and on
    std::vector<int> event_sources_;  // the one of each HCA; -1: none, or it is at its end
    std::atomic<std::uint32_t> polls_{0};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    pid_t process_ = 0;  // that has it
};

}  // namespace coop::ib

// SPDX-License-Identifier: BSD-3-Clause
//
// The asynchronous handler: a thread that sleeps until a transport interrupts,
// and then runs the progress engine while the application computes (RDMA Read
// Based Rendezvous, section 4.3):
//
//   selective interrupt    transports interrupt only for messages marked as urgent;
//                          but for every completion while the PML has RDMA
//                          operations in flight that a peer may be waiting for
//   interrupt suppression  an interrupt disables further interrupts; the handler
//                          drains all sources and then requests them again
//   dynamic requests       interrupts are requested only when the application leaves
//                          the library while it expects something; a request that
//                          is still in force is not repeated
//   hybrid progress        turn.h
//
//                      leave(), something expected
//            ┌──────────────────────────────────────────┐
//            │                                          ▼
//       nothing armed ◄──interrupt, nothing expected── armed ──interrupt──► drained,
//         ▲  │          any more, or the application    ▲                   something
//         │  │          polls and drains the sources    │                   expected
//         │  │                                          │                       │
//         │  └─leave_polling(), something expected───►──┤                       │
//         │    (the handler, a moment later)            │                       │
//         └─────────────────────────────────────────────┴──────armed again──────┘
//
// A device may interrupt only for events that arrive after the request. So after a
// request the same thread drains all sources until no events are left.
//
// An application may poll with calls that bypass the PML (MPI_Win_flush,
// MPI_Request_get_status), and then compute. After such a poll interrupts are not
// requested at once, because another poll usually follows. If they are needed, the
// application wakes the handler, which waits a millisecond, drains the sources in a
// turn of its own, and requests interrupts.
//
// Ownership: pml/coop owns the only handler of a process and starts and stops it. A
// transport gets it from BtlExtension::serve() and keeps it in a HandlerLink; under
// another PML it has none. The transport calls the handler through HandlerLink; the
// handler calls the transport through Source.
//
// Threading: one thread calls start(), stop() and add(), outside of turns. Any
// thread that enters or holds the turn may call the others. Errors: start() returns an
// errno. The handler stops watching a descriptor that fails, and calls Source::lost().
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "coop/async/counts.h"
#include "coop/async/turn.h"
#include "coop/base/export.h"

namespace coop::async {

enum class Notice : std::uint8_t { kNone, kUrgent, kAny };  // each includes those before it

// A transport that can interrupt. It must exist until Handler::stop() returns.
class Source {
public:
    virtual ~Source() = default;
    virtual std::span<const int> descriptors() const noexcept = 0;  // one becomes readable when the source interrupts
    virtual void request(Notice notice) noexcept = 0;               // requests one interrupt, for an event of this kind
    virtual bool acknowledge(int descriptor) noexcept = 0;          // false: the descriptor is broken
    virtual void lost(int descriptor) noexcept = 0;                 // the handler no longer watches this descriptor
    virtual int drain() noexcept = 0;  // returns the number of events handled; 0: no queue of the source had any
};

class COOP_EXPORT Handler {
public:
    // Call this before start(). stop() removes all sources.
    void add(Source& source);

    // `exclusive`: the library takes no locks, so application and handler take turns.
    [[nodiscard]] int start(bool exclusive);
    void stop() noexcept;
    bool active() const noexcept { return active_; }

    Turn& turn() noexcept { return turn_; }
    // Whether the caller is the handler's thread (and, if exclusive, holds the turn).
    bool is_running_here() const noexcept {
        return turn_.on() ? turn_.is_handler() : std::this_thread::get_id() == thread_.get_id();
    }

    // Add `more` (1 or -1) to the number of messages that the application expects, and to the number of RDMA operations
    // in flight that a peer may be waiting for.
    void expect(int more) noexcept {
        if (active_) add_to(expected_, more);
    }
    void under_way(int more) noexcept {
        if (active_) add_to(operations_, more);
    }

    // Transports call this after each poll of their queues, so that the handler can see that the application polls.
    void swept() noexcept {
        if (active_ && !turn_.is_handler())
            sweeps_.store(sweeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // Most processes have no handler: the rest of these three is out of line, so that an entry point costs one comparison.
    void enter() noexcept {
        if (active_) enter_active();
    }
    void leave() noexcept {
        if (active_) leave_active();
    }

    // leave() after a poll. Does not request interrupts, because the application may poll again soon; if they are
    // needed, wakes the handler to request them later.
    void leave_polling() noexcept {
        if (active_) leave_polling_active();
    }

    // Counts a callback of another part of Open MPI that the handler left to the application's next call.
    void leaves_callback() noexcept { counts_.callbacks_left.fetch_add(1, std::memory_order_relaxed); }

    const HandlerCounts& counts() const noexcept { return counts_; }

private:
    void add_to(std::atomic<int>& n, int more) noexcept {
        if (turn_.on()) n.store(n.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
        else n.fetch_add(more, std::memory_order_relaxed);
    }
    Notice wanted() const noexcept {
        if (operations_.load(std::memory_order_relaxed) > 0) return Notice::kAny;
        return expected_.load(std::memory_order_relaxed) > 0 ? Notice::kUrgent : Notice::kNone;
    }
    // Whether the handler would not learn of an event that somebody waits for.
    bool lacks_notice() const noexcept { return wanted() > armed_.load(std::memory_order_relaxed); }
    enum class Woken : std::uint8_t { kNot, kAsked, kInterrupted };

    void enter_active() noexcept;
    void leave_active() noexcept;
    void leave_polling_active() noexcept;
    void watch_all();
    void ask() noexcept;
    std::uint64_t arm_and_look() noexcept;
    void request(Notice notice) noexcept;
    int drain() noexcept;
    void run() noexcept;
    Woken sleep() noexcept;
    void hear(std::size_t place) noexcept;
    void on_interrupt() noexcept;
    void on_asked() noexcept;
    bool wait_for_turn() noexcept;
    std::uint64_t drain_all() noexcept;
    void take_turn() noexcept;

    Turn turn_;
    bool active_ = false;
    std::atomic<Notice> armed_{Notice::kNone};
    std::atomic<int> expected_{0}, operations_{0};
    std::atomic<std::uint64_t> sweeps_{0};
    HandlerCounts counts_;
    std::vector<Source*> sources_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> asked_{false};   // the application has asked the handler for a turn that has not begun yet
    int wake_ = -1;                    // eventfd that ends the sleep
    std::vector<pollfd> watched_;      // [0]: wake_; then the descriptors of the sources
    std::vector<Source*> sources_of_;  // the source of each descriptor in watched_; [0]: null
    std::thread thread_;
};

// The functions of the handler that a transport may call. They do nothing if no handler is attached.
//
// Threading: attach() by one thread, outside of turns and while the handler's thread does not run. The others have
// the rules of the handler's functions of the same name.
class HandlerLink {
public:
    void attach(Handler* handler) noexcept { handler_.store(handler, std::memory_order_relaxed); }  // null: none
    Handler* get() const noexcept { return handler_.load(std::memory_order_relaxed); }

    // Whether the caller is the handler, in its turn.
    bool is_handler() const noexcept {
        Handler* const handler = get();
        return handler && handler->turn().is_handler();
    }
    void expect(int more) const noexcept {
        if (Handler* const handler = get()) handler->expect(more);
    }
    void under_way(int more) const noexcept {
        if (Handler* const handler = get()) handler->under_way(more);
    }
    void swept() const noexcept {
        if (Handler* const handler = get()) handler->swept();
    }
    void leaves_callback() const noexcept {
        if (Handler* const handler = get()) handler->leaves_callback();
    }

private:
    std::atomic<Handler*> handler_{nullptr};  // atomic: a tool's thread may read it while MPI_Finalize detaches
};

// The handler of pml/coop, for components of this process that are not transports (coll/rdmaag). pml/coop attaches it.
COOP_EXPORT HandlerLink& process_handler() noexcept;

// RAII scope: the application is inside the library. The destructor of the outermost
// one requests the interrupts that are needed while the application is outside.
class Inside {
public:
    explicit Inside(Handler& handler) noexcept : handler_(handler) { handler_.enter(); }
    ~Inside() { handler_.leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    Handler& handler_;
};

// RAII scope around a poll by a transport or a callback: like Inside, but the destructor calls leave_polling().
class Polling {
public:
    explicit Polling(Handler* handler) noexcept : handler_(handler) {
        if (handler_) handler_->enter();
    }
    ~Polling() {
        if (handler_) handler_->leave_polling();
    }
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;

private:
    Handler* const handler_;  // null: none
};

}  // namespace coop::async

// SPDX-License-Identifier: BSD-3-Clause
//
// The asynchronous handler: a thread that sleeps until a transport interrupts,
// and then runs the progress engine in the application's place, while that
// computes (RDMA Read Based Rendezvous, section 4.3):
//
//   selective interrupt    transports are asked to interrupt for messages that are
//                          marked as urgent; while operations of ours are under
//                          way whose end others wait for, for any completion
//   interrupt suppression  an interrupt switches interrupts off; one wake-up
//                          drains everything, then they are requested again
//   dynamic requests       only while something is expected and the application is
//                          on its way out of the library; what is in force is
//                          remembered and not requested again
//   hybrid progress        turn.h
//
//                      leave(), something expected
//            ┌──────────────────────────────────────────┐
//            │                                          ▼
//       nothing armed ◄──interrupt, nothing expected── armed ──interrupt──► drained,
//         ▲  │          any more, or the application    ▲                   something
//         │  │          polls and will see to it        │                   expected
//         │  │                                          │                       │
//         │  └─leave_polling(), something expected───►──┤                       │
//         │    (the handler, a moment later)            │                       │
//         └─────────────────────────────────────────────┴──────armed again──────┘
//
// A device may interrupt for what comes after the request only. So a request is
// followed by looks at all sources until nothing is left.
//
// An application may poll by calls that tell nothing of it (MPI_Win_flush,
// MPI_Request_get_status), and then compute. Behind a poll interrupts are not
// requested at once, because the next poll most often follows. If they should be,
// the handler is asked to see to it: it waits a millisecond, and takes a turn.
//
// Whose it is: pml/coop has the one handler of a process, starts and stops it. There
// is no global: a transport knows a handler only after BtlExtension::serve() has
// named one, and keeps it in a HandlerLink. So a transport under another PML has
// none, and what the two tell each other is what HandlerLink has functions for.
//
// Threading: start(), stop(), add() by one thread, outside of turns; the rest by
// anybody who has the turn. Errors: start() returns the reason as an errno. A
// descriptor that fails is watched no longer, and its source is told.
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

// A transport that can interrupt. Lives until the handler has stopped.
class Source {
public:
    virtual ~Source() = default;
    virtual std::span<const int> descriptors() const noexcept = 0;  // readable: it has interrupted
    virtual void request(Notice notice) noexcept = 0;               // once; in force until it interrupts
    virtual bool acknowledge(int descriptor) noexcept = 0;          // false: the descriptor is broken
    virtual void lost(int descriptor) noexcept = 0;                 // it is broken, and is watched no longer
    virtual int drain() noexcept = 0;  // events handled; 0: there were none, of all that the source has
};

class COOP_EXPORT Handler {
public:
    // Before start(); stop() forgets the sources.
    void add(Source& source);

    // `exclusive`: the library takes no locks, so application and handler take turns.
    [[nodiscard]] int start(bool exclusive);
    void stop() noexcept;
    bool active() const noexcept { return active_; }

    Turn& turn() noexcept { return turn_; }
    // Whether the caller is the handler, at work.
    bool is_running_here() const noexcept {
        return turn_.on() ? turn_.is_handler() : std::this_thread::get_id() == thread_.get_id();
    }

    // Messages that the application expects, and operations whose end somebody waits for.
    void expect(int more) noexcept {
        if (active_) add_to(expected_, more);
    }
    void under_way(int more) noexcept {
        if (active_) add_to(operations_, more);
    }

    // A source has been drained by whoever calls this.
    void swept() noexcept {
        if (active_ && !turn_.is_handler())
            sweeps_.store(sweeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    void enter() noexcept {
        if (active_ && turn_.on()) turn_.enter();
    }
    void leave() noexcept {
        if (!active_) return;
        const bool exclusive = turn_.on();
        if (wanted() > armed_.load(std::memory_order_relaxed) && (!exclusive || turn_.is_outermost())) arm_and_look();
        if (exclusive) turn_.leave();
    }

    // Of a stay in which the application only polls: it may be about to poll again.
    void leave_polling() noexcept {
        if (active_ && turn_.on() && turn_.leave() && wanted() > armed_.load(std::memory_order_relaxed)) [[unlikely]]
            ask();
    }

    // In its turn it has found something whose callback is not for it.
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
    enum class Woken : std::uint8_t { kNot, kAsked, kInterrupted };

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
    std::atomic<bool> asked_{false};   // to take a turn, and has not begun to
    int wake_ = -1;                    // eventfd that ends the sleep
    std::vector<pollfd> watched_;      // [0]: wake_; then the descriptors of the sources
    std::vector<Source*> sources_of_;  // of each in watched_; [0]: null
    std::thread thread_;
};

// A transport's way to the handler that it serves. Without one, every function does nothing.
//
// Threading: attach() by one thread, outside of turns and while the handler's thread does not run; the rest as the
// handler's functions.
class HandlerLink {
public:
    void attach(Handler* handler) noexcept { handler_.store(handler, std::memory_order_relaxed); }  // null: none
    Handler* get() const noexcept { return handler_.load(std::memory_order_relaxed); }

    // Whether the caller is the handler, in its turn.
    bool is_handler() const noexcept {
        Handler* const handler = get();
        return handler && handler->turn().is_handler();
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
    std::atomic<Handler*> handler_{nullptr};  // a tool's thread may read a variable while MPI_Finalize detaches it
};

// The application is inside the library while one of these lives; where it is about
// to leave, what it expects may interrupt.
class Inside {
public:
    explicit Inside(Handler& handler) noexcept : handler_(handler) { handler_.enter(); }
    ~Inside() { handler_.leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    Handler& handler_;
};

// The same of a transport's part: no interrupts are requested at once at its end.
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

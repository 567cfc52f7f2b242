// SPDX-License-Identifier: BSD-3-Clause
#include "coop/async/handler.h"
#include "coop/async/signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace coop::async {
namespace {

// While the application is inside the library, the handler tries to take the turn at this interval.
constexpr timespec kWait{0, 50'000};
// After this many sweeps the application has handled the event that woke the handler. One sweep is not enough: it may
// have begun before the event.
constexpr std::uint64_t kSweeps = 2;
constexpr std::chrono::microseconds kLinger{5};  // see drain_all()
// When the application asks for a turn, it probably goes on polling. The handler waits this long before it takes one.
constexpr timespec kPatience{0, 1'000'000};
// How often the sources are drained after a request. Without a limit, a peer that never stops sending would keep the
// application inside the library. After the limit, the handler continues.
constexpr unsigned kMostLooks = 64;

void wake_up(int eventfd) noexcept {
    const std::uint64_t one = 1;
    while (write(eventfd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}
}  // namespace

HandlerLink& process_handler() noexcept {
    static HandlerLink link;
    return link;
}

void Handler::enter_active() noexcept {
    if (turn_.on()) turn_.enter();
}

void Handler::leave_active() noexcept {
    const bool exclusive = turn_.on();
    if (lacks_notice() && (!exclusive || turn_.is_outermost())) arm_and_look();
    if ((!exclusive || turn_.leave()) && lacks_notice()) [[unlikely]]
        ask();
}

void Handler::leave_polling_active() noexcept {
    if (turn_.on() && turn_.leave() && lacks_notice()) [[unlikely]]
        ask();
}

void Handler::add(Source& source) { sources_.push_back(&source); }

void Handler::watch_all() {
    watched_ = {{wake_, POLLIN, 0}};
    sources_of_ = {nullptr};
    for (Source* source : sources_)
        for (const int descriptor : source->descriptors()) {
            watched_.push_back({descriptor, POLLIN, 0});
            sources_of_.push_back(source);
        }
}

int Handler::start(bool exclusive) {
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return errno;
    watch_all();
    stopping_.store(false, std::memory_order_relaxed);
    asked_.store(false, std::memory_order_relaxed);
    armed_.store(Notice::kNone, std::memory_order_relaxed);
    if (exclusive) turn_.switch_on();
    active_ = true;  // the thread reads it, so it changes only while the thread does not run
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
        active_ = false;
        turn_.switch_off();
        close(wake_);
        return error.code().value();
    }
    return 0;
}

void Handler::stop() noexcept {
    if (active_) {
        stopping_.store(true, std::memory_order_release);
        wake_up(wake_);
        thread_.join();
        active_ = false;
        close(wake_);
        turn_.switch_off();
    }
    sources_ = {};  // a cleared vector would keep its memory
    watched_ = {};
    sources_of_ = {};
}

int Handler::drain() noexcept {
    int events = 0;
    for (Source* source : sources_) events += source->drain();
    return events;
}

// The application calls this after it has left the library. The handler clears `asked_` before it tries to take a turn.
// So either the handler sees that the application is outside, or the application sees `asked_` cleared and wakes the
// handler again.
void Handler::ask() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!asked_.exchange(true, std::memory_order_relaxed)) wake_up(wake_);
}

void Handler::request(Notice notice) noexcept {
    if (notice <= armed_.load(std::memory_order_relaxed)) return;
    armed_.store(notice, std::memory_order_relaxed);
    counts_.requests.fetch_add(1, std::memory_order_relaxed);
    for (Source* source : sources_) source->request(notice);
}

// Requests interrupts, and drains the sources afterwards, because events that came before the request do not interrupt.
// If not all of them can be handled now, the request counts as not made, and the caller asks the handler to repeat it.
// Returns the number of events handled.
std::uint64_t Handler::arm_and_look() noexcept {
    std::uint64_t events = 0;
    for (unsigned looks = 0; looks < kMostLooks && !(looks > 0 && turn_.is_waited_for()); ++looks) {
        request(wanted());  // repeated: handling events may change wanted()
        const int n = drain();
        if (n == 0) return events;
        events += static_cast<std::uint64_t>(n);
    }
    armed_.store(Notice::kNone, std::memory_order_relaxed);
    return events;
}

void Handler::run() noexcept {
    if (turn_.on()) turn_.this_is_the_handler();
    while (!stopping_.load(std::memory_order_acquire)) switch (sleep()) {
        case Woken::kNot: break;
        case Woken::kAsked: on_asked(); break;
        case Woken::kInterrupted: on_interrupt(); break;
        }
}

Handler::Woken Handler::sleep() noexcept {
    if (poll(watched_.data(), watched_.size(), -1) <= 0 || stopping_.load(std::memory_order_acquire))
        return Woken::kNot;
    Woken woken = Woken::kNot;
    for (std::size_t i = 1; i < watched_.size(); ++i) {
        if (watched_[i].revents == 0) continue;
        hear(i);
        woken = Woken::kInterrupted;
    }
    if (watched_[0].revents == 0 || woken != Woken::kNot) return woken;  // if asked as well, wake_ stays readable
    std::uint64_t times;
    return read(wake_, &times, sizeof times) > 0 ? Woken::kAsked : Woken::kNot;
}

// A failed descriptor would end every poll() at once, so the handler stops watching it.
void Handler::hear(std::size_t place) noexcept {
    pollfd& watched = watched_[place];
    Source& source = *sources_of_[place];
    if ((watched.revents & POLLIN) != 0 && source.acknowledge(watched.fd)) return;
    source.lost(watched.fd);
    watched.fd = -1;  // poll() ignores it
}

void Handler::on_interrupt() noexcept {
    counts_.interrupts.fetch_add(1, std::memory_order_relaxed);
    armed_.store(Notice::kNone);
    if (!turn_.on()) return take_turn();
    if (!wait_for_turn()) {
        counts_.left.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    take_turn();
    turn_.give_back();
}

// The application polls, so the handler lets it continue for a while. If the application is inside the library after
// that, the handler need not wait: when the application leaves, it requests interrupts or asks again.
void Handler::on_asked() noexcept {
    nanosleep(&kPatience, nullptr);
    asked_.store(false, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!lacks_notice()) return;
    if (!turn_.on()) return take_turn();
    if (!turn_.try_take()) return;
    take_turn();
    turn_.give_back();
}

// Returns false if the application polls and has handled the event that woke the handler, or if the handler is to stop.
// The application must still be inside the library when this returns false: only when it leaves does it see that no
// interrupt is armed. Therefore the turn is tried once more after the last check of the sweeps.
bool Handler::wait_for_turn() noexcept {
    const std::uint64_t before = sweeps_.load(std::memory_order_relaxed);
    bool polls = false;
    while (!turn_.try_take()) {
        if (polls || stopping_.load(std::memory_order_acquire)) return false;
        nanosleep(&kWait, nullptr);
        polls = sweeps_.load(std::memory_order_relaxed) >= before + kSweeps;
    }
    return true;
}

// Drains the sources until nothing has come for kLinger, so that events in quick succession cause one interrupt, or
// until the application waits for the turn.
std::uint64_t Handler::drain_all() noexcept {
    using Clock = std::chrono::steady_clock;
    std::uint64_t events = 0;
    Clock::time_point last = Clock::now();
    for (;;) {
        const int n = drain();
        events += static_cast<std::uint64_t>(n);
        if (turn_.is_waited_for()) return events;
        const Clock::time_point now = Clock::now();
        if (n > 0) last = now;
        else if (now - last > kLinger) return events;
    }
}

void Handler::take_turn() noexcept {
    std::uint64_t events = drain_all();
    if (lacks_notice()) events += arm_and_look();
    if (lacks_notice()) ask();
    counts_.events.fetch_add(events, std::memory_order_relaxed);
}

}  // namespace coop::async

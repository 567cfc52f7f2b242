// SPDX-License-Identifier: BSD-3-Clause
#include "coop/async/handler.h"
#include "coop/async/rider.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace coop::async {
namespace {

// How long the handler waits for an application that is inside, between looks.
constexpr timespec kWait{0, 50'000};
// After so many sweeps of the application it has seen what we were woken for:
// the first may have begun before.
constexpr std::uint64_t kSweeps = 2;
constexpr std::chrono::microseconds kLinger{5};

// The application's handlers of signals are not run on our thread.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace

Handler handler;

Rider*& offered_rider() noexcept {
    thread_local Rider* rider = nullptr;
    return rider;
}

// A process that ends without MPI_Finalize does not wait for the thread.
Handler::~Handler() {
    if (thread_.joinable()) thread_.detach();
}

void Handler::add(Source& source) { sources_.push_back(&source); }

int Handler::start(bool exclusive) {
    wake_ = eventfd(0, EFD_CLOEXEC);
    if (wake_ < 0) return errno;
    stopping_.store(false, std::memory_order_relaxed);
    armed_.store(Notice::kNone, std::memory_order_relaxed);
    if (exclusive) turn_.switch_on();
    active_ = true;  // the thread reads it, so it stays as it is from before the thread's begin to behind its end
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
        const std::uint64_t one = 1;
        while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
        }
        thread_.join();
        active_ = false;
        close(wake_);
        turn_.switch_off();
    }
    sources_.clear();
}

int Handler::drain() noexcept {
    int events = 0;
    for (Source* source : sources_) events += source->drain();
    return events;
}

// True: it was not in force. Whoever asks has to look once more: what came before the request does not interrupt.
bool Handler::request(Notice notice) noexcept {
    if (notice <= armed_.load(std::memory_order_relaxed)) return false;
    armed_.store(notice, std::memory_order_relaxed);
    counts_.requests.fetch_add(1, std::memory_order_relaxed);
    for (Source* source : sources_) source->request(notice);
    return true;
}

void Handler::arm_and_look() noexcept {
    while (request(wanted()))
        if (drain() == 0) break;
}

void Handler::run() noexcept {
    if (turn_.on()) turn_.this_is_the_handler();
    while (!stopping_.load(std::memory_order_acquire))
        if (sleep()) on_interrupt();
}

// True: woken by a source.
bool Handler::sleep() noexcept {
    std::vector<pollfd> all{{wake_, POLLIN, 0}};
    for (const Source* source : sources_)
        for (const int descriptor : source->descriptors()) all.push_back({descriptor, POLLIN, 0});
    if (poll(all.data(), all.size(), -1) <= 0 || stopping_.load(std::memory_order_acquire)) return false;
    std::size_t at = 1;
    for (Source* source : sources_)
        for (const int descriptor : source->descriptors())
            if ((all[at++].revents & POLLIN) != 0) source->acknowledge(descriptor);
    return true;
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

// False: the application polls, and has seen what we were woken for. It is inside still, and finds that nothing is armed
// when it leaves: hence another look at the turn behind the last at the sweeps.
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

// Drains until nothing has come for a moment: what comes in a row wakes us once. The application pays for that moment.
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
    while (request(wanted())) {
        const int n = drain();
        if (n == 0) break;
        events += static_cast<std::uint64_t>(n);
    }
    counts_.events.fetch_add(events, std::memory_order_relaxed);
}

}  // namespace coop::async

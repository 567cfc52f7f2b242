// SPDX-License-Identifier: BSD-3-Clause
//
// This process on its subnet: which one, which host, its engine.
//
// The engine is one thread that executes what is due later (rates, latencies,
// retries) and what others ask for (errors of a QP that they found). Whoever
// posts or polls does the same work inline; the thread sleeps when nothing is
// due. See engine/README.md.
//
// Threading: every call from any thread. After fork() the child has none of
// this: current() is null there until it opens a device of its own.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "fabric/engine/agenda.h"
#include "fabric/shm/segment.h"

namespace coop::fabric {

class LocalQp;

class Client {
public:
    static constexpr std::int64_t kQuantumNs = 20'000;  // the engine's thread does not get up more often than that

    // Joins the subnet that $COOP_FABRIC names, at the first call. Null: there is none, or it cannot be joined; then the
    // reason was printed to stderr, once.
    static Client* get();
    static Client* current();  // null unless get() has succeeded

    const Segment& subnet() const { return subnet_; }
    std::uint32_t host() const { return host_; }
    std::uint32_t process() const { return process_; }
    Process& self() const { return subnet_.processes()[process_]; }

    // A queue pair of this process has work to do at that time, which may be left until `latest_ns` if that saves a wake-up.
    // True: the caller has to call the thread, once it holds no lock that the thread will want.
    [[nodiscard]] bool plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns) noexcept;
    void call() noexcept;

    // Does what is due. Called by whoever polls; two loads when there is nothing.
    void progress() noexcept {
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (self().attention.load(std::memory_order_relaxed) != 0 || agenda_.is_due()) work();
    }

    // Not any more when the process is about to end: what it had on the subnet has been given back.
    bool is_joined() const { return !stopping_.load(std::memory_order_acquire); }

    // Queue pairs of this process: the engine finds them by index.
    void add(LocalQp& qp);
    void remove(LocalQp& qp);

    // Ends the engine and gives back this process's place.
    void stop();
    ~Client();

private:
    struct Entry {
        LocalQp* qp = nullptr;
        int busy = 0;  // threads that work on it
    };

    Client() = default;
    static std::unique_ptr<Client> join_subnet();
    void run();  // the engine's thread
    void sleep(std::uint32_t seen) noexcept;
    void work() noexcept;
    void heed_attention() noexcept;
    template <class Do>
    void with(std::uint32_t index, Do&& act);

    Segment subnet_;
    std::uint32_t host_ = 0;
    std::uint32_t process_ = kNone;
    Agenda agenda_;
    std::mutex qps_lock_;
    std::unordered_map<std::uint32_t, Entry> qps_;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::int64_t> asleep_until_ns_{0};  // 0: awake
    // A program that polls does the work itself; then the thread only looks, now and then, whether it still does.
    std::atomic<std::uint32_t> polls_{0};       // counts calls of progress(), about
    std::atomic<std::uint32_t> plans_{0};       // and of plan()
    std::atomic<std::uint32_t> planned_at_{0};  // polls_ when something was planned last
    std::atomic<bool> watching_{false};         // asleep for a tick at most
    std::uint32_t polls_seen_ = 0, plans_seen_ = 0;  // the thread's, when it went to sleep last
};

}  // namespace coop::fabric

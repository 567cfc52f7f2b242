// SPDX-License-Identifier: BSD-3-Clause
//
// This process on its subnet: its entry, its host, its engine.
//
// The engine is a thread that executes work which is due later (rates, latencies,
// retries) and work that other processes request (handling errors that they found
// in one of its QPs). Threads that post or poll do the same work inline; the
// engine's thread sleeps while nothing is due. See engine/README.md.
//
// Threading: any thread may make any call. After fork() the child has no client:
// current() is null there until the child opens a device.
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
class LateMessages;
struct LateMessage;

class Client {
public:
    static constexpr std::int64_t kQuantumNs = 20'000;  // shortest sleep of the engine's thread, unless it is woken

    // Joins the subnet that $COOP_FABRIC names, at the first call. Returns null if there is none or if joining failed;
    // the reason is then printed to stderr, once.
    static Client* get();
    static Client* current();  // null unless get() has succeeded

    const Segment& subnet() const { return subnet_; }
    std::uint32_t host() const { return host_; }
    std::uint32_t process() const { return process_; }
    Process& self() const { return subnet_.processes()[process_]; }

    // Plans work of a queue pair of this process at that time; it may wait until `latest_ns` to save a wake-up. If this
    // returns true, the caller must call call() after releasing the locks that the engine's thread needs.
    [[nodiscard]] bool plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns) noexcept;
    void call() noexcept;
    // Delivers the message when it is due, even if its queue pair is gone by then. Returns as plan() does.
    [[nodiscard]] bool send_late(std::unique_ptr<LateMessage> message);

    // Does the work that is due. Polling calls this; it reads the clock only if work is planned.
    void progress() noexcept {
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (self().attention.load(std::memory_order_relaxed) != 0 || agenda_.is_due()) work();
    }

    // False from the beginning of stop(): the process is about to end and gives back its objects on the subnet.
    bool is_joined() const { return !stopping_.load(std::memory_order_acquire); }

    // Registers the queue pairs of this process; the engine finds them by index.
    void add(LocalQp& qp);
    void remove(LocalQp& qp);

    // Ends the engine and gives back this process's entry.
    void stop();
    ~Client();

private:
    struct Entry {
        LocalQp* qp = nullptr;
        int busy = 0;  // number of threads that work on it
    };

    Client();
    static std::unique_ptr<Client> join_subnet();
    void run();  // of the engine's thread
    void sleep(std::uint32_t seen) noexcept;
    void work() noexcept;
    void heed_attention() noexcept;
    void deliver_late_messages(std::int64_t now) noexcept;
    template <class Do>
    void with(std::uint32_t index, Do&& act);

    Segment subnet_;
    std::uint32_t host_ = 0;
    std::uint32_t process_ = kNone;
    Agenda agenda_;
    std::unique_ptr<LateMessages> late_;
    std::mutex qps_lock_;
    std::unordered_map<std::uint32_t, Entry> qps_;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::int64_t> asleep_until_ns_{0};  // 0: awake
    // While a program polls, it does the work itself, and the thread only checks now and then that it still polls.
    std::atomic<std::uint32_t> polls_{0};            // approximate number of calls of progress()
    std::atomic<std::uint32_t> plans_{0};            // approximate number of calls of plan()
    std::atomic<std::uint32_t> planned_at_{0};       // value of polls_ at the last call of plan()
    std::atomic<bool> watching_{false};              // the thread sleeps for kTickNs (client.cc) at most
    std::uint32_t polls_seen_ = 0, plans_seen_ = 0;  // values when the thread last went to sleep
};

}  // namespace coop::fabric

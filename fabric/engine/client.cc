// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/client.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <future>

#include "fabric/engine/late.h"
#include "fabric/engine/local_qp.h"
#include "fabric/shm/process.h"

namespace coop::fabric {
namespace {

std::mutex joining;
std::atomic<Client*> the_client{nullptr};
bool refused = false;

constexpr std::uint32_t kLateMessages = kNone - 1;  // stands for them in the agenda, instead of a queue pair
constexpr std::int64_t kTickNs = 250'000;           // how often the engine's thread wakes up while the program polls

Error explain(const std::string& name, const char* value) {
    return {"there is no host '" + std::string(value) + "' on the subnet '" + name +
            "' ('coop-fabric show' lists its hosts)"};
}

std::uint32_t find_host(const Segment& subnet, const char* name) {
    for (std::uint32_t i = 0; i < subnet.hosts().size(); ++i)
        if (std::strcmp(subnet.hosts()[i].name, name) == 0) return i;
    return kNone;
}

// Finds this process's rank and the number of ranks in the variables of the usual launchers. Returns false if none is
// set, or if the rank is not below the number of ranks.
bool find_rank(std::uint64_t& rank, std::uint64_t& size) {
    static constexpr const char* kNames[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                {"PMIX_RANK", "PMIX_SIZE"},
                                                {"PMI_RANK", "PMI_SIZE"},
                                                {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (const auto& [rank_name, size_name] : kNames) {
        const char* r = std::getenv(rank_name);
        const char* s = std::getenv(size_name);
        if (r == nullptr || s == nullptr) continue;
        rank = std::strtoull(r, nullptr, 10);
        size = std::strtoull(s, nullptr, 10);
        return size > rank;
    }
    return false;
}

Error choose_host(const Segment& subnet, std::uint32_t& host) {
    if (const char* name = std::getenv("COOP_FABRIC_HOST"); name != nullptr && *name != 0) {
        host = find_host(subnet, name);
        return host == kNone ? explain(subnet.header().name, name) : Error{};
    }
    char system_name[256] = {};
    gethostname(system_name, sizeof system_name - 1);
    host = find_host(subnet, system_name);
    if (host != kNone) return {};
    std::uint64_t rank = 0, size = 0;
    host = find_rank(rank, size) ? static_cast<std::uint32_t>(rank * subnet.hosts().size() / size) : 0;
    return {};
}

void leave_at_exit() {
    std::lock_guard guard(joining);
    // The object stays, because other threads may still use it.
    if (Client* client = the_client.load()) client->stop();
}

// A forked child has the memory, but no engine and no entry on the subnet: it joins as a process of its own. The
// parent's objects are not the child's and stay as they are.
void forget_in_child() {
    new (&joining) std::mutex;
    the_client.store(nullptr);
    refused = false;
}

}  // namespace

Client* Client::current() { return the_client.load(std::memory_order_acquire); }

Client* Client::get() {
    if (Client* known = current()) return known;
    std::lock_guard guard(joining);
    if (Client* known = current()) return known;
    if (refused) return nullptr;
    std::unique_ptr<Client> client = join_subnet();
    refused = client == nullptr;
    if (refused) return nullptr;
    static std::once_flag once;
    std::call_once(once, [] {
        std::atexit(leave_at_exit);
        pthread_atfork([] { joining.lock(); }, [] { joining.unlock(); }, forget_in_child);
    });
    the_client.store(client.get(), std::memory_order_release);
    return client.release();
}

std::unique_ptr<Client> Client::join_subnet() {
    std::unique_ptr<Client> client(new Client);
    const char* name = std::getenv("COOP_FABRIC");
    Error error;
    if (name == nullptr || *name == 0)
        error = {"COOP_FABRIC names no subnet: start the program with 'coop-fabric run' or 'coop-fabric exec'"};
    if (!error) error = client->subnet_.attach(name);
    if (!error) error = choose_host(client->subnet_, client->host_);
    if (!error) {
        // Yama may let only parents trace: permit every process to copy to and from this one.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        if (const std::string refusal = copy_refusal(getpid()); !refusal.empty()) error = {refusal};
    }
    if (!error) {
        std::promise<void> joined;
        client->thread_ = std::thread([&] {
            client->process_ = join(client->subnet_, client->host_);
            const bool good = client->process_ != kNone;
            Client* self = client.get();
            joined.set_value();
            if (good) self->run();
        });
        joined.get_future().wait();
        if (client->process_ == kNone) error = {"no place left for another process on the subnet"};
    }
    if (!error) return client;
    std::fprintf(stderr, "coop-fabric: %s\n", error.text.c_str());
    return nullptr;
}

Client::Client() : late_(std::make_unique<LateMessages>()) {}

Client::~Client() { stop(); }

void Client::stop() {
    stopping_.store(true, std::memory_order_release);
    if (process_ != kNone) fabric::wake(self());
    if (thread_.joinable()) thread_.join();
}

void Client::add(LocalQp& qp) {
    std::lock_guard guard(qps_lock_);
    qps_[qp.index()] = {&qp, 0};
}

void Client::remove(LocalQp& qp) {
    std::unique_lock guard(qps_lock_);
    while (qps_[qp.index()].busy > 0) {
        guard.unlock();
        sched_yield();
        guard.lock();
    }
    qps_.erase(qp.index());
}

template <class Do>
void Client::with(std::uint32_t index, Do&& act) {
    LocalQp* qp = nullptr;
    {
        std::lock_guard guard(qps_lock_);
        const auto found = qps_.find(index);
        if (found == qps_.end()) return;
        ++found->second.busy;
        qp = found->second.qp;
    }
    act(*qp);
    std::lock_guard guard(qps_lock_);
    --qps_[index].busy;
}

void Client::work() noexcept {
    if (self().attention.load(std::memory_order_relaxed) != 0 &&
        self().attention.exchange(0, std::memory_order_acq_rel) != 0)
        heed_attention();
    const std::int64_t now = now_ns();
    for (std::uint32_t qp; (qp = agenda_.take(now)) != kNone;)
        if (qp == kLateMessages) deliver_late_messages(now);
        else with(qp, [](LocalQp& due) { due.work(); });
}

bool Client::send_late(std::unique_ptr<LateMessage> message) {
    const std::int64_t due_ns = message->due_ns;
    late_->add(std::move(message));
    return plan(kLateMessages, due_ns, due_ns);
}

void Client::deliver_late_messages(std::int64_t now) noexcept {
    while (const std::unique_ptr<LateMessage> message = late_->take(now)) deliver_late(subnet_, process_, *message);
}

void Client::heed_attention() noexcept {
    std::vector<std::uint32_t> failed;
    {
        std::lock_guard guard(qps_lock_);
        for (const auto& [index, entry] : qps_)
            if (entry.qp->shared().state.load(std::memory_order_acquire) == IBV_QPS_ERR) failed.push_back(index);
    }
    for (const std::uint32_t index : failed) with(index, [](LocalQp& qp) { qp.on_attention(); });
}

bool Client::plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns) noexcept {
    const bool most_urgent = agenda_.plan(qp, due_ns, latest_ns);
    plans_.store(plans_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!most_urgent || latest_ns >= asleep_until_ns_.load(std::memory_order_seq_cst)) return false;
    const std::uint32_t polls = polls_.load(std::memory_order_relaxed);
    const bool polling = planned_at_.exchange(polls, std::memory_order_relaxed) != polls;
    return !polling || !watching_.load(std::memory_order_seq_cst);
}

void Client::call() noexcept { fabric::wake(self()); }

// Sleeps until the next deadline, but at least kQuantumNs; while the program polls, for kTickNs. Another thread or
// process that calls ends the sleep.
void Client::sleep(std::uint32_t seen) noexcept {
    // From here on a thread that plans something has to call.
    watching_.store(false, std::memory_order_seq_cst);
    asleep_until_ns_.store(Agenda::kNever, std::memory_order_seq_cst);
    std::int64_t until = agenda_.latest_ns();
    if (until != Agenda::kNever) until = std::max(until, now_ns() + kQuantumNs);
    const std::uint32_t polls = polls_.load(std::memory_order_relaxed), plans = plans_.load(std::memory_order_relaxed);
    const bool polled = polls != polls_seen_ && plans != plans_seen_;
    polls_seen_ = polls;
    plans_seen_ = plans;
    if (polled) until = now_ns() + kTickNs;
    watching_.store(polled, std::memory_order_seq_cst);
    asleep_until_ns_.store(until, std::memory_order_seq_cst);
    timespec time{until / 1'000'000'000, until % 1'000'000'000};
    syscall(SYS_futex, &self().wake, FUTEX_WAIT_BITSET, seen, until == Agenda::kNever ? nullptr : &time, nullptr,
            FUTEX_BITSET_MATCH_ANY);
    asleep_until_ns_.store(0, std::memory_order_seq_cst);
}

void Client::run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_setname_np(pthread_self(), "coop-fabric");
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    while (!stopping_.load(std::memory_order_acquire)) {
        const std::uint32_t seen = self().wake.load(std::memory_order_acquire);
        work();
        timespec used;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        self().engine_cpu_ns.store(used.tv_sec * 1'000'000'000ll + used.tv_nsec, std::memory_order_relaxed);
        self().engine_wakeups.fetch_add(1, std::memory_order_relaxed);
        if (stopping_.load(std::memory_order_acquire)) break;
        sleep(seen);
    }
    leave(subnet_, process_);
}

}  // namespace coop::fabric

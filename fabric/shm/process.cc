// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/shm/process.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "fabric/shm/receive_ring.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

void read_command(char (&command)[32]) {
    std::memset(command, 0, sizeof command);
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, command, sizeof command - 1);
    if (n > 0 && command[n - 1] == '\n') command[n - 1] = 0;
    close(fd);
}

bool is_dead(const Process& process) {
    if (!Segment::in_use(process)) return false;
    if (process.joined.load(std::memory_order_acquire) != 0) return !process.life.is_held();
    return process.pid > 0 && kill(process.pid, 0) != 0 && errno == ESRCH;
}

void take_away_queue_pairs(const Segment& subnet, std::uint32_t process) {
    for (QueuePair& qp : subnet.ever_used<QueuePair>(kQueuePairs)) {
        if (!Segment::in_use(qp) || qp.process != process) continue;
        Guard guard(qp.lock);
        qp.state.store(IBV_QPS_RESET, std::memory_order_release);
        free_ring(subnet, qp.receives);
        subnet.release(qp);
    }
}

void take_away(const Segment& subnet, std::uint32_t process) {
    take_away_queue_pairs(subnet, process);
    for (SharedReceiveQueue& srq : subnet.ever_used<SharedReceiveQueue>(kSharedReceiveQueues)) {
        if (!Segment::in_use(srq) || srq.process != process) continue;
        Guard guard(srq.lock);
        free_ring(subnet, srq.receives);
        subnet.release(srq);
    }
    for (CompletionQueue& cq : subnet.ever_used<CompletionQueue>(kCompletionQueues)) {
        if (!Segment::in_use(cq) || cq.process != process) continue;
        Guard guard(cq.lock);
        subnet.free(cq.ring, std::uint64_t{cq.capacity} * sizeof(Completion));
        cq.ring = 0;
        subnet.release(cq);
    }
    for (MemoryRegion& region : subnet.ever_used<MemoryRegion>(kMemoryRegions))
        if (Segment::in_use(region) && region.process == process) subnet.release(region);
    for (Context& context : subnet.ever_used<Context>(kContexts))
        if (Segment::in_use(context) && context.process == process) subnet.release(context);
    subnet.release(subnet.processes()[process]);
}

int open_pidfd(std::int32_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Descriptors of other processes, fetched once and cached. When kKept are cached, all are closed.
class Descriptors {
public:
    int find(const Segment& subnet, std::uint32_t process, std::int32_t fd) {
        const Process& owner = subnet.processes()[process];
        const auto key = std::make_tuple(process, owner.generation.load(std::memory_order_acquire), fd);
        std::lock_guard guard(lock_);
        if (const auto known = kept_.find(key); known != kept_.end()) return known->second;
        if (kept_.size() >= kKept) forget();
        const int pidfd = open_pidfd(owner.pid);
        if (pidfd < 0) return -1;
        const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
        if (copy < 0) complain();
        close(pidfd);
        if (copy >= 0) kept_.emplace(key, copy);
        return copy;
    }
    void drop(const Segment& subnet, std::uint32_t process, std::int32_t fd) {
        const auto key = std::make_tuple(process,
                                         subnet.processes()[process].generation.load(std::memory_order_acquire), fd);
        std::lock_guard guard(lock_);
        const auto known = kept_.find(key);
        if (known == kept_.end()) return;
        close(known->second);
        kept_.erase(known);
    }

private:
    static constexpr std::size_t kKept = 512;
    void forget() {
        for (const auto& [key, fd] : kept_) close(fd);
        kept_.clear();
    }
    static void complain() {
        static std::atomic<bool> said{false};
        if (errno == ESRCH || errno == EBADF || said.exchange(true)) return;
        std::fprintf(stderr, "coop-fabric: events do not reach other processes: pidfd_getfd: %s. %s\n",
                     std::strerror(errno),
                     errno == EPERM    ? "A seccomp filter or Yama forbids it: see 'coop-fabric check'."
                     : errno == ENOSYS ? "It takes Linux 5.6 or newer."
                                       : "Programs that sleep until an event may wake up late.");
    }
    std::mutex lock_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, int> kept_;
};

Descriptors& descriptors() {
    static Descriptors& all = *new Descriptors;  // outlives every thread
    return all;
}

}  // namespace

std::uint32_t join(const Segment& subnet, std::uint32_t host) {
    std::uint32_t index = subnet.claim<Process>(kProcesses);
    if (index == kNone && reap(subnet) > 0) index = subnet.claim<Process>(kProcesses);
    if (index == kNone) return kNone;
    Process& self = subnet.processes()[index];
    self.pid = getpid();
    self.host = host;
    self.generation.fetch_add(1, std::memory_order_release);
    self.wake.store(0, std::memory_order_relaxed);
    self.attention.store(0, std::memory_order_relaxed);
    self.memory_report.store(0, std::memory_order_relaxed);
    self.engine_cpu_ns.store(0, std::memory_order_relaxed);
    self.engine_wakeups.store(0, std::memory_order_relaxed);
    self.locked_bytes.store(0, std::memory_order_relaxed);
    for (auto& mark : self.at_work) mark.store(0, std::memory_order_relaxed);
    read_command(self.command);
    self.life.create();
    self.life.lock();
    self.joined.store(1, std::memory_order_release);
    trace(subnet, TraceKind::joined, index, host, static_cast<std::uint32_t>(self.pid));
    return index;
}

void leave(const Segment& subnet, std::uint32_t process) {
    Process& self = subnet.processes()[process];
    trace(subnet, TraceKind::left, process, self.host, static_cast<std::uint32_t>(self.pid));
    self.joined.store(0, std::memory_order_release);
    self.life.unlock();
    take_away(subnet, process);
}

int reap(const Segment& subnet) {
    int reaped = 0;
    const auto processes = subnet.ever_used<Process>(kProcesses);
    for (std::uint32_t i = 0; i < processes.size(); ++i) {
        Process& process = processes[i];
        if (!is_dead(process)) continue;
        // The process that gets the dead one's lock reaps it; the others find it gone.
        const bool joined = process.joined.load(std::memory_order_acquire) != 0;
        if (joined && !process.life.try_lock()) continue;
        const bool still = Segment::in_use(process);
        if (still) {
            process.joined.store(0, std::memory_order_release);
            trace(subnet, TraceKind::reaped, i, process.host, static_cast<std::uint32_t>(process.pid));
        }
        if (joined) process.life.unlock();
        if (!still) continue;
        take_away(subnet, i);
        ++reaped;
    }
    return reaped;
}

void wake(Process& process) noexcept {
    process.wake.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &process.wake, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool write_to(const Segment& subnet, std::uint32_t process, std::int32_t fd, const void* record,
              std::size_t bytes) noexcept {
    if (fd < 0) return false;
    const Process& owner = subnet.processes()[process];
    if (owner.pid == getpid()) return write(fd, record, bytes) == static_cast<ssize_t>(bytes);
    if (!is_alive(owner)) return false;
    // Writing to a channel whose reading end is closed raises SIGPIPE: keep the signal from the calling thread.
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    bool written = false;
    for (int tries = 0; tries < 2 && !written; ++tries) {
        const int copy = descriptors().find(subnet, process, fd);
        if (copy < 0) break;
        written = write(copy, record, bytes) == static_cast<ssize_t>(bytes);
        if (written || errno != EPIPE) break;
        // The channel of the cached descriptor is gone. The owner may have reused the number for another channel.
        const timespec none{};
        sigtimedwait(&pipe, nullptr, &none);
        descriptors().drop(subnet, process, fd);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return written;
}

void raise(const Segment& subnet, std::uint32_t context, const EventRecord& event) noexcept {
    const Context& to = subnet.contexts()[context];
    if (!Segment::in_use(to)) return;
    trace(subnet, TraceKind::event, to.hca, event.type, event.object);
    write_to(subnet, to.process, to.event_fd, &event, sizeof event);
}

void raise_on_hca(const Segment& subnet, std::uint32_t hca, const EventRecord& event) noexcept {
    const auto contexts = subnet.ever_used<Context>(kContexts);
    for (std::uint32_t i = 0; i < contexts.size(); ++i)
        if (Segment::in_use(contexts[i]) && contexts[i].hca == hca) raise(subnet, i, event);
}

std::string copy_refusal(std::int32_t pid) {
    static char byte;
    char here;
    iovec local{&here, 1}, remote{&byte, 1};  // a forked process has the byte at the same address
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != 1) {
        const int error = errno;
        std::string text = std::string("process_vm_readv: ") + std::strerror(error) + ". ";
        if (error == EPERM)
            text +=
                "Yama (sysctl kernel.yama.ptrace_scope; 0 or 1 will do) or a container's seccomp filter "
                "(docker run --cap-add SYS_PTRACE) forbids copies between processes";
        else if (error == ENOSYS) text += "This kernel, or a seccomp filter, has no process_vm_readv";
        return text;
    }
    const int pidfd = open_pidfd(pid);
    const int copy = pidfd < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, STDERR_FILENO, 0));
    const int error = errno;
    if (copy >= 0) close(copy);
    if (pidfd >= 0) close(pidfd);
    if (copy >= 0 || error == EBADF) return {};
    return std::string("pidfd_getfd: ") + std::strerror(error) +
           ". It takes Linux 5.6, and the permission to trace (Yama, seccomp)";
}

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/strict_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "fabric/engine/client.h"
#include "fabric/engine/memory.h"
#include "fabric/shm/trace.h"
#include "fabric/verbs/memory_lock.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace coop::fabric {
namespace {

// The third number of a trace entry (shm/trace.cc).
constexpr std::uint32_t kUnmapped = 0, kCannotBeWatched = 1;

// A watched region, in whole pages. The monitor reads these while other threads write them.
struct Watched {
    Shared<std::uint32_t> region;  // index plus 1; 0: the slot is free
    Shared<std::uint64_t> begin, end;
};

class Pending {
public:
    explicit Pending(Process& process) : process_(process) {
        process_.memory_report.store(1, std::memory_order_seq_cst);
    }
    ~Pending() { process_.memory_report.store(0, std::memory_order_release); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

private:
    Process& process_;
};

class Monitor {
public:
    static Monitor* get(const Client& client);

    void watch(std::uint32_t region);
    void unwatch(std::uint32_t region);

private:
    static constexpr std::uint32_t kMost = 1u << 18;
    static constexpr int kMostMessages = 16;

    explicit Monitor(const Client& client) : subnet_(client.subnet()), self_(client.self()) {}
    bool start();
    bool open_userfaultfd();
    bool add_range(std::uint64_t begin, std::uint64_t end) const;
    void remove_range(std::uint64_t begin, std::uint64_t end) const;
    Watched* find_slot(std::uint32_t content);
    void run();
    void mark(std::uint64_t begin, std::uint64_t end, const char* what);
    void tell(std::uint32_t index, const MemoryRegion& region, const char* what);
    void note(std::uint32_t index, std::uint32_t what) const {
        trace(subnet_, TraceKind::stale_memory, static_cast<std::uint32_t>(getpid()), index, what,
              subnet_.memory_regions()[index].address);
    }

    const Segment& subnet_;
    Process& self_;
    std::mutex lock_;  // for watching and unwatching; the monitor's thread never takes it
    Watched* watched_ = nullptr;
    Shared<std::uint32_t> slots_{0};  // number of slots that were ever used
    int fd_ = -1;
    int messages_ = 0;
};

void say(const char* text) { [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text)); }

bool Monitor::open_userfaultfd() {
    constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, kFlags));
    if (fd_ < 0) fd_ = static_cast<int>(syscall(SYS_userfaultfd, kFlags | UFFD_USER_MODE_ONLY));
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP;
    return fd_ >= 0 && ioctl(fd_, UFFDIO_API, &api) == 0;
}

bool Monitor::start() {
    if (!open_userfaultfd()) {
        char text[160];
        std::snprintf(text, sizeof text, "coop-fabric: stale memory regions are not caught: userfaultfd: %s\n",
                      std::strerror(errno));
        say(text);
        return false;
    }
    void* table = mmap(nullptr, kMost * sizeof(Watched), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return false;
    watched_ = static_cast<Watched*>(table);
    std::thread([this] { run(); }).detach();
    return true;
}

// One per process; a child gets its own after fork(). Null if there cannot be one.
Monitor* Monitor::get(const Client& client) {
    static std::mutex starting;
    static Monitor* monitor = nullptr;
    static pid_t owner = 0;
    std::lock_guard guard(starting);
    if (owner == getpid()) return monitor;
    owner = getpid();
    monitor = new Monitor(client);
    if (!monitor->start()) monitor = nullptr;
    return monitor;
}

bool Monitor::add_range(std::uint64_t begin, std::uint64_t end) const {
    uffdio_register wish{};
    wish.range = {begin, end - begin};
    wish.mode = UFFDIO_REGISTER_MODE_WP;
    return ioctl(fd_, UFFDIO_REGISTER, &wish) == 0;
}

// Stops watching the part of the range that no other region covers.
void Monitor::remove_range(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return;
    const std::uint32_t slots = slots_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < slots; ++i) {
        if (watched_[i].region.load(std::memory_order_relaxed) == 0) continue;
        const std::uint64_t other_begin = watched_[i].begin.load(std::memory_order_relaxed);
        const std::uint64_t other_end = watched_[i].end.load(std::memory_order_relaxed);
        if (other_begin >= end || other_end <= begin) continue;
        remove_range(begin, std::min(other_begin, end));
        remove_range(std::max(other_end, begin), end);
        return;
    }
    uffdio_range range{begin, end - begin};
    ioctl(fd_, UFFDIO_UNREGISTER, &range);  // fails if the range is not mapped any more
}

Watched* Monitor::find_slot(std::uint32_t content) {
    const std::uint32_t slots = slots_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < slots; ++i)
        if (watched_[i].region.load(std::memory_order_relaxed) == content) return &watched_[i];
    if (content != 0 || slots == kMost) return nullptr;
    slots_.store(slots + 1, std::memory_order_release);
    return &watched_[slots];
}

void Monitor::watch(std::uint32_t region) {
    const MemoryRegion& entry = subnet_.memory_regions()[region];
    const std::uint64_t begin = page_floor(entry.address), end = page_ceiling(entry.address + entry.bytes);
    std::lock_guard guard(lock_);
    Watched* slot = find_slot(0);
    if (slot == nullptr) return;
    if (!add_range(begin, end)) {
        note(region, kCannotBeWatched);
        return;
    }
    slot->begin.store(begin, std::memory_order_relaxed);
    slot->end.store(end, std::memory_order_relaxed);
    slot->region.store(region + 1, std::memory_order_release);
}

void Monitor::unwatch(std::uint32_t region) {
    std::lock_guard guard(lock_);
    Watched* slot = find_slot(region + 1);
    if (slot == nullptr) return;
    slot->region.store(0, std::memory_order_release);
    remove_range(slot->begin.load(std::memory_order_relaxed), slot->end.load(std::memory_order_relaxed));
}

void Monitor::tell(std::uint32_t index, const MemoryRegion& region, const char* what) {
    note(index, kUnmapped);
    if (++messages_ > kMostMessages) return;
    char text[256];
    std::snprintf(
        text, sizeof text,
        "coop-fabric: process %d: registered memory was %s: %#llx, %llu bytes, lkey %#x. Real hardware would go on "
        "using the old pages; here the region cannot be used any more.\n",
        static_cast<int>(getpid()), what, static_cast<unsigned long long>(region.address),
        static_cast<unsigned long long>(region.bytes), lkey_of(index, region));
    say(text);
}

void Monitor::mark(std::uint64_t begin, std::uint64_t end, const char* what) {
    const std::uint32_t slots = slots_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < slots; ++i) {
        const std::uint32_t region = watched_[i].region.load(std::memory_order_acquire);
        if (region == 0 || watched_[i].begin.load(std::memory_order_relaxed) >= end ||
            watched_[i].end.load(std::memory_order_relaxed) <= begin)
            continue;
        MemoryRegion& entry = subnet_.memory_regions()[region - 1];
        if (entry.stale.exchange(1, std::memory_order_acq_rel) == 0) tell(region - 1, entry, what);
    }
}

void Monitor::run() {
    uffd_msg report;
    for (;;) {
        pollfd waiting{fd_, POLLIN, 0};
        if (poll(&waiting, 1, -1) < 0 && errno != EINTR) return;
        // The unmapping thread goes on as soon as the report is read. Until the regions of the report are marked stale,
        // the engines must not rely on any region: Pending sets memory_report, and look_up() waits until it is 0.
        const Pending pending(self_);
        const ssize_t n = read(fd_, &report, sizeof report);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n != sizeof report) return;
        switch (report.event) {
        case UFFD_EVENT_UNMAP: mark(report.arg.remove.start, report.arg.remove.end, "unmapped or replaced"); break;
        case UFFD_EVENT_REMOVE: mark(report.arg.remove.start, report.arg.remove.end, "given back to the system"); break;
        case UFFD_EVENT_REMAP:
            mark(report.arg.remap.from, report.arg.remap.from + report.arg.remap.len, "moved");
            break;
        default: break;
        }
    }
}

}  // namespace

void watch_region(const Client& client, std::uint32_t region) {
    if (Monitor* monitor = Monitor::get(client)) monitor->watch(region);
}

void unwatch_region(const Client& client, std::uint32_t region) {
    if (Monitor* monitor = Monitor::get(client)) monitor->unwatch(region);
}

}  // namespace coop::fabric

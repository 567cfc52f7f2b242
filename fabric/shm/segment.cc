// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/shm/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace coop::fabric {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr const char* kFolder = "/dev/shm";

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

std::string prefix() { return "coop-fabric." + std::to_string(geteuid()) + "."; }

Error failed(const std::string& what, const std::string& path) {
    std::string text = "cannot " + what + " " + path + ": " + std::strerror(errno);
    if (errno == ENOSPC) text += " (/dev/shm is full, or too small: see 'df /dev/shm')";
    if (errno == ENOENT || errno == EACCES || errno == EPERM || errno == EROFS)
        text += " (it takes a tmpfs at /dev/shm that you can write to)";
    return {text};
}

// Plans a table after those already planned.
void plan(Header& header, std::uint64_t& end, Table which, std::uint64_t entries, std::size_t stride) {
    header.table[which] = {end, static_cast<std::uint32_t>(entries), static_cast<std::uint32_t>(stride)};
    end = round_up(end + entries * stride, kPage);
}

void plan_tables(Header& header, const Capacity& c, std::uint64_t& end) {
    plan(header, end, kHosts, c.hosts, sizeof(Host));
    plan(header, end, kHcas, c.hcas, sizeof(Hca));
    plan(header, end, kPorts, c.ports, sizeof(Port));
    plan(header, end, kSwitches, c.switches, sizeof(Switch));
    plan(header, end, kLinks, c.links, sizeof(Link));
    plan(header, end, kLids, c.lids, sizeof(Lid));
    plan(header, end, kForwards, std::uint64_t{c.switches} * c.lids, sizeof(Forward));
    plan(header, end, kPinnedRoutes, c.pinned_routes, sizeof(PinnedRoute));
    plan(header, end, kFaults, c.faults, sizeof(Fault));
    plan(header, end, kTraces, c.traces, sizeof(Trace));
    plan(header, end, kProcesses, c.processes, sizeof(Process));
    plan(header, end, kContexts, c.contexts, sizeof(Context));
    plan(header, end, kMemoryRegions, c.memory_regions, sizeof(MemoryRegion));
    plan(header, end, kCompletionQueues, c.completion_queues, sizeof(CompletionQueue));
    plan(header, end, kSharedReceiveQueues, c.shared_receive_queues, sizeof(SharedReceiveQueue));
    plan(header, end, kQueuePairs, c.queue_pairs, sizeof(QueuePair));
}

bool same_layout(const Header& header) {
    const std::size_t strides[kTables] = {
        sizeof(Host),     sizeof(Hca),     sizeof(Port),         sizeof(Switch),          sizeof(Link),
        sizeof(Lid),      sizeof(Forward), sizeof(PinnedRoute),  sizeof(Fault),           sizeof(Trace),
        sizeof(Process),  sizeof(Context), sizeof(MemoryRegion), sizeof(CompletionQueue), sizeof(SharedReceiveQueue),
        sizeof(QueuePair)};
    if (header.tables != kTables) return false;
    for (std::uint32_t i = 0; i < kTables; ++i)
        if (header.table[i].stride != strides[i]) return false;
    return true;
}

bool is_good_name(const std::string& name) {
    return !name.empty() && name.size() < sizeof(Header::name) && name.find('/') == std::string::npos && name[0] != '.';
}

}  // namespace

Segment::~Segment() {
    if (base_ != nullptr) munmap(base_, bytes_);
    if (fd_ >= 0) close(fd_);
}

std::string Segment::path(const std::string& name) { return std::string(kFolder) + "/" + prefix() + name; }

Error Segment::map(int fd, std::uint64_t bytes) {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (address == MAP_FAILED) return {std::string("cannot map the subnet: ") + std::strerror(errno)};
    base_ = static_cast<std::byte*>(address);
    bytes_ = bytes;
    fd_ = fd;
    return {};
}

Error Segment::create(const std::string& name, const Capacity& capacity) {
    if (!is_good_name(name)) return {"'" + name + "' is not a name for a subnet: 1 to 63 characters without '/'"};
    const std::string file = path(name);
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) return {"a subnet '" + name + "' exists already (coop-fabric destroy " + name + ")"};
    if (fd < 0) return failed("create", file);

    Header planned{};
    std::uint64_t end = round_up(sizeof(Header), kPage);
    plan_tables(planned, capacity, end);
    const std::uint64_t heap = end;
    const std::uint64_t bytes = heap + capacity.heap_bytes;
    Error error;
    // Reserve the header, the topology, the faults and the trace now; the other tables and the heap are reserved as
    // they are used.
    errno = ftruncate(fd, static_cast<off_t>(bytes)) != 0
                ? errno
                : posix_fallocate(fd, 0, static_cast<off_t>(planned.table[kProcesses].offset));
    error = errno != 0 ? failed("make room in", file) : map(fd, bytes);
    if (error) {
        unlink(file.c_str());
        if (fd_ < 0) close(fd);
        return error;
    }
    Header& h = header();
    std::memcpy(h.table, planned.table, sizeof planned.table);
    h.magic = kMagic;
    h.version = kLayoutVersion;
    h.tables = kTables;
    h.bytes = bytes;
    h.owner = geteuid();
    std::strncpy(h.name, name.c_str(), sizeof h.name - 1);
    h.created_ns = now_ns();
    h.heap = heap;
    h.heap_bytes = capacity.heap_bytes;
    h.heap_top = heap;
    h.lock.create();
    return {};
}

void Segment::publish() { header().ready.store(1, std::memory_order_release); }

Error Segment::attach(const std::string& name) {
    if (!is_good_name(name)) return {"'" + name + "' is not a name for a subnet"};
    const std::string file = path(name);
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) return {"there is no subnet '" + name + "' (coop-fabric list)"};
    if (fd < 0) return failed("open", file);
    struct stat info {};
    if (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 0077) != 0) {
        close(fd);
        return {file + " is refused, because other users can access it"};
    }
    if (static_cast<std::uint64_t>(info.st_size) < sizeof(Header)) {
        close(fd);
        return {file + " is not a subnet"};
    }
    if (const Error error = map(fd, static_cast<std::uint64_t>(info.st_size))) {
        close(fd);
        return error;
    }
    const Header& h = header();
    if (h.magic != kMagic || h.version != kLayoutVersion || h.bytes != bytes_ || !same_layout(h))
        return {file + " was made by another version of coop-fabric: destroy it and create it again"};
    if (h.ready.load(std::memory_order_acquire) == 0) return {"the subnet '" + name + "' is being created"};
    return {};
}

Error Segment::remove(const std::string& name) {
    const std::string file = path(name);
    if (unlink(file.c_str()) == 0) return {};
    if (errno == ENOENT) return {"there is no subnet '" + name + "' (coop-fabric list)"};
    return failed("remove", file);
}

std::vector<std::string> Segment::list() {
    std::vector<std::string> names;
    const std::string start = prefix();
    DIR* folder = opendir(kFolder);
    if (folder == nullptr) return names;
    while (const dirent* entry = readdir(folder))
        if (std::strncmp(entry->d_name, start.c_str(), start.size()) == 0)
            names.emplace_back(entry->d_name + start.size());
    closedir(folder);
    return names;
}

std::uint64_t Segment::file_bytes() const {
    struct stat info {};
    return fstat(fd_, &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
}

bool Segment::reserve(const void* address, std::size_t bytes) const {
    const auto offset = static_cast<const std::byte*>(address) - base_;
    const int error = posix_fallocate(fd_, offset, static_cast<off_t>(bytes));
    if (error == 0) return true;
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
        std::fprintf(stderr, "coop-fabric: no room for the subnet '%s': %s\n", header().name,
                     error == ENOSPC ? "/dev/shm is full (see 'df /dev/shm')" : std::strerror(error));
    return false;
}

// Allocates a block of 2^i bytes, at least a cache line; freed blocks are kept by size. The block is backed by the file
// before it is handed out, so that writing to it cannot fail.
std::uint64_t Segment::allocate(std::uint64_t bytes) const {
    Header& h = header();
    const std::uint64_t size = std::bit_ceil(bytes < 64 ? std::uint64_t{64} : bytes);
    const int order = std::countr_zero(size);
    if (order >= static_cast<int>(std::size(h.heap_free))) return 0;
    Guard guard(h.lock);
    std::uint64_t offset = 0;
    if (h.heap_free[order] != 0) {
        offset = h.heap_free[order] - 1;
        h.heap_free[order] = *at<std::uint64_t>(offset);
    } else {
        offset = h.heap_top;
        if (offset + size > h.heap + h.heap_bytes || !reserve(at<std::byte>(offset), size)) return 0;
        h.heap_top = offset + size;
    }
    std::memset(at<std::byte>(offset), 0, size);
    return offset;
}

void Segment::free(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset == 0) return;
    Header& h = header();
    const std::uint64_t size = std::bit_ceil(bytes < 64 ? std::uint64_t{64} : bytes);
    const int order = std::countr_zero(size);
    Guard guard(h.lock);
    *at<std::uint64_t>(offset) = h.heap_free[order];
    h.heap_free[order] = offset + 1;
}

std::int64_t now_ns() noexcept {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1'000'000'000ll + time.tv_nsec;
}

}  // namespace coop::fabric

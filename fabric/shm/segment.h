// SPDX-License-Identifier: BSD-3-Clause
//
// A subnet's file /dev/shm/coop-fabric.<uid>.<name>: create, map and remove it,
// and allocate its table entries and heap. The file is sparse: unused parts take
// no memory. Heap is reserved in the file before it is handed out, so that a full
// /dev/shm is an error here and not a SIGBUS later.
//
// Threading: claim, allocate and free take the header's lock; release takes none.
// Errors: an Error with a sentence for the user. Nothing throws.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/shm/layout.h"

namespace coop::fabric {

struct Error {
    std::string text;  // empty: none
    explicit operator bool() const { return !text.empty(); }
};

// The sizes of a subnet's tables. Those that the topology fills are exactly as large as the topology needs.
struct Capacity {
    std::uint32_t hosts = 0, hcas = 0, ports = 0, switches = 0, links = 0;
    std::uint32_t lids = 0;  // highest LID + 1
    std::uint32_t pinned_routes = 0;
    std::uint32_t processes = 1024;
    std::uint32_t contexts = 4096;
    std::uint32_t memory_regions = 1u << 18;
    std::uint32_t completion_queues = 1u << 15;
    std::uint32_t shared_receive_queues = 1u << 13;
    std::uint32_t queue_pairs = 1u << 16;
    std::uint32_t faults = 256;
    std::uint32_t traces = 1u << 15;
    std::uint64_t heap_bytes = 4ull << 30;
};

class Segment {
public:
    Segment() = default;
    ~Segment();
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Creates the file; everything in it is zero except the header. The caller fills in the topology, creates its
    // locks, and then calls publish(). The locks of other entries are created when an entry is first claimed.
    Error create(const std::string& name, const Capacity& capacity);
    void publish();
    // Maps an existing subnet.
    Error attach(const std::string& name);
    static Error remove(const std::string& name);
    static std::string path(const std::string& name);
    static std::vector<std::string> list();  // names of this user's subnets

    bool is_open() const { return base_ != nullptr; }
    Header& header() const { return *reinterpret_cast<Header*>(base_); }
    std::uint64_t file_bytes() const;  // memory that the subnet uses at present

    std::span<Host> hosts() const { return table<Host>(kHosts); }
    std::span<Hca> hcas() const { return table<Hca>(kHcas); }
    std::span<Port> ports() const { return table<Port>(kPorts); }
    std::span<Switch> switches() const { return table<Switch>(kSwitches); }
    std::span<Link> links() const { return table<Link>(kLinks); }
    std::span<Lid> lids() const { return table<Lid>(kLids); }
    std::span<Forward> forwards() const { return table<Forward>(kForwards); }
    std::span<PinnedRoute> pinned_routes() const { return table<PinnedRoute>(kPinnedRoutes); }
    std::span<Process> processes() const { return table<Process>(kProcesses); }
    std::span<Context> contexts() const { return table<Context>(kContexts); }
    std::span<MemoryRegion> memory_regions() const { return table<MemoryRegion>(kMemoryRegions); }
    std::span<CompletionQueue> completion_queues() const { return table<CompletionQueue>(kCompletionQueues); }
    std::span<SharedReceiveQueue> shared_receive_queues() const {
        return table<SharedReceiveQueue>(kSharedReceiveQueues);
    }
    std::span<QueuePair> queue_pairs() const { return table<QueuePair>(kQueuePairs); }
    std::span<Fault> faults() const { return table<Fault>(kFaults); }
    std::span<Trace> traces() const { return table<Trace>(kTraces); }

    // Claims a free entry of a table and returns its index, or kNone. The entry's `used` becomes odd and takes a new
    // value, so that it can serve as a generation.
    template <class T>
    std::uint32_t claim(Table which) const {
        const std::span<T> entries = table<T>(which);
        Header& h = header();
        Guard guard(h.lock);
        const std::uint32_t highest = h.highest[which].load(std::memory_order_relaxed);
        std::uint32_t i = highest;
        if (h.taken[which].load(std::memory_order_relaxed) < highest)
            i = find_free(entries, highest, h.hint[which].load(std::memory_order_relaxed));
        if (i == highest) {
            if (i == entries.size() || !reserve(&entries[i], sizeof(T))) return kNone;
            h.highest[which].store(i + 1, std::memory_order_release);
        }
        h.hint[which].store(i + 1, std::memory_order_relaxed);
        h.taken[which].fetch_add(1, std::memory_order_relaxed);
        entries[i].used.fetch_add(1, std::memory_order_release);
        return i;
    }
    template <class T>
    void release(T& entry) const {
        entry.used.fetch_add(1, std::memory_order_acq_rel);
        header().taken[table_of(entry)].fetch_sub(1, std::memory_order_relaxed);
    }
    // The entries of a table that were ever claimed. The entries after them have no memory yet and must not be touched.
    template <class T>
    std::span<T> ever_used(Table which) const {
        return table<T>(which).first(header().highest[which].load(std::memory_order_acquire));
    }
    template <class T>
    static bool in_use(const T& entry) {
        return entry.used.load(std::memory_order_acquire) & 1;
    }

    // Returns the offset of `bytes` zeroed bytes, or 0 if the subnet or /dev/shm is full.
    std::uint64_t allocate(std::uint64_t bytes) const;
    void free(std::uint64_t offset, std::uint64_t bytes) const;
    template <class T>
    T* at(std::uint64_t offset) const {
        return reinterpret_cast<T*>(base_ + offset);
    }

private:
    template <class T>
    static std::uint32_t find_free(std::span<T> entries, std::uint32_t end, std::uint32_t from) {
        for (std::uint32_t tried = 0, i = from; tried < end; ++tried, ++i) {
            if (i >= end) i = 0;
            if (!in_use(entries[i])) return i;
        }
        return end;
    }
    template <class T>
    std::span<T> table(Table which) const {
        const TableAt& at = header().table[which];
        return {reinterpret_cast<T*>(base_ + at.offset), at.capacity};
    }
    Error map(int fd, std::uint64_t bytes);
    // Reserves these bytes in the file. If there is no room, prints an error to stderr, once.
    bool reserve(const void* address, std::size_t bytes) const;

    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    int fd_ = -1;
};

std::int64_t now_ns() noexcept;

}  // namespace coop::fabric

// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "fabric/engine/client.h"
#include "fabric/shm/trace.h"
#include "fabric/verbs/exports.h"
#include "fabric/verbs/memory_lock.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kForked = 2;  // third number of a trace entry (shm/trace.cc)

struct Pages {
    std::uint64_t begin, end;
};

// The state of this process; a child has none of its parent's regions.
struct State {
    std::mutex lock;
    bool asked = false;     // ibv_fork_init() was called before any registration
    bool too_late = false;  // memory has been registered
    std::vector<Pages> regions;
};

State& state() {
    static State* const all = new State;  // never destroyed: used until the very end of the process
    return *all;
}

void before_fork() { state().lock.lock(); }

void in_child() {
    State& s = state();
    new (&s.lock) std::mutex;
    s.regions.clear();
}

void in_parent() {
    State& s = state();
    const std::unique_lock locked(s.lock, std::adopt_lock);
    const Client* client = Client::current();
    if (s.asked || client == nullptr) return;
    const Segment& subnet = client->subnet();
    const auto regions = subnet.ever_used<MemoryRegion>(kMemoryRegions);
    unsigned lost = 0;
    for (std::uint32_t i = 0; i < regions.size(); ++i) {
        MemoryRegion& region = regions[i];
        if (region.process != client->process() || !Segment::in_use(region) ||
            region.stale.exchange(1, std::memory_order_acq_rel) != 0)
            continue;
        trace(subnet, TraceKind::stale_memory, static_cast<std::uint32_t>(getpid()), i, kForked, region.address);
        ++lost;
    }
    if (lost != 0)
        std::fprintf(
            stderr,
            "coop-fabric: process %d has forked without ibv_fork_init(): on a kernel before Linux 5.12 the HCA may no "
            "longer read and "
            "write the process's memory in its %u registered regions. Here these regions cannot be used any more.\n",
            static_cast<int>(getpid()), lost);
}

// Returns to the children the part of `pages` that no other region covers.
void give_back(const std::vector<Pages>& others, Pages pages) {
    if (pages.begin >= pages.end) return;
    const auto other = std::ranges::find_if(others,
                                            [&](const Pages& o) { return o.begin < pages.end && o.end > pages.begin; });
    if (other == others.end()) {
        madvise(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, MADV_DOFORK);
        return;
    }
    give_back(others, {pages.begin, other->begin});
    give_back(others, {other->end, pages.end});
}

bool is_strict() {
    const Client* client = Client::get();
    return client != nullptr && client->subnet().header().strict_fork != 0;
}

}  // namespace

void hide_from_children(std::uint64_t address, std::uint64_t bytes) {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(before_fork, in_parent, in_child); });
    State& s = state();
    const std::lock_guard guard(s.lock);
    const Pages pages{page_floor(address), page_ceiling(address + bytes)};
    s.too_late = true;
    if (!s.asked) return;
    s.regions.push_back(pages);
    madvise(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, MADV_DONTFORK);
}

void show_to_children(std::uint64_t address, std::uint64_t bytes) {
    State& s = state();
    const std::lock_guard guard(s.lock);
    const Pages pages{page_floor(address), page_ceiling(address + bytes)};
    const auto region = std::ranges::find_if(
        s.regions, [&](const Pages& r) { return r.begin == pages.begin && r.end == pages.end; });
    if (region == s.regions.end()) return;
    s.regions.erase(region);
    give_back(s.regions, pages);
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB int ibv_fork_init() {
    if (!is_strict()) return 0;
    State& s = state();
    const std::lock_guard guard(s.lock);
    if (s.asked) return 0;
    if (s.too_late) return EINVAL;
    s.asked = true;
    return 0;
}

COOP_VERB ibv_fork_status ibv_is_fork_initialized() {
    if (!is_strict()) return IBV_FORK_UNNEEDED;
    State& s = state();
    const std::lock_guard guard(s.lock);
    return s.asked ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "node_row.h"

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coop/base/relax.h"
#include "coop/node/cpu_limit.h"
#include "diagnose.h"
#include "process.h"

namespace coop::ag {
namespace {

constexpr std::uint64_t kReadBetweenProgress = 1 << 20;  // bytes: other operations go on meanwhile

// Other members read it to test whether they may.
const std::uint64_t& nonce_in_memory() noexcept {
    static const std::uint64_t nonce = node::random_word();
    return nonce;
}

std::uint32_t index_of(std::span<const std::uint32_t> members, std::uint32_t rank) noexcept {
    return static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

// Waits between two looks at the shared words. They are looked at directly. Open MPI's progress costs as much as a whole
// short call, so it runs only from time to time; other processes may need it before they can enter the call.
class Wait {
public:
    explicit Wait(bool crowded) noexcept : crowded_(crowded) {}

    void once() noexcept {
        ++looks_;
        if (looks_ % (crowded_ ? kLooksIfCrowded : kLooks) == 0) opal_progress();
        // A process that waits for long does not need to be quick.
        if (crowded_ || looks_ > kLooksUntilYield) sched_yield();
        else relax();
    }

private:
    static constexpr std::uint32_t kLooks = 64, kLooksIfCrowded = 4, kLooksUntilYield = 1 << 14;
    const bool crowded_;
    std::uint32_t looks_ = 0;
};

}  // namespace

NodeRow::NodeRow(std::span<const std::uint32_t> members, std::uint32_t own_rank, node::Segment segment,
                 std::size_t slot_bytes)
    : segment_(std::move(segment)), area_(segment_.memory(), static_cast<std::uint32_t>(members.size()), slot_bytes),
      index_(index_of(members, own_rank)), calls_(*this, area_, index_) {
    for (const std::uint32_t rank : members) members_.push_back({rank, 0, true});
    area_.card(index_) = {static_cast<std::int32_t>(getpid()), nonce_in_memory(),
                          reinterpret_cast<std::uintptr_t>(&nonce_in_memory())};
}

void NodeRow::meet() noexcept {
    node::CpuSet cpus;
    for (std::uint32_t i = 0; i < area_.processes(); ++i) {
        const coll::NodeArea::Card& card = area_.card(i);
        members_[i].pid = card.pid;
        members_[i].refuses = i != index_ && node::try_copy(card.pid, card.nonce_address, card.nonce) != 0;
        node::add(cpus, node::cpus_of(card.pid));
    }
    segment_.conceal();
    const std::size_t online = static_cast<std::size_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
    const std::size_t all = static_cast<std::size_t>(opal_process_info.num_local_peers) + 1;
    const std::size_t available = cpus.empty() ? online : node::count(cpus);
    crowded_ = opal_progress_yield_when_idle || area_.processes() > available ||
               node::is_crowded(all, online, node::cpu_limit());
}

void NodeRow::gather(const std::byte* own, std::byte* memory, const coll::Blocks& blocks) noexcept {
    const bool alone = area_.processes() == 1;
    if (!alone) calls_.start(own, memory, blocks);
    // Not before the others can begin.
    std::byte* const place = memory + blocks.begin_of(index_);
    if (const std::uint64_t bytes = blocks.bytes_of(index_); own != place && bytes > 0) std::memcpy(place, own, bytes);
    if (alone) return;
    Wait wait(crowded_);
    while (!calls_.advance()) {
        if (calls_.wrong()) [[unlikely]] {
            if (calls_.length_differs()) lengths_differ(static_cast<std::uint32_t>(calls_.lap()));
            wrong_word(members_[calls_.wrong_process()].rank, calls_.wrong(), calls_.lap());
        }
        if (read_since_ >= kReadBetweenProgress) {
            read_since_ = 0;
            opal_progress();
        }
        wait.once();
    }
}

bool NodeRow::read(std::uint32_t from, std::uint64_t address, std::byte* to, std::uint64_t bytes) noexcept {
    Member& member = members_[from];
    if (!member.refuses && !process.faults.hit(Fault::kGet)) {
        for (std::uint64_t done = 0;;) {
            const iovec here{to + done, bytes - done}, there{reinterpret_cast<void*>(address + done), bytes - done};
            const ssize_t n = process_vm_readv(member.pid, &here, 1, &there, 1, 0);
            if (n <= 0) {
                // EFAULT may be of this memory only.
                member.refuses = n < 0 && errno != EFAULT && errno != ENOMEM && errno != EINTR;
                break;
            }
            done += static_cast<std::uint64_t>(n);
            if (done < bytes) continue;
            read_since_ += bytes;
            process.count(Count::kNodeReads);
            return true;
        }
    }
    process.count(Count::kNodeChunked);
    return false;
}

}  // namespace coop::ag

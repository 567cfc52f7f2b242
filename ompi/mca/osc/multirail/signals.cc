// SPDX-License-Identifier: BSD-3-Clause
//
// The ends of active epochs. A target learns of them from a signal behind the RDMA writes on each rail, and from one
// that is the last record (coop/rma/sync_counters.h).
//
//     MPI_Win_complete   results have come ─► signals ─► writes are acknowledged
//     fence (signals 2)  2 processes: results have come ─► signals ─► those of the other one; writes are acknowledged
//                        more: results have come, and writes are acknowledged ─► signals to all ─► those of all others
//                        if any process has sent records in the epoch, then a barrier
//
// The results come first, because the target may change its memory as soon as it knows of the end. After a complete,
// acknowledgements tell only that the program may use its buffers again. After a fence, they also tell that operations
// of the next epoch find the data of this one, on whichever target. For the records of others, a barrier tells that.
#include <algorithm>
#include <cstring>
#include <utility>

#include "frames.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

static_assert(sched::kMaxRails + 1 <= rma::SyncCounter::kMostSignals && sizeof(rma::SignalPacket) <= kMaxRiderBytes);

// The signal in the packet counts those that do not travel behind writes. They come first.
void set_place(void* packet, std::uint32_t place, std::uint32_t copies) noexcept {
    rma::SignalPacket signal;
    std::memcpy(&signal, packet, sizeof signal);
    signal.signal.place = static_cast<std::uint8_t>(signal.signal.signals + place);
    signal.signal.signals = static_cast<std::uint8_t>(signal.signal.signals + copies);
    rma::seal(signal);
    std::memcpy(packet, &signal, sizeof signal);
}

// Records that the peer may not have executed.
bool has_records(const Peer& peer) noexcept { return peer.unflushed || peer.buffer.bytes; }

}  // namespace

// Returns the number of signals. If the transport cannot send them, this waits until the writes are acknowledged.
std::uint32_t Window::signal_writes(Lock& lock, Peer& peer, const rma::Signal& signal) {
    rma::SignalPacket packet{};
    packet.packet.window = context_;
    packet.packet.source = rank_;
    packet.signal = signal;
    RailSignal on_rails{.packet = {}, .bytes = sizeof packet, .tag = kTag, .set_place = set_place};
    on_rails.since = peer.signalled;
    std::memcpy(on_rails.packet, &packet, sizeof packet);
    lock.unlock();
    const bool sent = extension_->signal && !process.faults.hit(Fault::kAlloc) &&
                      extension_->signal(rdma_, peer.rdma, on_rails);
    lock.lock();
    if (!sent) {
        read_behind(lock, peer);
        const Generations::Number writes = peer.writes.close(), reads = peer.operations.close();
        wait_for(lock, [&] { return peer.writes.is_over(writes) && peer.operations.is_over(reads); });
        return 0;
    }
    peer.unread_writes = false;  // the signals come behind them, as a read would
    peer.signalled = on_rails.since;
    process.count(Count::kSignals, on_rails.copies);
    return on_rails.copies;
}

void Window::end_epoch(Lock& lock, Peer& peer, rma::End end, bool touched, std::vector<Outgoing>& out) {
    // The target executes the records of a frame in order, and frames, too.
    const bool after_records = has_records(peer);
    rma::Signal signal{peer.epochs++, end, touched, 0, after_records};
    const std::uint32_t behind_writes = std::exchange(peer.wrote, false) ? signal_writes(lock, peer, signal) : 0;
    if (after_records || behind_writes == 0) {
        signal.signals = static_cast<std::uint8_t>(behind_writes + 1);
        append(lock, peer, rma::record_of(signal));
    }
    peer.unflushed = false;  // the target knows when all has been executed
    close_frame(lock, peer, out);
}

const char* Window::on_signal(std::uint32_t source, const rma::Signal& signal) {
    Peer& from = peer(source);
    const char* wrong = nullptr;
    const char* const why = from.signals.on_signal(signal, [&](const rma::Signal& ended) {
        if (ended.end == rma::End::kComplete) return pscw_.on_complete(source);
        const char* const fence = has_fences_ ? fences_.on_end(from.fences++, ended.touched != 0) : "fence";
        if (fence) wrong = fence;
    });
    return why ? why : wrong;
}

// Returns when all others have ended the fence, too. True: they have to meet once more.
bool Window::end_fence(Lock& lock) {
    const std::vector<Peer*> peers = touched_peers();
    // No signal follows the writes then. With two processes one does.
    const bool with_writes = processes_ > 2;
    for (Peer* const each : peers)
        if (with_writes) read_behind(lock, *each);
    finish(lock, peers, false, with_writes);
    const bool touched = std::ranges::any_of(peers, [](const Peer* each) { return has_records(*each); });
    std::vector<Outgoing> out;
    for (std::uint32_t rank = 0; rank < processes_; ++rank)
        if (rank != rank_) end_epoch(lock, peer(rank), rma::End::kFence, touched, out);
    lock.unlock();
    send(std::move(out));
    lock.lock();
    wait_for(lock, [&] { return fences_.all_have_ended(); });
    const bool meet = touched || fences_.others_have_touched();
    fences_.pass();
    return meet;
}

}  // namespace coop::osc

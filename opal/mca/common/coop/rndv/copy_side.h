// SPDX-License-Identifier: BSD-3-Clause
//
// One side of a cooperative copy (coop, rtr, rput with a slot): which chunk to copy next, and when to stop. Sender and
// receiver run the same machine on the same slot of the receiver's board. (Cooperative Rendezvous Protocols, sections
// II-A1 and II-C)
//
//     claim a chunk --> copy it --> count it on the board --> yield to other messages
//       | none left, or the other side leads                     |
//       +--> stand by: look at the board again            <------+
//              nothing moves: take over what is left
//              nothing moves and the process is gone: the peer died
//
// A side that holds a chunk does not yield unless a transport copies without its help. Otherwise a caller that leaves
// the library would hold a chunk that the other side waits for. A chunk that a transport refuses for good goes to the
// other side. When both sides are refused the copy is stuck, and fragments carry the whole range again.
//
// The owner carries out what next() returns:
//
//     side.begin_turn();
//     for (;;) switch (side.next(hands)) {
//         case CopyDo::kCopy:     copy from at() until at most end(), then issued(), fail() or no_room(); if no_room()
//                                 returns true, return (as CopyDo::kNoRoom, which next() does not return) and try again
//                                 later
//         case CopyDo::kBusy:     return; call next() again when the transport has completed its copies
//         case CopyDo::kYield:    return; go on after other messages had their turn
//         case CopyDo::kStandBy:  return; look again
//         case CopyDo::kOver: case CopyDo::kStuck: case CopyDo::kPeerDied: return
//     }
//
// `Hands` is what a side knows of its process; see the members that next() calls.
//
// Units: bytes of the message, nanoseconds. Threading: one thread at a time, but fail() may come from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/rndv/board.h"
#include "coop/rndv/chunk.h"
#include "coop/rndv/protocol.h"
#include "coop/rndv/takeover.h"

namespace coop::rndv {

enum class CopyDo : std::uint8_t { kCopy, kBusy, kNoRoom, kYield, kStandBy, kOver, kStuck, kPeerDied };

// The receiver of a copy, or the sender.
class CopySide {
public:
    // `bytes` > 0 from byte `from` of the message on.
    void start(Slot& slot, Side side, std::uint32_t generation, std::uint64_t from, std::uint64_t bytes,
               std::uint32_t chunk_bytes, const Choice& choice) noexcept {
        plan_ = {bytes, chunk_bytes};
        claims_.start(slot, side, generation, static_cast<std::uint32_t>(plan_.count()),
                      choice.split == Split::kHalves && plan_.count() <= 2);
        from_ = from;
        helps_ = protocol(choice.row).idle_side_helps;
        halves_ = choice.split == Split::kHalves;
        chunk_.reset();
        failed_.store(false, std::memory_order_relaxed);
        takeover_.start(choice.split, side);
        waiting_since_ns_ = 0;
        missed_ = 0;
    }

    void begin_turn() noexcept {
        copied_ = 0;
        tries_ = 0;
    }

    // hands.transport_is_busy()   it has a chunk of ours
    // hands.feed_hcas()           gives HCAs more chunks, where they take part
    // hands.hcas_are_busy()
    // hands.chunk_left_by_hcas()  a claimed chunk that an HCA has failed to copy; std::optional
    // hands.quantum()             bytes after which other messages get a turn
    // hands.is_idle()             this process has nothing else to do
    // hands.now_ns(), hands.patience_ns()
    // hands.took_over()           this side now copies the other side's share; for the statistics
    // hands.peer_is_alive()
    template <class Hands>
    CopyDo next(Hands& hands) noexcept {
        if (hands.transport_is_busy()) return CopyDo::kBusy;
        if (chunk_) settle();
        if (claims_.over()) return CopyDo::kOver;
        hands.feed_hcas();
        if (!chunk_ && (copied_ >= hands.quantum() || (copied_ > 0 && hands.hcas_are_busy()))) return CopyDo::kYield;
        while (!chunk_ && !claim(hands)) {
            if (copied_ > 0) return CopyDo::kYield;
            if (claims_.stuck() && !hands.hcas_are_busy()) return CopyDo::kStuck;
            const std::uint64_t now = hands.now_ns();
            if (!take_over(now, hands)) return has_died(now, hands) ? CopyDo::kPeerDied : CopyDo::kStandBy;
        }
        waiting_since_ns_ = 0;
        return CopyDo::kCopy;
    }

    // -- outcomes of kCopy
    void issued(std::uint64_t bytes) noexcept {
        at_ += bytes;
        copied_ += bytes;
        tries_ = 0;
    }
    // The transport has no room at present. Returns true if the turn must end. The chunk is returned to the board only
    // after several tries, because the side that claims it next copies it from its beginning again.
    bool no_room(bool transport_is_busy) noexcept {
        if (++tries_ < kTriesOfAChunk) return false;
        if (chunk_ && !transport_is_busy && claims_.give_back(*chunk_)) chunk_.reset();
        return true;
    }
    void fail() noexcept { failed_.store(true, std::memory_order_relaxed); }

    std::uint64_t at() const noexcept { return at_; }  // next byte of the message to copy
    std::uint64_t end() const noexcept { return begin() + plan_.bytes(*chunk_); }

    Claims& claims() noexcept { return claims_; }
    const Claims& claims() const noexcept { return claims_; }
    const ChunkPlan& plan() const noexcept { return plan_; }
    std::uint64_t from() const noexcept { return from_; }
    const std::optional<std::uint32_t>& chunk() const noexcept { return chunk_; }  // claimed, and not counted yet
    const Takeover& takeover() const noexcept { return takeover_; }

private:
    static constexpr int kTriesOfAChunk = 16;
    static constexpr std::uint64_t kLookEveryNs = 200'000'000;
    // The launcher notices a dead process, too, and ends the job; mpirun of Open MPI 4.1 may hang if a process aborts
    // at the same moment. So it is given some seconds.
    static constexpr int kLooksUntilDead = 25;

    std::uint64_t begin() const noexcept { return from_ + plan_.begin(*chunk_); }

    // Counts a chunk that is copied, and returns one that was refused.
    void settle() noexcept {
        if (failed_.load(std::memory_order_relaxed)) claims_.refused(*chunk_);
        else if (at_ == end()) claims_.copied();
        else return;
        chunk_.reset();
        failed_.store(false, std::memory_order_relaxed);
    }

    // A side that does not lead claims chunks while its process is idle.
    template <class Hands>
    bool may_claim(Hands& hands) const noexcept {
        if (takeover_.may_claim_all() || halves_ || claims_.other_is_refused()) return true;
        return helps_ && hands.is_idle();
    }

    template <class Hands>
    bool claim(Hands& hands) noexcept {
        chunk_ = hands.chunk_left_by_hcas();
        if (!chunk_ && may_claim(hands)) chunk_ = claims_.claim();
        if (chunk_) at_ = begin();
        return chunk_.has_value();
    }

    template <class Hands>
    bool take_over(std::uint64_t now, Hands& hands) noexcept {
        if (!takeover_.look(claims_.progress(), now, hands.patience_ns())) return false;
        claims_.take_all();
        hands.took_over();
        return true;
    }

    template <class Hands>
    bool has_died(std::uint64_t now, Hands& hands) noexcept {
        if (waiting_since_ns_ == 0) waiting_since_ns_ = now;
        if (now - waiting_since_ns_ < kLookEveryNs) return false;
        waiting_since_ns_ = now;
        missed_ = hands.peer_is_alive() ? 0 : missed_ + 1;
        return missed_ >= kLooksUntilDead;
    }

    Claims claims_;
    ChunkPlan plan_;
    std::uint64_t from_ = 0;
    bool helps_ = true, halves_ = false;
    std::optional<std::uint32_t> chunk_;  // claimed, and being copied …
    std::uint64_t at_ = 0;                // … up to this byte of the message
    std::atomic<bool> failed_{false};     // … or refused by the transport
    Takeover takeover_;
    std::uint64_t copied_ = 0;  // in this turn
    int tries_ = 0;
    std::uint64_t waiting_since_ns_ = 0;  // 0: not waiting
    int missed_ = 0;                      // looks in a row that did not find the peer
};

}  // namespace coop::rndv

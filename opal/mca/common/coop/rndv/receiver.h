// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of a rendezvous: from the matched RTS to the last byte.
//
//     kPosted
//        | RTS: choose() ---------------------------------------+
//        |      | rget, rput, coop: needs memory, perhaps a slot | nothing left, or send
//        |      v           has them                             v
//        |   kPrepare --------------------------------------> kGrant
//        |    | ^  \ lacks one: choose() again                  | CTS sent
//        |    | |   \ rget                                      v   FRAG, FIN
//        |    | |    v                                        kLanding ----- all bytes here -----> kOver
//        |    | |  kGet --- all read ----> kFin ---------------- FIN sent --------------------------^
//        |    | |    | refused: choose() for the rest                                               |
//        |    | |    v                                                                              |
//        |    | +----+                                                                              |
//        | kGrant (coop, or rput with a slot), or the RTS used our offer (rtr)                      |
//        +-----------------------> kCopy --- all copied --------------------------------------------+
//                                    | neither side can copy: kGrant (send)
//                                    | no room for the CTS: choose() without a slot
//
// The machine has no packets, memory or transport. Its owner tells it events and carries out the action that next()
// returns:
//
//     for (;;) switch (receiver.next()) {
//         case RecvDo::kWait:    return until something happens
//         case RecvDo::kPrepare: register [from(), wanted()); if is_shared(choice()), take a slot;
//                                then prepared() or lacks()
//         case RecvDo::kGrant:   granting() before the CTS is handed over; grant_refused() if it was not taken
//         case RecvDo::kGet:     get [from(), wanted()); then read_to()
//         case RecvDo::kSendFin: then fin_out()
//         case RecvDo::kCopy:    drive the cooperative copy (copy_side.h); then copied() or stuck()
//         case RecvDo::kEnd:     once: release everything
//     }
//
// An event that does not fit the step changes nothing and returns false. on_bytes() also returns false if the bytes
// exceed what is wanted; they are counted then, and the owner must end the job. Bytes of the peer that are not due must
// be refused with a diagnosis: ask takes_bytes().
//
// Units: bytes of the packed message. Threading: one thread at a time calls next() and reports outcomes; on_bytes() may
// come from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"
#include "coop/rndv/protocol.h"

namespace coop::rndv {

enum class RecvStep : std::uint8_t { kPosted, kPrepare, kGrant, kLanding, kGet, kFin, kCopy, kOver };
constexpr std::size_t kRecvSteps = 8;
COOP_EXPORT const char* name(RecvStep step) noexcept;

enum class RecvDo : std::uint8_t { kWait, kPrepare, kGrant, kGet, kSendFin, kCopy, kEnd };

class COOP_EXPORT Receiver {
public:
    void start() noexcept { step_.store(RecvStep::kPosted, std::memory_order_relaxed); }

    // The RTS of the message that the receive has matched. `wanted`: bytes of the message that fit the buffer.
    // `inline_bytes`: bytes of these that came with the RTS.
    bool on_rts(const Choice& offer, const Situation& situation, std::uint64_t wanted,
                std::uint64_t inline_bytes) noexcept;

    RecvStep step() const noexcept { return step_.load(std::memory_order_acquire); }
    RecvDo next() noexcept;

    // -- outcomes of actions
    bool prepared() noexcept;
    bool lacks(Lack lack) noexcept;
    bool granting() noexcept;       // before the CTS is handed over: data may arrive before that call returns
    bool grant_refused() noexcept;  // the transport had no room for it
    // Everything before byte `to` was read. `fin_follows`: a FIN was posted after the read, and nothing remains to be
    // told.
    bool read_to(std::uint64_t to, bool fin_follows) noexcept;
    bool fin_out() noexcept;
    bool copied() noexcept;
    bool stuck(std::uint64_t from) noexcept;  // neither side can copy: fragments carry everything from byte `from` on

    // -- bytes that the sender sent or put
    bool takes_bytes() const noexcept { return step() == RecvStep::kLanding; }
    bool on_bytes(std::uint64_t bytes) noexcept;  // false: more than wanted

    const Situation& situation() const noexcept { return situation_; }
    const Choice& choice() const noexcept { return choice_; }
    std::uint64_t from() const noexcept { return from_; }  // first byte that is asked for
    std::uint64_t wanted() const noexcept { return wanted_; }
    std::uint64_t landed() const noexcept { return landed_.load(std::memory_order_acquire); }

    void set_split(Split split) noexcept { choice_.split = split; }  // as the RTS of an offered receive says

private:
    void go(RecvStep step) noexcept { step_.store(step, std::memory_order_release); }
    bool is(RecvStep step) const noexcept { return step_.load(std::memory_order_relaxed) == step; }
    void choose_from(std::uint64_t from) noexcept;

    std::atomic<RecvStep> step_{RecvStep::kPosted};
    bool ended_ = false;  // kEnd was returned
    Choice choice_{Row::kEager, Reason::kFitsEager};
    std::uint64_t from_ = 0, wanted_ = 0;
    std::atomic<std::uint64_t> landed_{0};
    Situation situation_;
};

}  // namespace coop::rndv

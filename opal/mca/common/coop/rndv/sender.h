// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's side of one message that one immediate packet could not carry: from the first packet to the last byte.
//
//                       fits eager                     packets sent
//     kStart ------------------------------------------> kDrain -> kOver
//       | RTS            | RTS, receive was offered        ^  ^
//       v                +--------------+                  |  |
//     kAnswer ---- FIN, or CTS with ----|------------------+  |
//       |          nothing left         |                     |
//       | CTS: send   | CTS: rput       | CTS: coop, or rput  |
//       |             | without a slot  | with a slot         |
//       v             v                 v          all copied |
//     kFragments <- kPut -> kFin      kCopy ------------------+
//       |  ^    refused       |         | neither side can,   |
//       |  |                  |         v CTS: send           |
//       |  +------------------|---------+                     |
//       +---------------------+-------------------------------+
//
// The machine has no packets and no transport. Its owner tells it events and carries out the action that next()
// returns:
//
//     for (;;) switch (sender.next(packets_in_flight)) {
//         case SendDo::kWait:          return until something happens
//         case SendDo::kStart:         choose(); then eager_out(), or rts_out() before the RTS is handed over,
//                                      and rts_refused() if it was not taken
//         case SendDo::kSendFragments: fragment_out() for each packet, from at() to end()
//         case SendDo::kPut:           put the range [at(), end()); then put_done()
//         case SendDo::kSendFin:       tell the receiver that put_bytes() were put; then fin_out()
//         case SendDo::kCopy:          drive the cooperative copy (copy_side.h); then copied()
//         case SendDo::kEnd:           once: release everything
//     }
//
// An event that does not fit the step changes nothing and returns false. The events of the peer (on_grant, on_fin) must
// be refused with a diagnosis then: ask takes_grant() and takes_fin().
//
// Units: bytes of the packed message. Threading: one thread at a time calls next() and reports outcomes; on_grant() and
// on_fin() may come from any thread, one answer at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"
#include "coop/rndv/choice.h"

namespace coop::rndv {

enum class SendStep : std::uint8_t { kStart, kAnswer, kFragments, kPut, kFin, kCopy, kDrain, kOver };
constexpr std::size_t kSendSteps = 8;
COOP_EXPORT const char* name(SendStep step) noexcept;

enum class SendDo : std::uint8_t { kWait, kStart, kSendFragments, kPut, kSendFin, kCopy, kEnd };

enum class FinTaken : std::uint8_t { kRefused, kAwaitsOthers, kComplete };

// What a CTS says: send me [offset, offset + length).
struct Grant {
    Choice choice;
    std::uint64_t offset = 0, length = 0;
};

class COOP_EXPORT Sender {
public:
    void start() noexcept;  // a new message

    SendStep step() const noexcept { return step_.load(std::memory_order_acquire); }
    SendDo next(bool packets_in_flight) noexcept;

    // -- outcomes of actions
    bool eager_out() noexcept;                        // the whole message is in the hands of the transport
    bool rts_out(const Choice& offer) noexcept;       // before handing over the RTS: its answer may precede the return
    bool rts_refused() noexcept;                      // the transport had no room for it
    bool fragment_out(std::uint64_t bytes) noexcept;  // before the fragment is handed over
    bool fragment_refused(std::uint64_t bytes) noexcept;
    bool put_done(std::uint64_t to) noexcept;  // everything before byte `to` was put; fragments carry the rest
    bool fin_out() noexcept;
    bool copied() noexcept;  // all chunks are

    // -- answers of the receiver
    bool takes_grant(Row row, bool copy_is_stuck) const noexcept;
    bool on_grant(const Grant& grant) noexcept;
    bool takes_fin() const noexcept;
    // One of `parts` FINs. Refused where none is due, and where an earlier one said another number.
    FinTaken on_fin(const Choice& choice, std::uint32_t parts) noexcept;
    bool is_answered() const noexcept { return answered_.load(std::memory_order_acquire); }

    const Choice& choice() const noexcept { return choice_; }
    std::uint64_t at() const noexcept { return at_; }
    std::uint64_t end() const noexcept { return end_; }
    std::uint64_t put_bytes() const noexcept { return put_bytes_; }
    std::uint32_t fins_due() const noexcept { return fins_due_.load(std::memory_order_relaxed); }

private:
    void go(SendStep step) noexcept { step_.store(step, std::memory_order_release); }
    bool is(SendStep step) const noexcept { return step_.load(std::memory_order_relaxed) == step; }
    SendStep granted_step() const noexcept;
    FinTaken take_last_fin(const Choice& choice) noexcept;

    std::atomic<SendStep> step_{SendStep::kOver};
    std::atomic<bool> answered_{false};                 // the fields below are valid
    std::atomic<bool> fall_back_{false};                // neither side can copy: a second grant asks for fragments
    bool all_read_ = false;                             // the answer was a FIN
    std::atomic<std::uint32_t> fins_{0}, fins_due_{0};  // 0: none has come
    Choice choice_{Row::kEager, Reason::kFitsEager};
    std::uint64_t at_ = 0, end_ = 0;  // granted, and not sent yet
    std::uint64_t put_bytes_ = 0;
};

}  // namespace coop::rndv

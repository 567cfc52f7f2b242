// SPDX-License-Identifier: BSD-3-Clause
//
// The state machine of one connection between two processes, from the first request until rails are known to
// carry data. Both sides run the same machine.
//
//     active side                                   passive side
//     make queue pairs
//       REQUEST ---------------------------------->   make queue pairs, connect them to those of the request
//     connect them  <----------------------- REPLY
//       READY ------------------------------------>
//     read a word of the peer over each rail        read a word of the peer over each rail
//       PROBED -----------------------------------> <-------------------------------- PROBED
//     established                                   established
//
// If both sides ask at once, the request of the process with the lower number takes precedence: the other
// process answers it and drops its own.
//
// A rail is used only after each side has read, over it, the word that identifies the other. This proves that
// both directions work and that the far end is the right process. Reads do not involve the peer's CPU. Once one
// rail has answered, the others have Patience::probe left to do so. A rail that does not answer, or that one
// side cannot open, is closed on both sides: its queue pair number in REPLY, PROBED or DONE is 0. The queue pair for
// reads of a closed rail is closed, too; a rail serves without the one for reads. A REPLY without
// entries is a refusal. PROBED asks for the peer's PROBED; DONE carries the same data, but from a side that has
// already received the peer's PROBED.
//
// The machine has no clock and no queue pairs. It takes events and returns actions, which the owner carries out
// in order before the next event:
//
//     for (const Action& action : connection.on_datagram(datagram, now)) switch (action.what) {
//         case Do::kMakeQueuePairs:    create them in INIT; then on_qps_ready(numbers, now)
//         case Do::kConnectQueuePairs: bring every rail of live() to RTR and RTS with rail(i);
//                                      then on_connected(failed rails, now)
//         case Do::kProbe:             over every rail of live(), read the word at peer_word()
//         case Do::kLook:              on_probed(rails whose read has completed, rails in error, now)
//         case Do::kSend:              connector.send(…, encode(connection.datagram(action.kind)),
//                                      connection.attempt())
//         case Do::kEstablished:       rails of live() carry data; destroy the queue pairs of the others
//         case Do::kTellLate:          tell the user once that the peer has not answered for Patience::notice
//         case Do::kGiveUp:            report describe(action.reason); destroy all queue pairs
//     }
//
// An action that requires an event in return is always the last of its list. A datagram that cannot be sent
// counts as lost. A timeout alone never ends a connection attempt: a stopped peer or a failed network may
// recover.
//
// Time: nanoseconds of any steady clock. Threading: the owner's lock. Ownership: values only. Errors: kGiveUp
// with a reason, once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/datagram.h"
#include "coop/path/pairing.h"

namespace coop::path {

using Nanoseconds = std::uint64_t;
using RailMask = std::uint64_t;  // bit i: rail i
static_assert(kMaxConnectionRails <= 64);

enum class State : std::uint8_t {
    kIdle,         // not requested by either side
    kMaking,       // we connect; our queue pairs are being created
    kAnswering,    // the peer asked; our queue pairs are being created
    kRequested,    // our queue pairs are in INIT; REQUEST sent
    kJoining,      // the peer asked; our queue pairs are being connected to those of the peer
    kReplied,      // our queue pairs are in RTS; REPLY sent, waiting for READY
    kConfirming,   // the peer replied; our queue pairs are being connected to those of the peer
    kProbing,      // both sides are in RTS; a read is in flight on each rail
    kProbed,       // our reads are over; waiting for the peer's PROBED or DONE
    kEstablished,  // the rails of live() carry data
    kGivenUp,
};
constexpr std::size_t kStates = 11;
COOP_EXPORT const char* name(State state) noexcept;

enum class Reason : std::uint8_t {
    kNone,
    kNoPath,         // no local port reaches a port of the peer
    kPathsDiffer,    // the peer computed different paths
    kNoQueuePairs,   // none could be created here
    kNoRailOpened,   // no rail could be opened on both sides
    kNoRailAnswers,  // no rail passed the probe on both sides
    kRefused,        // the peer refused, or has given up
};
COOP_EXPORT const char* describe(Reason reason) noexcept;

enum class Do : std::uint8_t {
    kMakeQueuePairs,
    kConnectQueuePairs,
    kProbe,
    kLook,
    kSend,
    kEstablished,
    kTellLate,
    kGiveUp
};

struct Action {
    Do what;
    Kind kind = Kind::kRequest;     // kSend
    Reason reason = Reason::kNone;  // kGiveUp

    bool operator==(const Action&) const = default;
};

// A short list, in order.
class Actions {
public:
    Actions() = default;
    Actions& add(Action action) noexcept {
        list_[count_++] = action;
        return *this;
    }
    const Action* begin() const noexcept { return list_.data(); }
    const Action* end() const noexcept { return list_.data() + count_; }
    std::size_t size() const noexcept { return count_; }

private:
    std::array<Action, 4> list_{};
    std::size_t count_ = 0;
};

struct Patience {
    Nanoseconds first = 50'000'000;       // until a datagram is repeated; doubles with each repetition
    Nanoseconds longest = 1'000'000'000;  // between two repetitions
    Nanoseconds first_look = 20'000;      // until the reads of a probe are checked; doubles with each check
    Nanoseconds probe = 500'000'000;      // between the first and the last rail that answer the probe
    Nanoseconds notice = 30'000'000'000;  // without an answer until kTellLate; 0: never
};

// This process's end of a rail: its queue pair number (0: it could not be created), and the rkey of its word on
// the HCA of that queue pair.
struct OwnEnd {
    std::uint32_t qpn = 0, rkey = 0;
};

// Both ends of a rail.
struct RailEnds {
    std::uint32_t local_qpn = 0, remote_qpn = 0;    // 0: unknown or not open
    std::uint32_t local_psn = 0, remote_psn = 0;    // first packet sequence number sent by that side
    std::uint32_t local_rkey = 0, remote_rkey = 0;  // for that side's word
};

struct ConnectionCounts {
    std::uint32_t sent = 0, repeated = 0;
    std::uint32_t ignored = 0;  // datagrams that changed nothing
};

class Connection {
public:
    // `generation` distinguishes this connection from earlier ones between the same processes: a random number
    // other than 0. `paths`: from choose_paths(). `own_word`: address of the word that identifies this process,
    // for the peer to read.
    COOP_EXPORT Connection(std::uint64_t self, std::uint64_t peer, std::uint32_t generation,
                           std::vector<PathChoice> paths, Patience patience = {}, std::uint64_t own_word = 0);

    // --- events -------------------------------------------------------------
    [[nodiscard]] COOP_EXPORT Actions on_want(Nanoseconds now);
    [[nodiscard]] COOP_EXPORT Actions on_datagram(const Datagram& datagram, Nanoseconds now);
    // One end per rail.
    [[nodiscard]] COOP_EXPORT Actions on_qps_ready(std::span<const OwnEnd> ends, Nanoseconds now);
    // kConnectQueuePairs is done, except for the rails in `failed`.
    [[nodiscard]] COOP_EXPORT Actions on_connected(RailMask failed, Nanoseconds now);
    // `answered`: rails whose read returned the peer's word. `broken`: rails whose queue pair is in error or
    // whose read returned another word.
    [[nodiscard]] COOP_EXPORT Actions on_probed(RailMask answered, RailMask broken, Nanoseconds now);
    // The owner cannot continue. Valid in any state.
    [[nodiscard]] COOP_EXPORT Actions on_failed(Reason reason);
    [[nodiscard]] COOP_EXPORT Actions on_tick(Nanoseconds now);

    // --- what to carry out --------------------------------------------------
    COOP_EXPORT Datagram datagram(Kind kind) const;
    // The rails that both sides have open, as far as known, and those of their queue pairs for reads that they have.
    COOP_EXPORT RailMask live() const noexcept;
    RailEnds rail(std::size_t i) const noexcept { return ends_[i]; }
    const PathChoice& path(std::size_t i) const noexcept { return paths_[i]; }
    std::size_t rails() const noexcept { return paths_.size(); }
    std::uint64_t peer_word() const noexcept {
        return peer_word_;  // address in the peer's memory; valid once the peer has sent a REQUEST or REPLY
    }

    // When to call on_tick() next; nothing: not before another event.
    std::optional<Nanoseconds> next_tick() const noexcept { return waits() ? std::optional(next_) : std::nullopt; }

    State state() const noexcept { return state_; }
    Reason reason() const noexcept { return reason_; }  // valid in kGivenUp
    std::uint64_t peer() const noexcept { return peer_; }
    std::uint32_t peer_generation() const noexcept { return peer_generation_; }  // 0: unknown
    const ConnectionCounts& counts() const noexcept { return counts_; }
    // Number of repetitions so far; Connector::send() uses another pair of ports for each.
    std::uint32_t attempt() const noexcept { return counts_.repeated; }

private:
    bool waits() const noexcept {
        return state_ == State::kRequested || state_ == State::kReplied || state_ == State::kProbing ||
               state_ == State::kProbed;
    }
    RailMask without_orphans(RailMask open) const noexcept;
    bool concerns_us(const Datagram& datagram) const noexcept;
    bool mirrors_our_paths(const Datagram& datagram) const noexcept;
    void learn(const Datagram& datagram) noexcept;
    void close_what_the_peer_closed(const Datagram& datagram) noexcept;

    Actions on_request(const Datagram& datagram);
    Actions on_crossing_request(const Datagram& datagram);
    Actions insist();
    Actions on_reply(const Datagram& datagram);
    Actions on_refusal();
    Actions on_ready();
    Actions on_probed_there(const Datagram& datagram);
    Actions on_mismatch(const Datagram& datagram);

    Actions connect(State by);
    Actions establish(Actions before);
    Actions wait_in(State state, Nanoseconds pause, Actions first);
    Actions begin_probe(Actions before);
    Actions end_probe();
    Actions repeat(Kind kind) noexcept;
    Actions give_up(Reason reason);
    Actions ignore() noexcept;
    Action send(Kind kind) noexcept;

    std::uint64_t self_, peer_;
    std::uint64_t own_word_, peer_word_ = 0;
    std::uint32_t generation_;
    std::uint32_t peer_generation_ = 0;  // 0: unknown
    State state_ = State::kIdle;
    Reason reason_ = Reason::kNone;
    bool told_late_ = false;
    Patience patience_;
    Nanoseconds since_ = 0;                  // when the current wait began
    Nanoseconds pause_ = 0;                  // current interval between repetitions or checks
    Nanoseconds next_ = 0;                   // when the next repetition or check is due
    RailMask answered_ = 0, broken_ = 0;     // valid in kProbing
    std::optional<Nanoseconds> probe_ends_;  // valid in kProbing, once a rail has answered
    bool peer_has_probed_ = false;           // the peer's PROBED or DONE has arrived
    Nanoseconds now_ = 0;                    // of the current event
    std::vector<PathChoice> paths_;
    std::size_t num_rails_;  // paths_ without queue pairs for reads, which follow in the same order
    std::vector<RailEnds> ends_;
    ConnectionCounts counts_;
};

}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
// One connection between two processes, from the first wish to rails that are
// known to carry data. Both sides run the same machine.
//
//     asks                                          is asked
//     make queue pairs
//       REQUEST ---------------------------------->   make queue pairs, connect them to those of the request
//     connect them  <----------------------- REPLY
//       READY ------------------------------------>
//     read a word of the peer over each rail        read a word of the peer over each rail
//       PROBED -----------------------------------> <-------------------------------- PROBED
//     established                                   established
//
// If both ask at once, the request of the process with the lower number counts:
// the other process answers it and drops its own.
//
// A rail is used only after each side has read, over it, the word that names the
// other: so both directions work and the far ends are the right processes. The
// peer's CPU takes no part in a read. Once one rail has answered, the others have
// Patience::probe left to do so. A rail that stays silent, or that one side cannot
// open, is closed on both sides: its number in REPLY or PROBED is 0. A reply
// without entries is a refusal. PROBED asks for the other side's; DONE is the same
// from a side that has it.
//
// The machine has no clock and no queue pairs. It takes events and returns
// actions, which the owner carries out in their order before the next event:
//
//     for (const Action& action : connection.on_datagram(datagram, now)) switch (action.what) {
//         case Do::kMakeQueuePairs:    make them in INIT; then on_qps_ready(numbers, now)
//         case Do::kConnectQueuePairs: bring every rail of live() to RTR and RTS with rail(i); then on_connected(failed rails, now)
//         case Do::kProbe:             over every rail of live(), read the word at peer_word()
//         case Do::kLook:              on_probed(rails whose read is here, rails that are in error, now)
//         case Do::kSend:              connector.send(…, encode(connection.datagram(action.kind)), connection.attempt())
//         case Do::kEstablished:       rails of live() carry data; the queue pairs of the others may go
//         case Do::kTellLate:          tell the user once that the peer has not answered for Patience::notice
//         case Do::kGiveUp:            describe(action.reason); all queue pairs may go
//     }
//
// Actions that ask for an event back are always the last of their list. A send
// that fails is a datagram that was lost. Time alone never gives up a connection:
// the peer may be stopped, or its network down, and come back.
//
// Time: nanoseconds of any steady clock. Threading: the owner's lock. Ownership:
// values only. Errors: kGiveUp with a reason, once.
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
static_assert(kMaxRails <= 64);

enum class State : std::uint8_t {
    kIdle,         // nobody asked
    kMaking,       // we want it; our queue pairs are being made
    kAnswering,    // the peer asked; our queue pairs are being made
    kRequested,    // our queue pairs are in INIT and told to the peer
    kJoining,      // the peer asked; our queue pairs are being connected to its
    kReplied,      // ours are in RTS and told to the peer, which has yet to say that it is ready
    kConfirming,   // the peer replied; our queue pairs are being connected to its
    kProbing,      // both sides are in RTS; a read is under way on each rail
    kProbed,       // our reads are over; the peer has yet to tell of its own
    kEstablished,  // the rails of live() carry data
    kGivenUp,
};
constexpr std::size_t kStates = 11;
COOP_EXPORT const char* name(State state) noexcept;

enum class Reason : std::uint8_t {
    kNone,
    kNoPath,          // no port here reaches one there
    kPathsDiffer,     // the peer computed other paths
    kNoQueuePairs,    // on_failed(): none could be made here
    kNoRailOpened,    // none is left that both sides could open
    kNoRailAnswers,   // the queue pairs of all rails went into error while they were probed
    kRefused,         // the peer said no, or has given up
};
COOP_EXPORT const char* describe(Reason reason) noexcept;

enum class Do : std::uint8_t { kMakeQueuePairs, kConnectQueuePairs, kProbe, kLook, kSend, kEstablished, kTellLate, kGiveUp };

struct Action {
    Do what;
    Kind kind = Kind::kRequest;      // kSend
    Reason reason = Reason::kNone;   // kGiveUp

    bool operator==(const Action&) const = default;
};

// Few, in order.
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
    Nanoseconds first = 50'000'000;        // until a datagram is repeated; doubles with each repetition
    Nanoseconds longest = 1'000'000'000;   // between two repetitions
    Nanoseconds first_look = 20'000;       // at the reads of a probe; doubles with each look
    Nanoseconds probe = 500'000'000;       // from the first rail that answers its probe to the last
    Nanoseconds notice = 30'000'000'000;   // without an answer: kTellLate; 0: never
};

// What this process tells of its end of a rail: the number of its queue pair (0: it could not be made), and the key of
// its word on the HCA of that queue pair.
struct OwnEnd {
    std::uint32_t qpn = 0, rkey = 0;
};

// Both ends of a rail.
struct RailEnds {
    std::uint32_t local_qpn = 0, remote_qpn = 0;    // 0: not known, or not open
    std::uint32_t local_psn = 0, remote_psn = 0;    // first packet sequence number that side sends
    std::uint32_t local_rkey = 0, remote_rkey = 0;  // of that side's word
};

struct ConnectionCounts {
    std::uint32_t sent = 0, repeated = 0;
    std::uint32_t ignored = 0;  // datagrams that changed nothing
};

class Connection {
public:
    // `generation` tells this connection from an earlier one between the same
    // processes: any number but 0, best a random one. `paths` as choose_paths() gives.
    // `own_word`: address of the word that names this process, for the peer to read.
    COOP_EXPORT Connection(std::uint64_t self, std::uint64_t peer, std::uint32_t generation, std::vector<PathChoice> paths, Patience patience = {},
                           std::uint64_t own_word = 0);

    // --- events -------------------------------------------------------------
    [[nodiscard]] COOP_EXPORT Actions on_want(Nanoseconds now);
    [[nodiscard]] COOP_EXPORT Actions on_datagram(const Datagram& datagram, Nanoseconds now);
    // Of each rail.
    [[nodiscard]] COOP_EXPORT Actions on_qps_ready(std::span<const OwnEnd> ends, Nanoseconds now);
    // kConnectQueuePairs is carried out, but for the rails that failed.
    [[nodiscard]] COOP_EXPORT Actions on_connected(RailMask failed, Nanoseconds now);
    // The rails whose read has brought the peer's word, and those whose queue pair is in error or read something else.
    [[nodiscard]] COOP_EXPORT Actions on_probed(RailMask answered, RailMask broken, Nanoseconds now);
    // The owner cannot go on, in whatever state.
    [[nodiscard]] COOP_EXPORT Actions on_failed(Reason reason);
    [[nodiscard]] COOP_EXPORT Actions on_tick(Nanoseconds now);

    // --- what to carry out --------------------------------------------------
    COOP_EXPORT Datagram datagram(Kind kind) const;
    // Rails that are open as far as both sides have said.
    COOP_EXPORT RailMask live() const noexcept;
    RailEnds rail(std::size_t i) const noexcept { return ends_[i]; }
    const PathChoice& path(std::size_t i) const noexcept { return paths_[i]; }
    std::size_t rails() const noexcept { return paths_.size(); }
    std::uint64_t peer_word() const noexcept { return peer_word_; }  // its address in the peer; from kConfirming on

    // When on_tick() has something to do next; nothing: not before another event.
    std::optional<Nanoseconds> next_tick() const noexcept { return waits() ? std::optional(next_) : std::nullopt; }

    State state() const noexcept { return state_; }
    Reason reason() const noexcept { return reason_; }  // in kGivenUp
    std::uint64_t peer() const noexcept { return peer_; }
    const ConnectionCounts& counts() const noexcept { return counts_; }
    // Counts what was repeated: each goes another way (Connector::send).
    std::uint32_t attempt() const noexcept { return counts_.repeated; }

private:
    bool waits() const noexcept {
        return state_ == State::kRequested || state_ == State::kReplied || state_ == State::kProbing || state_ == State::kProbed;
    }
    bool concerns_us(const Datagram& datagram) const noexcept;
    bool mirrors_our_paths(const Datagram& datagram) const noexcept;
    void learn(const Datagram& datagram) noexcept;
    void close_what_the_peer_closed(const Datagram& datagram) noexcept;

    Actions on_request(const Datagram& datagram);
    Actions on_crossing_request(const Datagram& datagram);
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
    std::uint32_t peer_generation_ = 0;  // 0: not known
    State state_ = State::kIdle;
    Reason reason_ = Reason::kNone;
    bool told_late_ = false;
    Patience patience_;
    Nanoseconds since_ = 0, pause_ = 0, next_ = 0;  // of a wait: its begin, time to the next repetition or look, and its moment
    RailMask answered_ = 0, broken_ = 0;            // in kProbing
    std::optional<Nanoseconds> probe_ends_;         // likewise, once a rail has answered
    bool peer_has_probed_ = false;                  // and has told which rails are left
    Nanoseconds now_ = 0;                           // of the event that is being taken
    std::vector<PathChoice> paths_;
    std::vector<RailEnds> ends_;
    ConnectionCounts counts_;
};

}  // namespace coop::path

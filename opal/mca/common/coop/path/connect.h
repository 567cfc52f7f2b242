// SPDX-License-Identifier: BSD-3-Clause
//
// One connection between two processes, from the first wish to rails that carry
// data. Both sides run the same machine; each may begin, also at once.
//
//     asks                                          is asked
//     make queue pairs
//       REQUEST ---------------------------------->   make queue pairs, connect them to those of the request
//     connect them  <----------------------- REPLY
//     established
//       READY ------------------------------------>   established
//
// If both ask at once, each takes the other's request as one: both reply, both
// are established by the other's reply, and the queue pairs that each had made
// serve. What arrives twice or late changes nothing.
//
// The machine has no clock and no queue pairs. It takes events and returns
// actions, which the owner carries out in their order before the next event:
//
//     for (const Action& action : connection.on_datagram(datagram, now)) switch (action.what) {
//         case Do::kMakeQueuePairs:    make them in INIT; then on_qps_ready(numbers, now)
//         case Do::kConnectQueuePairs: every rail of live() to RTR and RTS, with rail(i); then on_connected(those that failed, now)
//         case Do::kSend:              connector.send(…, encode(connection.datagram(action.kind)), connection.attempt())
//         case Do::kEstablished:       rails of live() carry data; the queue pairs of the others may go
//         case Do::kGiveUp:            describe(action.reason); all queue pairs may go
//     }
//
// The first two are always the last of their list, and the event that reports
// them brings the next one. A send that fails is a datagram that was lost.
//
// A rail that one side cannot open is closed on both, and the others serve: its
// number in reply and ready is 0. A reply without entries is a refusal.
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
    kRequested,    // ours are in INIT and told to the peer
    kJoining,      // it asked; ours are being connected to its
    kReplied,      // ours are in RTS and told to the peer, of whom we do not know whether it is so far
    kConfirming,   // it replied; ours are being connected to its
    kEstablished,  // both are in RTS
    kGivenUp,
};
constexpr std::size_t kStates = 9;
COOP_EXPORT const char* name(State state) noexcept;

enum class Reason : std::uint8_t {
    kNone,
    kNoPath,        // no port here reaches one there
    kPathsDiffer,   // the peer computed other paths
    kNoQueuePairs,  // on_failed(): none could be made here
    kNoRailOpened,  // none is left that both sides could open
    kRefused,       // the peer said no, or has given up
    kNoAnswer,      // to any of the datagrams
};
COOP_EXPORT const char* describe(Reason reason) noexcept;

enum class Do : std::uint8_t { kMakeQueuePairs, kConnectQueuePairs, kSend, kEstablished, kGiveUp };

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
    Nanoseconds first = 50'000'000;       // until the first repetition; doubles with each
    Nanoseconds longest = 1'000'000'000;  // between two repetitions
    Nanoseconds limit = 600'000'000'000;  // all in all: a peer that computes does not answer; 0: for ever
};

// Both ends of a rail.
struct RailEnds {
    std::uint32_t local_qpn = 0, remote_qpn = 0;  // 0: not known, or not open
    std::uint32_t local_psn = 0, remote_psn = 0;  // first packet sequence number that side sends
};

struct ConnectionCounts {
    std::uint32_t sent = 0, repeated = 0;
    std::uint32_t ignored = 0;  // datagrams that changed nothing
};

class Connection {
public:
    // `generation` tells this connection from an earlier one between the same
    // processes: any number but 0, best a random one. `paths` as choose_paths() gives.
    COOP_EXPORT Connection(std::uint64_t self, std::uint64_t peer, std::uint32_t generation, std::vector<PathChoice> paths, Patience patience = {});

    // --- events -------------------------------------------------------------
    [[nodiscard]] COOP_EXPORT Actions on_want(Nanoseconds now);
    [[nodiscard]] COOP_EXPORT Actions on_datagram(const Datagram& datagram, Nanoseconds now);
    // The number of each rail's queue pair; 0: could not be made.
    [[nodiscard]] COOP_EXPORT Actions on_qps_ready(std::span<const std::uint32_t> qpns, Nanoseconds now);
    // kConnectQueuePairs is carried out, but for these.
    [[nodiscard]] COOP_EXPORT Actions on_connected(RailMask failed, Nanoseconds now);
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

    // When on_tick() has something to do next; nothing: not before another event.
    std::optional<Nanoseconds> next_tick() const noexcept { return waits() ? std::optional(next_) : std::nullopt; }

    State state() const noexcept { return state_; }
    Reason reason() const noexcept { return reason_; }  // in kGivenUp
    std::uint64_t peer() const noexcept { return peer_; }
    const ConnectionCounts& counts() const noexcept { return counts_; }
    // Counts what was repeated: each goes another way (Connector::send).
    std::uint32_t attempt() const noexcept { return counts_.repeated; }

private:
    bool waits() const noexcept { return state_ == State::kRequested || state_ == State::kReplied; }
    bool concerns_us(const Datagram& datagram) const noexcept;
    bool mirrors_our_paths(const Datagram& datagram) const noexcept;
    void learn(const Datagram& datagram) noexcept;
    void close_what_the_peer_closed(const Datagram& datagram) noexcept;

    Actions on_request(const Datagram& datagram);
    Actions on_reply(const Datagram& datagram);
    Actions on_refusal();
    Actions on_ready(const Datagram& datagram);
    Actions on_mismatch(const Datagram& datagram);

    Actions connect(State by);
    Actions establish(Actions before);
    Actions wait_in(State state, Kind sent, Nanoseconds now);
    Actions repeat(Kind kind) noexcept;
    Actions give_up(Reason reason);
    Actions ignore() noexcept;
    Action send(Kind kind) noexcept;

    std::uint64_t self_, peer_;
    std::uint32_t generation_;
    std::uint32_t peer_generation_ = 0;  // 0: not known
    State state_ = State::kIdle;
    Reason reason_ = Reason::kNone;
    Patience patience_;
    Nanoseconds since_ = 0, pause_ = 0, next_ = 0;  // of a wait: its begin, time to and of the next repetition
    std::vector<PathChoice> paths_;
    std::vector<RailEnds> ends_;
    ConnectionCounts counts_;
};

}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
//                     want                        REQUEST
//            +----------------- kIdle -----------------+
//            v                                         v
//         kMaking --------- REQUEST ------------> kAnswering
//            | qps_ready: send REQUEST                 | qps_ready
//            v                                         v
//        kRequested -------- REQUEST -------------> kJoining
//            |                                         | connected: send REPLY
//      REPLY |                                         v
//            v                                      kReplied
//       kConfirming                                    | READY, or REPLY: send READY
//            | connected: send READY                   |
//            +-------------> kEstablished <------------+
//
// kRequested and kReplied repeat what they sent. kEstablished answers a REPLY with
// READY: the one before was lost. From any state: kGivenUp, which answers no.
#include "coop/path/connect.h"

#include <algorithm>
#include <utility>

namespace coop::path {
namespace {

// Any sequence will do, if it differs between connections: an old packet should not fit.
std::uint32_t first_psn(std::uint32_t generation, std::size_t rail) noexcept {
    const std::uint64_t mixed = (std::uint64_t{generation} + rail + 1) * 0x9E3779B97F4A7C15ull;
    return static_cast<std::uint32_t>(mixed >> 40);
}
static_assert(64 - 40 == 24);

}  // namespace

const char* name(State state) noexcept {
    switch (state) {
        case State::kIdle: return "idle";
        case State::kMaking: return "making queue pairs";
        case State::kAnswering: return "making queue pairs to answer";
        case State::kRequested: return "requested";
        case State::kJoining: return "connecting queue pairs to reply";
        case State::kReplied: return "replied";
        case State::kConfirming: return "connecting queue pairs to confirm";
        case State::kEstablished: return "established";
        case State::kGivenUp: return "given up";
    }
    return "?";
}

const char* describe(Reason reason) noexcept {
    switch (reason) {
        case Reason::kNone: return "nothing is wrong";
        case Reason::kNoPath: return "no port of this process reaches a port of the peer";
        case Reason::kPathsDiffer: return "the peer computed other paths than this process";
        case Reason::kNoQueuePairs: return "no queue pair could be made";
        case Reason::kNoRailOpened: return "there is no rail that both processes could open";
        case Reason::kRefused: return "the peer could not connect, and said so";
        case Reason::kNoAnswer: return "the peer did not answer";
    }
    return "?";
}

Connection::Connection(std::uint64_t self, std::uint64_t peer, std::uint32_t generation, std::vector<PathChoice> paths, Patience patience)
    : self_(self), peer_(peer), generation_(generation), patience_(patience), paths_(std::move(paths)), ends_() {
    paths_.resize(std::min(paths_.size(), kMaxRails));
    ends_.resize(paths_.size());
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i].local_psn = first_psn(generation, i);
}

// --- events ---------------------------------------------------------------------------------------------------------

Actions Connection::on_want(Nanoseconds) {
    switch (state_) {
        case State::kIdle:
            if (paths_.empty()) return give_up(Reason::kNoPath);
            state_ = State::kMaking;
            return Actions().add({Do::kMakeQueuePairs});
        case State::kMaking:
        case State::kAnswering:
        case State::kRequested:
        case State::kJoining:
        case State::kReplied:
        case State::kConfirming:
        case State::kEstablished:
        case State::kGivenUp: break;
    }
    return {};
}

Actions Connection::on_datagram(const Datagram& d, Nanoseconds) {
    if (!concerns_us(d)) return ignore();
    if (d.kind == Kind::kReply && d.rails.empty()) return on_refusal();
    if (!mirrors_our_paths(d)) return on_mismatch(d);
    switch (d.kind) {
        case Kind::kRequest: return on_request(d);
        case Kind::kReply: return on_reply(d);
        case Kind::kReady: return on_ready(d);
    }
    return ignore();
}

Actions Connection::on_request(const Datagram& d) {
    switch (state_) {
        case State::kIdle:
            learn(d);
            state_ = State::kAnswering;
            return Actions().add({Do::kMakeQueuePairs});
        case State::kMaking:
            learn(d);
            state_ = State::kAnswering;
            return {};
        case State::kRequested:  // both ask
            learn(d);
            return connect(State::kJoining);
        case State::kReplied: return repeat(Kind::kReply);
        case State::kGivenUp:
            peer_generation_ = d.generation;
            return repeat(Kind::kReply);
        case State::kAnswering:
        case State::kJoining:
        case State::kConfirming:
        case State::kEstablished: break;
    }
    return ignore();
}

Actions Connection::on_reply(const Datagram& d) {
    switch (state_) {
        case State::kRequested:
            learn(d);
            return connect(State::kConfirming);
        case State::kReplied:  // both asked
            close_what_the_peer_closed(d);
            return establish(Actions().add(send(Kind::kReady)));
        case State::kEstablished: return repeat(Kind::kReady);
        case State::kGivenUp: return repeat(Kind::kReply);
        case State::kIdle:
        case State::kMaking:
        case State::kAnswering:
        case State::kJoining:
        case State::kConfirming: break;
    }
    return ignore();
}

Actions Connection::on_ready(const Datagram& d) {
    switch (state_) {
        case State::kReplied:
            close_what_the_peer_closed(d);
            return establish({});
        case State::kGivenUp: return repeat(Kind::kReply);
        case State::kIdle:
        case State::kMaking:
        case State::kAnswering:
        case State::kRequested:
        case State::kJoining:
        case State::kConfirming:
        case State::kEstablished: break;
    }
    return ignore();
}

// The peer has given up, for good.
Actions Connection::on_refusal() {
    switch (state_) {
        case State::kRequested:
        case State::kReplied:
        case State::kEstablished:
            peer_generation_ = 0;  // it needs no answer
            return give_up(Reason::kRefused);
        case State::kIdle:
        case State::kMaking:
        case State::kAnswering:
        case State::kJoining:
        case State::kConfirming:
        case State::kGivenUp: break;
    }
    return ignore();
}

// Its rails are not ours.
Actions Connection::on_mismatch(const Datagram& d) {
    switch (state_) {
        case State::kIdle:
        case State::kMaking:
        case State::kRequested:
            peer_generation_ = d.generation;
            return give_up(paths_.empty() ? Reason::kNoPath : Reason::kPathsDiffer);
        case State::kGivenUp:
            peer_generation_ = d.generation;
            return repeat(Kind::kReply);
        case State::kAnswering:
        case State::kJoining:
        case State::kReplied:
        case State::kConfirming:
        case State::kEstablished: break;
    }
    return ignore();
}

Actions Connection::on_qps_ready(std::span<const std::uint32_t> qpns, Nanoseconds now) {
    if (state_ != State::kMaking && state_ != State::kAnswering) return {};
    for (std::size_t i = 0; i < std::min(qpns.size(), ends_.size()); ++i) ends_[i].local_qpn = qpns[i];
    if (std::all_of(ends_.begin(), ends_.end(), [](const RailEnds& e) { return e.local_qpn == 0; })) return give_up(Reason::kNoQueuePairs);
    return state_ == State::kMaking ? wait_in(State::kRequested, Kind::kRequest, now) : connect(State::kJoining);
}

Actions Connection::on_connected(RailMask failed, Nanoseconds now) {
    if (state_ != State::kJoining && state_ != State::kConfirming) return {};
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (failed >> i & 1) ends_[i].local_qpn = 0;
    if (live() == 0) return give_up(Reason::kNoRailOpened);
    return state_ == State::kJoining ? wait_in(State::kReplied, Kind::kReply, now) : establish(Actions().add(send(Kind::kReady)));
}

Actions Connection::on_failed(Reason reason) { return state_ == State::kGivenUp ? Actions() : give_up(reason); }

Actions Connection::on_tick(Nanoseconds now) {
    if (!waits() || now < next_) return {};
    if (patience_.limit != 0 && now - since_ >= patience_.limit) return give_up(Reason::kNoAnswer);
    pause_ = std::min(pause_ * 2, patience_.longest);
    next_ = now + pause_;
    return repeat(state_ == State::kRequested ? Kind::kRequest : Kind::kReply);
}

// --- steps ------------------------------------------------------------------------------------------------------------

// Whether it is from the peer's connection that we know, and to this one of ours.
bool Connection::concerns_us(const Datagram& d) const noexcept {
    if (d.sender != peer_ || d.receiver != self_) return false;
    const bool knows_us = d.echo == generation_ || (d.kind == Kind::kRequest && d.echo == 0);
    const bool known = peer_generation_ == 0 || peer_generation_ == d.generation || state_ == State::kGivenUp;
    return knows_us && known;
}

bool Connection::mirrors_our_paths(const Datagram& d) const noexcept {
    if (d.rails.empty()) return false;
    return std::equal(d.rails.begin(), d.rails.end(), paths_.begin(), paths_.end(), [](const RailEntry& e, const PathChoice& p) {
        return e.sender_port == p.remote_port && e.receiver_port == p.local_port && e.sender_bits == p.remote_bits &&
               e.receiver_bits == p.local_bits;
    });
}

void Connection::learn(const Datagram& d) noexcept {
    peer_generation_ = d.generation;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
        ends_[i].remote_qpn = d.rails[i].qpn;
        ends_[i].remote_psn = d.rails[i].psn;
    }
}

void Connection::close_what_the_peer_closed(const Datagram& d) noexcept {
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (d.rails[i].qpn == 0) ends_[i].remote_qpn = 0;
}

Actions Connection::connect(State by) {
    if (live() == 0) return give_up(Reason::kNoRailOpened);
    state_ = by;
    return Actions().add({Do::kConnectQueuePairs});
}

Actions Connection::establish(Actions before) {
    if (live() == 0) return give_up(Reason::kNoRailOpened);
    state_ = State::kEstablished;
    return before.add({Do::kEstablished});
}

Actions Connection::wait_in(State state, Kind sent, Nanoseconds now) {
    state_ = state;
    since_ = now;
    pause_ = patience_.first;
    next_ = now + pause_;
    return Actions().add(send(sent));
}

Actions Connection::repeat(Kind kind) noexcept {
    ++counts_.repeated;
    return Actions().add(send(kind));
}

// A peer that has told us who it is learns of it, if the datagram arrives; otherwise by asking again.
Actions Connection::give_up(Reason reason) {
    state_ = State::kGivenUp;
    reason_ = reason;
    Actions actions;
    if (peer_generation_ != 0) actions.add(send(Kind::kReply));
    return actions.add({Do::kGiveUp, Kind::kRequest, reason});
}

Actions Connection::ignore() noexcept {
    ++counts_.ignored;
    return {};
}

Action Connection::send(Kind kind) noexcept {
    ++counts_.sent;
    return {Do::kSend, kind};
}

// --- what to carry out --------------------------------------------------------------------------------------------------

Datagram Connection::datagram(Kind kind) const {
    Datagram d{kind, self_, peer_, generation_, peer_generation_, {}};
    if (state_ == State::kGivenUp) return d;
    d.rails.reserve(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) {
        const PathChoice& p = paths_[i];
        d.rails.push_back({ends_[i].local_qpn, ends_[i].local_psn, p.local_port, p.remote_port, p.local_bits, p.remote_bits});
    }
    return d;
}

RailMask Connection::live() const noexcept {
    RailMask mask = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (ends_[i].local_qpn != 0 && ends_[i].remote_qpn != 0) mask |= RailMask{1} << i;
    return mask;
}

}  // namespace coop::path

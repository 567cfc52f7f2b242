// SPDX-License-Identifier: BSD-3-Clause
//
//                     want                        REQUEST
//            +----------------- kIdle -----------------+
//            v                                         v
//         kMaking --------- REQUEST ------------> kAnswering
//            | qps_ready: send REQUEST                 | qps_ready
//            v                                         v
//        kRequested -- REQUEST of a lower peer --> kJoining
//            | REPLY                                   | connected: send REPLY
//            v                                         v
//       kConfirming                                 kReplied
//            | connected: send READY                   | READY, or PROBED
//            +--------------> kProbing <---------------+
//                                | reads are over: send PROBED
//                                v
//                             kProbed
//                                | PROBED or DONE of the peer: answer PROBED with DONE
//                                v
//                           kEstablished
//
// If the peer reports its reads before ours are over, kProbed is skipped.
// kRequested, kReplied and kProbed repeat their datagram on a timer. A repeated
// REPLY means that READY was lost, a repeated PROBED that DONE was. Any state can
// change to kGivenUp, which answers every datagram of the peer, except a refusal, with a refusal.
#include "coop/path/connect.h"

#include <algorithm>
#include <utility>

namespace coop::path {
namespace {

// Connections start at different sequence numbers, so that packets of an earlier connection are rejected.
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
    case State::kProbing: return "probing";
    case State::kProbed: return "probed";
    case State::kEstablished: return "established";
    case State::kGivenUp: return "given up";
    }
    return "?";
}

const char* describe(Reason reason) noexcept {
    switch (reason) {
    case Reason::kNone: return "nothing is wrong";
    case Reason::kNoPath: return "no port of this process reaches a port of the peer";
    case Reason::kPathsDiffer: return "the peer computed different paths";
    case Reason::kNoQueuePairs: return "no queue pair could be made";
    case Reason::kNoRailOpened: return "there is no rail that both processes could open";
    case Reason::kNoRailAnswers: return "no rail between the two processes carries data";
    case Reason::kRefused: return "the peer refused the connection";
    }
    return "?";
}

Connection::Connection(std::uint64_t self, std::uint64_t peer, std::uint32_t generation, std::vector<PathChoice> paths,
                       Patience patience, std::uint64_t own_word)
    : self_(self), peer_(peer), own_word_(own_word), generation_(generation), patience_(patience),
      paths_(std::move(paths)), ends_() {
    paths_.resize(std::min(paths_.size(), kMaxConnectionRails));
    ends_.resize(paths_.size());
    num_rails_ = static_cast<std::size_t>(std::ranges::count(paths_, false, &PathChoice::is_for_reads));
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i].local_psn = first_psn(generation, i);
}

// --- events ---------------------------------------------------------------------------------------------------------

Actions Connection::on_want(Nanoseconds now) {
    now_ = now;
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
    case State::kProbing:
    case State::kProbed:
    case State::kEstablished:
    case State::kGivenUp: break;
    }
    return {};
}

Actions Connection::on_datagram(const Datagram& d, Nanoseconds now) {
    now_ = now;
    if (!concerns_us(d)) return ignore();
    if (d.kind == Kind::kReply && d.rails.empty()) return on_refusal();
    if (!mirrors_our_paths(d)) return on_mismatch(d);
    switch (d.kind) {
    case Kind::kRequest: return on_request(d);
    case Kind::kReply: return on_reply(d);
    case Kind::kReady: return on_ready();
    case Kind::kProbed:
    case Kind::kDone: return on_probed_there(d);
    case Kind::kDown:
    case Kind::kClosed:
    case Kind::kBusy:
    case Kind::kLeft: break;
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
    case State::kRequested: return on_crossing_request(d);
    case State::kReplied: return repeat(Kind::kReply);
    case State::kGivenUp: peer_generation_ = d.generation; return repeat(Kind::kReply);
    case State::kAnswering:
    case State::kJoining:
    case State::kConfirming:
    case State::kProbing:
    case State::kProbed:
    case State::kEstablished: break;
    }
    return ignore();
}

// Both sides have sent a REQUEST. If a process connects to itself, its own request is also that of its peer.
Actions Connection::on_crossing_request(const Datagram& d) {
    if (peer_ > self_) return insist();  // our request takes precedence
    learn(d);
    return connect(peer_ == self_ ? State::kConfirming : State::kJoining);
}

// If our request has been repeated already, the peer could not be reached until now. So it gets our request at once.
Actions Connection::insist() {
    if (pause_ <= patience_.first) return ignore();
    pause_ = patience_.first;
    next_ = now_ + pause_;
    return repeat(Kind::kRequest);
}

Actions Connection::on_reply(const Datagram& d) {
    switch (state_) {
    case State::kRequested: learn(d); return connect(State::kConfirming);
    case State::kProbing:
    case State::kProbed: return repeat(Kind::kReady);
    case State::kGivenUp: return repeat(Kind::kReply);
    case State::kIdle:
    case State::kMaking:
    case State::kAnswering:
    case State::kJoining:
    case State::kReplied:
    case State::kConfirming:
    case State::kEstablished: break;
    }
    return ignore();
}

Actions Connection::on_ready() {
    switch (state_) {
    case State::kReplied: return begin_probe({});
    case State::kGivenUp: return repeat(Kind::kReply);
    case State::kIdle:
    case State::kMaking:
    case State::kAnswering:
    case State::kRequested:
    case State::kJoining:
    case State::kConfirming:
    case State::kProbing:
    case State::kProbed:
    case State::kEstablished: break;
    }
    return ignore();
}

// The peer's reads are over.
Actions Connection::on_probed_there(const Datagram& d) {
    switch (state_) {
    case State::kReplied:  // its READY was lost or is late
    case State::kProbing:
    case State::kProbed: break;
    case State::kEstablished: return d.kind == Kind::kProbed ? repeat(Kind::kDone) : ignore();
    case State::kGivenUp: return repeat(Kind::kReply);
    case State::kIdle:
    case State::kMaking:
    case State::kAnswering:
    case State::kRequested:
    case State::kJoining:
    case State::kConfirming: return ignore();
    }
    close_what_the_peer_closed(d);
    peer_has_probed_ = true;
    if (live() == 0) return give_up(Reason::kNoRailAnswers);
    if (state_ == State::kReplied) return begin_probe({});
    if (state_ == State::kProbing) return {};
    // Our PROBED may have been lost, unless the peer has sent DONE.
    return establish(d.kind == Kind::kDone ? Actions() : Actions().add(send(Kind::kDone)));
}

// The peer has given up permanently.
Actions Connection::on_refusal() {
    switch (state_) {
    case State::kRequested:
    case State::kReplied:
    case State::kProbing:
    case State::kProbed:
    case State::kEstablished:
        peer_generation_ = 0;  // send it no refusal
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

// The peer's list of rails differs from ours.
Actions Connection::on_mismatch(const Datagram& d) {
    switch (state_) {
    case State::kIdle:
    case State::kMaking:
    case State::kRequested:
        peer_generation_ = d.generation;
        return give_up(paths_.empty() ? Reason::kNoPath : Reason::kPathsDiffer);
    case State::kGivenUp: peer_generation_ = d.generation; return repeat(Kind::kReply);
    case State::kAnswering:
    case State::kJoining:
    case State::kReplied:
    case State::kConfirming:
    case State::kProbing:
    case State::kProbed:
    case State::kEstablished: break;
    }
    return ignore();
}

Actions Connection::on_qps_ready(std::span<const OwnEnd> own, Nanoseconds now) {
    if (state_ != State::kMaking && state_ != State::kAnswering) return {};
    now_ = now;
    for (std::size_t i = 0; i < std::min(own.size(), ends_.size()); ++i) {
        ends_[i].local_qpn = own[i].qpn;
        ends_[i].local_rkey = own[i].rkey;
    }
    if (std::all_of(ends_.begin(), ends_.end(), [](const RailEnds& e) { return e.local_qpn == 0; }))
        return give_up(Reason::kNoQueuePairs);
    if (state_ == State::kAnswering) return connect(State::kJoining);
    return wait_in(State::kRequested, patience_.first, Actions().add(send(Kind::kRequest)));
}

Actions Connection::on_connected(RailMask failed, Nanoseconds now) {
    if (state_ != State::kJoining && state_ != State::kConfirming) return {};
    now_ = now;
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (failed >> i & 1) ends_[i].local_qpn = 0;
    if (live() == 0) return give_up(Reason::kNoRailOpened);
    if (state_ == State::kConfirming) return begin_probe(Actions().add(send(Kind::kReady)));
    return wait_in(State::kReplied, patience_.first, Actions().add(send(Kind::kReply)));
}

Actions Connection::on_probed(RailMask answered, RailMask broken, Nanoseconds now) {
    if (state_ != State::kProbing) return {};
    now_ = now;
    answered_ |= answered;
    broken_ |= broken;
    const RailMask open = without_orphans(live() & ~broken_);
    if (open == 0) return give_up(Reason::kNoRailAnswers);
    if ((open & ~answered_) == 0) return end_probe();
    if (without_orphans(open & answered_) == 0) return {};
    if (!probe_ends_) probe_ends_ = now + patience_.probe;
    if (now >= *probe_ends_) return end_probe();
    next_ = std::min(next_, *probe_ends_);
    return {};
}

Actions Connection::on_failed(Reason reason) { return state_ == State::kGivenUp ? Actions() : give_up(reason); }

Actions Connection::on_tick(Nanoseconds now) {
    if (!waits() || now < next_) return {};
    now_ = now;
    pause_ = std::min(pause_ * 2, patience_.longest);
    next_ = now + pause_;
    Actions actions;
    if (!told_late_ && patience_.notice != 0 && now - since_ >= patience_.notice) {
        told_late_ = true;
        actions.add({Do::kTellLate});
    }
    if (state_ == State::kProbing) return actions.add({Do::kLook});
    ++counts_.repeated;
    return actions.add(send(state_ == State::kRequested ? Kind::kRequest
                            : state_ == State::kReplied ? Kind::kReply
                                                        : Kind::kProbed));
}

// --- steps ----------------------------------------------------------------------------------------------------------

// True if both generations in the datagram, as far as known, are those of this connection.
bool Connection::concerns_us(const Datagram& d) const noexcept {
    if (d.sender != peer_ || d.receiver != self_ || !is_about_connecting(d.kind)) return false;
    const bool knows_us = d.echo == generation_ || (d.kind == Kind::kRequest && d.echo == 0);
    const bool known = peer_generation_ == 0 || peer_generation_ == d.generation || state_ == State::kGivenUp;
    return knows_us && known;
}

bool Connection::mirrors_our_paths(const Datagram& d) const noexcept {
    if (d.rails.empty()) return false;
    return std::equal(d.rails.begin(), d.rails.end(), paths_.begin(), paths_.end(),
                      [](const RailEntry& e, const PathChoice& p) {
                          return e.sender_port == p.remote_port && e.receiver_port == p.local_port &&
                                 e.sender_bits == p.remote_bits && e.receiver_bits == p.local_bits;
                      });
}

void Connection::learn(const Datagram& d) noexcept {
    peer_generation_ = d.generation;
    peer_word_ = d.word;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
        ends_[i].remote_qpn = d.rails[i].qpn;
        ends_[i].remote_psn = d.rails[i].psn;
        ends_[i].remote_rkey = d.rails[i].rkey;
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
    state_ = State::kEstablished;
    return before.add({Do::kEstablished});
}

Actions Connection::wait_in(State state, Nanoseconds pause, Actions first) {
    state_ = state;
    since_ = now_;
    pause_ = pause;
    next_ = now_ + pause_;
    return first;
}

Actions Connection::begin_probe(Actions before) {
    return wait_in(State::kProbing, patience_.first_look, before.add({Do::kProbe}));
}

// Keeps the rails that have answered, and tells the peer which those are.
Actions Connection::end_probe() {
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (((answered_ & ~broken_) >> i & 1) == 0) ends_[i].local_qpn = 0;
    if (peer_has_probed_) return establish(Actions().add(send(Kind::kDone)));
    return wait_in(State::kProbed, patience_.first, Actions().add(send(Kind::kProbed)));
}

Actions Connection::repeat(Kind kind) noexcept {
    ++counts_.repeated;
    return Actions().add(send(kind));
}

// Sends a refusal if the peer's connection is known. If the datagram is lost, the peer asks again and is
// refused then.
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

// --- what to carry out ----------------------------------------------------------------------------------------------

Datagram Connection::datagram(Kind kind) const {
    Datagram d{kind, self_, peer_, own_word_, generation_, peer_generation_, {}, kAllRails, false, 0, 0, 0};
    if (state_ == State::kGivenUp) return d;
    d.rails.reserve(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) {
        const PathChoice& p = paths_[i];
        d.rails.push_back({ends_[i].local_qpn, ends_[i].local_psn, ends_[i].local_rkey, p.local_port, p.remote_port,
                           p.local_bits, p.remote_bits});
    }
    return d;
}

RailMask Connection::live() const noexcept {
    RailMask mask = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i)
        if (ends_[i].local_qpn != 0 && ends_[i].remote_qpn != 0) mask |= RailMask{1} << i;
    return without_orphans(mask);
}

// Removes the queue pairs for reads whose rail is not open.
RailMask Connection::without_orphans(RailMask open) const noexcept {
    if (num_rails_ == paths_.size()) return open;
    const RailMask rails = open & ((RailMask{1} << num_rails_) - 1);
    return open & (rails | rails << num_rails_);
}

}  // namespace coop::path

// SPDX-License-Identifier: BSD-3-Clause
//
// One call of allgather by one process. (RDMA based allgather, sections 4.2 and 4.3)
//
//     start   announces the memory to each process that will send a long step, all at once
//     step    sends the step's blocks and waits for those of its partner; the order of
//             steps is the algorithm's
//     end     waits until its own long steps are complete, because the caller may then
//             change the memory
//
// A step is short if it fits into a slot or a collective buffer of the receiver: then it is sent without asking,
// and copied. A long step is written to the announced memory, or sent in packets.
//
// The call uses a Wire, which the component, the simulator and the tests provide:
//
//     bool announce(to, number)                       tells rank `to` where its steps go
//     bool send_short(to, step, pieces)               copies the pieces before it returns
//     std::uint64_t send_long(to, step, at, piece, announcement)
//             starts to move a part of the step, from its offset `at` on; returns how many bytes of
//             `piece` it took. It also has to tell `to` when they have landed.
//     bool send_empty(to, step)                       tells `to` that a long step has no bytes
//     bool settle()                                   whether all long steps so far are complete here
//
// false or 0 means: try again later.
//
// Threading: one thread. Ownership: the wire and the inbox outlive the call.
#pragma once

#include "coop/coll/inbox.h"

namespace coop::coll {

constexpr bool is_short(Algorithm algorithm, std::uint64_t bytes, std::uint64_t short_bytes) noexcept {
    return has_slots(algorithm) && bytes <= short_bytes;
}

template <class Wire>
class Call {
public:
    // `short_bytes`: the longest short step; the same in all processes.
    Call(Wire& wire, Inbox& inbox, const Target& target, std::uint32_t lap, std::uint64_t short_bytes) noexcept
        : wire_(wire), inbox_(inbox), target_(target), lap_(lap), short_bytes_(short_bytes),
          steps_(count_steps(target.algorithm, target.blocks.processes())),
          announcements_(count_announcements(target.algorithm, target.blocks.processes())) {
        inbox_.open(lap, target);
        begin_step();
    }

    // Does what can be done now. Returns true when the call is complete; then it is not called again.
    bool advance() noexcept {
        const bool announced = announce_rest();
        while (number_ < steps_) {
            if (!sent_) sent_ = send();
            if (!received_) received_ = receive();
            if (!sent_ || !received_) break;
            ++number_;
            begin_step();
        }
        if (!wire_.settle() || !announced || number_ < steps_) return false;
        inbox_.close(lap_);
        return true;
    }

private:
    void begin_step() noexcept {
        sent_ = received_ = false;
        at_ = 0;
        if (number_ == steps_) return;
        step_ = target_.step(number_);
        sends_ = target_.blocks.pieces_of(step_.send);
        receives_bytes_ = target_.blocks.pieces_of(step_.receive).bytes();
    }

    bool is_long(std::uint64_t bytes) const noexcept { return !is_short(target_.algorithm, bytes, short_bytes_); }

    // Each announcement once, if any of its steps is long. Steps with the same announcement are all long or all short.
    bool announce_rest() noexcept {
        for (; announcement_ < announcements_; ++announcement_) {
            const Step step = target_.step(announcement_);
            const std::uint64_t bytes = target_.blocks.pieces_of(step.receive).bytes();
            if (is_long(bytes) && !wire_.announce(step.from, announcement_)) return false;
        }
        return true;
    }

    bool send() noexcept {
        if (!is_long(sends_.bytes())) return wire_.send_short(step_.to, number_, sends_);
        const Announcement* there = inbox_.announcement(lap_, announcement_of(target_.algorithm, number_));
        if (!there) return false;
        if (sends_.size() == 0) return wire_.send_empty(step_.to, number_);
        std::uint64_t begin = 0;
        for (const Piece& piece : sends_) {
            for (const std::uint64_t end = begin + piece.bytes; at_ < end;) {
                const Piece rest{piece.offset + (at_ - begin), end - at_};
                const std::uint64_t taken = wire_.send_long(step_.to, number_, at_, rest, *there);
                if (taken == 0) return false;
                at_ += taken;
            }
            begin += piece.bytes;
        }
        return true;
    }

    bool receive() noexcept {
        return is_long(receives_bytes_) ? inbox_.has_landed(lap_, number_, receives_bytes_)
                                        : inbox_.take_short(lap_, number_, receives_bytes_);
    }

    Wire& wire_;
    Inbox& inbox_;
    const Target target_;
    const std::uint32_t lap_;
    const std::uint64_t short_bytes_;
    const std::uint32_t steps_, announcements_;
    std::uint32_t number_ = 0, announcement_ = 0;
    Step step_{};
    Pieces sends_;
    std::uint64_t receives_bytes_ = 0;
    std::uint64_t at_ = 0;  // bytes of the step that the wire has taken
    bool sent_ = false, received_ = false;
};

}  // namespace coop::coll

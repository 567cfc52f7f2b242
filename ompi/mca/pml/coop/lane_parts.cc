// SPDX-License-Identifier: BSD-3-Clause
#include "lane_parts.h"

#include <atomic>
#include <cstring>

#include <sched.h>
#include <unistd.h>

#include "diagnose.h"
#include "node_lane.h"

#include "coop/base/relax.h"
#include "coop/node/lane_offer.h"
#include "coop/node/neighbour.h"
#include "coop/node/remote_copy.h"

namespace coop::pml {
namespace {

std::uint32_t offset_in(const node::LaneArea& area, const std::byte* body) noexcept {
    return static_cast<std::uint32_t>(body - area.ring(area.ring_at(body)));
}

// The sender has told nothing for a while. Another process may run on its CPU, perhaps we.
void look_after(std::int32_t pid) noexcept {
    sched_yield();
    if (node::is_alive(pid)) return;
    sleep(5);  // the launcher ends the job
    protocol_error(wire::Kind::kMatch, Sender(), "its sender has ended in the middle of a message");
}

}  // namespace

ArrivingParts::ArrivingParts(const node::LaneArea& area, std::byte* body, std::uint32_t payload_bytes,
                             bool is_offered) noexcept
    : area_(area), ring_(area.ring_at(body)), parts_(area.memory_of(ring_), offset_in(area, body)),
      offer_(body + kHeadBytes + sizeof(wire::MatchHeader)),
      payload_(offer_ + (is_offered ? sizeof(node::LaneOffer) : 0)), bytes_(payload_bytes), pid_(area.claimant(ring_)),
      is_offered_(is_offered && !node::LaneOffer::read(offer_).is_copied(area.answer(ring_).load())) {}

// Lets the kernel copy a message that is offered. Returns false if it refuses, or the message is not offered or no longer:
// then the sender writes it in parts.
bool ArrivingParts::read_into(void* to) noexcept {
    if (!is_offered_) return false;
    const auto offer = node::LaneOffer::read(offer_);
    node::RemoteCopy copy(pid_, node::RemoteCopy::To::kHere);
    const bool is_copied = offer.begins_reading(parts_, area_.reading(ring_)) && !module.faults.hit(Fault::kOffer) &&
                           copy.add(to, offer.address, bytes_) && copy.flush();
    area_.answer(ring_).store(offer.answer(is_copied), std::memory_order_release);
    is_offered_ = false;
    return is_copied;
}

// Another process may run on the CPU of the sender, perhaps we.
void ArrivingParts::note_delay() noexcept {
    constexpr unsigned kOften = 64;
    static std::atomic<unsigned> looks{0};  // of all messages: a record may be looked at once in each poll
    const unsigned now = looks.load(std::memory_order_relaxed) + 1;
    looks.store(now, std::memory_order_relaxed);
    if (now % kOften == 0) serve_own_offer();
    if (now % kPatience == 0) look_after(pid_);
}

bool ArrivingParts::go_on(unsigned patience) noexcept {
    for (unsigned looks = 0; done_ < bytes_;) {
        const std::uint32_t written = parts_.written(done_, bytes_);
        if (written == done_) {
            note_delay();
            if (++looks > patience) return false;
            relax();
            continue;
        }
        if (to_) std::memcpy(to_ + done_, payload_ + done_, written - done_);
        done_ = written;
        looks = 0;
    }
    return true;
}

bool ArrivingParts::copy(void* to, unsigned patience) noexcept {
    to_ = static_cast<std::byte*>(to);
    if (done_ == bytes_) std::memcpy(to_, payload_, bytes_);  // get_whole() has been called before
    else if (read_into(to)) done_ = bytes_;
    return go_on(patience);
}

bool ArrivingParts::get_whole(unsigned patience) noexcept {
    if (done_ < bytes_ && read_into(payload_)) done_ = bytes_;
    return go_on(patience);
}

}  // namespace coop::pml
